/* The CUDA backend. Only the files of this folder call CUDA.
 *
 * A run is a row of pieces. Each is made ready on the device (nothing to do, gathered there, or
 * copied through a ring of pinned memory), folded by one launch (pieces.c), and its state merged
 * here in order. Several are under way. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* What lies on the device in one piece is folded in one launch, for the tree up to its limit. */
#define RESIDENT_BYTES (INT64_C(1) << 32)
enum { WARY_RUNS = 15 }; /* after a small array's launch that missed */
enum { SHARED_SLOTS = 3 };

/* What a small array's launch missed is for the kernel that misses nothing. */
static void begin_again(gpu_run *r) {
  r->plan.row->open(r->state);
  r->space->wary = WARY_RUNS;
  r->small = 0;
  r->function = NULL;
  r->again = 1;
}

/* A piece of a tree that others fold too, to its own place. */
static void set_aside(gpu_run *r, int64_t piece) {
  memcpy(r->deal->nodes + (size_t)piece * r->deal->node_bytes, r->other, r->plan.row->state_bytes);
  r->deal->is_there[piece] = 1;
}

static void collect_piece(gpu_run *r) {
  const gpr_row *row = r->plan.row;
  const int slot = (int)(r->collected % SLOTS);
  const int lines = r->kernel->lines.parts, more = r->flags & GPR_LINE_MORE;
  r->awaited_words = -1;
  r->flags = 0;
  if (r->small && more) {
    begin_again(r);
    return;
  }
  if (r->deal && r->deal->nodes)
    set_aside(r, r->slots[slot].start / r->piece);
  else if (!lines && r->collected == 0)
    memcpy(r->state, r->other, row->state_bytes);
  else if (!lines || more)
    row->merge(r->state, r->other);
  atomic_fetch_add(&r->base.done, r->slots[slot].n);
  r->collected++;
}

/* The next piece, as far as there is room for it. Beside others no more is taken than keeps the
 * copy engine busy, or they would wait for it at the end. */
static void take(gpu_run *r) {
  const int64_t most = r->deal && r->road == PINNED ? SHARED_SLOTS : SLOTS;
  while (!r->ended && r->taken < r->collected + most) {
    const int slot = (int)(r->taken % SLOTS);
    const int64_t n = gpr_queue_front(r->queue, r->piece, &r->slots[slot].start);
    r->slots[slot].n = n;
    r->ended = gpr_queue_is_empty(r->queue);
    if (n && r->road == STAGED)
      gpr_filling_piece(&r->filling, &r->plan, r->slots[slot].start, n, r->ended);
    else
      gpr_filling_end(&r->filling);
    r->taken += n != 0;
  }
}

/* Nothing to do but wait: at first without leaving the processor. */
static gpr_status idle(gpu_run *r, int64_t now) {
  if (!r->idle_since) r->idle_since = now;
  if (!gpr_cuda_wait(r->idle_since, now)) return GPR_OK;
  const CUresult result = cu.StreamQuery(r->stream);
  if (result == CUDA_SUCCESS && r->collected < r->launched && !gpr_piece_is_answered(r))
    return gpr_fail(GPR_DEVICE_ERROR, "a reduction on cuda:%d ended without an answer", r->device);
  return result == CUDA_ERROR_NOT_READY ? GPR_OK : check(result, "a reduction", r->device);
}

/* The kernels that the run needs. */
static gpr_status find_functions(gpu_run *r, int64_t nanoseconds) {
  gpr_status status = GPR_OK;
  if (r->road == GATHERED && !r->gather)
    status = gpr_cuda_function(gpr_gpu_table_cuda.gather, r->device, nanoseconds, &r->gather);
  if (!status && !r->function)
    status = gpr_cuda_function(r->small ? r->kernel->small.kernel : r->kernel->flat, r->device,
                               nanoseconds, &r->function);
  return status;
}

/* Collects, launches or fills; *busy tells whether there was something to do. */
static gpr_status work(gpu_run *r, int *busy) {
  gpr_status status = GPR_OK;
  *busy = 1;
  if (r->again) {
    r->again = 0;
    return gpr_piece_fold(r, 0);
  }
  *busy = 0;
  if (r->collected < r->launched && gpr_piece_is_answered(r)) {
    collect_piece(r);
    *busy = 1;
    if (r->again) return GPR_OK;
  }
  take(r);
  if (r->launched < r->taken &&
      (r->road != STAGED || gpr_filling_is_there(&r->filling, r->launched))) {
    status = gpr_piece_launch(r, (int)(r->launched++ % SLOTS));
    *busy = 1;
  }
  if (!*busy && r->road == STAGED) *busy = gpr_filling_one(&r->filling);
  return status;
}

static int is_over(const gpu_run *r) { return r->ended && r->collected == r->taken; }

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  gpu_run *r = (gpu_run *)base;
  const int64_t until = gpr_now() + nanoseconds;
  gpr_status status = gpr_cuda_enter(r->device, &r->before);
  if (status) return status;
  while (!status && !is_over(r)) {
    int busy;
    if ((status = find_functions(r, nanoseconds)) || (status = work(r, &busy))) break;
    if (busy) {
      r->idle_since = 0;
      if (r->road == RESIDENT) continue;
    }
    const int64_t now = gpr_now();
    if (!busy) status = idle(r, now);
    if (!status && now > until) status = GPR_MORE;
  }
  gpr_cuda_leave(r->device, r->before);
  return status;
}

static gpr_status finish(gpr_run *base, const void *initial, void *result) {
  gpu_run *r = (gpu_run *)base;
  r->plan.row->finish(r->state, r->plan.count, initial, result);
  return GPR_OK;
}

/* A workspace goes back only when the device is done with it; one that failed is given up. */
static void let_go(gpu_run *r) {
  CUresult result = CUDA_SUCCESS;
  if (!r->space || gpr_cuda_enter(r->device, &r->before)) return;
  if (r->collected < r->launched) {
    result = cu.StreamSynchronize(r->space->copies);
    if (result == CUDA_SUCCESS) result = cu.StreamSynchronize(r->stream);
  }
  if (result == CUDA_SUCCESS)
    gpr_workspace_give(r->device, r->space);
  else
    gpr_workspace_free(r->space);
  gpr_cuda_leave(r->device, r->before);
}

static void close_run(gpr_run *base) {
  gpu_run *r = (gpu_run *)base;
  gpr_filling_close(&r->filling);
  let_go(r);
  gpr_queue_close(&r->own);
  free(r->state);
  free(r);
}

static const gpr_backend gpu = {step, finish, close_run, NULL};

/* Packets of complex numbers that are aligned only to their parts cannot be seen as 16 bytes. */
static int lies_in_packets(const gpr_plan *p) {
  return p->direct && (p->row->law != GPR_FREE || (uintptr_t)p->data % (uintptr_t)p->bytes == 0);
}

static enum road road_of(const gpr_plan *p) {
  if (p->device >= 0) return lies_in_packets(p) ? RESIDENT : GATHERED;
  return p->direct && gpr_gpu_pinned(p->data) ? PINNED : STAGED;
}

static gpr_status make_states(gpu_run *r) {
  const gpr_row *row = r->plan.row;
  const size_t state_bytes = (row->state_bytes + 63) & ~(size_t)63;
  r->state = aligned_alloc(64, 2 * state_bytes);
  if (!r->state)
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a state of %zu bytes", state_bytes);
  r->other = r->state + state_bytes;
  row->open(r->state);
  return GPR_OK;
}

static int is_small(gpu_run *r) {
  if (!is_one_piece(r) || !r->kernel->small.kernel) return 0;
  if (gpr_piece_threads(r, gpr_piece_at(r, 0)) > SMALL_BLOCKS * GPR_SMALL_THREADS) return 0;
  if (!r->space->wary) return 1;
  r->space->wary--;
  return 0;
}

static gpr_status start(gpu_run *r) {
  const gpr_plan *p = &r->plan;
  gpr_status status = make_states(r);
  if (status) return status;
  r->road = road_of(p);
  r->bytes = gpr_dtypes[p->row->dtype].bytes * p->row->scalars;
  r->piece = (r->road == RESIDENT ? RESIDENT_BYTES : PIECE_BYTES) / r->bytes;
  if (r->road == RESIDENT && p->row->law != GPR_TREE) r->piece = p->count + !p->count;
  if (!p->count) return GPR_OK;
  if ((status = gpr_workspace_take(r->device, &r->space))) return status;
  r->stream = r->road == RESIDENT || r->road == GATHERED ? p->stream : r->space->stream;
  if (r->road != RESIDENT) status = gpr_workspace_ring(r->space, r->device, r->road == STAGED);
  r->small = !status && is_small(r);
  if (status || r->road != STAGED) return status;
  gpr_filling_open(&r->filling, r->space->pinned);
  if (r->deal) return GPR_OK;
  take(r);
  gpr_filling_offer(&r->filling, p);
  return GPR_OK;
}

static const gpr_gpu_row *kernel_of(const gpr_plan *plan) {
  return &gpr_gpu_table_cuda.row[plan->row->op * GPR_DTYPE_COUNT + plan->row->dtype];
}

static gpr_status begin(const gpr_plan *plan, int device, gpr_deal *deal, gpr_run **out) {
  *out = NULL;
  gpu_run *r = calloc(1, sizeof *r);
  if (!r) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  r->base.backend = &gpu;
  r->plan = *plan;
  r->device = device;
  r->kernel = kernel_of(plan);
  r->deal = deal;
  gpr_queue_open(&r->own, plan->count);
  r->queue = deal ? &deal->queue : &r->own;
  r->ended = gpr_queue_is_empty(r->queue);
  r->awaited_words = -1;
  const gpr_status status = ON(device, start(r));
  if (status)
    close_run(&r->base);
  else
    *out = &r->base;
  return status;
}

/* Elements on the device that are no packets of the row's are read where they lie by the kernels
 * for many outputs, which have no products of matrices. */
int gpr_gpu_folds_whole(const gpr_plan *plan) {
  return kernel_of(plan)->flat &&
         (plan->device < 0 || lies_in_packets(plan) || plan->row->scalars != 1);
}

gpr_status gpr_gpu_open(const gpr_plan *plan, int device, gpr_run **out) {
  return begin(plan, device, NULL, out);
}

/* --- with others ------------------------------------------------------------------------------ */

gpr_status gpr_gpu_join(const gpr_plan *plan, int device, gpr_deal *deal, gpr_run **out) {
  return begin(plan, device, deal, out);
}

int64_t gpr_gpu_piece(const gpr_plan *plan) {
  return PIECE_BYTES / (gpr_dtypes[plan->row->dtype].bytes * plan->row->scalars);
}

int gpr_gpu_fill(gpr_run *base) { return gpr_filling_one(&((gpu_run *)base)->filling); }

int gpr_gpu_is_idle(const gpr_run *base) {
  const gpu_run *r = (const gpu_run *)base;
  return r->collected == r->taken;
}

const void *gpr_gpu_state(const gpr_run *base) { return ((const gpu_run *)base)->state; }
