/* An exact sum by one thread: two or three doubles, and a long integer for what they cannot hold.
 *
 * Additions of doubles whose rounding error is zero, which two subtractions tell, need no window:
 * the pair hi + lo follows its sum up and down, keeps about 104 bits below it, and IEEE's rules for
 * the signs of zeros come for free. What a pair of doubles' sum is rounded by goes to a third one,
 * 150 bits below it; what would be rounded there goes to the long integer, a number at a time,
 * which is certain and seldom. (Knuth, The Art of Computer Programming 2, 4.2.2.) */
#ifndef GPR_PAIR_CUH
#define GPR_PAIR_CUH

#include "../core/convert.h"
#include "../core/exact.h"
#include "../core/operators.h"
#include "warp.cuh"

GPR_OPEN

/* --- the long integer ----------------------------------------------------------------------------
 */

/* Units of 2^bottom in two's complement: 64 bits below the least number, for rounding; 64 above the
 * greatest, for 2^63 of them. */
template <class R> struct LongBits;
template <> struct LongBits<float> { static constexpr int bottom = -149 - 64, words = 7; };
template <> struct LongBits<double> { static constexpr int bottom = -1074 - 64, words = 36; };
template <class R> struct Long {
  static constexpr int bottom = LongBits<R>::bottom, words = LongBits<R>::words;
  uint64_t word[words];
};

/* value·2^(64·at) with its sign extended. */
template <class R>
__device__ inline void add_words(Long<R> &to, int at, uint64_t low, uint64_t high, uint64_t sign) {
  uint64_t over = 0;
  for (int i = at; i < Long<R>::words; i++) {
    const uint64_t value = i == at ? low : i == at + 1 ? high : sign;
    if (i > at + 1 && (over ? sign : ~sign) == ~0ull) return; /* nothing changes any more */
    const uint64_t sum = to.word[i] + value, all = sum + over;
    over = (sum < value) | (all < sum);
    to.word[i] = all;
  }
}
/* A finite double that is a multiple of the least number; NaN and infinities go to special. */
template <class R> __device__ inline void add_double(Long<R> &to, double x, uint32_t &special) {
  int exponent;
  const int64_t m = mantissa(x, exponent, special);
  if (!m) return;
  const int bit = exponent - Long<R>::bottom, shift = bit & 63;
  add_words(to, bit >> 6, (uint64_t)m << shift, (uint64_t)((m >> 1) >> (63 - shift)),
            (uint64_t)(m >> 63));
}
template <class R> __device__ inline void add_long(Long<R> &to, const Long<R> &from) {
  uint64_t over = 0;
  for (int i = 0; i < Long<R>::words; i++) {
    const uint64_t value = from.word[i], sum = to.word[i] + value, all = sum + over;
    over = (sum < value) | (all < sum);
    to.word[i] = all;
  }
}

/* --- pairs ---------------------------------------------------------------------------------------
 */

/* An unevaluated sum. -0.0 is the neutral element: a sum is -0.0 only where all that it met is. hi
 * is NaN where a NaN was met: whatever else there is, that is the sum. */
struct Pair {
  double hi, lo;
};
struct Triple {
  double hi, lo, tail;
};
/* What a thread keeps of a sum: floats have the bits of a pair. */
template <class R> struct TermsOfSum { typedef Pair type; };
template <> struct TermsOfSum<double> { typedef Triple type; };

GPR_FN void clear(Pair &p) { p.hi = p.lo = -0.0; }
GPR_FN void clear(Triple &p) { p.hi = p.lo = -0.0, p.tail = 0; }
GPR_FN bool has_tail(const Pair &) { return false; }
GPR_FN bool has_tail(const Triple &p) { return p.tail != 0; }
/* each(x) of all doubles. */
template <class Each> __device__ __forceinline__ void each_term(const Pair &p, Each each) {
  each(p.hi);
  each(p.lo);
}
template <class Each> __device__ __forceinline__ void each_term(const Triple &p, Each each) {
  each(p.hi);
  each(p.lo);
  if (p.tail != 0) each(p.tail);
}

/* To the first two. */
template <class S> GPR_FN void add(S &p, double x, bool &lost) {
  const double t = p.hi + x;
  p.lo = add_checked(p.lo, rounding_error(p.hi, x, t), lost);
  p.hi = t;
}
/* To all there are. */
GPR_FN void add_to_all(Pair &p, double x, bool &lost) { add(p, x, lost); }
GPR_FN void add_to_all(Triple &p, double x, bool &lost) {
  const double t = p.hi + x, error = rounding_error(p.hi, x, t);
  const double u = p.lo + error, rest = rounding_error(p.lo, error, u);
  p.hi = t;
  p.lo = u;
  if (!(rest == 0)) p.tail = add_checked(p.tail, rest, lost);
}

/* --- a batch of floats ---------------------------------------------------------------------------
 */

/* Twice the bits less one, which are greatest of zeros. */
__device__ __forceinline__ uint32_t size_key(float x) { return 2 * bits(x) - 1; }

/* Plain additions in double, exact if the exponents lie close enough; N additions at most. */
template <int PRECISION, int N> struct Batch {
  static constexpr int headroom = N <= 8 ? 3 : N <= 16 ? 4 : N <= 32 ? 5 : 6;
  static_assert(N <= 64, "");
  double sum = -0.0;
  float most = 0;
  uint32_t least = 0xffffffffu; /* of the keys */
  __device__ __forceinline__ void add(float x) {
    most = larger_or_nan(most, x);
    add_below(x);
  }
  /* Where `most` is known otherwise. */
  __device__ __forceinline__ void add_below(float x) {
    sum += (double)x;
    const uint32_t key = size_key(x);
    least = least < key ? least : key;
  }
  /* And those of another lane. */
  __device__ __forceinline__ void join(int mask) {
    sum += shuffle_xor(sum, mask);
    most = larger_or_nan(most, shuffle_xor(most, mask));
    least = gpr::least(least, shuffle_xor(least, mask));
  }
  /* Whether sum is exact, of so many times as many numbers as a power of two says. */
  __device__ __forceinline__ bool fine(int doubled = 0) const {
    const int high = (int)(bits(most) >> 23 & 0xff), low = (int)((least >> 1) >> 23);
    return high != 255 && high - (low ? low : 1) + PRECISION + headroom + doubled <= 53;
  }
};

/* Of float16, which are multiples of 2^-24 below 2^16, any 2^13 are exact. */
template <int N> struct Batch<Format<float16>::precision, N> {
  double sum = -0.0;
  __device__ __forceinline__ void add(float x) { sum += (double)x; }
  __device__ __forceinline__ void join(int mask) { sum += shuffle_xor(sum, mask); }
  __device__ __forceinline__ bool fine(int = 0) const { return sum - sum == 0; }
};

/* --- the state of a real sum ---------------------------------------------------------------------
 */

template <class R> struct RealSum {
  typedef typename TermsOfSum<R>::type Sum;
  Sum sum;
  uint32_t special; /* as an Exact's */
  uint32_t used;    /* rest is more than nothing */
  Long<R> rest;
};
template <class R> __device__ __forceinline__ void open(RealSum<R> &s) {
  clear(s.sum);
  s.special = s.used = 0;
}
/* As far as it is used. */
template <class R> __device__ __forceinline__ void assign(RealSum<R> &to, const RealSum<R> &from) {
  to.sum = from.sum;
  to.special = from.special;
  to.used = from.used;
  if (from.used)
    for (int i = 0; i < Long<R>::words; i++) to.rest.word[i] = from.rest.word[i];
}
template <class R> __device__ inline void use(RealSum<R> &s) {
  if (s.used) return;
  s.used = 1;
  for (int i = 0; i < Long<R>::words; i++) s.rest.word[i] = 0;
}
/* Any number. Not inlined: it stands where nothing else is alive. */
template <class R> __device__ __noinline__ void add_rest(RealSum<R> *s, double x) {
  use(*s);
  add_double(s->rest, x, s->special);
}
template <class R> __device__ __forceinline__ void add_one(RealSum<R> &s, double x) {
  auto p = s.sum;
  bool lost = false;
  add_to_all(p, x, lost);
  if (!lost)
    s.sum = p;
  else if (x != x)
    s.sum.hi = x;
  else if (s.sum.hi == s.sum.hi)
    add_rest(&s, x);
}
/* What does not fit into a sum that lies elsewhere, in registers. */
template <class R, class X>
__device__ __noinline__ typename RealSum<R>::Sum added(typename RealSum<R>::Sum sum, const X *x,
                                                       int n, RealSum<R> *rest) {
#pragma unroll 1
  for (int i = 0; i < n && sum.hi == sum.hi; i++) {
    auto p = sum;
    bool lost = false;
    add_to_all(p, x[i], lost);
    if (!lost)
      sum = p;
    else if (x[i] != x[i])
      sum.hi = x[i];
    else
      add_rest(rest, x[i]);
  }
  return sum;
}
template <class R> __device__ __noinline__ void add_both(RealSum<R> *s, const RealSum<R> *right) {
  use(*s);
  s->special |= right->special;
  if (right->used) add_long(s->rest, right->rest);
  each_term(right->sum, [&](double x) { add_double(s->rest, x, s->special); });
}
/* lost stays as it is where the sum of both is exact. */
GPR_FN Pair merged(const Pair &a, const Pair &b, bool &lost) {
  Pair p;
  bool is_lost = false;
  p.hi = a.hi + b.hi;
  p.lo = add_checked(a.lo, b.lo, is_lost);
  p.lo = add_checked(p.lo, rounding_error(a.hi, b.hi, p.hi), is_lost);
  lost |= is_lost && p.hi == p.hi;
  return p;
}
GPR_FN Triple merged(const Triple &a, const Triple &b, bool &lost) {
  Triple p;
  bool is_lost = false;
  p.hi = a.hi + b.hi;
  const double low = a.lo + b.lo, error = rounding_error(a.hi, b.hi, p.hi);
  p.lo = low + error;
  p.tail = add_checked(a.tail, b.tail, is_lost);
  p.tail = add_checked(p.tail, rounding_error(a.lo, b.lo, low), is_lost);
  p.tail = add_checked(p.tail, rounding_error(low, error, p.lo), is_lost);
  lost |= is_lost && p.hi == p.hi;
  return p;
}
template <class R> __device__ __forceinline__ void merge(RealSum<R> &s, const RealSum<R> &right) {
  bool lost = right.used;
  const auto p = merged(s.sum, right.sum, lost);
  if (lost)
    add_both(&s, &right);
  else
    s.sum = p;
}

/* --- rounding, once ------------------------------------------------------------------------------
 */

__device__ __forceinline__ void narrow_once(double x, float *out) { *out = (float)x; }
__device__ __forceinline__ void narrow_once(double x, float16 *out) {
  *out = narrow(to_odd(x), float16());
}
__device__ __forceinline__ void narrow_once(double x, bfloat16 *out) {
  *out = narrow(to_odd(x), bfloat16());
}
template <class T> __device__ __forceinline__ void round_pair(double hi, double lo, T *out) {
  const double sum = hi + lo;
  narrow_once(lo == 0 ? hi : to_odd(sum, rounding_error(hi, lo, sum)), out);
}
__device__ __forceinline__ void round_pair(double hi, double lo, double *out) {
  *out = lo == 0 ? hi : hi + lo;
}
template <class T> __device__ __forceinline__ void round_terms(const Pair &p, T *out) {
  round_pair(p.hi, p.lo, out);
}
/* Three TwoSums leave two terms, each of less than the one before's last bit, and what those were
 * rounded by, of which the second one's last bit keeps enough. (Boldo and Melquiond, "Emulation of
 * FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008.) */
template <class T> __device__ __forceinline__ void round_terms(const Triple &p, T *out) {
  if (p.tail == 0) return round_pair(p.hi, p.lo, out);
  const double s = p.hi + p.lo, low = rounding_error(p.hi, p.lo, s);
  const double t = low + p.tail, last = rounding_error(low, p.tail, t);
  const double first = s + t, left = rounding_error(s, t, first);
  const double rest = left + last;
  round_pair(first, to_odd(rest, rounding_error(left, last, rest)), out);
}

/* Divided by n first: two digits of the quotient, the second one rounded to odd by the sign of what
 * is left. */
template <class T, class S>
__device__ __forceinline__ void round_quotient(const S &p, int64_t n, T *out) {
  const double d = (double)n, hi = p.lo == 0 ? p.hi : p.hi + p.lo,
               lo = p.lo == 0 ? 0 : rounding_error(p.hi, p.lo, hi);
  const double first = hi / d, rest = product_error(-first, d, -hi);
  const double sum = rest + lo, error = rounding_error(rest, lo, sum);
  double second = sum / d;
  second = to_odd(second, product_error(-second, d, -sum) + error);
  round_pair(first, second == 0 ? 0 : second, out);
}

template <class S> __device__ __forceinline__ bool can_divide(const S &p, int64_t n) {
  const double size = fabs(p.hi);
  return !has_tail(p) && n >> 53 == 0 && size > 0x1p-800 && size < 0x1p1000;
}

/* What two doubles cannot: any words, divided by n and rounded. */
template <class T, class R>
__device__ __noinline__ void round_long(RealSum<R> *s, int64_t n, T *out) {
  use(*s);
  each_term(s->sum, [&](double x) { add_double(s->rest, x, s->special); });
  clear(s->sum);
  if (round_special(s->special, out)) return;
  bool negative;
  const Leading sum = leading_of(s->rest.word, Long<R>::words, Long<R>::bottom, negative);
  *out = round_leading<T>(over(sum, (uint64_t)n), negative);
}

/* The sum over n, rounded once. */
template <class T, class R>
__device__ __forceinline__ void round_sum(RealSum<R> &s, int64_t n, T *out) {
  if (s.sum.hi != s.sum.hi)
    *out = quiet_nan<T>();
  else if (!s.used && n == 1)
    round_terms(s.sum, out);
  else if (n == 0)
    *out = quiet_nan<T>();
  else if (!s.used && s.sum.hi == 0 && s.sum.lo == 0 && !has_tail(s.sum))
    round_pair(s.sum.hi, 0, out);
  else if (!s.used && can_divide(s.sum, n))
    round_quotient(s.sum, n, out);
  else
    round_long<T>(&s, n, out);
}

/* --- the fold ------------------------------------------------------------------------------------
 */

/* operators.h's ExactFold in the states of this file. */
template <class T> struct PairSum : FreeFold<T> {
  typedef typename Traits<typename RealOf<T>::type>::Wide Real;
  static constexpr int parts = Traits<T>::kind == KIND_COMPLEX ? 2 : 1;
  struct State {
    RealSum<Real> part[parts];
  };
  static __device__ __forceinline__ void open(State &s) {
    for (int p = 0; p < parts; p++) gpr::open(s.part[p]);
  }
  template <class R> static __device__ __forceinline__ void add(State &s, complex<R> x, int64_t) {
    add_one(s.part[0], x.re);
    add_one(s.part[1], x.im);
  }
  template <class R> static __device__ __forceinline__ void add(State &s, R x, int64_t) {
    add_one(s.part[0], wide(x));
  }
  static __device__ __forceinline__ void merge(State &s, const State &right) {
    for (int p = 0; p < parts; p++) gpr::merge(s.part[p], right.part[p]);
  }
  static __device__ __forceinline__ void assign(State &to, const State &from) {
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
  __device__ __forceinline__ void add(T x) {
    add_to(sum, x);
    nothing = false;
  }
  template <class R> __device__ __forceinline__ R part(int p, uint64_t n) {
    if (nothing) sum->part[p].sum.hi = 0;
    return rounded<R>(&sum->part[p], (int64_t)n);
  }
  template <class R> __device__ __forceinline__ R round(uint64_t n = 1) {
    return Parts<R>::round(*this, n);
  }
};

GPR_CLOSE
#endif
