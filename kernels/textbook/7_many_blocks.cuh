/* The whole device: blocks cannot wait for one another within a launch, and must be folded too. */
#pragma once

#include "4_one_block.cuh"

GPR_OPEN
namespace ladder {

/* The thread's part of the array, in steps of the whole grid. */
template <class Op> __device__ __forceinline__ ValueOf<Op> fold_strided(const Input<Op> &x) {
  typedef typename Op::Monoid M;
  const int64_t step = (int64_t)gridDim.x * BLOCK;
  Value<M> v = M::identity();
  for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < x.n; i += step)
    v = M::combine(v, x[i]);
  return v;
}

/* The second launch of all kernels that leave partial results: one block folds them. */
template <class Op> __global__ void __launch_bounds__(BLOCK) fold_partials(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  const Value<M> *partial = (const Value<M> *)args.partials;
  Value<M> v = M::identity();
  for (int64_t b = threadIdx.x; b < args.blocks; b += BLOCK) v = M::combine(v, partial[b]);
  finish<Op>(args, fold_block<M>(v));
}

/* As many blocks as the device holds at once and no more: each runs the cheap loop for as long as
 * there is something to load, then one tree. The end of a launch is the one barrier that all blocks
 * share, so a second launch, with one block, folds the partial results. It costs about two
 * microseconds on an H200, whatever n is: what the next kernel saves. */
template <class Op> __global__ void __launch_bounds__(BLOCK) two_pass(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  leave<M>(args, fold_block<M>(fold_strided<Op>(Input<Op>(args))));
}

/* Whether this block is the last to come here, told to all its threads; called by all threads of
 * all blocks after thread 0 wrote the partial result. The first fence makes that visible before the
 * ticket, the second keeps what is read behind it from being older. The ticket is 0 before the
 * launch. */
static __device__ __forceinline__ bool draws_last_ticket(uint32_t *ticket) {
  bool last = false;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    __threadfence();
  }
  return __syncthreads_or(last);
}

/* One launch: no block waits for others, but each draws a ticket when its partial result is
 * written, and whoever draws the last one knows that all are. That block has the second pass for
 * itself. */
template <class Op> __global__ void __launch_bounds__(BLOCK) last_block(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  leave<M>(args, fold_block<M>(fold_strided<Op>(Input<Op>(args))));
  if (!draws_last_ticket(args.ticket)) return;
  const Value<M> *partial = (const Value<M> *)args.partials;
  Value<M> v = M::identity();
  for (int b = threadIdx.x; b < gridDim.x; b += BLOCK) v = M::combine(v, partial[b]);
  finish<Op>(args, fold_block<M>(v));
}

/* The order kept over many blocks: the array is cut in one contiguous section for each, and a block
 * folds its section as single_block_noncomm does. The partial results lie in the order of the
 * sections, and the last block folds them in the same way. It fills the device, and is held back by
 * its barriers to half of last_block's speed; the library's tree keeps the order too, and folds in
 * registers. */
template <class Op>
__global__ void __launch_bounds__(ORDERED_BLOCK) last_block_noncomm(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> a[2 * ORDERED_BLOCK];
  const int64_t section = (args.n + gridDim.x - 1) / gridDim.x;
  const int64_t begin = least(blockIdx.x * section, args.n);
  const int64_t stop = least(begin + section, args.n);
  leave<M>(args, fold_in_order<M>(a, Input<Op>(args), begin, stop));
  if (!draws_last_ticket(args.ticket)) return;
  const Value<M> *partial = (const Value<M> *)args.partials;
  finish<Op>(args, fold_in_order<M>(a, partial, 0, gridDim.x));
}

}  // namespace ladder
GPR_CLOSE
