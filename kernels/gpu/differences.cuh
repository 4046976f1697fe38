/* Variances of numbers that one thread folds, by their differences from one of them:
 * what the numbers have in common costs no bits, and the bounds of what is lost mostly round to the
 * same result. */
#ifndef GPR_DIFFERENCES_CUH
#define GPR_DIFFERENCES_CUH

#include "brief.cuh"
#include "moment_results.cuh"

GPR_OPEN

/* Of floats by doubles: with u = 2^-53 the differences are off by a part u of themselves, and
 * n·Σd² − (Σd)² by 3n + 10 such parts of n·Σd². */
template <class R, int PARTS> struct Differences {
  double sum[PARTS] = {}, squares = 0;
  __device__ __forceinline__ void add(int p, double x, double from) {
    const double apart = x - from;
    sum[p] += apart;
    squares += apart * apart;
  }
  template <bool ROOT>
  __device__ __forceinline__ bool bound(double n, double, double over, double *low,
                                        double *high) const {
    const double most = n * squares;
    double spread = most;
#pragma unroll
    for (int p = 0; p < PARTS; p++) spread -= sum[p] * sum[p];
    const double error = (4 * n + 32) * PARTS * 0x1p-53 * most;
    *low = (spread - error) * over, *high = (spread + error) * over;
    if (ROOT) *low = sqrt(*low) * (1 - 0x1p-50), *high = sqrt(*high) * (1 + 0x1p-50);
    return true;
  }
  /* Whether a number is infinite or none: no square of a float overflows. */
  __device__ __forceinline__ bool is_nan() const { return squares - squares != 0; }
};

/* Of halves that tie, as one in hundreds does: what nothing was lost of, and few bits hold. */
struct ExactDifferences {
  double sum = 0, squares = 0;
  bool lost = false;
  static __device__ __forceinline__ double plus(double a, double b, bool &lost) {
    const double s = a + b;
    lost |= rounding_error(a, b, s) != 0;
    return s;
  }
  static __device__ __forceinline__ double times(double a, double b, bool &lost) {
    const double product = a * b;
    lost |= product_error(a, b, product) != 0;
    return product;
  }
  __device__ __forceinline__ void add(int, double x, double from) {
    const double apart = plus(x, -from, lost);
    sum = plus(sum, apart, lost);
    squares = plus(squares, times(apart, apart, lost), lost);
  }
  template <bool ROOT>
  __device__ __forceinline__ bool bound(double n, double freedom, double over, double *low,
                                        double *high) const {
    bool gone = lost;
    const double spread = plus(times(n, squares, gone), -times(sum, sum, gone), gone);
    const double quotient = spread * over, few = (float)(ROOT ? sqrt(quotient) : quotient);
    const double all = ROOT ? times(few, few, gone) : few;
    *low = *high = few;
    return times(all, times(n, freedom, gone), gone) == spread && !gone;
  }
  __device__ __forceinline__ bool is_nan() const { return false; }
};

/* Of doubles by pairs of them: bounds as bound_spreads() of cpu/moments.h has them. */
template <int PARTS> struct Differences<double, PARTS> {
  Pair sum[PARTS] = {}, squares = {0, 0};
  double odd = 0; /* NaN where a number is infinite or none */
  bool differ = false;
  static __device__ __forceinline__ void add_to(Pair &p, double high, double low) {
    const double t = p.hi + high;
    p.lo += rounding_error(p.hi, high, t) + low;
    p.hi = t;
  }
  __device__ __forceinline__ void add(int p, double x, double from) {
    const double apart = x - from, rest = rounding_error(x, -from, apart), square = apart * apart;
    add_to(sum[p], apart, rest);
    add_to(squares, square, product_error(apart, apart, square) + 2 * apart * rest);
    odd += x - x;
    differ |= apart != 0;
  }
  __device__ __forceinline__ bool is_nan() const { return odd != 0; }
  template <bool ROOT>
  __device__ __forceinline__ bool bound(double n, double freedom, double over, double *low,
                                        double *high) const {
    *low = *high = 0;
    if (!differ) return true;
    const double by = n * freedom;
    Pair all = {n * squares.hi, 0};
    all.lo = product_error(n, squares.hi, all.hi) + n * squares.lo;
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
      const double minus = -(sum[p].hi * sum[p].hi);
      add_to(all, minus,
             -(product_error(sum[p].hi, sum[p].hi, -minus) + 2 * sum[p].hi * sum[p].lo));
    }
    double spread = all.hi + all.lo, rest = rounding_error(all.hi, all.lo, spread);
    const bool fits = spread >= 0x1p-900 && squares.hi <= 0x1p900;
    const double quotient = spread * over;
    rest = (rest - product_error(quotient, by, spread) - quotient * product_error(n, freedom, by)) *
           over;
    double error = PARTS * 0x1p-100 * (n * n * n * squares.hi * over + quotient);
    spread = quotient;
    if (ROOT) {
      spread = sqrt(quotient);
      const double over_root = 1 / spread;
      rest = (rest - product_error(spread, spread, quotient)) * (0.5 * over_root);
      error = error * over_root + 0x1p-100 * spread;
    }
    *low = spread + (rest - error), *high = spread + (rest + error);
    return fits;
  }
};

/* What variances of n numbers are divided by. */
struct Divisor {
  int64_t n;
  double freedom, over;
  __device__ __forceinline__ Divisor(int64_t n, double ddof)
      : n(n), freedom(plain_freedom(n, ddof)), over(1 / ((double)n * freedom)) {}
};
/* As a Value of PairMoments; *told: whether the result is sure. */
template <class All> struct DifferencesValue {
  All all;
  const Divisor &usual; /* of outputs of which all elements count */
  bool *told;
  template <class Result, bool ROOT>
  __device__ __forceinline__ Result spread(int64_t n, const gpr_spread *how) const {
    Result result = round_case<Result>(SPREAD_NAN);
    double low, high, freedom = usual.freedom, over = usual.over;
    if (n != usual.n) {
      const Divisor own(n, how->ddof);
      freedom = own.freedom, over = own.over;
    }
    *told =
        !n || (!how->means && freedom > 0 &&
               (all.is_nan() || (all.template bound<ROOT>((double)n, freedom, over, &low, &high) &&
                                 between(low, high, &result))));
    return result;
  }
};

template <class T> struct ByDifferences<PairMoments<T>> {
  typedef PairMoments<T> F;
  typedef typename F::Real R;
  static constexpr int parts = F::parts;
  /* So many elements: of more doubles the windows take less, and of complex numbers the registers
   * would spill. */
  static constexpr int most = sizeof(R) == 8 ? 4 : parts > 1 ? 8 : FEW_SHORT, columns = 256;
  static constexpr int loads = sizeof(T) == 16 ? 8 : 16;
  const Divisor usual;
  explicit __device__ __forceinline__ ByDifferences(const gpr_axes_args &a)
      : usual(a.count, a.ddof) {}
  static constexpr bool ties = sizeof(typename RealOf<T>::type) == 2;
  template <class All> struct Running {
    All all;
    T from = {};
    int n = 0;
    /* Elements of which a bit says that it counts; what does not is the first that does. */
    template <int U> __device__ __forceinline__ void take(const T (&x)[U], uint32_t counts) {
      if (!n)
#pragma unroll
        for (int u = U - 1; u >= 0; u--)
          if (counts >> u & 1) from = x[u];
#pragma unroll
      for (int i = 0; i < U * parts; i++) {
        const double first = F::real(from, i % parts);
        all.add(i % parts,
                counts >> i / parts & 1 ? (double)F::real(x[i / parts], i % parts) : first, first);
      }
      n += __popc(counts);
    }
  };
  /* Of what a thread has in registers, where ties are seldom but for few; false: not told. */
  template <int U>
  __device__ __forceinline__ bool finish(const gpr_axes_args &a, int64_t o, const T (&x)[U],
                                         uint32_t counts) const {
    return by<Differences<R, parts>>(a, o, x, counts) ||
           (ties && U <= 4 && by<ExactDifferences>(a, o, x, counts));
  }
  /* Of a column; of whole numbers of 0 to 9 every eighth ties. */
  __device__ __forceinline__ bool finish(const gpr_axes_args &a, int64_t o,
                                         const BriefShare<F> &share) const {
    return by<Differences<R, parts>>(a, o, share) || (ties && by<ExactDifferences>(a, o, share));
  }
  template <class All, int U>
  __device__ __forceinline__ bool by(const gpr_axes_args &a, int64_t o, const T (&x)[U],
                                     uint32_t counts) const {
    Running<All> running;
    running.take(x, counts);
    return told(a, o, running);
  }
  template <class All>
  __device__ __forceinline__ bool by(const gpr_axes_args &a, int64_t o, BriefShare<F> share) const {
    Running<All> running;
#pragma unroll 1
    while (share.left > loads / 2) take_next<loads>(running, share);
    if (share.left > 0) take_next<loads / 2>(running, share);
    return told(a, o, running);
  }
  template <int U, class All>
  static __device__ __forceinline__ void take_next(Running<All> &running, BriefShare<F> &share) {
    T x[U];
    running.take(x, share.load(x));
    share.template pass<U>();
  }
  template <class All>
  __device__ __forceinline__ bool told(const gpr_axes_args &a, int64_t o,
                                       const Running<All> &running) const {
    bool is_told = false;
    DifferencesValue<All> value[1] = {{running.all, usual, &is_told}};
    finish_values<F>(a, o, value, running.n, 1);
    return is_told;
  }
};

GPR_CLOSE
#endif
