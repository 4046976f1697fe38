/* Extremes and their places side by side. */
#ifndef GPR_COLUMN_BESTS_H
#define GPR_COLUMN_BESTS_H

#include "many.h"

GPR_OPEN

/* Elements as the hardware compares them: halves as floats. */
template <class T> struct Compared {
  typedef typename Native<T>::type type;
  enum { same = 1 };
};
template <> struct Compared<float16> {
  typedef float type;
  enum { same = 0 };
};
template <> struct Compared<bfloat16> : Compared<float16> {};
template <class T> constexpr bool is_compared() { return is_native<T>() || is_half<T>(); }

template <class T> GPR_FN T value_of(typename Compared<T>::type x) {
  if constexpr (Compared<T>::same)
    return copy_bits<T>(x);
  else
    return narrow(x, T());
}

/* The columns of Best, of elements that need not be as it takes them. */
template <class T, bool GREATEST, bool PLACE> struct BestColumns {
  typedef typename Compared<T>::type N;
  static constexpr int64_t ROWS = Compared<T>::same ? 0 : 64;
  Best<N, GREATEST, PLACE> best;
  alignas(64) N tile[ROWS * COLUMNS + 1];
  /* All rows at once, but for halves: how many of them. */
  static int64_t rows_of(int64_t rows) { return ROWS && rows > ROWS ? ROWS : rows; }
  void run(const T *x, int64_t stride, int64_t columns, int64_t rows, bool skip) {
    if constexpr (Compared<T>::same) {
      best.run((const N *)(const void *)x, stride, columns, rows, skip);
    } else {
      for (int64_t i = 0; i < rows; i++) widen_all(x + i * stride, tile + i * columns, columns);
      best.run(tile, columns, columns, rows, skip);
    }
  }
};
template <class F, class T>
GPR_APART void fold_one_by_one(typename F::State *to, const T *x, int64_t stride, int64_t columns,
                               int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) F::add(to[j], x[i * stride + j], i);
}
template <class T, bool GREATEST>
GPR_APART void fold_extreme(typename Extremes<T>::State *to, const T *x, int64_t stride,
                            int64_t columns, int64_t rows, bool skip) {
  typedef Extremes<T> F;
  typedef typename F::Key Key;
  const Key spoiled = F::O::key(F::O::poison());
  BestColumns<T, GREATEST, false> b;
  for (int64_t i = 0; i < rows; i += b.rows_of(rows)) {
    const int64_t m = least(b.rows_of(rows), rows - i);
    b.run(x + i * stride, stride, columns, m, skip);
    const auto take = [&](int64_t j) {
      const Key k = F::O::key(value_of<T>(b.best.value(j)));
      if (GREATEST)
        to[j].high = greatest(to[j].high, k);
      else
        to[j].low = least(to[j].low, k);
    };
    if (b.best.unmet)
      for (int64_t j = 0; j < columns; j++) {
        if (!b.best.is_empty(j)) take(j);
      }
    else
      for (int64_t j = 0; j < columns; j++) take(j);
    for (int64_t j = 0; b.best.spoiled && j < columns; j++)
      if (b.best.is_spoiled(j)) to[j].high = greatest(to[j].high, spoiled);
  }
}
template <class T, bool GREATEST>
GPR_APART void fold_position(typename Position<T, GREATEST>::State *to, const T *x, int64_t stride,
                             int64_t columns, int64_t rows, int64_t index, bool skip) {
  typedef Position<T, GREATEST> F;
  BestColumns<T, GREATEST, true> b;
  const auto are_spoiled = [&] {
    int64_t j = 0;
    while (j < columns && to[j].spoiled) j++;
    return j == columns;
  };
  for (int64_t i = 0; i < rows && !are_spoiled(); i += b.rows_of(rows)) {
    const int64_t m = least(b.rows_of(rows), rows - i);
    b.run(x + i * stride, stride, columns, m, skip);
    for (int64_t j = 0; j < columns; j++) {
      if (b.best.is_empty(j)) continue;
      const int64_t nan = b.best.row_of_nan(j);
      typename F::State one;
      one.index = index + i + (nan < 0 ? b.best.place(j) : nan);
      one.spoiled = nan >= 0;
      one.best = F::R::of(value_of<T>(b.best.value(j)));
      F::merge(to[j], one);
    }
  }
}

template <class T> struct FoldSkips<Extremes<T>> {
  enum { value = Traits<T>::kind == KIND_FLOAT };
  static bool empty(const typename Extremes<T>::State &s) {
    return s.low == Limits<typename Extremes<T>::Key>::greatest &&
           s.high == Limits<typename Extremes<T>::Key>::least;
  }
};
template <class T, bool GREATEST> struct FoldSkips<Position<T, GREATEST>> {
  enum { value = category<T>() == INEXACT };
  static bool empty(const typename Position<T, GREATEST>::State &s) { return s.index < 0; }
};

template <class O, class T> struct Side<O, Extremes<T>> {
  typedef Extremes<T> F;
  static void fold(typename F::State *to, const T *x, int64_t stride, int64_t columns, int64_t rows,
                   int64_t, bool skip) {
    if constexpr (is_compared<T>()) {
      if (Asks<O>::low) fold_extreme<T, false>(to, x, stride, columns, rows, skip);
      if (Asks<O>::high) fold_extreme<T, true>(to, x, stride, columns, rows, skip);
    } else {
      fold_one_by_one<F>(to, x, stride, columns, rows);
    }
  }
};
template <class O, class T, bool GREATEST> struct Side<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  static void fold(typename F::State *to, const T *x, int64_t stride, int64_t columns, int64_t rows,
                   int64_t index, bool skip) {
    if constexpr (is_compared<T>()) {
      fold_position<T, GREATEST>(to, x, stride, columns, rows, index, skip);
    } else {
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
          const T e = x[i * stride + j];
          if (!skip || !F::R::poisoned(e)) F::add(to[j], e, index + i);
        }
    }
  }
};
template <class O, class T> struct Side<O, Positions<T>> {
  static void fold(typename Positions<T>::State *to, const T *x, int64_t stride, int64_t columns,
                   int64_t rows, int64_t index, bool) {
    typename Position<T, false>::State low[COLUMNS];
    typename Position<T, true>::State high[COLUMNS];
    for (int64_t j = 0; j < columns; j++) low[j] = to[j].low, high[j] = to[j].high;
    Side<ArgMin<T>, Position<T, false>>::fold(low, x, stride, columns, rows, index, false);
    Side<ArgMax<T>, Position<T, true>>::fold(high, x, stride, columns, rows, index, false);
    for (int64_t j = 0; j < columns; j++) to[j].low = low[j], to[j].high = high[j];
  }
};

/* --- finished as they are ------------------------------------------------------------------------
 */

/* Elements without rivals; whether one is NaN. */
template <class T> GPR_FN bool alone(const T *x, int64_t n, T *to) {
  typedef typename Unsigned<sizeof(T)>::type Bits;
  const Bits infinity = (Bits)(Format<T>::infinity() << 1),
             nan = copy_bits<Bits>(Order<T>::poison());
  Bits any = 0;
  for (int64_t j = 0; j < n; j++) {
    const Bits own = copy_bits<Bits>(x[j]);
    const Bits spoiled = (Bits) - ((Bits)(own << 1) > infinity);
    any |= spoiled;
    to[j] = copy_bits<T>((Bits)((own & ~spoiled) | (nan & spoiled)));
  }
  return any != 0;
}
template <class R> GPR_FN bool alone(const complex<R> *x, int64_t n, complex<R> *to) {
  typedef typename Order<R>::Key Key;
  Key any = 0;
  for (int64_t j = 0; j < n; j++) {
    const Key nan = (Key) - !(x[j].re == x[j].re) | (Key) - !(x[j].im == x[j].im);
    any |= nan;
    to[j].re = unless(nan, x[j].re, quiet_nan<R>());
    to[j].im = unless(nan, x[j].im, quiet_nan<R>());
  }
  return any != 0;
}
/* Their places. */
template <class T> GPR_FN bool stand_alone(const T *x, int64_t n, int *empty, int64_t *to) {
  memset(to, 0, (size_t)n * sizeof *to);
  int any = 0;
  for (int64_t j = 0; empty && j < n; j++) any |= Rank<T, true>::poisoned(x[j]);
  if (any) *empty = 1;
  return true;
}
/* The best of each of some columns, NaN where there is one or, if it is left out, nothing else. */
template <class T, bool GREATEST>
GPR_APART bool bests_of(const T *x, int64_t stride, int64_t columns, int64_t rows, int *empty,
                        T *to) {
  if constexpr (Traits<T>::kind == KIND_BOOL) {
    if (rows <= FEW_RIVALS) {
      best_few<GREATEST>(&x->byte, stride, columns, rows, &to->byte);
      for (int64_t j = 0; j < columns; j++) to[j].byte = to[j].byte != 0;
      return true;
    }
  } else if (rows <= (is_half<T>() ? 1 : FEW_RIVALS)) {
    bool nothing;
    if constexpr (is_half<T>())
      nothing = alone<T>(x, columns, to);
    else if (Traits<T>::kind == KIND_FLOAT && empty)
      nothing = best_few<GREATEST, Traits<T>::kind == KIND_FLOAT>(x, stride, columns, rows, to);
    else
      nothing = best_few<GREATEST>(x, stride, columns, rows, to);
    if (empty && nothing) *empty = 1;
    return true;
  }
  BestColumns<T, GREATEST, false> b;
  if (b.rows_of(rows) < rows) return false;
  b.run(x, stride, columns, rows, empty);
  for (int64_t j = 0; j < columns; j++) to[j] = value_of<T>(b.best.value(j));
  if constexpr (Traits<T>::kind == KIND_BOOL)
    for (int64_t j = 0; j < columns; j++) to[j].byte = to[j].byte != 0;
  if (b.best.spoiled)
    for (int64_t j = 0; j < columns; j++) to[j] = b.best.is_spoiled(j) ? Order<T>::poison() : to[j];
  for (int64_t j = 0; b.best.unmet && j < columns; j++)
    if (b.best.is_empty(j)) to[j] = Order<T>::poison(), *empty = 1;
  return true;
}
/* Of an operator of both; NaN comes of NaN. */
template <class O, class T>
GPR_FN void finish_both(const T *low, const T *high, int64_t columns, typename O::Result *to) {
  for (int64_t j = 0; j < columns; j++)
    if constexpr (Results<O>::value == 1)
      to[j] = difference(high[j], low[j]);
    else
      to[2 * j] = low[j], to[2 * j + 1] = high[j];
}
template <class O, class T> struct Direct<O, Extremes<T>> {
  typedef Extremes<T> F;
  static bool run(const T *x, int64_t stride, int64_t columns, int64_t rows, int *empty,
                  const typename O::Result *, typename O::Result *to) {
    if constexpr (!is_compared<T>()) {
      return false;
    } else if constexpr (Asks<O>::low != Asks<O>::high) {
      return bests_of<T, Asks<O>::high>(x, stride, columns, rows, empty, to);
    } else {
      T low[COLUMNS], high[COLUMNS];
      if (!bests_of<T, false>(x, stride, columns, rows, empty, low)) return false;
      if (!bests_of<T, true>(x, stride, columns, rows, empty, high)) return false;
      finish_both<O>(low, high, columns, to);
      return true;
    }
  }
};
/* Of contiguous elements. */
template <bool GREATEST, bool SKIP, class T>
GPR_FN T best_of_line(const T *x, int64_t n, int *empty) {
  const auto peak = peak_of<GREATEST, false, SKIP>(natives(x), n);
  if (SKIP && peak.spoiled) *empty = 1;
  if (peak.spoiled) return Order<T>::poison();
  if constexpr (Traits<T>::kind == KIND_FLOAT)
    if (peak.value == 0) return Order<T>::value(zero_of<GREATEST>(x, n));
  return copy_bits<T>(peak.value);
}
template <class O, class T> struct Line<O, Extremes<T>> {
  static constexpr bool real = Traits<T>::kind == KIND_FLOAT;
  enum {
    possible = is_native<T>() && Traits<T>::kind != KIND_BOOL && Asks<O>::low != Asks<O>::high
  };
  static void run(const T *x, int64_t n, int *empty, typename O::Result *to) {
    if constexpr (possible)
      *to = real && empty ? best_of_line<Asks<O>::high, real>(x, n, empty)
                          : best_of_line<Asks<O>::high, false>(x, n, empty);
  }
};
template <class O, class T, bool GREATEST> struct Line<O, Position<T, GREATEST>> {
  static constexpr bool real = Traits<T>::kind == KIND_FLOAT;
  enum { possible = is_native<T>() && sizeof(T) > 1 };
  static void run(const T *x, int64_t n, int *empty, int64_t *to) {
    if constexpr (possible) {
      if (real && empty) {
        const auto peak = peak_of<GREATEST, true, real>(natives(x), n);
        *empty |= peak.spoiled;
        *to = peak.place;
      } else {
        *to = peak_of<GREATEST, true>(natives(x), n).place;
      }
    }
  }
};
template <class O, class T, bool GREATEST> struct Direct<O, Position<T, GREATEST>> {
  static bool run(const T *x, int64_t stride, int64_t columns, int64_t rows, int *empty,
                  const int64_t *, int64_t *to) {
    if constexpr (!is_compared<T>()) {
      return false;
    } else if (rows == 1) {
      return stand_alone(x, columns, empty, to);
    } else {
      BestColumns<T, GREATEST, true> b;
      if (b.rows_of(rows) < rows) return false;
      b.run(x, stride, columns, rows, empty);
      for (int64_t j = 0; j < columns; j++) to[j] = b.best.place(j);
      for (int64_t j = 0; b.best.spoiled && j < columns; j++)
        if (b.best.row_of_nan(j) >= 0) to[j] = b.best.row_of_nan(j);
      for (int64_t j = 0; b.best.unmet && j < columns; j++)
        if (b.best.is_empty(j)) *empty = 1;
      return true;
    }
  }
};

GPR_CLOSE
#endif
