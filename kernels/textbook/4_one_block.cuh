/* The whole array by one block: a part of larger kernels, and enough for a few thousand elements.
 */
#pragma once

#include "elements.cuh"

GPR_OPEN
namespace ladder {

enum { BLOCK = 1024 };
/* Two buffers' worth of matrices of 32 bytes in 48 KiB of shared memory, what a block has without
 * asking for more. */
enum { ORDERED_BLOCK = 512 };

/* One value of each thread; thread 0 has the block's. */
template <class M> __device__ __forceinline__ Value<M> fold_block(Value<M> v) {
  __shared__ Value<M> r[BLOCK];
  const int t = threadIdx.x;
  r[t] = v;
  __syncthreads();
  for (int s = BLOCK / 2; s > 0; s /= 2) {
    if (t < s) r[t] = M::combine(r[t], r[t + s]);
    __syncthreads();
  }
  return r[0];
}

/* Each thread folds x[t], x[t + B], x[t + 2B] into a register: the loop costs a load and a combine
 * for each element, and the tree with its ten barriers comes once, whatever n is. So it is a good
 * kernel on one of the device's multiprocessors, and leaves the others idle. */
template <class Op> __global__ void __launch_bounds__(BLOCK) single_block(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  const Input<Op> x(args);
  Value<M> v = M::identity();
  for (int64_t i = threadIdx.x; i < args.n; i += BLOCK) v = M::combine(v, x[i]);
  finish<Op>(args, fold_block<M>(v));
}

/* x[begin], …, x[stop − 1] in order by the block; thread 0 has the value. `a` holds 2·B values of
 * shared memory: the first half what was folded so far, as B neighbouring runs, the second half the
 * next B elements. Neighbours combine, which leaves B runs in the first half, and the second is
 * refilled. Two barriers keep those who read a pair from those who write over it. */
template <class M, class Source>
__device__ __forceinline__ Value<M> fold_in_order(Value<M> *a, Source x, int64_t begin,
                                                  int64_t stop) {
  const int t = threadIdx.x;
  const auto at = [&](int64_t i) { return i < stop ? x[i] : M::identity(); };
  a[t] = at(begin + t);
  for (int64_t next = begin + ORDERED_BLOCK; next < stop; next += ORDERED_BLOCK) {
    a[ORDERED_BLOCK + t] = at(next + t);
    __syncthreads();
    const Value<M> v = M::combine(a[2 * t], a[2 * t + 1]);
    __syncthreads();
    a[t] = v;
  }
  __syncthreads();
  for (int s = 1; s < ORDERED_BLOCK; s *= 2) {
    const int i = 2 * s * t;
    if (i < ORDERED_BLOCK) a[i] = M::combine(a[i], a[i + s]);
    __syncthreads();
  }
  return a[0];
}

/* For operators that do not commute, such as the product of matrices, a thread must not take every
 * B-th element. The order is kept by folding neighbours alone, at the price of two barriers for
 * every B elements, where single_block has none; and so each refill is waited for before the next
 * begins, 450 ns on an H200, where single_block's loads overlap, 50 ns for a turn of its loop. That
 * is what order costs if it is kept step by step. */
template <class Op>
__global__ void __launch_bounds__(ORDERED_BLOCK) single_block_noncomm(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> a[2 * ORDERED_BLOCK];
  finish<Op>(args, fold_in_order<M>(a, Input<Op>(args), 0, args.n));
}

}  // namespace ladder
GPR_CLOSE
