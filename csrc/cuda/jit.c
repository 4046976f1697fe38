/* Kernels made when they are needed: looked for in memory, in the pack, in the user's cache, and
 * then compiled, by a thread of its own so that the caller can be interrupted. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../errors.h"
#include "../threads.h"
#include "cache.h"
#include "device.h"
#include "gpu.h"
#include "nvrtc.h"

/* After so long a caller is told what takes it. */
enum { TELL_NANOSECONDS = 500 * 1000 * 1000 };

gpr_surroundings gpr_host;

typedef struct gpr_made {
  _Atomic(CUfunction) function[GPR_DEVICES_MAX];
  CUmodule module[GPR_DEVICES_MAX]; /* of the functions that are there */
} gpr_made;

enum job_state { COMPILING, COMPILED, FAILED };

/* A program that is being compiled for an architecture. Its result waits for who asked. */
typedef struct job {
  struct job *next;
  const gpr_program *program;
  char arch[16], key[GPR_KEY_CHARS];
  int newest;
  char *folders;
  enum job_state state;
  int waiting, told;
  int64_t since;
  gpr_image image;
  gpr_status status;
  char error[512];
} job;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t done;
  job *jobs;
  atomic_int running;
  atomic_int warned; /* that kernels cannot be kept */
} jit = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void say(int is_warning, const char *text) {
  if (gpr_host.say) gpr_host.say(is_warning, text);
}

/* --- compiling -------------------------------------------------------------------------------- */

/* A compiler that is at work must not lose its libraries. */
static void wait_for_all(void) {
  if (!jit.running) return;
  pthread_mutex_lock(&jit.lock);
  while (jit.running) pthread_cond_wait(&jit.done, &jit.lock);
  pthread_mutex_unlock(&jit.lock);
}

/* A fork's child has none of the threads, and does not use CUDA. */
static void in_child(void) { jit.running = 0; }

static void start_up(void) {
  gpr_condition_init(&jit.done);
  pthread_atfork(NULL, NULL, in_child);
  atexit(wait_for_all);
}

static void free_job(job *j) {
  gpr_program_drop(j->program);
  free(j->image.bytes);
  free(j->folders);
  free(j);
}

/* Ends a job that is done and that nobody waits for; the lock is held. */
static void let_go(job *j) {
  if (j->waiting || j->state == COMPILING) return;
  for (job **at = &jit.jobs; *at; at = &(*at)->next)
    if (*at == j) {
      *at = j->next;
      break;
    }
  free_job(j);
}

static void *compile(void *argument) {
  job *j = argument;
  gpr_image image;
  const gpr_status status = gpr_nvrtc_compile(j->program, j->arch, j->newest, j->folders, &image);
  const char *problem = status ? NULL : gpr_cache_write(j->key, image);
  pthread_mutex_lock(&jit.lock);
  j->image = image;
  j->status = status;
  j->state = status ? FAILED : COMPILED;
  snprintf(j->error, sizeof j->error, "%s", status ? gpr_error() : problem ? problem : "");
  jit.running--;
  /* Who waits looks away now and then, and finds in the cache what is there. */
  if (!status && !problem) let_go(j);
  pthread_cond_broadcast(&jit.done);
  pthread_mutex_unlock(&jit.lock);
  return NULL;
}

static job *known_job(const char *key) {
  for (job *j = jit.jobs; j; j = j->next)
    if (!strcmp(j->key, key)) return j;
  return NULL;
}

/* The one under way, or a new one, which keeps the folders; the lock is held. NULL for want of
 * memory. */
static job *job_for(const gpr_program *program, const char *arch, const char *key, char **folders) {
  job *j = known_job(key);
  if (j) return j;
  j = calloc(1, sizeof *j);
  if (!j) return NULL;
  j->program = program;
  gpr_program_keep(program);
  j->newest = cu.version;
  j->folders = *folders;
  *folders = NULL;
  j->since = gpr_now();
  snprintf(j->arch, sizeof j->arch, "%s", arch);
  memcpy(j->key, key, sizeof j->key);
  j->next = jit.jobs;
  jit.jobs = j;
  jit.running++;
  return j;
}

/* Once for each kernel, to one of those who wait. */
static int is_to_be_told(job *j) {
  const int late = j->state == COMPILING && gpr_now() - j->since > TELL_NANOSECONDS && !j->told;
  if (late) j->told = 1;
  return late;
}

static void tell(const gpr_program *program, const char *arch) {
  char text[512];
  snprintf(text, sizeof text,
           "compiling %s%s%s for %s, which a pack or `python -m gpureduce cache warm` would spare",
           program->kernel, program->fold ? ", F = " : "", program->fold ? program->fold : "",
           arch);
  say(0, text);
}

/* Waits for a compilation, which begins now if it is not under way. `refused`: what the cache has
 * is of no use. */
static gpr_status compiled(const gpr_program *program, const char *arch, const char *key,
                           int refused, int64_t nanoseconds, gpr_image *image) {
  const int64_t end = gpr_now() + nanoseconds;
  char problem[512] = "", *folders = gpr_host.nvrtc_folders ? gpr_host.nvrtc_folders() : NULL;
  pthread_once(&once, start_up);
  pthread_mutex_lock(&jit.lock);
  /* Another thread's may have ended since the cache was looked at. */
  if (!refused && !known_job(key)) *image = gpr_cache_read(key);
  if (image->bytes) {
    pthread_mutex_unlock(&jit.lock);
    free(folders);
    return GPR_OK;
  }
  const int running = jit.running;
  job *j = job_for(program, arch, key, &folders);
  if (!j) {
    pthread_mutex_unlock(&jit.lock);
    free(folders);
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory to compile a kernel");
  }
  j->waiting++;
  if (jit.running > running) { /* without a thread to be had, here and now */
    pthread_mutex_unlock(&jit.lock);
    if (!gpr_thread_start(compile, j)) compile(j);
    pthread_mutex_lock(&jit.lock);
  }
  int told = is_to_be_told(j);
  while (j->state == COMPILING && !told && gpr_now() < end) {
    const int64_t late = j->told ? end : j->since + TELL_NANOSECONDS;
    gpr_condition_wait(&jit.done, &jit.lock, late < end ? late : end);
    told = is_to_be_told(j);
  }
  gpr_status status = j->state == COMPILING ? GPR_MORE : j->status;
  if (j->state == FAILED) gpr_fail(j->status, "%s", j->error);
  if (j->state == COMPILED) {
    image->size = j->image.size;
    image->bytes = malloc(image->size);
    if (image->bytes)
      memcpy(image->bytes, j->image.bytes, image->size);
    else
      status = gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a kernel");
    memcpy(problem, j->error, sizeof problem);
  }
  j->waiting--;
  let_go(j);
  pthread_mutex_unlock(&jit.lock);
  free(folders);
  if (told) tell(program, arch);
  if (*problem && !atomic_exchange(&jit.warned, 1)) {
    char text[640];
    snprintf(text, sizeof text, "compiled kernels cannot be kept for the next process: %s",
             problem);
    say(1, text);
  }
  return status;
}

/* --- looking ---------------------------------------------------------------------------------- */

/* Images of an older minor architecture run too; the pack may have those alone. */
static gpr_image packed(const gpr_program *program, int major, int minor) {
  gpr_image image = {NULL, 0};
  char arch[16], key[GPR_KEY_CHARS];
  for (; gpr_host.packed && !image.bytes && minor >= 0; minor--) {
    snprintf(arch, sizeof arch, "sm_%d%d", major, minor);
    gpr_nvrtc_key(program, arch, key);
    image.bytes = gpr_host.packed(arch, key, &image.size);
  }
  return image;
}

/* What the driver says of an image that it cannot take, as of another's cache. */
static int is_unfit(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == CUDA_ERROR_INVALID_SOURCE;
}

typedef struct loaded {
  CUmodule module;
  CUfunction function;
} loaded;

/* Frees the image. With `unfit` what cannot be taken is no error: it was found somewhere, and is to
 * be compiled instead. */
static gpr_status load(gpr_image image, int device, int *unfit, loaded *out) {
  const char *name = image.bytes;
  const int before = gpr_cuda_relaxed();
  const CUresult result = cu.ModuleLoadData(&out->module, image.bytes + strlen(name) + 1);
  gpr_cuda_strict(before);
  gpr_status status = GPR_OK;
  if (unfit) *unfit = is_unfit(result);
  if (!unfit || !*unfit) status = check(result, "cuModuleLoadData", device);
  if (result == CUDA_SUCCESS) {
    status = CU(device, ModuleGetFunction, &out->function, out->module, name);
    if (status) cu.ModuleUnload(out->module);
  }
  free(image.bytes);
  return status;
}

static gpr_status make(gpr_program *program, int device, int64_t nanoseconds, loaded *out) {
  const int major = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  const int minor = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  char arch[16], key[GPR_KEY_CHARS];
  snprintf(arch, sizeof arch, "sm_%d%d", major, minor);
  gpr_nvrtc_key(program, arch, key);
  int unfit = 0;
  for (int where = 0; where < 2; where++) {
    unfit = 0;
    const gpr_image image = where ? gpr_cache_read(key) : packed(program, major, minor);
    if (!image.bytes) continue;
    const gpr_status status = load(image, device, &unfit, out);
    if (!unfit) return status;
  }
  gpr_image image = {NULL, 0};
  const gpr_status status = compiled(program, arch, key, unfit, nanoseconds, &image);
  return status ? status : load(image, device, NULL, out);
}

/* --- functions -------------------------------------------------------------------------------- */

static gpr_made *made_of(gpr_program *program) {
  gpr_made *made = __atomic_load_n(&program->made, __ATOMIC_ACQUIRE), *none = NULL;
  if (made) return made;
  made = calloc(1, sizeof *made);
  if (!made) return NULL;
  if (__atomic_compare_exchange_n(&program->made, &none, made, 0, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return made;
  free(made);
  return none;
}

/* Of threads that loaded the same at the same time, one's stays. */
gpr_status gpr_cuda_function(gpr_program *program, int device, int64_t nanoseconds,
                             CUfunction *function) {
  gpr_made *made = made_of(program);
  if (!made) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a kernel");
  *function = atomic_load_explicit(&made->function[device], memory_order_acquire);
  if (*function) return GPR_OK;
  loaded mine = {NULL, NULL};
  const gpr_status status = make(program, device, nanoseconds, &mine);
  if (status) return status;
  if (atomic_compare_exchange_strong(&made->function[device], function, mine.function)) {
    *function = mine.function;
    made->module[device] = mine.module;
  } else {
    cu.ModuleUnload(mine.module);
  }
  return GPR_OK;
}

/* A driver that cannot enter the device, as at the end of a process, has nothing left to end. */
void gpr_cuda_unmake(gpr_made *made) {
  for (int device = 0; made && device < GPR_DEVICES_MAX; device++) {
    CUcontext before;
    if (!made->module[device] || gpr_cuda_enter(device, &before)) continue;
    const int mode = gpr_cuda_relaxed();
    cu.ModuleUnload(made->module[device]);
    gpr_cuda_strict(mode);
    gpr_cuda_leave(device, before);
  }
  free(made);
}

gpr_status gpr_cuda_function_now(gpr_program *program, int device, CUfunction *function) {
  gpr_status status;
  do status = gpr_cuda_function(program, device, TELL_NANOSECONDS, function);
  while (status == GPR_MORE);
  return status;
}

/* --- for the command line and for packs ------------------------------------------------------- */

gpr_status gpr_program_image(const gpr_program *program, const char *arch, char key[GPR_KEY_CHARS],
                             int *was_there, gpr_image *image) {
  gpr_nvrtc_key(program, arch, key);
  *was_there = 0;
  *image = (gpr_image){NULL, 0};
  if (arch[0] == 's') {
    if (gpr_host.packed) image->bytes = gpr_host.packed(arch, key, &image->size);
    if (!image->bytes) *image = gpr_cache_read(key);
    *was_there = image->bytes != NULL;
    if (*was_there) return GPR_OK;
  }
  char *folders = gpr_host.nvrtc_folders ? gpr_host.nvrtc_folders() : NULL;
  const gpr_status status = gpr_nvrtc_compile(program, arch, 0, folders, image);
  free(folders);
  const char *problem = status || arch[0] != 's' ? NULL : gpr_cache_write(key, *image);
  if (problem && !atomic_exchange(&jit.warned, 1)) say(1, problem);
  return status;
}
