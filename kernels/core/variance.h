/* Variances: exact sums of x and of x² in one pass, and the rational that they make, rounded once.
 *
 * The square of a float with 24 bits or less is a double; that of a double takes 106 bits and twice
 * the range of exponents, so it is added to digits of its own. */
#pragma once

#include "bigint.h"
#include "exact.h"
#include "free_folds.h"

GPR_OPEN

/* --- squares ---------------------------------------------------------------------------------- */

enum { GPR_SQUARES_BOTTOM = 2 * GPR_BOTTOM };
enum { GPR_SQUARES_DIGITS = 136 }; /* 2^2048 × 2^63 elements ends in digit 131 */

struct Squares {
  int64_t digit[GPR_SQUARES_DIGITS];
  uint32_t pending, unused[3]; /* deposits since the last carry */
};

/* As an Exact's, for what multiplies 2^exponent. */
GPR_FN void deposit(Squares &s, int64_t value, int exponent) {
  deposit_at(s, value, exponent - GPR_SQUARES_BOTTOM);
}

GPR_SHARED void merge(Squares &into, const Squares &from) {
  for (int i = 0; i < GPR_SQUARES_DIGITS; i++) into.digit[i] += from.digit[i];
  into.pending += from.pending;
  if (into.pending >= 0x40000000u) carry(into);
}

/* The slow and certain road of one number; what is not finite counts nothing. */
GPR_FN void scatter_square(Squares &s, double x) {
  int exponent;
  uint32_t special = 0;
  const int64_t m = mantissa(x, exponent, special);
  if (!m) return;
  const uint128 square = (uint128)m * (uint128)m; /* the sign vanishes modulo 2^128 */
  deposit(s, (int64_t)(square & 0xfffffffffffffull), 2 * exponent);
  deposit(s, (int64_t)(square >> 52), 2 * exponent + 52);
}

/* --- folds ------------------------------------------------------------------------------------ */

/* Of complex numbers: sums of both parts, and one of the squares of both. */
template <class T> struct MomentsFold : RealParts<T> {
  typedef T Element;
  static constexpr gpr_law law = GPR_EXACT;
  static constexpr bool ordered = false;
  using RealParts<T>::parts, RealParts<T>::real;
  struct State {
    Exact part[parts];
    Squares squares;
  };
  static GPR_METHOD void open(State &s) { memset(&s, 0, sizeof s); }
  static GPR_METHOD void add(State &s, T x, int64_t) {
    for (int p = 0; p < parts; p++) {
      const double part = real(x, p);
      scatter(s.part[p], part);
      scatter_square(s.squares, part);
    }
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    for (int i = 0; i < parts; i++) gpr::merge(s.part[i], right.part[i]);
    gpr::merge(s.squares, right.squares);
  }
};

/* Integers: the sum in 128 bits, the sum of squares in 192. */
template <class T> struct IntegerMoments : FreeFold<T> {
  typedef LongSum<T> Sum;
  struct State : Sum::State {
    uint64_t square[3];
  };
  static GPR_METHOD void open(State &s) { memset(&s, 0, sizeof s); }
  static GPR_METHOD void add(State &s, T x, int64_t) {
    const auto sum = Sum::of(x);
    const uint64_t magnitude = sum.high ? 0 - sum.low : sum.low;
    const uint128 square = (uint128)magnitude * magnitude;
    merge(s, State{sum, {(uint64_t)square, (uint64_t)(square >> 64), 0}});
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    Sum::merge(s, right);
    uint128 over = 0;
    for (int i = 0; i < 3; i++) {
      over += (uint128)s.square[i] + right.square[i];
      s.square[i] = (uint64_t)over;
      over >>= 64;
    }
  }
};

/* --- the rational ----------------------------------------------------------------------------- */

/* n - ddof in units of 2^-64, not below zero: exact unless ddof has bits below 2^-64. */
GPR_FN uint128 degrees_of_freedom(int64_t n, double ddof) {
  if (!(ddof < (double)n)) return 0;
  const double bounded = greatest(ddof, -0x1p62);
  const double whole = (double)(int64_t)bounded - ((double)(int64_t)bounded > bounded);
  const double fraction = (bounded - whole) * 0x1p64;
  const uint128 result = (uint128)((uint64_t)n - (uint64_t)(int64_t)whole) << 64;
  if (fraction >= 0x1p64) return result - ((uint128)1 << 64);
  return result - (uint64_t)fraction;
}

/* x in units of 2^grid, which is below all bits of a double; whether it is negative. */
GPR_FN bool big_of_double(Big &big, double x, int grid) {
  int exponent;
  uint32_t special = 0;
  const int64_t m = mantissa(x, exponent, special);
  const int bit = exponent - grid;
  big_of(big, (uint128)(m < 0 ? -m : m) << (bit & 31));
  big.at += bit >> 5;
  return m < 0;
}

/* All parts' sums in units of 2^grid, and the sum of all their squares in units of 2^(2·grid); what
 * the rational is worked out in. */
struct Moments {
  int grid, parts;
  uint32_t special;
  bool negative[2];
  Big sum[2], squares;
  Big total, minus, product, square, count, freedom, divisor, mean;
};
template <int DIGITS> struct MomentDigits {
  uint32_t sum[2][DIGITS], squares[DIGITS];
  uint32_t total[DIGITS], minus[DIGITS], product[DIGITS], square[DIGITS];
  uint32_t count[2], freedom[4], divisor[GPR_DIVISOR_DIGITS], mean[4];
};
template <int DIGITS> GPR_FN void place(Moments &m, MomentDigits<DIGITS> &d) {
  m.sum[0].digit = d.sum[0];
  m.sum[1].digit = d.sum[1];
  m.squares.digit = d.squares;
  m.total.digit = d.total;
  m.minus.digit = d.minus;
  m.product.digit = d.product;
  m.square.digit = d.square;
  m.count.digit = d.count;
  m.freedom.digit = d.freedom;
  m.divisor.digit = d.divisor;
  m.mean.digit = d.mean;
}

/* total − minus gets − (Σx)² or, with a mean m, − 2mΣx + nm². */
GPR_FN void add_spread(Moments &w, int part, const double *mean) {
  if (!mean) {
    multiply(w.product, w.sum[part], w.sum[part]);
    add(w.minus, w.product);
    return;
  }
  const bool opposite = big_of_double(w.mean, *mean, w.grid) != w.negative[part];
  multiply(w.product, w.sum[part], w.mean);
  for (int twice = 0; twice < 2; twice++) add(opposite ? w.total : w.minus, w.product);
  multiply(w.product, w.mean, w.mean);
  multiply(w.square, w.product, w.count);
  add(w.total, w.square);
}

/* (n·Σx² − (Σx)²) / (n·freedom) or, with means, (Σx² − 2mΣx + nm²) / freedom. */
GPR_CALL Leading spread_of(Moments &w, int64_t n, uint128 freedom, const double *means) {
  big_of(w.count, (uint128)(uint64_t)n);
  big_of(w.freedom, freedom);
  if (means) {
    copy(w.total, w.squares);
    copy(w.divisor, w.freedom);
  } else {
    multiply(w.total, w.squares, w.count);
    multiply(w.divisor, w.freedom, w.count);
  }
  w.minus.count = 0;
  GPR_ROLLED(int p = 0; p < w.parts; p++) add_spread(w, p, means ? means + p : 0);
  add(w.total, w.minus, true);
  Leading result = divide(w.total, w.divisor);
  result.exponent += 64 + 2 * w.grid; /* freedom counts in units of 2^-64 */
  return result;
}

/* What there is to round, apart from a rational. */
enum SpreadCase { SPREAD_FINITE, SPREAD_INFINITE, SPREAD_NAN };

/* As IEEE arithmetic on x − mean has it: the mean of what is not finite is not, then inf − inf. */
GPR_FN SpreadCase case_of_spread(uint32_t special, int64_t n, const double *means, int parts) {
  bool infinite = special != 0;
  if (n == 0 || (special && !means) || (special & GPR_NAN)) return SPREAD_NAN;
  for (int p = 0; means && p < parts; p++) {
    const bool inf = means[p] - means[p] != 0;
    if (means[p] != means[p] || (inf && infinite)) return SPREAD_NAN;
    infinite |= inf;
  }
  return infinite ? SPREAD_INFINITE : SPREAD_FINITE;
}
/* Without degrees of freedom zero by zero is NaN, and all else infinite. */
GPR_FN SpreadCase case_without_freedom(bool zero, bool nan) {
  return zero || nan ? SPREAD_NAN : SPREAD_INFINITE;
}
template <class R> GPR_FN R round_case(SpreadCase c) {
  return c == SPREAD_NAN ? quiet_nan<R>() : Format<R>::make(Format<R>::infinity());
}

template <class R, bool ROOT>
GPR_CALL R round_spread(Moments &s, int64_t n, const gpr_spread *how) {
  const uint128 freedom = degrees_of_freedom(n, how ? how->ddof : 0);
  const double *means = how ? how->means : 0;
  const SpreadCase c = case_of_spread(s.special, n, means, s.parts);
  if (c != SPREAD_FINITE) return round_case<R>(c);
  Leading spread = spread_of(s, n, freedom ? freedom : 1, means);
  if (!freedom) return round_case<R>(case_without_freedom(!spread.bits, how && how->nan));
  return round_leading<R>(ROOT ? root_of(spread) : spread);
}

GPR_CALL void fill(Moments &m, int parts, const Exact *part, const Squares &squares) {
  m.grid = GPR_BOTTOM;
  m.parts = parts;
  m.special = 0;
  for (int p = 0; p < parts; p++) {
    m.special |= part[p].special;
    m.negative[p] = big_of(m.sum[p], part[p].digit, GPR_DIGITS);
  }
  big_of(m.squares, squares.digit, GPR_SQUARES_DIGITS);
}
template <class T> struct MomentsValue {
  const typename MomentsFold<T>::State &s;
  template <class R, bool ROOT> GPR_METHOD R spread(int64_t n, const gpr_spread *how) const {
    MomentDigits<GPR_BIG_DIGITS> digits;
    Moments m;
    place(m, digits);
    fill(m, MomentsFold<T>::parts, s.part, s.squares);
    return round_spread<R, ROOT>(m, n, how);
  }
};
template <class T> struct Shown<MomentsFold<T>> {
  static GPR_METHOD MomentsValue<T> of(const typename MomentsFold<T>::State &s) { return {s}; }
};

/* Whole digits from 1, and below all bits of a double that is given for a mean. */
enum { INTEGER_GRID = -34 * 32 };

template <class T> struct IntegerMomentsValue {
  const typename IntegerMoments<T>::State &s;
  template <class R, bool ROOT> GPR_METHOD R spread(int64_t n, const gpr_spread *how) const {
    MomentDigits<GPR_BIG_DIGITS> digits;
    Moments m;
    place(m, digits);
    const uint128 total = (uint128)(uint64_t)s.high << 64 | s.low;
    int64_t words[6];
    for (int i = 0; i < 6; i++) words[i] = (int64_t)(uint32_t)(s.square[i / 2] >> (32 * (i % 2)));
    m.grid = INTEGER_GRID;
    m.parts = 1;
    m.special = 0;
    m.negative[0] = s.high < 0;
    big_of(m.sum[0], m.negative[0] ? 0 - total : total);
    big_of(m.squares, words, 6);
    m.sum[0].at -= INTEGER_GRID / 32;
    m.squares.at -= INTEGER_GRID / 16;
    return round_spread<R, ROOT>(m, n, how);
  }
};
template <class T> struct Shown<IntegerMoments<T>> {
  typedef typename IntegerMoments<T>::State State;
  static GPR_METHOD IntegerMomentsValue<T> of(const State &s) { return {s}; }
};

GPR_CLOSE
