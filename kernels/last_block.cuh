/* The last-block guard: one launch in place of two.
 *
 * Each block writes its partial result, makes it visible, and draws a ticket; the block that draws
 * the last one knows that all others are written. The counter goes back to zero by itself, so that
 * the next launch on the stream finds it as the first one did. */
#ifndef GPR_LAST_BLOCK_CUH
#define GPR_LAST_BLOCK_CUH

#include "portable.h"

GPR_OPEN

/* Called by all threads of all blocks. True in every thread of the last block. */
__device__ __forceinline__ bool is_last_block(uint32_t *counter) {
  __shared__ bool last;
  __threadfence(); /* this thread's part of the partial result, before the ticket */
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
    __threadfence(); /* the others' partial results, after the ticket */
  }
  __syncthreads();
  return last;
}

/* Called by all threads of one block after they wrote their words of the result. */
__device__ __forceinline__ void raise_flag(volatile uint32_t *flag, uint32_t epoch) {
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *flag = epoch;
}

GPR_CLOSE
#endif
