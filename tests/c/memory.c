/* Every allocation and every start of a thread fails once: an error or the answer, never harm.
 * Linked with --wrap for each function that is replaced here. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "../../csrc/gpureduce.h"
#include "check.h"

void *__real_malloc(size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static int left = -1; /* calls that still succeed; -1: all */
static int threads_refused;
static int alive; /* blocks not yet freed */

static int fails(void) { return left >= 0 && left-- == 0; }

void *__wrap_malloc(size_t bytes) {
  if (fails()) return NULL;
  alive++;
  return __real_malloc(bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  CHECK(bytes % alignment == 0);
  if (fails()) return NULL;
  alive++;
  return __real_aligned_alloc(alignment, bytes);
}
void __real_free(void *block);
void __wrap_free(void *block) {
  if (block) alive--;
  __real_free(block);
}
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
  return threads_refused ? EAGAIN : __real_pthread_create(t, a, f, x);
}

enum { N = 1 << 18 };
static double x[N];

static void right(const char *op, double want) {
  const gpr_view view = gpr_view_of(x, GPR_FLOAT64, N);
  gpr_value value;
  double got;
  CHECK(gpr_reduce(op, &view, NULL, &value) == GPR_OK);
  memcpy(&got, value.bytes, sizeof got);
  CHECK(got == want);
}

static void every_allocation(const char *op, double want) {
  const gpr_view view = gpr_view_of(x, GPR_FLOAT64, N);
  gpr_value value;
  int n = 0;
  for (;; n++) {
    left = n;
    const gpr_status status = gpr_reduce(op, &view, NULL, &value);
    const int all_succeeded = left >= 0;
    left = -1;
    CHECK(alive == 0);
    if (all_succeeded) break;
    CHECK(status == GPR_OUT_OF_MEMORY && strstr(gpr_error(), "memory"));
    right(op, want);
  }
  CHECK(n >= 1);
}

int main(void) {
  for (int i = 0; i < N; i++) x[i] = 1;
  gpr_set_threads(4);
  threads_refused = 1; /* the caller does it all */
  right("sum", N);
  right("prod", 1);
  every_allocation("sum", N);
  every_allocation("prod", 1);
  threads_refused = 0;
  every_allocation("sum", N);
  every_allocation("max", 1);
  right("sum", N);
  CHECK(alive == 0);
  return 0;
}
