/* From what is asked to what is done: a pure function, without memory, threads or devices. */
#pragma once

#include "../kernels/abi/rows.h"
#include "layout.h"

/* What the backend can use. */
typedef struct gpr_limits {
  int lanes; /* threads that may fold at once, at least 1 */
} gpr_limits;

/* Many outputs, or elements that do not count.
 *
 * Output o = segment * (product of kept.shape) + k, of which without segments there is one, takes
 * the elements of `reduced` at the k-th place of `kept` in C order. Each output is what the same
 * elements alone would give: an ordered row's index starts at 0 in each. Where nothing counts, the
 * state is the opened one and n is 0. keepdims, out and 0-d results never come here. */
typedef struct gpr_axes {
  int64_t outputs; /* all of them; 0 is possible */
  /* Bytes, true where not 0: of the first element of the first output. NULL: all count. */
  const char *where;
  void *where_stream; /* that the mask is ready on, where it lies on a device */
  int variant;        /* a device's, by which it is to be done, or GPR_ANY_VARIANT */
  int skip;           /* NaN and NaT do not count */
  /* Instead of all of reduced.shape[0] (then reduced.n is 1, and nothing was made forwards), output
   * o takes [starts[s], stops[s]) of it; none where stops[s] <= starts[s]. Host memory. starts is
   * NULL where there are no segments. */
  int64_t segments;
  const int64_t *starts, *stops;
  /* What the row's finish gets as `with`, the same for all outputs but for gpr_spread's means. */
  const void *with;
  /* outputs × row->results values in C order: of dtype row->result in host memory; or, on the
   * device where the data is, of result_dtype. */
  void *result;
  int result_device, result_dtype; /* result_device: GPR_DEVICE_CPU, or that device */
  gpr_dims kept; /* C order of the result, with places; strides of any sign or zero */
  gpr_dims
      reduced; /* of an ordered row C order of the index; else forwards, largest stride first */
} gpr_axes;

/* Of an ordered row that is not in the order of memory: stretches of the index that begin side by
 * side there, and are folded together, each into a state of its own. */
typedef struct gpr_strands {
  int64_t n, length; /* at a time, of so many elements each; length 0: none */
  int64_t all, step; /* side by side; bytes from one to the next */
} gpr_strands;

typedef struct gpr_plan {
  const gpr_row *row;
  gpr_cast cast; /* NULL: elements are of the row's dtype as they lie */
  int dtype;     /* of the elements as they lie */
  const char *data;
  int device; /* where the data is */
  void *stream;
  int64_t count; /* elements, of the row's number of scalars each; with axes those of one output,
                    with segments those of all */
  int bytes;     /* of a scalar as it lies */
  int swap;      /* bytes to reverse together: 0, or the scalar's, or half of a complex one's */
  int direct;    /* contiguous, aligned, native and of the row's dtype: fold where it lies */
  int lanes;     /* how many threads are worth while */
  int64_t parts, part; /* the index is cut into `parts` parts of `part` elements */
  gpr_strands strands; /* without axes */
  /* NULL: one output of all elements. Else shape and strides are axes->reduced's, data is that of
   * the first output, and `direct` is true of the elements of each output. The caller's: a run
   * copies it when it opens. What it points to lives as long as the run. */
  const gpr_axes *axes;
  int ndim; /* as few dimensions of scalars as describe it; the last one is the fastest */
  int64_t shape[GPR_DIMS_MAX];
  int64_t strides[GPR_DIMS_MAX];
} gpr_plan;

/* As much as there is of it: most have one dimension or two, and room for all of them is
 * some KiB. */
void gpr_axes_copy(gpr_axes *to, const gpr_axes *from);
void gpr_plan_copy(gpr_plan *to, const gpr_plan *from);

/* As few dimensions of as many elements as the plan has. */
void gpr_plan_shape(gpr_plan *plan, gpr_dims *dims);

/* view and row stay the caller's, and the plan points to the view's data. */
void gpr_plan_make(gpr_plan *plan, const gpr_view *view, const gpr_row *row, gpr_cast cast,
                   gpr_limits limits);

/* Whether n elements so many bytes apart are one that the row may take as its multiples. */
int gpr_repeats(const gpr_plan *plan, int64_t n, int64_t step);

/* gpr_outputs() of what has been checked. */
int64_t gpr_count_outputs(const gpr_view *view, const gpr_options *options);

/* The same for the axes of `options`, its mask and its segments; *axes is filled in but for `with`,
 * `skip` and `result`, and the plan points to it. */
void gpr_plan_axes(gpr_plan *plan, const gpr_view *view, const gpr_row *row, gpr_cast cast,
                   const gpr_options *options, gpr_limits limits, gpr_axes *axes);
