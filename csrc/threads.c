#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpureduce.h"

enum { THREADS_MAX = 256 };
/* A helper's last part takes less than going to sleep and waking up, 10 to 50 µs: so long the
 * caller only lets others go first. (Helpers that look for work in this way, or in a loop, often
 * stay on their caller's core, where they took 10 times as long as asleep.) */
enum { AWAKE_NANOSECONDS = 50000 };
enum { PAUSE_NANOSECONDS = 200 * 1000 };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t offered, left;
  gpr_team *teams; /* offers that still take helpers, oldest first */
  int workers, idle;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .offered = PTHREAD_COND_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int forks; /* from the first process with a pool to this one */

int64_t gpr_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void gpr_nap(int64_t nanoseconds) {
  const struct timespec t = {0, nanoseconds};
  nanosleep(&t, NULL);
}

void gpr_pause(int64_t *since) {
  const int64_t now = gpr_now();
  if (!*since) *since = now;
  if (now - *since > PAUSE_NANOSECONDS) gpr_nap(PAUSE_NANOSECONDS);
}

void gpr_condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

void gpr_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until) {
  const struct timespec t = {until / 1000000000, until % 1000000000};
  pthread_cond_timedwait(condition, lock, &t);
}

/* fork() copies the pool's memory but none of its threads: the child starts over. */
static void before_fork(void) { pthread_mutex_lock(&pool.lock); }
static void in_parent(void) { pthread_mutex_unlock(&pool.lock); }
static void in_child(void) {
  pthread_mutex_init(&pool.lock, NULL);
  pthread_cond_init(&pool.offered, NULL);
  gpr_condition_init(&pool.left);
  pool.teams = NULL;
  pool.workers = pool.idle = 0;
  atomic_fetch_add(&forks, 1);
}

static void init_pool(void) {
  gpr_condition_init(&pool.left);
  pthread_atfork(before_fork, in_parent, in_child);
}

/* The oldest offer, with a place in it taken; NULL where there is none. */
static gpr_team *join_team(int *lane) {
  gpr_team *team = pool.teams;
  if (!team) return NULL;
  *lane = ++team->joined;
  team->active++;
  if (team->joined == team->helpers) pool.teams = team->next;
  return team;
}

/* A thread's own variables come at their first use, and glibc ends the process where they find no
 * memory: so now, while there is some. */
static void *worker(void *unused) {
  gpr_error();
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    int lane;
    gpr_team *team = join_team(&lane);
    if (!team) {
      pool.idle++;
      pthread_cond_wait(&pool.offered, &pool.lock);
      pool.idle--;
      continue;
    }
    pthread_mutex_unlock(&pool.lock);
    team->work(team->argument, lane);
    pthread_mutex_lock(&pool.lock);
    /* At zero the team may be gone. */
    if (atomic_fetch_sub(&team->active, 1) == 1) pthread_cond_broadcast(&pool.left);
  }
  return unused;
}

/* Signals are for the threads that Python knows. */
int gpr_thread_start(void *(*run)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, old;
  sigfillset(&all);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const int failed = pthread_create(&thread, &attributes, run, argument);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  return !failed;
}

void gpr_team_offer(gpr_team *team) {
  pthread_once(&once, init_pool);
  team->joined = 0;
  atomic_init(&team->active, 0);
  team->forks = atomic_load(&forks);
  team->next = NULL;
  if (team->helpers <= 0) return;
  pthread_mutex_lock(&pool.lock);
  gpr_team **end = &pool.teams;
  while (*end) end = &(*end)->next;
  *end = team;
  /* A thread that cannot be started is no error: the caller does its share. */
  for (int missing = team->helpers - pool.idle; missing > 0 && pool.workers < THREADS_MAX;
       missing--)
    if (gpr_thread_start(worker, NULL))
      pool.workers++;
    else
      break;
  if (team->helpers == 1)
    pthread_cond_signal(&pool.offered);
  else
    pthread_cond_broadcast(&pool.offered);
  pthread_mutex_unlock(&pool.lock);
}

static void withdraw(gpr_team *team) {
  for (gpr_team **at = &pool.teams; *at; at = &(*at)->next)
    if (*at == team) {
      *at = team->next;
      return;
    }
}

int gpr_team_lost(const gpr_team *team) {
  return atomic_load(&team->active) && team->forks != atomic_load(&forks);
}

int gpr_team_wait(gpr_team *team, int64_t nanoseconds) {
  if (team->helpers <= 0 || gpr_team_lost(team)) return 1;
  const int64_t start = gpr_now(), end = start + nanoseconds;
  const struct timespec until = {end / 1000000000, end % 1000000000};
  pthread_mutex_lock(&pool.lock);
  withdraw(team);
  pthread_mutex_unlock(&pool.lock);
  while (atomic_load(&team->active) && gpr_now() < start + AWAKE_NANOSECONDS) sched_yield();
  if (!atomic_load(&team->active)) return 1;
  pthread_mutex_lock(&pool.lock);
  while (team->active && pthread_cond_timedwait(&pool.left, &pool.lock, &until) == 0) continue;
  const int alone = team->active == 0;
  pthread_mutex_unlock(&pool.lock);
  return alone;
}

/* --- how many --------------------------------------------------------------------------------- */

/* "max 100000" or "150000 100000" in cgroup v2's cpu.max; v1 has the two in files of their own. */
static int quota_of(const char *limit_path, const char *period_path) {
  char text[64] = "";
  long long limit = -1, period = 100000;
  FILE *file = fopen(limit_path, "r");
  if (!file) return THREADS_MAX;
  if (fgets(text, sizeof text, file)) sscanf(text, "%lld %lld", &limit, &period);
  fclose(file);
  if (period_path && (file = fopen(period_path, "r"))) {
    if (fgets(text, sizeof text, file)) sscanf(text, "%lld", &period);
    fclose(file);
  }
  if (limit <= 0 || period <= 0) return THREADS_MAX;
  return (int)((limit + period - 1) / period);
}

static int least(int a, int b) { return a < b ? a : b; }

static int available_threads(void) {
  const char *wish = getenv("GPUREDUCE_NUM_THREADS");
  const int wished = wish ? atoi(wish) : 0;
  if (wished > 0) return least(wished, THREADS_MAX);
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                      : (int)sysconf(_SC_NPROCESSORS_ONLN);
  n = least(n, quota_of("/sys/fs/cgroup/cpu.max", NULL));
  n = least(
      n, quota_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  return n < 1 ? 1 : least(n, THREADS_MAX);
}

static atomic_int chosen;

void gpr_set_threads(int threads) {
  atomic_store(&chosen, threads > 0 ? least(threads, THREADS_MAX) : 0);
}

int gpr_threads(void) {
  int n = atomic_load(&chosen);
  if (n) return n;
  n = available_threads();
  int none = 0;
  atomic_compare_exchange_strong(&chosen, &none, n);
  return n;
}
