/* Many outputs on a device.
 *
 * Elements that lie there ready to be read are folded where they lie, by one launch. Others are
 * brought a slab at a time: a slab is a range of one kept dimension, so that it has whole outputs,
 * and lies in memory as the array does. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

#include "../../kernels/abi/axes.h"
#include "../../kernels/abi/lists.h"
#include "../errors.h"
#include "device.h"
#include "../threads.h"

/* What a slab takes of the device, if one index of its dimension does not take more. */
enum { SLAB_BYTES = 64 << 20 };

/* Pieces of long segments: 16 MiB of them. */
enum { PIECES_MOST = 1 << 20 };

enum state { ELEMENTS, MASK, FOLD, RESULTS, OVER };

typedef struct axes_run {
  gpr_run base;
  gpr_plan plan;
  gpr_axes axes;
  gpr_row byte; /* what a mask's elements are as */
  int device, in_place;
  CUcontext before;
  CUstream stream, own; /* own: made for this run, whose elements come from the host */
  CUevent done;
  enum state state;
  int cut;            /* the kept dimension that slabs are ranges of, or -1 */
  int64_t at, length; /* the slab's */
  int64_t outputs;    /* of it */
  int64_t waiting_since;
  gpr_run *copy; /* under way */
  char *data, *where, *out, *narrowed;
  void *scratch;
  int64_t *least, *bounds; /* bounds: starts, then stops */
  gpr_axes_piece *pieces;  /* of segments that lie side by side: piece_bytes is not 0 */
  int64_t piece_count, piece_bytes;
  double *means;
  gpr_axes_launch launch;
  CUfunction function, gather; /* the launch's; gather: where results are narrowed */
  gpr_axes_args args;
} axes_run;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
static int row_bytes(const axes_run *r) { return gpr_dtypes[r->plan.row->dtype].bytes; }
static int result_bytes(const axes_run *r, int dtype) {
  return gpr_dtypes[dtype].bytes * r->plan.row->results;
}
static int to_device(const axes_run *r) { return r->axes.result_device >= 0; }
static int is_narrowed(const axes_run *r) {
  return to_device(r) && r->axes.result_dtype != r->plan.row->result;
}
static int comes_apart(const axes_run *r) { return to_device(r) && r->plan.row->results == 2; }
/* Whether an output may have fewer elements that count than it has. */
static int counts(const axes_run *r) { return r->axes.where || r->axes.skip; }
static int wants_least(const axes_run *r) {
  const int asks = GPR_EMPTY_WARNS | GPR_SPREAD | GPR_SKIPS_NAN;
  return counts(r) && (gpr_ops[r->plan.row->op].flags & asks);
}

static gpr_status enter(axes_run *r) { return gpr_cuda_enter(r->device, &r->before); }
static void leave(const axes_run *r) { gpr_cuda_leave(r->device, r->before); }

static gpr_status allocate(axes_run *r, void *to, size_t bytes) {
  return gpr_cuda_allocate((void **)to, bytes, r->device, r->stream);
}
static gpr_status fill(axes_run *r, void *to, unsigned char byte, size_t bytes) {
  return check(cu.MemsetD8Async(to, byte, bytes, r->stream), "cuMemsetD8Async", r->device);
}
static gpr_status copy(axes_run *r, void *to, const void *from, size_t bytes) {
  return check(cu.MemcpyAsync(to, from, bytes, r->stream), "cuMemcpyAsync", r->device);
}
/* Rows of `width` bytes, each so many bytes behind the one before. */
static gpr_status copy_rows(axes_run *r, void *to, int64_t to_pitch, const void *from,
                            int64_t from_pitch, int64_t width, int64_t rows) {
  const CUDA_MEMCPY2D rectangle = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                   .srcDevice = from,
                                   .srcPitch = (size_t)from_pitch,
                                   .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                   .dstDevice = to,
                                   .dstPitch = (size_t)to_pitch,
                                   .WidthInBytes = (size_t)width,
                                   .Height = (size_t)rows};
  return check(cu.Memcpy2DAsync(&rectangle, r->stream), "cuMemcpy2DAsync", r->device);
}

/* --- where the elements lie --------------------------------------------------------------------
 */

static int lies_in_place(const gpr_plan *p) {
  const int bytes = gpr_dtypes[p->row->dtype].bytes;
  uint64_t offsets = (uint64_t)(uintptr_t)p->data;
  for (int d = 0; d < p->axes->kept.n; d++) offsets |= (uint64_t)p->axes->kept.strides[d];
  for (int d = 0; d < p->axes->reduced.n; d++) offsets |= (uint64_t)p->axes->reduced.strides[d];
  return p->device >= 0 && !p->cast && !p->swap && offsets % (uint64_t)bytes == 0;
}

/* The longest kept dimension shares out best. */
static void choose_cut(axes_run *r) {
  const gpr_dims *kept = &r->axes.kept;
  r->cut = -1;
  r->length = 1;
  for (int d = 0; d < kept->n && !r->in_place && !comes_apart(r); d++)
    if (r->cut < 0 || kept->shape[d] > kept->shape[r->cut]) r->cut = d;
  if (r->cut < 0) return;
  const int64_t longest = kept->shape[r->cut];
  double each = (double)r->plan.count * row_bytes(r);
  for (int d = 0; d < kept->n; d++)
    if (d != r->cut) each *= (double)kept->shape[d];
  const double fit = SLAB_BYTES / (each + 1);
  r->length = fit < 1 ? 1 : fit < (double)longest ? (int64_t)fit : longest;
}

static int64_t slab_length(const axes_run *r) {
  const int64_t left = r->cut < 0 ? 1 : r->axes.kept.shape[r->cut] - r->at;
  return r->length < left ? r->length : left;
}

/* The slab's dimensions. */
static gpr_dims slab_kept(const axes_run *r) {
  gpr_dims kept = r->axes.kept;
  if (r->cut >= 0) kept.shape[r->cut] = slab_length(r);
  return kept;
}

/* All dimensions, the kept ones first, by the size of their strides: as the array lies in memory.
 */
static int order_in_memory(const gpr_dims *kept, const gpr_dims *reduced, int *order) {
  const int n = kept->n + reduced->n;
  for (int d = 0; d < n; d++) {
    const int64_t stride =
        magnitude(d < kept->n ? kept->strides[d] : reduced->strides[d - kept->n]);
    int at = d;
    for (; at > 0; at--) {
      const int other = order[at - 1];
      const int64_t before =
          other < kept->n ? kept->strides[other] : reduced->strides[other - kept->n];
      if (magnitude(before) >= stride) break;
      order[at] = other;
    }
    order[at] = d;
  }
  return n;
}

/* The slab's elements, or its mask, as a plan without axes; what is packed gets strides of its own.
 */
typedef struct slab {
  gpr_dims kept, reduced; /* packed, of elements of one byte */
  gpr_plan elements, mask;
  int64_t count;
} slab;

static void set_shape(gpr_plan *p, gpr_dims *dims, int64_t count) {
  gpr_dims_coalesce(dims);
  p->axes = NULL;
  p->count = count;
  p->ndim = dims->n ? dims->n : 1;
  p->shape[0] = count;
  p->strides[0] = p->bytes;
  for (int d = 0; d < dims->n; d++) {
    p->shape[d] = dims->shape[d];
    p->strides[d] = dims->strides[d];
  }
  p->direct = !p->cast && !p->swap && p->ndim == 1 && p->strides[0] == p->bytes;
}

static void make_slab(const axes_run *r, slab *s) {
  int order[2 * GPR_DIMS_MAX];
  gpr_dims elements = {.n = 0}, mask = {.n = 0};
  s->kept = slab_kept(r);
  s->reduced = r->axes.reduced;
  const int n = order_in_memory(&s->kept, &s->reduced, order);
  s->count = 1;
  for (int i = n - 1; i >= 0; i--) {
    gpr_dims *of = order[i] < s->kept.n ? &s->kept : &s->reduced;
    const int d = order[i] < s->kept.n ? order[i] : order[i] - s->kept.n;
    elements.shape[i] = mask.shape[i] = of->shape[d];
    elements.strides[i] = of->strides[d];
    mask.strides[i] = of->where[d];
    elements.where[i] = mask.where[i] = 0;
    of->strides[d] = of->where[d] = s->count;
    s->count *= of->shape[d];
  }
  elements.n = mask.n = n;
  const int64_t first = r->cut < 0 ? 0 : r->at * r->axes.kept.strides[r->cut];
  s->elements = r->plan;
  s->elements.data += first;
  set_shape(&s->elements, &elements, s->count);
  s->mask = r->plan;
  s->mask.row = &r->byte;
  s->mask.cast = NULL;
  s->mask.dtype = r->byte.dtype;
  s->mask.bytes = 1;
  s->mask.swap = 0;
  s->mask.data = r->axes.where;
  if (r->axes.where && r->cut >= 0) s->mask.data += r->at * r->axes.kept.where[r->cut];
  set_shape(&s->mask, &mask, s->count);
}

/* --- what the kernels take ---------------------------------------------------------------------
 */

static void set_dims(axes_run *r, const gpr_dims *kept, const gpr_dims *reduced, int scale,
                     int where_scale) {
  gpr_axes_args *a = &r->args;
  a->kept = kept->n;
  a->reduced = reduced->n;
  for (int d = 0; d < kept->n + reduced->n; d++) {
    const gpr_dims *of = d < kept->n ? kept : reduced;
    const int i = d < kept->n ? d : d - kept->n;
    a->shape[d] = of->shape[i];
    a->strides[d] = of->strides[i] * scale;
    a->where_strides[d] = of->where[i] * where_scale;
  }
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

/* --- pieces of long segments -------------------------------------------------------------------
 */

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
  if (counts(r) || a->reduced != 1 || a->strides[a->kept] != row_bytes(r)) return GPR_OK;
  if (!r->piece_bytes) status = list_pieces(r);
  a->pieces = r->pieces;
  a->piece_count = r->piece_count;
  a->piece_bytes = r->piece_bytes;
  return status;
}

static gpr_status set_args(axes_run *r) {
  const gpr_axes *x = &r->axes;
  const gpr_plan *p = &r->plan;
  memset(&r->args, 0, sizeof r->args);
  r->args.data = r->in_place ? p->data : r->data;
  r->args.where = r->in_place ? x->where : r->where;
  if (r->in_place) {
    set_dims(r, &x->kept, &x->reduced, 1, 1);
  } else {
    slab s;
    make_slab(r, &s);
    gpr_dims_coalesce(&s.kept);
    if (!x->starts) gpr_dims_coalesce(&s.reduced);
    set_dims(r, &s.kept, &s.reduced, row_bytes(r), x->where != NULL);
  }
  if (!r->args.reduced) {
    r->args.reduced = 1;
    r->args.shape[r->args.kept] = p->count;
    r->args.strides[r->args.kept] = row_bytes(r);
  }
  r->args.out = r->out;
  r->args.least = r->least;
  r->args.outputs = r->outputs;
  r->args.count = p->count;
  r->args.skip = x->skip;
  set_finish(r);
  gpr_status status = x->starts ? set_segments(r) : GPR_OK;
  if (status) return status;
  if (gpr_axes_table_cuda.launch(p->row->op, p->row->dtype, gpr_cuda_multiprocessors(r->device),
                                 &r->args, &r->launch))
    return gpr_fail(GPR_DEVICE_ERROR, "%s of %s has no kernel for many outputs; device=\"cpu\" has",
                    gpr_ops[p->row->op].name, gpr_dtypes[p->row->dtype].name);
  return GPR_OK;
}

/* --- a slab's way ------------------------------------------------------------------------------
 */

/* The slab's means, one behind the other. */
static gpr_status upload_means(axes_run *r) {
  const double *means = ((const gpr_spread *)r->axes.with)->means;
  const int64_t parts = gpr_dtypes[r->plan.row->dtype].kind == 'c' ? 2 : 1;
  const gpr_dims *kept = &r->axes.kept;
  int64_t inner = parts;
  gpr_status status = allocate(r, &r->means, (size_t)(r->outputs * parts) * sizeof *means);
  if (status || r->cut < 0)
    return status ? status : copy(r, r->means, means, (size_t)(r->outputs * parts) * 8);
  for (int d = r->cut + 1; d < kept->n; d++) inner *= kept->shape[d];
  const int64_t width = slab_length(r) * inner * 8;
  return copy_rows(r, r->means, width, means + r->at * inner, kept->shape[r->cut] * inner * 8,
                   width, r->outputs * parts * 8 / width);
}

static void release_slab(axes_run *r) {
  gpr_cuda_release(r->scratch, r->stream);
  gpr_cuda_release(r->narrowed, r->stream);
  if (!to_device(r) || r->out != r->axes.result) gpr_cuda_release(r->out, r->stream);
  gpr_cuda_release(r->means, r->stream);
  r->scratch = r->means = NULL;
  r->narrowed = r->out = NULL;
}

/* Elements come on another stream: the memory has to be there before. */
static gpr_status begin_slab(axes_run *r) {
  const gpr_plan *p = &r->plan;
  gpr_status status = GPR_OK;
  r->outputs = r->axes.outputs;
  if (r->cut >= 0) r->outputs = r->outputs / r->axes.kept.shape[r->cut] * slab_length(r);
  r->state = r->in_place ? FOLD : ELEMENTS;
  const size_t count = (size_t)(r->outputs / (r->axes.starts ? r->axes.segments : 1) * p->count);
  if (!r->in_place && !r->data) status = allocate(r, &r->data, count * (size_t)row_bytes(r) + 1);
  if (!status && !r->in_place && r->axes.where && !r->where)
    status = allocate(r, &r->where, count + 1);
  if (!status && !r->in_place)
    status = check(cu.StreamSynchronize(r->stream), "cuMemAllocFromPoolAsync", r->device);
  if (to_device(r) && r->cut < 0 && !is_narrowed(r) && !comes_apart(r))
    r->out = r->axes.result;
  else if (!status)
    status = allocate(r, &r->out, (size_t)(r->outputs * result_bytes(r, p->row->result)));
  if (!status && r->axes.with && (gpr_ops[p->row->op].flags & GPR_SPREAD) &&
      ((const gpr_spread *)r->axes.with)->means)
    status = upload_means(r);
  return status;
}

/* The arguments and the functions of a launch. GPR_MORE: one is being compiled; ask again. */
static gpr_status make_ready(axes_run *r, int64_t nanoseconds) {
  gpr_status status = set_args(r);
  if (!status) status = gpr_cuda_function(r->launch.kernel, r->device, nanoseconds, &r->function);
  if (!status && is_narrowed(r))
    status = gpr_cuda_function(gpr_gpu_table_cuda.gather, r->device, nanoseconds, &r->gather);
  return status;
}

static gpr_status launch_again(axes_run *r) {
  return gpr_cuda_start(r->function, r->launch.blocks, r->launch.threads, &r->args,
                        "the launch of a reduction", r->device, r->stream);
}

static gpr_status launch(axes_run *r) {
  gpr_status status = GPR_OK;
  const size_t bytes = r->launch.scratch;
  if (bytes) status = allocate(r, &r->scratch, bytes);
  if (!status && bytes) status = fill(r, r->scratch, 0, bytes);
  r->args.scratch = r->scratch;
  return status ? status : launch_again(r);
}

/* On the device: to the dtype that the result has. */
static gpr_status narrow(axes_run *r) {
  const gpr_dtype_info *from = &gpr_dtypes[r->plan.row->result];
  const int64_t values = r->outputs * r->plan.row->results;
  gpr_row as = r->byte;
  as.dtype = r->axes.result_dtype;
  gpr_plan p = {.row = &as,
                .dtype = r->plan.row->result,
                .data = r->out,
                .count = values,
                .bytes = from->bytes,
                .ndim = 1,
                .shape = {values},
                .strides = {from->bytes}};
  gpr_status status = allocate(r, &r->narrowed, (size_t)(r->outputs * result_bytes(r, as.dtype)));
  if (status) return status;
  return gpr_cuda_gather(r->gather, &p, 0, values, r->narrowed, r->device, r->stream);
}

/* All first results, then all second ones. */
static gpr_status deliver_apart(axes_run *r, const char *from, int bytes) {
  gpr_status status = GPR_OK;
  for (int i = 0; !status && i < 2; i++)
    status = copy_rows(r, (char *)r->axes.result + i * r->outputs * bytes, bytes, from + i * bytes,
                       2 * bytes, bytes, r->outputs);
  return status;
}

/* The slab's results to their places: a range of one dimension is a column of the result. */
static gpr_status deliver(axes_run *r) {
  const gpr_dims *kept = &r->axes.kept;
  const int dtype = to_device(r) ? r->axes.result_dtype : r->plan.row->result;
  const char *from = r->narrowed ? r->narrowed : r->out;
  int64_t inner = result_bytes(r, dtype);
  if (from == r->axes.result) return GPR_OK;
  if (comes_apart(r)) return deliver_apart(r, from, gpr_dtypes[dtype].bytes);
  if (r->cut < 0) return copy(r, r->axes.result, from, (size_t)(r->outputs * inner));
  const int64_t all = r->outputs * inner;
  for (int d = r->cut + 1; d < kept->n; d++) inner *= kept->shape[d];
  const int64_t width = slab_length(r) * inner;
  return copy_rows(r, (char *)r->axes.result + r->at * inner, kept->shape[r->cut] * inner, from,
                   width, width, all / width);
}

/* --- the run -----------------------------------------------------------------------------------
 */

static gpr_status begin_copy(axes_run *r) {
  slab s;
  make_slab(r, &s);
  if (r->state == ELEMENTS) return gpr_gpu_copy_open(&s.elements, r->device, r->data, &r->copy);
  if (s.mask.device >= 0) s.mask.stream = r->stream;
  return gpr_gpu_copy_open(&s.mask, r->device, r->where, &r->copy);
}

static gpr_status bring(axes_run *r, int64_t nanoseconds) {
  gpr_status status = r->copy ? GPR_OK : begin_copy(r);
  if (!status) status = r->copy->backend->step(r->copy, nanoseconds);
  if (status) return status;
  r->copy->backend->close(r->copy);
  r->copy = NULL;
  r->state = r->state == ELEMENTS && r->axes.where ? MASK : FOLD;
  return GPR_OK;
}

/* Results on the device are left to come in their stream's order, if nothing has to be known. */
static gpr_status fold(axes_run *r, int64_t nanoseconds) {
  gpr_status status = make_ready(r, nanoseconds);
  if (status) return status;
  status = launch(r);
  if (!status && is_narrowed(r)) status = narrow(r);
  if (!status && to_device(r)) status = deliver(r);
  r->state = RESULTS;
  r->waiting_since = gpr_now();
  if (status) return status;
  if (to_device(r) && r->cut < 0 && !wants_least(r)) {
    r->state = OVER;
    return GPR_OK;
  }
  return check(cu.EventRecord(r->done, r->stream), "cuEventRecord", r->device);
}

static gpr_status end_slab(axes_run *r) {
  const CUresult result = cu.EventQuery(r->done);
  if (result == CUDA_ERROR_NOT_READY) {
    gpr_cuda_wait(r->waiting_since, gpr_now());
    return GPR_MORE;
  }
  gpr_status status = check(result, "a reduction", r->device);
  if (!status && !to_device(r)) status = deliver(r);
  if (!status) status = check(cu.StreamSynchronize(r->stream), "a reduction", r->device);
  if (status) return status;
  release_slab(r);
  if (!r->axes.starts) atomic_fetch_add(&r->base.done, r->outputs * r->plan.count);
  r->at += slab_length(r);
  r->state = OVER;
  return r->cut >= 0 && r->at < r->axes.kept.shape[r->cut] ? begin_slab(r) : GPR_OK;
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  axes_run *r = (axes_run *)base;
  const int64_t until = gpr_now() + nanoseconds;
  gpr_status status = enter(r);
  if (status) return status;
  while (!status && r->state != OVER) {
    if (r->state < FOLD)
      status = bring(r, nanoseconds);
    else
      status = r->state == FOLD ? fold(r, nanoseconds) : end_slab(r);
    if (status == GPR_MORE && gpr_now() < until) status = GPR_OK;
    if (!status && r->state != OVER && gpr_now() >= until) status = GPR_MORE;
  }
  leave(r);
  return status;
}

/* The least number of elements that counted: known, or read from the device. */
static gpr_status finish(gpr_run *base, const void *with, void *result) {
  axes_run *r = (axes_run *)base;
  const gpr_axes *x = &r->axes;
  (void)with, (void)result;
  base->least = x->outputs ? r->plan.count : INT64_MAX;
  if (!x->outputs) return GPR_OK;
  for (int64_t i = 0; x->starts && i < x->segments; i++) {
    const int64_t length = x->stops[i] > x->starts[i] ? x->stops[i] - x->starts[i] : 0;
    if (length < base->least) base->least = length;
  }
  if (!r->least) return GPR_OK;
  gpr_status status = enter(r);
  if (status) return status;
  status = copy(r, &base->least, r->least, sizeof *r->least);
  if (!status) status = check(cu.StreamSynchronize(r->stream), "a reduction", r->device);
  leave(r);
  return status;
}

static void close_run(gpr_run *base) {
  axes_run *r = (axes_run *)base;
  if (r->copy) r->copy->backend->close(r->copy);
  if (enter(r) == GPR_OK) {
    release_slab(r);
    gpr_cuda_release(r->data, r->stream);
    gpr_cuda_release(r->where, r->stream);
    gpr_cuda_release(r->least, r->stream);
    gpr_cuda_release(r->bounds, r->stream);
    gpr_cuda_release(r->pieces, r->stream);
    if (r->done) cu.EventDestroy(r->done);
    if (r->own) {
      cu.StreamSynchronize(r->own);
      cu.StreamDestroy(r->own);
    } else if (!to_device(r) && r->state != OVER) {
      cu.StreamSynchronize(r->stream); /* the caller's memory is his again */
    }
    leave(r);
  }
  free(r);
}

/* Launches that follow each other without waiting, so that no time of the host is between their
 * events; the first is not counted. */
static gpr_status time_launches(axes_run *r, CUevent *ends, int repeats, double *milliseconds) {
  gpr_status status = set_args(r);
  if (!status) status = gpr_cuda_function_now(r->launch.kernel, r->device, &r->function);
  if (!status) status = launch(r);
  for (int i = 0; !status && i <= repeats; i++) {
    if (i) status = launch_again(r);
    if (!status) status = check(cu.EventRecord(ends[i], r->stream), "cuEventRecord", r->device);
  }
  if (!status) status = check(cu.EventSynchronize(ends[repeats]), "a reduction", r->device);
  for (int i = 0; !status && i < repeats; i++) {
    float time = 0;
    status =
        check(cu.EventElapsedTime(&time, ends[i], ends[i + 1]), "cuEventElapsedTime", r->device);
    milliseconds[i] = time;
  }
  return status;
}

/* The kernels leave tickets as they found them. */
static gpr_status time_run(gpr_run *base, int repeats, double *milliseconds) {
  axes_run *r = (axes_run *)base;
  if (!r->in_place || r->state != FOLD)
    return gpr_fail(GPR_BAD_VALUE, "only what lies on a device ready to be read is timed");
  CUevent *ends = calloc((size_t)repeats + 1, sizeof *ends);
  if (!ends) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the times");
  gpr_status status = enter(r);
  if (status) goto fail;
  for (int i = 0; !status && i <= repeats; i++)
    status = check(cu.EventCreate(&ends[i], CU_EVENT_DEFAULT), "cuEventCreate", r->device);
  if (!status) status = time_launches(r, ends, repeats, milliseconds);
  for (int i = 0; i <= repeats && ends[i]; i++) cu.EventDestroy(ends[i]);
  leave(r);
fail:
  free(ends);
  return status;
}

static const gpr_backend axes = {step, finish, close_run, time_run};

/* What all slabs need. */
static gpr_status prepare(axes_run *r) {
  const gpr_axes *x = &r->axes;
  const size_t bytes = (size_t)x->segments * sizeof *x->starts;
  gpr_status status = GPR_OK;
  if (r->plan.device < 0) {
    status = check(cu.StreamCreate(&r->own, CU_STREAM_NON_BLOCKING), "cuStreamCreate", r->device);
    r->stream = r->own;
  }
  if (!status)
    status = check(cu.EventCreate(&r->done, CU_EVENT_DISABLE_TIMING), "cuEventCreate", r->device);
  if (!status && r->plan.device >= 0 && x->where && x->where_stream != r->stream) {
    status = check(cu.EventRecord(r->done, x->where_stream), "cuEventRecord", r->device);
    if (!status)
      status = check(cu.StreamWaitEvent(r->stream, r->done, 0), "cuStreamWaitEvent", r->device);
  }
  if (!status && wants_least(r)) {
    status = allocate(r, &r->least, sizeof *r->least);
    if (!status) status = fill(r, r->least, 0x7f, sizeof *r->least); /* more than any count */
  }
  if (!status && x->starts) {
    status = allocate(r, &r->bounds, 2 * bytes);
    if (!status) status = copy(r, r->bounds, x->starts, bytes);
    if (!status) status = copy(r, r->bounds + x->segments, x->stops, bytes);
  }
  choose_cut(r);
  return status ? status : begin_slab(r);
}

gpr_status gpr_gpu_axes_open(const gpr_plan *plan, int device, gpr_run **out) {
  *out = NULL;
  axes_run *r = calloc(1, sizeof *r);
  if (!r) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  r->base.backend = &axes;
  r->plan = *plan;
  r->axes = *plan->axes;
  r->plan.axes = &r->axes;
  r->byte = (gpr_row){.dtype = GPR_BOOL, .scalars = 1, .results = 1};
  r->device = device;
  r->stream = plan->stream;
  r->in_place = lies_in_place(plan);
  r->state = OVER;
  gpr_status status = enter(r);
  if (!status) {
    if (r->axes.outputs) status = prepare(r);
    leave(r);
  }
  if (status)
    close_run(&r->base);
  else
    *out = &r->base;
  return status;
}
