/* Device memory in the order of a stream, from a pool that keeps some of it for the next call. */
#include <cuda_runtime.h>
#include <pthread.h>

#include "gpu_device.h"

enum { DEVICES_MAX = 64 };
/* What is kept when nothing is in use: a slab. */
static const uint64_t kept_bytes = UINT64_C(64) << 20;

static struct {
  pthread_mutex_t lock;
  cudaMemPool_t pool[DEVICES_MAX];
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
