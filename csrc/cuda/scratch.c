#include "scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../errors.h"

/* Streams of which something is kept, and bytes: of exact variances 8 MiB are what they fall back
 * to.
 */
enum { STREAMS = 16, LEAST_BYTES = 1 << 20, MOST_BYTES = 32 << 20 };

typedef struct scratch {
  void *memory;
  size_t bytes;
} scratch;

struct gpr_kept {
  unsigned long long stream; /* its id, which no other one ever has */
  scratch of[2];             /* whose tickets are left zero, and that is left zero whole */
  gpr_launcher *launcher;
  uint64_t used; /* 0: nothing is kept here yet */
  int taken;
};

static struct {
  pthread_mutex_t lock;
  gpr_kept of[GPR_DEVICES_MAX][STREAMS];
  gpr_waiter *idle[GPR_DEVICES_MAX];
  uint64_t uses;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The stream's, or the one that was not used for longest; NULL if that is taken. */
static gpr_kept *place_of(int device, unsigned long long stream) {
  gpr_kept *all = kept.of[device], *oldest = NULL;
  for (gpr_kept *k = all; k < all + STREAMS; k++) {
    if (k->used && k->stream == stream) return k->taken ? NULL : k;
    if (!k->taken && (!oldest || k->used < oldest->used)) oldest = k;
  }
  return oldest;
}

gpr_status gpr_kept_take(int device, CUstream stream, gpr_kept **out) {
  unsigned long long id;
  *out = NULL;
  if (gpr_cuda_is_capturing(stream)) return GPR_OK;
  const gpr_status status = CU(device, StreamGetId, stream, &id);
  if (status) return status;
  pthread_mutex_lock(&kept.lock);
  gpr_kept *k = place_of(device, id);
  if (k) k->taken = 1;
  const uint64_t now = ++kept.uses;
  pthread_mutex_unlock(&kept.lock);
  if (!k) return GPR_OK;
  if (k->stream != id || !k->used) {
    for (int i = 0; i < 2; i++)
      if (k->of[i].memory) cu.MemFree(k->of[i].memory); /* when the device is done with it */
    gpr_cuda_launcher_free(k->launcher);
    *k = (gpr_kept){.stream = id, .taken = 1};
  }
  k->used = now;
  *out = k;
  return GPR_OK;
}

void gpr_kept_give(gpr_kept *k) {
  if (!k) return;
  pthread_mutex_lock(&kept.lock);
  k->taken = 0;
  pthread_mutex_unlock(&kept.lock);
}

static gpr_status make_scratch(scratch *of, int device, CUstream stream, size_t bytes) {
  void *memory;
  size_t size = LEAST_BYTES;
  while (size < bytes) size *= 2;
  if (of->memory) cu.MemFree(of->memory);
  of->memory = NULL;
  gpr_status status = CU(device, MemAlloc, &memory, size);
  if (status) return status;
  status = CU(device, MemsetD8Async, memory, 0, size, stream);
  if (status) {
    cu.MemFree(memory);
    return status;
  }
  *of = (scratch){memory, size};
  return GPR_OK;
}

gpr_status gpr_kept_scratch(gpr_kept *k, int device, CUstream stream, size_t bytes, int is_whole,
                            void **out) {
  gpr_status status = GPR_OK;
  *out = NULL;
  if (!k || bytes > MOST_BYTES) return GPR_OK;
  scratch *of = &k->of[is_whole];
  if (!of->memory || of->bytes < bytes) {
    const int before = gpr_cuda_relaxed(); /* another stream may be captured meanwhile */
    status = make_scratch(of, device, stream, bytes);
    gpr_cuda_strict(before);
  }
  *out = of->memory;
  return status;
}

gpr_status gpr_kept_launch(gpr_kept *k, CUfunction function, int64_t blocks, int threads,
                           void *arguments, int device, CUstream stream) {
  if (k && !k->launcher) k->launcher = gpr_cuda_launcher();
  if (k && k->launcher)
    return gpr_cuda_launch(k->launcher, function, blocks, threads, arguments, device, stream);
  return gpr_cuda_start(function, blocks, threads, arguments, "the launch of a reduction", device,
                        stream);
}

/* --- waiting ---------------------------------------------------------------------------------- */

void gpr_waiter_free(gpr_waiter *w) {
  if (!w) return;
  if (w->done) cu.EventDestroy(w->done);
  if (w->least) cu.MemFreeHost(w->least);
  free(w);
}

static gpr_status make_waiter(int device, gpr_waiter **out) {
  enum { LINE = 64 };
  gpr_waiter *w = calloc(1, sizeof *w);
  if (!w) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory to wait with");
  gpr_status status = CU(device, EventCreate, &w->done, CU_EVENT_DISABLE_TIMING);
  if (!status)
    status = CU(device, MemHostAlloc, &w->least, LINE + GPR_WAITER_BYTES,
                CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
  if (status) {
    gpr_waiter_free(w);
    return status;
  }
  w->results = (char *)w->least + LINE;
  *out = w;
  return GPR_OK;
}

static const char blank[8] = {0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a};

void gpr_waiter_blank(gpr_waiter *w, int values, int bytes) {
  memset(w->results, blank[0], (size_t)values * (size_t)bytes);
}

int gpr_waiter_is_written(const gpr_waiter *w, int values, int bytes) {
  for (int i = 0; i < values; i++)
    if (!memcmp(w->results + i * bytes, blank, (size_t)bytes)) return 0;
  atomic_thread_fence(memory_order_acquire);
  return 1;
}

gpr_status gpr_waiter_take(int device, gpr_waiter **out) {
  pthread_mutex_lock(&kept.lock);
  gpr_waiter *w = kept.idle[device];
  if (w) kept.idle[device] = w->next;
  pthread_mutex_unlock(&kept.lock);
  if (!w) {
    const int before = gpr_cuda_relaxed();
    const gpr_status status = make_waiter(device, out);
    gpr_cuda_strict(before);
    return status;
  }
  *out = w;
  return GPR_OK;
}

void gpr_waiter_give(int device, gpr_waiter *w) {
  pthread_mutex_lock(&kept.lock);
  w->next = kept.idle[device];
  kept.idle[device] = w;
  pthread_mutex_unlock(&kept.lock);
}
