/* gpureduce for C programs: one header, one library, no Python.
 *
 *   gpr_view view = gpr_view_of(data, GPR_FLOAT64, n);
 *   gpr_value sum;
 *   if (gpr_reduce("sum", &view, NULL, &sum) != GPR_OK) puts(gpr_error());
 *
 * Every function may be called from any thread at any time. Nothing here keeps a pointer to the
 * caller's memory after it returns, but for a gpr_run, which reads the array until it is closed. */
#ifndef GPUREDUCE_H
#define GPUREDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "../kernels/dtypes.h"
#include "../kernels/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpr_status {
  GPR_OK,
  GPR_MORE,      /* not an error: the run is not finished, step again */
  GPR_BAD_VALUE, /* NumPy would raise ValueError */
  GPR_BAD_TYPE,  /* NumPy would raise TypeError */
  GPR_OUT_OF_MEMORY,
  GPR_DEVICE_ERROR, /* the device asked for is missing or failed */
} gpr_status;

/* What went wrong in the calling thread's last call that failed. The text stays the library's and
 * lasts until that thread's next failure. */
const char *gpr_error(void);

enum { GPR_DIMS_MAX = 64 };

enum { GPR_DEVICE_AUTO = -2, GPR_DEVICE_CPU = -1 }; /* 0 and up: that CUDA device */

/* An array as it lies: strides in bytes, of any sign or zero; `swapped` if the byte order is not
 * the machine's. */
typedef struct gpr_view {
  const void *data;
  int dtype; /* enum gpr_dtype */
  int ndim;
  int swapped;
  int device;   /* where the data is: GPR_DEVICE_CPU (not 0), or a CUDA device */
  void *stream; /* the CUDA stream that it is ready on; NULL is the default stream */
  int64_t shape[GPR_DIMS_MAX];
  int64_t strides[GPR_DIMS_MAX];
} gpr_view;

/* A contiguous array of n elements in host memory. */
gpr_view gpr_view_of(const void *data, int dtype, int64_t n);

/* A result: `bytes` holds a value of the dtype, or the four of a 2 x 2 matrix in C order. */
typedef struct gpr_value {
  int dtype;
  _Alignas(16) unsigned char bytes[32];
} gpr_value;

/* All members may be left as gpr_defaults() gives them. */
typedef struct gpr_options {
  int dtype; /* convert each element first, or GPR_NO_DTYPE */
  int device;
  const gpr_value *initial; /* takes part in the reduction; of the result's dtype. Or NULL */
  int kernel; /* one of kernels/ladder.h, on a CUDA device and without initial; or GPR_NO_KERNEL */
} gpr_options;

gpr_options gpr_defaults(void);

/* The whole array to one value. op is a name of kernels/ops.h or a NumPy ufunc's. options may be
 * NULL. The result is the caller's. */
gpr_status gpr_reduce(const char *op, const gpr_view *view, const gpr_options *options,
                      gpr_value *result);

/* The index of a textbook kernel, or GPR_NO_KERNEL. */
int gpr_kernel_index(const char *name);

/* Milliseconds that the launches of options->kernel take for the array, `repeats` times, each with
 * cold caches and without the copies that come before. The times are the caller's. */
gpr_status gpr_kernel_time(const char *op, const gpr_view *view, const gpr_options *options,
                           int repeats, double *milliseconds);

/* --- the same in steps, for callers that have something else to look after -------------------- */

typedef struct gpr_run gpr_run;

/* The index of an operator, or -1. */
int gpr_op_index(const char *name);

/* The dtype of the result, which initial is of too, from an array of this dtype; GPR_NO_DTYPE where
 * the operator does not take it. */
int gpr_result_dtype(int op, int dtype, const gpr_options *options);

/* Plans and begins. The run is the caller's, to be closed; on failure *run is NULL. */
gpr_status gpr_open(int op, const gpr_view *view, const gpr_options *options, gpr_run **run);

/* Works for about `nanoseconds`; GPR_OK when all is done, GPR_MORE when it is not. */
gpr_status gpr_step(gpr_run *run, int64_t nanoseconds);

/* The result, after gpr_step gave GPR_OK. The run stays the caller's. */
gpr_status gpr_finish(gpr_run *run, gpr_value *result);

/* Gives up what is left to do and frees the run. NULL is fine. */
void gpr_close(gpr_run *run);

/* How many CUDA devices can be used; 0 leaves the reason for gpr_error(). */
int gpr_device_count(void);

/* What a CUDA device is. Versions are 1000 * major + 10 * minor. */
typedef struct gpr_device {
  char name[256];
  int major, minor; /* the compute capability */
  int multiprocessors, threads_per_multiprocessor, bus_bits;
  int driver, runtime;
  int64_t clock_hertz, memory_clock_hertz;
  int64_t memory_total, memory_free, l2_bytes, shared_bytes; /* shared_bytes: of a block, at most */
} gpr_device;

/* The device query. *out is the caller's. */
gpr_status gpr_device_info(int device, gpr_device *out);

/* Medians in bytes a second. A copy on the device counts what is read and what is written. */
typedef struct gpr_bandwidth {
  double to_device_pinned, to_device_pageable, to_host_pinned, to_host_pageable;
  double on_device, read;
} gpr_bandwidth;

/* The bandwidth test, with `bytes` (16 and up) in host and device memory each, in a few seconds for
 * 1 GiB. *out is the caller's. */
gpr_status gpr_bandwidth_test(int device, int64_t bytes, gpr_bandwidth *out);

/* Threads that one call on the CPU may use; 0 sets the default: GPUREDUCE_NUM_THREADS, or what the
 * affinity mask and the cgroup's quota allow. */
void gpr_set_threads(int threads);
int gpr_threads(void);

/* The instruction set that the CPU half runs on: "v4", "v3" or "plain". */
const char *gpr_isa(void);

#ifdef __cplusplus
}
#endif
#endif
