/* Device memory in the order of a stream, from a pool that keeps some of it for the next call. */
#include <pthread.h>

#include "../errors.h"
#include "gpu.h"
#include "device.h"

/* What is kept when nothing is in use: two slabs, and their results. */
static const uint64_t kept_bytes = UINT64_C(136) << 20;

static struct {
  pthread_mutex_t lock;
  CUmemoryPool pool[GPR_DEVICES_MAX];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static gpr_status make_pool(int device) {
  const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  uint64_t keep = kept_bytes;
  CUmemoryPool pool;
  const int before = gpr_cuda_relaxed();
  gpr_status status = CU(device, MemPoolCreate, &pool, &wanted);
  gpr_cuda_strict(before);
  if (status) return status;
  status = CU(device, MemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
  if (status)
    cu.MemPoolDestroy(pool);
  else
    memory.pool[device] = pool;
  return status;
}

gpr_status gpr_cuda_allocate(void **out, size_t bytes, int device, CUstream stream) {
  gpr_status status = GPR_OK;
  *out = NULL;
  pthread_mutex_lock(&memory.lock);
  if (!memory.pool[device]) {
    const int before = gpr_cuda_relaxed(); /* a graph may be captured just now */
    status = make_pool(device);
    gpr_cuda_strict(before);
  }
  pthread_mutex_unlock(&memory.lock);
  if (status) return status;
  return CU(device, MemAllocFromPoolAsync, out, bytes + !bytes, memory.pool[device], stream);
}

void gpr_cuda_release(void *memory, CUstream stream) {
  if (memory) cu.MemFreeAsync(memory, stream);
}

/* --- for results that stay on the device ------------------------------------------------------ */

static gpr_status allocate(int device, size_t bytes, void *stream, void **out) {
  if (!gpr_cuda_is_capturing(stream)) return gpr_cuda_allocate(out, bytes, device, stream);
  return gpr_fail(GPR_BAD_VALUE,
                  "a graph that is captured on cuda:%d cannot have memory of gpureduce's own: "
                  "give out= there",
                  device);
}

gpr_status gpr_gpu_allocate(int device, size_t bytes, void *stream, void **out) {
  *out = NULL;
  return ON(device, allocate(device, bytes, stream, out));
}

/* The legacy default stream has another name: 1. */
static int is_default(const void *stream) { return !stream || (uintptr_t)stream == 1; }

static gpr_status make_mark(int device, CUstream stream, void **mark) {
  CUevent event = NULL;
  gpr_status status = CU(device, EventCreate, &event, CU_EVENT_DISABLE_TIMING);
  if (!status) status = CU(device, EventRecord, event, stream);
  if (!status)
    *mark = event;
  else if (event)
    cu.EventDestroy(event);
  return status;
}

gpr_status gpr_gpu_mark(int device, void *stream, void **mark) {
  *mark = NULL;
  return is_default(stream) ? GPR_OK : ON(device, make_mark(device, stream, mark));
}

gpr_status gpr_gpu_put(int device, void *stream, void *to, const void *from, size_t bytes) {
  return ON(device, CU(device, MemcpyAsync, to, from, bytes, stream));
}

int gpr_gpu_is_capturing(int device, void *stream) {
  CUcontext before;
  if (gpr_cuda_enter(device, &before)) return 0;
  const int is_capturing = gpr_cuda_is_capturing(stream);
  gpr_cuda_leave(device, before);
  return is_capturing;
}

/* A graph waits for nothing outside of it. */
static gpr_status check_graphs(void *before, void *stream) {
  if (gpr_cuda_is_capturing(before) == gpr_cuda_is_capturing(stream)) return GPR_OK;
  return gpr_fail(GPR_BAD_VALUE,
                  "one of the arrays is of a stream that is captured into a graph, and another is "
                  "not: give arrays of the captured stream alone");
}

static gpr_status order(int device, void *before, void *stream) {
  void *mark = NULL;
  gpr_status status = check_graphs(before, stream);
  if (!status) status = make_mark(device, before, &mark);
  if (!status) status = CU(device, StreamWaitEvent, stream, mark, 0);
  if (mark) cu.EventDestroy(mark);
  return status;
}

gpr_status gpr_gpu_order(int device, void *before, void *stream) {
  const int are_one = before == stream || (is_default(before) && is_default(stream));
  return are_one ? GPR_OK : ON(device, order(device, before, stream));
}

gpr_status gpr_gpu_follow(int device, void *mark, void *stream) {
  if (!mark) return gpr_gpu_order(device, NULL, stream);
  return ON(device, CU(device, StreamWaitEvent, stream, mark, 0));
}

/* Without the order the host waits; memory that may be in use still is given up. */
void gpr_gpu_release(int device, void *memory, void *mark) {
  CUcontext before;
  const int ordered = gpr_gpu_follow(device, mark, NULL) == GPR_OK;
  if (gpr_cuda_enter(device, &before)) return;
  if (ordered || cu.EventSynchronize(mark) == CUDA_SUCCESS) gpr_cuda_release(memory, NULL);
  if (mark) cu.EventDestroy(mark);
  gpr_cuda_leave(device, before);
}

gpr_status gpr_gpu_pin(size_t bytes, void **out) {
  *out = NULL;
  return ON(0, CU(0, MemHostAlloc, out, bytes, CU_MEMHOSTALLOC_PORTABLE));
}

void gpr_gpu_unpin(void *memory) {
  CUcontext before;
  if (!memory || gpr_cuda_enter(0, &before)) return;
  cu.MemFreeHost(memory);
  gpr_cuda_leave(0, before);
}

gpr_status gpr_gpu_wait(int device, void *stream) {
  return ON(device, gpr_cuda_is_capturing(stream) ? GPR_OK : CU(device, StreamSynchronize, stream));
}
