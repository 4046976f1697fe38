#include "layout.h"

#include "../kernels/abi/lists.h"

double gpr_bytes(const gpr_view *view) {
  double bytes = gpr_dtypes[view->dtype].bytes;
  for (int d = 0; d < view->ndim; d++) bytes *= (double)view->shape[d];
  return bytes;
}

void gpr_dims_copy(gpr_dims *to, const gpr_dims *from) {
  to->n = from->n;
  for (int d = 0; d < from->n; d++) {
    to->shape[d] = from->shape[d];
    to->strides[d] = from->strides[d];
    to->where[d] = from->where[d];
    to->place[d] = from->place[d];
  }
}

void gpr_dims_append(gpr_dims *dims, int64_t shape, int64_t stride, int64_t where) {
  dims->shape[dims->n] = shape;
  dims->strides[dims->n] = stride;
  dims->where[dims->n] = where;
  dims->place[dims->n++] = 0;
}

int64_t gpr_dims_number(gpr_dims *dims) {
  int64_t place = 1;
  for (int d = dims->n - 1; d >= 0; d--) {
    dims->place[d] = place;
    place *= dims->shape[d];
  }
  return place;
}

void gpr_dims_forwards(gpr_dims *dims, const char **data, const char **where) {
  for (int d = 0; d < dims->n; d++) {
    if (dims->strides[d] >= 0) continue;
    *data += (dims->shape[d] - 1) * dims->strides[d];
    if (*where) *where += (dims->shape[d] - 1) * dims->where[d];
    dims->strides[d] = -dims->strides[d];
    dims->where[d] = -dims->where[d];
  }
}

static void swap(int64_t *all, int a, int b) {
  const int64_t held = all[a];
  all[a] = all[b];
  all[b] = held;
}

void gpr_dims_sort(gpr_dims *dims) {
  for (int d = 1; d < dims->n; d++)
    for (int e = d; e > 0 && gpr_magnitude(dims->strides[e - 1]) < gpr_magnitude(dims->strides[e]);
         e--) {
      swap(dims->shape, e - 1, e);
      swap(dims->strides, e - 1, e);
      swap(dims->where, e - 1, e);
      swap(dims->place, e - 1, e);
    }
}

void gpr_dims_coalesce(gpr_dims *dims) {
  int n = 0;
  for (int d = 0; d < dims->n; d++) {
    const int64_t shape = dims->shape[d], stride = dims->strides[d];
    const int64_t where = dims->where[d], place = dims->place[d];
    if (shape == 1) continue;
    if (n && dims->strides[n - 1] == shape * stride && dims->where[n - 1] == shape * where &&
        dims->place[n - 1] == shape * place) {
      dims->shape[n - 1] *= shape;
    } else {
      dims->shape[n++] = shape;
    }
    dims->strides[n - 1] = stride;
    dims->where[n - 1] = where;
    dims->place[n - 1] = place;
  }
  dims->n = n;
}

int gpr_dims_are_numbered(const gpr_dims *dims) {
  int64_t place = 1;
  for (int d = dims->n - 1; d >= 0; d--) {
    if (dims->place[d] != place) return 0;
    place *= dims->shape[d];
  }
  return 1;
}

int gpr_memory_order(const gpr_view *view, uint64_t reduced, int *axes) {
  int n = 0;
  for (int d = 0; d < view->ndim; d++) {
    if (reduced >> d & 1) continue;
    int at = n++;
    for (; at > 0 && gpr_magnitude(view->strides[axes[at - 1]]) < gpr_magnitude(view->strides[d]);
         at--)
      axes[at] = axes[at - 1];
    axes[at] = d;
  }
  return n;
}

int gpr_lies_in_order(const gpr_view *view, uint64_t reduced) {
  int axes[GPR_DIMS_MAX];
  const int n = gpr_memory_order(view, reduced, axes);
  for (int i = 1; i < n; i++)
    if (axes[i] < axes[i - 1]) return 0;
  return 1;
}

int gpr_is_dense(const gpr_view *view) {
  int axes[GPR_DIMS_MAX];
  int64_t stride = gpr_dtypes[view->dtype].bytes;
  for (int i = gpr_memory_order(view, 0, axes) - 1; i >= 0; i--) {
    if (view->shape[axes[i]] > 1 && view->strides[axes[i]] != stride) return 0;
    stride *= view->shape[axes[i]];
  }
  return 1;
}

int gpr_kept_before(int axis, uint64_t reduced) {
  return axis - __builtin_popcountll(reduced & (GPR_AXIS(axis) - 1));
}

void gpr_dims_number_as(gpr_dims *kept, const gpr_view *view, uint64_t reduced) {
  int axes[GPR_DIMS_MAX];
  int64_t place = 1;
  for (int i = gpr_memory_order(view, reduced, axes) - 1; i >= 0; i--) {
    kept->place[gpr_kept_before(axes[i], reduced)] = place;
    place *= view->shape[axes[i]];
  }
}
