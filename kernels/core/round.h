/* Rounding once, to nearest even: of an integer of any length its leading bits and whether anything
 * lies below them, divided and rooted as such. */
#pragma once

#include "types.h"

GPR_OPEN

typedef unsigned __int128 uint128;

/* What is not finite and was met, as bits. */
enum { GPR_NAN = 1, GPR_PLUS_INF = 2, GPR_MINUS_INF = 4 };

/* --- leading bits ----------------------------------------------------------------------------- */

/* The leading bits of a number: between bits·2^exponent (inclusive) and that of bits + 1; `sticky`
 * if it is not the lower end. The first bit is set, unless all is zero. The last 63 may be zeros
 * in place of what they were, as long as that makes it sticky: rounding needs but 55. */
struct Leading {
  uint128 bits;
  int exponent;
  bool sticky;
};

GPR_FN int leading_zeros(uint64_t x) { /* x > 0 */
#ifdef __CUDACC__
  return __clzll((long long)x);
#else
  return __builtin_clzll(x);
#endif
}
GPR_FN int leading_zeros(uint128 x) { /* x > 0 */
  const uint64_t high = (uint64_t)(x >> 64);
  return high ? leading_zeros(high) : 64 + leading_zeros((uint64_t)x);
}

GPR_FN Leading leading_of(uint128 magnitude, int exponent) {
  if (!magnitude) return {0, 0, false};
  const int zeros = leading_zeros(magnitude);
  return {magnitude << zeros, exponent - zeros, false};
}

/* The magnitude of words in two's complement, in units of 2^exponent; whether it was negative. */
GPR_FN Leading leading_of(const uint64_t *word, int words, int exponent, bool &negative) {
  negative = word[words - 1] >> 63;
  const uint64_t sign = negative ? ~0ull : 0;
  int low = 0, top = words - 1;
  while (low < words && !word[low]) low++;
  if (low == words) return {0, 0, false};
  /* -x is ~x + 1, which ends at the lowest word that is not zero */
  const auto at = [&](int i) { return i < low ? 0 : (word[i] ^ sign) + (negative && i == low); };
  while (!at(top)) top--;
  const uint64_t last = at(top - 2);
  const uint128 bits = (uint128)at(top) << 64 | at(top - 1);
  const int zeros = leading_zeros(at(top));
  return {bits << zeros | (zeros ? last >> (64 - zeros) : 0), exponent + 64 * (top - 1) - zeros,
          last << zeros != 0 || low < top - 2};
}

/* The number over n, which is below 2^63. */
GPR_FN Leading over(Leading x, uint64_t n) {
  if (n <= 1 || !x.bits) return x;
  const uint128 quotient = x.bits / n;
  const int zeros = leading_zeros((uint64_t)(quotient >> 64)); /* which is not zero */
  return {quotient << zeros, x.exponent - zeros, x.sticky || quotient * n != x.bits};
}

/* The square root from above, by Newton's iteration. */
GPR_FN uint64_t root_of(uint128 x) { /* x >= 2^126 */
  uint128 root = ~(uint64_t)0;
  for (;;) {
    const uint128 next = (root + x / root) >> 1;
    if (next >= root) return (uint64_t)root;
    root = next;
  }
}
GPR_FN Leading root_of(Leading x) {
  if (!x.bits) return x;
  if (x.exponent & 1) {
    x.sticky |= x.bits & 1;
    x.bits >>= 1;
    x.exponent++;
  }
  const uint64_t root = root_of(x.bits);
  const int zeros = root >> 63 ? 0 : 1;
  x.sticky |= (uint128)root * root != x.bits;
  x.bits = (uint128)root << (64 + zeros);
  x.exponent = x.exponent / 2 - 64 - zeros;
  return x;
}

/* --- rounding --------------------------------------------------------------------------------- */

/* The bits of the number of T that is nearest, ties to even. */
template <class T> GPR_FN uint64_t round_bits_of(const Leading &x) {
  typedef Format<T> F;
  if (!x.bits) return 0;
  const int last = greatest(x.exponent + 128 - F::precision, (int)F::smallest);
  const int drop = last - x.exponent; /* at least 75 */
  if (drop > 128) return 0;
  uint64_t kept = drop < 128 ? (uint64_t)(x.bits >> drop) : 0;
  const bool half = x.bits >> (drop - 1) & 1;
  const bool below = x.sticky || x.bits << (129 - drop) != 0;
  if (half && (below || (kept & 1))) kept++;
  kept += (uint64_t)(last - F::smallest) << (F::precision - 1);
  return least(kept, F::infinity());
}
template <class T> GPR_FN T round_leading(const Leading &x, bool negative = false) {
  typedef Format<T> F;
  const uint64_t sign = F::infinity() + (1ull << (F::precision - 1));
  return F::make((negative ? sign : 0) | round_bits_of<T>(x));
}

/* What a sum is that met anything that is not finite; false if it did not. */
template <class T> GPR_FN bool round_special(uint32_t special, T *out) {
  const uint32_t both = GPR_PLUS_INF | GPR_MINUS_INF;
  if (!special) return false;
  const uint64_t infinity = Format<T>::infinity();
  const uint64_t sign = infinity + (1ull << (Format<T>::precision - 1));
  if ((special & GPR_NAN) || (special & both) == both)
    *out = quiet_nan<T>();
  else
    *out = Format<T>::make(special & GPR_MINUS_INF ? sign | infinity : infinity);
  return true;
}

GPR_CLOSE
