/* Variances of integers with many outputs: what is special to them. */
#pragma once

#include "brief.cuh"
#include "integer_moments.cuh"
#include "moment_results.cuh"
#include "shallow.cuh"

GPR_OPEN

/* --- results ---------------------------------------------------------------------------------- */

/* Words for unsigned sums too: the sum has 128 bits, the squares 192 and never the last of them. */
struct IntegerViews {
  uint64_t sum[2], squares[3];
};
/* Of few or small ones the numerator is an integer of 63 bits: (Σx)² is not greater than n·Σx². */
static GPR_DEVICE bool small_spread(const IntegerViews &v, int64_t n, const gpr_spread &how,
                                    bool root, double *result) {
  const int64_t sum = (int64_t)v.sum[0];
  const uint64_t size = (uint64_t)n, squares = size * v.squares[0];
  if (how.means || v.squares[1] | v.squares[2] | __umul64hi(size, v.squares[0]) | squares >> 63)
    return false;
  const uint64_t numerator = squares - (uint64_t)sum * (uint64_t)sum;
  const double high = (double)numerator, freedom = plain_freedom(n, how.ddof);
  const double divisor = (double)n * freedom;
  *result = 0;
  if (!numerator) return freedom > 0;
  if (!root && numerator >> 53 == 0 && product_error((double)n, freedom, divisor) == 0) {
    *result = high / divisor;
    return true;
  }
  const Near exact = {high, (double)(int64_t)(numerator - (uint64_t)high), 0};
  return round_near(coarse_spread(exact, (double)n, freedom, root), result);
}
/* Two words as doubles; false where those have too few bits. */
template <int N> static GPR_DEVICE bool as_doubles(uint64_t low, int64_t high, double (&to)[N]) {
  double t[3] = {(double)(uint32_t)low, (double)(low >> 32) * 0x1p32, (double)high * 0x1p64};
  return high >> 52 == high >> 63 && gathered(t, to);
}
static __device__ __noinline__ double integer_spread(const IntegerViews *v, int64_t n,
                                                     const gpr_spread how, bool root,
                                                     void *scratch) {
  const SpreadCase c = case_of_spread(0, n, how.means, 1);
  if (c != SPREAD_FINITE) return round_case<double>(c);
  double result;
  const Near sum[1] = {near_of(v->sum, 2, 0)};
  const Near numerator = near_numerator<1>(sum, near_of(v->squares, 3, 0), (double)n, how.means);
  const double freedom = plain_freedom(n, how.ddof);
  if (round_near(near_spread(numerator, (double)n, freedom, how.means, root), &result))
    return result;
  /* Halfway between two doubles: of 2^18 integers of some thousands 60 of 200 variances are. */
  ExactMoments<1> m;
  if (!how.means && !v->squares[2] && as_doubles(v->sum[0], (int64_t)v->sum[1], m.sum[0]) &&
      (int64_t)v->squares[1] >= 0 && as_doubles(v->squares[0], (int64_t)v->squares[1], m.squares) &&
      exact_spread(m, (double)n, freedom, root, &result))
    return result;
  SpreadQuestion q;
  q.sum[0] = {v->sum, 2, 0};
  q.squares = {v->squares, 3, 0};
  q.parts = 1;
  q.n = n;
  q.how = how;
  return round_digits<double>(q, scratch, root);
}
struct IntegerViewsValue {
  IntegerViews views;
  void *scratch;
  template <class R, bool ROOT> GPR_DEVICE R spread(int64_t n, const gpr_spread *how) const {
    static_assert(Same<R, double>::value, "");
    if (is_alone(n, *how)) return Format<double>::make(0);
    double result;
    if (n && small_spread(views, n, *how, ROOT, &result)) return result;
    return integer_spread(&views, n, *how, ROOT, scratch);
  }
};
template <class T> GPR_DEVICE IntegerViews views_of(const typename IntegerMoments<T>::State &s) {
  return {{s.low, (uint64_t)s.high}, {s.square[0], s.square[1], s.square[2]}};
}
template <class T> struct View<IntegerMoments<T>> {
  typedef IntegerViewsValue Value;
  static GPR_DEVICE Value of(const gpr_axes_args &a, typename IntegerMoments<T>::State &s,
                             int64_t) {
    return {views_of<T>(s), a.scratch};
  }
};

/* --- few elements ----------------------------------------------------------------------------- */

/* What a thread finishes by itself, or has to fold again. By a call: where several outputs are
 * finished one after the other, kernels were of half a MB. */
static __device__ __noinline__ Told<double> few_spread(const IntegerViews v, int64_t n,
                                                       const gpr_spread how, bool root) {
  Told<double> told = {Format<double>::make(0), true};
  if (!is_alone(n, how)) told.sure = n && small_spread(v, n, how, root, &told.value);
  return told;
}
struct FewIntegers {
  IntegerViews views;
  mutable bool certified;
  template <class R, bool ROOT> GPR_DEVICE R spread(int64_t n, const gpr_spread *how) const {
    const Told<double> told = few_spread(views, n, *how, ROOT);
    certified = told.sure;
    return told.value;
  }
};
template <class T> struct FewValue<IntegerMoments<T>> {
  typedef FewIntegers Value;
  static GPR_DEVICE Value of(const typename IntegerMoments<T>::State &s) {
    return {views_of<T>(s), true};
  }
};
template <class T> struct FewCells<IntegerMoments<T>> {
  Lane<IntegerMoments<T>> lane;
  GPR_DEVICE void add(T x, int64_t index) { lane.one(x, index); }
  GPR_DEVICE void take(const Packet<T> (&v)[1]) { lane.take(v, 0, 0); }
  GPR_DEVICE void result(typename IntegerMoments<T>::State &s) { lane.result(s); }
};

template <class T> struct One<IntegerMoments<T>> : OneSpread<IntegerMoments<T>> {
  GPR_DEVICE void add(T, int64_t) {}
};
template <class T> struct TakesPackets<IntegerMoments<T>> { static constexpr bool value = true; };
template <class T> struct ShallowShape<IntegerMoments<T>> { static constexpr int blocks = 4; };

GPR_CLOSE
