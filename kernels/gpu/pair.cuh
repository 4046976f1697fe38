/* Unevaluated sums of two doubles or three, and what is added to them without a loss.
 *
 * Additions of doubles whose rounding error is zero, which two subtractions tell, need no window:
 * the pair hi + lo follows its sum up and down, keeps about 104 bits below it, and IEEE's rules for
 * the signs of zeros come for free. What a pair of doubles' sum is rounded by goes to a third one,
 * 150 bits below it. (Knuth, The Art of Computer Programming 2, 4.2.2.) */
#pragma once

#include "../core/convert.h"
#include "../core/error_free.h"
#include "warp.cuh"

GPR_OPEN

/* An unevaluated sum. -0.0 is the neutral element: a sum is -0.0 only where all that it met is. hi
 * is not finite where an infinity or NaN was met: whatever else there is, that is the sum. */
struct Pair {
  double hi, lo;
};
struct Triple {
  double hi, lo, tail;
};
/* What a thread keeps of a sum: floats have the bits of a pair. */
template <class R> struct TermsOfSum { typedef Pair type; };
template <> struct TermsOfSum<double> { typedef Triple type; };

GPR_FN void assign(Pair &to, const Pair &from) { to = from; }
GPR_FN void assign(Triple &to, const Triple &from) { to = from; }
GPR_FN void assign(Triple &to, const Pair &from) { to.hi = from.hi, to.lo = from.lo, to.tail = 0; }
GPR_FN void clear(Pair &p) { p.hi = p.lo = -0.0; }
GPR_FN void clear(Triple &p) { p.hi = p.lo = -0.0, p.tail = 0; }
GPR_FN bool has_tail(const Pair &) { return false; }
GPR_FN bool has_tail(const Triple &p) { return p.tail != 0; }
/* each(x) of all doubles. */
template <class Each> GPR_DEVICE void each_term(const Pair &p, Each each) {
  each(p.hi);
  each(p.lo);
}
template <class Each> GPR_DEVICE void each_term(const Triple &p, Each each) {
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
  p.tail = add_checked(p.tail, rest, lost);
}
GPR_FN bool is_finite(double x) { return x - x == 0; }
GPR_FN bool are_finite(double a, double b) { return (a - a) + (b - b) == 0; }
/* As a result; of 16 bits by way of the float that is rounded to odd. */
GPR_DEVICE void round_once(double x, double *out) { *out = x; }
GPR_DEVICE void round_once(double x, float *out) { *out = (float)x; }
template <class H> GPR_DEVICE void round_once(double x, H *out) { *out = narrow(to_odd(x), H()); }
/* lost stays as it is where the sum of both is exact. */
GPR_FN Pair merged(const Pair &a, const Pair &b, bool &lost) {
  Pair p;
  bool is_lost = false;
  p.hi = a.hi + b.hi;
  p.lo = add_checked(a.lo, b.lo, is_lost);
  p.lo = add_checked(p.lo, rounding_error(a.hi, b.hi, p.hi), is_lost);
  if (is_lost) {
    const bool finite = are_finite(a.hi, b.hi);
    lost |= finite;
    if (!finite) p.lo = 0;
  }
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
  if (is_lost) {
    const bool finite = are_finite(a.hi, b.hi);
    lost |= finite;
    if (!finite) p.lo = p.tail = 0;
  }
  return p;
}

GPR_CLOSE
