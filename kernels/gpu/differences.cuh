/* Variances of numbers that one thread folds, or some lanes of a warp, by their differences from
 * one of them: what the numbers have in common costs no bits, and the bounds of what is lost mostly
 * round to the same result. */
#pragma once

#include "brief.cuh"
#include "moment_results.cuh"

GPR_OPEN

/* x as a result, if that is so of all that differ from it by no more than a part of 2^-40 of it,
 * which its last bits tell: where two ends were rounded, deviations of 5 rows of 3145728 bfloat16
 * took 36.8 µs on an H200, and take 30.0. */
template <class R> GPR_DEVICE bool round_safely(double x, R *out) {
  typedef Format<R> F;
  constexpr int below = 53 - F::precision, least = F::smallest + F::precision - 1;
  constexpr uint64_t half = 1ull << (below - 1), off = 1ull << (sizeof(R) < 4 ? 30 : 14);
  *out = narrow((float)x, R()); /* which is off by less than that */
  return (bits(x) & (2 * half - 1)) - half + off > 2 * off && x >= power_of_two(least) &&
         x < power_of_two(F::beyond - 1);
}

/* What variances of so many numbers are divided by. */
struct Divisor {
  int64_t count;
  double n, freedom, over;
  GPR_DEVICE Divisor(int64_t count, double ddof)
      : count(count),
        n((double)count),
        freedom(plain_freedom(count, ddof)),
        over(1 / (n * freedom)) {}
  explicit GPR_DEVICE Divisor(const gpr_axes_args &a) : Divisor(a.count, a.ddof) {}
};

/* Of floats by doubles: with u = 2^-53 the differences are off by a part u of themselves, and by
 * chains of `depth` additions n·Σd² − (Σd)² by 3·depth + 10 such parts of n·Σd². */
template <class R, int PARTS> struct Differences {
  double sum[PARTS] = {}, squares = 0;
  GPR_DEVICE void add(int p, double x, double from) {
    const double apart = x - from;
    sum[p] += apart;
    squares += apart * apart;
  }
  GPR_DEVICE void merge(const Differences &other) {
    GPR_EACH(p, PARTS) sum[p] += other.sum[p];
    squares += other.squares;
  }
  GPR_DEVICE double spread(double n) const {
    double rest = n * squares;
    GPR_EACH(p, PARTS) rest -= sum[p] * sum[p];
    return rest;
  }
  static GPR_DEVICE double parts_off(double depth) { return (4 * depth + 32) * PARTS; }
  /* Most results, where the sum of squares is not much more than what they are of. */
  template <bool ROOT, class Result>
  GPR_DEVICE bool round(const Divisor &by, double depth, Result *out) const {
    const double all = spread(by.n), x = all * by.over;
    return parts_off(depth) * 0x1p-12 * (by.n * squares) <= all &&
           round_safely(ROOT ? sqrt(x) : x, out);
  }
  template <bool ROOT> GPR_DEVICE bool bound(const Divisor &by, double depth, Ends *ends) const {
    const double spread = this->spread(by.n), error = parts_off(depth) * 0x1p-53 * (by.n * squares);
    *ends = {(spread - error) * by.over, (spread + error) * by.over};
    if (ROOT) *ends = {sqrt(ends->low) * (1 - 0x1p-50), sqrt(ends->high) * (1 + 0x1p-50)};
    return true;
  }
  /* Whether a number is infinite or none: no square of a float overflows. */
  GPR_DEVICE bool is_nan() const { return squares - squares != 0; }
};

/* Of doubles by pairs of them: bounds as bound_spreads() of cpu/moments.h has them. */
template <int PARTS> struct Differences<double, PARTS> {
  Pair sum[PARTS] = {}, squares = {0, 0};
  double odd = 0; /* NaN where a number is infinite or none */
  bool differ = false;
  static GPR_DEVICE void add_to(Pair &p, double high, double low) {
    const double t = p.hi + high;
    p.lo += rounding_error(p.hi, high, t) + low;
    p.hi = t;
  }
  GPR_DEVICE void add(int p, double x, double from) {
    const double apart = x - from, rest = rounding_error(x, -from, apart), square = apart * apart;
    add_to(sum[p], apart, rest);
    add_to(squares, square, product_error(apart, apart, square) + 2 * apart * rest);
    odd += x - x;
    differ |= apart != 0;
  }
  GPR_DEVICE void merge(const Differences &other) {
    GPR_EACH(p, PARTS) add_to(sum[p], other.sum[p].hi, other.sum[p].lo);
    add_to(squares, other.squares.hi, other.squares.lo);
    odd += other.odd;
    differ |= other.differ;
  }
  GPR_DEVICE bool is_nan() const { return odd != 0; }
  template <bool ROOT, class Result>
  GPR_DEVICE bool round(const Divisor &, double, Result *) const {
    return false;
  }
  /* About where the variance lies; `fits`: whether that is so. */
  template <bool ROOT> GPR_DEVICE Near about(const Divisor &by, bool *fits) const {
    const double n = by.n, over = by.over, all_by = n * by.freedom;
    Pair all = {n * squares.hi, 0};
    all.lo = product_error(n, squares.hi, all.hi) + n * squares.lo;
    GPR_EACH(p, PARTS) {
      const double minus = -(sum[p].hi * sum[p].hi);
      add_to(all, minus,
             -(product_error(sum[p].hi, sum[p].hi, -minus) + 2 * sum[p].hi * sum[p].lo));
    }
    double spread = all.hi + all.lo, rest = rounding_error(all.hi, all.lo, spread);
    *fits = spread >= 0x1p-900 && squares.hi <= 0x1p900;
    const double quotient = spread * over;
    rest = (rest - product_error(quotient, all_by, spread) -
            quotient * product_error(n, by.freedom, all_by)) *
           over;
    const double error = PARTS * 0x1p-100 * (n * n * n * squares.hi * over + quotient);
    if (!ROOT) return {quotient, rest, error};
    const double root = sqrt(quotient), over_root = 1 / root;
    rest = (rest - product_error(root, root, quotient)) * (0.5 * over_root);
    return {root, rest, error * over_root + 0x1p-100 * root};
  }
  template <bool ROOT> GPR_DEVICE bool bound(const Divisor &by, double, Ends *ends) const {
    bool fits;
    *ends = {0, 0};
    if (!differ) return true;
    const Near x = about<ROOT>(by, &fits);
    *ends = {x.hi + (x.lo - x.off), x.hi + (x.lo + x.off)};
    return fits;
  }
};

template <class T>
using DifferencesOf = Differences<typename PairMoments<T>::Real, PairMoments<T>::parts>;

/* What doubles leave open of floats and halves: by pairs, or exactly if nothing is lost, as of
 * numbers of few bits, whose variances tie: of halves one in hundreds. */
template <int PARTS> struct SureDifferences : Differences<double, PARTS> {
  typedef Differences<double, PARTS> Base;
  bool lost = false;
  static GPR_DEVICE bool is_rounded(double a, double b) { return rounding_error(a, b, a + b) != 0; }
  static GPR_DEVICE double times(double a, double b, bool &lost) {
    const double product = a * b;
    lost |= product_error(a, b, product) != 0;
    return product;
  }
  GPR_DEVICE void add(int p, double x, double from) {
    const double apart = x - from, square = times(apart, apart, lost);
    lost |= is_rounded(x, -from) | is_rounded(this->sum[p].hi, apart) |
            is_rounded(this->squares.hi, square);
    Base::add(p, x, from);
  }
  GPR_DEVICE void merge(const SureDifferences &other) {
    lost |= other.lost | is_rounded(this->squares.hi, other.squares.hi);
    GPR_EACH(p, PARTS) lost |= is_rounded(this->sum[p].hi, other.sum[p].hi);
    Base::merge(other);
  }
  template <bool ROOT> GPR_DEVICE bool bound(const Divisor &by, double, Ends *ends) const {
    bool gone = lost, fits;
    double spread = times(by.n, this->squares.hi, gone);
    GPR_EACH(p, PARTS) {
      const double minus = -times(this->sum[p].hi, this->sum[p].hi, gone);
      gone |= is_rounded(spread, minus);
      spread += minus;
    }
    const double quotient = spread / (by.n * by.freedom), tie = ROOT ? sqrt(quotient) : quotient,
                 all = ROOT ? times(tie, tie, gone) : tie;
    *ends = {tie, tie};
    if (times(all, times(by.n, by.freedom, gone), gone) == spread && !gone) return true;
    /* To odd, since what is nearest may be a tie of fewer bits. */
    const Near x = Base::template about<ROOT>(by, &fits);
    const double below = x.lo - x.off, above = x.lo + x.off;
    *ends = {to_odd(x.hi + below, rounding_error(x.hi, below, x.hi + below)),
             to_odd(x.hi + above, rounding_error(x.hi, above, x.hi + above))};
    return fits;
  }
};

/* Of two real numbers there is one difference, and a deviation is a part of it: half of it lies
 * halfway between two results as often as not, where the two differ in their exponents. What it is
 * multiplied by is mostly a power of two. Where those were folded again, deviations of 2 rows of
 * 2^24 floats took 1496 µs on an H200, of 2^23 doubles 1087; of 2^23 floats they take 35 now, of as
 * many doubles 65. */
GPR_DEVICE bool is_power_of_two(double x) { return bits(x) << 12 == 0; }
/* Of a power of four its root, and of no other number. */
GPR_DEVICE double root_of_power(double x) { return from_bits((bits(x) + bits(1.0)) >> 1); }
template <class R> struct OneDifference {
  double apart = 0, rest = 0;
  GPR_DEVICE void add(int, double x, double from) {
    const double t = x - from;
    apart += t;
    rest += rounding_error(x, -from, t);
  }
  GPR_DEVICE bool is_nan() const { return apart - apart != 0; }
  template <bool ROOT, class Result>
  GPR_DEVICE bool round(const Divisor &by, double, Result *out) const {
    const double size = fabs(apart), square = size * size, over = by.over,
                 root = root_of_power(over);
    if (!is_power_of_two(over) || (ROOT ? root * root != over : rest != 0)) return false;
    round_once(ROOT ? to_odd(size, apart < 0 ? -rest : rest) * root
                    : to_odd(square, product_error(size, size, square)) * over,
               out);
    return true;
  }
  template <bool ROOT> GPR_DEVICE bool bound(const Divisor &by, double, Ends *ends) const {
    const double square = apart * apart * by.over, x = ROOT ? sqrt(square) : square;
    *ends = {x * (1 - 0x1p-49), x * (1 + 0x1p-49)};
    return true;
  }
};
/* Of doubles it is rounded as their difference is, or its square if that is a double. */
template <> struct OneDifference<double> : Differences<double, 1> {
  template <bool ROOT, class Result>
  GPR_DEVICE bool round(const Divisor &by, double, Result *out) const {
    const double size = fabs(sum[0].hi), over = by.over, root = root_of_power(over);
    *out = ROOT ? size * root : size * size * over;
    return is_power_of_two(over) && (ROOT ? root * root == over : sum[0].lo == 0) &&
           size >= 0x1p-450 && size < 0x1p500;
  }
};

/* Whether the result is sure; it is NaN before. */
template <bool ROOT, class All, class Result>
GPR_DEVICE bool told_by(const All &all, const Divisor &by, double depth, Result *out) {
  Ends ends;
  Result found;
  if (all.is_nan()) return true;
  const bool is_quick = all.template round<ROOT>(by, depth, &found);
  if (is_quick) *out = found;
  return is_quick ||
         (all.template bound<ROOT>(by, depth, &ends) && between(ends.low, ends.high, out));
}
/* As a Value of PairMoments. MASKED: some of an output's elements may not count. */
template <class All, bool MASKED = true> struct DifferencesValue {
  All all;
  const Divisor *usual; /* of outputs of which all elements count */
  double depth;
  mutable bool certified;
  template <class Result, bool ROOT>
  GPR_DEVICE Result spread(int64_t n, const gpr_spread *how) const {
    Result result = round_case<Result>(SPREAD_NAN);
    const Divisor by = MASKED && n != usual->count ? Divisor(n, how->ddof) : *usual;
    certified =
        (MASKED && !n) || (!how->means && by.freedom > 0 && told_by<ROOT>(all, by, depth, &result));
    return result;
  }
};

template <class T> struct HasTies<PairMoments<T>> {
  static constexpr bool value = sizeof(typename PairMoments<T>::Real) == 4;
};
template <class T> struct ByDifferences<PairMoments<T>> {
  typedef PairMoments<T> F;
  typedef typename F::Real R;
  static constexpr int parts = F::parts;
  /* So many elements: of more doubles the windows take less, and of complex numbers the registers
   * would spill. */
  static constexpr int most = sizeof(R) == 8 ? 4 : parts > 1 ? 8 : FEW_SHORT;
  static constexpr int alone = sizeof(R) == 8 ? (int)FEW_SHORT : most;
  const Divisor usual;
  explicit GPR_DEVICE ByDifferences(const gpr_axes_args &a) : usual(a) {}
  static constexpr bool ties = sizeof(typename RealOf<T>::type) == 2;
  /* Of what a thread has in registers, where ties are seldom but for few; false: not told. */
  template <int U>
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, const T (&x)[U],
                         uint32_t counts) const {
    if constexpr (parts == 1 && U <= 4)
      if (a.count <= 2) return by<OneDifference<R>>(a, o, x, counts);
    if (by<DifferencesOf<T>>(a, o, x, counts)) return true;
    if constexpr (ties && U <= 4) return by<SureDifferences<parts>>(a, o, x, counts);
    return false;
  }
  /* Elements of which a bit says that it counts; what does not is the first that does. */
  template <class All, int U>
  GPR_DEVICE bool by(const gpr_axes_args &a, int64_t o, const T (&x)[U], uint32_t counts) const {
    T from = {};
    DifferencesValue<All> value = {{}, &usual, U, false};
    GPR_UNROLLED(int u = U - 1; u >= 0; u--)
      if (counts >> u & 1) from = x[u];
    add_all(value.all, x, counts, from);
    return finish_value<F>(a, o, __popc(counts), value);
  }
  template <class All, int U>
  static GPR_DEVICE void add_all(All &all, const T (&x)[U], uint32_t counts, const T &from) {
    GPR_EACH(i, U * parts) {
      const double first = F::real(from, i % parts), next = F::real(x[i / parts], i % parts);
      all.add(i % parts, counts >> i / parts & 1 ? next : first, first);
    }
  }
};

/* Lanes of an output take its differences from the same number: one of the first that is finite, or
 * 0. Each load's are added up by themselves, in CHAINS, so that few additions follow each other. */
template <class T, class ALL> struct LanesByDifferences {
  typedef PairMoments<T> F;
  static constexpr int loads = sizeof(T) <= 4 ? 16 : 64 / sizeof(T);
  static constexpr bool are_sure = false;
  enum { CHAINS = 4, LOOKS = 4, MERGES = 5 };
  typedef Divisor Shared;
  const Divisor &usual;
  ALL all;
  T from = {};
  int rounds = 0;
  bool is_alone;
  GPR_DEVICE LanesByDifferences(const Divisor &usual, int64_t, bool *) : usual(usual) {}
  template <class Share> GPR_DEVICE void begin(const Share &share) {
    is_alone = share.down == 1;
    if (is_alone) return;
    T x[LOOKS];
    GPR_EACH(u, LOOKS)
      x[u] = share.run.load(share.data + (u < share.a.count ? u * share.run.stride : 0));
    GPR_UNROLLED(int u = LOOKS - 1; u >= 0; u--) {
      bool finite = true;
      GPR_EACH(p, F::parts) finite &= F::real(x[u], p) - F::real(x[u], p) == 0;
      if (finite) from = x[u];
    }
  }
  template <int U> GPR_DEVICE void add(const T (&x)[U], uint32_t valid, int, int) {
    constexpr int each = U < CHAINS ? 1 : U / CHAINS;
    if (is_alone && !rounds)
      GPR_UNROLLED(int u = U - 1; u >= 0; u--)
        if (valid >> u & 1) from = x[u];
    rounds++;
    if constexpr (sizeof(ALL) > 4 * sizeof(double)) { /* pairs have no chains */
      ByDifferences<F>::add_all(all, x, valid, from);
    } else {
      ALL part[CHAINS];
      GPR_EACH(c, CHAINS) {
        T some[each];
        GPR_EACH(u, each) some[u] = x[c * each + u];
        ByDifferences<F>::add_all(part[c], some, valid >> c * each, from);
      }
      part[0].merge(part[1]);
      part[2].merge(part[3]);
      part[0].merge(part[2]);
      all.merge(part[0]);
    }
  }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int n, int team, bool, bool mine) {
    GPR_ROLLED(int mask = team / 2; mask >= a.across; mask /= 2) all.merge(shuffle_xor(all, mask));
    const double depth = loads / CHAINS + 2 + rounds + 1 + MERGES;
    return mine && finish_value<F>(a, o, n, DifferencesValue<ALL>{all, &usual, depth, false});
  }
};
template <class T> struct BriefLanes<PairMoments<T>> : LanesByDifferences<T, DifferencesOf<T>> {
  using LanesByDifferences<T, DifferencesOf<T>>::LanesByDifferences;
};
template <class T>
struct TiedLanes<PairMoments<T>> : LanesByDifferences<T, SureDifferences<PairMoments<T>::parts>> {
  using LanesByDifferences<T, SureDifferences<PairMoments<T>::parts>>::LanesByDifferences;
};

GPR_CLOSE
