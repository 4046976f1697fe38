/* Variances of columns of a few rows, by the differences from each one's first element. */
#ifndef GPR_COLUMN_DIFFERENCES_CUH
#define GPR_COLUMN_DIFFERENCES_CUH

#include "differences.cuh"
#include "shallow.cuh"

GPR_OPEN

/* Of halves one variance in hundreds lies halfway between two results, which is told where the
 * numbers are so close together that no sum was rounded. */
template <class T> struct TiedDifferences : Differences<float, 1> {
  MomentBatch<T, FEW_MOST> batch;
  __device__ __forceinline__ void add(int p, double x, double from) {
    batch.see((float)x);
    Differences<float, 1>::add(p, x, from);
  }
  template <bool ROOT>
  __device__ __forceinline__ bool tie(double n, double freedom, double over, double *found) const {
    MomentBatch<T, FEW_MOST> seen = batch;
    seen.open();
    const int most = seen.apart + Format<T>::precision + 1 + bits_below((int)n);
    const double spread = this->spread(n), quotient = spread * over;
    const double tie = (float)(ROOT ? sqrt(quotient) : quotient), all = ROOT ? tie * tie : tie,
                 by = n * freedom, product = all * by;
    *found = tie;
    return 2 * most <= 53 && product == spread && product_error(n, freedom, by) == 0 &&
           product_error(all, by, product) == 0;
  }
};
template <class ALL> struct HasTie { static constexpr bool value = false; };
template <class T> struct HasTie<TiedDifferences<T>> { static constexpr bool value = true; };

template <class T> struct ShallowShape<PairMoments<T>> {
  static constexpr int blocks = sizeof(T) == 2 ? 3 : 4;
};

/* As a Value of PairMoments. */
template <class ALL> struct ColumnValue {
  ALL all;
  const Divisor *by;
  mutable bool certified;
  template <class Result, bool ROOT>
  __device__ __forceinline__ Result spread(int64_t count, const gpr_spread *how) const {
    const double n = (double)count;
    Result result = round_case<Result>(SPREAD_NAN);
    certified =
        !how->means && by->freedom > 0 && told_by<ROOT>(all, n, n, by->freedom, by->over, &result);
    if constexpr (HasTie<ALL>::value) {
      double tie;
      if (!certified && all.template tie<ROOT>(n, by->freedom, by->over, &tie)) {
        round_once(tie, &result);
        certified = true;
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
  __device__ __forceinline__ void begin(T first) { from = first; }
  __device__ __forceinline__ void add(T x, int64_t) {
#pragma unroll
    for (int p = 0; p < F::parts; p++) all.add(p, (double)F::real(x, p), (double)F::real(from, p));
  }
  __device__ __forceinline__ void result(Value &value, const Divisor &by) const {
    value.all = all;
    value.by = &by;
  }
};
template <class T, class ALL> struct Begins<ColumnDifferences<T, ALL>> {
  static constexpr bool value = true;
};
template <class T> struct OfColumns<PairMoments<T>> {
  typedef typename PairMoments<T>::Real R;
  static constexpr int parts = PairMoments<T>::parts;
  typedef typename Either<sizeof(T) == 2, TiedDifferences<T>, Differences<R, parts>>::type all;
  typedef typename Either<parts == 1, OneDifference<R>, all>::type first;
  typedef ColumnDifferences<T, first> one, two;
  typedef ColumnDifferences<T, all> few;
};
/* Integers that are doubles: deviations of 2 rows of 2^23 took 193 µs on an H200 by sums of their
 * squares. */
template <class T> struct OfColumns<IntegerMoments<T>> {
  typedef Few<IntegerMoments<T>> few;
  static constexpr bool are_doubles = sizeof(T) <= 4;
  typedef typename Either<are_doubles, ColumnDifferences<T, OneDifference<double>>, few>::type one,
      two;
};

GPR_CLOSE
#endif
