/* What the lanes of a warp have of a sum, added up at once.
 *
 * The greatest term opens a window of three levels. Each lane counts the units of its terms in
 * them, and integers are added over the warp by single instructions; pairs that merge in five turns
 * are some hundred instructions that wait for each other. */
#ifndef GPR_WARP_SUMS_CUH
#define GPR_WARP_SUMS_CUH

#include "batch.cuh"

GPR_OPEN

/* A lane has less than 2^48 units of three terms, all have less than 2^53: a double. */
enum { WARP_LEVELS = 3, TERM_BITS = 46, WARP_LEVEL_BITS = TERM_BITS + 1 };

__device__ __forceinline__ double units_of_warp(int64_t units) {
  enum { DIGIT = 27 };
  const uint32_t low = warp_add((uint32_t)units & ((1u << DIGIT) - 1));
  const uint32_t high = warp_add((uint32_t)(units >> DIGIT));
  return (double)(((int64_t)(int32_t)high << DIGIT) + low);
}
/* Levels as terms; whether they hold all. */
__device__ __forceinline__ bool take_levels(Pair &sum, const double (&x)[WARP_LEVELS]) {
  bool lost = false;
  sum.hi = x[0] + x[1];
  sum.lo = add_checked(rounding_error(x[0], x[1], sum.hi), x[2], lost);
  return !lost;
}
__device__ __forceinline__ bool take_levels(Triple &sum, const double (&x)[WARP_LEVELS]) {
  sum.hi = x[0] + x[1];
  const double low = rounding_error(x[0], x[1], sum.hi);
  sum.lo = low + x[2];
  sum.tail = rounding_error(low, x[2], sum.lo);
  return true;
}
/* By all lanes, which then have the sum; or false, and `sum` is as it was: zeros, whose signs
 * count, what is no number, and what has bits of too many sizes. */
template <class Sum> __device__ __forceinline__ bool added_by_warp(Sum &sum) {
  uint32_t most = 0;
  each_term(sum, [&](double x) {
    const uint32_t size = (uint32_t)(bits(x) >> 32) & 0x7fffffffu;
    most = most < size ? size : most;
  });
  const int top = (int)(warp_max(most) >> 20) - 1022; /* all are below 2^top */
  const int first = top + 52 - TERM_BITS, last = first - (WARP_LEVELS - 1) * WARP_LEVEL_BITS;
  bool lost = first > 1023 || last - 52 < -1022;
  double start[WARP_LEVELS], window[WARP_LEVELS], level[WARP_LEVELS];
#pragma unroll
  for (int l = 0; l < WARP_LEVELS; l++)
    start[l] = window[l] = window_start(first - l * WARP_LEVEL_BITS);
  each_term(sum, [&](double x) {
#pragma unroll
    for (int l = 0; l < WARP_LEVELS; l++) x = caught(window[l], x);
    lost |= x != 0;
  });
  if (__any_sync(GPR_ALL, lost)) return false;
#pragma unroll
  for (int l = 0; l < WARP_LEVELS; l++) {
    const double unit = from_bits((bits(start[l]) >> 52) - 52 << 52);
    level[l] = units_of_warp((int64_t)(bits(window[l]) - bits(start[l]))) * unit;
  }
  return take_levels(sum, level);
}

GPR_CLOSE
#endif
