/* The global work queue: items of very different cost, fetched one by one.
 *
 * The items are segments of an array, each summed by a whole block. Who gets which is all that the
 * three kernels differ in. */
#pragma once

#include "../gpu/warp.cuh"
#include "../abi/work_queue.h"

GPR_OPEN
namespace ladder {

enum { NO_SEGMENT = -1, SEGMENT_WARPS = GPR_SEGMENT_THREADS / GPR_WARP };

/* Thread 0 has the block's sum. */
__device__ __forceinline__ uint64_t block_sum(uint64_t sum) {
  __shared__ uint64_t warps[SEGMENT_WARPS];
#pragma unroll
  for (int d = GPR_WARP / 2; d; d /= 2) sum += shuffle_down(sum, d);
  if (lane_of() == 0) warps[warp_of()] = sum;
  __syncthreads();
  sum = threadIdx.x < SEGMENT_WARPS ? warps[threadIdx.x] : 0;
#pragma unroll
  for (int d = SEGMENT_WARPS / 2; d; d /= 2) sum += shuffle_down(sum, d);
  __syncthreads(); /* before the next segment's sums come */
  return sum;
}

template <class T> __device__ void sum_segment(const gpr_segment_args &args, int64_t i) {
  const T *data = (const T *)args.data;
  const int64_t start = args.offset[i], next = i + 1 < args.count ? args.offset[i + 1] : args.n;
  const int64_t stop = next > start ? next : start + 1;
  uint64_t sum = 0;
  for (int64_t at = start + threadIdx.x; at < stop; at += GPR_SEGMENT_THREADS)
    sum += (uint64_t)(int64_t)data[at];
  sum = block_sum(sum);
  if (threadIdx.x == 0) args.sum[i] = (int64_t)sum;
}

/* Each block has its section of the list. Nothing is shared and nothing is counted; but where long
 * segments lie together one block gets them all, and the others wait for it. */
template <class T>
__global__ void __launch_bounds__(GPR_SEGMENT_THREADS) fixed_segments(gpr_segment_args args) {
  const int64_t each = (args.count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * each;
  for (int64_t i = first; i < first + each && i < args.count; i++) sum_segment<T>(args, i);
}

/* Dealt like cards, so that neighbours go to different blocks. It helps until the costs have the
 * period of the grid, or one hand happens to hold more long segments than others. */
template <class T>
__global__ void __launch_bounds__(GPR_SEGMENT_THREADS) dealt_segments(gpr_segment_args args) {
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) sum_segment<T>(args, i);
}

/* The next item's index, or NO_SEGMENT. Called by all threads of the block: thread 0 draws it from
 * the counter that all blocks share, and hands it on through shared memory. The first barrier keeps
 * it from overwriting an index that another thread has yet to read, the second one keeps them from
 * reading it too early. */
__device__ __forceinline__ int64_t fetch(const gpr_segment_args &args) {
  __shared__ int64_t drawn;
  __syncthreads();
  if (threadIdx.x == 0) drawn = (int64_t)atomicAdd(args.next, 1ull);
  __syncthreads();
  return drawn < args.count ? drawn : NO_SEGMENT;
}

/* A block takes the next item when it is done with its last: whatever the items cost, no block is
 * idle while there is one left. The price is an atomic addition and two barriers for each item, in
 * the same place for all blocks; items should be worth more than that. */
template <class T>
__global__ void __launch_bounds__(GPR_SEGMENT_THREADS) work_queue(gpr_segment_args args) {
  for (int64_t i = fetch(args); i != NO_SEGMENT; i = fetch(args)) sum_segment<T>(args, i);
}

}  // namespace ladder
GPR_CLOSE
