/* Where the elements of many outputs lie, and their results. */
#pragma once

#include "../abi/axes.h"
#include "../core/portable.h"

GPR_OPEN

/* a / b of what is not negative: a division of 64 bits takes a hundred instructions. */
template <int = 0> __device__ __noinline__ int64_t long_quotient(int64_t a, int64_t b) {
  return a / b;
}
GPR_DEVICE int64_t quotient_of(int64_t a, int64_t b) {
  return ((uint64_t)a | (uint64_t)b) >> 32 ? long_quotient<>(a, b)
                                           : (int64_t)((uint32_t)a / (uint32_t)b);
}

/* Where b is mostly one or greater than a. */
GPR_DEVICE int64_t seldom_quotient_of(int64_t a, int64_t b) {
  return b == 1 ? a : a < b ? 0 : quotient_of(a, b);
}
/* Of a power of two. */
GPR_DEVICE int log2_of(int x) { return __ffs(x) - 1; }
/* Of numbers below 2^16. */
GPR_DEVICE int small_quotient_of(int a, int b) { return (int)(((float)a + 0.5f) / (float)b); }

/* This block's number, or as many from the end. */
GPR_DEVICE int64_t block_of(const gpr_axes_args &a) {
  return a.back ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
}

/* The offset of place `at` in C order of `dims` dimensions. */
template <int64_t gpr_axes_dim::*STRIDE>
__device__ __noinline__ int64_t far_offset_of(const gpr_axes_dim *dim, int dims, int64_t at) {
  int64_t offset = 0;
  GPR_ROLLED(int d = dims - 1; d > 0; d--) {
    const int64_t n = dim[d].size, rest = quotient_of(at, n);
    offset += (at - rest * n) * (dim[d].*STRIDE);
    at = rest;
  }
  return offset + at * (dim[0].*STRIDE);
}
template <int64_t gpr_axes_dim::*STRIDE>
GPR_DEVICE int64_t offset_of(const gpr_axes_dim *dim, int dims, int64_t at) {
  if (dims <= 1) return dims ? at * (dim[0].*STRIDE) : 0;
  if (dims > 2) return far_offset_of<STRIDE>(dim, dims, at);
  const int64_t row = quotient_of(at, dim[1].size);
  return row * (dim[0].*STRIDE) + (at - row * dim[1].size) * (dim[1].*STRIDE);
}

/* Where output k of the kept dimensions lies: bytes in the data and in the mask, and its place in
 * the result. */
struct KeptPlace {
  int64_t data, where, out;
};
GPR_DEVICE KeptPlace kept_place(const gpr_axes_args &a, int64_t k) {
  KeptPlace p = {0, 0, 0};
  const auto add = [&](int d, int64_t at) {
    p.data += at * a.dim[d].stride;
    p.out += at * a.dim[d].place;
    if (a.where) p.where += at * a.dim[d].where_stride;
  };
  GPR_ROLLED(int d = a.kept - 1; d > 0; d--) {
    const int64_t over = quotient_of(k, a.dim[d].size);
    add(d, k - over * a.dim[d].size);
    k = over;
  }
  if (a.kept) add(0, k);
  return p;
}

GPR_CLOSE
