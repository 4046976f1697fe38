/* Arrays in host memory, a slab at a time: a slab is a range of one kept dimension, so that it has
 * whole outputs, and lies on the device as the array does. */
#include "axes.h"

#include <string.h>

/* What a slab takes of the device, if one index of its dimension does not take more. */
enum { SLAB_BYTES = 64 << 20 };
/* Runs of 8 KiB took a thread twice the time that one long run takes; slabs are made longer for
 * runs of so many bytes, but not beyond a part of the device's free memory. */
enum { RUN_BYTES = 64 << 10, FREE_PARTS = 4 };
/* From pinned memory the copy engine takes them, for which these are long. */
enum { ROW_BYTES = 4 << 10 };

/* Bytes at one index of a kept dimension. */
static double bytes_at(const axes_run *r, int d) {
  double bytes = (double)r->plan.count * row_bytes(r);
  for (int i = 0; i < r->axes.kept.n; i++)
    if (i != d) bytes *= (double)r->axes.kept.shape[i];
  return bytes + 1;
}

/* The outermost kept dimension in memory whose places are no longer than a slab, else the longest.
 */
static int choose_cut(const axes_run *r) {
  const gpr_dims *kept = &r->axes.kept;
  int cut = -1, longest = -1;
  for (int d = 0; d < kept->n; d++) {
    if (longest < 0 || kept->shape[d] > kept->shape[longest]) longest = d;
    if (bytes_at(r, d) > SLAB_BYTES || kept->shape[d] == 1) continue;
    if (cut < 0 || gpr_magnitude(kept->strides[d]) > gpr_magnitude(kept->strides[cut])) cut = d;
  }
  return cut < 0 ? longest : cut;
}

static int is_outermost(const axes_run *r, int d) {
  const int64_t stride = gpr_magnitude(r->axes.kept.strides[d]);
  for (int i = 0; i < r->axes.reduced.n; i++)
    if (r->axes.reduced.shape[i] > 1 && gpr_magnitude(r->axes.reduced.strides[i]) > stride)
      return 0;
  return 1;
}

/* How many places of the dimension come in long runs, as far as there is memory. */
static double long_runs(const axes_run *r, double each) {
  const int64_t stride = gpr_magnitude(r->axes.kept.strides[r->cut]);
  size_t unused = 0, total;
  if (!stride || is_outermost(r, r->cut)) return 0;
  if (cu.MemGetInfo(&unused, &total) != CUDA_SUCCESS) return 0;
  const double most = (double)(unused / FREE_PARTS) / each;
  const int are_rows = stride == r->plan.bytes && !r->plan.cast && !r->plan.swap;
  const int bytes = are_rows && gpr_gpu_pinned(r->plan.data) ? ROW_BYTES : RUN_BYTES;
  const double places = (double)bytes / (double)stride;
  return places < most ? places : most;
}

void gpr_slabs_choose(axes_run *r) {
  const gpr_dims *kept = &r->axes.kept;
  r->cut = r->in_place || comes_apart(r) ? -1 : choose_cut(r);
  r->length = r->slabs = 1;
  if (r->cut < 0) return;
  const int64_t all = kept->shape[r->cut];
  const double each = bytes_at(r, r->cut);
  double fit = SLAB_BYTES / each;
  if (fit < (double)all) {
    const double runs = long_runs(r, each);
    if (runs > fit) fit = runs;
  }
  r->length = fit < 1 ? 1 : fit < (double)all ? (int64_t)fit : all;
  r->slabs = all ? (all - 1) / r->length + 1 : 1;
}

int64_t gpr_slab_length(const axes_run *r, int64_t slab) {
  const int64_t left = r->cut < 0 ? 1 : r->axes.kept.shape[r->cut] - gpr_slab_start(r, slab);
  return r->length < left ? r->length : left;
}

/* The slab's dimensions. */
static gpr_dims slab_kept(const axes_run *r, int64_t slab) {
  gpr_dims kept = r->axes.kept;
  if (r->cut >= 0) kept.shape[r->cut] = gpr_slab_length(r, slab);
  return kept;
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
  gpr_plan_shape(p, dims);
  p->direct = !p->cast && !p->swap && p->ndim == 1 && p->strides[0] == p->bytes;
}

/* All dimensions as they lie in memory; places: their numbers, those of the kept ones first. */
static gpr_dims in_memory(const gpr_dims *kept, const gpr_dims *reduced) {
  gpr_dims all = {.n = 0};
  for (int i = 0; i < kept->n + reduced->n; i++) {
    const gpr_dims *of = i < kept->n ? kept : reduced;
    const int d = i < kept->n ? i : i - kept->n;
    gpr_dims_append(&all, of->shape[d], of->strides[d], of->where[d]);
    all.place[i] = i;
  }
  gpr_dims_sort(&all);
  return all;
}

static void make_slab(const axes_run *r, int64_t number, slab *s) {
  s->kept = slab_kept(r, number);
  s->reduced = r->axes.reduced;
  gpr_dims elements = in_memory(&s->kept, &s->reduced), mask = {.n = 0};
  for (int i = 0; i < elements.n; i++)
    gpr_dims_append(&mask, elements.shape[i], elements.where[i], 0);
  s->count = 1;
  for (int i = elements.n - 1; i >= 0; i--) {
    const int at = (int)elements.place[i];
    gpr_dims *of = at < s->kept.n ? &s->kept : &s->reduced;
    const int d = at < s->kept.n ? at : at - s->kept.n;
    of->strides[d] = of->where[d] = s->count;
    s->count *= of->shape[d];
    elements.where[i] = elements.place[i] = 0;
  }
  const int64_t at = gpr_slab_start(r, number);
  const int64_t first = r->cut < 0 ? 0 : at * r->axes.kept.strides[r->cut];
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
  if (r->axes.where && r->cut >= 0) s->mask.data += at * r->axes.kept.where[r->cut];
  set_shape(&s->mask, &mask, s->count);
}

void gpr_slab_dims(const axes_run *r, gpr_dims *kept, gpr_dims *reduced) {
  slab s;
  make_slab(r, r->slab, &s);
  *kept = s.kept;
  *reduced = s.reduced;
}

/* The slab's means, one behind the other. */
gpr_status gpr_slab_means(axes_run *r) {
  const double *means = ((const gpr_spread *)r->axes.with)->means;
  const int64_t parts = gpr_dtypes[r->plan.row->dtype].kind == 'c' ? 2 : 1;
  const gpr_dims *kept = &r->axes.kept;
  int64_t inner = parts;
  gpr_status status = allocate(r, &r->means, (size_t)(r->outputs * parts) * sizeof *means);
  if (status || r->cut < 0)
    return status ? status : copy(r, r->means, means, (size_t)(r->outputs * parts) * 8);
  for (int d = r->cut + 1; d < kept->n; d++) inner *= kept->shape[d];
  const int64_t width = gpr_slab_length(r, r->slab) * inner * 8;
  return copy_rows(r, r->means, width, means + gpr_slab_start(r, r->slab) * inner,
                   kept->shape[r->cut] * inner * 8, width, r->outputs * parts * 8 / width);
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
gpr_status gpr_slab_deliver(axes_run *r) {
  const gpr_dims *kept = &r->axes.kept;
  const int dtype = to_device(r) ? r->axes.result_dtype : r->plan.row->result;
  const char *from = r->narrowed ? r->narrowed : r->out;
  int64_t inner = result_bytes(r, dtype);
  if (from == r->axes.result) return GPR_OK;
  if (comes_apart(r)) return deliver_apart(r, from, gpr_dtypes[dtype].bytes);
  if (r->waiter && from == r->waiter->results && r->cut < 0) {
    memcpy(r->axes.result, from, (size_t)(r->outputs * inner));
    return GPR_OK;
  }
  if (r->cut < 0) return copy(r, r->axes.result, from, (size_t)(r->outputs * inner));
  const int64_t all = r->outputs * inner;
  for (int d = r->cut + 1; d < kept->n; d++) inner *= kept->shape[d];
  const int64_t width = gpr_slab_length(r, r->slab) * inner;
  return copy_rows(r, (char *)r->axes.result + gpr_slab_start(r, r->slab) * inner,
                   kept->shape[r->cut] * inner, from, width, width, all / width);
}

/* --- on their way ----------------------------------------------------------------------------- */

/* Elements come on another stream: the memory has to be there before. */
gpr_status gpr_slabs_allocate(axes_run *r) {
  slab s;
  make_slab(r, 0, &s); /* none is longer */
  const int64_t buffers = r->slabs < BUFFERS ? r->slabs : BUFFERS;
  gpr_status status = GPR_OK;
  for (int64_t b = 0; !status && b < buffers; b++) {
    status = allocate(r, &r->buffer[b].data, (size_t)s.count * (size_t)row_bytes(r) + 1);
    if (!status && r->axes.where) status = allocate(r, &r->buffer[b].where, (size_t)s.count + 1);
  }
  return status ? status
                : check(cu.StreamSynchronize(r->stream), "cuMemAllocFromPoolAsync", r->device);
}

void gpr_slabs_release(axes_run *r) {
  for (int b = 0; b < BUFFERS; b++) {
    gpr_cuda_release(r->buffer[b].data, r->stream);
    gpr_cuda_release(r->buffer[b].where, r->stream);
  }
}

/* Into a buffer that is free. */
static gpr_status begin_slab(axes_run *r) {
  slab s;
  make_slab(r, r->begun, &s);
  const int b = (int)(r->begun++ % BUFFERS);
  int64_t *number = &r->buffer[b].number;
  const gpr_status status = gpr_copies_add(r->copies, &s.elements, r->buffer[b].data, number);
  if (status || !r->axes.where) return status;
  return gpr_copies_add(r->copies, &s.mask, r->buffer[b].where, number);
}

gpr_status gpr_slabs_begin(axes_run *r) {
  gpr_status status = GPR_OK;
  if (!r->copies) {
    status = gpr_copies_open(r->device, &r->own_copies);
    r->copies = r->own_copies;
  }
  while (!status && r->begun < r->slabs && r->begun < r->slab + BUFFERS) status = begin_slab(r);
  return status;
}

gpr_status gpr_slabs_bring(axes_run *r, int *is_there) {
  gpr_status status = gpr_slabs_begin(r);
  int busy = 0;
  if (!status) status = gpr_copies_step(r->copies, &busy);
  *is_there = !status && gpr_copies_are_there(r->copies, r->buffer[r->slab % BUFFERS].number);
  if (busy) r->waiting_since = 0;
  return status;
}
