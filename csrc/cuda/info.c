/* The device query and the bandwidth test. */
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>

#include "../errors.h"
#include "gpu.h"
#include "device.h"

static int attribute(enum cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) cudaGetLastError();
  return value;
}

gpr_status gpr_device_info(int device, gpr_device *out) {
  int before;
  size_t unused = 0, total = 0;
  struct cudaDeviceProp properties;
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  memset(out, 0, sizeof *out);
  if ((status = check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties",
                      device)) ||
      (status = check(cudaMemGetInfo(&unused, &total), "cudaMemGetInfo", device)) ||
      (status = check(cudaDriverGetVersion(&out->driver), "cudaDriverGetVersion", device)) ||
      (status = check(cudaRuntimeGetVersion(&out->runtime), "cudaRuntimeGetVersion", device)))
    goto end;
  memcpy(out->name, properties.name, sizeof out->name);
  out->name[sizeof out->name - 1] = 0;
  out->memory_total = (int64_t)total;
  out->memory_free = (int64_t)unused;
  out->major = attribute(cudaDevAttrComputeCapabilityMajor, device);
  out->minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
  out->multiprocessors = attribute(cudaDevAttrMultiProcessorCount, device);
  out->threads_per_multiprocessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device);
  out->bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
  out->clock_hertz = attribute(cudaDevAttrClockRate, device) * INT64_C(1000);
  out->memory_clock_hertz = attribute(cudaDevAttrMemoryClockRate, device) * INT64_C(1000);
  out->l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
  out->shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
end:
  cudaSetDevice(before);
  return status;
}

typedef struct transfer {
  void *to; /* NULL: `from` is only read */
  const void *from;
  int64_t bytes;
  double *rate; /* bytes a second */
} transfer;

static cudaError_t transfer_once(const transfer *t, int device, cudaStream_t stream) {
  if (t->to) return cudaMemcpyAsync(t->to, t->from, (size_t)t->bytes, cudaMemcpyDefault, stream);
  gpr_read_args args = {.data = t->from, .bytes = t->bytes, .never = (uint32_t *)t->from};
  void *arguments[] = {&args};
  return cudaLaunchKernel(
      (const void *)gpr_gpu_table_cuda.read,
      (dim3){(unsigned)(gpr_cuda_multiprocessors(device) * GPR_READ_BLOCKS), 1, 1},
      (dim3){GPR_READ_THREADS, 1, 1}, arguments, 0, stream);
}

static gpr_status transfer_rate(const transfer *t, int device, cudaStream_t stream,
                                cudaEvent_t begin, cudaEvent_t end) {
  enum { TIMES = 9 };
  float times[TIMES];
  gpr_status status;
  for (int i = -1; i < TIMES; i++) { /* the first is not counted */
    float time = 0;
    if ((status = check(cudaEventRecord(begin, stream), "cudaEventRecord", device)) ||
        (status = check(transfer_once(t, device, stream), "a transfer", device)) ||
        (status = check(cudaEventRecord(end, stream), "cudaEventRecord", device)) ||
        (status = check(cudaEventSynchronize(end), "a transfer", device)) ||
        (status = check(cudaEventElapsedTime(&time, begin, end), "cudaEventElapsedTime", device)))
      return status;
    int at = i;
    for (; at > 0 && times[at - 1] > time; at--) times[at] = times[at - 1];
    if (i >= 0) times[at] = time;
  }
  *t->rate = (double)t->bytes / (times[TIMES / 2] * 1e-3);
  return GPR_OK;
}

gpr_status gpr_bandwidth_test(int device, int64_t bytes, gpr_bandwidth *out) {
  void *here = NULL, *there = NULL, *pinned = NULL, *pageable = NULL;
  cudaStream_t stream = NULL;
  cudaEvent_t begin = NULL, end = NULL;
  int before;
  if (bytes < 16 || bytes > INT64_MAX / 2)
    return gpr_fail(GPR_BAD_VALUE, "the bandwidth of %lld bytes cannot be measured",
                    (long long)bytes);
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  memset(out, 0, sizeof *out);
  if (!(pageable = malloc((size_t)bytes))) {
    status = gpr_fail(GPR_OUT_OF_MEMORY, "no memory for %lld bytes", (long long)bytes);
    goto fail;
  }
  if ((status = check(cudaHostAlloc(&pinned, (size_t)bytes, cudaHostAllocPortable), "cudaHostAlloc",
                      device)) ||
      (status = check(cudaMalloc(&here, (size_t)bytes), "cudaMalloc", device)) ||
      (status = check(cudaMalloc(&there, (size_t)bytes), "cudaMalloc", device)) ||
      (status = check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate",
                      device)) ||
      (status = check(cudaEventCreate(&begin), "cudaEventCreate", device)) ||
      (status = check(cudaEventCreate(&end), "cudaEventCreate", device)))
    goto fail;
  memset(pageable, 0x5a, (size_t)bytes); /* pages that were never written are all one */
  memset(pinned, 0x5a, (size_t)bytes);
  const transfer transfers[] = {{here, pinned, bytes, &out->to_device_pinned},
                                {there, pageable, bytes, &out->to_device_pageable},
                                {pinned, here, bytes, &out->to_host_pinned},
                                {pageable, here, bytes, &out->to_host_pageable},
                                {there, here, bytes, &out->on_device},
                                {NULL, here, bytes, &out->read}};
  for (size_t i = 0; !status && i < sizeof transfers / sizeof *transfers; i++)
    status = transfer_rate(&transfers[i], device, stream, begin, end);
  out->on_device *= 2; /* read and written */
fail:
  if (end) cudaEventDestroy(end);
  if (begin) cudaEventDestroy(begin);
  if (stream) cudaStreamDestroy(stream);
  cudaFree(there);
  cudaFree(here);
  cudaFreeHost(pinned);
  free(pageable);
  cudaSetDevice(before);
  return status;
}
