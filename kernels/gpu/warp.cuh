/* The shuffle vocabulary: values of any size between the 32 lanes of a warp. */
#pragma once

#include "../core/portable.h"

GPR_OPEN

enum { GPR_WARP = 32 };
#define GPR_ALL 0xffffffffu

GPR_DEVICE int lane_of() { return threadIdx.x & (GPR_WARP - 1); }
GPR_DEVICE int warp_of() { return threadIdx.x / GPR_WARP; }

/* A type without padding, or with padding that nobody reads, as 32-bit words. */
template <class S, class Move> GPR_DEVICE S move_words(const S &value, Move move) {
  constexpr int count = (sizeof(S) + 3) / 4;
  uint32_t words[count] = {};
  S result;
  memcpy(words, &value, sizeof value);
  GPR_EACH(i, count) words[i] = move(words[i]);
  memcpy(&result, words, sizeof result);
  return result;
}
template <class S> GPR_DEVICE S shuffle_down(const S &value, int by) {
  return move_words(value, [=](uint32_t w) { return __shfl_down_sync(GPR_ALL, w, by); });
}
template <class S> GPR_DEVICE S shuffle_xor(const S &value, int mask) {
  return move_words(value, [=](uint32_t w) { return __shfl_xor_sync(GPR_ALL, w, mask); });
}
template <class S> GPR_DEVICE S broadcast(const S &value, int lane) {
  return move_words(value, [=](uint32_t w) { return __shfl_sync(GPR_ALL, w, lane); });
}

/* One instruction since sm_80. */
#if __CUDA_ARCH__ >= 800
#define GPR_OF_WARP(name, both) \
  GPR_DEVICE uint32_t warp_##name(uint32_t x) { return __reduce_##name##_sync(GPR_ALL, x); }
#else
#define GPR_OF_WARP(name, both)                             \
  GPR_DEVICE uint32_t warp_##name(uint32_t x) {             \
    for (int mask = GPR_WARP / 2; mask; mask /= 2) {        \
      const uint32_t y = __shfl_xor_sync(GPR_ALL, x, mask); \
      x = both;                                             \
    }                                                       \
    return x;                                               \
  }
#endif
GPR_OF_WARP(max, x < y ? y : x)
GPR_OF_WARP(add, x + y)
GPR_OF_WARP(or, x | y)
#undef GPR_OF_WARP

/* Merges the states of a warp; every lane has the result. For folds of any order. */
template <class F> GPR_DEVICE void merge_warp(typename F::State &s) {
  GPR_UNROLLED(int mask = GPR_WARP / 2; mask; mask /= 2) {
    const typename F::State other = shuffle_xor(s, mask);
    F::merge(s, other);
  }
}

/* Units that all lanes have counted. */
GPR_DEVICE __int128 warp_units(int64_t units) {
  const uint32_t a = warp_add((uint32_t)units & 0xffffff);
  const uint32_t b = warp_add((uint32_t)(units >> 24) & 0xffffff);
  const uint32_t c = warp_add((uint32_t)(int32_t)(units >> 48));
  return ((__int128)(int32_t)c << 48) + (int64_t)(a + ((uint64_t)b << 24));
}

/* The greater or the lesser one; NaN stays. */
template <bool GREATEST> GPR_DEVICE float better(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float best;
  if (GREATEST)
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(best) : "f"(a), "f"(b));
  else
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(best) : "f"(a), "f"(b));
  return best;
#else
  return a != a || (GREATEST ? b <= a : b >= a) ? a : b;
#endif
}
/* The larger one in size. */
GPR_DEVICE float larger_or_nan(float most, float x) { return better<true>(most, fabsf(x)); }

GPR_CLOSE
