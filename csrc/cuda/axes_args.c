/* What a launch for many outputs takes. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../errors.h"
#include "axes.h"

/* Pieces of long segments: 16 MiB of them. */
enum { PIECES_MOST = 1 << 20 };

/* Dimensions from number `first` on, as the elements lie in memory where the row lets them. */
static int set_part(gpr_axes_args *a, int first, gpr_dims dims, int sorts) {
  if (sorts) gpr_dims_sort(&dims);
  gpr_dims_coalesce(&dims);
  for (int d = 0; d < dims.n; d++) {
    a->dim[first + d].size = dims.shape[d];
    a->dim[first + d].stride = dims.strides[d];
    a->dim[first + d].where_stride = dims.where[d];
    a->dim[first + d].place = dims.place[d];
  }
  return dims.n;
}

static void set_dims(axes_run *r, const gpr_dims *kept, const gpr_dims *reduced) {
  gpr_axes_args *a = &r->args;
  a->kept = set_part(a, 0, *kept, 1);
  a->reduced = set_part(a, a->kept, *reduced, r->plan.row->law != GPR_TREE);
  if (a->reduced) return;
  a->reduced = 1; /* of one element, or of none where a coalesced dimension has none */
  a->dim[a->kept].size = r->plan.count;
  a->dim[a->kept].stride = a->from_bytes;
  a->dim[a->kept].place = 1;
}

/* Bytes, of dimensions of elements of one byte each. */
static void scale(gpr_dims *dims, int64_t bytes) {
  for (int d = 0; d < dims->n; d++) dims->strides[d] *= bytes;
}

/* Whether an element's address is no multiple of its size. */
static int is_unaligned(const gpr_plan *p) {
  uint64_t offsets = (uint64_t)(uintptr_t)p->data;
  for (int d = 0; d < p->axes->kept.n; d++) offsets |= (uint64_t)p->axes->kept.strides[d];
  for (int d = 0; d < p->axes->reduced.n; d++) offsets |= (uint64_t)p->axes->reduced.strides[d];
  return offsets % (uint64_t)p->bytes != 0;
}

/* Elements as they lie, or as they were brought. */
static void set_elements(axes_run *r) {
  gpr_axes_args *a = &r->args;
  gpr_dims kept, reduced;
  a->from = a->to = r->plan.row->dtype;
  a->from_bytes = row_bytes(r);
  a->data = r->in_place ? r->plan.data : r->buffer[r->slab % BUFFERS].data;
  a->where = r->in_place ? r->axes.where : r->buffer[r->slab % BUFFERS].where;
  if (r->in_place) {
    a->from = r->plan.dtype;
    a->from_bytes = r->plan.bytes;
    a->swap = r->plan.swap;
    a->unaligned = is_unaligned(&r->plan);
    set_dims(r, &r->axes.kept, &r->axes.reduced);
    return;
  }
  gpr_slab_dims(r, &kept, &reduced);
  gpr_dims_number(&kept);
  scale(&kept, row_bytes(r));
  scale(&reduced, row_bytes(r));
  set_dims(r, &kept, &reduced);
}

/* Whether the outermost reduced dimension may go the other way and be read by the same kernel: one
 * of rows of whole packets, which are not taken by several. */
static int can_turn(const gpr_axes_args *a) {
  enum { NARROW = 128 };
  const int d = a->kept;
  if (!d || a->dim[d].size < 2) return 0;
  const int64_t width = a->dim[d - 1].size * a->from_bytes;
  uint64_t places = (uint64_t)(uintptr_t)a->data | (uint64_t)width;
  for (int i = 0; i <= d; i++)
    if (i != d - 1) places |= (uint64_t)a->dim[i].stride;
  return width >= NARROW && a->dim[d - 1].stride == a->from_bytes && places % 16 == 0;
}

static void turn(gpr_axes_args *a) {
  const int d = a->kept;
  const int64_t last = a->dim[d].size - 1;
  a->data += last * a->dim[d].stride;
  a->dim[d].stride *= -1;
  if (!a->where) return;
  a->where += last * a->dim[d].where_stride;
  a->dim[d].where_stride *= -1;
}

/* Every second launch of an array, so that of arrays by turns each goes back and forth. */
static int is_second(const void *data) {
  enum { ARRAYS = 256, PAGE = 512 };
  static atomic_uint launches[ARRAYS];
  const uint64_t mixed = (uintptr_t)data / PAGE * UINT64_C(0x9e3779b97f4a7c15);
  return atomic_fetch_add(&launches[mixed >> 56], 1) % 2;
}

static void set_back(axes_run *r) {
  gpr_axes_args *a = &r->args;
  const double bytes = (double)a->outputs * (double)a->count * a->from_bytes;
  a->back = bytes <= GPR_BACK_BYTES && is_second(a->data);
  if (a->back && !r->plan.row->ordered && !r->axes.starts && can_turn(a)) turn(a);
}

static void set_finish(axes_run *r) {
  const gpr_axes *x = &r->axes;
  if (!x->with) return;
  if (gpr_ops[r->plan.row->op].flags & GPR_SPREAD) {
    const gpr_spread *spread = x->with;
    r->args.ddof = spread->ddof;
    r->args.spread_nan = spread->nan;
    r->args.means = r->means;
  } else {
    r->args.has_initial = 1;
    memcpy(r->args.initial, x->with, (size_t)gpr_dtypes[r->plan.row->result].bytes);
  }
}

/* Outputs of which so few elements count are told about. */
static void set_least(axes_run *r) {
  const gpr_spread *spread = r->axes.with;
  if (!r->waiter || !wants_least(r)) return;
  r->args.least = r->waiter->least;
  if (!(gpr_ops[r->plan.row->op].flags & GPR_SPREAD)) return;
  r->args.few = spread->ddof >= 0 ? (int64_t)(spread->ddof < 0x1p62 ? spread->ddof : 0x1p62) : -1;
}

/* --- pieces of long segments ------------------------------------------------------------------ */

static int64_t pieces_of(const axes_run *r, int64_t segment) {
  const int64_t start = r->axes.starts[segment], stop = r->axes.stops[segment];
  const int64_t bytes = stop > start ? (stop - start) * row_bytes(r) : 0;
  return bytes > r->piece_bytes / 4 ? (bytes - 1) / r->piece_bytes + 1 : 0;
}
static void count_pieces(axes_run *r) {
  r->piece_count = 0;
  for (int64_t s = 0; s < r->axes.segments; s++) r->piece_count += pieces_of(r, s);
}

/* Segments that overlap can have any number of pieces: then those are longer. */
static void choose_pieces(axes_run *r) {
  const int64_t per = r->axes.outputs / r->axes.segments;
  r->piece_bytes = GPR_PIECE_BYTES;
  for (count_pieces(r); r->piece_count > PIECES_MOST / per; count_pieces(r)) r->piece_bytes *= 2;
}

static gpr_status list_pieces(axes_run *r) {
  choose_pieces(r);
  if (!r->piece_count) return GPR_OK;
  const size_t bytes = (size_t)r->piece_count * sizeof *r->pieces;
  gpr_axes_piece *list = malloc(bytes), *next = list;
  if (!list) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a list of segments");
  for (int64_t s = 0; s < r->axes.segments; s++) {
    const int32_t pieces = (int32_t)pieces_of(r, s);
    const int64_t start = r->axes.starts[s], n = r->axes.stops[s] - start;
    for (int32_t i = 0; i < pieces; i++) *next++ = (gpr_axes_piece){s, start, n, i, pieces};
  }
  gpr_status status = allocate(r, &r->pieces, bytes);
  if (!status) status = copy(r, r->pieces, list, bytes); /* which has read it when it returns */
  free(list);
  return status;
}

static gpr_status set_segments(axes_run *r) {
  const gpr_axes *x = &r->axes;
  gpr_axes_args *a = &r->args;
  gpr_status status = GPR_OK;
  a->segments = x->segments;
  a->starts = r->bounds;
  a->stops = r->bounds + x->segments;
  if (counts(r) || a->reduced != 1 || a->dim[a->kept].stride != row_bytes(r)) return GPR_OK;
  if (!r->piece_bytes) status = list_pieces(r);
  a->pieces = r->pieces;
  a->piece_count = r->piece_count;
  a->piece_bytes = r->piece_bytes;
  return status;
}

static void set_args(axes_run *r) {
  /* Of the dimensions, those that there are are set. */
  memset(&r->args, 0, offsetof(gpr_axes_args, dim));
  set_elements(r);
  r->args.out = r->out;
  set_least(r);
  r->args.outputs = r->outputs;
  r->args.count = r->plan.count;
  r->args.skip = r->axes.skip;
  set_finish(r);
}

/* The kernel for them, of a device of so many multiprocessors. */
static gpr_status choose(axes_run *r, int multiprocessors) {
  const gpr_axes *x = &r->axes;
  const gpr_plan *p = &r->plan;
  switch (gpr_axes_table_cuda.launch(p->row->op, p->row->dtype, x->variant, multiprocessors,
                                     &r->args, &r->launch)) {
    case 0: return GPR_OK;
    case 1:
      return gpr_fail(GPR_DEVICE_ERROR,
                      "%s of %s has no kernel for many outputs; device=\"cpu\" has",
                      gpr_ops[p->row->op].name, gpr_dtypes[p->row->dtype].name);
    default:
      return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s does not take this layout; it takes %s",
                      gpr_ops[p->row->op].name, gpr_variants[x->variant].name,
                      gpr_variants[x->variant].sentence);
  }
}

gpr_status gpr_axes_prepare(axes_run *r) {
  set_args(r);
  set_back(r);
  const gpr_status status = r->axes.starts ? set_segments(r) : GPR_OK;
  return status ? status : choose(r, gpr_cuda_multiprocessors(r->device));
}

gpr_status gpr_gpu_axes_choose(const gpr_plan *plan, int multiprocessors, gpr_choice *choice) {
  axes_run r = {.plan = *plan, .axes = *plan->axes, .outputs = plan->axes->outputs, .in_place = 1};
  r.plan.axes = &r.axes;
  set_args(&r);
  const gpr_status status = choose(&r, multiprocessors);
  if (status) return status;
  *choice = (gpr_choice){r.launch.kernel, r.launch.blocks, r.args.split};
  return GPR_OK;
}
