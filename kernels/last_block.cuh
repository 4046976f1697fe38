/* The last-block guard: one launch in place of two.
 *
 * Each block writes its partial result, makes it visible, and draws a ticket; the block that draws
 * the last one knows that all others are written. The counter goes back to zero by itself, so that
 * the next launch on the stream finds it as the first one did. */
#ifndef GPR_LAST_BLOCK_CUH
#define GPR_LAST_BLOCK_CUH

#include "portable.h"
#include "rows.h"

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

/* One word of the answer with its epoch, in one store that arrives whole. */
__device__ __forceinline__ void answer_word(const gpr_flat_args &args, int i, uint32_t word) {
  *(volatile uint64_t *)(args.answer + i) = (uint64_t)args.epoch << 32 | word;
}
/* A small state by one thread. */
template <class S>
__device__ __forceinline__ void answer(const gpr_flat_args &args, const S &state) {
  uint32_t words[(sizeof(S) + 3) / 4] = {};
  memcpy(words, &state, sizeof state);
#pragma unroll
  for (int i = 0; i < (int)((sizeof(S) + 3) / 4); i++) answer_word(args, i, words[i]);
}

GPR_CLOSE
#endif
