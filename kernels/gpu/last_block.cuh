/* The last-block guard: one launch in place of two.
 *
 * Each block writes its partial result, makes it visible, and draws a ticket; the block that draws
 * the last one knows that all others are written. The counter goes back to zero by itself, so that
 * the next launch on the stream finds it as the first one did. One thread's ticket releases what
 * its block has written and acquires what the others have, since the block meets before and after
 * it: 0.5 µs less on an H200 than a fence of each thread and another one after the ticket. */
#pragma once

#include "../core/portable.h"
#include "../abi/rows.h"

GPR_OPEN

/* A turn: how many were drawn before, of which the last sets the ticket back. What this thread has
 * written before is seen by whoever draws after it. */
GPR_DEVICE uint32_t draw(uint32_t *ticket, uint32_t last) {
#ifdef __CUDA_ARCH__
  uint32_t drawn;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(drawn)
               : "l"(ticket), "r"(last)
               : "memory");
#else /* fibers */
  const uint32_t drawn = *ticket;
  *ticket = drawn == last ? 0 : drawn + 1;
#endif
  return drawn;
}

/* Called by all threads of `blocks` blocks. True in all threads of the one that comes last. */
GPR_DEVICE bool is_last_of(uint32_t *ticket, int blocks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) last = draw(ticket, (uint32_t)blocks - 1) == (uint32_t)blocks - 1;
  __syncthreads();
  return last;
}

/* One word of the answer with its epoch, in one store that arrives whole. */
GPR_DEVICE void answer_word(const gpr_flat_args &args, int i, uint32_t word) {
  *(volatile uint64_t *)(args.answer + i) = (uint64_t)args.epoch << 32 | word;
}
/* A small state by one thread. */
template <class S> GPR_DEVICE void answer(const gpr_flat_args &args, const S &state) {
  uint32_t words[(sizeof(S) + 3) / 4] = {};
  memcpy(words, &state, sizeof state);
  GPR_EACH(i, (int)((sizeof(S) + 3) / 4)) answer_word(args, i, words[i]);
}

GPR_CLOSE
