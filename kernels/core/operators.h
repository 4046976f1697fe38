/* What the rows of kernels/abi/ops.h mean: an operator is a fold and a finish, which turns the
 * state into the result. */
#pragma once

#include "../abi/ops.h"
#include "exact_sum.h"
#include "free_folds.h"
#include "tree_fold.h"
#include "variance.h"

GPR_OPEN

/* --- operators: finish(Value, n, with, result) ------------------------------------------------ */

enum Category { INTEGER, TIME, INEXACT };
template <class T> GPR_CONSTEXPR int category() {
  return Traits<T>::kind == KIND_TIME                                       ? TIME
         : Traits<T>::kind == KIND_FLOAT || Traits<T>::kind == KIND_COMPLEX ? INEXACT
                                                                            : INTEGER;
}

struct Unsupported {
  typedef void Fold;
};
struct Unsettled {
  template <class S> static GPR_METHOD bool settled(const S &) { return false; }
};
/* How many values finish() writes. */
template <class O> struct Results {
  enum { value = 1 };
};
/* What its last but one argument points to: an initial value, or how to finish. */
template <class O> struct FinishedWith { typedef typename O::Result type; };

/* sum */
template <class T, int = category<T>()> struct SumOf : Unsettled {
  typedef IntegerSum<T> Fold;
  typedef typename Traits<T>::Wide Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    *out = (Result)(s.sum + (initial ? (uint64_t)*initial : 0));
  }
};
template <> struct SumOf<datetime64, TIME> : Unsupported {};
template <> struct SumOf<timedelta64, TIME> : Unsettled {
  typedef TimeSum<timedelta64> Fold;
  typedef timedelta64 Result;
  static GPR_METHOD void finish(Fold::State s, int64_t, const Result *initial, Result *out) {
    if (initial) Fold::add(s, *initial, -1);
    out->ticks = s.nat ? GPR_NAT : (int64_t)s.sum;
  }
};
template <class T> struct SumOf<T, INEXACT> : Unsettled {
  typedef ExactFold<T> Fold;
  typedef T Result;
  static constexpr bool divides = false;
  template <class V>
  static GPR_METHOD void finish(V &sum, int64_t, const Result *initial, Result *out) {
    if (initial) sum.add(*initial);
    *out = sum.template round<T>();
  }
};

template <class T> struct Sum : SumOf<T> {};

/* mean */
/* sum / n, rounded once. */
template <class R> GPR_CALL R long_quotient(__int128 sum, uint64_t n) {
  const Leading size = leading_of(sum < 0 ? -(uint128)sum : (uint128)sum, 0);
  return round_leading<R>(over(size, n), sum < 0);
}
template <class R> GPR_FN R quotient(double x, double n) {
  const double result = x / n;
  if constexpr (sizeof(R) == sizeof(double)) return result;
  return (R)to_odd(result, product_error(-result, n, -x));
}
template <class R> GPR_FN R quotient(__int128 sum, uint64_t n) {
  const int64_t low = (int64_t)sum, most = 1ll << 53;
  if (low == sum && low < most && low > -most && n >> 53 == 0)
    return quotient<R>((double)low, (double)n);
  return long_quotient<R>(sum, n);
}
/* The sum of integers, or their mean, as an R. */
template <class T, class R, bool DIVIDES> struct WholeAs : Unsettled {
  typedef LongSum<T> Fold;
  typedef R Result;
  /* Of a sum that a double holds. */
  static GPR_METHOD R of(double sum, double n) { return DIVIDES ? quotient<R>(sum, n) : (R)sum; }
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t n, const R *, R *out) {
    const __int128 sum = (__int128)((uint128)(uint64_t)s.high << 64 | s.low);
    *out = DIVIDES && !n ? quiet_nan<R>() : quotient<R>(sum, DIVIDES ? (uint64_t)n : 1);
  }
};
template <class T, int = category<T>()> struct MeanOf : WholeAs<T, double, true> {};
template <class T> struct MeanOf<T, INEXACT> : Unsettled {
  typedef ExactFold<T> Fold;
  typedef T Result;
  static constexpr bool divides = true;
  template <class V> static GPR_METHOD void finish(V &sum, int64_t n, const Result *, Result *out) {
    *out = sum.template round<T>((uint64_t)n);
  }
};
template <> struct MeanOf<datetime64, TIME> : Unsupported {};
template <> struct MeanOf<timedelta64, TIME> : Unsettled {
  typedef TimeSum<timedelta64> Fold;
  typedef timedelta64 Result;
  static GPR_METHOD void finish(const Fold::State &s, int64_t n, const Result *, Result *out) {
    out->ticks = s.nat || n == 0 ? GPR_NAT : (int64_t)s.sum / n;
  }
};

template <class T> struct Mean : MeanOf<T> {};

/* What dtype= makes of sums and means of integers, each of which R holds. */
template <class T, class R, bool DIVIDES,
          bool HELD = category<T>() == INTEGER && 2 * sizeof(T) <= sizeof(R)>
struct HeldAs : Unsupported {};
template <class T, class R, bool DIVIDES>
struct HeldAs<T, R, DIVIDES, true> : WholeAs<T, R, DIVIDES> {};
template <class T> struct SumAsDouble : HeldAs<T, double, false> {};
template <class T> struct SumAsFloat : HeldAs<T, float, false> {};
template <class T> struct MeanAsFloat : HeldAs<T, float, true> {};

/* twice_sum: no function of the package, but a test that engines leave finish() to the operator.
 * Sums are multiples of the least number of T, so that doubling rounds what rounding the double
 * would. */
template <class T> GPR_FN T twice(T x) { return narrow(plain_nan(wide(x) + wide(x)), T()); }
template <class R> GPR_FN complex<R> twice(complex<R> x) { return {twice(x.re), twice(x.im)}; }
template <class T, int = category<T>()> struct TwiceSumOf : Unsupported {};
template <class T> struct TwiceSumOf<T, INEXACT> : SumOf<T> {
  template <class V> static GPR_METHOD void finish(V &sum, int64_t n, const T *initial, T *out) {
    T once;
    SumOf<T>::finish(sum, n, initial, &once);
    *out = twice(once);
  }
};
template <class T> struct TwiceSum : TwiceSumOf<T> {};

/* prod */
template <class T, int = category<T>()> struct ProdOf : Unsettled {
  typedef IntegerProduct<T> Fold;
  typedef typename Traits<T>::Wide Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    *out = (Result)(s.product * (initial ? (uint64_t)*initial : 1));
  }
};
template <class T> struct ProdOf<T, TIME> : Unsupported {};
template <class T> struct ProdOf<T, INEXACT> : Unsettled {
  typedef TreeFold<T, Times> Fold;
  typedef T Result;
  template <class V>
  static GPR_METHOD void finish(const V &tree, int64_t, const Result *initial, Result *out) {
    *out = tree.result(initial);
  }
};

template <class T> struct Prod : ProdOf<T> {};

/* matmul2x2 */
template <class T> struct Matmul : Unsupported {};
template <class T> struct MatmulOf : Unsettled {
  typedef TreeFold<matrix<T>, MatrixTimes> Fold;
  typedef matrix<T> Result;
  template <class V>
  static GPR_METHOD void finish(const V &tree, int64_t, const Result *initial, Result *out) {
    *out = tree.result(initial);
  }
};
template <> struct Matmul<int64_t> : MatmulOf<int64_t> {};
template <> struct Matmul<double> : MatmulOf<double> {};

/* min, max, ptp */
template <class T, int WHICH> struct Extreme {
  typedef Extremes<T> Fold;
  typedef typename Fold::State State;
  typedef T Result;
  static GPR_METHOD void finish(State s, int64_t n, const Result *initial, Result *out) {
    if (initial) Fold::add(s, *initial, -1);
    *out = Fold::poisoned(s) || (n == 0 && !initial) ? Fold::poison()
                                                     : Fold::value(WHICH ? s.high : s.low);
  }
  static GPR_METHOD bool settled(const State &s) {
    /* after the greatest time a NaT may come, and after an infinity a NaN */
    if constexpr (category<T>() == INTEGER)
      return WHICH ? s.high == Fold::greatest_key() : s.low == Fold::least_key();
    else
      return Fold::poisoned(s);
  }
};
template <class T> struct Min : Extreme<T, 0> {};
template <class T> struct Max : Extreme<T, 1> {};

template <class T> GPR_FN auto difference(T high, T low) {
  if constexpr (Traits<T>::kind == KIND_FLOAT)
    return narrow(plain_nan(wide(high) - wide(low)), T());
  else if constexpr (Traits<T>::kind == KIND_TIME)
    return timedelta64{(int64_t)((uint64_t)high.ticks - (uint64_t)low.ticks)};
  else
    return (T)((uint64_t)high - (uint64_t)low);
}
template <class R> GPR_FN complex<R> difference(complex<R> high, complex<R> low) {
  return plain_nan(complex<R>{high.re - low.re, high.im - low.im});
}
template <class T> struct PeakToPeak : Unsettled {
  typedef Extremes<T> Fold;
  typedef decltype(difference(T(), T())) Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t n, const Result *,
                                Result *out) {
    T low, high;
    Min<T>::finish(s, n, 0, &low);
    Max<T>::finish(s, n, 0, &high);
    *out = difference(high, low);
    if (Fold::poisoned(s)) memcpy(out, &high, sizeof *out); /* NaT is one pattern for both times */
  }
};
template <> struct PeakToPeak<boolean> : Unsupported {}; /* as NumPy: booleans do not subtract */

/* minmax */
template <class T> struct MinMax : Unsettled {
  typedef Extremes<T> Fold;
  typedef T Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t n, const Result *,
                                Result *out) {
    Min<T>::finish(s, n, 0, out);
    Max<T>::finish(s, n, 0, out + 1);
  }
};
template <class T> struct Results<MinMax<T>> {
  enum { value = 2 };
};

/* var, std */
template <bool ROOT> struct SpreadOf : Unsettled {
  static constexpr bool root = ROOT;
  template <class V, class R>
  static GPR_METHOD void finish(V &moments, int64_t n, const gpr_spread *how, R *out) {
    *out = moments.template spread<R, ROOT>(n, how);
  }
};
template <class T, bool ROOT, int = category<T>()> struct Spread : SpreadOf<ROOT> {
  typedef IntegerMoments<T> Fold;
  typedef double Result;
};
template <class T, bool ROOT> struct Spread<T, ROOT, TIME> : Unsupported {};
template <class T, bool ROOT> struct Spread<T, ROOT, INEXACT> : SpreadOf<ROOT> {
  typedef MomentsFold<T> Fold;
  typedef typename RealOf<T>::type Result;
};
template <class T> struct Var : Spread<T, false> {};
template <class T> struct Std : Spread<T, true> {};
template <class T> struct FinishedWith<Var<T>> { typedef gpr_spread type; };
template <class T> struct FinishedWith<Std<T>> { typedef gpr_spread type; };

/* argmin, argmax, argminmax */
template <class T, bool GREATEST> struct Arg {
  typedef Position<T, GREATEST> Fold;
  typedef int64_t Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *,
                                Result *out) {
    *out = s.index;
  }
  static GPR_METHOD bool settled(const typename Fold::State &s) {
    if constexpr (Traits<T>::kind == KIND_BOOL)
      return s.index >= 0 && s.best == Fold::R::of(boolean{GREATEST});
    return s.spoiled;
  }
};
template <class T> struct ArgMin : Arg<T, false> {};
template <class T> struct ArgMax : Arg<T, true> {};
template <class T> struct ArgMinMax {
  typedef Positions<T> Fold;
  typedef int64_t Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t n, const Result *,
                                Result *out) {
    ArgMin<T>::finish(s.low, n, 0, out);
    ArgMax<T>::finish(s.high, n, 0, out + 1);
  }
  static GPR_METHOD bool settled(const typename Fold::State &s) {
    return ArgMin<T>::settled(s.low) && ArgMax<T>::settled(s.high);
  }
};
template <class T> struct Results<ArgMinMax<T>> {
  enum { value = 2 };
};

/* any, all, logical_xor, count_nonzero */
template <class T, int WHAT> struct TruthOf {
  typedef Counting<T, WHAT> Fold;
  typedef boolean Result;
  static GPR_METHOD bool settled(const typename Fold::State &s) { return s.count != 0; }
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    const bool met = s.count != 0 || (initial && is_true(*initial) == (bool)WHAT);
    out->byte = met == (bool)WHAT;
  }
};
template <class T> struct Any : TruthOf<T, 1> {};
template <class T> struct All : TruthOf<T, 0> {};
template <class T> struct LogicalXor : Unsettled {
  typedef Counting<T, 1> Fold;
  typedef boolean Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    out->byte = (s.count & 1) != (initial && initial->byte);
  }
};
template <class T> struct CountNonzero : Unsettled {
  typedef Counting<T, 1> Fold;
  typedef int64_t Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *,
                                Result *out) {
    *out = s.count;
  }
};

/* bitwise_and, bitwise_or, bitwise_xor */
template <class T, template <class> class Op, bool SUPPORTED> struct BitwiseOf : Unsettled {
  typedef Bitwise<T, Op> Fold;
  typedef T Result;
  static GPR_METHOD void finish(typename Fold::State s, int64_t, const Result *initial,
                                Result *out) {
    if (initial) Fold::add(s, *initial, -1);
    *out = Order<T>::value(s.word);
  }
};
template <class T, template <class> class Op> struct BitwiseOf<T, Op, false> : Unsupported {};
template <class T> struct BitwiseAnd : BitwiseOf<T, AndOf, category<T>() == INTEGER> {};
template <class T> struct BitwiseOr : BitwiseOf<T, OrOf, category<T>() == INTEGER> {};
template <class T> struct BitwiseXor : BitwiseOf<T, XorOf, category<T>() == INTEGER> {};

/* The first row with the same operator, for all that fold alike and finish alike. */
static constexpr const char *operator_names[] = {
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) #op,
    GPR_OPS(GPR_X)
#undef GPR_X
};
GPR_CONSTEXPR int first_alike(int row) {
  for (int i = 0; i < row; i++) {
    const char *a = operator_names[i], *b = operator_names[row];
    while (*a && *a == *b) a++, b++;
    if (*a == *b) return i;
  }
  return row;
}

/* Whether it will ask for a sum over the number of its elements. */
template <class O, class F = typename O::Fold> struct Divides {
  static constexpr bool value = false;
};
template <class O, class T> struct Divides<O, ExactFold<T>> {
  static constexpr bool value = O::divides;
};
GPR_CONSTEXPR bool divides(int row) {
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) \
  if (row == GPR_OP_##id) return Divides<op<double>>::value;
  GPR_OPS(GPR_X)
#undef GPR_X
  return false;
}

GPR_CLOSE
