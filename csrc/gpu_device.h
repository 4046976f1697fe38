/* What the files that call the CUDA runtime share. It names no type of CUDA's: an error and a
 * stream come as int and void *. */
#ifndef GPR_GPU_DEVICE_H
#define GPR_GPU_DEVICE_H

#include "plan.h"

/* A cudaError_t as a status, with the call named in the message. */
gpr_status gpr_cuda_check(int error, const char *call, int device);
static inline gpr_status check(int error, const char *call, int device) {
  return gpr_cuda_check(error, call, device);
}

/* Makes the device the thread's, whose own comes back in *before, for cudaSetDevice() afterwards.
 */
gpr_status gpr_cuda_enter(int device, int *before);

/* Begins to gather elements [start, start + n) of a plan on the device into `to`, there too. */
gpr_status gpr_cuda_gather(const gpr_plan *plan, int64_t start, int64_t n, void *to, int device,
                           void *stream);

/* Begins to fold a whole array of elements of so many bytes. */
gpr_status gpr_cuda_flat(const gpr_gpu_row *kernel, gpr_flat_args args, int bytes, int device,
                         void *stream);

#endif
