/* What the rows of kernels/abi/ops.h mean.
 *
 * A fold is an element type's state and four functions: open (the identity), add (lift an element
 * and combine it), merge (combine with the state of the part to the right) and, where it can be
 * told, settled (no further element changes the result). An operator is a fold and a finish, which
 * turns the state into the result. `law` says which order may be used:
 * FREE any, EXACT any (kernels/core/exact.h), TREE the one tree (kernels/core/tree.h). */
#ifndef GPR_OPERATORS_H
#define GPR_OPERATORS_H

#include "exact.h"
#include "matrix.h"
#include "../abi/ops.h"
#include "../abi/rows.h"
#include "tree.h"
#include "types.h"
#include "variance.h"

GPR_OPEN

/* --- the dtype of a C++ type ------------------------------------------------------------------ */

template <class T> struct Id;
#define GPR_X(id, name, kind, bytes, type) \
  template <> struct Id<type> {            \
    enum { value = GPR_##id };             \
  };
GPR_DTYPES(GPR_X)
#undef GPR_X
template <class T> struct Id<matrix<T>> : Id<T> {};

/* --- free folds ------------------------------------------------------------------------------- */

template <class T> struct FreeFold {
  typedef T Element;
  static constexpr gpr_law law = GPR_FREE;
  static constexpr bool ordered = false;
};

/* How many elements are true (WHAT = 1) or false (0). */
template <class T, int WHAT> struct Counting : FreeFold<T> {
  struct State {
    int64_t count;
  };
  static GPR_METHOD void open(State &s) { s.count = 0; }
  static GPR_METHOD void add(State &s, T x, int64_t) { s.count += is_true(x) == (bool)WHAT; }
  static GPR_METHOD void merge(State &s, const State &right) { s.count += right.count; }
};

/* Unsigned words wrap around as NumPy's integers do, and signed overflow is undefined in C. */
template <class T> struct IntegerSum : FreeFold<T> {
  struct State {
    uint64_t sum;
  };
  static GPR_METHOD void open(State &s) { s.sum = 0; }
  static GPR_METHOD void add(State &s, T x, int64_t) { s.sum += (uint64_t)wide(x); }
  static GPR_METHOD void merge(State &s, const State &right) { s.sum += right.sum; }
};

/* A sum that never wraps, in 128 bits: what the mean of integers needs. */
template <class T> struct LongSum : FreeFold<T> {
  struct State {
    uint64_t low;
    int64_t high;
  };
  static GPR_METHOD void open(State &s) { s.low = 0, s.high = 0; }
  static GPR_METHOD void add(State &s, T x, int64_t) {
    const auto w = wide(x);
    merge(s, State{(uint64_t)w, Traits<T>::kind == KIND_INT && (int64_t)w < 0 ? -1 : 0});
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    s.low += right.low;
    s.high += right.high + (s.low < right.low);
  }
};

template <class T> struct IntegerProduct : FreeFold<T> {
  struct State {
    uint64_t product;
  };
  static GPR_METHOD void open(State &s) { s.product = 1; }
  static GPR_METHOD void add(State &s, T x, int64_t) { s.product *= (uint64_t)wide(x); }
  static GPR_METHOD void merge(State &s, const State &right) { s.product *= right.product; }
};

/* The sum of time differences, and whether there was a NaT. */
template <class T> struct TimeSum : FreeFold<T> {
  struct State {
    uint64_t sum, nat;
  };
  static GPR_METHOD void open(State &s) { s.sum = s.nat = 0; }
  static GPR_METHOD void add(State &s, T x, int64_t) {
    s.sum += (uint64_t)x.ticks;
    s.nat |= x.ticks == GPR_NAT;
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    s.sum += right.sum;
    s.nat |= right.nat;
  }
};

/* The least and the greatest key: both, since together they tell NaN and NaT. */
template <class T> struct Extremes : FreeFold<T> {
  typedef Order<T> O;
  typedef typename O::Key Key;
  struct State {
    Key low, high;
  };
  static GPR_METHOD void open(State &s) {
    s.low = Limits<Key>::greatest;
    s.high = Limits<Key>::least;
  }
  static GPR_METHOD void add(State &s, T x, int64_t) {
    const Key k = O::key(x);
    s.low = least(s.low, k);
    s.high = greatest(s.high, k);
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    s.low = least(s.low, right.low);
    s.high = greatest(s.high, right.high);
  }
  static GPR_METHOD bool poisoned(const State &s) { return O::poisoned(s.low, s.high); }
  static GPR_METHOD Key least_key() {
    return Traits<T>::kind == KIND_BOOL ? 0 : Limits<Key>::least;
  }
  static GPR_METHOD Key greatest_key() {
    return Traits<T>::kind == KIND_BOOL ? 1 : Limits<Key>::greatest;
  }
};

/* Complex numbers order by the real part, then the imaginary, where the two zeros tie; then by the
 * signs of zeros, so that equal numbers too have one answer. A NaN in either part spoils both. */
template <class R> struct Extremes<complex<R>> : FreeFold<complex<R>> {
  typedef Order<R> O;
  typedef typename O::Key Key;
  struct Pair {
    Key re, im;
  };
  struct State {
    Pair low, high;
    uint32_t nan, unused;
  };
  static GPR_METHOD Key tied(Key k) { return k == (Key)-1 ? (Key)0 : k; }
  static GPR_METHOD bool less(Pair a, Pair b) {
    const Pair s = {tied(a.re), tied(a.im)}, t = {tied(b.re), tied(b.im)};
    if (s.re != t.re) return s.re < t.re;
    if (s.im != t.im) return s.im < t.im;
    return a.re < b.re || (a.re == b.re && a.im < b.im);
  }
  static GPR_METHOD Pair key(complex<R> x) { return Pair{O::key(x.re), O::key(x.im)}; }
  static GPR_METHOD complex<R> value(Pair p) { return {O::value(p.re), O::value(p.im)}; }
  static GPR_METHOD void open(State &s) {
    s.low.re = s.low.im = Limits<Key>::greatest;
    s.high.re = s.high.im = Limits<Key>::least;
    s.nan = s.unused = 0;
  }
  static GPR_METHOD void add(State &s, complex<R> x, int64_t) {
    const Pair k = key(x);
    s.nan |= x.re != x.re || x.im != x.im;
    if (less(k, s.low)) s.low = k;
    if (less(s.high, k)) s.high = k;
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    s.nan |= right.nan;
    if (less(right.low, s.low)) s.low = right.low;
    if (less(s.high, right.high)) s.high = right.high;
  }
  static GPR_METHOD bool poisoned(const State &s) { return s.nan; }
};

/* A key in which larger is better and the two zeros tie. */
template <class T, bool GREATEST> struct Rank {
  typedef typename Order<T>::Key Key;
  typedef Key Flag; /* as wide as an element, which vectors like */
  static GPR_METHOD Key of(T x) {
    const Key k = Order<T>::key(x);
    const Key tied = Traits<T>::kind == KIND_FLOAT && k == (Key) ~(Key)0 ? (Key)0 : k;
    return GREATEST ? tied : (Key)~tied;
  }
  static GPR_METHOD bool worse(Key a, Key b) { return a < b; }
  static GPR_METHOD bool poisoned(T x) {
    const Key k = Order<T>::key(x);
    return Order<T>::poisoned(k, k);
  }
  static GPR_METHOD Key lowest() { return Limits<Key>::least; }
  static GPR_METHOD T value(Key k) { return Order<T>::value(GREATEST ? k : (Key)~k); }
  /* x comes before the champion, which is neither NaN nor NaT */
  static GPR_METHOD bool beats(T x, T champion) {
    if constexpr (sizeof(T) >= 4 && Traits<T>::kind == KIND_FLOAT)
      return GREATEST ? !(x <= champion) : !(x >= champion);
    return poisoned(x) | worse(of(champion), of(x));
  }
};
template <class R, bool GREATEST> struct Rank<complex<R>, GREATEST> {
  struct Key {
    typename Order<R>::Key re, im;
  };
  typedef int Flag;
  static GPR_METHOD Key of(complex<R> x) {
    return Key{Rank<R, GREATEST>::of(x.re), Rank<R, GREATEST>::of(x.im)};
  }
  static GPR_METHOD bool worse(Key a, Key b) {
    return a.re < b.re || (a.re == b.re && a.im < b.im);
  }
  static GPR_METHOD bool poisoned(complex<R> x) { return x.re != x.re || x.im != x.im; }
  static GPR_METHOD complex<R> value(Key k) {
    return {Rank<R, GREATEST>::value(k.re), Rank<R, GREATEST>::value(k.im)};
  }
  static GPR_METHOD bool beats(complex<R> x, complex<R> champion) {
    const bool re = GREATEST ? x.re > champion.re : x.re < champion.re;
    const bool im = GREATEST ? x.im > champion.im : x.im < champion.im;
    return poisoned(x) | re | ((x.re == champion.re) & im);
  }
  static GPR_METHOD Key lowest() {
    return Key{Rank<R, GREATEST>::lowest(), Rank<R, GREATEST>::lowest()};
  }
};

/* The best key with the first index that has it; the first NaN or NaT beats all. */
template <class T, bool GREATEST> struct Position : FreeFold<T> {
  typedef Rank<T, GREATEST> R;
  typedef typename R::Key Key;
  static constexpr bool ordered = true;
  struct State {
    int64_t index;   /* -1: nothing yet */
    int64_t spoiled; /* the element at index is NaN or NaT */
    Key best;
  };
  static GPR_METHOD void open(State &s) {
    s.index = -1;
    s.spoiled = 0;
    s.best = R::lowest();
  }
  static GPR_METHOD void add(State &s, T x, int64_t index) {
    State one;
    one.index = index;
    one.spoiled = R::poisoned(x);
    one.best = R::of(x);
    merge(s, one);
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    if (right.index < 0) return;
    bool better = s.index < 0;
    if (!better) {
      const bool earlier = right.index < s.index;
      if (right.spoiled || s.spoiled)
        better = right.spoiled && (!s.spoiled || earlier);
      else
        better = R::worse(s.best, right.best) || (earlier && !R::worse(right.best, s.best));
    }
    if (better) s = right;
  }
};

template <class T> struct AndOf {
  static GPR_METHOD T identity() { return (T) ~(T)0; }
  static GPR_METHOD T combine(T a, T b) { return (T)(a & b); }
};
template <class T> struct OrOf {
  static GPR_METHOD T identity() { return 0; }
  static GPR_METHOD T combine(T a, T b) { return (T)(a | b); }
};
template <class T> struct XorOf {
  static GPR_METHOD T identity() { return 0; }
  static GPR_METHOD T combine(T a, T b) { return (T)(a ^ b); }
};

/* Both positions in one pass. */
template <class T> struct Positions : FreeFold<T> {
  typedef Position<T, false> Low;
  typedef Position<T, true> High;
  static constexpr bool ordered = true;
  struct State {
    typename Low::State low;
    typename High::State high;
  };
  static GPR_METHOD void open(State &s) {
    Low::open(s.low);
    High::open(s.high);
  }
  static GPR_METHOD void add(State &s, T x, int64_t index) {
    Low::add(s.low, x, index);
    High::add(s.high, x, index);
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    Low::merge(s.low, right.low);
    High::merge(s.high, right.high);
  }
};

template <class T, template <class> class Op> struct Bitwise : FreeFold<T> {
  typedef typename Order<T>::Key Word;
  struct State {
    Word word;
  };
  static GPR_METHOD void open(State &s) { s.word = Op<Word>::identity(); }
  static GPR_METHOD void add(State &s, T x, int64_t) {
    s.word = Op<Word>::combine(s.word, Order<T>::key(x));
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    s.word = Op<Word>::combine(s.word, right.word);
  }
};

/* --- exact folds ------------------------------------------------------------------------------ */

/* PARTS accumulators: one, or one each for real and imaginary parts. */
template <class T> struct ExactFold {
  typedef T Element;
  static constexpr gpr_law law = GPR_EXACT;
  static constexpr bool ordered = false;
  enum { parts = Traits<T>::kind == KIND_COMPLEX ? 2 : 1 };
  struct State {
    Exact part[parts];
  };
  static GPR_METHOD void open(State &s) { memset(&s, 0, sizeof s); }
  static GPR_METHOD void add_real(Exact &e, double x) {
    e.signs |= bits(x) == 1ull << 63 ? GPR_MET : GPR_MET | GPR_OTHER;
    scatter(e, x);
  }
  template <class R> static GPR_METHOD void add(State &s, complex<R> x, int64_t) {
    add_real(s.part[0], x.re);
    add_real(s.part[1], x.im);
  }
  template <class R> static GPR_METHOD void add(State &s, R x, int64_t) {
    add_real(s.part[0], wide(x));
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    for (int i = 0; i < parts; i++) gpr::merge(s.part[i], right.part[i]);
  }
};

/* --- the tree --------------------------------------------------------------------------------- */

template <class A> struct Times {
  static GPR_METHOD A identity() { return 1; }
  static GPR_METHOD A combine(A a, A b) { return a * b; }
};
template <class R> struct Times<complex<R>> {
  static GPR_METHOD complex<R> identity() { return {1, 0}; }
  static GPR_METHOD complex<R> combine(complex<R> a, complex<R> b) {
    return {GPR_PRODUCT(a.re, b.re) - GPR_PRODUCT(a.im, b.im),
            GPR_PRODUCT(a.re, b.im) + GPR_PRODUCT(a.im, b.re)};
  }
};

template <class T> struct Traits<matrix<T>> { typedef matrix<T> Wide; };
template <class T> GPR_FN matrix<T> wide(matrix<T> m) { return m; }
template <class T> GPR_FN matrix<T> narrow(matrix<T> m, matrix<T>) { return m; }

template <class T> GPR_FN T plain_nan(T x) { return x != x ? quiet_nan<T>() : x; }
template <class R> GPR_FN complex<R> plain_nan(complex<R> x) {
  return {plain_nan(x.re), plain_nan(x.im)};
}
GPR_FN matrix<int64_t> plain_nan(const matrix<int64_t> &m) { return m; }
GPR_FN matrix<double> plain_nan(const matrix<double> &m) {
  return {plain_nan(m.a), plain_nan(m.b), plain_nan(m.c), plain_nan(m.d)};
}

template <class T, template <class> class Op> struct TreeFold {
  typedef T Element;
  typedef typename Traits<T>::Wide Wide;
  typedef Op<Wide> Combine;
  typedef Tree<Wide> State;
  static constexpr gpr_law law = GPR_TREE;
  static constexpr bool ordered = true;
  static GPR_METHOD void open(State &s) { s.count = 0, s.stop = 0; }
  static GPR_METHOD void start(State &s, int64_t index) {
    if (!s.count) s.stop = index;
  }
  static GPR_METHOD void add(State &s, T x, int64_t index) {
    start(s, index);
    push<Combine>(s, wide(x), 0);
  }
  static GPR_METHOD void merge(State &s, const State &right) { merge_trees<Combine>(s, right); }
  /* initial stands to the left of the whole tree */
  static GPR_METHOD T finish(Wide root, const T *initial) {
    if (initial) root = Combine::combine(wide(*initial), root);
    return narrow(plain_nan(root), T());
  }
};

/* --- operators: finish(state, n, initial or NULL or gpr_spread, result)
 * ------------------------------------- */

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
template <class R> GPR_FN void round_parts(const Exact *part, uint64_t n, R *out) {
  *out = round_exact<R>(part[0], n);
}
template <class R> GPR_FN void round_parts(const Exact *part, uint64_t n, complex<R> *out) {
  out->re = round_exact<R>(part[0], n);
  out->im = round_exact<R>(part[1], n);
}
template <class T> struct SumOf<T, INEXACT> : Unsettled {
  typedef ExactFold<T> Fold;
  typedef T Result;
#ifndef __CUDACC__
  static void finish(typename Fold::State s, int64_t, const Result *initial, Result *out) {
    if (initial) Fold::add(s, *initial, -1);
    round_parts(s.part, 1, out);
  }
#endif
};

template <class T> struct Sum : SumOf<T> {};

/* sum / n, rounded once; n is below 2^63. */
GPR_CALL double quotient(uint128 sum, uint64_t n) {
  if (sum >> 53 == 0 && n >> 53 == 0) return (double)(uint64_t)sum / (double)n;
  const int zeros = leading_zeros(sum);
  const uint128 digits = (sum << zeros) / n;
  const int more = leading_zeros(digits); /* at most 63 */
  const uint128 first = digits << more;
  const bool sticky = (uint64_t)first != 0 || digits * n != sum << zeros;
  return (double)((uint64_t)(first >> 64) | sticky) * power_of_two(64 - zeros - more);
}

/* mean */
template <class T, int = category<T>()> struct MeanOf : Unsettled {
  typedef LongSum<T> Fold;
  typedef double Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t n, const Result *,
                                Result *out) {
    const uint128 sum = (uint128)(uint64_t)s.high << 64 | s.low;
    const double size = n ? quotient(s.high < 0 ? 0 - sum : sum, (uint64_t)n) : quiet_nan<double>();
    *out = s.high < 0 ? -size : size;
  }
};
template <class T> struct MeanOf<T, INEXACT> : Unsettled {
  typedef ExactFold<T> Fold;
  typedef T Result;
#ifndef __CUDACC__
  static void finish(const typename Fold::State &s, int64_t n, const Result *, Result *out) {
    round_parts(s.part, (uint64_t)n, out);
  }
#endif
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
  typedef typename Fold::Combine Combine;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    *out = Fold::finish(root<Combine>(s, Combine::identity()), initial);
  }
};

template <class T> struct Prod : ProdOf<T> {};

/* matmul2x2 */
template <class T> struct Matmul : Unsupported {};
template <class T> struct MatmulOf : Unsettled {
  typedef TreeFold<matrix<T>, MatrixTimes> Fold;
  typedef matrix<T> Result;
  typedef typename Fold::Combine Combine;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    *out = Fold::finish(root<Combine>(s, Combine::identity()), initial);
  }
};
template <> struct Matmul<int64_t> : MatmulOf<int64_t> {};
template <> struct Matmul<double> : MatmulOf<double> {};

/* min, max, ptp */
template <class T, int WHICH> struct Extreme {
  typedef Extremes<T> Fold;
  typedef typename Fold::State State;
  typedef T Result;
  typedef Order<T> O;
  static GPR_METHOD void finish(State s, int64_t n, const Result *initial, Result *out) {
    if (initial) Fold::add(s, *initial, -1);
    *out =
        Fold::poisoned(s) || (n == 0 && !initial) ? O::poison() : O::value(WHICH ? s.high : s.low);
  }
  static GPR_METHOD bool settled(const State &s) {
    /* after the greatest time a NaT may come, and after an infinity a NaN */
    return Fold::poisoned(s) || (category<T>() == INTEGER && (WHICH ? s.high == Fold::greatest_key()
                                                                    : s.low == Fold::least_key()));
  }
};
template <class R, int WHICH> struct Extreme<complex<R>, WHICH> {
  typedef Extremes<complex<R>> Fold;
  typedef typename Fold::State State;
  typedef complex<R> Result;
  static GPR_METHOD void finish(State s, int64_t n, const Result *initial, Result *out) {
    if (initial) Fold::add(s, *initial, -1);
    *out = Fold::poisoned(s) || (n == 0 && !initial) ? Result{quiet_nan<R>(), quiet_nan<R>()}
                                                     : Fold::value(WHICH ? s.high : s.low);
  }
  static GPR_METHOD bool settled(const State &s) { return Fold::poisoned(s); }
};
template <class T> struct Min : Extreme<T, 0> {};
template <class T> struct Max : Extreme<T, 1> {};

template <class T> GPR_FN T difference(T high, T low) {
  return (T)((uint64_t)high - (uint64_t)low);
}
GPR_FN float difference(float high, float low) { return plain_nan(high - low); }
GPR_FN double difference(double high, double low) { return plain_nan(high - low); }
GPR_FN float16 difference(float16 high, float16 low) {
  return narrow(plain_nan(widen(high) - widen(low)), float16());
}
GPR_FN bfloat16 difference(bfloat16 high, bfloat16 low) {
  return narrow(plain_nan(widen(high) - widen(low)), bfloat16());
}
template <class R> GPR_FN complex<R> difference(complex<R> high, complex<R> low) {
  return plain_nan(complex<R>{high.re - low.re, high.im - low.im});
}
GPR_FN timedelta64 difference(datetime64 high, datetime64 low) {
  return timedelta64{(int64_t)((uint64_t)high.ticks - (uint64_t)low.ticks)};
}
GPR_FN timedelta64 difference(timedelta64 high, timedelta64 low) {
  return timedelta64{(int64_t)((uint64_t)high.ticks - (uint64_t)low.ticks)};
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
template <class T, bool ROOT, int = category<T>()> struct Spread : Unsettled {
  typedef IntegerMoments<T> Fold;
  typedef double Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t n, const gpr_spread *how,
                                Result *out) {
    *out = finish_integer_spread<ROOT, T>(s, n, how);
  }
};
template <class T, bool ROOT> struct Spread<T, ROOT, TIME> : Unsupported {};
template <class T, bool ROOT> struct Spread<T, ROOT, INEXACT> : Unsettled {
  typedef MomentsFold<T> Fold;
  typedef typename RealOf<T>::type Result;
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t n, const gpr_spread *how,
                                Result *out) {
    *out = finish_spread<Result, ROOT, T>(s, n, how);
  }
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
template <class T> struct Any {
  typedef Counting<T, 1> Fold;
  typedef boolean Result;
  static GPR_METHOD bool settled(const typename Fold::State &s) { return s.count != 0; }
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    out->byte = s.count != 0 || (initial && initial->byte);
  }
};
template <class T> struct All {
  typedef Counting<T, 0> Fold;
  typedef boolean Result;
  static GPR_METHOD bool settled(const typename Fold::State &s) { return s.count != 0; }
  static GPR_METHOD void finish(const typename Fold::State &s, int64_t, const Result *initial,
                                Result *out) {
    out->byte = s.count == 0 && (!initial || initial->byte);
  }
};
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

GPR_CLOSE
#endif
