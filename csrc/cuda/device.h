/* What the files that call the CUDA runtime share. It names no type of CUDA's: an error and a
 * stream come as int and void *. */
#ifndef GPR_GPU_DEVICE_H
#define GPR_GPU_DEVICE_H

#include "../plan.h"

enum { GPR_DEVICES_MAX = 64 }; /* more are not seen */

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

/* Launches that are soon done, again and again, of a few kernels. One launch at a time. */
typedef struct gpr_launcher gpr_launcher;
gpr_status gpr_cuda_launch(gpr_launcher *launcher, const void *kernel, int64_t blocks, int threads,
                           void **arguments, int device, void *stream);
/* The caller's, of the device that is current then; NULL for want of memory. */
gpr_launcher *gpr_cuda_launcher(void);
void gpr_cuda_launcher_free(gpr_launcher *launcher);

/* Begins to fold a whole array in so many blocks, by a launcher or, with NULL, without. */
gpr_status gpr_cuda_flat(const gpr_gpu_row *kernel, gpr_flat_args args, int64_t blocks,
                         gpr_launcher *launcher, int device, void *stream);

/* The blocks for an array of so many bytes, and the words of an answer for any kernel. */
int64_t gpr_cuda_blocks(const gpr_gpu_row *kernel, int64_t bytes, int device);
int64_t gpr_cuda_answer_words(int device);

/* Begins to bring the plan's elements to `to` on the device, contiguous, native and of the row's
 * dtype: they are there when the run's step says GPR_OK. The run is the caller's. */
gpr_status gpr_gpu_copy_open(const gpr_plan *plan, int device, void *to, gpr_run **run);

/* Memory in the order of the stream, which the caller releases on the same or on a later one. NULL
 * is fine. */
gpr_status gpr_cuda_allocate(void **out, size_t bytes, int device, void *stream);
void gpr_cuda_release(void *memory, void *stream);

/* The number of multiprocessors. */
int gpr_cuda_multiprocessors(int device);

/* Waits a little, the longer the longer it was waited for: `since` is when that began, as
 * gpr_now() has it. */
void gpr_cuda_wait(int64_t since);

#endif
