#include "queue.h"

void gpr_queue_open(gpr_queue *queue, int64_t count) {
  pthread_mutex_init(&queue->lock, NULL);
  queue->front = 0;
  queue->back = count;
}

void gpr_queue_close(gpr_queue *queue) { pthread_mutex_destroy(&queue->lock); }

int64_t gpr_queue_front(gpr_queue *queue, int64_t n, int64_t *start) {
  pthread_mutex_lock(&queue->lock);
  const int64_t left = queue->back - queue->front, count = left < n ? left : n;
  *start = queue->front;
  if (count > 0) queue->front += count;
  pthread_mutex_unlock(&queue->lock);
  return count > 0 ? count : 0;
}

int64_t gpr_queue_back(gpr_queue *queue, int64_t n, int64_t *start) {
  int64_t count = 0;
  pthread_mutex_lock(&queue->lock);
  if (queue->back > queue->front) {
    const int64_t at = (queue->back - 1) / n * n;
    *start = at > queue->front ? at : queue->front;
    count = queue->back - *start;
    queue->back = *start;
  }
  pthread_mutex_unlock(&queue->lock);
  return count;
}

void gpr_queue_cut(gpr_queue *queue, int64_t at) {
  pthread_mutex_lock(&queue->lock);
  if (queue->back > at) queue->back = at;
  pthread_mutex_unlock(&queue->lock);
}

int gpr_queue_is_empty(gpr_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  const int is_empty = queue->back <= queue->front;
  pthread_mutex_unlock(&queue->lock);
  return is_empty;
}
