/* The CUDA backend. Only the files of this folder call CUDA.
 *
 * A run is a row of pieces. Each is made ready on the device (nothing to do, gathered there, or
 * copied through a ring of pinned memory), folded by one launch, and its state, which the kernel
 * writes to host memory word by word, or block by block in lines, merged here in order. Several are
 * under way. */
#define _GNU_SOURCE
#include "gpu.h"

#include <cuda_runtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../kernels/lists.h"
#include "../errors.h"
#include "device.h"
#include "../pack.h"
#include "../threads.h"

/* Pieces under way at once. Four of 8 MiB keep the copy engine busy while the host fills the next:
 * 32 MiB pinned and 32 MiB on the device, whatever the array's size. */
enum { SLOTS = 4, PIECE_BYTES = 8 << 20, FILL_BYTES = 128 << 10 };
/* Twelve threads fill as fast as the copy engine empties (53 of 54 GB/s); a piece takes it 150 µs.
 */
enum { FILLERS = 12, FILL_SPIN_NANOSECONDS = 200 * 1000 };
/* What lies on the device in one piece is folded in one launch, for the tree up to its limit. */
#define RESIDENT_BYTES (INT64_C(1) << 32)
/* Blocks of a small array's launch: 2^18 float32 take as long as by the other kernel, fewer less. A
 * miss costs a launch. */
enum { SMALL_BLOCKS = 64, WARY_RUNS = 15 };
/* A sleep ends 50 µs late or more, a quarter of the time of 1 GiB: the waiting thread looks without
 * pause for as long as 8 GiB take, then sleeps a hundredth of the time that it has waited. */
enum { SPIN_NANOSECONDS = 2000 * 1000, NAP_MOST = 10 * 1000 * 1000 };

/* What one run at a time uses of a device. Scratch is zero between launches. */
typedef struct workspace {
  struct workspace *next;
  cudaStream_t stream, copies;
  cudaEvent_t copied[SLOTS];
  gpr_launcher *launcher;
  void *scratch;
  gpr_answer *answers; /* pinned, mapped: one for each slot, of so many words */
  int64_t answer_words;
  char *pinned; /* the ring, made when it is first wanted */
  char *ring;   /* likewise, on the device */
  uint32_t epoch;
  uint32_t line_epoch[SLOTS]; /* the bits of their epochs that a slot's lines have not */
  int wary;                   /* runs to come that are not tried as small ones */
} workspace;

static struct {
  pthread_mutex_t lock;
  workspace *idle[GPR_DEVICES_MAX];
  int multiprocessors[GPR_DEVICES_MAX];
  atomic_int count; /* of devices, once known */
  pid_t owner;      /* the process that first used CUDA: a fork's child cannot */
} gpus = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- errors ------------------------------------------------------------------------------------
 */

gpr_status gpr_cuda_check(int code, const char *call, int device) {
  const cudaError_t error = (cudaError_t)code;
  if (error == cudaSuccess) return GPR_OK;
  cudaGetLastError();
  const int sticky = cudaPeekAtLastError() != cudaSuccess;
  return gpr_fail(error == cudaErrorMemoryAllocation ? GPR_OUT_OF_MEMORY : GPR_DEVICE_ERROR,
                  "%s on cuda:%d: %s (%s)%s", call, device, cudaGetErrorString(error),
                  cudaGetErrorName(error),
                  sticky ? "; CUDA cannot be used again in this process" : "");
}

int gpr_device_count(void) {
  int count = 0;
  if (gpus.owner && gpus.owner != getpid()) {
    gpr_fail(GPR_DEVICE_ERROR,
             "CUDA was used before fork(), and the child cannot use it: start "
             "processes with multiprocessing's \"spawn\", or use device=\"cpu\"");
    return 0;
  }
  const int known = atomic_load_explicit(&gpus.count, memory_order_relaxed);
  if (known) return known;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (count > GPR_DEVICES_MAX) count = GPR_DEVICES_MAX;
  if (error == cudaSuccess && count > 0) {
    atomic_store(&gpus.count, count);
    return count;
  }
  cudaGetLastError();
  gpr_fail(GPR_DEVICE_ERROR, "no CUDA device can be used: %s",
           error == cudaErrorInsufficientDriver ? "there is no NVIDIA driver, or one too old"
                                                : cudaGetErrorString(error));
  return 0;
}

static enum cudaMemoryType memory_at(const void *address, int *device) {
  struct cudaPointerAttributes attributes = {.type = cudaMemoryTypeUnregistered};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) cudaGetLastError();
  *device = attributes.device;
  return attributes.type;
}

int gpr_gpu_pinned(const void *address) {
  int device;
  return memory_at(address, &device) == cudaMemoryTypeHost;
}

int gpr_gpu_device_of(const void *address) {
  int device;
  const enum cudaMemoryType type = memory_at(address, &device);
  return type == cudaMemoryTypeDevice || type == cudaMemoryTypeManaged ? device : -1;
}

gpr_status gpr_cuda_enter(int device, int *before) {
  const int devices = gpr_device_count();
  if (!devices) return GPR_DEVICE_ERROR;
  if (device < 0 || device >= devices)
    return gpr_fail(GPR_DEVICE_ERROR, "there is no device cuda:%d: there are %d, numbered from 0",
                    device, devices);
  pthread_mutex_lock(&gpus.lock);
  if (!gpus.owner) gpus.owner = getpid();
  pthread_mutex_unlock(&gpus.lock);
  const gpr_status status = check(cudaGetDevice(before), "cudaGetDevice", device);
  return status ? status : check(cudaSetDevice(device), "cudaSetDevice", device);
}

/* --- workspaces --------------------------------------------------------------------------------
 */

static void free_ring(workspace *w) {
  cudaFree(w->ring);
  cudaFreeHost(w->pinned);
  w->ring = w->pinned = NULL;
}

static void workspace_free(workspace *w) {
  if (!w) return;
  for (int i = 0; i < SLOTS; i++)
    if (w->copied[i]) cudaEventDestroy(w->copied[i]);
  if (w->stream) cudaStreamDestroy(w->stream);
  if (w->copies) cudaStreamDestroy(w->copies);
  gpr_cuda_launcher_free(w->launcher);
  cudaFree(w->scratch);
  cudaFreeHost(w->answers);
  free_ring(w);
  cudaGetLastError();
  free(w);
}

static gpr_status workspace_make(int device, workspace **out) {
  gpr_status status;
  const size_t bytes = gpr_gpu_table_cuda.scratch_bytes;
  workspace *w = calloc(1, sizeof *w);
  if (w) w->launcher = gpr_cuda_launcher();
  if (w) w->answer_words = gpr_cuda_answer_words(device);
  const size_t answer_bytes = SLOTS * (size_t)gpr_cuda_answer_words(device) * sizeof(gpr_answer);
  if (!w || !w->launcher) {
    status = gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a workspace");
    goto fail;
  }
  if ((status = check(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking),
                      "cudaStreamCreate", device)) ||
      (status = check(cudaStreamCreateWithFlags(&w->copies, cudaStreamNonBlocking),
                      "cudaStreamCreate", device)) ||
      (status = check(cudaMalloc(&w->scratch, bytes), "cudaMalloc", device)) ||
      (status = check(cudaMemsetAsync(w->scratch, 0, bytes, w->stream), "cudaMemset", device)) ||
      (status = check(cudaHostAlloc((void **)&w->answers, answer_bytes,
                                    cudaHostAllocMapped | cudaHostAllocPortable),
                      "cudaHostAlloc", device)))
    goto fail;
  memset(w->answers, 0, answer_bytes);
  for (int i = 0; i < SLOTS; i++)
    if ((status = check(cudaEventCreateWithFlags(&w->copied[i], cudaEventDisableTiming),
                        "cudaEventCreate", device)))
      goto fail;
  if ((status = check(cudaStreamSynchronize(w->stream), "cudaMemset", device))) goto fail;
  *out = w;
  return GPR_OK;
fail:
  workspace_free(w);
  return status;
}

static gpr_status workspace_take(int device, workspace **out) {
  pthread_mutex_lock(&gpus.lock);
  workspace *w = gpus.idle[device];
  if (w) gpus.idle[device] = w->next;
  if (!gpus.owner) gpus.owner = getpid();
  pthread_mutex_unlock(&gpus.lock);
  if (w) {
    *out = w;
    return GPR_OK;
  }
  return workspace_make(device, out);
}

/* One ring a device is kept for the next run; others, made for runs at the same time, go back. */
static void workspace_give(int device, workspace *w) {
  int rings = 0;
  pthread_mutex_lock(&gpus.lock);
  for (const workspace *i = gpus.idle[device]; i; i = i->next) rings += i->ring != NULL;
  pthread_mutex_unlock(&gpus.lock);
  if (rings) free_ring(w);
  pthread_mutex_lock(&gpus.lock);
  w->next = gpus.idle[device];
  gpus.idle[device] = w;
  pthread_mutex_unlock(&gpus.lock);
}

/* The ring's device half alone (for gathering there), or with its pinned half. */
static gpr_status workspace_ring(workspace *w, int device, int pinned) {
  gpr_status status = GPR_OK;
  if (!w->ring)
    status =
        check(cudaMalloc((void **)&w->ring, SLOTS * (size_t)PIECE_BYTES), "cudaMalloc", device);
  if (!status && pinned && !w->pinned)
    status = check(
        cudaHostAlloc((void **)&w->pinned, SLOTS * (size_t)PIECE_BYTES, cudaHostAllocPortable),
        "cudaHostAlloc", device);
  return status;
}

int gpr_cuda_multiprocessors(int device) {
  if (!gpus.multiprocessors[device])
    cudaDeviceGetAttribute(&gpus.multiprocessors[device], cudaDevAttrMultiProcessorCount, device);
  return gpus.multiprocessors[device];
}

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
  int device, before; /* before: the thread's device when it called */
  enum road road;
  workspace *space;
  cudaStream_t stream;
  int bytes; /* of an element in the row's dtype */
  int64_t pieces, piece, launched, collected;
  uint32_t epoch[SLOTS];
  int64_t idle_since;
  int small; /* a small array */
  int blocks[SLOTS];
  /* Of the oldest piece under way: a bit for each block whose lines the state has not yet, in -1
   * words before they are looked for, and what the others' said. */
  uint64_t awaited[GPR_GPU_BLOCKS_MAX / 64];
  int awaited_words;
  uint32_t flags;
  char *state, *other;
  char *to; /* elements are brought there and nothing is folded; or NULL */

  gpr_team team; /* fills the pinned ring */
  int64_t fill;  /* elements of one filling */
  atomic_llong next_fill, filled[SLOTS], open_pieces;
  atomic_int stop;
} gpu_run;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t piece_length(const gpu_run *r, int64_t piece) {
  return least(r->piece, r->plan.count - piece * r->piece);
}
static gpr_answer *answer_of(const gpu_run *r, int slot) {
  return r->space->answers + slot * r->space->answer_words;
}

/* The calling thread's device is put back as it was. */
static void enter(const gpu_run *r) {
  if (r->before != r->device) cudaSetDevice(r->device);
}
static void leave(const gpu_run *r) {
  if (r->before != r->device) cudaSetDevice(r->before);
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
  if (r->to) return cudaEventQuery(r->space->copied[slot]) == cudaSuccess;
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

/* --- filling -----------------------------------------------------------------------------------
 */

/* Elements [start, start + n) to the ring. Plain copies: with stores past the caches the copy
 * engine got 48 GB/s where these give it 53, of the 54 that it can take. */
static void fill(const gpu_run *r, int64_t start, int64_t n, char *to) {
  enum { BLOCK = 1024 }; /* scalars */
  _Alignas(64) char scratch[BLOCK * 16];
  if (r->plan.direct) {
    memcpy(to, r->plan.data + start * r->bytes, (size_t)(n * r->bytes));
    return;
  }
  const int64_t block = BLOCK / r->plan.row->scalars;
  for (int64_t i = 0; i < n; i += block)
    gpr_pack(&r->plan, r->plan.data, start + i, least(block, n - i), to + i * r->bytes, scratch);
}

/* Fills one stretch of the ring, if one is free to be filled. */
static int fill_one(gpu_run *r) {
  const int64_t per_piece = r->piece / r->fill, all = (r->plan.count + r->fill - 1) / r->fill;
  long long f = atomic_load(&r->next_fill);
  do
    if (f >= all || f / per_piece >= atomic_load(&r->open_pieces)) return 0;
  while (!atomic_compare_exchange_weak(&r->next_fill, &f, f + 1));
  const int slot = (int)(f / per_piece % SLOTS);
  char *to = r->space->pinned + (size_t)slot * PIECE_BYTES + (f % per_piece) * r->fill * r->bytes;
  fill(r, f * r->fill, least(r->fill, r->plan.count - f * r->fill), to);
  atomic_fetch_add(&r->filled[slot], 1);
  return 1;
}

static void nap(int64_t nanoseconds) {
  const struct timespec t = {0, nanoseconds};
  nanosleep(&t, NULL);
}

static void help(void *argument, int lane) {
  gpu_run *r = argument;
  const int64_t all = (r->plan.count + r->fill - 1) / r->fill;
  (void)lane;
  int64_t since = 0;
  while (!atomic_load(&r->stop) && atomic_load(&r->next_fill) < all) {
    if (fill_one(r)) {
      since = 0;
    } else {
      const int64_t now = gpr_now();
      if (!since) since = now;
      if (now - since > FILL_SPIN_NANOSECONDS) nap(FILL_SPIN_NANOSECONDS);
    }
  }
}

static int is_filled(gpu_run *r, int64_t piece) {
  const int64_t wanted = (piece_length(r, piece) + r->fill - 1) / r->fill;
  return atomic_load(&r->filled[piece % SLOTS]) == wanted;
}

/* --- pieces ------------------------------------------------------------------------------------
 */

static gpr_status copy_piece(gpu_run *r, int slot, const void *from, int64_t n, char *to) {
  workspace *w = r->space;
  gpr_status status =
      check(cudaMemcpyAsync(to, from, (size_t)(n * r->bytes), cudaMemcpyHostToDevice, w->copies),
            "cudaMemcpyAsync", r->device);
  if (!status)
    status = check(cudaEventRecord(w->copied[slot], w->copies), "cudaEventRecord", r->device);
  if (!status)
    status =
        check(cudaStreamWaitEvent(r->stream, w->copied[slot], 0), "cudaStreamWaitEvent", r->device);
  return status;
}

gpr_status gpr_cuda_gather(const gpr_plan *p, int64_t start, int64_t n, void *to, int device,
                           void *stream) {
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
  void *arguments[] = {&args};
  const int64_t blocks = least((scalars + GPR_GATHER_THREADS - 1) / GPR_GATHER_THREADS,
                               16 * gpr_cuda_multiprocessors(device));
  return check(
      cudaLaunchKernel((const void *)gpr_gpu_table_cuda.gather, (dim3){(unsigned)blocks, 1, 1},
                       (dim3){GPR_GATHER_THREADS, 1, 1}, arguments, 0, stream),
      "the launch of a gather", device);
}

/* Lines: of kernels with so many a multiprocessor, and of small arrays. */
int64_t gpr_cuda_answer_words(int device) {
  const int64_t lines = gpr_cuda_multiprocessors(device) * (int64_t)GPR_LINES_MOST;
  return GPR_LINES_AT + GPR_LINE_WORDS * (lines < 2 * SMALL_BLOCKS ? 2 * SMALL_BLOCKS : lines);
}

int64_t gpr_cuda_blocks(const gpr_gpu_row *kernel, int64_t bytes, int device) {
  const int64_t blocks = (bytes + 15) / kernel->tile + 1;
  const int64_t most = (int64_t)gpr_cuda_multiprocessors(device) * kernel->blocks;
  if (!kernel->blocks) return blocks;
  /* Two tiles are done sooner by one block than two blocks have merged: 9.3 and 10.4 µs. */
  return blocks <= 3 ? 1 : least(blocks, least(most, GPR_GPU_BLOCKS_MAX));
}

gpr_status gpr_cuda_flat(const gpr_gpu_row *kernel, gpr_flat_args args, int64_t blocks,
                         gpr_launcher *launcher, int device, void *stream) {
  void *arguments[] = {&args};
  if (launcher)
    return gpr_cuda_launch(launcher, (const void *)kernel->flat, blocks, kernel->threads, arguments,
                           device, stream);
  return check(cudaLaunchKernel((const void *)kernel->flat, (dim3){(unsigned)blocks, 1, 1},
                                (dim3){(unsigned)kernel->threads, 1, 1}, arguments, 0, stream),
               "the launch of a reduction", device);
}

static int64_t small_threads(const gpu_run *r, const void *data) {
  const int64_t packets = ((int64_t)((uintptr_t)data % 16) + r->plan.count * r->bytes + 15) / 16;
  const int loads = r->kernel->small.bytes / 16;
  return (packets + loads - 1) / loads;
}

/* Two blocks of half the size answer sooner than one. */
static gpr_status launch_small(gpu_run *r, gpr_flat_args args) {
  void *arguments[] = {&args};
  const int64_t wanted = small_threads(r, args.data);
  const int threads = wanted <= GPR_SMALL_THREADS ? GPR_SMALL_THREADS / 2 : GPR_SMALL_THREADS;
  r->blocks[0] = (int)((wanted + threads - 1) / threads);
  return gpr_cuda_launch(r->space->launcher, (const void *)r->kernel->small.kernel, r->blocks[0],
                         threads, arguments, r->device, r->stream);
}

/* Where the piece is, or is to be, on the device. */
static char *piece_at(const gpu_run *r, int64_t piece) {
  const int64_t start = piece * r->piece * r->bytes;
  if (r->road == RESIDENT) return (char *)r->plan.data + start;
  return r->to ? r->to + start : r->space->ring + piece % SLOTS * PIECE_BYTES;
}

static gpr_status bring_piece(gpu_run *r, int64_t piece) {
  const int slot = (int)(piece % SLOTS);
  const int64_t start = piece * r->piece, n = piece_length(r, piece);
  char *to = piece_at(r, piece);
  switch (r->road) {
    case RESIDENT: break;
    case GATHERED: return gpr_cuda_gather(&r->plan, start, n, to, r->device, r->stream);
    case PINNED: return copy_piece(r, slot, r->plan.data + start * r->bytes, n, to);
    case STAGED:
      atomic_store(&r->filled[slot], 0);
      return copy_piece(r, slot, r->space->pinned + (size_t)slot * PIECE_BYTES, n, to);
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

static gpr_status fold_piece(gpu_run *r, int64_t piece) {
  const int slot = (int)(piece % SLOTS);
  r->epoch[slot] = next_epoch(r, slot);
  gpr_flat_args args = {.data = piece_at(r, piece),
                        .n = piece_length(r, piece),
                        .index = piece * r->piece,
                        .scratch = r->space->scratch,
                        .answer = answer_of(r, slot),
                        .epoch = r->epoch[slot]};
  if (r->small) return launch_small(r, args);
  gpr_launcher *launcher = r->pieces == 1 ? r->space->launcher : NULL;
  r->blocks[slot] = (int)gpr_cuda_blocks(r->kernel, args.n * r->bytes, r->device);
  return gpr_cuda_flat(r->kernel, args, r->blocks[slot], launcher, r->device, r->stream);
}

static gpr_status launch_piece(gpu_run *r, int64_t piece) {
  const gpr_status status = bring_piece(r, piece);
  if (status) return status;
  if (!r->to) return fold_piece(r, piece);
  return check(cudaEventRecord(r->space->copied[piece % SLOTS], r->stream), "cudaEventRecord",
               r->device);
}

/* What a small array's launch missed, by the kernel that misses nothing. */
static gpr_status fold_again(gpu_run *r) {
  r->plan.row->open(r->state);
  r->space->wary = WARY_RUNS;
  r->small = 0;
  return fold_piece(r, 0);
}

static gpr_status collect_piece(gpu_run *r) {
  const gpr_row *row = r->plan.row;
  const int lines = !r->to && r->kernel->lines.parts, more = r->flags & GPR_LINE_MORE;
  r->awaited_words = -1;
  r->flags = 0;
  if (r->small && more) return fold_again(r);
  if (!r->to && !lines && r->collected == 0)
    memcpy(r->state, r->other, row->state_bytes);
  else if (!r->to && (!lines || more))
    row->merge(r->state, r->other);
  atomic_fetch_add(&r->base.done, piece_length(r, r->collected));
  r->collected++;
  atomic_store(&r->open_pieces, r->collected + SLOTS);
  return GPR_OK;
}

void gpr_cuda_wait(int64_t since) {
  const int64_t waited = gpr_now() - since;
  if (waited > SPIN_NANOSECONDS) nap(least(waited / 100, NAP_MOST));
}

/* Nothing to do but wait: at first without leaving the processor. */
static gpr_status idle(gpu_run *r, int64_t now) {
  if (!r->idle_since) r->idle_since = now;
  if (now - r->idle_since < SPIN_NANOSECONDS) return GPR_OK;
  const cudaError_t error = cudaStreamQuery(r->stream);
  if (error == cudaSuccess && r->collected < r->launched && !is_answered(r))
    return gpr_fail(GPR_DEVICE_ERROR, "a reduction on cuda:%d ended without an answer", r->device);
  if (error != cudaSuccess && error != cudaErrorNotReady)
    return check(error, "a reduction", r->device);
  gpr_cuda_wait(r->idle_since);
  return GPR_OK;
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  gpu_run *r = (gpu_run *)base;
  const int64_t until = gpr_now() + nanoseconds;
  gpr_status status = GPR_OK;
  enter(r);
  while (!status && r->collected < r->pieces) {
    int busy = 0;
    if (r->collected < r->launched && is_answered(r)) {
      status = collect_piece(r);
      busy = 1;
    }
    if (!status && r->launched < least(r->pieces, r->collected + SLOTS) &&
        (r->road != STAGED || is_filled(r, r->launched))) {
      status = launch_piece(r, r->launched++);
      busy = 1;
    }
    if (!busy && r->road == STAGED) busy = fill_one(r);
    if (busy) {
      r->idle_since = 0;
      if (r->road == RESIDENT) continue;
    }
    const int64_t now = gpr_now();
    if (!busy && !status) status = idle(r, now);
    if (!status && now > until) status = GPR_MORE;
  }
  leave(r);
  return status;
}

static gpr_status finish(gpr_run *base, const void *initial, void *result) {
  gpu_run *r = (gpu_run *)base;
  r->plan.row->finish(r->state, r->plan.count, initial, result);
  return GPR_OK;
}

/* A workspace goes back only when the device is done with it; one that failed is given up. */
static void close_run(gpr_run *base) {
  gpu_run *r = (gpu_run *)base;
  atomic_store(&r->stop, 1);
  while (!gpr_team_wait(&r->team, 1000000000)) continue;
  enter(r);
  if (r->space) {
    cudaError_t error = cudaSuccess;
    if (r->collected < r->launched) {
      error = cudaStreamSynchronize(r->space->copies);
      if (error == cudaSuccess) error = cudaStreamSynchronize(r->stream);
    }
    if (error == cudaSuccess)
      workspace_give(r->device, r->space);
    else
      workspace_free(r->space);
  }
  leave(r);
  free(r->state);
  free(r);
}

static const gpr_backend gpu = {step, finish, close_run, NULL};

/* Packets of complex numbers that are aligned only to their parts cannot be seen as 16 bytes. */
static int lies_in_packets(const gpr_plan *p) {
  return p->direct && (p->row->law != GPR_FREE || (uintptr_t)p->data % (uintptr_t)p->bytes == 0);
}

static enum road road_of(const gpr_plan *p, const char *to) {
  if (p->device >= 0) return lies_in_packets(p) && !to ? RESIDENT : GATHERED;
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

static void offer_filling(gpu_run *r) {
  r->fill = FILL_BYTES / r->bytes;
  const int64_t fills = (r->plan.count + r->fill - 1) / r->fill;
  r->team = (gpr_team){.work = help,
                       .argument = r,
                       .helpers = (int)least(least(gpr_threads(), FILLERS) - 1, fills - 1)};
  gpr_team_offer(&r->team);
}

static int is_small(gpu_run *r) {
  if (r->pieces > 1 || r->to || !r->kernel->small.kernel) return 0;
  if (small_threads(r, piece_at(r, 0)) > SMALL_BLOCKS * GPR_SMALL_THREADS) return 0;
  if (!r->space->wary) return 1;
  r->space->wary--;
  return 0;
}

static gpr_status start(gpu_run *r) {
  const gpr_plan *p = &r->plan;
  gpr_status status = r->to ? GPR_OK : make_states(r);
  if (status) return status;
  r->road = road_of(p, r->to);
  r->bytes = gpr_dtypes[p->row->dtype].bytes * p->row->scalars;
  r->piece = (r->road == RESIDENT ? RESIDENT_BYTES : PIECE_BYTES) / r->bytes;
  if ((r->road == RESIDENT && p->row->law != GPR_TREE) || (r->road == GATHERED && r->to))
    r->piece = p->count + !p->count;
  r->pieces = (p->count + r->piece - 1) / r->piece;
  atomic_init(&r->open_pieces, SLOTS);
  if (!r->pieces) return GPR_OK;
  if ((status = workspace_take(r->device, &r->space))) return status;
  r->stream = r->road == RESIDENT || r->road == GATHERED ? p->stream : r->space->stream;
  if (r->road == STAGED || (r->road != RESIDENT && !r->to))
    status = workspace_ring(r->space, r->device, r->road == STAGED);
  r->small = !status && is_small(r);
  if (!status && r->road == STAGED) offer_filling(r);
  return status;
}

static gpr_status begin(const gpr_plan *plan, const gpr_gpu_row *kernel, void *to, int device,
                        gpr_run **out) {
  *out = NULL;
  gpu_run *r = calloc(1, sizeof *r);
  if (!r) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  r->base.backend = &gpu;
  r->plan = *plan;
  r->device = device;
  r->kernel = kernel;
  r->to = to;
  r->awaited_words = -1;
  gpr_status status = check(cudaGetDevice(&r->before), "cudaGetDevice", device);
  if (!status && r->before != device)
    status = check(cudaSetDevice(device), "cudaSetDevice", device);
  if (!status) status = start(r);
  if (status) {
    close_run(&r->base);
    return status;
  }
  leave(r);
  *out = &r->base;
  return GPR_OK;
}

static const gpr_gpu_row *kernel_of(const gpr_plan *plan) {
  return &gpr_gpu_table_cuda.row[plan->row->op * GPR_DTYPE_COUNT + plan->row->dtype];
}

static int lies_aligned(const gpr_plan *plan) {
  uint64_t offsets = (uint64_t)(uintptr_t)plan->data;
  for (int d = 0; d < plan->ndim; d++) offsets |= (uint64_t)plan->strides[d];
  return offsets % (uint64_t)plan->bytes == 0;
}

/* Strided elements on the device are read where they lie by the kernels for many outputs, which
 * have no products of matrices and no conversions. */
int gpr_gpu_folds_whole(const gpr_plan *plan) {
  const int strided = plan->device >= 0 && !plan->direct && plan->row->scalars == 1;
  const int there = strided && !plan->cast && !plan->swap && lies_aligned(plan);
  return kernel_of(plan)->flat && !there;
}

gpr_status gpr_gpu_open(const gpr_plan *plan, int device, gpr_run **out) {
  return begin(plan, kernel_of(plan), NULL, device, out);
}

gpr_status gpr_gpu_copy_open(const gpr_plan *plan, int device, void *to, gpr_run **out) {
  return begin(plan, NULL, to, device, out);
}
