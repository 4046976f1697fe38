/* What an addition and a product of doubles are rounded by: exactly, unless something over- or
 * underflows. (TwoSum: Knuth, The Art of Computer Programming 2, 4.2.2. TwoProd: Dekker, "A
 * floating-point technique for extending the available precision", 1971.) D is double or a vector
 * of them, whose minus() may be told otherwise. */
#pragma once

#include "types.h"

GPR_OPEN

GPR_FN double minus(double a, double b) { return a - b; }

/* What a + b was rounded by to t; NaN where t is not finite. */
template <class D> GPR_FN D rounding_error(const D a, const D b, const D t) {
  const D of_b = minus(t, a);
  return minus(a, t - of_b) + minus(b, of_b);
}

/* Exact if and only if both parts come back: of the larger one the subtraction is exact. */
GPR_FN double add_checked(double a, double b, bool &lost) {
  const double t = a + b;
  lost |= !(t - a == b);
  lost |= !(t - b == a);
  return t;
}

/* a·b less what it was rounded to: by one fused instruction, or by halves of the mantissa. */
#ifdef __CUDACC__
GPR_FN double product_error(double a, double b, double product) { return fma(a, b, -product); }
#else
template <class D> GPR_FN D product_error(const D a, const D b, const D product) {
  const double half = 134217729.0; /* 2^27 + 1 */
  const D a1 = a * half - (a * half - a), a2 = a - a1;
  const D b1 = b * half - (b * half - b), b2 = b - b1;
  return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
}
#endif

/* t + error rounded to odd: what a second rounding needs to know is kept. */
GPR_FN double to_odd(double t, double error) {
  if (error == 0) return t;
  uint64_t u = bits(t);
  if ((error > 0) != (t > 0)) u--;
  return from_bits(u | 1);
}

GPR_CLOSE
