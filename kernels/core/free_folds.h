/* Folds whose order does not show: counts, sums and products of integers, extremes and their
 * places, bits. */
#pragma once

#include "fold.h"
#include "types.h"

GPR_OPEN

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
  static GPR_METHOD State of(T x) {
    const auto w = wide(x);
    return {(uint64_t)w, Traits<T>::kind == KIND_INT && (int64_t)w < 0 ? -1 : 0};
  }
  static GPR_METHOD void add(State &s, T x, int64_t) { merge(s, of(x)); }
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
  static GPR_METHOD T value(Key k) { return O::value(k); }
  static GPR_METHOD T poison() { return O::poison(); }
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
  static GPR_METHOD complex<R> poison() { return {quiet_nan<R>(), quiet_nan<R>()}; }
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

GPR_CLOSE
