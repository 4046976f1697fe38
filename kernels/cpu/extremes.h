/* Extremes and their places side by side: real and complex numbers by one road. */
#pragma once

#include "complex_bests.h"
#include "many.h"

GPR_OPEN

/* --- elements as the hardware compares them ------------------------------------------------------
 */

/* Integers by their words, halves as floats, and where places are numbered bytes by two. */
template <class T, bool PLACE> struct Compared {
  static constexpr bool inexact = category<T>() == INEXACT;
  static constexpr int bytes = (inexact || PLACE) && sizeof(T) == 1 ? 2 : sizeof(T);
  typedef typename Either<bytes == 1, int8_t, typename Signed<bytes>::type>::type Integer;
  typedef typename Either<inexact, typename Traits<T>::Wide, Integer>::type type;
  static constexpr bool same = sizeof(type) == sizeof(T);
};
template <class T> constexpr bool is_compared() { return category<T>() != TIME; }
/* Whose runs have a loop of their own. */
template <class T> constexpr bool is_native() {
  return category<T>() == INTEGER || (Traits<T>::kind == KIND_FLOAT && sizeof(T) >= 4);
}

template <class N, class T> constexpr typename Flipped<N>::Bits flip_of(bool greatest) {
  typedef typename Flipped<N>::Bits Bits;
  const Bits sign = Flipped<N>::sign;
  if (Flipped<N>::real) return greatest ? 0 : sign;
  const bool is_word = sizeof(T) == sizeof(N) && Traits<T>::kind != KIND_INT; /* without a sign */
  return (Bits)((is_word ? sign : 0) ^ (greatest ? 0 : -1));
}
template <class T, class N> GPR_FN T value_of(N x) {
  if constexpr (Traits<T>::kind == KIND_BOOL)
    return T{(uint8_t)(x != 0)};
  else if constexpr (Traits<T>::kind == KIND_FLOAT)
    return narrow(x, T());
  else
    return (T)x;
}

/* --- columns -----------------------------------------------------------------------------------
 */

template <class T, class N> GPR_FN void copy_compared(const T *from, N *to, int64_t n) {
  if constexpr (sizeof(T) == sizeof(N))
    memcpy((void *)to, from, (size_t)n * sizeof *to);
  else if constexpr (Traits<T>::kind == KIND_FLOAT)
    copy_wide(from, to, n);
  else
    for (int64_t j = 0; j < n; j++) to[j] = (N)wide(from[j]);
}

/* The columns of Bests, of elements that need not be as these take them. */
template <class T, bool PLACE> struct BestColumns {
  typedef typename Compared<T, PLACE>::type N;
  typedef typename RealOf<N>::type Real;
  static constexpr bool same = Compared<T, PLACE>::same;
  enum { WIDE = GPR_VECTOR / sizeof(Real), ROWS = 64 };
  Bests<N, PLACE> best;
  alignas(64) N tile[ROWS * (same ? (int64_t)WIDE : COLUMNS)];

  static bool lies_ready(int64_t columns) { return same && columns >= WIDE; }
  /* How many at once. */
  static int64_t rows_of(int64_t columns, int64_t rows) {
    return lies_ready(columns) ? rows : least(rows, (int64_t)ROWS);
  }
  /* to: where they may come at once. */
  GPR_APART void run(const Panel<T> &x, int64_t columns, bool high, bool skip, T *to = nullptr) {
    const auto flip = flip_of<Real, typename RealOf<T>::type>(high);
    if (lies_ready(columns)) return best.run(x.template as<N>(), columns, flip, skip, (N *)to);
    const int64_t pitch = greatest((int64_t)WIDE, columns);
    for (int64_t i = 0; i < x.n; i++) {
      copy_compared(x[i], tile + i * pitch, columns);
      for (int64_t j = columns; j < pitch; j++) tile[i * pitch + j] = N{};
    }
    best.run(Panel<N>{tile, pitch, x.n}, pitch, flip, skip);
  }
  T value(int64_t j) const { return value_of<T>(best.value(j)); }
  bool is_there(const T *to) const {
    if constexpr (is_native<T>() && !PLACE && Traits<T>::kind != KIND_BOOL)
      return (const void *)best.best == to && !best.flip;
    else
      return false;
  }
};

template <class O, class T> struct Apart<O, Extremes<T>> {
  static constexpr bool both = Asks<O>::low && Asks<O>::high;
  static constexpr int most = !is_compared<T>() || !BestColumns<T, false>::same ? NOT_APART
                              : both || Traits<T>::kind == KIND_COMPLEX         ? APART_LITTLE
                                                                                : APART;
};
template <class O, class T, bool GREATEST> struct Apart<O, Position<T, GREATEST>> {
  static constexpr int most = sizeof(T) == 1 ? (int)APART_LITTLE : Apart<Max<T>>::most;
};
template <class O, class T> struct Apart<O, Positions<T>> : Apart<MinMax<T>> {};

template <class T> struct Columns<Extremes<T>> {
  enum { most = is_compared<T>() && BestColumns<T, false>::same ? WIDE_COLUMNS<T> : COLUMNS };
};

/* NaN where there is such, the extreme of nothing. */
template <class T> GPR_FN T poison_of() {
  typename Extremes<T>::State none;
  T poison;
  Extremes<T>::open(none);
  Min<T>::finish(none, 0, nullptr, &poison);
  return poison;
}
/* What is one of the extremes; the other one loses nothing by it. */
template <class T>
GPR_FN void add_best(typename Extremes<T>::State &s, T best, bool spoiled, bool skip) {
  if (!spoiled || !skip) Extremes<T>::add(s, spoiled ? poison_of<T>() : best, 0);
}

template <class T>
GPR_APART void fold_extreme(typename Extremes<T>::State *to, const Panel<T> &x, int64_t columns,
                            bool high, bool skip) {
  BestColumns<T, false> b;
  for (int64_t i = 0, m; i < x.n; i += m) {
    m = b.rows_of(columns, x.n - i);
    b.run(x.part(i, m), columns, high, skip);
    for (int64_t j = 0; j < columns; j++) {
      asm(""); /* not worth vectors */
      add_best<T>(to[j], b.value(j), b.best.is_special(j), skip);
    }
  }
}
template <class T, bool GREATEST>
GPR_APART void fold_position(typename Position<T, GREATEST>::State *to, const Panel<T> &x,
                             int64_t columns, int64_t index, bool skip) {
  typedef Position<T, GREATEST> F;
  BestColumns<T, true> b;
  for (int64_t i = 0, m; i < x.n; i += m) {
    m = b.rows_of(columns, x.n - i);
    b.run(x.part(i, m), columns, GREATEST, skip);
    for (int64_t j = 0; j < columns; j++) {
      const bool special = b.best.is_special(j);
      if (special && skip) continue;
      F::merge(to[j], {index + i + b.best.place(j), special, F::R::of(b.value(j))});
    }
  }
}

template <class T> struct FoldSkips<Extremes<T>> {
  enum { value = category<T>() == INEXACT };
  static bool empty(const typename Extremes<T>::State &s) {
    typename Extremes<T>::State none;
    Extremes<T>::open(none);
    return !memcmp(&s, &none, sizeof s);
  }
};
template <class T, bool GREATEST> struct FoldSkips<Position<T, GREATEST>> {
  enum { value = category<T>() == INEXACT };
  static bool empty(const typename Position<T, GREATEST>::State &s) { return s.index < 0; }
};

template <class O, class T> struct Side<O, Extremes<T>> {
  static void fold(typename Extremes<T>::State *to, const Panel<T> &x, int64_t columns, int64_t,
                   bool skip) {
    if constexpr (!is_compared<T>()) {
      for (int64_t i = 0; i < x.n; i++)
        for (int64_t j = 0; j < columns; j++) Extremes<T>::add(to[j], x[i][j], i);
    } else {
      if (Asks<O>::low) fold_extreme(to, x, columns, false, skip);
      if (Asks<O>::high) fold_extreme(to, x, columns, true, skip);
    }
  }
};
template <class O, class T, bool GREATEST> struct Side<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  static void fold(typename F::State *to, const Panel<T> &x, int64_t columns, int64_t index,
                   bool skip) {
    if constexpr (is_compared<T>())
      fold_position<T, GREATEST>(to, x, columns, index, skip);
    else
      for (int64_t i = 0; i < x.n; i++)
        for (int64_t j = 0; j < columns; j++) F::add(to[j], x[i][j], index + i);
  }
};
template <class O, class T> struct Side<O, Positions<T>> {
  static void fold(typename Positions<T>::State *to, const Panel<T> &x, int64_t columns,
                   int64_t index, bool) {
    typename Position<T, false>::State low[COLUMNS];
    typename Position<T, true>::State high[COLUMNS];
    for (int64_t j = 0; j < columns; j++) low[j] = to[j].low, high[j] = to[j].high;
    Side<ArgMin<T>, Position<T, false>>::fold(low, x, columns, index, false);
    Side<ArgMax<T>, Position<T, true>>::fold(high, x, columns, index, false);
    for (int64_t j = 0; j < columns; j++) to[j].low = low[j], to[j].high = high[j];
  }
};

/* Of an operator of both; NaN comes of NaN. */
template <class O, class T>
GPR_FN void finish_both(const T *low, const T *high, int64_t columns, typename O::Result *to) {
  for (int64_t j = 0; j < columns; j++)
    if constexpr (Results<O>::value == 1)
      to[j] = difference(high[j], low[j]);
    else
      to[2 * j] = low[j], to[2 * j + 1] = high[j];
}
/* Elements of PARTS numbers each without rivals; whether one is NaN. Without a branch: of 8192
 * complex floats of which every fiftieth is NaN maxima took 25 µs on an Intel Xeon. */
template <class R, int PARTS>
GPR_FN bool copy_alone(const R *__restrict x, int64_t n, R *__restrict to) {
  typedef typename Unsigned<sizeof(R)>::type Bits;
  const Bits poison = copy_bits<Bits>(Order<R>::poison());
  Bits any = 0;
  const auto is_nan = [](R a) {
    if constexpr (is_native<R>())
      return !(a == a);
    else
      return (Bits)(copy_bits<Bits>(a) << 1) > (Bits)(Format<R>::infinity() << 1);
  };
  for (int64_t j = 0; j < PARTS * n; j += PARTS) {
    Bits nan = 0;
    for (int p = 0; p < PARTS; p++) nan |= (Bits) - (Bits)is_nan(x[j + p]);
    for (int p = 0; p < PARTS; p++)
      to[j + p] = copy_bits<R>((Bits)((copy_bits<Bits>(x[j + p]) & ~nan) | (poison & nan)));
    any |= nan;
  }
  return any;
}
template <class T> GPR_FN bool are_alone(const T *x, int64_t n, T *to) {
  if constexpr (Traits<T>::kind == KIND_FLOAT) return copy_alone<T, 1>(x, n, to);
  if constexpr (Traits<T>::kind == KIND_BOOL) {
    const T *__restrict from = x;
    T *__restrict into = to;
    for (int64_t j = 0; j < n; j++) into[j].byte = from[j].byte != 0;
  } else {
    memcpy(to, x, (size_t)n * sizeof *to);
  }
  return false;
}
template <class R> GPR_FN bool are_alone(const complex<R> *x, int64_t n, complex<R> *to) {
  return copy_alone<R, 2>(&x->re, n, &to->re);
}
template <class T>
static GPR_APART bool bests_of(const Panel<T> &x, int64_t columns, bool high, int *empty, T *to) {
  BestColumns<T, false> b;
  if (b.rows_of(columns, x.n) < x.n) return false;
  if (x.n == 1) {
    if (are_alone(x[0], columns, to) && empty) *empty = 1;
    return true;
  }
  b.run(x, columns, high, empty, is_native<T>() ? to : nullptr);
  if (!b.is_there(to))
    for (int64_t j = 0; j < columns; j++) to[j] = b.value(j);
  for (int64_t j = 0; b.best.odd && j < columns; j++)
    if (b.best.is_special(j)) to[j] = poison_of<T>();
  if (empty && b.best.odd) *empty = 1;
  return true;
}
template <class O, class T> struct Direct<O, Extremes<T>> {
  enum { possible = is_compared<T>() };
  static bool run(const Panel<T> &x, int64_t columns, int *empty, typename O::Result *to) {
    if constexpr (!is_compared<T>()) {
      return false;
    } else if constexpr (Asks<O>::low != Asks<O>::high) {
      return bests_of(x, columns, Asks<O>::high, empty, to);
    } else {
      T low[WIDE_COLUMNS<T>], high[WIDE_COLUMNS<T>];
      if (!bests_of(x, columns, false, empty, low)) return false;
      bests_of(x, columns, true, empty, high);
      finish_both<O>(low, high, columns, to);
      return true;
    }
  }
};
template <class T>
static GPR_APART bool places_of(const Panel<T> &x, int64_t columns, bool high, int *empty,
                                int64_t *to) {
  BestColumns<T, true> b;
  if (x.n == 1 && !empty) memset(to, 0, (size_t)columns * sizeof *to);
  if (x.n == 1 && !empty) return true;
  if (b.rows_of(columns, x.n) < x.n) return false;
  b.run(x, columns, high, empty);
  for (int64_t j = 0; j < columns; j++) to[j] = b.best.place(j);
  if (empty && b.best.odd) *empty = 1;
  return true;
}
template <class O, class T, bool GREATEST> struct Direct<O, Position<T, GREATEST>> {
  enum { possible = is_compared<T>() };
  static bool run(const Panel<T> &x, int64_t columns, int *empty, int64_t *to) {
    if constexpr (is_compared<T>())
      return places_of(x, columns, GREATEST, empty, to);
    else
      return false;
  }
};

GPR_CLOSE
