/* Sums of columns that carry along what their additions lose. That is added up too, and while it
 * loses nothing itself, two numbers hold the exact sum, which one more addition rounds. No exponent
 * has to be known before. Idea: TwoSum (Knuth, The Art of Computer Programming, volume 2). */
#ifndef GPR_CARRIED_H
#define GPR_CARRIED_H

#include "exact_lanes.h"

GPR_OPEN

template <class R> struct Vector;
template <> struct Vector<float> {
  typedef Singles Reals;
  typedef Words32 Bits;
};
template <> struct Vector<double> {
  typedef Doubles Reals;
  typedef Words Bits;
};

/* TwoProd by one fused instruction, where there is one. */
GPR_FN Doubles product_rest(const Doubles a, const Doubles b, const Doubles product) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)product);
#elif defined(__FMA__) && defined(__AVX2__)
  return (Doubles)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)product);
#else
  return product_error(a, b, product);
#endif
}

GPR_CALL Doubles round_pair(Doubles high, Doubles low, const Words whole, const Doubles n,
                            Words &missed);

/* Of two vectors, which hide some of an addition's latency and stay in 16 registers. */
template <class R> struct Carried {
  typedef typename Vector<R>::Reals Reals;
  typedef typename Vector<R>::Bits Bits;
  enum { ACROSS = GPR_VECTOR / sizeof(R), ABREAST = 2, COLUMNS = ABREAST * ACROSS };
  Reals high[ABREAST], low[ABREAST];
  Bits lost[ABREAST];

  /* What an addition to the sum loses; infinite or NaN where anything overflows. */
  static GPR_METHOD Reals add(Reals &sum, const Reals x) {
    const Reals all = sum + x, rest = rounding_error(sum, x, all);
    sum = all;
    return rest;
  }
  static GPR_METHOD Reals load(const R *x) {
    Reals v;
    memcpy(&v, x, sizeof v);
    return v;
  }
  GPR_METHOD void open(const R *x) {
    for (int k = 0; k < ABREAST; k++) {
      high[k] = load(x + k * ACROSS);
      low[k] = Reals{};
      lost[k] = Bits{};
    }
  }
  GPR_METHOD void add(const R *x, int64_t stride, int64_t rows, int64_t ahead = 0) {
    Carried c = *this;
    for (int64_t row = 0; row < rows; row++, x += stride) {
      prefetch_later<COLUMNS>(x, ahead);
      for (int k = 0; k < ABREAST; k++) {
        const Reals rest = add(c.high[k], load(x + k * ACROSS));
        c.lost[k] |= (Bits)add(c.low[k], rest);
      }
    }
    *this = c;
  }
  /* The sums, divided. */
  GPR_METHOD uint64_t round(double *to, const double *by) const {
    uint64_t missed = 0;
    for (int k = 0; k < ABREAST; k++) {
      Words unsure = (Words)(lost[k] << 1 != 0);
      const Doubles n = gpr::load(by + k * ACROSS);
      const Doubles quotient = round_pair(high[k], low[k], ~Words{}, n, unsure);
      memcpy(to + k * ACROSS, &quotient, sizeof quotient);
      missed |= mask_of((Words)(unsure != 0)) << (k * ACROSS);
    }
    return missed;
  }
  /* The sums; bits of the columns of which they are not sure. */
  GPR_METHOD uint64_t round(R *to) const {
    uint64_t missed = 0;
    for (int k = 0; k < ABREAST; k++) {
      const Bits whole = (Bits)(low[k] == 0); /* -0.0 if all are */
      const Reals sum = high[k] + low[k];
      const Bits bits = (whole & (Bits)high[k]) | (~whole & (Bits)sum);
      memcpy(to + k * ACROSS, &bits, sizeof bits);
      const Bits unsure = (Bits)(lost[k] << 1 != 0) | (Bits)(sum != sum); /* zeros have signs */
      missed |= mask_of(unsure) << (k * ACROSS);
    }
    return missed;
  }
};

/* On Zen 3, 2^22 doubles in ms so and by windows: 16 rows 2.2 and 3.2, 32 rows 2.1 and 2.6, more
 * the same. */
enum { CARRIED_ROWS = 32 };

/* Of LANES columns; of few rows, which need no state that is kept. */
template <class R> GPR_FN uint64_t sum_few(const R *x, int64_t stride, int64_t rows, R *to) {
  uint64_t missed = 0;
  for (int64_t j = 0; j < LANES; j += Carried<R>::COLUMNS) {
    Carried<R> c;
    c.open(x + j);
    c.add(x + stride + j, stride, rows - 1);
    missed |= c.round(to + j) << j;
  }
  return missed;
}

/* --- sums and means of what two doubles hold ---------------------------------------------------
 */

/* high + low, with a rest that is below low's last bit: whole where there is none. Divided by n and
 * rounded once; missed gets what is not sure. What is next to half of a last place, but not
 * just there, is left to the certain road, as is what is so small or large that a quotient's rest
 * is no double. */
GPR_CALL Doubles round_pair(Doubles high, Doubles low, const Words whole, const Doubles n,
                            Words &missed) {
  const Words exponent = (0x7ffull << 52) - Words{}, one = 1 - Words{};
  const Words zero = (Words)(high == 0) & (Words)(low == 0) & whole, sign = bits(high);
  const Doubles rest = Carried<double>::add(high, low);
  const Doubles quotient = high / n;
  Doubles left = rest;
  const Doubles gone = Carried<double>::add(left, -product_rest(quotient, n, high));
  const Doubles more = left / n, back = more * n; /* more is all there is where that goes back */
  const Words all = (Words)(back == left) & (Words)(gone == 0) & whole &
                    (Words)(product_rest(more, n, back) == 0);
  const Doubles result = quotient + more, error = more - (result - quotient);
  const Words size = bits(result) & exponent;
  const Doubles doubt = (Doubles)(bits(error) & (~(one << 63))) * 0x1.000002p53;
  const Words tiny = (Words)(size < 200 * (one << 52)) | (Words)(size > 2000 * (one << 52));
  const Words simple = (Words)(bits(result) << 12 != 0) | (Words)(bits(error) << 1 == 0);
  missed |= ~zero & (tiny | (~all & (~simple | ~(Words)(doubt < (Doubles)size))));
  return (Doubles)((zero & sign) | (~zero & bits(result)));
}
GPR_CLOSE
#endif
