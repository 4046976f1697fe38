#include "plan.h"

#include "../kernels/lists.h"

/* Below this no thread would pay, above the backend decides: 512 KiB take 5 µs at the least. */
enum { SHARED_BYTES = 512 << 10 };
/* Parts are small enough to share out evenly and large enough for their start not to show. */
enum { PART_BYTES = 256 << 10 };
/* Where each part keeps a state of its own, for the tree, there are no more than this. */
enum { ORDERED_PARTS = 64 };

static void swap_int64(int64_t *a, int64_t *b) {
  const int64_t c = *a;
  *a = *b;
  *b = c;
}

/* Where the index does not matter: forwards along every dimension, the largest stride first. */
static void reorder(gpr_plan *p) {
  for (int d = 0; d < p->ndim; d++)
    if (p->strides[d] < 0) {
      p->data += (p->shape[d] - 1) * p->strides[d];
      p->strides[d] = -p->strides[d];
    }
  for (int d = 1; d < p->ndim; d++)
    for (int e = d; e > 0 && p->strides[e - 1] < p->strides[e]; e--) {
      swap_int64(&p->shape[e - 1], &p->shape[e]);
      swap_int64(&p->strides[e - 1], &p->strides[e]);
    }
}

/* Drops dimensions of length 1 and joins neighbours that step evenly. */
static void coalesce(gpr_plan *p) {
  int n = 0;
  for (int d = 0; d < p->ndim; d++) {
    if (p->shape[d] == 1) continue;
    if (n && p->strides[n - 1] == p->shape[d] * p->strides[d]) {
      p->shape[n - 1] *= p->shape[d];
      p->strides[n - 1] = p->strides[d];
    } else {
      p->shape[n] = p->shape[d];
      p->strides[n++] = p->strides[d];
    }
  }
  if (!n) {
    p->shape[0] = 1;
    p->strides[0] = p->bytes;
    n = 1;
  }
  p->ndim = n;
}

static int lies_ready(const gpr_plan *p, int alignment) {
  return !p->cast && !p->swap && p->ndim == 1 && (p->strides[0] == p->bytes || p->shape[0] == 1) &&
         (uintptr_t)p->data % (uintptr_t)alignment == 0;
}

static void cut(gpr_plan *p, int lanes) {
  const int element = p->bytes * p->row->scalars;
  const int64_t bytes = p->count * element;
  p->lanes = bytes < SHARED_BYTES ? 1 : lanes;
  p->part = p->lanes == 1 ? p->count : PART_BYTES / element;
  if (p->row->law == GPR_TREE)
    while (p->count && p->part <= (p->count - 1) / ORDERED_PARTS) p->part *= 2;
  p->parts = p->count ? (p->count - 1) / p->part + 1 : 0; /* 2^63 - 1 elements are possible */
  if (p->lanes > p->parts) p->lanes = p->parts ? (int)p->parts : 1;
}

gpr_plan gpr_plan_make(const gpr_view *view, const gpr_row *row, gpr_cast cast, gpr_limits limits) {
  const gpr_dtype_info *type = &gpr_dtypes[view->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  gpr_plan p = {.row = row,
                .cast = cast,
                .dtype = view->dtype,
                .data = view->data,
                .device = view->device,
                .stream = view->stream,
                .count = 1,
                .bytes = type->bytes};
  p.swap = view->swapped && unit > 1 ? unit : 0;
  p.ndim = view->ndim;
  for (int d = 0; d < view->ndim; d++) {
    p.shape[d] = view->shape[d];
    p.strides[d] = view->strides[d];
    p.count *= view->shape[d];
  }
  if (p.count) {
    if (!row->ordered) reorder(&p);
    coalesce(&p);
  } else {
    p.ndim = 1;
    p.shape[0] = 0;
    p.strides[0] = p.bytes;
  }
  p.count /= row->scalars;
  p.direct = lies_ready(&p, unit);
  cut(&p, limits.lanes);
  return p;
}
