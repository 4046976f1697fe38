/* An NVRTC that compiles nothing, for tests: the image of a kernel is a text that fake_cuda.c
 * takes. The environment says what it is: FAKE_NVRTC_VERSION=13000, FAKE_NVRTC_ARCHS=75,90,
 * FAKE_NVRTC_SECONDS=0.5 that a compilation takes, FAKE_NVRTC_BYTES=1000 of an image at least,
 * FAKE_NVRTC_LOG=FILE that gets a line of each. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int nvrtcResult;
typedef struct program *nvrtcProgram;
enum { OUT_OF_MEMORY = 1, INVALID_INPUT = 3, INVALID_PROGRAM = 4, COMPILATION = 6, NO_NAME = 10 };
enum { TRACE_MOST = 4096, ARCHS_MOST = 64 };

struct program {
  struct program *next;
  unsigned digest; /* of its text */
  int compiled, is_ptx;
  char expression[512], lowered[600], image[1024];
};

static struct {
  pthread_mutex_t lock;
  nvrtcProgram alive; /* never freed: a handle that died is not another's */
  long calls, compiled, mistakes, fail_at, fail_name_at;
  int live, fail_result, fail_name_result;
  char fail_name[64], mistake[256];
  const char *trace[TRACE_MOST], *failed;
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static nvrtcResult mistake(nvrtcResult result, const char *call, const char *what) {
  if (!fake.mistakes++) snprintf(fake.mistake, sizeof fake.mistake, "%s: %s", call, what);
  return result;
}

static nvrtcResult begin(const char *call) {
  pthread_mutex_lock(&fake.lock);
  if (fake.calls < TRACE_MOST) fake.trace[fake.calls] = call;
  fake.calls++;
  if (fake.fail_at && !--fake.fail_at) return fake.failed = call, fake.fail_result;
  if (!strcmp(call, fake.fail_name) && fake.fail_name_at && !--fake.fail_name_at)
    return fake.failed = call, fake.fail_name_result;
  return 0;
}
static nvrtcResult end(nvrtcResult result) {
  pthread_mutex_unlock(&fake.lock);
  return result;
}
#define BEGIN                                \
  const nvrtcResult begun = begin(__func__); \
  if (begun) return end(begun)
#define WRONG(result, what) return end(mistake(result, __func__, what))

static int is_alive(const struct program *program) {
  for (nvrtcProgram p = fake.alive; p; p = p->next)
    if (p == program) return 1;
  return 0;
}
#define BEGIN_WITH(program) \
  BEGIN;                    \
  if (!is_alive(program)) WRONG(INVALID_PROGRAM, "no such program")

/* --- control: as in fake_cuda.c ----------------------------------------------------------------
 */

EXPORT void fake_reset(void) {
  pthread_mutex_lock(&fake.lock);
  fake.calls = fake.compiled = fake.mistakes = fake.fail_at = fake.fail_name_at = 0;
  fake.fail_name[0] = 0;
  fake.failed = NULL;
  pthread_mutex_unlock(&fake.lock);
}
EXPORT void fake_fail_at(long n, nvrtcResult result) {
  fake.fail_at = n;
  fake.fail_result = result;
}
EXPORT void fake_fail(const char *name, long n, nvrtcResult result) {
  snprintf(fake.fail_name, sizeof fake.fail_name, "%s", name);
  fake.fail_name_at = n;
  fake.fail_name_result = result;
}
EXPORT const char *fake_failed(void) { return fake.failed; }
EXPORT long fake_calls(void) { return fake.calls; }
EXPORT const char *fake_call(long i) {
  return i < fake.calls && i < TRACE_MOST ? fake.trace[i] : NULL;
}
EXPORT const char *fake_kind(int kind) { return kind < 1 ? "programs" : NULL; }
EXPORT int fake_live(int kind) { return (void)kind, fake.live; }
EXPORT long fake_mistakes(void) { return fake.mistakes; }
EXPORT const char *fake_mistake(void) { return fake.mistakes ? fake.mistake : ""; }
EXPORT long fake_compiled(void) { return fake.compiled; }

/* --- the library -------------------------------------------------------------------------------
 */

/* Of 12 where its file's name ends so. */
static int version(void) {
  const char *text = getenv("FAKE_NVRTC_VERSION");
  Dl_info where;
  if (text) return atoi(text);
  const int known = dladdr(&fake, &where) && where.dli_fname;
  return known && strstr(where.dli_fname, ".so.12") ? 12090 : 13000;
}

static int read_archs(int *archs) {
  const char *text = getenv("FAKE_NVRTC_ARCHS");
  int count = 0;
  for (char *at = (char *)(text ? text : "75,80,86,89,90,100,120"); *at && count < ARCHS_MOST;) {
    archs[count++] = (int)strtol(at, &at, 10);
    at += *at == ',';
  }
  return count;
}

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor) {
  BEGIN;
  *major = version() / 1000;
  *minor = version() % 1000 / 10;
  return end(0);
}
EXPORT const char *nvrtcGetErrorString(nvrtcResult result) {
  return result == COMPILATION     ? "NVRTC_ERROR_COMPILATION"
         : result == OUT_OF_MEMORY ? "NVRTC_ERROR_OUT_OF_MEMORY"
                                   : "NVRTC_ERROR_INTERNAL_ERROR";
}
EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  int archs[ARCHS_MOST];
  BEGIN;
  *count = read_archs(archs);
  return end(0);
}
EXPORT nvrtcResult nvrtcGetSupportedArchs(int *archs) {
  BEGIN;
  read_archs(archs);
  return end(0);
}

/* --- programs ----------------------------------------------------------------------------------
 */

static int is_there(int count, const char *const *names, const char *source) {
  char name[128];
  if (sscanf(source, "#include \"%127[^\"]\"", name) != 1) return 0;
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return 1;
  return 0;
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                                      int count, const char *const *headers,
                                      const char *const *names) {
  BEGIN;
  if (!source || !name || !headers || !is_there(count, names, source))
    WRONG(INVALID_INPUT, "without what it includes");
  nvrtcProgram made = calloc(1, sizeof *made);
  made->digest = 2166136261u;
  for (const char *at = source; *at; at++) made->digest = (made->digest ^ (unsigned)*at) * 16777619;
  made->next = fake.alive;
  fake.alive = *program = made;
  fake.live++;
  return end(0);
}
EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  BEGIN_WITH(*program);
  nvrtcProgram *at = &fake.alive;
  while (*at != *program) at = &(*at)->next;
  *at = (*program)->next;
  fake.live--;
  *program = NULL;
  return end(0);
}
EXPORT nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *expression) {
  BEGIN_WITH(program);
  if (program->compiled) WRONG(INVALID_INPUT, "after it was compiled");
  snprintf(program->expression, sizeof program->expression, "%s", expression);
  return end(0);
}

static void take_time(void) {
  const char *text = getenv("FAKE_NVRTC_SECONDS");
  const double seconds = text ? atof(text) : 0;
  const struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
  if (seconds > 0) nanosleep(&time, NULL);
}

static void log_line(const struct program *p, const char *arch) {
  char line[700];
  const char *path = getenv("FAKE_NVRTC_LOG");
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  const int size = snprintf(line, sizeof line, "%ld %s %s %08x\n", (long)getpid(), arch,
                            p->expression, p->digest);
  if (write(file, line, (size_t)size) != size) mistake(0, "nvrtcCompileProgram", "no log");
  close(file);
}

/* An architecture that has no image but PTX is "compute_90". */
EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count,
                                       const char *const *options) {
  static const char flag[] = "--gpu-architecture=";
  BEGIN_WITH(program);
  if (count < 1 || strncmp(options[0], flag, sizeof flag - 1) || !*program->expression)
    WRONG(INVALID_INPUT, "without an architecture or a kernel's name");
  const char *arch = options[0] + sizeof flag - 1;
  end(0);
  take_time();
  pthread_mutex_lock(&fake.lock);
  char *to = program->lowered + snprintf(program->lowered, sizeof program->lowered, "fake_");
  for (const char *at = program->expression; *at; at++)
    *to++ = isalnum((unsigned char)*at) ? *at : '_';
  *to = 0;
  snprintf(program->image, sizeof program->image, "fake cubin %s %s", arch, program->lowered);
  program->is_ptx = arch[0] == 'c';
  program->compiled = 1;
  fake.compiled++;
  log_line(program, arch);
  return end(0);
}
EXPORT nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *expression,
                                       const char **name) {
  BEGIN_WITH(program);
  if (!program->compiled || strcmp(program->expression, expression)) WRONG(NO_NAME, "no such name");
  *name = program->lowered;
  return end(0);
}

static const char text_of_log[] = "gpureduce.cu(1): error: the fake was told to fail\n";
EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) {
  BEGIN_WITH(program);
  *size = sizeof text_of_log;
  return end(0);
}
EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
  BEGIN_WITH(program);
  memcpy(log, text_of_log, sizeof text_of_log);
  return end(0);
}

/* With the zero at its end. */
static nvrtcResult size_of(nvrtcProgram program, const char *call, int is_ptx, size_t *size) {
  if (!program->compiled || program->is_ptx != is_ptx)
    return mistake(INVALID_PROGRAM, call, "there is none");
  const char *text = getenv("FAKE_NVRTC_BYTES");
  const size_t least = text ? (size_t)atol(text) : 0;
  *size = strlen(program->image) + 1;
  if (*size < least) *size = least;
  return 0;
}
static nvrtcResult image_of(nvrtcProgram program, const char *call, int is_ptx, char *image) {
  size_t size;
  const nvrtcResult result = size_of(program, call, is_ptx, &size);
  if (!result) memset(image, 1, size);
  if (!result) memcpy(image, program->image, strlen(program->image) + 1);
  return result;
}
EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) {
  BEGIN_WITH(program);
  return end(size_of(program, __func__, 0, size));
}
EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *image) {
  BEGIN_WITH(program);
  return end(image_of(program, __func__, 0, image));
}
EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) {
  BEGIN_WITH(program);
  return end(size_of(program, __func__, 1, size));
}
EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *image) {
  BEGIN_WITH(program);
  return end(image_of(program, __func__, 1, image));
}
