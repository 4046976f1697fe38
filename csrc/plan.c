#include "plan.h"

#include <string.h>

#include "../kernels/abi/lists.h"

/* Below this no thread would pay, above the backend decides: 512 KiB take 5 µs at the least. */
enum { SHARED_BYTES = 512 << 10 };
/* Parts are small enough to share out evenly and large enough for their start not to show. */
enum { PART_BYTES = 256 << 10 };
/* Where each part keeps a state of its own, for the tree, there are no more than this. */
enum { ORDERED_PARTS = 64 };
/* So many, for the threads to end at about the same time. */
enum { PARTS_PER_LANE = 8 };
/* Strands pay where what shares a line of memory is so far apart in the index that a block has
 * little of it; they are some lines wide, since they may begin anywhere. */
enum { LINE_BYTES = 64, FAR_BYTES = 16 << 10, STRANDS_BYTES = 256 };
/* Elements that are folded without a look at the clock. */
enum { STRANDS_MOST = 16 << 20 };

static int unit_of(const gpr_dtype_info *type) {
  return type->kind == 'c' ? type->bytes / 2 : type->bytes;
}

void gpr_axes_copy(gpr_axes *to, const gpr_axes *from) {
  memcpy(to, from, offsetof(gpr_axes, kept));
  gpr_dims_copy(&to->kept, &from->kept);
  gpr_dims_copy(&to->reduced, &from->reduced);
}

void gpr_plan_copy(gpr_plan *to, const gpr_plan *from) {
  const size_t bytes = (size_t)from->ndim * sizeof *to->shape;
  memcpy(to, from, offsetof(gpr_plan, shape));
  memcpy(to->shape, from->shape, bytes);
  memcpy(to->strides, from->strides, bytes);
}

static void begin(gpr_plan *p, const gpr_view *view, const gpr_row *row, gpr_cast cast) {
  const gpr_dtype_info *type = &gpr_dtypes[view->dtype];
  memset(p, 0, offsetof(gpr_plan, ndim));
  p->row = row;
  p->cast = cast;
  p->dtype = view->dtype;
  p->data = view->data;
  p->device = gpr_lies(view);
  p->stream = view->stream;
  p->count = 1;
  p->bytes = type->bytes;
  p->swap = view->swapped && unit_of(type) > 1 ? unit_of(type) : 0;
}

void gpr_plan_shape(gpr_plan *p, gpr_dims *dims) {
  if (!p->count || !dims->n) {
    dims->n = 0;
    gpr_dims_append(dims, p->count, p->bytes, 0);
  }
  p->ndim = dims->n;
  for (int d = 0; d < dims->n; d++) {
    p->shape[d] = dims->shape[d];
    p->strides[d] = dims->strides[d];
  }
}

/* The dimensions of the elements: what they are in any order, or in theirs. */
static void settle(gpr_plan *p, gpr_dims *dims, const char **where) {
  for (int d = 0; d < dims->n; d++) p->count *= dims->shape[d];
  if (p->count) {
    if (!p->row->ordered) {
      gpr_dims_forwards(dims, &p->data, where);
      gpr_dims_sort(dims);
    }
    gpr_dims_coalesce(dims);
  }
  gpr_plan_shape(p, dims);
}

static int lies_ready(const gpr_plan *p) {
  return !p->cast && !p->swap && p->ndim == 1 && (p->strides[0] == p->bytes || p->shape[0] == 1) &&
         (uintptr_t)p->data % (uintptr_t)unit_of(&gpr_dtypes[p->dtype]) == 0;
}

static gpr_strands find_strands(const gpr_plan *p) {
  gpr_strands s = {.length = 1};
  int d = p->ndim - 1, pays = p->row->ordered && p->row->scalars == 1;
  for (int i = d; i-- > 0;)
    if (gpr_magnitude(p->strides[i]) < gpr_magnitude(p->strides[d])) d = i;
  s.all = p->shape[d];
  s.step = p->strides[d];
  s.n = STRANDS_BYTES / p->bytes < s.all ? STRANDS_BYTES / p->bytes : s.all;
  for (int i = d + 1; i < p->ndim; i++) {
    s.length *= p->shape[i];
    pays = pays && gpr_magnitude(p->strides[i]) >= LINE_BYTES;
  }
  pays =
      pays && s.n > 1 && 2 * gpr_magnitude(s.step) <= LINE_BYTES && s.length <= STRANDS_MOST / s.n;
  if (!pays || s.length * p->bytes < FAR_BYTES) s.length = 0;
  return s;
}

static void cut(gpr_plan *p, int lanes) {
  const int element = p->bytes * p->row->scalars;
  const int64_t bytes = p->count * element;
  p->lanes = bytes < SHARED_BYTES ? 1 : lanes;
  p->part = p->lanes == 1 ? p->count : PART_BYTES / element;
  if (p->row->law == GPR_TREE)
    while (p->count && p->part <= (p->count - 1) / ORDERED_PARTS) p->part *= 2;
  if (p->strands.length && p->lanes > 1) {
    const int64_t whole = p->strands.n * p->strands.length;
    p->part = (p->part - 1) / whole * whole + whole;
  }
  p->parts = p->count ? (p->count - 1) / p->part + 1 : 0; /* 2^63 - 1 elements are possible */
  if (p->lanes > p->parts) p->lanes = p->parts ? (int)p->parts : 1;
}

void gpr_plan_make(gpr_plan *p, const gpr_view *view, const gpr_row *row, gpr_cast cast,
                   gpr_limits limits) {
  const char *where = NULL;
  gpr_dims dims;
  begin(p, view, row, cast);
  dims.n = 0;
  for (int d = 0; d < view->ndim; d++) gpr_dims_append(&dims, view->shape[d], view->strides[d], 0);
  settle(p, &dims, &where);
  if (row->scalars > 1) p->count /= row->scalars;
  p->direct = lies_ready(p);
  p->strands = find_strands(p);
  cut(p, limits.lanes);
}

/* Multiples of a number are quicker than the number again and again, but outputs of fewer elements
 * are finished one by one. */
enum { REPEATED = 512 };

int gpr_repeats(const gpr_plan *p, int64_t n, int64_t step) {
  return p->row->repeat && !step && n >= REPEATED && !p->swap && !p->cast;
}

/* --- many outputs ----------------------------------------------------------------------------- */

int64_t gpr_count_outputs(const gpr_view *view, const gpr_options *options) {
  int64_t outputs = options->starts ? options->segments : 1;
  for (int d = 0; d < view->ndim; d++)
    if (!(options->axes >> d & 1)) outputs *= view->shape[d];
  return outputs;
}

/* Outputs lie in step with each other as the elements of each do. */
static int all_lie_ready(const gpr_plan *p, const gpr_dims *kept) {
  const int unit = unit_of(&gpr_dtypes[p->dtype]);
  int ready = lies_ready(p);
  for (int d = 0; d < kept->n; d++) ready = ready && kept->strides[d] % unit == 0;
  return ready;
}

/* Few outputs share out the index of each, many are shared out themselves. */
static void cut_axes(gpr_plan *p, int64_t outputs, int lanes) {
  const int64_t part = PART_BYTES / p->bytes;
  const double bytes = (double)p->count * (double)p->bytes * (double)outputs;
  p->lanes = bytes < SHARED_BYTES ? 1 : lanes;
  p->part = p->count;
  if (p->lanes > 1 && outputs < PARTS_PER_LANE * lanes && !p->axes->starts) {
    const int64_t wanted = (PARTS_PER_LANE * lanes + outputs - 1) / outputs;
    p->part = (p->count / wanted / part + 1) * part;
  }
  p->parts = p->count ? (p->count - 1) / p->part + 1 : 1;
}

void gpr_plan_axes(gpr_plan *p, const gpr_view *view, const gpr_row *row, gpr_cast cast,
                   const gpr_options *options, gpr_limits limits, gpr_axes *axes) {
  begin(p, view, row, cast);
  memset(axes, 0, offsetof(gpr_axes, kept));
  axes->kept.n = axes->reduced.n = 0;
  p->axes = axes;
  axes->where = options->where ? options->where->data : NULL;
  axes->where_stream = options->where ? options->where->stream : NULL;
  for (int d = 0; d < view->ndim; d++)
    gpr_dims_append(options->axes >> d & 1 ? &axes->reduced : &axes->kept, view->shape[d],
                    view->strides[d], options->where ? options->where->strides[d] : 0);
  if (row->ordered) gpr_dims_number(&axes->reduced);
  gpr_dims_number(&axes->kept);
  if (options->out_order) gpr_dims_number_as(&axes->kept, view, options->axes);
  axes->outputs = gpr_count_outputs(view, options);
  axes->starts = options->starts;
  axes->stops = options->stops;
  axes->segments = options->segments;
  if (!axes->outputs) {
    axes->kept.n = 0;
    gpr_dims_append(&axes->kept, 0, 0, 0);
  }
  gpr_dims_coalesce(&axes->kept);
  if (options->starts) {
    p->count = axes->reduced.shape[0];
    p->ndim = 1;
    p->shape[0] = axes->reduced.shape[0];
    p->strides[0] = axes->reduced.strides[0];
  } else {
    settle(p, &axes->reduced, &axes->where);
  }
  p->direct = all_lie_ready(p, &axes->kept);
  cut_axes(p, axes->outputs, limits.lanes);
}
