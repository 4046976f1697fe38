#define _GNU_SOURCE
#include "speeds.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/gpu.h"
#include "errors.h"
#include "threads.h"

/* Each is measured with a part of its own, so that no cache has it: some milliseconds. Of less, the
 * start and the end of it would count too much. */
enum { SAMPLE_BYTES = 512 << 20 };
/* By so much a device has to be faster: a measurement is as exact as that. */
#define MARGIN 1.15

static struct {
  pthread_mutex_t lock;
  int threads; /* that what follows was measured with */
  gpr_speeds speeds[GPR_MEMORY_KINDS];
  int is_read, has_failed[GPR_MEMORY_KINDS];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- kept ------------------------------------------------------------------------------------- */

static void name_machine(char key[GPR_KEY_CHARS]) {
  char host[256] = "";
  const int threads = gpr_threads();
  gpr_digest digest = gpr_digest_open();
  gethostname(host, sizeof host - 1);
  gpr_digest_text(&digest, "speeds 1");
  gpr_digest_text(&digest, gpr_version());
  gpr_digest_text(&digest, host);
  gpr_digest_text(&digest, getenv("CUDA_VISIBLE_DEVICES"));
  gpr_digest_add(&digest, &threads, sizeof threads);
  gpr_digest_key(&digest, key);
}

/* With the lock. What is read ends with a zero, as images have to have one. */
static void read_known(void) {
  char key[GPR_KEY_CHARS];
  if (known.is_read && known.threads == gpr_threads()) return;
  memset(known.speeds, 0, sizeof known.speeds);
  memset(known.has_failed, 0, sizeof known.has_failed);
  known.is_read = 1;
  known.threads = gpr_threads();
  name_machine(key);
  const gpr_image image = gpr_cache_read(key);
  if (image.bytes && image.size == sizeof known.speeds + 1)
    memcpy(known.speeds, image.bytes, sizeof known.speeds);
  free(image.bytes);
}

static void keep(int kind, const gpr_speeds *speeds) {
  char key[GPR_KEY_CHARS], bytes[sizeof known.speeds + 1] = "";
  pthread_mutex_lock(&known.lock);
  read_known();
  known.speeds[kind] = *speeds;
  memcpy(bytes, known.speeds, sizeof known.speeds);
  pthread_mutex_unlock(&known.lock);
  name_machine(key);
  gpr_cache_write(key, (gpr_image){bytes, sizeof bytes});
}

int gpr_speeds_known(int kind, gpr_speeds *speeds) {
  pthread_mutex_lock(&known.lock);
  read_known();
  *speeds = known.speeds[kind];
  pthread_mutex_unlock(&known.lock);
  return speeds->cpu > 0;
}

/* --- measured --------------------------------------------------------------------------------- */

static gpr_status seconds_of(const void *data, int64_t bytes, int device, double *seconds) {
  const gpr_view view = gpr_view_of(data, GPR_UINT64, bytes / 8);
  gpr_options options = gpr_defaults();
  gpr_value sum;
  options.device = device;
  const int64_t start = gpr_now();
  const gpr_status status = gpr_reduce("sum", &view, &options, &sum);
  *seconds = (double)(gpr_now() - start) * 1e-9;
  return status;
}

gpr_status gpr_speeds_measure(int kind, const void *data, int64_t bytes, gpr_speeds *speeds) {
  const int devices[] = {GPR_DEVICE_CPU, GPR_DEVICE_CUDA_ALL, GPR_DEVICE_ALL};
  double *const rates[] = {&speeds->cpu, &speeds->devices, &speeds->all};
  const char *at = (const char *)(((uintptr_t)data + 7) & ~(uintptr_t)7);
  const int64_t third = (bytes / 3 - 8) & ~(int64_t)7;
  const int64_t sample = third < SAMPLE_BYTES ? third : SAMPLE_BYTES;
  gpr_status status = GPR_OK;
  memset(speeds, 0, sizeof *speeds);
  if (sample < 1 << 20)
    return gpr_fail(GPR_BAD_VALUE, "speeds are not measured with %lld bytes", (long long)bytes);
  for (int i = 0; !status && i < 3; i++, at += third) {
    double first, seconds;
    status = seconds_of(at, sample / 8, devices[i], &first); /* which has all made that it needs */
    if (!status) status = seconds_of(at + sample / 8, sample - sample / 8, devices[i], &seconds);
    if (status) break;
    *rates[i] = (double)(sample - sample / 8) / (seconds + 1e-9);
    if (devices[i] == GPR_DEVICE_CUDA_ALL) speeds->start = first;
  }
  if (!status) keep(kind, speeds);
  return status;
}

gpr_status gpr_speeds_measure_all(int64_t bytes) {
  gpr_speeds speeds;
  void *memory = malloc((size_t)bytes), *pinned = NULL;
  gpr_status status = GPR_OK;
  if (!gpr_device_count()) status = GPR_DEVICE_ERROR;
  if (!memory) status = gpr_fail(GPR_OUT_OF_MEMORY, "no memory to measure with");
  if (!status) {
    memset(memory, 0x5a, (size_t)bytes); /* pages that were never written are all one */
    status = gpr_speeds_measure(GPR_PAGEABLE, memory, bytes, &speeds);
  }
  free(memory);
  if (!status) status = gpr_gpu_pin((size_t)bytes, &pinned);
  if (!status) {
    memset(pinned, 0x5a, (size_t)bytes);
    status = gpr_speeds_measure(GPR_PINNED, pinned, bytes, &speeds);
  }
  gpr_gpu_unpin(pinned);
  return status;
}

/* --- chosen ----------------------------------------------------------------------------------- */

gpr_places gpr_speeds_choose(const gpr_speeds *speeds, double bytes, int is_started) {
  const gpr_places cpu = {0, 1};
  const double start = is_started ? 0 : speeds->start;
  if (bytes < GPR_LARGE_BYTES || !(speeds->cpu > 0)) return cpu;
  const double alone = bytes / speeds->cpu;
  const double devices = bytes / speeds->devices + start, all = bytes / speeds->all + start;
  const double best = devices < all ? devices : all;
  if (!(best * MARGIN < alone)) return cpu;
  return (gpr_places){UINT64_MAX, devices > all};
}

/* So that it is not tried again by every call. */
static int has_failed(int kind, int set) {
  pthread_mutex_lock(&known.lock);
  known.has_failed[kind] |= set;
  const int failed = known.has_failed[kind];
  pthread_mutex_unlock(&known.lock);
  return failed;
}

gpr_places gpr_fastest(const void *data, double bytes) {
  const gpr_places cpu = {0, 1};
  gpr_speeds speeds, of_pinned;
  /* Where the CPU is the fastest of all memory nobody has to ask CUDA which it is. */
  const int started = gpr_gpu_is_started();
  if (gpr_speeds_known(GPR_PAGEABLE, &speeds) && gpr_speeds_known(GPR_PINNED, &of_pinned) &&
      !gpr_speeds_choose(&speeds, bytes, started).devices &&
      !gpr_speeds_choose(&of_pinned, bytes, started).devices)
    return cpu;
  if (has_failed(GPR_PAGEABLE, 0)) return cpu;
  const int devices = gpr_device_count();
  const int kind = devices && gpr_gpu_pinned(data) ? GPR_PINNED : GPR_PAGEABLE;
  if (!devices || has_failed(kind, 0) ||
      (!gpr_speeds_known(kind, &speeds) &&
       gpr_speeds_measure(kind, data, (int64_t)bytes, &speeds))) {
    has_failed(kind, 1);
    return cpu;
  }
  const gpr_places best = gpr_speeds_choose(&speeds, bytes, started);
  const uint64_t all = devices < 64 ? (UINT64_C(1) << devices) - 1 : UINT64_MAX;
  return (gpr_places){best.devices & all, best.cpu};
}
