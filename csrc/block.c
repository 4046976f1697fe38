#include "block.h"

#include <pthread.h>
#include <stdlib.h>

/* What tiles of some 4,000 elements take. More is allocated by itself: a page that is first touched
 * costs as much as four allocations. */
enum { LINE = 64, BLOCK_BYTES = 256 << 10 };

struct gpr_block {
  gpr_block *more; /* what did not fit, each with a line before it */
  size_t used;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t waiting; /* a thread's one block */
static int has_key;

static void make_key(void) { has_key = !pthread_key_create(&waiting, free); }

/* A library that is unloaded leaves nothing that threads would call at their end. */
__attribute__((destructor)) static void delete_key(void) {
  if (!has_key) return;
  free(pthread_getspecific(waiting));
  pthread_key_delete(waiting);
  has_key = 0;
}

gpr_block *gpr_block_open(void) {
  pthread_once(&once, make_key);
  gpr_block *block = has_key ? pthread_getspecific(waiting) : NULL;
  if (block)
    pthread_setspecific(waiting, NULL);
  else
    block = aligned_alloc(LINE, BLOCK_BYTES);
  if (block) *block = (gpr_block){NULL, LINE};
  return block;
}

void *gpr_block_take(gpr_block *block, size_t bytes) {
  bytes = (bytes + LINE - 1) & ~(size_t)(LINE - 1);
#ifndef __SANITIZE_ADDRESS__ /* which sees the ends of allocations alone */
  if (bytes <= BLOCK_BYTES - block->used) {
    block->used += bytes;
    return (char *)block + block->used - bytes;
  }
#endif
  gpr_block *more = aligned_alloc(LINE, LINE + bytes);
  if (!more) return NULL;
  more->more = block->more;
  block->more = more;
  return (char *)more + LINE;
}

void gpr_block_close(gpr_block *block) {
  while (block->more) {
    gpr_block *more = block->more;
    block->more = more->more;
    free(more);
  }
  const int waits = has_key && !pthread_getspecific(waiting);
  if (!waits || pthread_setspecific(waiting, block)) free(block);
}
