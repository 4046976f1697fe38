/* A number known to about 100 bits, and by how much it may be off.
 *
 * hi + lo with |lo| at most half a unit of hi's last place (Dekker, "A floating-point technique for
 * extending the available precision", 1971). What an operation drops is added to `off`, which is
 * zero where all was exact: so a result that rounds the same at both ends is certain. */
#pragma once

#include "../core/bigint.h"
#include "../core/exact.h"
#include "pair.cuh"

GPR_OPEN

struct Near {
  double hi, lo, off;
};

GPR_FN Near near_of(double x) { return {x, 0, 0}; }
GPR_FN Near near_of(double a, double b) {
  const double s = a + b;
  return {s, rounding_error(a, b, s), 0};
}
GPR_FN Near add(const Near &a, const Near &b) {
  const double s = a.hi + b.hi, e = rounding_error(a.hi, b.hi, s);
  const double t = a.lo + b.lo, f = rounding_error(a.lo, b.lo, t);
  const double u = e + t, g = rounding_error(e, t, u);
  Near sum = near_of(s, u);
  sum.off = a.off + b.off + fabs(f) + fabs(g);
  return sum;
}
GPR_FN Near minus(const Near &a) { return {-a.hi, -a.lo, a.off}; }

/* a·b − p, which is exact unless it underflows. */
GPR_FN double rest_of_product(double a, double b, double p, double &off) {
  if (a != 0 && b != 0 && !(fabs(p) >= 0x1p-900)) off += 0x1p-900;
  return product_error(a, b, p);
}
GPR_FN Near multiply(const Near &a, const Near &b) {
  double off = 0;
  const double p = a.hi * b.hi, e = rest_of_product(a.hi, b.hi, p, off);
  const double c = a.hi * b.lo, ce = rest_of_product(a.hi, b.lo, c, off);
  const double d = a.lo * b.hi, de = rest_of_product(a.lo, b.hi, d, off);
  const double l = a.lo * b.lo, le = rest_of_product(a.lo, b.lo, l, off);
  const double t = c + d, f = rounding_error(c, d, t);
  const double u = e + t, g = rounding_error(e, t, u);
  Near product = near_of(p, u);
  const double size = fabs(b.hi) + fabs(b.lo) + b.off;
  off += fabs(ce) + fabs(de) + fabs(l) + fabs(le) + fabs(f) + fabs(g);
  product.off = off + a.off * size + b.off * (fabs(a.hi) + fabs(a.lo));
  return product;
}

/* What was rounded in `off` itself, generously. */
enum { NEAR_SLACK = 40 };
GPR_FN double loosened(double off) { return off + off * (1.0 / (1ull << NEAR_SLACK)); }

/* d is at least twice as large as it may be off. */
GPR_FN Near divide(const Near &a, const Near &d) {
  const double first = a.hi / d.hi;
  const Near rest = add(a, minus(multiply(near_of(first), d)));
  const double second = rest.hi / d.hi;
  Near quotient = near_of(first, second);
  const double dropped = fabs(rest.lo) + fabs(second * d.lo) + fabs(rest.hi) * 0x1p-52;
  const double off = loosened(rest.off + dropped + fabs(second) * d.off) / fabs(d.hi);
  quotient.off = loosened(off);
  return quotient;
}

/* a > off */
GPR_FN Near root_of(const Near &a) {
  const double first = sqrt(a.hi), error = product_error(-first, first, -a.hi);
  const double rest = error + a.lo, second = rest / (2 * first);
  Near root = near_of(first, second);
  const double dropped = fabs(rest) * 0x1p-51 + second * second;
  root.off = loosened((a.off + dropped) / (2 * first));
  return root;
}

/* Integers in two's complement, in units of 2^bottom, of which the leading digits are looked at. */
GPR_CALL Near near_of(const uint64_t *word, int words, int bottom) {
  const uint64_t sign = word[words - 1] >> 63 ? ~0ull : 0;
  int digit = 2 * words - 1;
  const auto at = [&](int i) { return (uint32_t)((word[i / 2] ^ sign) >> (32 * (i % 2))); };
  while (digit > 0 && !at(digit)) digit--;
  const int last = digit < 6 ? 0 : digit - 5;
  Near sum = {0, 0, 0};
  if (bottom + 32 * digit > 900 || bottom + 32 * last < -900) return {0, 0, INFINITY};
  GPR_ROLLED(int i = digit; i >= last; i--) {
    const double unit = power_of_two(bottom + 32 * i);
    sum = add(sum, near_of(at(i) * unit));
    if (i > last) continue;
    if (last)
      sum.off += unit;
    else if (sign)
      sum = add(sum, near_of(unit)); /* -x is ~x + 1 */
  }
  return sign ? minus(sum) : sum;
}

/* --- exactly ---------------------------------------------------------------------------------- */

/* A pass of TwoSum, which keeps the sum: the last one gets it rounded, the others what that was
 * rounded by. The sum of the others' sizes, of those that stand before `end`. */
template <int K> GPR_FN double sweep(double (&t)[K], int end) {
  double others = 0;
  GPR_UNROLLED(int i = 1; i < K; i++) {
    const double s = t[i - 1] + t[i];
    t[i - 1] = rounding_error(t[i - 1], t[i], s);
    t[i] = s;
    if (i <= end) others += fabs(t[i - 1]);
  }
  return others;
}
/* The sum of K doubles as N of them, exactly, the greatest first; false where they do not come down
 * to so few, or anything is not finite. */
enum { NEAR_SWEEPS = 8 };
template <int K, int N> GPR_FN bool gathered(double (&t)[K], double (&sum)[N]) {
  bool done = false;
  GPR_ROLLED(int i = 0; i < NEAR_SWEEPS && !done; i++) done = sweep(t, K - N) == 0;
  GPR_EACH(i, N) sum[i] = t[K - 1 - i];
  return done;
}
/* The sign of the sum: that of the last, once it is more than twice the others together. NaN where
 * that does not come. */
template <int K> GPR_FN double sign_of_sum(double (&t)[K]) {
  GPR_ROLLED(int i = 0; i < NEAR_SWEEPS; i++) {
    const double others = sweep(t, K - 1);
    if (others == 0 || fabs(t[K - 1]) > 2 * others) return t[K - 1];
  }
  return NAN;
}

/* --- rounding --------------------------------------------------------------------------------- */

/* Both ends, rounded. */
struct Ends {
  double low, high;
};
GPR_FN Ends ends_of(const Near &x) {
  const double off = x.off == 0 ? 0 : loosened(x.off) + fabs(x.lo) * 0x1p-51;
  return {x.hi + (x.lo - off), x.hi + (x.lo + off)};
}
/* False where the two ends may round differently. */
GPR_FN bool round_near(const Near &x, double *out) {
  const Ends ends = ends_of(x);
  *out = ends.low;
  return ends.low == ends.high && fabs(ends.low) < 0x1p1000;
}
/* What lies between two doubles, as a result; whether that is told. */
template <class R> GPR_DEVICE bool between(double low, double high, R *out) {
  constexpr int count = (sizeof(R) + 3) / 4;
  R other;
  uint32_t words[2 * count] = {};
  round_once(low, out);
  round_once(high, &other);
  memcpy(words, out, sizeof other);
  memcpy(words + count, &other, sizeof other);
  bool same = true;
  GPR_EACH(i, count) same &= words[i] == words[count + i];
  return same;
}
template <class T> GPR_DEVICE bool round_near(const Near &x, T *out) {
  const double rest = fabs(x.lo) + loosened(x.off); /* infinite: the ends differ */
  const double off = rest == 0 ? 0 : rest + fabs(x.hi) * 0x1p-51;
  return between(x.hi - off, x.hi + off, out) && fabs(x.hi) < 0x1p1000;
}

GPR_CLOSE
