/* The device query and the bandwidth test. */
#include <stdlib.h>
#include <string.h>

#include "../errors.h"
#include "gpu.h"
#include "device.h"

static gpr_status query(int device, gpr_device *out) {
  CUdevice handle;
  size_t unused = 0, total = 0;
  gpr_status status;
  memset(out, 0, sizeof *out);
  if ((status = CU(device, DeviceGet, &handle, device)) ||
      (status = CU(device, DeviceGetName, out->name, (int)sizeof out->name - 1, handle)) ||
      (status = CU(device, MemGetInfo, &unused, &total)))
    return status;
  out->driver = cu.version;
  out->memory_total = (int64_t)total;
  out->memory_free = (int64_t)unused;
  out->major = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  out->minor = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  out->multiprocessors = gpr_cuda_multiprocessors(device);
  out->threads_per_multiprocessor =
      gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  out->bus_bits = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
  out->clock_hertz = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device) * INT64_C(1000);
  out->memory_clock_hertz =
      gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) * INT64_C(1000);
  out->l2_bytes = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  out->shared_bytes =
      gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  return GPR_OK;
}

gpr_status gpr_device_info(int device, gpr_device *out) {
  if (!out) return gpr_fail(GPR_BAD_VALUE, "gpr_device_info: there is no place for the answer");
  return ON(device, query(device, out));
}

typedef struct transfer {
  void *to; /* NULL: `from` is only read */
  const void *from;
  int64_t bytes;
  double *rate;    /* bytes a second */
  CUfunction read; /* reads where there is no `to` */
} transfer;

static gpr_status transfer_once(const transfer *t, int device, CUstream stream) {
  if (t->to)
    return check(cu.MemcpyAsync(t->to, t->from, (size_t)t->bytes, stream), "a transfer", device);
  gpr_read_args args = {.data = t->from, .bytes = t->bytes, .never = (uint32_t *)t->from};
  return gpr_cuda_start(t->read, (int64_t)gpr_cuda_multiprocessors(device) * GPR_READ_BLOCKS,
                        GPR_READ_THREADS, &args, "a transfer", device, stream);
}

static gpr_status transfer_rate(const transfer *t, int device, CUstream stream, CUevent begin,
                                CUevent end) {
  enum { TIMES = 9 };
  float times[TIMES];
  gpr_status status;
  for (int i = -1; i < TIMES; i++) { /* the first is not counted */
    float time = 0;
    if ((status = CU(device, EventRecord, begin, stream)) ||
        (status = transfer_once(t, device, stream)) ||
        (status = CU(device, EventRecord, end, stream)) ||
        (status = check(cu.EventSynchronize(end), "a transfer", device)) ||
        (status = CU(device, EventElapsedTime, &time, begin, end)))
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
  CUstream stream = NULL;
  CUevent begin = NULL, end = NULL;
  CUfunction read;
  CUcontext before;
  if (bytes < 16 || bytes > INT64_MAX / 2)
    return gpr_fail(GPR_BAD_VALUE, "the bandwidth of %lld bytes cannot be measured",
                    (long long)bytes);
  if (!out) return gpr_fail(GPR_BAD_VALUE, "gpr_bandwidth_test: there is no place for the answer");
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  memset(out, 0, sizeof *out);
  if (!(pageable = malloc((size_t)bytes))) {
    status = gpr_fail(GPR_OUT_OF_MEMORY, "no memory for %lld bytes", (long long)bytes);
    goto fail;
  }
  const unsigned pinning = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  if ((status = gpr_cuda_function_now(gpr_gpu_table_cuda.read, device, &read)) ||
      (status = CU(device, MemHostAlloc, &pinned, (size_t)bytes, pinning)) ||
      (status = CU(device, MemAlloc, &here, (size_t)bytes)) ||
      (status = CU(device, MemAlloc, &there, (size_t)bytes)) ||
      (status = CU(device, StreamCreate, &stream, CU_STREAM_NON_BLOCKING)) ||
      (status = CU(device, EventCreate, &begin, CU_EVENT_DEFAULT)) ||
      (status = CU(device, EventCreate, &end, CU_EVENT_DEFAULT)))
    goto fail;
  memset(pageable, 0x5a, (size_t)bytes); /* pages that were never written are all one */
  memset(pinned, 0x5a, (size_t)bytes);
  const transfer transfers[] = {{here, pinned, bytes, &out->to_device_pinned, NULL},
                                {there, pageable, bytes, &out->to_device_pageable, NULL},
                                {pinned, here, bytes, &out->to_host_pinned, NULL},
                                {pageable, here, bytes, &out->to_host_pageable, NULL},
                                {there, here, bytes, &out->on_device, NULL},
                                {NULL, here, bytes, &out->read, read}};
  for (size_t i = 0; !status && i < sizeof transfers / sizeof *transfers; i++)
    status = transfer_rate(&transfers[i], device, stream, begin, end);
  out->on_device *= 2; /* read and written */
fail:
  if (end) cu.EventDestroy(end);
  if (begin) cu.EventDestroy(begin);
  if (stream) cu.StreamDestroy(stream);
  if (there) cu.MemFree(there);
  if (here) cu.MemFree(here);
  if (pinned) cu.MemFreeHost(pinned);
  free(pageable);
  gpr_cuda_leave(device, before);
  return status;
}
