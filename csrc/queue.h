/* The index of an array as several take of it: devices pieces from its front, threads of the CPU
 * parts from its back, so that pieces stay aligned whatever a part's size is. */
#pragma once

#include <pthread.h>
#include <stdint.h>

typedef struct gpr_queue {
  pthread_mutex_t lock;
  int64_t front, back; /* what nobody has taken yet */
} gpr_queue;

void gpr_queue_open(gpr_queue *queue, int64_t count);
void gpr_queue_close(gpr_queue *queue);

/* Takes n elements, or what is left: *start, and how many; 0 where there are none. */
int64_t gpr_queue_front(gpr_queue *queue, int64_t n, int64_t *start);
/* The last ones, from a multiple of n on. */
int64_t gpr_queue_back(gpr_queue *queue, int64_t n, int64_t *start);

/* From `at` on nothing is wanted any more. */
void gpr_queue_cut(gpr_queue *queue, int64_t at);
int gpr_queue_is_empty(gpr_queue *queue);
