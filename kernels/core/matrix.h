/* 2 × 2 matrices: an element of four scalars, and a product whose order shows. */
#pragma once

#include "portable.h"

GPR_OPEN

/* Row by row, as NumPy's C order has it: (a b / c d). */
template <class T> struct matrix { T a, b, c, d; };

/* One entry of a product: a row times a column, each product rounded by itself. */
GPR_FN double row_times_column(double a, double b, double c, double d) {
  return GPR_PRODUCT(a, b) + GPR_PRODUCT(c, d);
}
/* Modulo 2^64, as NumPy's integers wrap. */
GPR_FN int64_t row_times_column(int64_t a, int64_t b, int64_t c, int64_t d) {
  return (int64_t)((uint64_t)a * (uint64_t)b + (uint64_t)c * (uint64_t)d);
}

template <class M> struct MatrixTimes;
template <class T> struct MatrixTimes<matrix<T>> {
  typedef matrix<T> M;
  static GPR_METHOD M identity() { return {1, 0, 0, 1}; }
  static GPR_METHOD M combine(const M &left, const M &right) {
    return {row_times_column(left.a, right.a, left.b, right.c),
            row_times_column(left.a, right.b, left.b, right.d),
            row_times_column(left.c, right.a, left.d, right.c),
            row_times_column(left.c, right.b, left.d, right.d)};
  }
};

GPR_CLOSE
