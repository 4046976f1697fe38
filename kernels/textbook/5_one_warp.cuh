/* Up to 32 elements by one warp: the smallest part of larger kernels, with no barrier of a block.
 * The texts' warps march in step; here each step says where the lanes must wait for one another.
 * Timed alone the five are equal: the launch takes longer than what they differ in. */
#pragma once

#include "elements.cuh"

GPR_OPEN
namespace ladder {

/* 32 words of shared memory folded into the first; called by all lanes. */
template <class M> __device__ __forceinline__ void fold_words(Value<M> *a) {
  const int l = lane_of();
#pragma unroll
  for (int s = GPR_WARP / 2; s > 0; s /= 2) {
    if (l < s) a[l] = M::combine(a[l], a[l + s]);
    __syncwarp();
  }
}

/* Lane l takes in l + 16, then l + 8, 4, 2, 1, each step under its guard. A lane that writes reads
 * words that no other lane writes in the same step, so that one __syncwarp behind each is enough.
 */
template <class Op> __global__ void single_warp(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> a[GPR_WARP];
  const int l = lane_of();
  a[l] = Input<Op>(args)[l];
  __syncwarp();
  fold_words<M>(a);
  finish<Op>(args, a[0]);
}

/* One guard for all five steps: the lanes beyond the stride compute what nobody reads, which costs
 * nothing, for a warp takes the same time for 1 lane as for 16, and spares four tests. In exchange
 * a word is now read by one lane while another wants to write it: the reads come first, then the
 * writes. */
template <class Op> __global__ void single_warp_unguarded(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  constexpr unsigned half = 0xffffu;
  __shared__ Value<M> a[GPR_WARP];
  const int l = lane_of();
  a[l] = Input<Op>(args)[l];
  __syncwarp();
  if (l < GPR_WARP / 2) {
#pragma unroll
    for (int s = GPR_WARP / 2; s > 0; s /= 2) {
      const Value<M> v = M::combine(a[l], a[l + s]);
      __syncwarp(half);
      a[l] = v;
      __syncwarp(half);
    }
  }
  finish<Op>(args, a[0]);
}

/* Neighbours first, then runs of 2, 4, 8, 16: the operands stay in order, as operators that do not
 * commute want it. Inside one warp the lanes that do nothing are idle either way, so that here the
 * order costs nothing but the remainders in the guards. */
template <class Op> __global__ void single_warp_noncomm(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> a[GPR_WARP];
  const int l = lane_of();
  a[l] = Input<Op>(args)[l];
  __syncwarp();
#pragma unroll
  for (int s = 1; s < GPR_WARP; s *= 2) {
    if (l % (2 * s) == 0) a[l] = M::combine(a[l], a[l + s]);
    __syncwarp();
  }
  finish<Op>(args, a[0]);
}

/* No guards at all: each lane folds the run that starts at it, and the sixteen words behind the
 * warp's hold the identity, so that the last lanes find something to fold. */
template <class Op> __global__ void single_warp_noncomm_padded(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> a[GPR_WARP + GPR_WARP / 2];
  const int l = lane_of();
  a[l] = Input<Op>(args)[l];
  if (l < GPR_WARP / 2) a[GPR_WARP + l] = M::identity();
  __syncwarp();
#pragma unroll
  for (int s = 1; s < GPR_WARP; s *= 2) {
    const Value<M> v = M::combine(a[l], a[l + s]);
    __syncwarp();
    a[l] = v;
    __syncwarp();
  }
  finish<Op>(args, a[0]);
}

/* The same runs from register to register: a shuffle gives lane l the value of lane l + s, or its
 * own where there is none, which only lanes see that lane 0 does not depend on. No memory, no
 * waiting, any operator, and lane 0 broadcasts the result: the least work of the five. */
template <class Op> __global__ void single_warp_registers(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  Value<M> v = Input<Op>(args)[lane_of()];
#pragma unroll
  for (int s = 1; s < GPR_WARP; s *= 2) v = M::combine(v, shuffle_down(v, s));
  finish<Op>(args, broadcast(v, 0));
}

}  // namespace ladder
GPR_CLOSE
