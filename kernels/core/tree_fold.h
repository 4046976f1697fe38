/* Folds along the one tree. */
#pragma once

#include "fold.h"
#include "matrix.h"
#include "tree.h"
#include "types.h"

GPR_OPEN

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
};

template <class F> struct TreeValue {
  typename F::Wide root;
  template <class T> GPR_METHOD T result(const T *initial) const {
    const typename F::Wide all = initial ? F::Combine::combine(wide(*initial), root) : root;
    return narrow(plain_nan(all), T());
  }
};
template <class T, template <class> class Op> struct Shown<TreeFold<T, Op>> {
  typedef TreeFold<T, Op> F;
  static GPR_METHOD TreeValue<F> of(const typename F::State &s) {
    return {root<typename F::Combine>(s, F::Combine::identity())};
  }
};

GPR_CLOSE
