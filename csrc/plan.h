/* From what is asked to what is done: a pure function, without memory, threads or devices. */
#ifndef GPR_PLAN_H
#define GPR_PLAN_H

#include "../kernels/rows.h"
#include "gpureduce.h"

/* What the backend can use. */
typedef struct gpr_limits {
  int lanes; /* threads that may fold at once, at least 1 */
} gpr_limits;

typedef struct gpr_plan {
  const gpr_row *row;
  gpr_cast cast; /* NULL: elements are of the row's dtype as they lie */
  int dtype;     /* of the elements as they lie */
  const char *data;
  int device; /* where the data is */
  void *stream;
  int64_t count; /* elements, of the row's number of scalars each */
  int bytes;     /* of a scalar as it lies */
  int swap;      /* bytes to reverse together: 0, or the scalar's, or half of a complex one's */
  int direct;    /* contiguous, aligned, native and of the row's dtype: fold where it lies */
  int ndim;      /* as few dimensions of scalars as describe it; the last one is the fastest */
  int64_t shape[GPR_DIMS_MAX];
  int64_t strides[GPR_DIMS_MAX];
  int lanes;           /* how many threads are worth while */
  int64_t parts, part; /* the index is cut into `parts` parts of `part` elements */
} gpr_plan;

/* view and row stay the caller's, and the plan points to the view's data. */
gpr_plan gpr_plan_make(const gpr_view *view, const gpr_row *row, gpr_cast cast, gpr_limits limits);

#endif
