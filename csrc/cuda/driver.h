/* The CUDA driver, found when it is first asked for: libcuda.so.1 comes with it, and no header of a
 * toolkit is needed. The names are the driver's own, as its documentation has them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_INVALID_SOURCE = 300,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
};
enum {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
};
enum {
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
};
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, CU_MEMORYTYPE_UNIFIED = 4 };
enum { CU_MEMHOSTALLOC_PORTABLE = 1, CU_MEMHOSTALLOC_DEVICEMAP = 2 };
enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_MODE_RELAXED = 2 };
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_LOCATION_TYPE_DEVICE = 1 };

typedef struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
  void *kern;
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  int srcMemoryType;
  const void *srcHost, *srcDevice;
  void *srcArray;
  size_t srcPitch, dstXInBytes, dstY;
  int dstMemoryType;
  void *dstHost, *dstDevice, *dstArray;
  size_t dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUmemPoolProps {
  int allocType, handleTypes;
  struct {
    int type, id;
  } location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

/* X(name, symbol of libcuda, parameters). An address on the device is the driver's 64-bit integer:
 * where the host's pointers are as wide, void * is handed over alike. */
#define GPR_DRIVER(X)                                                                            \
  X(DriverGetVersion, "cuDriverGetVersion", (int *))                                             \
  X(Init, "cuInit", (unsigned))                                                                  \
  X(GetErrorName, "cuGetErrorName", (CUresult, const char **))                                   \
  X(GetErrorString, "cuGetErrorString", (CUresult, const char **))                               \
  X(DeviceGetCount, "cuDeviceGetCount", (int *))                                                 \
  X(DeviceGet, "cuDeviceGet", (CUdevice *, int))                                                 \
  X(DeviceGetName, "cuDeviceGetName", (char *, int, CUdevice))                                   \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                          \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                 \
  X(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext *))                                             \
  X(CtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                          \
  X(CtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *))                                          \
  X(ModuleLoadData, "cuModuleLoadData", (CUmodule *, const void *))                              \
  X(ModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))            \
  X(ModuleUnload, "cuModuleUnload", (CUmodule))                                                  \
  X(LaunchKernel, "cuLaunchKernel",                                                              \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
     void **, void **))                                                                          \
  X(OccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor",    \
    (int *, CUfunction, int, size_t))                                                            \
  X(MemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                                         \
  X(MemAlloc, "cuMemAlloc_v2", (void *, size_t))                                                 \
  X(MemFree, "cuMemFree_v2", (void *))                                                           \
  X(MemHostAlloc, "cuMemHostAlloc", (void *, size_t, unsigned))                                  \
  X(MemFreeHost, "cuMemFreeHost", (void *))                                                      \
  X(MemPoolCreate, "cuMemPoolCreate", (CUmemoryPool *, const CUmemPoolProps *))                  \
  X(MemPoolSetAttribute, "cuMemPoolSetAttribute", (CUmemoryPool, int, void *))                   \
  X(MemPoolDestroy, "cuMemPoolDestroy", (CUmemoryPool))                                          \
  X(MemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", (void *, size_t, CUmemoryPool, CUstream))  \
  X(MemFreeAsync, "cuMemFreeAsync", (void *, CUstream))                                          \
  X(MemcpyHtoD, "cuMemcpyHtoD_v2", (void *, const void *, size_t))                               \
  X(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *, const void *, size_t))                               \
  X(MemcpyAsync, "cuMemcpyAsync", (void *, const void *, size_t, CUstream))                      \
  X(Memcpy2DAsync, "cuMemcpy2DAsync_v2", (const CUDA_MEMCPY2D *, CUstream))                      \
  X(MemsetD8Async, "cuMemsetD8Async", (void *, unsigned char, size_t, CUstream))                 \
  X(PointerGetAttributes, "cuPointerGetAttributes", (unsigned, int *, void **, const void *))    \
  X(StreamCreate, "cuStreamCreate", (CUstream *, unsigned))                                      \
  X(StreamDestroy, "cuStreamDestroy_v2", (CUstream))                                             \
  X(StreamQuery, "cuStreamQuery", (CUstream))                                                    \
  X(StreamSynchronize, "cuStreamSynchronize", (CUstream))                                        \
  X(StreamGetId, "cuStreamGetId", (CUstream, unsigned long long *))                              \
  X(StreamIsCapturing, "cuStreamIsCapturing", (CUstream, int *))                                 \
  X(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *))               \
  X(StreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                         \
  X(EventCreate, "cuEventCreate", (CUevent *, unsigned))                                         \
  X(EventDestroy, "cuEventDestroy_v2", (CUevent))                                                \
  X(EventRecord, "cuEventRecord", (CUevent, CUstream))                                           \
  X(EventQuery, "cuEventQuery", (CUevent))                                                       \
  X(EventSynchronize, "cuEventSynchronize", (CUevent))                                           \
  X(EventElapsedTime, "cuEventElapsedTime", (float *, CUevent, CUevent))                         \
  X(GraphCreate, "cuGraphCreate", (CUgraph *, unsigned))                                         \
  X(GraphDestroy, "cuGraphDestroy", (CUgraph))                                                   \
  X(GraphAddKernelNode, "cuGraphAddKernelNode_v2",                                               \
    (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const CUDA_KERNEL_NODE_PARAMS *))      \
  X(GraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, uint64_t))         \
  X(GraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2",                           \
    (CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *))                                 \
  X(GraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                                       \
  X(GraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))

typedef struct gpr_driver {
#define GPR_X(name, symbol, parameters) CUresult(*name) parameters;
  GPR_DRIVER(GPR_X)
#undef GPR_X
  int version; /* 1000 * major + 10 * minor of the CUDA that it is for */
} gpr_driver;

/* To be called once gpr_driver_open() has given NULL. */
extern gpr_driver cu;

/* NULL, or why there is no driver: the text is the library's. */
const char *gpr_driver_open(void);
