/* A strided view as few dimensions: pure functions, without memory, threads or devices. */
#pragma once

#include "gpureduce.h"

/* The CUDA device where the view's data is, or GPR_DEVICE_CPU. */
static inline int gpr_lies(const gpr_view *view) {
  return view->memory == GPR_CUDA_MEMORY ? view->device : GPR_DEVICE_CPU;
}

/* Bytes of all elements. */
double gpr_bytes(const gpr_view *view);

static inline int64_t gpr_magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Dimensions, the last one the fastest. */
typedef struct gpr_dims {
  int n;
  int64_t shape[GPR_DIMS_MAX];
  int64_t strides[GPR_DIMS_MAX]; /* bytes in the data */
  int64_t where[GPR_DIMS_MAX];   /* bytes in the mask: 0 where it is broadcast, and without one */
  /* Steps from one to the next: of kept dimensions in the result, in outputs; of reduced ones in
   * the index, of rows that have one, else 0. */
  int64_t place[GPR_DIMS_MAX];
} gpr_dims;

/* As much as there is of it. */
void gpr_dims_copy(gpr_dims *to, const gpr_dims *from);

void gpr_dims_append(gpr_dims *dims, int64_t shape, int64_t stride, int64_t where);

/* place: as in an array of these dimensions in C order. The result is how many elements it has. */
int64_t gpr_dims_number(gpr_dims *dims);

/* How many of a view's axes before this one are kept. */
int gpr_kept_before(int axis, uint64_t reduced);

/* place: as in an array of the view's kept axes that lies in memory as the view does. */
void gpr_dims_number_as(gpr_dims *kept, const gpr_view *view, uint64_t reduced);

/* Forwards along every dimension; the addresses go to the new first element. Of dimensions whose
 * places do not matter. */
void gpr_dims_forwards(gpr_dims *dims, const char **data, const char **where);

/* The largest stride first, those of equal size as they were. */
void gpr_dims_sort(gpr_dims *dims);

/* Drops dimensions of length 1 and joins neighbours that step evenly. */
void gpr_dims_coalesce(gpr_dims *dims);

/* Whether places are those of C order: a result that is written from its start to its end. */
int gpr_dims_are_numbered(const gpr_dims *dims);

/* The axes that are kept, as the view's elements lie in memory: the largest stride first. They go
 * to `axes`, and the result is how many there are. */
int gpr_memory_order(const gpr_view *view, uint64_t reduced, int *axes);
/* Whether that is C order. */
int gpr_lies_in_order(const gpr_view *view, uint64_t reduced);
/* Whether the elements are all that lies between the first and the last, in any order. */
int gpr_is_dense(const gpr_view *view);
