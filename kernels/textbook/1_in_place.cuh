/* Three ways to walk the same tree, in global memory. All take B threads for B values, log2 B steps
 * with a barrier behind each, and leave the block's sum in the tile's first value. */
#pragma once

#include "elements.cuh"

GPR_OPEN
namespace ladder {

/* The picture of every text: value t takes in its neighbour t + 1, then t + 2, then t + 4. It is
 * right for any associative operator, and slow, because the working threads thin out evenly: in the
 * second step one thread of four works, and still each warp of the block has one, so that each warp
 * is issued in each step, with most of its lanes idle. The next kernel has the same pairs. */
template <class M> __global__ void neighbored(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, 1);
  const int t = threadIdx.x;
  for (int s = 1; s < blockDim.x; s *= 2) {
    if (t % (2 * s) == 0) x[t] = M::combine(x[t], x[t + s]);
    __syncthreads();
  }
  leave<M>(args, x[0]);
}

/* The pairs are handed to the first threads of the block, whatever values those are. After the
 * first step half of the warps have nothing to do and end at once, after the second three quarters:
 * divergence is left only where fewer than 32 pairs are. But the values that a warp reads lie ever
 * farther apart, 2·s words, so that a warp's load soon touches 32 lines for 32 words. */
template <class M> __global__ void neighbored_less(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, 1);
  for (int s = 1; s < blockDim.x; s *= 2) {
    const int i = 2 * s * threadIdx.x;
    if (i < blockDim.x) x[i] = M::combine(x[i], x[i + s]);
    __syncthreads();
  }
  leave<M>(args, x[0]);
}

/* Strides from large to small: thread t takes in t + B/2, then t + B/4. The working threads are the
 * first ones and what they touch is contiguous, so that loads coalesce into whole lines. The order
 * of the operands is no longer that of the index: the operator must commute. From here on what is
 * left to win is the loading: half of the threads do nothing but exist after the first step. */
template <class M> __global__ void interleaved(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, 1);
  const int t = threadIdx.x;
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s) x[t] = M::combine(x[t], x[t + s]);
    __syncthreads();
  }
  leave<M>(args, x[0]);
}

}  // namespace ladder
GPR_CLOSE
