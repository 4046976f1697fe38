/* The CUDA backend. Only the files of this folder call CUDA.
 *
 * A run is a row of pieces. Each is made ready on the device (nothing to do, gathered there, or
 * copied through a ring of pinned memory), folded by one launch, and its state, which the kernel
 * writes to host memory word by word, or block by block in lines, merged here in order. Several are
 * under way. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/abi/lists.h"
#include "../errors.h"
#include "fill.h"
#include "gpu.h"

/* What lies on the device in one piece is folded in one launch, for the tree up to its limit. */
#define RESIDENT_BYTES (INT64_C(1) << 32)
/* Blocks of a small array's launch: 2^18 float32 take as long as by the other kernel, fewer less. A
 * miss costs a launch. */
enum { SMALL_BLOCKS = 64, WARY_RUNS = 15 };
enum { SHARED_SLOTS = 3 };
/* --- runs --------------------------------------------------------------------------------------
 */

enum road {
  RESIDENT, /* folded where it lies */
  GATHERED, /* on the device, but strided or to be converted: gathered into the ring */
  PINNED,   /* in pinned host memory: copied into the ring */
  STAGED,   /* anywhere else in host memory: through the pinned ring, filled by several threads */
};

typedef struct gpu_run {
  gpr_run base;
  gpr_plan plan;
  const gpr_gpu_row *kernel;
  int device;
  CUcontext before;            /* the thread's when it called */
  CUfunction function, gather; /* NULL: not needed, or not asked for yet */
  enum road road;
  workspace *space;
  CUstream stream;
  int bytes;             /* of an element in the row's dtype */
  gpr_queue own, *queue; /* that pieces are taken from; own: of a run alone */
  gpr_deal *deal;        /* whose queue it is, or NULL */
  int64_t piece;         /* elements, at most */
  int64_t taken, launched, collected;
  int ended; /* there is no more to be taken */
  struct {
    int64_t start, n;
  } slots[SLOTS];
  uint32_t epoch[SLOTS];
  int64_t idle_since;
  int small; /* a small array */
  int again; /* which wants the other kernel after all */
  int blocks[SLOTS];
  /* Of the oldest piece under way: a bit for each block whose lines the state has not yet, in -1
   * words before they are looked for, and what the others' said. */
  uint64_t awaited[GPR_GPU_BLOCKS_MAX / 64];
  int awaited_words;
  uint32_t flags;
  char *state, *other;

  gpr_filling filling; /* of the pinned ring */
} gpu_run;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static gpr_answer *answer_of(const gpu_run *r, int slot) {
  return r->space->answers + slot * r->space->answer_words;
}

static int is_here(const volatile uint64_t *answer, uint32_t epoch, uint32_t *word) {
  const uint64_t both = *answer;
  *word = (uint32_t)both;
  return both >> 32 == epoch;
}

/* Whether the oldest piece under way is in the state by the lines of all its blocks. */
static int is_in_lines(gpu_run *r, int slot) {
  const int blocks = r->blocks[slot];
  if (r->awaited_words < 0) {
    r->awaited_words = (blocks + 63) / 64;
    for (int w = 0; w < r->awaited_words; w++)
      r->awaited[w] = blocks - 64 * w < 64 ? (UINT64_C(1) << (blocks - 64 * w)) - 1 : ~UINT64_C(0);
  }
  return !r->kernel->lines.take(r->state, answer_of(r, slot), r->awaited, r->awaited_words,
                                r->epoch[slot], &r->flags);
}

/* Whether the oldest piece under way has left all words of its state; they are then in `other`. */
static int is_answered(gpu_run *r) {
  const int slot = (int)(r->collected % SLOTS);
  if (r->kernel->lines.parts) {
    if (!is_in_lines(r, slot)) return 0;
    if (r->small || !(r->flags & GPR_LINE_MORE)) return 1;
  }
  const int masks = r->kernel->masks;
  const volatile uint64_t *answer = (const volatile uint64_t *)answer_of(r, slot);
  const uint32_t epoch = r->epoch[slot];
  uint32_t *words = (uint32_t *)r->other, mask;
  if (!masks)
    for (int i = r->kernel->words - 1; i >= 0; i--)
      if (!is_here(answer + i, epoch, words + i)) return 0;
  for (int m = masks - 1; m >= 0; m--) {
    if (!is_here(answer + m, epoch, &mask)) return 0;
    for (int i = 32 * m; i < 32 * m + 32 && i < r->kernel->words; i++, mask >>= 1) {
      words[i] = 0;
      if ((mask & 1) && !is_here(answer + masks + i, epoch, words + i)) return 0;
    }
  }
  return 1;
}

/* --- pieces ------------------------------------------------------------------------------------
 */

static gpr_status copy_piece(gpu_run *r, int slot, const void *from, int64_t n, char *to) {
  workspace *w = r->space;
  gpr_status status = check(cu.MemcpyAsync(to, from, (size_t)(n * r->bytes), w->copies),
                            "cuMemcpyAsync", r->device);
  if (!status)
    status = check(cu.EventRecord(w->copied[slot], w->copies), "cuEventRecord", r->device);
  if (!status)
    status =
        check(cu.StreamWaitEvent(r->stream, w->copied[slot], 0), "cuStreamWaitEvent", r->device);
  return status;
}

gpr_status gpr_cuda_gather(CUfunction gather, const gpr_plan *p, int64_t start, int64_t n, void *to,
                           int device, CUstream stream) {
  const int64_t scalars = n * p->row->scalars;
  gpr_gather_args args = {.data = p->data,
                          .start = start * p->row->scalars,
                          .n = scalars,
                          .ndim = p->ndim,
                          .bytes = p->bytes,
                          .swap = p->swap,
                          .from = p->dtype,
                          .to = p->row->dtype,
                          .out = to};
  memcpy(args.shape, p->shape, sizeof args.shape);
  memcpy(args.strides, p->strides, sizeof args.strides);
  const int64_t blocks = least((scalars + GPR_GATHER_THREADS - 1) / GPR_GATHER_THREADS,
                               16 * gpr_cuda_multiprocessors(device));
  return gpr_cuda_start(gather, blocks, GPR_GATHER_THREADS, &args, "the launch of a gather", device,
                        stream);
}

/* Lines: of kernels with so many a multiprocessor, and of small arrays. */
int64_t gpr_cuda_answer_words(int device) {
  const int64_t lines = gpr_cuda_multiprocessors(device) * (int64_t)GPR_LINES_MOST;
  return GPR_LINES_AT + GPR_LINE_WORDS * (lines < 2 * SMALL_BLOCKS ? 2 * SMALL_BLOCKS : lines);
}

/* Of so many tiles: a block each as long as the device has warps for them all, then one for up to
 * 16, flat_tree.cuh's TREE_GROUPS; its warps take what that leaves them. The product of 19 MB in
 * chunks of 16 took 17 µs on an H200: few warps had one, and its loads wait for each other. */
static int64_t tree_blocks(int64_t tiles) {
  enum { TILES_MOST = 512, CHUNK_TILES = 16 };
  if (tiles <= TILES_MOST) return tiles;
  const int64_t chunks = (tiles + CHUNK_TILES - 1) / CHUNK_TILES;
  return chunks < TILES_MOST ? TILES_MOST : chunks;
}

int64_t gpr_cuda_blocks(const gpr_gpu_row *kernel, int64_t bytes, int device) {
  const int64_t blocks = (bytes + 15) / kernel->tile + 1;
  const int64_t most = (int64_t)gpr_cuda_multiprocessors(device) * kernel->blocks;
  if (!kernel->blocks) return tree_blocks(blocks);
  /* Two tiles are done sooner by one block than two blocks have merged: 9.3 and 10.4 µs. */
  return blocks <= 3 ? 1 : least(blocks, least(most, GPR_GPU_BLOCKS_MAX));
}

/* Of a run alone. */
static int is_one_piece(const gpu_run *r) { return !r->deal && r->plan.count <= r->piece; }

static int64_t small_threads(const gpu_run *r, const void *data) {
  const int64_t packets = ((int64_t)((uintptr_t)data % 16) + r->plan.count * r->bytes + 15) / 16;
  const int loads = r->kernel->small.bytes / 16;
  return (packets + loads - 1) / loads;
}

/* Two blocks of half the size answer sooner than one. */
static gpr_status launch_small(gpu_run *r, gpr_flat_args args) {
  const int64_t wanted = small_threads(r, args.data);
  const int threads = wanted <= GPR_SMALL_THREADS ? GPR_SMALL_THREADS / 2 : GPR_SMALL_THREADS;
  r->blocks[0] = (int)((wanted + threads - 1) / threads);
  return gpr_cuda_launch(r->space->launcher, r->function, r->blocks[0], threads, &args, r->device,
                         r->stream);
}

/* Where the slot's piece is, or is to be, on the device. */
static char *piece_at(const gpu_run *r, int slot) {
  const int64_t start = r->slots[slot].start * r->bytes;
  if (r->road == RESIDENT) return (char *)r->plan.data + start;
  return r->space->ring + (size_t)slot * PIECE_BYTES;
}

static gpr_status bring_piece(gpu_run *r, int slot) {
  const int64_t start = r->slots[slot].start, n = r->slots[slot].n;
  char *to = piece_at(r, slot);
  switch (r->road) {
    case RESIDENT: break;
    case GATHERED: return gpr_cuda_gather(r->gather, &r->plan, start, n, to, r->device, r->stream);
    case PINNED: return copy_piece(r, slot, r->plan.data + start * r->bytes, n, to);
    case STAGED: return copy_piece(r, slot, gpr_filling_place(&r->filling, slot), n, to);
  }
  return GPR_OK;
}

/* Lines of other epochs with the same low bits are not to be taken for this one's. */
static uint32_t next_epoch(gpu_run *r, int slot) {
  workspace *w = r->space;
  if (!(++w->epoch << (32 - GPR_LINE_EPOCH))) w->epoch++;
  const uint32_t high = w->epoch >> GPR_LINE_EPOCH;
  if (w->line_epoch[slot] != high)
    memset(answer_of(r, slot), 0, (size_t)w->answer_words * sizeof(gpr_answer));
  w->line_epoch[slot] = high;
  return w->epoch;
}

static gpr_status fold_piece(gpu_run *r, int slot) {
  r->epoch[slot] = next_epoch(r, slot);
  gpr_flat_args args = {.data = piece_at(r, slot),
                        .n = r->slots[slot].n,
                        .index = r->slots[slot].start,
                        .scratch = r->space->scratch,
                        .answer = answer_of(r, slot),
                        .epoch = r->epoch[slot]};
  if (r->small) return launch_small(r, args);
  r->blocks[slot] = (int)gpr_cuda_blocks(r->kernel, args.n * r->bytes, r->device);
  if (is_one_piece(r))
    return gpr_cuda_launch(r->space->launcher, r->function, r->blocks[slot], r->kernel->threads,
                           &args, r->device, r->stream);
  return gpr_cuda_start(r->function, r->blocks[slot], r->kernel->threads, &args,
                        "the launch of a reduction", r->device, r->stream);
}

static gpr_status launch_piece(gpu_run *r, int slot) {
  const gpr_status status = bring_piece(r, slot);
  return status ? status : fold_piece(r, slot);
}

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
  if (result == CUDA_SUCCESS && r->collected < r->launched && !is_answered(r))
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
    return fold_piece(r, 0);
  }
  *busy = 0;
  if (r->collected < r->launched && is_answered(r)) {
    collect_piece(r);
    *busy = 1;
    if (r->again) return GPR_OK;
  }
  take(r);
  if (r->launched < r->taken &&
      (r->road != STAGED || gpr_filling_is_there(&r->filling, r->launched))) {
    status = launch_piece(r, (int)(r->launched++ % SLOTS));
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
  if (small_threads(r, piece_at(r, 0)) > SMALL_BLOCKS * GPR_SMALL_THREADS) return 0;
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
  gpr_status status = gpr_cuda_enter(device, &r->before);
  if (!status) {
    status = start(r);
    gpr_cuda_leave(device, r->before);
  }
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

/* --- with others -------------------------------------------------------------------------------
 */

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
