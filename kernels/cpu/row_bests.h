/* Extremes of contiguous elements that are taken as columns: what leaves out NaN, and complex
 * numbers. */
#ifndef GPR_ROW_BESTS_H
#define GPR_ROW_BESTS_H

#include "column_bests.h"

GPR_OPEN

/* A run of contiguous elements as columns. */
static constexpr int64_t ABREAST_COLUMNS = 64, ABREAST_ROWS = 512;
static constexpr int64_t FEW_COLUMNS = 16, FEW_ELEMENTS = 1024; /* columns have to be merged, too */
template <class O, class T, class Take>
GPR_FN void abreast(const T *x, int64_t n, const Take &take) {
  for (int64_t i = 0; i < n;) {
    const int64_t columns = least(n < FEW_ELEMENTS ? FEW_COLUMNS : ABREAST_COLUMNS, n - i);
    const int64_t rows = least(ABREAST_ROWS, (n - i) / columns);
    take(x + i, columns, rows, i);
    i += rows * columns;
  }
}
/* Contiguous ones as columns, of which a row's places follow each other. */
template <class O, class F>
GPR_FN void fold_abreast(typename F::State &s, const typename F::Element *x, int64_t n,
                         int64_t index, bool skip) {
  abreast<O>(x, n,
             [&](const typename F::Element *at, int64_t columns, int64_t rows, int64_t first) {
               typename F::State part[ABREAST_COLUMNS];
               for (int64_t j = 0; j < columns; j++) F::open(part[j]);
               Side<O, F>::fold(part, at, columns, columns, rows, 0, skip);
               for (int64_t j = 0; j < columns; j++) {
                 if constexpr (F::ordered)
                   if (part[j].index >= 0)
                     part[j].index = index + first + part[j].index * columns + j;
                 F::merge(s, part[j]);
               }
             });
}
/* What leaves out NaN: mostly there is none. */
template <class O, class F> struct Skipping {
  static void fold(typename F::State &s, const typename F::Element *x, int64_t n, int64_t index) {
    typename F::State all;
    F::open(all);
    Folder<O>::fold(all, x, n, index);
    if (is_spoiled(all))
      fold_abreast<O, F>(s, x, n, index, true);
    else
      F::merge(s, all);
  }
  template <class S> static auto is_spoiled(const S &s) -> decltype(s.spoiled) { return s.spoiled; }
  template <class S> static auto is_spoiled(const S &s) -> decltype(s.low, bool()) {
    return F::poisoned(s);
  }
};

/* --- complex numbers ---------------------------------------------------------------------------
 */

/* The best of each column by the real part, then by the imaginary one, where the two zeros tie; its
 * first row, and the first of NaN. */
template <class R, bool GREATEST> struct BestPairs {
  typedef typename Signed<sizeof(R)>::type Row;
  R re[COLUMNS], im[COLUMNS];
  Row row[COLUMNS], nan[COLUMNS]; /* -1: none */
  bool minus_zero;                /* whether any part is -0.0: then zeros have an order */

  GPR_APART void run(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows) {
    for (int64_t j = 0; j < columns; j++) re[j] = im[j] = 0;
    for (int64_t j = 0; j < columns; j++) row[j] = nan[j] = -1;
    const Row sign = (Row)((typename Unsigned<sizeof(R)>::type)1 << (8 * sizeof(R) - 1));
    Row minus = 0;
    for (int64_t i = 0; i < rows; i++, x += stride)
      for (int64_t j = 0; j < columns; j++) {
        const R a = x[j].re, b = x[j].im;
        minus |= (Row) - (copy_bits<Row>(a) == sign) | (Row) - (copy_bits<Row>(b) == sign);
        const Row spoiled = (Row) - (a != a) | (Row) - (b != b);
        const Row ahead = GREATEST ? (Row) - (a > re[j]) : (Row) - (a < re[j]);
        const Row above = GREATEST ? (Row) - (b > im[j]) : (Row) - (b < im[j]);
        const Row first = row[j] >> (8 * sizeof(Row) - 1);
        const Row better = ~spoiled & (first | ahead | ((Row) - (a == re[j]) & above));
        re[j] = better ? a : re[j];
        im[j] = better ? b : im[j];
        row[j] = better ? (Row)i : row[j];
        nan[j] = spoiled & (Row)(nan[j] >> (8 * sizeof(Row) - 1)) ? (Row)i : nan[j];
      }
    minus_zero = minus != 0;
  }
};

template <class O, class R> struct Side<O, Extremes<complex<R>>> {
  typedef Extremes<complex<R>> F;
  template <bool GREATEST>
  static GPR_APART void fold_one(typename F::State *to, const complex<R> *x, int64_t stride,
                                 int64_t columns, int64_t rows) {
    BestPairs<R, GREATEST> b;
    b.run(x, stride, columns, rows);
    for (int64_t j = 0; j < columns; j++) {
      to[j].nan |= b.nan[j] >= 0;
      if (b.row[j] < 0) continue;
      const auto key = F::key({b.re[j], b.im[j]});
      if (b.minus_zero && (b.re[j] == 0 || b.im[j] == 0))
        for (int64_t i = 0; i < rows; i++) {
          const complex<R> e = x[i * stride + j];
          if (e.re == b.re[j] && e.im == b.im[j]) F::add(to[j], e, i);
        }
      else if (GREATEST ? F::less(to[j].high, key) : F::less(key, to[j].low))
        (GREATEST ? to[j].high : to[j].low) = key;
    }
  }
  static void fold(typename F::State *to, const complex<R> *x, int64_t stride, int64_t columns,
                   int64_t rows, int64_t, bool) {
    if (Asks<O>::low) fold_one<false>(to, x, stride, columns, rows);
    if (Asks<O>::high) fold_one<true>(to, x, stride, columns, rows);
  }
};
template <class O, class R, bool GREATEST> struct Side<O, Position<complex<R>, GREATEST>> {
  typedef Position<complex<R>, GREATEST> F;
  static GPR_APART void fold(typename F::State *to, const complex<R> *x, int64_t stride,
                             int64_t columns, int64_t rows, int64_t index, bool skip) {
    BestPairs<R, GREATEST> b;
    b.run(x, stride, columns, rows);
    for (int64_t j = 0; j < columns; j++) {
      typename F::State one;
      one.spoiled = !skip && b.nan[j] >= 0;
      const int64_t row = one.spoiled ? b.nan[j] : b.row[j];
      if (row < 0) continue;
      one.index = index + row;
      one.best = F::R::of({b.re[j], b.im[j]});
      F::merge(to[j], one);
    }
  }
};

/* One of the two, without an order of zeros. */
template <class O, class R> struct Direct<O, Extremes<complex<R>>> {
  static bool run(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows, bool skip,
                  const typename O::Result *, typename O::Result *to) {
    if constexpr (Asks<O>::low == Asks<O>::high) {
      return false;
    } else {
      BestPairs<R, Asks<O>::high> b;
      if (skip) return false;
      b.run(x, stride, columns, rows);
      if (b.minus_zero) return false;
      for (int64_t j = 0; j < columns; j++) {
        const bool spoiled = b.nan[j] >= 0;
        to[j].re = spoiled ? quiet_nan<R>() : b.re[j];
        to[j].im = spoiled ? quiet_nan<R>() : b.im[j];
      }
      return true;
    }
  }
};
template <class O, class R, bool GREATEST> struct Direct<O, Position<complex<R>, GREATEST>> {
  static bool run(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows, bool skip,
                  const int64_t *, int64_t *to) {
    BestPairs<R, GREATEST> b;
    if (skip) return false;
    b.run(x, stride, columns, rows);
    for (int64_t j = 0; j < columns; j++) to[j] = b.nan[j] >= 0 ? b.nan[j] : b.row[j];
    return true;
  }
};

template <class O, class R> struct Folder<O, Extremes<complex<R>>> {
  typedef Extremes<complex<R>> F;
  static void fold(typename F::State &s, const complex<R> *x, int64_t n, int64_t index) {
    fold_abreast<O, F>(s, x, n, index, false);
  }
};
template <class O, class R, bool GREATEST> struct Folder<O, Position<complex<R>, GREATEST>> {
  typedef Position<complex<R>, GREATEST> F;
  static void fold(typename F::State &s, const complex<R> *x, int64_t n, int64_t index) {
    fold_abreast<O, F>(s, x, n, index, false);
  }
};

GPR_CLOSE
#endif
