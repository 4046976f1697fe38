/* What the threads of a warp or of a block have of a sum, added up at once.
 *
 * The greatest term opens a window of three levels. Each thread counts the units of its terms in
 * them, and integers are added over a warp by single instructions; pairs that merge in five turns
 * are some hundred instructions that wait for each other. The last of 264 blocks took 3,400 cycles
 * of an H200 to come to the sum of all, and takes 2,050. */
#ifndef GPR_WARP_SUMS_CUH
#define GPR_WARP_SUMS_CUH

#include "batch.cuh"

GPR_OPEN

enum { FINITE_END = 0x7ff00000 }; /* the upper half of infinity */
/* A term is less than 2^42 units of its level, and 2^11 of them less than 2^53: a double. */
enum { SUM_LEVELS = 3, TERM_BITS = 42, SUM_LEVEL_BITS = TERM_BITS + 1 };

/* The greatest term's size, as the upper half of its bits. */
template <class Sum> __device__ __forceinline__ uint32_t size_of_terms(const Sum &sum) {
  uint32_t most = 0;
  each_term(sum, [&](double x) {
    const uint32_t size = (uint32_t)(bits(x) >> 32) & 0x7fffffffu;
    most = most < size ? size : most;
  });
  return most;
}

/* A thread's. `lost`: not of what is no number, and of what has bits of too many sizes. */
struct SumLevels {
  double start[SUM_LEVELS], window[SUM_LEVELS];
  bool lost;
  __device__ __forceinline__ explicit SumLevels(uint32_t most) {
    const int top = most ? (int)(most >> 20) - 1022 : 0; /* all are below 2^top */
    const int first = top + 52 - TERM_BITS, last = first - (SUM_LEVELS - 1) * SUM_LEVEL_BITS;
    lost = first > 1023 || last - 52 < -1022;
#pragma unroll
    for (int l = 0; l < SUM_LEVELS; l++)
      start[l] = window[l] = window_start(first - l * SUM_LEVEL_BITS);
  }
  template <class Sum> __device__ __forceinline__ void add(const Sum &sum) {
    each_term(sum, [&](double x) {
#pragma unroll
      for (int l = 0; l < SUM_LEVELS; l++) x = caught(window[l], x);
      lost |= x != 0;
    });
  }
  /* Of all lanes. */
  __device__ __forceinline__ int64_t units_of_warp(int l) const {
    return (int64_t)warp_units((int64_t)(bits(window[l]) - bits(start[l])));
  }
  __device__ __forceinline__ double value(int l, int64_t units) const {
    return (double)units * from_bits(((bits(start[l]) >> 52) - 52) << 52);
  }
};
/* Levels as terms; whether they hold all. */
__device__ __forceinline__ bool take_levels(Pair &sum, const double (&x)[SUM_LEVELS]) {
  bool lost = false;
  sum.hi = x[0] + x[1];
  sum.lo = add_checked(rounding_error(x[0], x[1], sum.hi), x[2], lost);
  return !lost;
}
__device__ __forceinline__ bool take_levels(Triple &sum, const double (&x)[SUM_LEVELS]) {
  sum.hi = x[0] + x[1];
  const double low = rounding_error(x[0], x[1], sum.hi);
  sum.lo = low + x[2];
  sum.tail = rounding_error(low, x[2], sum.lo);
  return true;
}

/* Zeros have no units, and a sum of them is -0.0 if each of them is. */
__device__ __forceinline__ bool is_plus(double zero) { return bits(zero) == 0; }

/* A NaN decides. */
template <class Sum> __device__ __forceinline__ bool decided(Sum &sum, bool nan) {
  if (nan) sum.hi = NAN;
  return nan;
}

/* By all lanes, which then have the sum; or false, and it is lost. */
template <class Sum> __device__ __forceinline__ bool added_by_warp(Sum &sum) {
  const uint32_t most = warp_max(size_of_terms(sum));
  if (most >= FINITE_END) return decided(sum, __any_sync(GPR_ALL, sum.hi != sum.hi));
  const bool plus = most || __any_sync(GPR_ALL, is_plus(sum.hi));
  SumLevels levels(most);
  levels.add(sum);
  if (__any_sync(GPR_ALL, levels.lost)) return false;
  double x[SUM_LEVELS];
#pragma unroll
  for (int l = 0; l < SUM_LEVELS; l++) x[l] = levels.value(l, levels.units_of_warp(l));
  const bool fits = take_levels(sum, x);
  if (!plus) sum.hi = -0.0;
  return fits;
}

/* By all threads of a block of so many warps, N sums each: all have the sum in all[0]; or false,
 * and they are as they were. */
template <int WARPS> struct BlockLevels {
  uint32_t most[WARPS];
  int64_t units[SUM_LEVELS][WARPS];
};
template <int WARPS, int N, class Sum>
__device__ __forceinline__ bool added_by_block(Sum (&all)[N], bool lost, BlockLevels<WARPS> &room) {
  static_assert(3 * N * WARPS * GPR_WARP <= 1 << 11, "the bits of a level's units");
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < N; i++) most = greatest(most, size_of_terms(all[i]));
  most = warp_max(most);
  if (lane_of() == 0) room.most[warp_of()] = most;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < WARPS; w++) most = greatest(most, room.most[w]);
  if (most >= FINITE_END) {
    bool nan = false;
#pragma unroll
    for (int i = 0; i < N; i++) nan |= all[i].hi != all[i].hi;
    return decided(all[0], __syncthreads_or(nan));
  }
  bool plus = most != 0;
  if (!plus) {
#pragma unroll
    for (int i = 0; i < N; i++) plus |= is_plus(all[i].hi);
    plus = __syncthreads_or(plus);
  }
  SumLevels levels(most);
#pragma unroll
  for (int i = 0; i < N; i++) levels.add(all[i]);
#pragma unroll
  for (int l = 0; l < SUM_LEVELS; l++) {
    const int64_t units = levels.units_of_warp(l);
    if (lane_of() == 0) room.units[l][warp_of()] = units;
  }
  if (__syncthreads_or(lost || levels.lost)) return false;
  double x[SUM_LEVELS];
#pragma unroll
  for (int l = 0; l < SUM_LEVELS; l++) {
    int64_t units = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) units += room.units[l][w];
    x[l] = levels.value(l, units);
  }
  Sum sum;
  const bool fits = take_levels(sum, x); /* all say the same */
  if (!plus) sum.hi = -0.0;
  if (fits) all[0] = sum;
  return fits;
}

GPR_CLOSE
#endif
