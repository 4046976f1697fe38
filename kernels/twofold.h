/* Variances of columns of doubles in twice the precision of one, where that tells what the exact
 * one rounds to. Idea: a sum that carries its errors along (Ogita, Rump, Oishi, "Accurate sum and
 * dot product", 2005), and a bound that says whether they can matter (Ziv, 1991). */
#ifndef GPR_TWOFOLD_H
#define GPR_TWOFOLD_H

#include "columns.h"

GPR_OPEN

/* a·b − product, exactly, while nothing underflows: by one fused instruction, or by halves of the
 * mantissa (Dekker, "A floating-point technique for extending the available precision", 1971). */
GPR_FN Doubles product_rest(const Doubles a, const Doubles b, const Doubles product) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)product);
#elif defined(__FMA__) && defined(__AVX2__)
  return (Doubles)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)product);
#else
  const double half = 134217729.0; /* 2^27 + 1 */
  const Doubles a1 = a * half - (a * half - a), a2 = a - a1;
  const Doubles b1 = b * half - (b * half - b), b2 = b - b1;
  return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}

GPR_FN Doubles root_of(const Doubles x) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
#else
  Doubles root = x; /* gcc warns of what is filled lane by lane */
  for (int l = 0; l < WIDTH; l++) root[l] = __builtin_sqrt(x[l]);
  return root;
#endif
}

/* high + low, of which low is small. */
struct Twofold {
  Doubles high, low;

  /* What the addition to high loses goes to low (Knuth). */
  GPR_METHOD void add(const Doubles x) {
    const Doubles sum = high + x, of_x = sum - high;
    low += (high - (sum - of_x)) + (x - of_x);
    high = sum;
  }
};

/* (n·squares − sum²) / divisor. */
GPR_FN Twofold quotient_of(const Twofold sum, const Twofold squares, Doubles n, Doubles divisor) {
  const Doubles all = n * squares.high, minus = sum.high * sum.high;
  const Doubles all_low = product_rest(n, squares.high, all) + n * squares.low;
  const Doubles minus_low = product_rest(sum.high, sum.high, minus) + 2.0 * sum.high * sum.low;
  Twofold spread = {all, Doubles{}}, exact = {Doubles{}, Doubles{}};
  spread.add(-minus);
  exact.high = spread.high;
  exact.add(spread.low + (all_low - minus_low));
  const Doubles high = exact.high / divisor;
  return {high, (exact.low - product_rest(high, divisor, exact.high)) / divisor};
}
GPR_FN Twofold root_of(const Twofold x) {
  const Doubles root = root_of(x.high);
  return {root, (x.low - product_rest(root, root, x.high)) / (2.0 * root)};
}

/* With u = 2^-53 and Q = Σx², the sums are off by n²u²Σ|x| and 4n²u²Q at most, n·Σx² − (Σx)² by
 * 20n³u²Q after its few operations on low parts, and what follows adds some u² of the quotient.
 * Twice as much and more is allowed, for this is computed in doubles too. */
static constexpr double TWOFOLD_ERROR = 0x1p-100, TWOFOLD_UNIT = 0x1p-100;
/* So far from the ends of the exponents that nothing underflows but what is below that error, and
 * nothing overflows. */
static constexpr double TWOFOLD_LEAST = 0x1p-900, TWOFOLD_MOST = 0x1p900;

/* The variances, or deviations, of LANES columns of n doubles, 2 to GPR_SHORT, whose n·(n − ddof)
 * is `divisor`; a bit a lane of those that are not sure. Its own function, for this is where
 * products and sums may be fused. */
template <bool ROOT>
GPR_CALL uint64_t twofold_spreads(const double *x, int64_t stride, int64_t n, double divisor,
                                  double *to) {
  const Doubles count = (double)n - Doubles{}, by = divisor - Doubles{};
  uint64_t unsure = 0;
  for (int v = 0; v < VECTORS; v++) {
    Twofold sum = {Doubles{}, Doubles{}}, squares = sum;
    for (int64_t row = 0; row < n; row++) {
      const Doubles d = load(x + row * stride + v * WIDTH), square = d * d;
      sum.add(d);
      squares.add(square);
      squares.low += product_rest(d, d, square);
    }
    Twofold spread = quotient_of(sum, squares, count, by);
    Doubles error = TWOFOLD_ERROR * count * count * count * squares.high / by;
    error += TWOFOLD_UNIT * spread.high;
    Words out = ~(Words)((spread.high >= TWOFOLD_LEAST) & (squares.high <= TWOFOLD_MOST));
    if (ROOT) {
      spread = root_of(spread);
      error = error / spread.high + TWOFOLD_UNIT * spread.high;
    }
    const Doubles low = spread.high + (spread.low - error);
    const Doubles high = spread.high + (spread.low + error);
    memcpy(to + v * WIDTH, &high, sizeof high);
    out |= (Words)(low != high);
    unsure |= mask_of(out) << (v * WIDTH);
  }
  return unsure;
}

GPR_CLOSE
#endif
