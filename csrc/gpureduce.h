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

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "../kernels/abi/dtypes.h"
#include "../kernels/abi/ladder.h"

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

enum { GPR_C_ORDER, GPR_MEMORY_ORDER }; /* as the kept axes of the array lie in memory */

enum { GPR_DEVICE_AUTO = -2, GPR_DEVICE_CPU = -1 }; /* 0 and up: that CUDA device */

/* An array as it lies: strides in bytes, of any sign or zero; `swapped` if the byte order is not
 * the machine's. */
typedef struct gpr_view {
  const void *data;
  int dtype; /* enum gpr_dtype */
  int ndim;
  int swapped, read_only;
  int device;   /* where the data is: GPR_DEVICE_CPU (not 0), or a CUDA device */
  void *stream; /* the CUDA stream that it is ready on; NULL is the default stream */
  int64_t shape[GPR_DIMS_MAX];
  int64_t strides[GPR_DIMS_MAX];
} gpr_view;

/* A contiguous array of n elements in host memory. */
gpr_view gpr_view_of(const void *data, int dtype, int64_t n);

/* A result: `bytes` holds a value of the dtype, or the four of a 2 x 2 matrix in C order; of
 * operators that give two, like minmax, one after the other. */
typedef struct gpr_value {
  int dtype;
  alignas(16) unsigned char bytes[32];
} gpr_value;

/* For .axes: axis d of the view, or all. */
#define GPR_AXIS(d) (UINT64_C(1) << (d))
#define GPR_ALL_AXES UINT64_MAX

/* All members may be left as gpr_defaults() gives them; pointers stay the caller's. */
typedef struct gpr_options {
  int dtype; /* convert each element first, or GPR_NO_DTYPE */
  int device;
  const gpr_value *initial; /* takes part in the reduction; of the result's dtype. Or NULL */
  int kernel;    /* one of abi/ladder.h, on a CUDA device and without initial; or GPR_NO_KERNEL */
  uint64_t axes; /* those to reduce: GPR_AXIS(0) | GPR_AXIS(2), or GPR_ALL_AXES */
  /* A mask of dtype bool, or NULL: only elements where it is true count. Of the view's shape; a
   * stride of 0 broadcasts it. */
  const gpr_view *where;
  /* With one axis in .axes: instead of all of it reduce each [starts[i], stops[i]) of it. The index
   * i is the first axis of the result. */
  int64_t segments;
  const int64_t *starts, *stops;
  double ddof; /* of var and std: divide by n - ddof */
  /* Of var and std: take these for the means, one for each output, float64 (complex128 of complex
   * numbers); or NULL. */
  const double *means;
  /* The result: of gpr_outputs() elements of gpr_result_dtype() in C order over the axes that are
   * left; operators that give two have them one after the other. NULL: there is but one output,
   * which gpr_finish() gives. */
  void *out;
  /* Where out is: GPR_DEVICE_CPU, or the device where the array is. There it is written in the
   * order of the array's stream, perhaps after gpr_finish() has returned. */
  int out_device;
  int out_order; /* GPR_MEMORY_ORDER: of one result where the work is done, without segments and
                    means */
} gpr_options;

gpr_options gpr_defaults(void);

/* How many outputs a reduction of the view has. */
int64_t gpr_outputs(const gpr_view *view, const gpr_options *options);

/* The array to one value, or to options->out. op is a name of kernels/abi/ops.h or a NumPy ufunc's.
 * options may be NULL. The result is the caller's, and may be NULL beside options->out. */
gpr_status gpr_reduce(const char *op, const gpr_view *view, const gpr_options *options,
                      gpr_value *result);

/* The index of a textbook kernel or of a variant for many outputs, or GPR_NO_KERNEL. */
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

/* How many values each output of it has: 1, or 2 of minmax and its like. */
int gpr_results(int op);

/* Plans and begins. The run is the caller's, to be closed; on failure *run is NULL. */
gpr_status gpr_open(int op, const gpr_view *view, const gpr_options *options, gpr_run **run);

/* Works for about `nanoseconds`; GPR_OK when all is done, GPR_MORE when it is not. */
gpr_status gpr_step(gpr_run *run, int64_t nanoseconds);

/* How many elements are done, about, and of how many: all of them once gpr_step gave GPR_OK. May be
 * asked between steps. *total is the caller's. */
int64_t gpr_done(const gpr_run *run, int64_t *total);

/* The result, after gpr_step gave GPR_OK; it may be NULL beside options->out. The run stays the
 * caller's. */
gpr_status gpr_finish(gpr_run *run, gpr_value *result);

/* After gpr_finish(): the least number of elements that counted in an output, initial one of them;
 * -1 if not known. */
int64_t gpr_least(const gpr_run *run);

/* Milliseconds of the kernel that folds many outputs of an array on a device, launched so many
 * times (1 and up) one after the other. The run is to be fresh, and is of no other use afterwards.
 */
gpr_status gpr_time(gpr_run *run, int repeats, double *milliseconds);

/* Gives up what is left to do and frees the run. NULL is fine. */
void gpr_close(gpr_run *run);

/* How many CUDA devices can be used; 0 leaves the reason for gpr_error(). */
int gpr_device_count(void);

/* What a CUDA device is. */
typedef struct gpr_device {
  char name[256];
  int major, minor; /* the compute capability */
  int multiprocessors, threads_per_multiprocessor, bus_bits;
  int driver; /* 1000 * major + 10 * minor of the CUDA that it is for */
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
