/* gpureduce for C programs: one header, one library, no Python.
 *
 *   const gpr_view view = gpr_view_of(data, GPR_FLOAT64, n);
 *   gpr_value sum;
 *   if (gpr_reduce("sum", &view, NULL, &sum) != GPR_OK) {
 *     fprintf(stderr, "%s\n", gpr_error());
 *     return 1;
 *   }
 *   printf("%.17g\n", gpr_as_double(&sum, 0));
 *
 * Along an axis, of a 3 x 4 array in C order:
 *
 *   const int64_t shape[] = {3, 4};
 *   const gpr_view view = gpr_view_nd(data, GPR_FLOAT64, 2, shape);
 *   gpr_options options = gpr_defaults();
 *   double rows[3];
 *   options.axes = GPR_AXIS(1);
 *   options.out = rows; // gpr_outputs(&view, &options) elements
 *   gpr_status status = gpr_reduce("sum", &view, &options, NULL);
 *
 * Operators: sum prod min max argmin argmax mean any all count_nonzero ptp minmax argminmax var std
 * nansum nanprod nanmin nanmax nanargmin nanargmax nanmean nanvar nanstd; NumPy's ufuncs add
 * multiply minimum maximum fmin fmax logical_and logical_or logical_xor bitwise_and bitwise_or
 * bitwise_xor; and matmul2x2, of an array (n, 2, 2).
 *
 * Every function may be called from any thread at any time. Every argument is checked: what cannot
 * be is refused with GPR_BAD_VALUE or GPR_BAD_TYPE and a message, whatever it is but a pointer to
 * memory that is not there. Nothing here keeps a pointer to the caller's memory after it returns,
 * but for a gpr_run, which reads the array until it is closed. This header needs no other of
 * gpureduce's; programs link as `pkg-config --cflags --libs gpureduce` says. */
#ifndef GPUREDUCE_H
#define GPUREDUCE_H

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

/* The one place where the version stands. */
#define GPUREDUCE_VERSION "0.1.0"

#if defined __GNUC__
#define GPR_API __attribute__((visibility("default")))
#else
#define GPR_API
#endif

/* In the sources the library's own lists, of which the second half repeats what programs need. */
#if defined __has_include
#if __has_include("../kernels/abi/dtypes.h")
#include "../kernels/abi/dtypes.h"
#include "../kernels/abi/ladder.h"
#define GPR_LISTED
#endif
#endif
#ifndef GPR_LISTED
enum gpr_dtype {
  GPR_BOOL, /* one byte */
  GPR_INT8,
  GPR_INT16,
  GPR_INT32,
  GPR_INT64,
  GPR_UINT8,
  GPR_UINT16,
  GPR_UINT32,
  GPR_UINT64,
  GPR_FLOAT16,
  GPR_BFLOAT16,
  GPR_FLOAT32,
  GPR_FLOAT64,
  GPR_COMPLEX64,
  GPR_COMPLEX128,
  GPR_DATETIME64,  /* int64; INT64_MIN is NaT */
  GPR_TIMEDELTA64, /* likewise */
  GPR_DTYPE_COUNT,
  GPR_NO_DTYPE = -1
};
enum { GPR_NO_KERNEL = -1 };
#endif

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

/* What went wrong in the calling thread's last call that failed, in a sentence; "" before the
 * first. The text stays the library's and lasts until that thread's next failure. */
GPR_API const char *gpr_error(void);

/* A status in a few words, for any number: "bad value". */
GPR_API const char *gpr_strerror(int status);

/* GPUREDUCE_VERSION of the library, which may be another than that of this header. */
GPR_API const char *gpr_version(void);

/* NumPy's name of a dtype, "float64", and the bytes of an element; NULL and 0 of what is none. */
GPR_API const char *gpr_dtype_name(int dtype);
GPR_API int gpr_dtype_size(int dtype);

enum { GPR_DIMS_MAX = 64 };

enum { GPR_C_ORDER, GPR_MEMORY_ORDER }; /* as the kept axes of the array lie in memory */

/* For .device; 0 and up: that CUDA device. Of several each takes a part of an array in host memory,
 * and the bits of the result are the same. */
enum {
  GPR_DEVICE_AUTO = -2,
  GPR_DEVICE_CPU = -1,
  GPR_DEVICE_CUDA_ALL = -3, /* all CUDA devices */
  GPR_DEVICE_ALL = -4,      /* and the CPU's threads */
  GPR_DEVICE_LIST = -5,     /* those of .devices and .and_cpu */
  GPR_DEVICES_MAX = 64      /* more are not seen */
};

enum { GPR_HOST_MEMORY, GPR_CUDA_MEMORY };

/* An array as it lies: strides in bytes, of any sign or zero, where each element is read again and
 * again; `swapped` if the byte order is not the machine's. Members that are left out of an
 * initialiser, and so are 0, mean host memory. */
typedef struct gpr_view {
  const void *data;
  int dtype; /* enum gpr_dtype */
  int ndim;
  int swapped, read_only;
  int memory;   /* where the data is: GPR_HOST_MEMORY or GPR_CUDA_MEMORY */
  int device;   /* of GPR_CUDA_MEMORY: which; else 0 or GPR_DEVICE_CPU */
  void *stream; /* the CUDA stream that it is ready on; NULL is the default stream */
  int64_t shape[GPR_DIMS_MAX];
  int64_t strides[GPR_DIMS_MAX];
} gpr_view;

/* A contiguous array of n elements in host memory. */
GPR_API gpr_view gpr_view_of(const void *data, int dtype, int64_t n);

/* A contiguous array in host memory, in C order. shape has ndim elements and stays the caller's. */
GPR_API gpr_view gpr_view_nd(const void *data, int dtype, int ndim, const int64_t *shape);

/* A result: `bytes` holds a value of the dtype, or the four of a 2 x 2 matrix in C order; of
 * operators that give two, like minmax, one after the other. */
typedef struct gpr_value {
  int dtype;
  alignas(16) unsigned char bytes[32];
} gpr_value;

/* The value as a number, rounded or cut off as a cast would; `which` is 0, or 1 for the second of
 * two. NaN and INT64_MIN, with a message, where that cannot be, as of complex numbers. */
GPR_API double gpr_as_double(const gpr_value *value, int which);
GPR_API int64_t gpr_as_int64(const gpr_value *value, int which);

/* For .axes: axis d of the view, or all. */
#define GPR_AXIS(d) (UINT64_C(1) << (d))
#define GPR_ALL_AXES UINT64_MAX

/* Made by gpr_defaults(), never by an initialiser; pointers stay the caller's. */
typedef struct gpr_options {
  size_t size; /* gpr_defaults()'s: tells options that it did not make, or of another version */
  int dtype;   /* convert each element first, or GPR_NO_DTYPE */
  int device;
  const gpr_value *initial; /* takes part in the reduction; of the result's dtype. Or NULL */
  int kernel;    /* of gpr_kernel_index(), on a CUDA device and without initial; or GPR_NO_KERNEL */
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
  /* Not 0: instead of results, their partials of this kind go to out, gpr_partials_words() int64_t
   * for each output. On the CPU; without initial. An output of no element has one too. */
  uint32_t partials;
  int brief;        /* 0; else they are in fewer words, as the library has them for itself */
  uint64_t devices; /* of GPR_DEVICE_LIST: a bit for each CUDA device, */
  int and_cpu;      /* and whether the CPU is among them */
} gpr_options;

GPR_API gpr_options gpr_defaults(void);

/* How many outputs a reduction of the view has; -1, with a message, where that cannot be. */
GPR_API int64_t gpr_outputs(const gpr_view *view, const gpr_options *options);

/* The array to one value, or to options->out. op is one of the names above. options may be NULL.
 * The result is the caller's, and may be NULL beside options->out. */
GPR_API gpr_status gpr_reduce(const char *op, const gpr_view *view, const gpr_options *options,
                              gpr_value *result);

/* The index of a textbook kernel or of a variant for many outputs, or GPR_NO_KERNEL. */
GPR_API int gpr_kernel_index(const char *name);

/* Milliseconds that the launches of options->kernel take for the array, `repeats` times, each with
 * cold caches and without the copies that come before. The times are the caller's. */
GPR_API gpr_status gpr_kernel_time(const char *op, const gpr_view *view, const gpr_options *options,
                                   int repeats, double *milliseconds);

/* --- the same in steps, for callers that have something else to look after -------------------- */

typedef struct gpr_run gpr_run;

/* The index of an operator, or -1. */
GPR_API int gpr_op_index(const char *name);

/* The names of all operators, from 0; NULL after the last. */
GPR_API const char *gpr_op_name(int op);

/* The dtype of the result, which initial is of too, from an array of this dtype; GPR_NO_DTYPE where
 * the operator does not take it. */
GPR_API int gpr_result_dtype(int op, int dtype, const gpr_options *options);

/* How many values each output of it has: 1, or 2 of minmax and its like; 0 of no operator. */
GPR_API int gpr_results(int op);

/* Plans and begins. The run is the caller's, to be closed; on failure *run is NULL. */
GPR_API gpr_status gpr_open(int op, const gpr_view *view, const gpr_options *options,
                            gpr_run **run);

/* Works for about `nanoseconds`; GPR_OK when all is done, GPR_MORE when it is not. */
GPR_API gpr_status gpr_step(gpr_run *run, int64_t nanoseconds);

/* How many elements are done, about, and of how many: all of them once gpr_step gave GPR_OK. May be
 * asked between steps. *total is the caller's. */
GPR_API int64_t gpr_done(const gpr_run *run, int64_t *total);

/* The result, once, after gpr_step gave GPR_OK; it may be NULL beside options->out. The run stays
 * the caller's. */
GPR_API gpr_status gpr_finish(gpr_run *run, gpr_value *result);

/* After gpr_finish(): the least number of elements that counted in an output, initial one of them;
 * -1 if not known. */
GPR_API int64_t gpr_least(const gpr_run *run);

/* Milliseconds of the kernel that folds many outputs of an array on a device, launched so many
 * times (1 and up) one after the other. The run is to be fresh, and is of no other use afterwards.
 */
GPR_API gpr_status gpr_time(gpr_run *run, int repeats, double *milliseconds);

/* Gives up what is left to do and frees the run. NULL is fine. */
GPR_API void gpr_close(gpr_run *run);

/* --- partials: sums that travel -----------------------------------------------------------------
 *
 * What was folded so far, as words of int64_t that another machine finishes; docs/partials.md has
 * them bit by bit. gpr_reduce() makes them with options->partials. Where they are additive, they
 * merge by adding the words, up to 2^31 times, as MPI_SUM does. */

/* Of each output, or 0 where the operator has none for elements of this dtype. */
GPR_API int gpr_partials_words(int op, int dtype);
GPR_API int gpr_partials_are_additive(int op, int dtype);

/* The operator that they are named by, the first that has the same: "sum" of the mean of floats; -1
 * where there are none. */
GPR_API int gpr_partials_op(int op, int dtype);

/* What begins them, 0 where there are none. Python's have the unit of times in it, these none. */
GPR_API uint32_t gpr_partials_kind(int op, int dtype);

/* What is wrong with words that others have added: nothing; they are not of this kind, by
 * themselves or in part; they are, but for their byte order; more than 2^31 were added. */
enum gpr_words { GPR_WORDS_FINE, GPR_WORDS_FOREIGN, GPR_WORDS_SWAPPED, GPR_WORDS_TOO_MANY };
GPR_API enum gpr_words gpr_partials_check(uint32_t kind, const int64_t *words, int words_of_each,
                                          int64_t outputs);

/* Merges `count` partials of each of so many outputs, the outputs of one after the other, into
 * canonical words: equal bytes for equal values. GPR_BAD_VALUE if some are not of the kind. */
GPR_API gpr_status gpr_partials_merge(int op, int dtype, uint32_t kind, const int64_t *words,
                                      int64_t count, int64_t outputs, int64_t *merged);

/* Whether partials of `op` answer `asked` too, as those of the variance answer the mean. */
GPR_API int gpr_partials_answer(int op, int dtype, int asked);

/* Results of `asked`, rounded once into gpr_result_dtype(asked, result_dtype): result_dtype is the
 * elements' or, of floats, any float, of complex numbers any of these. *least is what gpr_least()
 * would give; results and *least are the caller's. */
GPR_API gpr_status gpr_partials_finish(int op, int dtype, int asked, int result_dtype, double ddof,
                                       const int64_t *words, int64_t outputs, void *results,
                                       int64_t *least);

/* How many CUDA devices can be used; 0 leaves the reason for gpr_error(). */
GPR_API int gpr_device_count(void);

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
GPR_API gpr_status gpr_device_info(int device, gpr_device *out);

/* Medians in bytes a second. A copy on the device counts what is read and what is written. */
typedef struct gpr_bandwidth {
  double to_device_pinned, to_device_pageable, to_host_pinned, to_host_pageable;
  double on_device, read;
} gpr_bandwidth;

/* The bandwidth test, with `bytes` (16 and up) in host and device memory each, in a few seconds for
 * 1 GiB. *out is the caller's. */
GPR_API gpr_status gpr_bandwidth_test(int device, int64_t bytes, gpr_bandwidth *out);

/* Threads that one call on the CPU may use; 0 sets the default: GPUREDUCE_NUM_THREADS, or what the
 * affinity mask and the cgroup's quota allow. */
GPR_API void gpr_set_threads(int threads);
GPR_API int gpr_threads(void);

/* The instruction set that the CPU half runs on: "v4", "v3" or "plain". */
GPR_API const char *gpr_isa(void);

#ifdef __cplusplus
}
#endif
#endif
