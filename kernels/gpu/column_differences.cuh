/* Variances of columns of a few rows, by the differences from each one's first element. */
#pragma once

#include "differences.cuh"
#include "shallow.cuh"

GPR_OPEN

/* One variance in hundreds of halves lies halfway between two results, and of 8 floats far from
 * zero one in six. It is told where no sum was rounded: where the differences are multiples of a
 * unit of which their size has few bits. */
template <class T> struct TiedDifferences : Differences<float, 1> {
  MomentBatch<T, FEW_MOST> batch;
  GPR_DEVICE void add(int p, double x, double from) {
    batch.see((float)x);
    Differences<float, 1>::add(p, x, from);
  }
  GPR_DEVICE int difference_bits(double) const {
    MomentBatch<T, FEW_MOST> seen = batch;
    seen.open();
    return seen.apart + Format<T>::precision + 1;
  }
};
/* Of floats that lie within a half of the first, the last bit of half of it: of complex numbers of
 * the smaller part. */
template <int PARTS> struct TiedFloats : Differences<float, PARTS> {
  static GPR_DEVICE int exponent(double x) { return (int)(bits(x) >> 52 & 0x7ff) - 1023; }
  GPR_DEVICE int difference_bits(double from) const {
    const int unit = exponent(from) - Format<float>::precision;
    return 4 * this->squares < from * from ? exponent(this->squares) / 2 + 2 - unit : 64;
  }
};
template <> struct TiedDifferences<float> : TiedFloats<1> {};
template <> struct TiedDifferences<complex<float>> : TiedFloats<2> {};
template <bool ROOT, class ALL>
GPR_DEVICE bool tie_of(const ALL &all, double from, double n, double freedom, double *found) {
  const int most = all.difference_bits(from) + bits_below((int)n) + 1; /* and of two parts */
  const double spread = all.spread(n), by = n * freedom;
  const double tie = ROOT ? sqrt(spread / by) : spread / by, one = ROOT ? tie * tie : tie,
               product = one * by;
  *found = tie;
  return 2 * most <= 53 && product == spread && product_error(n, freedom, by) == 0 &&
         product_error(one, by, product) == 0 && (!ROOT || product_error(tie, tie, one) == 0);
}
template <class ALL> struct TellsTies { static constexpr bool value = false; };
template <class T> struct TellsTies<TiedDifferences<T>> { static constexpr bool value = true; };

template <class T> struct ShallowShape<PairMoments<T>> {
  static constexpr int blocks = sizeof(T) == 2 ? 3 : 4;
};

template <class ALL> struct ColumnValue : DifferencesValue<ALL, false> {
  double from;
  template <class Result, bool ROOT>
  GPR_DEVICE Result spread(int64_t n, const gpr_spread *how) const {
    Result result = DifferencesValue<ALL, false>::template spread<Result, ROOT>(n, how);
    if constexpr (TellsTies<ALL>::value) {
      double tie;
      if (!this->certified &&
          tie_of<ROOT>(this->all, from, (double)n, this->usual->freedom, &tie)) {
        round_once(tie, &result);
        this->certified = true;
      }
    }
    return result;
  }
};
/* As few.cuh's Few. */
template <class T, class ALL> struct ColumnDifferences {
  typedef PairMoments<T> F;
  typedef Divisor Shared;
  typedef ColumnValue<ALL> Value;
  ALL all;
  T from;
  GPR_DEVICE void begin(T first) { from = first; }
  GPR_DEVICE void add(T x, int64_t) {
    GPR_EACH(p, F::parts) all.add(p, (double)F::real(x, p), (double)F::real(from, p));
  }
  GPR_DEVICE void result(Value &value, const Divisor &by) const {
    value.all = all;
    value.from = fabs((double)F::real(from, 0));
    if (F::parts > 1) value.from = fmin(value.from, fabs((double)F::real(from, F::parts - 1)));
    value.usual = &by;
    value.depth = by.n;
  }
};
template <class T, class ALL> struct Begins<ColumnDifferences<T, ALL>> {
  static constexpr bool value = true;
};
template <class T> struct OfColumns<PairMoments<T>> {
  typedef typename PairMoments<T>::Real R;
  static constexpr int parts = PairMoments<T>::parts;
  static constexpr bool ties = sizeof(R) == sizeof(float);
  typedef typename Either<ties, TiedDifferences<T>, Differences<R, parts>>::type all;
  typedef typename Either<parts == 1, OneDifference<R>, all>::type first;
  typedef One<PairMoments<T>> one;
  typedef ColumnDifferences<T, first> two;
  typedef ColumnDifferences<T, all> few;
};
/* Integers that are doubles: deviations of 2 rows of 2^23 took 193 µs on an H200 by sums of their
 * squares. */
template <class T> struct OfColumns<IntegerMoments<T>> {
  typedef Few<IntegerMoments<T>> few;
  static constexpr bool are_doubles = sizeof(T) <= 4;
  typedef One<IntegerMoments<T>> one;
  typedef typename Either<are_doubles, ColumnDifferences<T, OneDifference<double>>, few>::type two;
};

GPR_CLOSE
