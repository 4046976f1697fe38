/* More work a thread, then fewer instructions around it. Still in global memory. */
#pragma once

#include "elements.cuh"

GPR_OPEN
namespace ladder {

/* U blocks of data folded into the first, value by value. */
template <class M, int U> __device__ __forceinline__ void fold_tile(Value<M> *x) {
  Value<M> v[U];
#pragma unroll
  for (int u = 0; u < U; u++) v[u] = x[threadIdx.x + u * blockDim.x];
#pragma unroll
  for (int u = 1; u < U; u++) v[0] = M::combine(v[0], v[u]);
  x[threadIdx.x] = v[0];
  __syncthreads();
}

/* unroll2, unroll4, unroll8: before the tree, each thread folds U values that lie a block apart.
 * The U loads do not wait for one another, which is what a memory with a latency of hundreds of
 * cycles needs to be kept busy, and there are U times fewer blocks to start, trees to walk and
 * partial results to fold. The three together are worth as much as all that came before, each less
 * than the last: it ends when enough is in flight. */
template <class M, int U> __global__ void unrolled(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, U);
  const int t = threadIdx.x;
  fold_tile<M, U>(x);
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s) x[t] = M::combine(x[t], x[t + s]);
    __syncthreads();
  }
  leave<M>(args, x[0]);
}

/* The last 64 values by the first warp. The texts rely on the lanes of a warp marching in step, and
 * on volatile; since Volta lanes may run apart, and each step reads, waits for the others' reading,
 * writes and waits for the others' writing. Lanes beyond the stride compute what nobody reads. */
template <class M> __device__ __forceinline__ void fold_last_64(Value<M> *x) {
  const int t = threadIdx.x;
  if (t >= GPR_WARP) return;
#pragma unroll
  for (int s = 32; s > 0; s /= 2) {
    const Value<M> v = M::combine(x[t], x[t + s]);
    __syncwarp();
    x[t] = v;
    __syncwarp();
  }
}

/* In the last six steps at most one warp works, yet all others come to the barriers. Here the block
 * stops at 64 values and its first warp goes on alone, with __syncwarp, which costs next to
 * nothing, in place of __syncthreads: six barriers fewer of nine. The texts' devices won by it; an
 * H200 does not, for while a block waits at its barriers the others on its multiprocessor load. */
template <class M> __global__ void unroll_warp8(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, 8);
  const int t = threadIdx.x;
  fold_tile<M, 8>(x);
  for (int s = blockDim.x / 2; s > 32; s /= 2) {
    if (t < s) x[t] = M::combine(x[t], x[t + s]);
    __syncthreads();
  }
  fold_last_64<M>(x);
  leave<M>(args, x[0]);
}

/* The steps of a block of any of the usual sizes, written out. The size is the same for the whole
 * block, and so each of its threads comes to the same barriers. */
template <class M> __device__ __forceinline__ void fold_written_out(Value<M> *x, int threads) {
  const int t = threadIdx.x;
  if (threads >= 1024) {
    if (t < 512) x[t] = M::combine(x[t], x[t + 512]);
    __syncthreads();
  }
  if (threads >= 512) {
    if (t < 256) x[t] = M::combine(x[t], x[t + 256]);
    __syncthreads();
  }
  if (threads >= 256) {
    if (t < 128) x[t] = M::combine(x[t], x[t + 128]);
    __syncthreads();
  }
  if (threads >= 128) {
    if (t < 64) x[t] = M::combine(x[t], x[t + 64]);
    __syncthreads();
  }
  fold_last_64<M>(x);
}

/* No loop, no counter, no address that depends on it: the strides are constants, and what is left
 * of the loop is a test of the block's size before each step. Fewer instructions, and no less time
 * where they are not what is waited for. */
template <class M> __global__ void complete_unroll_warp8(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, 8);
  fold_tile<M, 8>(x);
  fold_written_out<M>(x, blockDim.x);
  leave<M>(args, x[0]);
}

/* The same lines with the block's size as a parameter of the template: the tests are decided by the
 * compiler, and a kernel for each size holds its own steps alone. On old devices that was worth a
 * few percent; where memory is what one waits for, nothing. What remains slow is the memory that
 * the tree is walked in. */
template <class M, int B> __global__ void complete_unroll_template(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, 8);
  fold_tile<M, 8>(x);
  fold_written_out<M>(x, B);
  leave<M>(args, x[0]);
}

}  // namespace ladder
GPR_CLOSE
