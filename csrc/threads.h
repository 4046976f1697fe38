/* A small pool of threads, shared by all callers: the only room that starts any.
 *
 * Not OpenMP's: after fork() its pool hangs in the child. Here a child begins with none. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* Work that several threads do together. The caller takes part in it itself, so that it is done
 * even if no helper ever comes. Zero it, fill in the first three members. */
typedef struct gpr_team {
  void (*work)(void *argument, int lane); /* called by each helper once, lane 1 and up */
  void *argument;
  int helpers; /* how many may join */
  int joined;
  atomic_int active; /* helpers at work */
  int forks;         /* that the process had behind it at the offer */
  struct gpr_team *next;
} gpr_team;

/* Offers the work to the pool. The team stays the caller's and must live until gpr_team_wait(). */
void gpr_team_offer(gpr_team *team);

/* Closes the offer and waits for the helpers that joined, at most so long; 1 when none is left. */
int gpr_team_wait(gpr_team *team, int64_t nanoseconds);

/* Whether this is the child of a fork() that left helpers at work behind: what they had taken is
 * done by nobody. */
int gpr_team_lost(const gpr_team *team);

/* A thread of its own, which nobody joins; 0 where there is none to be had. */
int gpr_thread_start(void *(*work)(void *argument), void *argument);

/* A condition whose waits end at a time of gpr_now(). */
void gpr_condition_init(pthread_cond_t *condition);
void gpr_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until);

/* The first of the `some` that are taken of `all`, or no less than all. `alone`: nobody else takes
 * any, which needs a tenth of the time. */
static inline int64_t gpr_take(atomic_llong *next, int64_t some, int64_t all, int alone) {
  const int64_t at = atomic_load_explicit(next, memory_order_relaxed);
  if (at >= all || !alone) return at >= all ? at : atomic_fetch_add(next, some);
  atomic_store_explicit(next, at + some, memory_order_relaxed);
  return at;
}

int64_t gpr_now(void); /* nanoseconds of a clock that never goes back */
void gpr_nap(int64_t nanoseconds);

/* For a thread that finds nothing to do for a while: at first it looks again at once, then it naps.
 * *since is 0 before the first time, and then this function's. */
void gpr_pause(int64_t *since);
