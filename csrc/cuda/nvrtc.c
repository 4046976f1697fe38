#define _GNU_SOURCE
#include "nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../errors.h"
#include "driver.h"
#include "gpu.h"

typedef struct nvrtcProgram_st *nvrtcProgram;
typedef int nvrtcResult;

/* 12.0 is the oldest that the kernels were compiled with. */
enum { NVRTC_SUCCESS = 0, OLDEST = 12000, ARCHS_MOST = 64, LIBRARIES_MOST = 16 };

#define GPR_NVRTC(X)                                                                             \
  X(nvrtcResult, Version, (int *, int *))                                                        \
  X(const char *, GetErrorString, (nvrtcResult))                                                 \
  X(nvrtcResult, GetNumSupportedArchs, (int *))                                                  \
  X(nvrtcResult, GetSupportedArchs, (int *))                                                     \
  X(nvrtcResult, CreateProgram,                                                                  \
    (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
  X(nvrtcResult, DestroyProgram, (nvrtcProgram *))                                               \
  X(nvrtcResult, AddNameExpression, (nvrtcProgram, const char *))                                \
  X(nvrtcResult, GetLoweredName, (nvrtcProgram, const char *, const char **))                    \
  X(nvrtcResult, CompileProgram, (nvrtcProgram, int, const char *const *))                       \
  X(nvrtcResult, GetProgramLogSize, (nvrtcProgram, size_t *))                                    \
  X(nvrtcResult, GetProgramLog, (nvrtcProgram, char *))                                          \
  X(nvrtcResult, GetCUBINSize, (nvrtcProgram, size_t *))                                         \
  X(nvrtcResult, GetCUBIN, (nvrtcProgram, char *))                                               \
  X(nvrtcResult, GetPTXSize, (nvrtcProgram, size_t *))                                           \
  X(nvrtcResult, GetPTX, (nvrtcProgram, char *))

typedef struct nvrtc {
#define GPR_X(type, name, parameters) type(*name) parameters;
  GPR_NVRTC(GPR_X)
#undef GPR_X
  void *handle;
  int version; /* 1000 * major + 10 * minor */
  int archs[ARCHS_MOST], arch_count;
} nvrtc;

/* --- which library ---------------------------------------------------------------------------- */

/* Those that were found, never closed: kernels are being compiled by them. */
static struct {
  pthread_mutex_t lock;
  nvrtc library[LIBRARIES_MOST];
  int count;
} found = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a search is for, and what it met on its way. */
typedef struct search {
  int arch, newest;
  const char *folders;
  const nvrtc *library; /* NULL: none yet */
  int too_new, too_old; /* versions that the driver or the architecture does not take; 0: none */
} search;

static int is_whole(nvrtc *library) {
  int major = 0, minor = 0;
#define GPR_X(type, name, parameters) \
  if (!(*(void **)&library->name = dlsym(library->handle, "nvrtc" #name))) return 0;
  GPR_NVRTC(GPR_X)
#undef GPR_X
  if (library->Version(&major, &minor) != NVRTC_SUCCESS) return 0;
  library->version = 1000 * major + 10 * minor;
  if (library->GetNumSupportedArchs(&library->arch_count) != NVRTC_SUCCESS ||
      library->arch_count > ARCHS_MOST)
    return 0;
  return library->version >= OLDEST && library->GetSupportedArchs(library->archs) == NVRTC_SUCCESS;
}

/* The handle is the list's from here on. */
static const nvrtc *remember(void *handle) {
  for (int i = 0; i < found.count; i++)
    if (found.library[i].handle == handle) {
      dlclose(handle);
      return &found.library[i];
    }
  nvrtc library = {.handle = handle};
  if (found.count == LIBRARIES_MOST || !is_whole(&library)) {
    dlclose(handle);
    return NULL;
  }
  found.library[found.count] = library;
  return &found.library[found.count++];
}

static int knows(const nvrtc *library, int arch) {
  for (int i = 0; i < library->arch_count; i++)
    if (library->archs[i] == arch) return 1;
  return 0;
}

/* Whether the search is over. A driver takes images of its own major version and older ones. */
static int try_library(search *s, const char *path, int flags) {
  void *handle = s->library ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
  const nvrtc *library = handle ? remember(handle) : NULL;
  if (!library) return s->library != NULL;
  if (s->newest && library->version / 1000 > s->newest / 1000)
    s->too_new = library->version;
  else if (!knows(library, s->arch))
    s->too_old = library->version;
  else
    s->library = library;
  return s->library != NULL;
}

static void try_folder(search *s, const char *folder, int length, const char *below) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  char path[4096];
  for (int i = 0; length && i < 2; i++)
    if (snprintf(path, sizeof path, "%.*s%s/%s", length, folder, below, names[i]) <
        (int)sizeof path)
      try_library(s, path, 0);
}
static void try_variable(search *s, const char *name, const char *below) {
  const char *folder = getenv(name);
  if (folder) try_folder(s, folder, (int)strlen(folder), below);
}

/* Named, already loaded, of the Python packages, of conda, of the system, of a toolkit. */
static void find_library(search *s) {
  const char *named = getenv("GPUREDUCE_NVRTC");
  if (named && *named) {
    try_library(s, named, 0);
    return;
  }
  if (try_library(s, "libnvrtc.so.13", RTLD_NOLOAD) ||
      try_library(s, "libnvrtc.so.12", RTLD_NOLOAD))
    return;
  for (const char *at = s->folders; at && *at; at += strspn(at, "\n")) {
    const int length = (int)strcspn(at, "\n");
    try_folder(s, at, length, "");
    at += length;
  }
  try_variable(s, "CONDA_PREFIX", "/lib");
  if (try_library(s, "libnvrtc.so.13", 0) || try_library(s, "libnvrtc.so.12", 0)) return;
  try_variable(s, "CUDA_HOME", "/lib64");
  try_variable(s, "CUDA_PATH", "/lib64");
  try_folder(s, "/usr/local/cuda", (int)strlen("/usr/local/cuda"), "/lib64");
}

static gpr_status explain(const search *s) {
  const int major = s->newest && s->newest < 13000 ? 12 : 13;
  if (s->too_old)
    return gpr_fail(GPR_DEVICE_ERROR,
                    "NVRTC %d.%d, which compiles kernels, does not know the architecture %d: "
                    "pip install --upgrade 'gpureduce[cuda%d]'",
                    s->too_old / 1000, s->too_old % 1000 / 10, s->arch, major);
  if (s->too_new)
    return gpr_fail(GPR_DEVICE_ERROR,
                    "NVRTC %d.%d was found to compile kernels, but the driver takes those of CUDA "
                    "%d.%d at most: update the driver, or pip install 'gpureduce[cuda%d]'",
                    s->too_new / 1000, s->too_new % 1000 / 10, s->newest / 1000,
                    s->newest % 1000 / 10, major);
  const char *named = getenv("GPUREDUCE_NVRTC");
  if (named && *named)
    return gpr_fail(GPR_DEVICE_ERROR,
                    "a kernel has to be compiled for this device and GPUREDUCE_NVRTC=%.200s is no "
                    "NVRTC that can be used: unset it and pip install 'gpureduce[cuda%d]'",
                    named, major);
  return gpr_fail(GPR_DEVICE_ERROR,
                  "a kernel has to be compiled for this device and there is no NVRTC to do it: "
                  "pip install 'gpureduce[cuda%d]'",
                  major);
}

static gpr_status open_library(const char *arch, int newest, const char *folders,
                               const nvrtc **library) {
  search s = {.arch = atoi(strchr(arch, '_') + 1), .newest = newest, .folders = folders};
  pthread_mutex_lock(&found.lock);
  find_library(&s);
  pthread_mutex_unlock(&found.lock);
  *library = s.library;
  return s.library ? GPR_OK : explain(&s);
}

gpr_status gpr_compiler_about(const char *arch, char *text, size_t room) {
  const nvrtc *library;
  Dl_info where = {.dli_fname = NULL};
  char *folders = gpr_host.nvrtc_folders ? gpr_host.nvrtc_folders() : NULL;
  const gpr_status status =
      open_library(arch, gpr_driver_open() ? 0 : cu.version, folders, &library);
  free(folders);
  if (status) {
    snprintf(text, room, "%s", gpr_error());
    return status;
  }
  dladdr(*(void *const *)&library->Version, &where);
  snprintf(text, room, "NVRTC %d.%d, %s", library->version / 1000, library->version % 1000 / 10,
           where.dli_fname ? where.dli_fname : "loaded");
  return GPR_OK;
}

/* --- a program -------------------------------------------------------------------------------- */

/* Exactness depends on four of these: no contraction into fused multiply-adds, no flushing of
 * subnormals, division and roots rounded to nearest. 186: a template compares an unsigned integer
 * with zero. */
#define OPTIONS                                                                        \
  "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17", \
      "--device-int128", "--diag-suppress=186"

void gpr_nvrtc_key(const gpr_program *program, const char *arch, char key[GPR_KEY_CHARS]) {
  static const char *const options[] = {OPTIONS};
  gpr_digest digest = gpr_digest_open();
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    gpr_digest_text(&digest, options[i]);
  gpr_digest_text(&digest, arch);
  gpr_digest_text(&digest, program->fold);
  gpr_digest_text(&digest, program->defines);
  gpr_digest_text(&digest, program->kernel);
  for (int i = 0; i < gpr_header_count; i++)
    if (!strcmp(gpr_headers[i].name, program->header))
      gpr_digest_text(&digest, gpr_headers[i].digest);
  gpr_digest_key(&digest, key);
}

/* Of `room` bytes, or how many it takes. */
static int write_source(const gpr_program *p, char *text, size_t room) {
  return snprintf(text, room, "#include \"%s\"\nusing namespace gpr;\n%s%s%s%s\n", p->header,
                  p->fold ? "typedef " : "", p->fold ? p->fold : "", p->fold ? " F;\n" : "",
                  p->defines ? p->defines : "");
}

static gpr_status create(const nvrtc *n, const gpr_program *p, nvrtcProgram *out) {
  nvrtcResult result = NVRTC_SUCCESS;
  gpr_status status = GPR_OK;
  const size_t size = (size_t)write_source(p, NULL, 0) + 1;
  char *source = malloc(size);
  const char **names = calloc(2 * (size_t)gpr_header_count, sizeof *names);
  if (source && names) {
    write_source(p, source, size);
    for (int i = 0; i < gpr_header_count; i++) {
      names[i] = gpr_headers[i].name;
      names[gpr_header_count + i] = gpr_headers[i].text;
    }
    result = n->CreateProgram(out, source, "gpureduce.cu", gpr_header_count,
                              names + gpr_header_count, names);
  } else {
    status = gpr_fail(GPR_OUT_OF_MEMORY, "no memory to compile %s", p->kernel);
  }
  free(names);
  free(source);
  if (result != NVRTC_SUCCESS)
    return gpr_fail(GPR_DEVICE_ERROR, "nvrtcCreateProgram of %s: %s", p->kernel,
                    n->GetErrorString(result));
  return status;
}

/* The first lines of what the compiler says; errors are shown first. */
static gpr_status fail(const nvrtc *n, nvrtcProgram program, const gpr_program *p, const char *call,
                       nvrtcResult result) {
  size_t size = 0;
  char *log = NULL;
  if (n->GetProgramLogSize(program, &size) == NVRTC_SUCCESS && size && (log = malloc(size + 1)) &&
      n->GetProgramLog(program, log) == NVRTC_SUCCESS)
    log[size] = 0;
  else
    free(log), log = NULL;
  const gpr_status status =
      gpr_fail(result == 1 ? GPR_OUT_OF_MEMORY : GPR_DEVICE_ERROR, "%s of %s: %s%s%.300s", call,
               p->kernel, n->GetErrorString(result), log && *log ? "\n" : "", log ? log : "");
  free(log);
  return status;
}

/* The lowered name stands before the image. */
static gpr_status take(const nvrtc *n, nvrtcProgram program, const gpr_program *p, int is_ptx,
                       gpr_image *image) {
  const char *name = NULL;
  size_t size = 0;
  nvrtcResult result = n->GetLoweredName(program, p->kernel, &name);
  if (result) return fail(n, program, p, "nvrtcGetLoweredName", result);
  result = is_ptx ? n->GetPTXSize(program, &size) : n->GetCUBINSize(program, &size);
  if (result) return fail(n, program, p, is_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", result);
  const size_t before = strlen(name) + 1;
  image->size = before + size;
  image->bytes = malloc(image->size);
  if (!image->bytes) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory to compile %s", p->kernel);
  memcpy(image->bytes, name, before);
  result = is_ptx ? n->GetPTX(program, image->bytes + before)
                  : n->GetCUBIN(program, image->bytes + before);
  if (result == NVRTC_SUCCESS) return GPR_OK;
  free(image->bytes);
  image->bytes = NULL;
  return fail(n, program, p, is_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", result);
}

gpr_status gpr_nvrtc_compile(const gpr_program *p, const char *arch, int newest,
                             const char *folders, gpr_image *image) {
  const nvrtc *n;
  nvrtcProgram program = NULL;
  char architecture[64];
  *image = (gpr_image){NULL, 0};
  gpr_status status = open_library(arch, newest, folders, &n);
  if (!status) status = create(n, p, &program);
  if (status) return status;
  snprintf(architecture, sizeof architecture, "--gpu-architecture=%s", arch);
  const char *const options[] = {architecture, OPTIONS};
  nvrtcResult result = n->AddNameExpression(program, p->kernel);
  if (result) {
    status = fail(n, program, p, "nvrtcAddNameExpression", result);
  } else {
    result = n->CompileProgram(program, (int)(sizeof options / sizeof *options), options);
    status = result ? fail(n, program, p, "nvrtcCompileProgram", result)
                    : take(n, program, p, arch[0] == 'c', image);
  }
  n->DestroyProgram(&program);
  return status;
}
