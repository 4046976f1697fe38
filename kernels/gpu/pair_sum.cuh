/* An exact sum by one thread: two or three doubles, and a long integer for what they cannot hold,
 * which is seldom. */
#pragma once

#include "../core/exact.h"
#include "../core/operators.h"
#include "batch.cuh"

GPR_OPEN

/* --- the long integer ------------------------------------------------------------------------- */

/* Units of 2^bottom in two's complement: 64 bits below the least number, for rounding; 64 above the
 * greatest, for 2^63 of them. */
template <class R> struct LongBits;
template <> struct LongBits<float> { static constexpr int bottom = -149 - 64, words = 7; };
template <> struct LongBits<double> { static constexpr int bottom = -1074 - 64, words = 36; };
template <class R> struct Long {
  static constexpr int bottom = LongBits<R>::bottom, words = LongBits<R>::words;
  uint64_t word[words];
};

/* value·2^(64·at) with its sign extended, to so many words. Once in a kernel, as add_long(): of
 * what was unrolled for each length sums of doubles had 25 KB. */
static __device__ __noinline__ void add_words(uint64_t *word, int words, int at, uint64_t low,
                                              uint64_t high, uint64_t sign) {
  uint64_t over = 0;
  GPR_ROLLED(int i = at; i < words; i++) {
    const uint64_t value = i == at ? low : i == at + 1 ? high : sign;
    if (i > at + 1 && (over ? sign : ~sign) == ~0ull) return; /* nothing changes any more */
    const uint64_t sum = word[i] + value, all = sum + over;
    over = (sum < value) | (all < sum);
    word[i] = all;
  }
}
static __device__ __noinline__ void add_long(uint64_t *to, const uint64_t *from, int words) {
  uint64_t over = 0;
#pragma unroll 4
  for (int i = 0; i < words; i++) {
    const uint64_t value = from[i], sum = to[i] + value, all = sum + over;
    over = (sum < value) | (all < sum);
    to[i] = all;
  }
}
/* value·2^bit in the long integer's units, of 64 bits with a sign or without. */
template <class R, class V> GPR_DEVICE void add_at(Long<R> &to, V value, int bit) {
  static_assert(sizeof value == 8, "");
  const int shift = bit & 63;
  add_words(to.word, Long<R>::words, bit >> 6, (uint64_t)value << shift,
            (uint64_t)(value >> 1 >> (63 - shift)), (uint64_t)(value >> 32 >> 32));
}

/* Of a state that has one beside it, which is seldom used: `special` and `used` tell. */
template <class S> __device__ inline void clear_rest(S &s) {
  GPR_ROLLED(int i = 0; i < decltype(s.rest)::words; i++) s.rest.word[i] = 0;
}
template <class S> __device__ inline void use(S &s) {
  if (s.used) return;
  s.used = 1;
  clear_rest(s);
}
template <class S> GPR_DEVICE void assign_rest(S &to, const S &from) {
  to.special = from.special;
  to.used = from.used;
  if (from.used)
    GPR_ROLLED(int i = 0; i < decltype(to.rest)::words; i++) to.rest.word[i] = from.rest.word[i];
}
/* A multiple of the least number; NaN and infinities go to special. Not inlined: it stands where
 * nothing else is alive. */
template <class S> __device__ __noinline__ void add_rest(S *s, double x) {
  int exponent;
  use(*s);
  const int64_t m = mantissa(x, exponent, s->special);
  if (m) add_at(s->rest, m, exponent - decltype(s->rest)::bottom);
}

/* --- the state of a real sum ------------------------------------------------------------------ */

template <class R> struct RealSum {
  typedef typename TermsOfSum<R>::type Sum;
  Sum sum;
  uint32_t special; /* as an Exact's */
  uint32_t used;    /* rest is more than nothing */
  Long<R> rest;
};
template <class R> GPR_DEVICE void open(RealSum<R> &s) {
  clear(s.sum);
  s.special = s.used = 0;
}
/* As far as it is used. */
template <class R> GPR_DEVICE void assign(RealSum<R> &to, const RealSum<R> &from) {
  to.sum = from.sum;
  assign_rest(to, from);
}
template <class R> GPR_DEVICE void add_one(RealSum<R> &s, double x) {
  auto p = s.sum;
  bool lost = false;
  add_to_all(p, x, lost);
  if (!lost)
    s.sum = p;
  else if (!are_finite(s.sum.hi, x))
    s.sum.hi += x;
  else
    add_rest(&s, x);
}
template <class R> __device__ __noinline__ void add_both(RealSum<R> *s, const RealSum<R> *right) {
  use(*s);
  s->special |= right->special;
  if (right->used) add_long(s->rest.word, right->rest.word, Long<R>::words);
  each_term(right->sum, [&](double x) { add_rest(s, x); });
}
template <class R> GPR_DEVICE void merge(RealSum<R> &s, const RealSum<R> &right) {
  bool lost = right.used;
  const auto p = merged(s.sum, right.sum, lost);
  if (lost)
    add_both(&s, &right);
  else
    s.sum = p;
}

/* --- rounding, once --------------------------------------------------------------------------- */

template <class T> GPR_DEVICE void round_pair(double hi, double lo, T *out) {
  const double sum = hi + lo;
  round_once(lo == 0 ? hi : to_odd(sum, rounding_error(hi, lo, sum)), out);
}
GPR_DEVICE void round_pair(double hi, double lo, double *out) { *out = lo == 0 ? hi : hi + lo; }
template <class T> GPR_DEVICE void round_terms(const Pair &p, T *out) {
  round_pair(p.hi, p.lo, out);
}
/* Whether adding the terms up may overflow on the way to a sum that does not. */
GPR_DEVICE bool is_near_the_end(const Pair &) { return false; }
GPR_DEVICE bool is_near_the_end(const Triple &p) { return p.tail != 0 && !(fabs(p.hi) < 0x1p1023); }
/* Three TwoSums leave two terms, each of less than the one before's last bit, and what those were
 * rounded by, of which the second one's last bit keeps enough. (Boldo and Melquiond, "Emulation of
 * FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.) */
template <class T> GPR_DEVICE void round_terms(const Triple &p, T *out) {
  if (p.tail == 0) return round_pair(p.hi, p.lo, out);
  const double s = p.hi + p.lo, low = rounding_error(p.hi, p.lo, s);
  if constexpr (Same<T, double>::value) { /* both ends of what is left round the same */
    const double left = low + p.tail, off = fabs(left) * 0x1p-51;
    *out = s + (left - off);
    if (*out == s + (left + off)) return;
  }
  const double t = low + p.tail, last = rounding_error(low, p.tail, t);
  const double first = s + t, left = rounding_error(s, t, first);
  const double rest = left + last;
  round_pair(first, to_odd(rest, rounding_error(left, last, rest)), out);
}

/* x / d rounded as a division rounds it, where 1 / d is known, which quotients by one number share:
 * the first quotient is off by less than two units in its last place, the second by less than one,
 * and two remainders mend that. Of finite x so large that the remainders are no less than the
 * smallest numbers; of zero without its sign. (Markstein, "Computation of elementary functions on
 * the IBM RISC System/6000 processor", 1990.) */
GPR_DEVICE double divided_by(double x, double d, double reciprocal) {
  double quotient = x * reciprocal;
  GPR_EACH(i, 2) quotient = fma(product_error(-quotient, d, -x), reciprocal, quotient);
  return quotient;
}
/* What sums are divided by. */
struct Over {
  int64_t n;
  double d, reciprocal;
  GPR_DEVICE explicit Over(int64_t n) : n(n), d((double)n), reciprocal(1 / d) {}
  GPR_DEVICE Over() : n(1), d(1), reciprocal(1) {}
};
/* Divided first: two digits of the quotient, the second one rounded to odd by the sign of what is
 * left. */
template <class T, class S> GPR_DEVICE void round_quotient(const S &p, const Over &over, T *out) {
  const double d = over.d, reciprocal = over.reciprocal, hi = p.lo == 0 ? p.hi : p.hi + p.lo,
               lo = p.lo == 0 ? 0 : rounding_error(p.hi, p.lo, hi);
  const double first = divided_by(hi, d, reciprocal), rest = product_error(-first, d, -hi);
  const double sum = rest + lo, error = rounding_error(rest, lo, sum);
  double second = divided_by(sum, d, reciprocal);
  second = to_odd(second, product_error(-second, d, -sum) + error);
  round_pair(first, second == 0 ? 0 : second, out);
}
/* So far from the ends of the exponents that both digits are whole. */
GPR_DEVICE bool can_divide(double x, int64_t n) {
  const double size = fabs(x);
  return n >> 53 == 0 && size > 0x1p-800 && size < 0x1p1000;
}
template <class S> GPR_DEVICE bool can_divide(const S &p, int64_t n) {
  return !has_tail(p) && can_divide(p.hi, n) && (p.lo == 0 || fabs(p.lo) > 0x1p-900);
}
/* The same of three terms; false where that does not tell. */
template <class T> GPR_DEVICE bool divide_terms(const Pair &, int64_t, T *) { return false; }
template <class T> GPR_DEVICE bool divide_terms(const Triple &p, int64_t n, T *out) {
  const double d = (double)n, s = p.hi + p.lo, low = rounding_error(p.hi, p.lo, s);
  const double t = low + p.tail, last = rounding_error(low, p.tail, t);
  const double hi = s + t, left = rounding_error(s, t, hi);
  const double lo = left + last, end = rounding_error(left, last, lo);
  const double first = hi / d, rest = product_error(-first, d, -hi);
  const double sum = rest + lo, error = rounding_error(rest, lo, sum);
  double second = sum / d;
  const double below = product_error(-second, d, -sum);
  const double few = error + end, lost = rounding_error(error, end, few);
  const double sign = below + few, off = fabs(rounding_error(below, few, sign)) + fabs(lost);
  const bool is_whole = hi + lo == hi && (second != 0 || sign == 0);
  second = to_odd(second, sign);
  round_pair(first, second == 0 ? 0 : second, out);
  return is_whole && can_divide(hi, n) && (off == 0 || fabs(sign) > 2 * off);
}

/* What two doubles cannot: any words, divided by n and rounded. */
template <class T, class R>
__device__ __noinline__ void round_long(RealSum<R> *s, int64_t n, T *out) {
  each_term(s->sum, [&](double x) { add_rest(s, x); });
  clear(s->sum);
  if (round_special(s->special, out)) return;
  bool negative;
  const Leading sum = leading_of(s->rest.word, Long<R>::words, Long<R>::bottom, negative);
  *out = round_leading<T>(over(sum, (uint64_t)n), negative);
}

/* Of a sum that is not finite. */
template <class T> GPR_DEVICE T narrow_special(double x) {
  const uint64_t infinity = Format<T>::infinity(),
                 sign = infinity + (1ull << (Format<T>::precision - 1));
  return x != x ? quiet_nan<T>() : Format<T>::make(x < 0 ? sign | infinity : infinity);
}
/* The sum over n, rounded once. */
template <class T, class R> GPR_DEVICE void round_sum(RealSum<R> &s, int64_t n, T *out) {
  if (s.sum.hi != s.sum.hi || (!s.used && !is_finite(s.sum.hi)))
    *out = narrow_special<T>(s.sum.hi);
  else if (!s.used && n == 1 && !is_near_the_end(s.sum))
    round_terms(s.sum, out);
  else if (n == 0)
    *out = quiet_nan<T>();
  else if (!s.used && s.sum.hi == 0 && s.sum.lo == 0 && !has_tail(s.sum))
    round_pair(s.sum.hi, 0, out);
  else if (!s.used && can_divide(s.sum, n))
    round_quotient(s.sum, Over(n), out);
  else if (s.used || !divide_terms(s.sum, n, out))
    round_long<T>(&s, n, out);
}

/* --- the fold --------------------------------------------------------------------------------- */

/* exact_sum.h's ExactFold in the states of this file. */
template <class T> struct PairSum : FreeFold<T>, RealParts<T> {
  typedef typename RealParts<T>::Real Real;
  using RealParts<T>::parts, RealParts<T>::real;
  struct State {
    RealSum<Real> part[parts];
  };
  static GPR_DEVICE void open(State &s) {
    for (int p = 0; p < parts; p++) gpr::open(s.part[p]);
  }
  static GPR_DEVICE void add(State &s, T x, int64_t) {
    for (int p = 0; p < parts; p++) add_one(s.part[p], real(x, p));
  }
  static GPR_DEVICE void merge(State &s, const State &right) {
    for (int p = 0; p < parts; p++) gpr::merge(s.part[p], right.part[p]);
  }
  static GPR_DEVICE void assign(State &to, const State &from) {
    for (int p = 0; p < parts; p++) gpr::assign(to.part[p], from.part[p]);
  }
};

/* A state, spent by being asked. Its functions stand once in a kernel, whatever operators ask. */
template <class T> struct PairSumValue {
  typedef PairSum<T> F;
  typename F::State *sum;
  bool nothing; /* was met: the neutral -0.0 is no sum of nothing */
  static __device__ __noinline__ void add_to(typename F::State *sum, T x) { F::add(*sum, x, -1); }
  template <class R>
  static __device__ __noinline__ R rounded(RealSum<typename F::Real> *sum, int64_t n) {
    R out;
    round_sum(*sum, n, &out);
    return out;
  }
  GPR_DEVICE void add(T x) {
    add_to(sum, x);
    nothing = false;
  }
  template <class R> GPR_DEVICE R part(int p, uint64_t n) {
    if (nothing) sum->part[p].sum.hi = 0;
    return rounded<R>(&sum->part[p], (int64_t)n);
  }
  template <class R> GPR_DEVICE R round(uint64_t n = 1) { return Parts<R>::round(*this, n); }
};

GPR_CLOSE
