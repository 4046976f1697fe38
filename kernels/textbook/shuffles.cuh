/* Seven ways for the lanes of a warp to read each other's registers.
 *
 * A shuffle is one instruction: every lane offers a register and names the lane that it wants to
 * read. Nothing goes through shared memory and no barrier is needed, since the instruction itself
 * is where the lanes meet; which lanes, its mask says (all 32 here, also those beyond the array's
 * end: a lane that a shuffle waits for must come). A width below 32 cuts the warp into segments
 * that do not see each other, so that one warp serves several small problems. */
#pragma once

#include "../abi/shuffles.h"
#include "../gpu/warp.cuh"

GPR_OPEN
namespace ladder {

/* A thread's VALUES consecutive values; those beyond the array's end are there, as zeros, but never
 * go anywhere. */
template <class T, int VALUES> struct Lane {
  int lane;      /* in its segment */
  int64_t first; /* of the segment's values */
  T value[VALUES];

  __device__ explicit Lane(const gpr_shuffle_args &args) {
    const int64_t thread = (int64_t)blockIdx.x * GPR_SHUFFLE_THREADS + threadIdx.x;
    lane = (int)(thread % args.width);
    first = (thread - lane) * VALUES;
#pragma unroll
    for (int k = 0; k < VALUES; k++) value[k] = at(lane, k) < args.n ? load(args, k) : T(0);
  }
  __device__ int64_t at(int lane, int k) const { return first + lane * VALUES + k; }
  __device__ T load(const gpr_shuffle_args &args, int k) const {
    return ((const T *)args.data)[at(lane, k)];
  }
  /* What came from value `theirs` of lane `from`, if there is such a value. */
  __device__ void leave(const gpr_shuffle_args &args, int k, T got, int from, int theirs) const {
    const int64_t here = at(lane, k);
    if (here < args.n) ((T *)args.out)[here] = at(from, theirs) < args.n ? got : value[k];
  }
};

/* Everybody reads the same lane. It is how a warp shares what one lane found out: the index that it
 * fetched from a queue, the pivot, the largest exponent. */
template <class T> __global__ void broadcast_lane(gpr_shuffle_args args) {
  const Lane<T, 1> own(args);
  const T got = __shfl_sync(GPR_ALL, own.value[0], args.by, args.width);
  own.leave(args, 0, got, args.by, 0);
}

/* Everybody reads the lane `by` below. The lowest ones have nobody there and keep what they have:
 * the hardware leaves their register alone. Shifts by 1, 2, 4, 8, 16, each added in, make a prefix
 * sum of a warp. */
template <class T> __global__ void shift_up(gpr_shuffle_args args) {
  const Lane<T, 1> own(args);
  const T got = __shfl_up_sync(GPR_ALL, own.value[0], args.by, args.width);
  own.leave(args, 0, got, own.lane < args.by ? own.lane : own.lane - args.by, 0);
}

/* Everybody reads the lane `by` above. Shifts by 1, 2, 4, 8, 16 fold a warp into its lane 0 with
 * the order kept, for each step joins a lane's block to the one right behind it. */
template <class T> __global__ void shift_down(gpr_shuffle_args args) {
  const Lane<T, 1> own(args);
  const T got = __shfl_down_sync(GPR_ALL, own.value[0], args.by, args.width);
  const int from = own.lane + args.by;
  own.leave(args, 0, got, from < args.width ? from : own.lane, 0);
}

/* The shift that comes in again at the other end. There is no instruction for it and none is
 * needed: a shuffle takes any lane's number, here one that each lane works out for itself. */
template <class T> __global__ void wrap(gpr_shuffle_args args) {
  const Lane<T, 1> own(args);
  const int from = (own.lane + args.by) % args.width;
  const T got = __shfl_sync(GPR_ALL, own.value[0], from, args.width);
  own.leave(args, 0, got, from, 0);
}

/* Lanes change places in pairs, lane ^ mask. Masks 16, 8, 4, 2, 1 fold a warp so that every lane
 * ends with the result, in as many steps as the shifts, which leave it to lane 0 alone. */
template <class T> __global__ void butterfly(gpr_shuffle_args args) {
  const Lane<T, 1> own(args);
  const T got = __shfl_xor_sync(GPR_ALL, own.value[0], args.by, args.width);
  own.leave(args, 0, got, own.lane ^ args.by, 0);
}

/* A shuffle moves one register of each lane; an array in registers takes one for each element. The
 * loop must unroll, or else the array has to lie in local memory, which can be indexed. */
template <class T> __global__ void butterfly_array(gpr_shuffle_args args) {
  const Lane<T, 4> own(args);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const T got = __shfl_xor_sync(GPR_ALL, own.value[k], args.by, args.width);
    own.leave(args, k, got, own.lane ^ args.by, k);
  }
}

/* Registers have no addresses: which one is meant must be chosen by comparisons. */
template <class T> __device__ __forceinline__ T pick(const T *v, int i) {
  T picked = v[0];
#pragma unroll
  for (int k = 1; k < 4; k++) picked = k == i ? v[k] : picked;
  return picked;
}
template <class T> __device__ __forceinline__ void place(T *v, int i, T x) {
#pragma unroll
  for (int k = 0; k < 4; k++) v[k] = k == i ? x : v[k];
}
template <class T> __device__ __forceinline__ void swap_registers(T *v, int i, int j) {
  const T kept = pick(v, i);
  place(v, i, pick(v, j));
  place(v, j, kept);
}

/* Value i of one lane changes places with value j of its partner. A shuffle sends the same register
 * that it receives, so the even lanes (seen in steps of the mask's lowest bit, which tells partners
 * apart) swap i and j before and after, and all exchange j. Transposing a matrix that lies in a
 * warp's registers is made of such steps. */
template <class T> __global__ void swap_across(gpr_shuffle_args args) {
  const Lane<T, 4> own(args);
  const bool even = !(own.lane & (args.by & -args.by));
  const int mine = even ? args.i : args.j, theirs = even ? args.j : args.i;
  T v[4] = {own.value[0], own.value[1], own.value[2], own.value[3]};
  if (even) swap_registers(v, args.i, args.j);
  place(v, args.j, __shfl_xor_sync(GPR_ALL, pick(v, args.j), args.by, args.width));
  if (even) swap_registers(v, args.i, args.j);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const bool moved = k == mine;
    own.leave(args, k, v[k], moved ? own.lane ^ args.by : own.lane, moved ? theirs : k);
  }
}

}  // namespace ladder
GPR_CLOSE
