/* The greatest of columns of complex numbers. */
#pragma once

#include "greatest.h"

GPR_OPEN

/* By the real part, then by the imaginary one, where the two zeros tie, and its first row. A sum
 * tells NaN, which is never better. */
template <class R> struct PairBests : Flipped<R> {
  typedef typename Flipped<R>::Bits Bits;
  typedef typename Signed<sizeof(R)>::type Row;
  typedef complex<R> C;
  using Flipped<R>::WIDE;
  enum { TOGETHER = 4 };
  R re[COLUMNS], im[COLUMNS], sum[COLUMNS];
  Row row[COLUMNS], special[COLUMNS]; /* as Bests' */
  bool odd;

  static GPR_METHOD Row is_nan(C x) { return (Row) - !(x.re == x.re) | (Row) - !(x.im == x.im); }
  GPR_METHOD C turned(C x) const { return {this->turn(x.re), this->turn(x.im)}; }
  template <class Is> static int64_t first_row(const Panel<C> &x, int64_t j, const Is &is) {
    int64_t i = 0;
    while (i < x.n && !is(x[i][j])) i++;
    return i;
  }
  GPR_APART void run(const Panel<C> &x, int64_t columns, Bits flip, bool skip) {
    const int64_t rows = x.n;
    this->flip = flip;
    odd = false;
    for (int64_t j = 0; j < columns; j++) re[j] = im[j] = this->worst(), sum[j] = 0;
    memset(row, -1, (size_t)columns * sizeof *row); /* nothing was better than the worst of all */
    memset(special, -1, (size_t)columns * sizeof *special);
    int64_t i = 0;
    for (; i + TOGETHER <= rows; i += TOGETHER) add<TOGETHER>(x, columns, (Row)i);
    for (; i < rows; i++) add<1>(x, columns, (Row)i);
    for (int64_t j = 0; j < columns; j++) {
      if (!skip && sum[j] != sum[j]) {
        const int64_t nan = first_row(x, j, [](C e) { return is_nan(e); });
        if (nan < rows) special[j] = (Row)nan, odd = true;
      }
      if (row[j] >= 0 || special[j] >= 0) continue;
      row[j] = (Row)first_row(x, j, [](C e) { return !is_nan(e); });
      if (row[j] == rows) special[j] = 0, odd = true;
    }
  }
  template <int ROWS> void add(const Panel<C> &x, int64_t columns, Row i) {
    const C *at[ROWS];
    for (int k = 0; k < ROWS; k++) at[k] = x[i + k];
    R *__restrict re_at = re, *__restrict im_at = im, *__restrict sum_at = sum;
    Row *__restrict row_at = row;
    const Flipped<R> own = *this;
    const auto one = [&](int64_t j) {
      R p = re_at[j], q = im_at[j], s = sum_at[j];
      Row r = row_at[j];
      for (int k = 0; k < ROWS; k++) {
        const R a = own.turn(at[k][j].re), b = own.turn(at[k][j].im);
        const Row above = (Row) - (a > p) & (Row) - (b == b);
        const Row better = above | ((Row) - (a == p) & (Row) - (b > q));
        p = better ? a : p;
        q = better ? b : q;
        r = better ? (Row)(i + k) : r;
        s += a + b;
      }
      re_at[j] = p, im_at[j] = q, sum_at[j] = s, row_at[j] = r;
    };
    for (int64_t j = 0;; j = least(j + WIDE, columns - WIDE)) {
      GPR_PRAGMA(GCC ivdep)
      for (int64_t l = 0; l < WIDE; l++) one(j + l);
      if (j == columns - WIDE) break;
    }
  }
  /* Zeros have their order among what is else the same. */
  void order_zeros(const Panel<C> &x, int64_t columns) {
    const auto rank = [](R a, R b) { return 2 * !__builtin_signbit(a) + !__builtin_signbit(b); };
    for (int64_t j = 0; j < columns; j++)
      for (int64_t i = 0; (re[j] == 0 || im[j] == 0) && i < x.n; i++) {
        const C e = turned(x[i][j]);
        if (e.re == re[j] && e.im == im[j] && rank(e.re, e.im) > rank(re[j], im[j]))
          re[j] = e.re, im[j] = e.im;
      }
  }
  C value(int64_t j) const { return turned({re[j], im[j]}); }
  bool is_special(int64_t j) const { return special[j] >= 0; }
  int64_t place(int64_t j) const { return is_special(j) ? special[j] : row[j]; }
};
template <class R, bool PLACE> struct Bests<complex<R>, PLACE> : PairBests<R> {
  void run(const Panel<complex<R>> &x, int64_t columns, typename PairBests<R>::Bits flip, bool skip,
           complex<R> * = nullptr) {
    PairBests<R>::run(x, columns, flip, skip);
    if (!PLACE) this->order_zeros(x, columns);
  }
};

GPR_CLOSE
