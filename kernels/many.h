/* Many outputs at a time: rows.h's `many` and `fold_many`, for the folds that have them. */
#ifndef GPR_MANY_H
#define GPR_MANY_H

#include "folders.h"

GPR_OPEN

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
    fold(s, data, along, n, 0);
    O::finish(s, n, with, result);
  }
};

template <class O, class F = typename O::Fold> struct Many {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};

GPR_CLOSE
#endif
