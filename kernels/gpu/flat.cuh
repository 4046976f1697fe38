/* A whole array, an operator of any order: each thread folds packets into a lane of its own, warps
 * merge by shuffles, blocks through shared memory, the grid through the last block. */
#pragma once

#include "lanes_of_positions.cuh"
#include "last_block.cuh"
#include "packets.cuh"
#include "../abi/rows.h"
#include "warp.cuh"

GPR_OPEN

/* Measured on an H200: 8 loads of 16 bytes in flight a thread and 4 blocks of 256 a multiprocessor
 * come to the read limit. */
enum { FLAT_THREADS = 256, FLAT_LOADS = 8, FLAT_BLOCKS = 4 };
enum { FLAT_TILE = FLAT_THREADS * FLAT_LOADS };

/* The scratch: what every kernel leaves zero (the last block's ticket, the limbs of exact sums, the
 * tree's counters), and behind it what may be left as it is (partial states, nodes of the tree). */
enum { SCRATCH_TICKET = 0, SCRATCH_LIMBS = 256, SCRATCH_COUNTERS = 2048, SCRATCH_PARTIALS = 16384 };
template <class S> GPR_DEVICE S *scratch_at(void *scratch, int offset) {
  return (S *)((char *)scratch + offset);
}

/* Thread 0 has the block's state. */
template <class F> GPR_DEVICE void merge_block(typename F::State &s) {
  __shared__ typename F::State warps[FLAT_THREADS / GPR_WARP];
  merge_warp<F>(s);
  __syncthreads();
  if (lane_of() == 0) warps[warp_of()] = s;
  __syncthreads();
  if (warp_of() == 0) {
    if (lane_of() < FLAT_THREADS / GPR_WARP)
      s = warps[lane_of()];
    else
      F::open(s);
    merge_warp<F>(s);
  }
}

template <class F>
__global__ void __launch_bounds__(FLAT_THREADS, FLAT_BLOCKS) flat_free(gpr_flat_args args) {
  typedef typename F::Element T;
  typedef typename F::State State;
  const Packets<T> in(args.data, args.n);
  const int64_t packets = in.packets(), shift = args.index - in.first;
  const int64_t tiles = (packets + FLAT_TILE - 1) / FLAT_TILE;
  const bool back = !F::ordered && (args.epoch & 1) && args.n <= GPR_BACK_BYTES / (int)sizeof(T);
  Lane<F> lane;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t tile = back ? tiles - 1 - t : t;
    const int64_t p = tile * FLAT_TILE + threadIdx.x;
    if (in.inside(tile * FLAT_TILE, FLAT_TILE)) {
      Packet<T> v[FLAT_LOADS];
      in.load(v, p, FLAT_THREADS);
      lane.take(v, shift + p * Packet<T>::count, FLAT_THREADS * Packet<T>::count);
    } else {
      for (int u = 0; u < FLAT_LOADS; u++)
        in.each(p + u * FLAT_THREADS, [&](T x, int64_t i, int) { lane.one(x, args.index + i); });
    }
  }
  State s;
  lane.result(s);
  merge_block<F>(s);

  State *partial = scratch_at<State>(args.scratch, SCRATCH_PARTIALS);
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) partial[blockIdx.x] = s;
    if (!is_last_of(scratch_at<uint32_t>(args.scratch, SCRATCH_TICKET), gridDim.x)) return;
    F::open(s);
    for (int b = threadIdx.x; b < gridDim.x; b += FLAT_THREADS) F::merge(s, partial[b]);
    merge_block<F>(s);
  }
  if (threadIdx.x == 0) answer(args, s);
}

GPR_CLOSE
