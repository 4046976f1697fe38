#include "scratch.h"

#include <pthread.h>
#include <stdlib.h>

#include "../errors.h"

/* Streams that have one at a time, and bytes: of exact variances 8 MiB are what they fall back to.
 */
enum { STREAMS = 16, LEAST_BYTES = 1 << 20, MOST_BYTES = 32 << 20 };

typedef struct stream_scratch {
  unsigned long long stream; /* its id, which no other one ever has */
  void *memory;
  size_t bytes;
  uint64_t used;
} stream_scratch;

static struct {
  pthread_mutex_t lock;
  stream_scratch of[GPR_DEVICES_MAX][STREAMS];
  gpr_waiter *idle[GPR_DEVICES_MAX];
  uint64_t uses;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The stream's, or the one that was not used for longest. */
static stream_scratch *place_of(int device, unsigned long long stream) {
  stream_scratch *all = kept.of[device], *oldest = all;
  for (stream_scratch *s = all; s < all + STREAMS; s++) {
    if (s->memory && s->stream == stream) return s;
    if (s->used < oldest->used) oldest = s;
  }
  return oldest;
}

/* What another stream had, or what was too small, is freed when the device is done with it. */
static gpr_status make(stream_scratch *s, int device, CUstream stream, unsigned long long id,
                       size_t bytes) {
  if (s->memory) cu.MemFree(s->memory);
  *s = (stream_scratch){.stream = id, .bytes = LEAST_BYTES};
  while (s->bytes < bytes) s->bytes *= 2;
  gpr_status status = check(cu.MemAlloc(&s->memory, s->bytes), "cuMemAlloc", device);
  if (status) {
    *s = (stream_scratch){.memory = NULL};
    return status;
  }
  status = check(cu.MemsetD8Async(s->memory, 0, s->bytes, stream), "cuMemsetD8Async", device);
  if (!status) return GPR_OK;
  cu.MemFree(s->memory);
  *s = (stream_scratch){.memory = NULL};
  return status;
}

gpr_status gpr_stream_scratch(int device, CUstream stream, size_t bytes, void **out) {
  unsigned long long id;
  *out = NULL;
  if (bytes > MOST_BYTES || gpr_cuda_is_capturing(stream)) return GPR_OK;
  gpr_status status = check(cu.StreamGetId(stream, &id), "cuStreamGetId", device);
  if (status) return status;
  pthread_mutex_lock(&kept.lock);
  stream_scratch *s = place_of(device, id);
  if (!s->memory || s->stream != id || s->bytes < bytes) {
    const int before = gpr_cuda_relaxed(); /* another stream may be captured meanwhile */
    status = make(s, device, stream, id, bytes);
    gpr_cuda_strict(before);
  }
  s->used = ++kept.uses;
  *out = s->memory;
  pthread_mutex_unlock(&kept.lock);
  return status;
}

/* --- waiting -----------------------------------------------------------------------------------
 */

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
  gpr_status status =
      check(cu.EventCreate(&w->done, CU_EVENT_DISABLE_TIMING), "cuEventCreate", device);
  if (!status)
    status = check(cu.MemHostAlloc(&w->least, LINE + GPR_WAITER_BYTES,
                                   CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
                   "cuMemHostAlloc", device);
  if (status) {
    gpr_waiter_free(w);
    return status;
  }
  w->results = (char *)w->least + LINE;
  *out = w;
  return GPR_OK;
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
