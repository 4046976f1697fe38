/* Device memory in the order of a stream, from a pool that keeps some of it for the next call. */
#include <cuda_runtime.h>
#include <pthread.h>

#include "gpu.h"
#include "device.h"

/* What is kept when nothing is in use: a slab. */
static const uint64_t kept_bytes = UINT64_C(64) << 20;

static struct {
  pthread_mutex_t lock;
  cudaMemPool_t pool[GPR_DEVICES_MAX];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static gpr_status make_pool(int device) {
  const struct cudaMemPoolProps wanted = {
      .allocType = cudaMemAllocationTypePinned,
      .location = {.type = cudaMemLocationTypeDevice, .id = device}};
  uint64_t keep = kept_bytes;
  gpr_status status =
      check(cudaMemPoolCreate(&memory.pool[device], &wanted), "cudaMemPoolCreate", device);
  if (!status)
    status =
        check(cudaMemPoolSetAttribute(memory.pool[device], cudaMemPoolAttrReleaseThreshold, &keep),
              "cudaMemPoolSetAttribute", device);
  return status;
}

gpr_status gpr_cuda_allocate(void **out, size_t bytes, int device, void *stream) {
  gpr_status status = GPR_OK;
  *out = NULL;
  pthread_mutex_lock(&memory.lock);
  if (!memory.pool[device]) status = make_pool(device);
  pthread_mutex_unlock(&memory.lock);
  if (status) return status;
  return check(cudaMallocFromPoolAsync(out, bytes + !bytes, memory.pool[device], stream),
               "cudaMallocAsync", device);
}

void gpr_cuda_release(void *memory, void *stream) {
  if (memory && cudaFreeAsync(memory, stream) != cudaSuccess) cudaGetLastError();
}

/* --- for results that stay on the device -------------------------------------------------------
 */

gpr_status gpr_gpu_allocate(int device, size_t bytes, void *stream, void **out) {
  int before;
  gpr_status status = gpr_cuda_enter(device, &before);
  *out = NULL;
  if (status) return status;
  status = gpr_cuda_allocate(out, bytes, device, stream);
  cudaSetDevice(before);
  return status;
}

static int is_default(const void *stream) {
  return !stream || stream == (const void *)cudaStreamLegacy;
}

gpr_status gpr_gpu_mark(int device, void *stream, void **mark) {
  cudaEvent_t event = NULL;
  int before;
  *mark = NULL;
  if (is_default(stream)) return GPR_OK;
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  status =
      check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate", device);
  if (!status) status = check(cudaEventRecord(event, stream), "cudaEventRecord", device);
  if (status && event) cudaEventDestroy(event);
  if (!status) *mark = event;
  cudaSetDevice(before);
  return status;
}

gpr_status gpr_gpu_follow(int device, void *mark, void *stream) {
  cudaEvent_t event = mark;
  int before;
  if (!mark && is_default(stream)) return GPR_OK;
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  if (!mark) {
    status =
        check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate", device);
    if (!status) status = check(cudaEventRecord(event, NULL), "cudaEventRecord", device);
  }
  if (!status) status = check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent", device);
  if (!mark && event) cudaEventDestroy(event);
  cudaSetDevice(before);
  return status;
}

void gpr_gpu_release(int device, void *memory, void *mark) {
  int before;
  if (gpr_gpu_follow(device, mark, NULL) || gpr_cuda_enter(device, &before)) return;
  gpr_cuda_release(memory, NULL);
  if (mark) cudaEventDestroy(mark);
  cudaSetDevice(before);
}

gpr_status gpr_gpu_wait(int device, void *stream) {
  int before;
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  status = check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", device);
  cudaSetDevice(before);
  return status;
}
