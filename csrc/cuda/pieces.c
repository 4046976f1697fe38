/* A piece's way: brought to the device, folded by one launch, and answered for in the host's
 * memory, word by word or block by block in lines. */
#include <string.h>

#include "run.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static gpr_answer *answer_of(const gpu_run *r, int slot) {
  return r->space->answers + slot * r->space->answer_words;
}

/* --- on the way there ------------------------------------------------------------------------- */

static gpr_status copy_piece(gpu_run *r, int slot, const void *from, int64_t n, char *to) {
  workspace *w = r->space;
  gpr_status status = CU(r->device, MemcpyAsync, to, from, (size_t)(n * r->bytes), w->copies);
  if (!status) status = CU(r->device, EventRecord, w->copied[slot], w->copies);
  if (!status) status = CU(r->device, StreamWaitEvent, r->stream, w->copied[slot], 0);
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

int64_t gpr_piece_threads(const gpu_run *r, const void *data) {
  const int64_t packets = ((int64_t)((uintptr_t)data % 16) + r->plan.count * r->bytes + 15) / 16;
  const int loads = r->kernel->small.bytes / 16;
  return (packets + loads - 1) / loads;
}

/* Two blocks of half the size answer sooner than one. */
static gpr_status launch_small(gpu_run *r, gpr_flat_args args) {
  const int64_t wanted = gpr_piece_threads(r, args.data);
  const int threads = wanted <= GPR_SMALL_THREADS ? GPR_SMALL_THREADS / 2 : GPR_SMALL_THREADS;
  r->blocks[0] = (int)((wanted + threads - 1) / threads);
  return gpr_cuda_launch(r->space->launcher, r->function, r->blocks[0], threads, &args, r->device,
                         r->stream);
}

char *gpr_piece_at(const gpu_run *r, int slot) {
  const int64_t start = r->slots[slot].start * r->bytes;
  if (r->road == RESIDENT) return (char *)r->plan.data + start;
  return r->space->ring + (size_t)slot * PIECE_BYTES;
}

static gpr_status bring_piece(gpu_run *r, int slot) {
  const int64_t start = r->slots[slot].start, n = r->slots[slot].n;
  char *to = gpr_piece_at(r, slot);
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

gpr_status gpr_piece_fold(gpu_run *r, int slot) {
  r->epoch[slot] = next_epoch(r, slot);
  gpr_flat_args args = {.data = gpr_piece_at(r, slot),
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

gpr_status gpr_piece_launch(gpu_run *r, int slot) {
  const gpr_status status = bring_piece(r, slot);
  return status ? status : gpr_piece_fold(r, slot);
}

/* --- and back --------------------------------------------------------------------------------- */

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

int gpr_piece_is_answered(gpu_run *r) {
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
