/* Extremes of complex numbers and their places, in lines and side by side. */
#ifndef GPR_COMPLEX_BESTS_H
#define GPR_COMPLEX_BESTS_H

#include "column_bests.h"
#include "complex_peak.h"

GPR_OPEN

/* The best of each column by the real part, then by the imaginary one, where the two zeros tie, and
 * its first row. A sum tells NaN; then all is looked at again. What leaves out NaN sees that it is
 * never better. */
template <class R, bool GREATEST> struct BestPairs {
  typedef typename Signed<sizeof(R)>::type Row;
  enum { TOGETHER = 4, WIDE = GPR_VECTOR / sizeof(R) };
  R re[COLUMNS], im[COLUMNS], sum[COLUMNS];
  Row row[COLUMNS]; /* -1: nothing was better than the worst of all */
  Row nan[COLUMNS]; /* the first row of NaN, or -1, if one is spoiled */
  bool spoiled;

  static GPR_METHOD Row is_nan(complex<R> x) {
    return (Row) - !(x.re == x.re) | (Row) - !(x.im == x.im);
  }
  GPR_APART void run(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows,
                     bool skip) {
    const R worst = Peak<R, GREATEST, false, false>::worst();
    for (int64_t j = 0; j < columns; j++) {
      re[j] = skip ? worst : x[j].re;
      im[j] = skip ? worst : x[j].im;
      sum[j] = x[j].re + x[j].im;
    }
    memset(row, skip ? -1 : 0, (size_t)columns * sizeof *row);
    int64_t i = skip ? 0 : 1;
    for (; i + TOGETHER <= rows; i += TOGETHER)
      add<TOGETHER>(x + i * stride, stride, columns, (Row)i);
    for (; i < rows; i++) add<1>(x + i * stride, stride, columns, (Row)i);
    spoiled = false;
    for (int64_t j = 0; !skip && j < columns; j++) spoiled |= sum[j] != sum[j];
    if (spoiled) look_for(x, stride, columns, rows, nan, [](complex<R> e) { return is_nan(e); });
    int unmet = 0;
    for (int64_t j = 0; skip && j < columns; j++) unmet |= row[j] < 0;
    if (!unmet) return;
    look_for(x, stride, columns, rows, nan, [](complex<R> e) { return (Row)~is_nan(e); });
    for (int64_t j = 0; j < columns; j++) row[j] = row[j] < 0 ? nan[j] : row[j];
  }
  template <int ROWS>
  void add(const complex<R> *__restrict x, int64_t stride, int64_t columns, Row i) {
    R *__restrict re_at = re, *__restrict im_at = im, *__restrict sum_at = sum;
    Row *__restrict row_at = row;
    const auto one = [&](int64_t j) {
      R p = re_at[j], q = im_at[j], s = sum_at[j];
      Row r = row_at[j];
      for (int k = 0; k < ROWS; k++) {
        const R a = x[k * stride + j].re, b = x[k * stride + j].im;
        const Row ahead = GREATEST ? (Row) - (a > p) : (Row) - (a < p);
        const Row above = GREATEST ? (Row) - (b > q) : (Row) - (b < q);
        const Row better = (ahead & (Row) - (b == b)) | ((Row) - (a == p) & above);
        p = better ? a : p;
        q = better ? b : q;
        r = better ? (Row)(i + k) : r;
        s += a + b;
      }
      re_at[j] = p, im_at[j] = q, sum_at[j] = s, row_at[j] = r;
    };
    const auto vector = [&](int64_t j) {
      GPR_PRAGMA(GCC ivdep)
      for (int64_t l = 0; l < WIDE; l++) one(j + l);
    };
    int64_t j = 0;
    for (; j + WIDE <= columns; j += WIDE) vector(j);
    if (j < columns && columns >= WIDE)
      vector(columns - WIDE); /* some for a second time, which changes nothing */
    else
      for (; j < columns; j++) one(j);
  }
  bool is_spoiled(int64_t j) const { return spoiled && nan[j] >= 0; }
  /* Whether the two zeros have an order: a best part is zero, and some part -0.0. */
  bool has_order(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows) const {
    int zero = 0, any = 0;
    for (int64_t j = 0; j < columns; j++) zero |= (re[j] == 0) | (im[j] == 0);
    for (int64_t i = 0; zero && i < rows; i++)
      for (int64_t j = 0; j < 2 * columns; j++)
        any |= copy_bits<Row>((&x[i * stride].re)[j]) == copy_bits<Row>((R)-0.0);
    return any;
  }
};

template <class R> struct FoldSkips<Extremes<complex<R>>> {
  enum { value = 1 };
  static bool empty(const typename Extremes<complex<R>>::State &s) {
    const auto least_key = Limits<typename Extremes<complex<R>>::Key>::least;
    return s.high.re == least_key && s.high.im == least_key && s.low.re == ~least_key;
  }
};
template <class O, class R> struct Side<O, Extremes<complex<R>>> {
  typedef Extremes<complex<R>> F;
  template <bool GREATEST>
  static GPR_APART void fold_one(typename F::State *to, const complex<R> *x, int64_t stride,
                                 int64_t columns, int64_t rows, bool skip) {
    BestPairs<R, GREATEST> b;
    b.run(x, stride, columns, rows, skip);
    const bool order = b.has_order(x, stride, columns, rows);
    for (int64_t j = 0; j < columns; j++) {
      to[j].nan |= b.is_spoiled(j);
      if (b.row[j] < 0 || b.is_spoiled(j)) continue;
      if (order && (b.re[j] == 0 || b.im[j] == 0))
        for (int64_t i = 0; i < rows; i++) {
          const complex<R> e = x[i * stride + j];
          if (e.re == b.re[j] && e.im == b.im[j]) put_best<GREATEST>(to[j], e);
        }
      else
        put_best<GREATEST, R>(to[j], {b.re[j], b.im[j]});
    }
  }
  static void fold(typename F::State *to, const complex<R> *x, int64_t stride, int64_t columns,
                   int64_t rows, int64_t, bool skip) {
    if (Asks<O>::low) fold_one<false>(to, x, stride, columns, rows, skip);
    if (Asks<O>::high) fold_one<true>(to, x, stride, columns, rows, skip);
  }
};
template <class O, class R, bool GREATEST> struct Side<O, Position<complex<R>, GREATEST>> {
  typedef Position<complex<R>, GREATEST> F;
  static GPR_APART void fold(typename F::State *to, const complex<R> *x, int64_t stride,
                             int64_t columns, int64_t rows, int64_t index, bool skip) {
    BestPairs<R, GREATEST> b;
    b.run(x, stride, columns, rows, skip);
    for (int64_t j = 0; j < columns; j++) {
      typename F::State one;
      one.spoiled = b.is_spoiled(j);
      const int64_t row = one.spoiled ? b.nan[j] : b.row[j];
      if (row < 0) continue;
      one.index = index + row;
      one.best = F::R::of({b.re[j], b.im[j]});
      F::merge(to[j], one);
    }
  }
};

/* Without an order of zeros. */
template <class O, class R> struct Direct<O, Extremes<complex<R>>> {
  template <bool GREATEST>
  static GPR_APART bool run_one(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows,
                                int *empty, complex<R> *to) {
    if (rows == 1) {
      if (alone(x, columns, to) && empty) *empty = 1;
      return true;
    }
    BestPairs<R, GREATEST> b;
    b.run(x, stride, columns, rows, empty);
    if (b.has_order(x, stride, columns, rows)) return false;
    for (int64_t j = 0; j < columns; j++) to[j] = {b.re[j], b.im[j]};
    for (int64_t j = 0; (b.spoiled || empty) && j < columns; j++) {
      if (b.row[j] < 0) *empty = 1;
      if (b.row[j] < 0 || b.is_spoiled(j)) to[j] = {quiet_nan<R>(), quiet_nan<R>()};
    }
    return true;
  }
  static bool run(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows, int *empty,
                  const typename O::Result *, typename O::Result *to) {
    if constexpr (Asks<O>::low != Asks<O>::high) {
      return run_one<Asks<O>::high>(x, stride, columns, rows, empty, to);
    } else {
      complex<R> low[COLUMNS], high[COLUMNS];
      if (!run_one<false>(x, stride, columns, rows, empty, low)) return false;
      if (!run_one<true>(x, stride, columns, rows, empty, high)) return false;
      finish_both<O>(low, high, columns, to);
      return true;
    }
  }
};
template <class O, class R, bool GREATEST> struct Direct<O, Position<complex<R>, GREATEST>> {
  static bool run(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows, int *empty,
                  const int64_t *, int64_t *to) {
    if (rows == 1) return stand_alone(x, columns, empty, to);
    BestPairs<R, GREATEST> b;
    b.run(x, stride, columns, rows, empty);
    for (int64_t j = 0; j < columns; j++) {
      to[j] = b.is_spoiled(j) ? b.nan[j] : b.row[j];
      if (to[j] < 0) *empty = 1;
    }
    return true;
  }
};
template <class O, class F> struct ComplexLine {
  enum { possible = 1 };
  static void run(const typename F::Element *x, int64_t n, int *empty, typename O::Result *to) {
    typename F::State s;
    F::open(s);
    if (empty)
      Folder<O>::template fold<true>(s, x, n, 0);
    else
      Folder<O>::fold(s, x, n, 0);
    const bool none = empty && FoldSkips<F>::empty(s);
    if (none) *empty = 1;
    O::finish(s, none ? 0 : n, nullptr, to);
  }
};
template <class O, class R>
struct Line<O, Extremes<complex<R>>> : ComplexLine<O, Extremes<complex<R>>> {};
template <class O, class R, bool GREATEST>
struct Line<O, Position<complex<R>, GREATEST>> : ComplexLine<O, Position<complex<R>, GREATEST>> {};

GPR_CLOSE
#endif
