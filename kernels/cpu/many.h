/* Many outputs at a time: rows.h's `many` and `fold_many`, for the folds that have them. */
#ifndef GPR_MANY_H
#define GPR_MANY_H

#include "folders.h"

GPR_OPEN

template <bool, class A, class> struct Either { typedef A type; };
template <class A, class B> struct Either<false, A, B> { typedef B type; };
/* Operators that differ in what they finish alone share what is compiled for their folds. */
template <class O> struct FoldsAs { typedef O type; };
template <class T> struct FoldsAs<Std<T>> { typedef Var<T> type; };
template <class T> struct FoldsAs<PeakToPeak<T>> { typedef MinMax<T> type; };
template <class T> struct FoldsAs<LogicalXor<T>> { typedef CountNonzero<T> type; };
template <class T> struct FoldsAs<Mean<T>> {
  enum { alike = category<T>() == INEXACT };
  typedef typename Either<alike, Sum<T>, Mean<T>>::type type;
};

/* What several outputs at a time leave over: one by itself. */
template <class O> struct Alone {
  typedef typename O::Fold F;
  typedef typename F::Element T;
  typedef typename F::State State;
  static void fold(State &s, const char *data, int64_t along, int64_t n, int64_t index) {
    T x[GPR_SHORT];
    memcpy(x, data, sizeof *x); /* n > 0, which the compiler cannot know */
    walk(data, along, n, [&](int64_t i, const char *at) { memcpy(x + i, at, sizeof *x); });
    Folder<O>::fold(s, x, n, index);
  }
  static void run(const char *data, int64_t along, int64_t n,
                  const typename FinishedWith<O>::type *with, typename O::Result *result) {
    State s;
    F::open(s);
    Alone<typename FoldsAs<O>::type>::fold(s, data, along, n, 0);
    O::finish(s, n, with, result);
  }
};

template <class O, class F = typename O::Fold> struct Many {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};

GPR_CLOSE
#endif
