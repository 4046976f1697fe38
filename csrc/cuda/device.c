/* The devices: how many there are, which context is current, what the driver's errors mean. */
#define _GNU_SOURCE
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../errors.h"
#include "../threads.h"
#include "gpu.h"

/* A sleep ends 50 µs late or more, a quarter of the time of 1 GiB: the waiting thread looks without
 * pause for as long as 8 GiB take, then sleeps a hundredth of the time that it has waited. */
enum { SPIN_NANOSECONDS = 2000 * 1000, NAP_MOST = 10 * 1000 * 1000 };

/* Those that nothing can be done without. */
enum { KNOWN = 3 };
static const int attributes[KNOWN] = {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR};

static struct {
  pthread_mutex_t lock;
  atomic_int count;  /* of devices, once known */
  atomic_int forked; /* this process is the child of one that used CUDA, and cannot */
  _Atomic(CUcontext) context[GPR_DEVICES_MAX];
  int known[GPR_DEVICES_MAX][KNOWN]; /* attributes[], once there is a context */
} devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- errors ----------------------------------------------------------------------------------- */

/* What ends a kernel (an address, a time, an assertion, an instruction) answers all later calls. */
static int ends_context(CUresult result) {
  return result == 700 || result == 702 || result == 710 || (result >= 714 && result <= 719);
}

gpr_status gpr_cuda_check(CUresult result, const char *call, int device) {
  const char *name = NULL, *text = NULL;
  if (result == CUDA_SUCCESS) return GPR_OK;
  cu.GetErrorName(result, &name);
  cu.GetErrorString(result, &text);
  return gpr_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? GPR_OUT_OF_MEMORY : GPR_DEVICE_ERROR,
                  "%s on cuda:%d: %s (%s)%s", call, device, text ? text : "unknown error",
                  name ? name : "?",
                  ends_context(result) ? "; CUDA cannot be used again in this process" : "");
}

/* --- which there are -------------------------------------------------------------------------- */

static void in_child(void) { atomic_store(&devices.forked, 1); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static int count_devices(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  int count = 0;
  const char *missing = gpr_driver_open();
  if (missing) {
    gpr_fail(GPR_DEVICE_ERROR, "no CUDA device can be used: %s", missing);
    return 0;
  }
  pthread_once(&once, watch_forks);
  const char *call = "cuInit", *name = NULL, *text = NULL;
  CUresult result = cu.Init(0);
  if (result == CUDA_SUCCESS) {
    call = "cuDeviceGetCount";
    result = cu.DeviceGetCount(&count);
  }
  if (result == CUDA_SUCCESS && count > 0) return count < GPR_DEVICES_MAX ? count : GPR_DEVICES_MAX;
  if (result == CUDA_SUCCESS || result == CUDA_ERROR_NO_DEVICE) {
    gpr_fail(GPR_DEVICE_ERROR,
             "no CUDA device can be used: the driver sees none; look whether nvidia-smi lists one "
             "that CUDA_VISIBLE_DEVICES hides");
    return 0;
  }
  cu.GetErrorName(result, &name);
  cu.GetErrorString(result, &text);
  gpr_fail(GPR_DEVICE_ERROR, "no CUDA device can be used: %s: %s (%s)", call,
           text ? text : "unknown error", name ? name : "?");
  return 0;
}

int gpr_device_count(void) {
  if (atomic_load_explicit(&devices.forked, memory_order_relaxed)) {
    gpr_fail(GPR_DEVICE_ERROR,
             "CUDA was used before fork(), and the child cannot use it: start "
             "processes with multiprocessing's \"spawn\"");
    return 0;
  }
  int count = atomic_load_explicit(&devices.count, memory_order_relaxed);
  if (count) return count;
  count = count_devices();
  atomic_store(&devices.count, count);
  return count;
}

int gpr_gpu_is_started(void) {
  for (int d = 0; d < GPR_DEVICES_MAX; d++)
    if (atomic_load(&devices.context[d])) return 1;
  return 0;
}

/* --- where memory is -------------------------------------------------------------------------- */

/* CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE (managed memory is) or 0. */
static int memory_at(const void *address, int *device) {
  unsigned type = 0, managed = 0;
  int which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *to[] = {&type, &managed, device};
  *device = -1;
  if (!gpr_device_count() || cu.PointerGetAttributes(3, which, to, address) != CUDA_SUCCESS)
    return 0;
  return managed ? CU_MEMORYTYPE_DEVICE : (int)type;
}

int gpr_gpu_pinned(const void *address) {
  int device;
  return memory_at(address, &device) == CU_MEMORYTYPE_HOST;
}

int gpr_gpu_device_of(const void *address) {
  int device;
  return memory_at(address, &device) == CU_MEMORYTYPE_DEVICE ? device : -1;
}

/* --- the thread's device ---------------------------------------------------------------------- */

/* The primary context is kept for the rest of the process, as the CUDA runtime does. */
static gpr_status retain_context(int device) {
  CUdevice handle;
  CUcontext context = NULL;
  gpr_status status = GPR_OK;
  pthread_mutex_lock(&devices.lock);
  if (!atomic_load(&devices.context[device])) {
    status = CU(device, DeviceGet, &handle, device);
    for (int i = 0; !status && i < KNOWN; i++)
      status = CU(device, DeviceGetAttribute, &devices.known[device][i], attributes[i], handle);
    if (!status) status = CU(device, DevicePrimaryCtxRetain, &context, handle);
    if (!status) atomic_store(&devices.context[device], context);
  }
  pthread_mutex_unlock(&devices.lock);
  return status;
}

gpr_status gpr_cuda_enter(int device, CUcontext *before) {
  const int count = gpr_device_count();
  gpr_status status = GPR_OK;
  if (!count) return GPR_DEVICE_ERROR;
  if (device < 0 || device >= count)
    return gpr_fail(GPR_DEVICE_ERROR, "there is no device cuda:%d: there are %d, numbered from 0",
                    device, count);
  if (!atomic_load(&devices.context[device])) status = retain_context(device);
  if (!status) status = CU(device, CtxGetCurrent, before);
  if (status || *before == devices.context[device]) return status;
  return CU(device, CtxPushCurrent, devices.context[device]);
}

void gpr_cuda_leave(int device, CUcontext before) {
  CUcontext ours;
  if (before != devices.context[device]) cu.CtxPopCurrent(&ours);
}

int gpr_cuda_attribute(int which, int device) {
  int value = 0;
  CUdevice handle;
  for (int i = 0; i < KNOWN; i++)
    if (which == attributes[i]) return devices.known[device][i];
  if (cu.DeviceGet(&handle, device) != CUDA_SUCCESS) return 0;
  return cu.DeviceGetAttribute(&value, which, handle) == CUDA_SUCCESS ? value : 0;
}

int gpr_cuda_multiprocessors(int device) {
  return gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
}

/* --- launches and waits ----------------------------------------------------------------------- */

gpr_status gpr_cuda_start(CUfunction function, int64_t blocks, int threads, void *arguments,
                          const char *what, int device, CUstream stream) {
  void *parameters[] = {arguments};
  return check(cu.LaunchKernel(function, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, stream,
                               parameters, NULL),
               what, device);
}

/* The default stream cannot be used while others of the context are captured. */
int gpr_cuda_is_capturing(CUstream stream) {
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = cu.StreamIsCapturing(stream, &status);
  return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
         (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE);
}

int gpr_cuda_relaxed(void) {
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cu.ThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

void gpr_cuda_strict(int before) { cu.ThreadExchangeStreamCaptureMode(&before); }

gpr_status gpr_cuda_copy_rows(void *to, int64_t to_pitch, const void *from, int64_t from_pitch,
                              int64_t width, int64_t rows, int device, CUstream stream) {
  const CUDA_MEMCPY2D rectangle = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                   .srcDevice = from,
                                   .srcPitch = (size_t)from_pitch,
                                   .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                   .dstDevice = to,
                                   .dstPitch = (size_t)to_pitch,
                                   .WidthInBytes = (size_t)width,
                                   .Height = (size_t)rows};
  return CU(device, Memcpy2DAsync, &rectangle, stream);
}

int gpr_cuda_wait(int64_t since, int64_t now) {
  const int64_t waited = now - since;
  if (waited <= SPIN_NANOSECONDS) return 0;
  gpr_nap(waited / 100 < NAP_MOST ? waited / 100 : NAP_MOST);
  return 1;
}
