/* Where the elements of many outputs lie, and their results. */
#ifndef GPR_AXES_PLACES_CUH
#define GPR_AXES_PLACES_CUH

#include "../abi/axes.h"
#include "../core/portable.h"

GPR_OPEN

/* a / b of what is not negative: a division of 64 bits takes a hundred instructions. */
template <int = 0> __device__ __noinline__ int64_t long_quotient(int64_t a, int64_t b) {
  return a / b;
}
__device__ __forceinline__ int64_t quotient_of(int64_t a, int64_t b) {
  return ((uint64_t)a | (uint64_t)b) >> 32 ? long_quotient<>(a, b)
                                           : (int64_t)((uint32_t)a / (uint32_t)b);
}

/* This block's number, or as many from the end. */
__device__ __forceinline__ int64_t block_of(const gpr_axes_args &a) {
  return a.back ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
}

/* The offset of place `at` in C order of `dims` dimensions. */
template <int = 0>
__device__ __noinline__ int64_t far_offset_of(const int64_t *shape, const int64_t *strides,
                                              int dims, int64_t at) {
  int64_t offset = 0;
#pragma unroll 1
  for (int d = dims - 1; d > 0; d--) {
    const int64_t n = shape[d], rest = quotient_of(at, n);
    offset += (at - rest * n) * strides[d];
    at = rest;
  }
  return offset + at * strides[0];
}
__device__ __forceinline__ int64_t offset_of(const int64_t *shape, const int64_t *strides, int dims,
                                             int64_t at) {
  if (dims <= 1) return dims ? at * strides[0] : 0;
  if (dims > 2) return far_offset_of<>(shape, strides, dims, at);
  const int64_t row = quotient_of(at, shape[1]);
  return row * strides[0] + (at - row * shape[1]) * strides[1];
}

/* Where output k of the kept dimensions lies: bytes in the data and in the mask, and its place in
 * the result. */
struct KeptPlace {
  int64_t data, where, out;
};
__device__ __forceinline__ KeptPlace kept_place(const gpr_axes_args &a, int64_t k) {
  KeptPlace p = {0, 0, 0};
  const auto add = [&](int d, int64_t at) {
    p.data += at * a.strides[d];
    p.out += at * a.place[d];
    if (a.where) p.where += at * a.where_strides[d];
  };
#pragma unroll 1
  for (int d = a.kept - 1; d > 0; d--) {
    const int64_t over = quotient_of(k, a.shape[d]);
    add(d, k - over * a.shape[d]);
    k = over;
  }
  if (a.kept) add(0, k);
  return p;
}

GPR_CLOSE
#endif
