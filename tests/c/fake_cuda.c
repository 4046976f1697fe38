/* A CUDA driver without a device, for tests: built as libcuda.so.1.
 *
 * Device memory is the host's, by addresses that only the driver can read. No kernel runs, but one
 * over a whole array leaves an answer where the host waits for it: zeros or, where a test says what
 * the kernel folds (fake_folds), the state of what it was given. The driver counts its
 * calls and what lives, fails where it is told to, and notes as mistakes what the real one would
 * not forgive. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../csrc/cuda/driver.h"
#include "../../kernels/abi/axes.h"

#define EXPORT __attribute__((visibility("default")))

enum {
  INVALID_VALUE = 1,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  UNKNOWN = 999,
};
enum { DEVICES_MAX = 64, TRACE_MOST = 1 << 16, DEPTH_MOST = 16, MULTIPROCESSORS = 4 };
#define MEMORY_BYTES ((size_t)4 << 30)
#define SPAN_BYTES ((size_t)1 << 36) /* of all addresses of device memory: none comes twice */

/* One that is not defined below is an undefined symbol where this is linked. */
#define GPR_X(name, symbol, parameters) EXPORT CUresult fake_##name parameters __asm__(symbol);
GPR_DRIVER(GPR_X)
#undef GPR_X
#define GPR_X(name, symbol, parameters) CALL_##name,
enum call { GPR_DRIVER(GPR_X) CALL_CtxSetCurrent, CALLS };
#undef GPR_X
#define GPR_X(name, symbol, parameters) symbol,
static const char *const symbols[CALLS] = {GPR_DRIVER(GPR_X) "cuCtxSetCurrent"};
#undef GPR_X
#define GPR_X(name, symbol, parameters) (void *)fake_##name,
EXPORT const void *const fake_all[] = {GPR_DRIVER(GPR_X) NULL};
#undef GPR_X

enum kind {
  DEVICE_MEMORY,
  POOL_MEMORY,
  HOST_MEMORY,
  STREAMS,
  EVENTS,
  GRAPHS,
  RUNNABLES,
  MODULES,
  POOLS,
  KINDS
};
static const char *const kinds[KINDS] = {"device memory", "pool memory", "host memory",
                                         "streams",       "events",      "graphs",
                                         "runnables",     "modules",     "pools"};

typedef struct kernel {
  struct object *module;
  int answers;
  gpr_flat_args args;
} kernel;

/* Never freed: a handle that died is not another's. */
typedef struct object {
  struct object *next;
  enum kind kind;
  int device;
  char *at; /* memory */
  size_t bytes;
  int times, recorded; /* events */
  int keeps;           /* pools: they were told how much */
  kernel kernel;       /* graphs and runnables */
  char name[512];      /* modules */
} object;

static struct {
  pthread_mutex_t lock;
  int read, devices, version, capability, ready;
  object *alive;
  char *addresses, *memory; /* memory: where what the addresses name really lies */
  size_t used;
  int live[KINDS];
  long calls, mistakes;
  unsigned char trace[TRACE_MOST];
  char mistake[256];
  long fail_at, fail_name_at; /* calls from now; 0: none */
  int fail_result, fail_name_result, fail_always;
  char fail_name[64];
  const char *failed;
  int late, silent, miss, folds;
  gpr_flat_args pending[64];
  int pendings;
  const void *captured; /* a stream, or NULL */
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char contexts[DEVICES_MAX];
static _Thread_local struct {
  int depth;
  CUcontext on[DEPTH_MOST];
} stack;

/* --- what is noted -----------------------------------------------------------------------------
 */

static CUresult mistake(CUresult result, enum call call, const char *what) {
  if (!fake.mistakes++) snprintf(fake.mistake, sizeof fake.mistake, "%s: %s", symbols[call], what);
  return result;
}

static int number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text && *text ? atoi(text) : otherwise;
}

static void read_environment(void) {
  const char *capability = getenv("FAKE_CUDA_CAPABILITY"); /* 9.0 */
  if (fake.read) return;
  fake.read = 1;
  fake.devices = number("FAKE_CUDA_DEVICES", 1);
  fake.version = number("FAKE_CUDA_VERSION", 13000);
  fake.capability = capability ? 10 * atoi(capability) + atoi(strchr(capability, '.') + 1) : 90;
}

static CUcontext current(void) { return stack.depth ? stack.on[stack.depth - 1] : NULL; }
static int device_of(CUcontext context) { return (int)((char *)context - contexts); }
static int here(void) { return device_of(current()); }

static int fails(enum call call, CUresult *result) {
  if (fake.fail_at && !--fake.fail_at) return *result = fake.fail_result, 1;
  if (strcmp(symbols[call], fake.fail_name)) return 0;
  if (!fake.fail_always && (!fake.fail_name_at || --fake.fail_name_at)) return 0;
  return *result = fake.fail_name_result, 1;
}

/* What a captured stream does not survive, unless the thread says that it knows what it does. */
static int is_unsafe(enum call call) {
  return call == CALL_MemAlloc || call == CALL_MemFree || call == CALL_MemHostAlloc ||
         call == CALL_MemFreeHost || call == CALL_MemcpyHtoD || call == CALL_MemcpyDtoH ||
         call == CALL_ModuleLoadData || call == CALL_MemPoolCreate || call == CALL_EventQuery ||
         call == CALL_StreamSynchronize || call == CALL_EventSynchronize ||
         call == CALL_StreamQuery;
}
static _Thread_local int capture_mode;

/* Every call begins so, with the lock taken; nothing is done where it gives an error. */
enum needs { NOTHING, INIT, CONTEXT };
static CUresult begin(enum call call, enum needs needs) {
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&fake.lock);
  read_environment();
  if (fake.calls < TRACE_MOST) fake.trace[fake.calls] = (unsigned char)call;
  fake.calls++;
  if (fails(call, &result)) return fake.failed = symbols[call], result;
  if (fake.captured && is_unsafe(call) && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
    return mistake(UNKNOWN, call, "while a stream is captured");
  if (needs && !fake.ready) return mistake(NOT_INITIALIZED, call, "before cuInit");
  if (needs == CONTEXT && !current()) return mistake(INVALID_CONTEXT, call, "without a context");
  return CUDA_SUCCESS;
}
static CUresult end(CUresult result) {
  pthread_mutex_unlock(&fake.lock);
  return result;
}
#define BEGIN(name, needs)                   \
  const enum call call = CALL_##name;        \
  const CUresult begun = begin(call, needs); \
  if (begun != CUDA_SUCCESS) return end(begun)
#define WRONG(result, what) return end(mistake(result, call, what))

/* --- objects -----------------------------------------------------------------------------------
 */

static object *make(enum kind kind) {
  object *o = calloc(1, sizeof *o);
  o->kind = kind;
  o->device = current() ? here() : 0;
  o->next = fake.alive;
  fake.alive = o;
  fake.live[kind]++;
  return o;
}

static object *find(enum kind kind, const void *handle) {
  for (object *o = fake.alive; o; o = o->next)
    if (o == handle && o->kind == kind) return o;
  return NULL;
}

static void bury(object *dead) {
  object **at = &fake.alive;
  while (*at != dead) at = &(*at)->next;
  *at = dead->next;
  fake.live[dead->kind]--;
}

static int is_memory(const object *o) { return o->kind <= HOST_MEMORY; }
static object *memory_at(const void *address) {
  for (object *o = fake.alive; o; o = o->next)
    if (is_memory(o) && (const char *)address >= o->at && (const char *)address < o->at + o->bytes)
      return o;
  return NULL;
}
static int is_device_address(const void *address) {
  return fake.addresses && (const char *)address >= fake.addresses &&
         (const char *)address < fake.addresses + SPAN_BYTES;
}

/* Where `size` bytes really lie; NULL where they are not all of one allocation. What is nobody's is
 * the host's. */
static char *real(const void *address, size_t size) {
  const object *o = memory_at(address);
  if (!o) return is_device_address(address) ? NULL : (char *)address;
  if ((size_t)((const char *)address - o->at) + size > o->bytes) return NULL;
  if (o->kind == HOST_MEMORY) return (char *)address;
  return fake.memory + ((const char *)address - fake.addresses);
}

/* NULL and the two names of the default streams, or one that lives. */
static int is_stream(const void *stream) { return (uintptr_t)stream <= 2 || find(STREAMS, stream); }
static int stream_device(const void *stream) {
  return (uintptr_t)stream <= 2 ? here() : find(STREAMS, stream)->device;
}
static enum needs needs_of(const void *stream) { return (uintptr_t)stream <= 2 ? CONTEXT : INIT; }

/* --- control -----------------------------------------------------------------------------------
 */

/* All but what lives. */
EXPORT void fake_reset(void) {
  pthread_mutex_lock(&fake.lock);
  fake.calls = fake.mistakes = fake.fail_at = fake.fail_name_at = 0;
  fake.fail_always = fake.late = fake.silent = fake.miss = fake.pendings = 0;
  fake.fail_name[0] = 0;
  fake.failed = NULL;
  pthread_mutex_unlock(&fake.lock);
}
/* The n-th call from now, counted from 1. */
EXPORT void fake_fail_at(long n, CUresult result) {
  fake.fail_at = n;
  fake.fail_result = result;
}
/* The n-th call of that function, or with 0 every one. */
EXPORT void fake_fail(const char *name, long n, CUresult result) {
  snprintf(fake.fail_name, sizeof fake.fail_name, "%s", name);
  fake.fail_always = n == 0;
  fake.fail_name_at = n;
  fake.fail_name_result = result;
}
/* The function that was made to fail last, or NULL. */
EXPORT const char *fake_failed(void) { return fake.failed; }
EXPORT long fake_calls(void) { return fake.calls; }
EXPORT const char *fake_call(long i) {
  return i < fake.calls && i < TRACE_MOST ? symbols[fake.trace[i]] : NULL;
}
EXPORT const char *fake_kind(int kind) { return kind < KINDS ? kinds[kind] : NULL; }
EXPORT int fake_live(int kind) { return fake.live[kind]; }
EXPORT long fake_mistakes(void) { return fake.mistakes; }
EXPORT const char *fake_mistake(void) { return fake.mistakes ? fake.mistake : ""; }
/* Contexts on the thread's stack. */
EXPORT int fake_depth(void) { return stack.depth; }
/* The stream is captured from now on; with NULL none is. */
EXPORT void fake_capture(const void *stream) { fake.captured = stream; }
/* So many queries find work not done yet, and answers come after the last of them. */
EXPORT void fake_late(int queries) { fake.late = queries; }
/* So many launches leave no answer. */
EXPORT void fake_silent(int launches) { fake.silent = launches; }
/* So many launches for exact sums answer that there is more than their lines have. */
EXPORT void fake_miss(int launches) { fake.miss = launches; }
/* What kernels over whole arrays answer: zeros, or what they are given to fold. */
enum { FOLD_NOTHING, FOLD_SUMS_OF_INT64, FOLD_PRODUCTS_OF_DOUBLE };
EXPORT void fake_folds(int what) { fake.folds = what; }
EXPORT void fake_set(int devices, int version, int capability) {
  fake.read = 1;
  fake.devices = devices;
  fake.version = version;
  fake.capability = capability;
}

/* --- the driver and its devices ----------------------------------------------------------------
 */

CUresult fake_DriverGetVersion(int *version) {
  BEGIN(DriverGetVersion, NOTHING);
  *version = fake.version;
  return end(CUDA_SUCCESS);
}

CUresult fake_Init(unsigned flags) {
  BEGIN(Init, NOTHING);
  if (flags) WRONG(INVALID_VALUE, "flags");
  if (!fake.devices) return end(CUDA_ERROR_NO_DEVICE);
  fake.ready = 1;
  return end(CUDA_SUCCESS);
}

static const struct {
  CUresult result;
  const char *name, *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"}};

static CUresult describe(CUresult result, const char **text, int is_name) {
  *text = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].result == result) *text = is_name ? errors[i].name : errors[i].text;
  return *text ? CUDA_SUCCESS : INVALID_VALUE;
}
CUresult fake_GetErrorName(CUresult result, const char **text) {
  BEGIN(GetErrorName, NOTHING);
  return end(describe(result, text, 1));
}
CUresult fake_GetErrorString(CUresult result, const char **text) {
  BEGIN(GetErrorString, NOTHING);
  return end(describe(result, text, 0));
}

CUresult fake_DeviceGetCount(int *count) {
  BEGIN(DeviceGetCount, INIT);
  *count = fake.devices;
  return end(CUDA_SUCCESS);
}
CUresult fake_DeviceGet(CUdevice *device, int number) {
  BEGIN(DeviceGet, INIT);
  if (number < 0 || number >= fake.devices) WRONG(INVALID_DEVICE, "no such device");
  *device = number;
  return end(CUDA_SUCCESS);
}
CUresult fake_DeviceGetName(char *name, int room, CUdevice device) {
  BEGIN(DeviceGetName, INIT);
  snprintf(name, (size_t)room, "Fake GPU %d", device);
  return end(CUDA_SUCCESS);
}
CUresult fake_DeviceGetAttribute(int *value, int which, CUdevice device) {
  BEGIN(DeviceGetAttribute, INIT);
  (void)device;
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1500000; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = MULTIPROCESSORS; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 2000000; break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 256; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1 << 16; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = fake.capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = fake.capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 100 << 10; break;
    default: WRONG(INVALID_VALUE, "an attribute that is not known");
  }
  return end(CUDA_SUCCESS);
}

/* --- contexts ----------------------------------------------------------------------------------
 */

CUresult fake_DevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  BEGIN(DevicePrimaryCtxRetain, INIT);
  *context = (CUcontext)(contexts + device);
  return end(CUDA_SUCCESS);
}
CUresult fake_CtxGetCurrent(CUcontext *context) {
  BEGIN(CtxGetCurrent, INIT);
  *context = current();
  return end(CUDA_SUCCESS);
}
CUresult fake_CtxPushCurrent(CUcontext context) {
  BEGIN(CtxPushCurrent, INIT);
  if (stack.depth == DEPTH_MOST) WRONG(INVALID_VALUE, "contexts that nobody pops");
  stack.on[stack.depth++] = context;
  return end(CUDA_SUCCESS);
}
CUresult fake_CtxPopCurrent(CUcontext *context) {
  BEGIN(CtxPopCurrent, CONTEXT);
  *context = stack.on[--stack.depth];
  return end(CUDA_SUCCESS);
}
/* For the tests themselves, not for the library. */
EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  BEGIN(CtxSetCurrent, INIT);
  if (!context)
    stack.depth -= stack.depth > 0;
  else
    stack.on[stack.depth ? stack.depth - 1 : stack.depth++] = context;
  return end(CUDA_SUCCESS);
}

/* --- modules: "fake cubin sm_90 NAME", with a zero -----------------------------------------------
 */

CUresult fake_ModuleLoadData(CUmodule *module, const void *image) {
  BEGIN(ModuleLoadData, CONTEXT);
  int arch;
  char name[512];
  if (strncmp(image, "fake cubin ", 11) ||
      sscanf(image, "fake cubin sm_%d %511s", &arch, name) != 2)
    return end(CUDA_ERROR_INVALID_IMAGE);
  if (arch / 10 != fake.capability / 10 || arch > fake.capability)
    return end(CUDA_ERROR_NO_BINARY_FOR_GPU);
  object *o = make(MODULES);
  memcpy(o->name, name, sizeof name);
  *module = (CUmodule)o;
  return end(CUDA_SUCCESS);
}
CUresult fake_ModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  BEGIN(ModuleGetFunction, CONTEXT);
  const object *o = find(MODULES, module);
  if (!o) WRONG(INVALID_HANDLE, "no such module");
  if (strcmp(o->name, name)) return end(NOT_FOUND);
  *function = (CUfunction)o;
  return end(CUDA_SUCCESS);
}
CUresult fake_ModuleUnload(CUmodule module) {
  BEGIN(ModuleUnload, CONTEXT);
  object *o = find(MODULES, module);
  if (!o) WRONG(INVALID_HANDLE, "no such module");
  bury(o);
  return end(CUDA_SUCCESS);
}
CUresult fake_OccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                        int threads, size_t shared) {
  BEGIN(OccupancyMaxActiveBlocksPerMultiprocessor, CONTEXT);
  (void)shared;
  if (!find(MODULES, function) || threads < 1) WRONG(INVALID_HANDLE, "no such function");
  *blocks = 2;
  return end(CUDA_SUCCESS);
}

/* --- memory ------------------------------------------------------------------------------------
 */

static int reserve(void) {
  if (fake.addresses) return 1;
  char *at =
      mmap(NULL, 2 * SPAN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return 0;
  fake.addresses = at;
  fake.memory = at + SPAN_BYTES;
  return 1;
}

static CUresult allocate(enum call call, enum kind kind, size_t bytes, void *to) {
  const size_t room = (bytes + 4095 + 4096) & ~(size_t)4095; /* and a page that is nobody's */
  if (!bytes) return mistake(INVALID_VALUE, call, "of no bytes");
  if (bytes > MEMORY_BYTES || !reserve() || fake.used + room > SPAN_BYTES)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (mprotect(fake.memory + fake.used, room, PROT_READ | PROT_WRITE))
    return CUDA_ERROR_OUT_OF_MEMORY;
  object *o = make(kind);
  o->at = fake.addresses + fake.used;
  o->bytes = bytes;
  memset(fake.memory + fake.used, 0xa5, bytes < 65536 ? bytes : 65536);
  fake.used += room;
  *(void **)to = o->at;
  return CUDA_SUCCESS;
}
static CUresult release(enum call call, enum kind kind, void *address) {
  object *o = memory_at(address);
  if (!address) return CUDA_SUCCESS;
  if (!o || o->kind != kind || o->at != address)
    return mistake(INVALID_VALUE, call, "not of memory of its kind that is there");
  if (kind == HOST_MEMORY)
    free(o->at);
  else
    mmap(fake.memory + (o->at - fake.addresses), o->bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  bury(o);
  return CUDA_SUCCESS;
}

CUresult fake_MemGetInfo(size_t *unused, size_t *total) {
  BEGIN(MemGetInfo, CONTEXT);
  *unused = *total = MEMORY_BYTES;
  for (const object *o = fake.alive; o; o = o->next)
    if (o->kind <= POOL_MEMORY) *unused -= o->bytes;
  return end(CUDA_SUCCESS);
}
CUresult fake_MemAlloc(void *to, size_t bytes) {
  BEGIN(MemAlloc, CONTEXT);
  return end(allocate(call, DEVICE_MEMORY, bytes, to));
}
CUresult fake_MemFree(void *address) {
  BEGIN(MemFree, CONTEXT);
  return end(release(call, DEVICE_MEMORY, address));
}
CUresult fake_MemHostAlloc(void *to, size_t bytes, unsigned flags) {
  BEGIN(MemHostAlloc, CONTEXT);
  if (!bytes || flags > 7) WRONG(INVALID_VALUE, "of no bytes, or its flags");
  char *at = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
  if (!at) return end(CUDA_ERROR_OUT_OF_MEMORY);
  memset(at, 0xa5, bytes < 65536 ? bytes : 65536);
  object *o = make(HOST_MEMORY);
  o->at = at;
  o->bytes = bytes;
  *(void **)to = at;
  return end(CUDA_SUCCESS);
}
CUresult fake_MemFreeHost(void *address) {
  BEGIN(MemFreeHost, CONTEXT);
  return end(release(call, HOST_MEMORY, address));
}

CUresult fake_MemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wanted) {
  BEGIN(MemPoolCreate, INIT);
  if (wanted->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE || wanted->location.id < 0 ||
      wanted->location.id >= fake.devices)
    WRONG(INVALID_VALUE, "its place");
  object *o = make(POOLS);
  o->device = wanted->location.id;
  *pool = (CUmemoryPool)o;
  return end(CUDA_SUCCESS);
}
CUresult fake_MemPoolSetAttribute(CUmemoryPool pool, int which, void *value) {
  BEGIN(MemPoolSetAttribute, INIT);
  if (!find(POOLS, pool) || which != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || !value)
    WRONG(INVALID_VALUE, "no such pool or attribute");
  find(POOLS, pool)->keeps = 1;
  return end(CUDA_SUCCESS);
}
CUresult fake_MemPoolDestroy(CUmemoryPool pool) {
  BEGIN(MemPoolDestroy, INIT);
  object *o = find(POOLS, pool);
  if (!o) WRONG(INVALID_VALUE, "no such pool");
  bury(o);
  return end(CUDA_SUCCESS);
}
CUresult fake_MemAllocFromPoolAsync(void *to, size_t bytes, CUmemoryPool pool, CUstream stream) {
  BEGIN(MemAllocFromPoolAsync, needs_of(stream));
  if (!find(POOLS, pool) || !is_stream(stream)) WRONG(INVALID_HANDLE, "no such pool or stream");
  if (find(POOLS, pool)->device != stream_device(stream)) WRONG(INVALID_VALUE, "another's pool");
  if (!find(POOLS, pool)->keeps) mistake(0, call, "from a pool that keeps nothing for later");
  return end(allocate(call, POOL_MEMORY, bytes, to));
}
CUresult fake_MemFreeAsync(void *address, CUstream stream) {
  BEGIN(MemFreeAsync, needs_of(stream));
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  return end(release(call, POOL_MEMORY, address));
}

static CUresult copy(enum call call, void *to, const void *from, size_t bytes) {
  char *into = real(to, bytes), *out_of = real(from, bytes);
  if (!into || !out_of) return mistake(INVALID_VALUE, call, "beyond an allocation");
  memmove(into, out_of, bytes);
  return CUDA_SUCCESS;
}
CUresult fake_MemcpyHtoD(void *to, const void *from, size_t bytes) {
  BEGIN(MemcpyHtoD, CONTEXT);
  if (bytes && !is_device_address(to)) WRONG(INVALID_VALUE, "not to a device");
  return end(copy(call, to, from, bytes));
}
CUresult fake_MemcpyDtoH(void *to, const void *from, size_t bytes) {
  BEGIN(MemcpyDtoH, CONTEXT);
  if (bytes && !is_device_address(from)) WRONG(INVALID_VALUE, "not from a device");
  return end(copy(call, to, from, bytes));
}
CUresult fake_MemcpyAsync(void *to, const void *from, size_t bytes, CUstream stream) {
  BEGIN(MemcpyAsync, CONTEXT);
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  return end(copy(call, to, from, bytes));
}
CUresult fake_Memcpy2DAsync(const CUDA_MEMCPY2D *r, CUstream stream) {
  BEGIN(Memcpy2DAsync, CONTEXT);
  CUresult result = CUDA_SUCCESS;
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  if (r->srcMemoryType != CU_MEMORYTYPE_UNIFIED || r->dstMemoryType != CU_MEMORYTYPE_UNIFIED ||
      r->srcPitch < r->WidthInBytes || r->dstPitch < r->WidthInBytes)
    WRONG(INVALID_VALUE, "its pitches");
  for (size_t i = 0; !result && i < r->Height; i++)
    result = copy(call, (char *)r->dstDevice + i * r->dstPitch,
                  (const char *)r->srcDevice + i * r->srcPitch, r->WidthInBytes);
  return end(result);
}
CUresult fake_MemsetD8Async(void *to, unsigned char byte, size_t bytes, CUstream stream) {
  BEGIN(MemsetD8Async, CONTEXT);
  char *into = real(to, bytes);
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  if (!is_device_address(to) || !into) WRONG(INVALID_VALUE, "beyond an allocation");
  memset(into, byte, bytes);
  return end(CUDA_SUCCESS);
}

/* As of the driver, an address that is nobody's is no error: it has no attributes. */
CUresult fake_PointerGetAttributes(unsigned count, int *which, void **to, const void *address) {
  BEGIN(PointerGetAttributes, INIT);
  const object *o = memory_at(address);
  for (unsigned i = 0; i < count; i++) {
    if (which[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
      *(unsigned *)to[i] = !o                       ? 0
                           : o->kind == HOST_MEMORY ? CU_MEMORYTYPE_HOST
                                                    : CU_MEMORYTYPE_DEVICE;
    else if (which[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED)
      *(unsigned *)to[i] = 0;
    else if (which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      *(int *)to[i] = o ? o->device : -2;
    else
      WRONG(INVALID_VALUE, "an attribute that is not known");
  }
  return end(CUDA_SUCCESS);
}

/* --- streams and events ------------------------------------------------------------------------
 */

static void leave_answer(const gpr_flat_args *args);

/* Whether what was asked for is done. */
static CUresult is_done(void) {
  if (!fake.late) return CUDA_SUCCESS;
  if (!--fake.late)
    while (fake.pendings) leave_answer(&fake.pending[--fake.pendings]);
  return CUDA_ERROR_NOT_READY;
}
static void finish_all(void) {
  while (fake.pendings) leave_answer(&fake.pending[--fake.pendings]);
}

CUresult fake_StreamCreate(CUstream *stream, unsigned flags) {
  BEGIN(StreamCreate, CONTEXT);
  if (flags > CU_STREAM_NON_BLOCKING) WRONG(INVALID_VALUE, "flags");
  *stream = (CUstream)make(STREAMS);
  return end(CUDA_SUCCESS);
}
CUresult fake_StreamDestroy(CUstream stream) {
  BEGIN(StreamDestroy, INIT);
  object *o = find(STREAMS, stream);
  if (!o) WRONG(INVALID_HANDLE, "no such stream");
  bury(o);
  return end(CUDA_SUCCESS);
}
CUresult fake_StreamQuery(CUstream stream) {
  BEGIN(StreamQuery, needs_of(stream));
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  return end(is_done());
}
CUresult fake_StreamSynchronize(CUstream stream) {
  BEGIN(StreamSynchronize, needs_of(stream));
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  finish_all();
  return end(CUDA_SUCCESS);
}
CUresult fake_StreamGetId(CUstream stream, unsigned long long *id) {
  BEGIN(StreamGetId, needs_of(stream));
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  *id = (uintptr_t)stream;
  return end(CUDA_SUCCESS);
}
CUresult fake_StreamIsCapturing(CUstream stream, int *status) {
  BEGIN(StreamIsCapturing, needs_of(stream));
  if (!is_stream(stream)) WRONG(INVALID_HANDLE, "no such stream");
  *status = fake.captured == (const void *)stream && stream;
  return end(CUDA_SUCCESS);
}
CUresult fake_ThreadExchangeStreamCaptureMode(int *mode) {
  BEGIN(ThreadExchangeStreamCaptureMode, INIT);
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return end(CUDA_SUCCESS);
}
CUresult fake_StreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  BEGIN(StreamWaitEvent, needs_of(stream));
  if (!is_stream(stream) || !find(EVENTS, event) || flags)
    WRONG(INVALID_HANDLE, "no such stream or event");
  return end(CUDA_SUCCESS);
}
CUresult fake_EventCreate(CUevent *event, unsigned flags) {
  BEGIN(EventCreate, CONTEXT);
  object *o = make(EVENTS);
  o->times = !(flags & CU_EVENT_DISABLE_TIMING);
  *event = (CUevent)o;
  return end(CUDA_SUCCESS);
}
CUresult fake_EventDestroy(CUevent event) {
  BEGIN(EventDestroy, INIT);
  object *o = find(EVENTS, event);
  if (!o) WRONG(INVALID_HANDLE, "no such event");
  bury(o);
  return end(CUDA_SUCCESS);
}
CUresult fake_EventRecord(CUevent event, CUstream stream) {
  BEGIN(EventRecord, needs_of(stream));
  object *o = find(EVENTS, event);
  if (!o || !is_stream(stream)) WRONG(INVALID_HANDLE, "no such event or stream");
  if (o->device != stream_device(stream)) WRONG(INVALID_HANDLE, "an event of another device");
  o->recorded = 1;
  return end(CUDA_SUCCESS);
}
CUresult fake_EventQuery(CUevent event) {
  BEGIN(EventQuery, INIT);
  if (!find(EVENTS, event)) WRONG(INVALID_HANDLE, "no such event");
  return end(is_done());
}
CUresult fake_EventSynchronize(CUevent event) {
  BEGIN(EventSynchronize, INIT);
  if (!find(EVENTS, event)) WRONG(INVALID_HANDLE, "no such event");
  finish_all();
  return end(CUDA_SUCCESS);
}
CUresult fake_EventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
  BEGIN(EventElapsedTime, INIT);
  const object *a = find(EVENTS, from), *b = find(EVENTS, to);
  if (!a || !b || !a->times || !b->times || !a->recorded || !b->recorded)
    WRONG(INVALID_HANDLE, "of events that have no time");
  *milliseconds = 0.5f;
  return end(CUDA_SUCCESS);
}

/* --- launches ----------------------------------------------------------------------------------
 */

/* Along the tree: of the one node over the aligned block. */
static double product(const double *x, int64_t n, int64_t block) {
  if (n == 1) return *x;
  const int64_t half = block / 2;
  return n <= half ? product(x, n, half) : product(x, half, half) * product(x + half, n - half, half);
}

/* A state as kernels leave it: of IntegerSum, or of TreeFold as far as its first node. */
static void fold(const gpr_flat_args *args, uint64_t state[4]) {
  const void *x = real(args->data, (size_t)args->n * 8);
  memset(state, 0, 4 * sizeof *state);
  if (!x || !fake.folds) return;
  if (fake.folds == FOLD_SUMS_OF_INT64) {
    for (int64_t i = 0; i < args->n; i++) state[0] += ((const uint64_t *)x)[i];
    return;
  }
  uint64_t level = 0;
  while (INT64_C(1) << level < args->n) level++;
  const double value = product(x, args->n, INT64_C(1) << level);
  state[0] = (uint64_t)args->index + (UINT64_C(1) << level);
  state[1] = 1;
  memcpy(state + 2, &value, sizeof value);
  state[3] = level;
}

/* Where a run of them really begins; NULL where one of them does not lie in its allocation. */
static const char *line(const char *at, int64_t n, int64_t step, int bytes) {
  const int64_t reach = (n - 1) * step, low = reach < 0 ? reach : 0;
  const char *first = real(at + low, (size_t)(reach - 2 * low + bytes));
  if (!first) mistake(0, CALL_LaunchKernel, "an element beyond an allocation");
  return first ? first - low : NULL;
}
/* Many outputs: sums of int64, masked or not. */
static int64_t sum_along(const gpr_axes_args *a, int d, int64_t at, int64_t where) {
  const int left = a->kept + a->reduced - d;
  const int64_t n = left ? a->dim[d].size : 1, step = left ? a->dim[d].stride : 0;
  const int64_t mask_step = left ? a->dim[d].where_stride : 0;
  int64_t sum = 0;
  if (left > 1) {
    for (int64_t i = 0; i < n; i++)
      sum += sum_along(a, d + 1, at + i * step, where + i * mask_step);
    return sum;
  }
  if (!n) return 0;
  const char *data = line(a->data + at, n, step, sizeof sum), *mask = NULL;
  if (a->where && !(mask = line(a->where + where, n, mask_step, 1))) return 0;
  for (int64_t i = 0; data && i < n; i++) {
    int64_t x;
    memcpy(&x, data + i * step, sizeof x);
    if (!mask || mask[i * mask_step]) sum += x;
  }
  return sum;
}
static void sum_outputs(const gpr_axes_args *a, int d, int64_t at, int64_t where, int64_t place) {
  for (int64_t i = 0; d < a->kept && i < a->dim[d].size; i++)
    sum_outputs(a, d + 1, at + i * a->dim[d].stride, where + i * a->dim[d].where_stride,
                place + i * a->dim[d].place);
  if (d < a->kept) return;
  const int64_t sum = sum_along(a, d, at, where);
  char *out = real(a->out + 8 * place, 8);
  if (out)
    memcpy(out, &sum, sizeof sum);
  else
    mistake(0, CALL_LaunchKernel, "a result beyond an allocation");
}

/* The state, or zeros, and lines without a sum: gpr_cuda_answer_words() of both. */
static void leave_answer(const gpr_flat_args *args) {
  enum { SMALL = 2 * 64, LINES = MULTIPROCESSORS * GPR_LINES_MOST };
  const int words = GPR_LINES_AT + GPR_LINE_WORDS * (LINES < SMALL ? SMALL : LINES);
  const uint32_t more = fake.miss > 0 ? GPR_LINE_MORE : 0;
  if (fake.miss > 0) fake.miss--;
  const object *o = memory_at(args->answer);
  if (!o || o->kind != HOST_MEMORY || !real(args->answer, (size_t)words * sizeof *args->answer)) {
    mistake(0, CALL_LaunchKernel, "there is no room for the answer");
    return;
  }
  uint64_t state[4];
  fold(args, state);
  for (int i = 0; i < words; i++) {
    const int in_line = (i - GPR_LINES_AT) % GPR_LINE_WORDS;
    const uint32_t beside = args->epoch << (32 - GPR_LINE_EPOCH) | (in_line ? 0 : more);
    const uint64_t both = (uint64_t)(i < GPR_LINES_AT ? args->epoch : beside) << 32;
    const uint32_t word = i < 8 ? (uint32_t)(state[i / 2] >> (32 * (i % 2))) : 0;
    *(volatile uint64_t *)(args->answer + i) = both | word;
  }
}

/* With what the kernel is told copied, as the driver does. */
static const char *read_kernel(kernel *k, CUfunction function, unsigned blocks, unsigned threads,
                               void **parameters) {
  object *module = find(MODULES, function);
  if (!module) return "no such function";
  if (!blocks || !threads || threads > 1024) return "a grid of nothing, or a block too large";
  if (!parameters || !parameters[0]) return "without arguments";
  *k = (kernel){.module = module};
  k->answers = strstr(module->name, "flat_") || strstr(module->name, "small_");
  if (k->answers)
    memcpy(&k->args, parameters[0], sizeof k->args);
  else if (fake.folds == FOLD_SUMS_OF_INT64)
    sum_outputs(parameters[0], 0, 0, 0, 0);
  return NULL;
}

static const char *run_kernel(const kernel *k, CUstream stream) {
  if (!find(MODULES, k->module)) return "of a module that is gone";
  if (!is_stream(stream)) return "no such stream";
  if (k->module->device != stream_device(stream)) return "a function of another device";
  if (!k->answers) return NULL;
  if (k->args.n < 1 || !is_device_address(k->args.data)) return "elements that are not there";
  if (fake.silent)
    fake.silent--;
  else if (fake.late && fake.pendings < 64)
    fake.pending[fake.pendings++] = k->args;
  else
    leave_answer(&k->args);
  return NULL;
}

CUresult fake_LaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream stream,
                           void **parameters, void **extra) {
  BEGIN(LaunchKernel, CONTEXT);
  kernel k;
  const char *wrong = read_kernel(&k, function, x * y * z, bx * by * bz, parameters);
  if (!wrong && (shared || extra)) wrong = "more than it is given here";
  if (!wrong) wrong = run_kernel(&k, stream);
  if (wrong) WRONG(INVALID_VALUE, wrong);
  return end(CUDA_SUCCESS);
}

CUresult fake_GraphCreate(CUgraph *graph, unsigned flags) {
  BEGIN(GraphCreate, INIT);
  if (flags) WRONG(INVALID_VALUE, "flags");
  *graph = (CUgraph)make(GRAPHS);
  return end(CUDA_SUCCESS);
}
CUresult fake_GraphDestroy(CUgraph graph) {
  BEGIN(GraphDestroy, INIT);
  object *o = find(GRAPHS, graph);
  if (!o) WRONG(INVALID_VALUE, "no such graph");
  bury(o);
  return end(CUDA_SUCCESS);
}
static const char *read_node(kernel *k, const CUDA_KERNEL_NODE_PARAMS *p) {
  return read_kernel(k, p->func, p->gridDimX * p->gridDimY * p->gridDimZ,
                     p->blockDimX * p->blockDimY * p->blockDimZ, p->kernelParams);
}
CUresult fake_GraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *launch) {
  BEGIN(GraphAddKernelNode, CONTEXT);
  object *o = find(GRAPHS, graph);
  if (!o || after || count) WRONG(INVALID_VALUE, "no such graph");
  const char *wrong = read_node(&o->kernel, launch);
  if (wrong) WRONG(INVALID_VALUE, wrong);
  *node = (CUgraphNode)o;
  return end(CUDA_SUCCESS);
}
CUresult fake_GraphInstantiate(CUgraphExec *runnable, CUgraph graph, uint64_t flags) {
  BEGIN(GraphInstantiate, CONTEXT);
  const object *o = find(GRAPHS, graph);
  if (!o || !o->kernel.module || flags) WRONG(INVALID_VALUE, "no such graph");
  object *made = make(RUNNABLES);
  made->kernel = o->kernel;
  *runnable = (CUgraphExec)made;
  return end(CUDA_SUCCESS);
}
CUresult fake_GraphExecKernelNodeSetParams(CUgraphExec runnable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *launch) {
  BEGIN(GraphExecKernelNodeSetParams, CONTEXT);
  object *o = find(RUNNABLES, runnable);
  if (!o || !find(GRAPHS, node)) WRONG(INVALID_VALUE, "no such graph or node");
  const char *wrong = read_node(&o->kernel, launch);
  if (wrong) WRONG(INVALID_VALUE, wrong);
  return end(CUDA_SUCCESS);
}
CUresult fake_GraphExecDestroy(CUgraphExec runnable) {
  BEGIN(GraphExecDestroy, INIT);
  object *o = find(RUNNABLES, runnable);
  if (!o) WRONG(INVALID_VALUE, "no such graph");
  bury(o);
  return end(CUDA_SUCCESS);
}
CUresult fake_GraphLaunch(CUgraphExec runnable, CUstream stream) {
  BEGIN(GraphLaunch, needs_of(stream));
  const object *o = find(RUNNABLES, runnable);
  if (!o) WRONG(INVALID_VALUE, "no such graph");
  const char *wrong = run_kernel(&o->kernel, stream);
  if (wrong) WRONG(INVALID_VALUE, wrong);
  return end(CUDA_SUCCESS);
}
