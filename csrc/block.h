/* The memory of a run: pieces of one block, which waits in its thread for the next run. */
#pragma once

#include <stddef.h>

typedef struct gpr_block gpr_block;

/* The caller's, to be closed by any thread; NULL: no memory. */
gpr_block *gpr_block_open(void);

/* So many bytes that begin a cache line, as they were left; NULL: no memory. They last until the
 * block is closed. */
void *gpr_block_take(gpr_block *block, size_t bytes);

void gpr_block_close(gpr_block *block);
