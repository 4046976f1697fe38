/* One tree in three memories: the texts' table of gmem, smem and shfl. */
#pragma once

#include "2_unrolled.cuh"

GPR_OPEN
namespace ladder {

enum { MOST_THREADS = 1024 };

/* The baseline: one value a thread, the tree written out, all of it in global memory. Every step
 * reads and writes through the caches what nobody but this block will ever want, and the copy has
 * to be there at all: the tree overwrites what it reads. */
template <class M> __global__ void gmem(gpr_ladder_args args) {
  Value<M> *x = tile_of<M>(args, 1);
  fold_written_out<M>(x, blockDim.x);
  leave<M>(args, x[0]);
}

/* The block's values are copied to shared memory, on the chip, some twenty times nearer than the
 * device's, and the tree is walked there. Global memory is read once for each element and written
 * once for each block, and the input stays as it is. On an H200 that is worth a tenth, though half
 * the bytes are read where the copy is of wider values: a block's life is still the wait for one
 * load a thread, and then a tree. */
template <class Op> __global__ void smem(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> s[MOST_THREADS];
  const Input<Op> x(args);
  s[threadIdx.x] = x[(int64_t)blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  fold_written_out<M>(s, blockDim.x);
  leave<M>(args, s[0]);
}

/* unroll4's idea again, with the sum in a register: four loads in flight a thread, and one store to
 * shared memory for four elements. Four loads are waited for together, and a quarter of the blocks
 * and trees is left: 2.6 times smem's speed on an H200, more than any change of the tree's memory.
 */
template <class Op> __global__ void unroll4_smem(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> s[MOST_THREADS];
  const Input<Op> x(args);
  const int64_t first = (int64_t)blockIdx.x * blockDim.x * 4 + threadIdx.x;
  Value<M> v[4];
#pragma unroll
  for (int u = 0; u < 4; u++) v[u] = x[first + u * blockDim.x];
  s[threadIdx.x] = M::combine(M::combine(v[0], v[1]), M::combine(v[2], v[3]));
  __syncthreads();
  fold_written_out<M>(s, blockDim.x);
  leave<M>(args, s[0]);
}

/* Every lane ends up with the warp's value. */
template <class M> __device__ __forceinline__ Value<M> fold_lanes(Value<M> v) {
#pragma unroll
  for (int mask = GPR_WARP / 2; mask > 0; mask /= 2) v = M::combine(v, shuffle_xor(v, mask));
  return v;
}

/* Lanes of a warp exchange registers: no address, no store, no waiting for one. A warp is folded in
 * five instructions and their combines; shared memory carries one word of each warp to the first
 * one, over one barrier in place of five. Per element it still has one load by one thread, which is
 * why unroll4_smem is twice as fast, and what the kernels over many blocks change. */
template <class Op> __global__ void shfl(gpr_ladder_args args) {
  typedef typename Op::Monoid M;
  __shared__ Value<M> words[MOST_THREADS / GPR_WARP];
  const Input<Op> x(args);
  Value<M> v = fold_lanes<M>(x[(int64_t)blockIdx.x * blockDim.x + threadIdx.x]);
  if (lane_of() == 0) words[warp_of()] = v;
  __syncthreads();
  if (warp_of() == 0) {
    v = lane_of() < blockDim.x / GPR_WARP ? words[lane_of()] : M::identity();
    leave<M>(args, fold_lanes<M>(v));
  }
}

}  // namespace ladder
GPR_CLOSE
