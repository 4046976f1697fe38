/* The rational of a variance on the device: nearly always by doubles that know how far they are
 * off, else by plain digit arithmetic. */
#pragma once

#include "near.cuh"
#include "outputs.cuh"
#include "pair_moments.cuh"

GPR_OPEN

/* An integer in two's complement, in units of 2^bottom. */
struct LongView {
  const uint64_t *word;
  int words, bottom;
};

/* One output: what it has counted, and how it is finished. */
struct SpreadQuestion {
  LongView sum[2], squares;
  int parts;
  int64_t n;
  gpr_spread how;
};

/* --- by doubles ------------------------------------------------------------------------------- */

/* Plain doubles, for results of far fewer bits; `off` is infinite where they do not serve. size is
 * what the squares' terms come to without their signs. With u = 2^-53, the few operations on each
 * of n·size and (Σx)² are off by less than 16u of them, and the quotient by 4u. */
GPR_DEVICE Near plain_spread(double numerator, double size, double divisor, bool root) {
  const double unit = 1 / divisor, value = numerator * unit, off = 0x1p-48 * size * unit;
  if (!(value > off)) return {0, 0, INFINITY};
  if (!root) return {value, 0, off};
  const double y = sqrt(value);
  return {y, 0, off / y + 0x1p-50 * y};
}

/* Doubles twice as long, for float64: a fifth of the operations that near_spread needs, since the
 * bounds are not of what is dropped but of what could be. With u = 2^-53 that is less than 2P·u of
 * the smaller terms of a sum of P pairs, and 16u² of each product and of their difference. */
template <int P> GPR_DEVICE Near coarse_sum(const Pair (&pair)[P]) {
  double hi = pair[0].hi, lo = pair[0].lo, size = fabs(lo);
  GPR_UNROLLED(int i = 1; i < P; i++) {
    const double t = hi + pair[i].hi, error = rounding_error(hi, pair[i].hi, t);
    hi = t;
    lo = (lo + error) + pair[i].lo;
    size = (size + fabs(error)) + fabs(pair[i].lo);
  }
  Near sum = near_of(hi, lo);
  sum.off = P * 0x1p-51 * size;
  return sum;
}
template <int PARTS>
GPR_DEVICE Near coarse_numerator(const Near (&sum)[PARTS], const Near &squares, double n) {
  double hi = n * squares.hi, lo = fma(n, squares.lo, product_error(n, squares.hi, hi));
  double size = hi, off = n * squares.off;
  GPR_EACH(p, PARTS) {
    const double x = sum[p].hi, square = x * x,
                 rest = fma(2 * x, sum[p].lo, product_error(x, x, square));
    const double t = hi - square;
    lo = (lo - rest) + rounding_error(hi, -square, t);
    hi = t;
    size += square;
    off += (3 * fabs(x) + sum[p].off) * sum[p].off;
  }
  Near numerator = near_of(hi, lo);
  numerator.off = 2 * off + 0x1p-100 * size + 0x1p-1000; /* and what underflows */
  return numerator;
}
GPR_DEVICE Near coarse_spread(const Near &a, double n, double freedom, bool root) {
  const double d = n * freedom;
  const bool exact = product_error(n, freedom, d) == 0; /* NaN is not */
  if (!exact || !(a.hi > 0x1p-700 && a.hi < 0x1p900 && a.off < a.hi / 2)) return {0, 0, INFINITY};
  const double first = a.hi / d, rest = product_error(-first, d, -a.hi) + a.lo;
  Near spread = near_of(first, rest / d);
  spread.off = loosened((a.off + 0x1p-51 * fabs(rest)) / d);
  return root ? root_of(spread) : spread;
}

/* What coarse_spread leaves open, above all what lies halfway between two doubles: of two elements
 * that hold floats 3 variances in 100, of four 12, and of any two doubles 21 deviations. The
 * numerator is not rounded: its products are two doubles each, which TwoSum gathers in three or
 * refuses. */
template <int PARTS> struct ExactMoments { double sum[PARTS][2], squares[3]; };
/* sign·a·b as two doubles; `lost` as rest_of_product has it. */
GPR_DEVICE void put_product(double *to, double a, double b, double sign, double &lost) {
  const double p = a * b;
  to[1] = sign * p;
  to[0] = sign * rest_of_product(a, b, p, lost);
}
/* n·Σx² − (Σx)². The smallest come first, so that the first sweep rounds but little. */
template <int PARTS>
GPR_DEVICE bool exact_numerator(const ExactMoments<PARTS> &m, double n, double (&numerator)[3],
                                double &lost) {
  double rest = fabs(m.squares[2]);
  GPR_EACH(p, PARTS) rest += fabs(m.sum[p][1]);
  if (rest == 0) { /* floats and whole numbers */
    double t[4 + 2 * PARTS];
    put_product(t, n, m.squares[1], 1, lost);
    GPR_EACH(p, PARTS) put_product(t + 2 + 2 * p, m.sum[p][0], m.sum[p][0], -1, lost);
    put_product(t + 2 + 2 * PARTS, n, m.squares[0], 1, lost);
    return gathered(t, numerator);
  }
  double t[6 + 6 * PARTS];
  put_product(t, n, m.squares[2], 1, lost);
  GPR_EACH(p, PARTS) {
    const double x = m.sum[p][0], y = m.sum[p][1];
    put_product(t + 2 + 2 * p, y, y, -1, lost);
    put_product(t + 2 + 2 * (PARTS + p), 2 * x, y, -1, lost);
    put_product(t + 4 + 2 * (2 * PARTS + p), x, x, -1, lost);
  }
  put_product(t + 2 + 4 * PARTS, n, m.squares[1], 1, lost);
  put_product(t + 4 + 6 * PARTS, n, m.squares[0], 1, lost);
  return gathered(t, numerator);
}
/* What is nearer to numerator / d, or to its root: low, or the next double. The number in the
 * middle is low + half; its product with d, or its square's, is taken from the numerator, and the
 * sign tells. */
GPR_DEVICE bool nearer_end(const double (&numerator)[3], double d, const Ends &ends, bool root,
                           double *out) {
  const double low = ends.low, half = (ends.high - low) / 2;
  const uint64_t last = bits(low);
  if (!(low > 0 && ends.high < 0x1p1000) || bits(ends.high) != last + 1) return false;
  double lost = 0, sign;
  if (root) {
    /* d·low² + 2·d·low·half + d·half²; half is a power of two */
    const double square = low * low, rest = rest_of_product(low, low, square, lost);
    double t[10] = {numerator[2], 0, 0, 0, 0, 0, -d * half * half, numerator[1], 0, 0};
    double once[2];
    put_product(once, d, low, -2 * half, lost);
    put_product(t + 1, d, rest, -1, lost);
    t[3] = once[0];
    t[4] = once[1];
    put_product(once, d, square, -1, lost);
    t[5] = once[0];
    t[8] = once[1];
    t[9] = numerator[0];
    sign = sign_of_sum(t);
  } else {
    double once[2];
    put_product(once, d, low, -1, lost);
    double t[6] = {numerator[2], once[0], -d * half, numerator[1], once[1], numerator[0]};
    sign = sign_of_sum(t);
  }
  *out = sign > 0 || (sign == 0 && last % 2) ? ends.high : low;
  return sign == sign && lost == 0;
}
template <int PARTS>
static __device__ __noinline__ bool exact_spread(const ExactMoments<PARTS> m, double n,
                                                 double freedom, bool root, double *out) {
  double numerator[3], lost = 0;
  *out = 0;
  if (!exact_numerator(m, n, numerator, lost) || lost != 0) return false;
  /* One addition is rounded, by less than 2^-52 of its terms. */
  const Near first = near_of(numerator[0], numerator[1]);
  Near a = near_of(first.hi, first.lo + numerator[2]);
  a.off = 0x1p-52 * (fabs(first.lo) + fabs(numerator[2]));
  if (a.hi == 0 && a.off == 0) return freedom > 0;
  const Near spread = coarse_spread(a, n, freedom, root);
  return round_near(spread, out) || nearer_end(numerator, n * freedom, ends_of(spread), root, out);
}

/* One number does not differ from its mean. */
GPR_DEVICE bool is_alone(int64_t n, const gpr_spread &how) {
  return n == 1 && !how.means && how.ddof < 1;
}

/* n − ddof as variance.h's degrees_of_freedom has it, in units of 2^-64; else not a number. */
GPR_DEVICE double plain_freedom(int64_t n, double ddof) {
  const double size = (double)n, freedom = size - ddof;
  const bool whole = ddof == 0 || (fabs(ddof) >= 0x1p-11 && fabs(ddof) < 0x1p53);
  const bool exact = n >> 53 == 0 && whole && rounding_error(size, -ddof, freedom) == 0;
  return exact && freedom > 0 ? freedom : NAN;
}

/* n·Σx² − (Σx)² or, with means, Σx² − 2mΣx + nm². */
template <int PARTS>
GPR_DEVICE Near near_numerator(const Near (&sum)[PARTS], const Near &squares, double n,
                               const double *means) {
  Near total = means ? squares : multiply(squares, near_of(n));
  GPR_EACH(p, PARTS) {
    if (means) {
      const Near m = near_of(means[p]), both = multiply(near_of(2 * means[p]), sum[p]);
      total = add(add(total, minus(both)), multiply(multiply(m, m), near_of(n)));
    } else {
      total = add(total, minus(multiply(sum[p], sum[p])));
    }
  }
  return total;
}
/* An infinite `off` where it is not known. */
GPR_DEVICE Near near_spread(const Near &numerator, double n, double freedom, const double *means,
                            bool root) {
  const Near none = {0, 0, INFINITY}, &a = numerator;
  if (!(freedom > 0)) return none;
  if (a.hi == 0 && a.lo == 0 && a.off == 0) return a;
  if (!(a.hi > 0x1p-700 && a.hi < 0x1p900 && a.off < a.hi / 2)) return none;
  const Near divisor = means ? near_of(freedom) : multiply(near_of(n), near_of(freedom));
  const Near spread = divide(a, divisor);
  return root ? root_of(spread) : spread;
}

/* --- by digits -------------------------------------------------------------------------------- */

enum { SPREAD_GRID = -1088 }; /* whole digits from 1, and below all bits of a double */
enum { SPREAD_FEW_DIGITS = 32 };

typedef MomentDigits<GPR_BIG_DIGITS> PoolSlot;
static_assert(sizeof(PoolSlot) * AXES_LOCKS <= 8 << 20, "");

/* The magnitude; whether it was negative. */
static __device__ __noinline__ bool big_of(Big &big, const LongView &x, int grid) {
  const bool negative = x.word[x.words - 1] >> 63;
  int low = 0, high = x.words;
  while (low < high && !x.word[low]) low++;
  while (high > low && x.word[high - 1] == (negative ? ~0ull : 0ull)) high--;
  uint64_t borrow = negative;
  big.count = 0;
  big.at = (x.bottom - grid) / 32 + 2 * low;
  GPR_ROLLED(int i = low; i < high; i++) {
    const uint64_t word = negative ? ~x.word[i] + borrow : x.word[i];
    borrow = borrow && !word;
    big.digit[big.count++] = (uint32_t)word;
    big.digit[big.count++] = (uint32_t)(word >> 32);
  }
  if (borrow) big.digit[big.count++] = 1; /* minus a power of 2^64 */
  trim(big);
  return negative;
}

static __device__ __noinline__ Leading work_out(const SpreadQuestion &q, uint128 freedom,
                                                Moments &m) {
  m.grid = SPREAD_GRID;
  m.parts = q.parts;
  m.special = 0;
  GPR_ROLLED(int p = 0; p < q.parts; p++) m.negative[p] = big_of(m.sum[p], q.sum[p], SPREAD_GRID);
  big_of(m.squares, q.squares, 2 * SPREAD_GRID);
  return spread_of(m, q.n, freedom, q.how.means);
}

/* Digits from the lowest to the highest one that is not zero, above SPREAD_GRID. */
struct Span {
  int low, high;
};
static __device__ __noinline__ Span span_of(const LongView &x, int grid) {
  const uint64_t sign = x.word[x.words - 1] >> 63 ? ~0ull : 0;
  Span s = {0, x.words};
  while (s.low < s.high && !x.word[s.low]) s.low++;
  while (s.high > s.low && x.word[s.high - 1] == sign) s.high--;
  const int at = (x.bottom - grid) / 32;
  return {at + 2 * s.low, at + 2 * s.high + 1};
}
/* A given mean may lie anywhere. */
__device__ inline bool has_few_digits(const SpreadQuestion &q) {
  if (q.how.means) return false;
  Span all = span_of(q.squares, 2 * SPREAD_GRID);
  all.high += 2; /* times n */
  for (int p = 0; p < q.parts; p++) {
    const Span s = span_of(q.sum[p], SPREAD_GRID);
    all = {least(all.low, 2 * s.low), greatest(all.high, 2 * s.high)};
  }
  return all.high - all.low + 2 <= SPREAD_FEW_DIGITS;
}

/* Local memory is set aside for every thread that a device can hold; so many digits are in slots of
 * the scratch instead, each for one thread at a time. */
static __device__ __noinline__ Leading in_pool(const SpreadQuestion &q, uint128 freedom,
                                               void *scratch, Moments &m) {
  uint32_t *lock = (uint32_t *)scratch + AXES_TICKETS;
  PoolSlot *slot = (PoolSlot *)((char *)scratch + AXES_POOL);
  uint32_t at = blockIdx.x * AXES_THREADS + threadIdx.x;
  Leading result;
  for (bool done = false; !done; at++) {
    const int i = (int)(at % AXES_LOCKS);
    if (atomicCAS(lock + i, 0, 1)) continue;
    __threadfence();
    place(m, slot[i]);
    result = work_out(q, freedom, m);
    __threadfence();
    atomicExch(lock + i, 0);
    done = true;
  }
  return result;
}
static __device__ __noinline__ Leading spread_by_digits(const SpreadQuestion &q, uint128 freedom,
                                                        void *scratch) {
  Moments m;
  if (!has_few_digits(q)) return in_pool(q, freedom, scratch, m);
  MomentDigits<SPREAD_FEW_DIGITS> digits;
  place(m, digits);
  return work_out(q, freedom, m);
}

template <class R> GPR_DEVICE R round_digits(const SpreadQuestion &q, void *scratch, bool root) {
  const uint128 freedom = degrees_of_freedom(q.n, q.how.ddof);
  const Leading spread = spread_by_digits(q, freedom ? freedom : 1, scratch);
  if (!freedom) return round_case<R>(case_without_freedom(!spread.bits, q.how.nan));
  return round_leading<R>(root ? root_of(spread) : spread);
}

GPR_CLOSE
