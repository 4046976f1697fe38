/* Roots and quotients by the steps that the device's own functions take for nearly all numbers.
 * Those branch for the others; here the least number on the way is kept, which tells once for many
 * results whether all are right, so that many go side by side. */
#pragma once

#include "warp.cuh"

GPR_OPEN

/* The size of a double as far as the order goes; NaN for NaN, infinities and the very largest. */
GPR_DEVICE float rank_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof x);
  const uint32_t high = (uint32_t)(bits >> 32) & 0x7fffffff;
  float rank;
  memcpy(&rank, &high, sizeof rank);
  return rank;
}
GPR_DEVICE float rank_of(float x) { return fabsf(x); }

#ifdef __CUDACC__
#define GPR_NEAR(name, instruction, type, letter)            \
  GPR_DEVICE type name(type x) {                             \
    type y;                                                  \
    asm(instruction " %0, %1;" : "=" letter(y) : letter(x)); \
    return y;                                                \
  }
GPR_NEAR(near_reciprocal, "rcp.approx.ftz.f32", float, "f")
GPR_NEAR(upper_reciprocal, "rcp.approx.ftz.f64", double, "d")
GPR_NEAR(near_root, "rsqrt.approx.ftz.f32", float, "f") /* one over it, as the next */
GPR_NEAR(near_root, "rsqrt.approx.ftz.f64", double, "d")
#undef GPR_NEAR
/* As the device's own has it, its lower half is not zero: of quotients by numbers whose digits are
 * all ones some would be rounded wrongly. */
GPR_DEVICE double near_reciprocal(double x) {
  return __hiloint2double(__double2hiint(upper_reciprocal(x)), 1);
}

GPR_DEVICE float quick_quotient(float a, float b, float y) {
  y = __fmaf_rn(__fmaf_rn(-b, y, 1), y, y);
  float q = __fmul_rn(a, y);
  q = __fmaf_rn(__fmaf_rn(-b, q, a), y, q);
  return __fmaf_rn(__fmaf_rn(-b, q, a), y, q);
}
GPR_DEVICE double quick_quotient(double a, double b, double y) {
  const double e = __fma_rn(-b, y, 1);
  y = __fma_rn(__fma_rn(e, e, e), y, y);
  y = __fma_rn(__fma_rn(-b, y, 1), y, y);
  const double q = __dmul_rn(a, y);
  return __fma_rn(__fma_rn(-b, q, a), y, q);
}
GPR_DEVICE float quick_root(float x, float y) {
  const float root = __fmul_rn(x, y);
  return __fmaf_rn(__fmaf_rn(-root, root, x), 0.5f * y, root);
}
GPR_DEVICE double quick_root(double x, double y) {
  const double e = __fma_rn(-x, __dmul_rn(y, y), 1);
  y = __fma_rn(__fma_rn(e, 0.375, 0.5), __dmul_rn(y, e), y);
  const double root = __dmul_rn(x, y);
  return __fma_rn(__fma_rn(-root, root, x), 0.5 * y, root);
}
#else
template <class T> T near_reciprocal(T x) { return 1 / x; }
template <class T> T near_root(T x) { return 1 / x; }
template <class T> T quick_quotient(T a, T b, T) { return a / b; }
inline float quick_root(float x, float) { return sqrtf(x); }
inline double quick_root(double x, double) { return sqrt(x); }
#endif

struct QuickMath {
  float of_roots = 1, of_quotients = 1; /* the least that was met */

  /* Zeros are their own roots, and so many in some data that one would be met in most groups. */
  GPR_DEVICE double root(double x) {
    const double rest = x == 0 ? 1 : x, found = quick_root(rest, near_root(rest));
    of_roots = better<false>(of_roots, rank_of(found));
    return x == 0 ? x : found;
  }
  /* As it comes from a number that is not zero; of one below that and above zero it is not sure. */
  GPR_DEVICE float root(float x) {
    const float found = quick_root(x, near_root(fmaxf(x, 0x1p-100f)));
    of_roots = better<false>(of_roots, found == 0 ? 1 : found);
    return found;
  }
  template <class T> GPR_DEVICE T quotient(T a, T b) {
    const T y = near_reciprocal(b), found = quick_quotient(a, b, y);
    const float least = better<false>(rank_of(a), better<false>(rank_of(y), rank_of(found)));
    of_quotients = better<false>(of_quotients, least);
    return found;
  }
  /* Below these what the steps lose could be below the smallest numbers. */
  GPR_DEVICE bool is_sure() const { return of_roots >= 0x1p-48f && of_quotients >= 0x1p-60f; }
};

GPR_CLOSE
