/* The warp's fold as a part of the block's. */
#pragma once

#include "4_one_block.cuh"
#include "5_one_warp.cuh"

GPR_OPEN
namespace ladder {

/* single_block's loop; then each warp folds its own 32 words, and the first warp one word of each.
 * 32 warps of 32 lanes make 1024 in two levels: one barrier of the block where the tree had ten,
 * and all warps at work in the first level. That is won once, behind the loop: for
 * millions of elements it is not seen, and it is still one block on one multiprocessor. */
template <class Op> __global__ void __launch_bounds__(BLOCK) block_of_warps(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> r[BLOCK];
  const Input<Op> x(args);
  Value<M> v = M::identity();
  for (int64_t i = threadIdx.x; i < args.n; i += BLOCK) v = M::combine(v, x[i]);
  r[threadIdx.x] = v;
  __syncwarp();
  fold_words<M>(r + warp_of() * GPR_WARP);
  __syncthreads();
  if (warp_of() == 0) {
    v = r[lane_of() * GPR_WARP];
    __syncwarp();
    r[lane_of()] = v;
    __syncwarp();
    fold_words<M>(r);
    finish<Op>(args, r[0]);
  }
}

}  // namespace ladder
GPR_CLOSE
