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

typedef gpr_status reduction(const char *op, double want);

/* All elements to one: within the block that a thread keeps for its runs. */
static gpr_status whole(const char *op, double want) {
  const gpr_view view = gpr_view_of(x, GPR_FLOAT64, N);
  gpr_value value;
  const gpr_status status = gpr_reduce(op, &view, NULL, &value);
  if (!status) CHECK(gpr_as_double(&value, 0) == want);
  return status;
}

/* Rows that are converted first, in tiles that outgrow the block. */
static gpr_status rows(const char *op, double want) {
  enum { ROWS = 256 };
  const int64_t shape[] = {ROWS, N / ROWS};
  const gpr_view view = gpr_view_nd(x, GPR_FLOAT64, 2, shape);
  float out[ROWS];
  gpr_options options = gpr_defaults();
  options.dtype = GPR_FLOAT32;
  options.axes = GPR_AXIS(1);
  options.out = out;
  const gpr_status status = gpr_reduce(op, &view, &options, NULL);
  for (int i = 0; i < ROWS && !status; i++) CHECK((double)out[i] == want);
  return status;
}

typedef struct asked {
  reduction *reduce;
  const char *op;
  double want;
  int allocations; /* at least */
} asked;

static void *every_allocation(void *argument) {
  const asked *a = argument;
  int n = 0;
  for (;; n++) {
    left = n;
    const gpr_status status = a->reduce(a->op, a->want);
    const int all_succeeded = left >= 0;
    left = -1;
    CHECK(alive <= 1); /* the block */
    if (all_succeeded) break;
    CHECK(status == GPR_OUT_OF_MEMORY && strstr(gpr_error(), "memory"));
    if (n) CHECK(a->reduce(a->op, a->want) == GPR_OK);
  }
  CHECK(n >= a->allocations);
  return NULL;
}

/* In a thread that has no block yet, and leaves none. */
static void in_a_thread(reduction *reduce, const char *op, double want, int allocations) {
  asked a = {reduce, op, want, allocations};
  pthread_t thread;
  CHECK(__real_pthread_create(&thread, NULL, every_allocation, &a) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(alive == 0);
}

int main(void) {
  for (int i = 0; i < N; i++) x[i] = 1;
  gpr_set_threads(4);
  for (threads_refused = 1; threads_refused >= 0; threads_refused--) { /* the caller does it all */
    in_a_thread(whole, "sum", N, 1);
    in_a_thread(whole, "prod", 1, 1);
    in_a_thread(whole, "max", 1, 1);
    in_a_thread(rows, "sum", N / 256, 2);
    in_a_thread(rows, "prod", 1, 2);
  }
  return 0;
}
