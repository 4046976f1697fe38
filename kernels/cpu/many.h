/* Many outputs at a time: rows.h's `many` and `fold_many`, for the folds that have them. */
#ifndef GPR_MANY_H
#define GPR_MANY_H

#include "folders.h"

GPR_OPEN

/* Operators that differ in what they finish alone share what is compiled for their folds. */
template <class O, class F = typename O::Fold> struct FoldsAs { typedef O type; };
template <class O, class T> struct FoldsAs<O, ExactFold<T>> { typedef Sum<T> type; };
template <class O, class T> struct FoldsAs<O, MomentsFold<T>> { typedef Var<T> type; };
template <class O, class T> struct FoldsAs<O, IntegerMoments<T>> { typedef Var<T> type; };
template <class T, class F> struct FoldsAs<PeakToPeak<T>, F> { typedef MinMax<T> type; };
template <class T, class F> struct FoldsAs<LogicalXor<T>, F> { typedef CountNonzero<T> type; };

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
    finish_from<O>(s, n, with, result);
  }
};

/* Finishes what an engine has rounded, each where it lies: value_of(it) is the operator's Value. */
template <class O, class R, class ValueOf>
static void finish_rounded(R *result, const char *data, int64_t across, int64_t along,
                           int64_t outputs, int64_t n, const typename FinishedWith<O>::type *with,
                           const ValueOf &value_of) {
  static_assert(Same<R, typename O::Result>::value, "");
  for (int64_t o = 0; o < outputs; o++) {
    auto value = value_of(result[o]);
    O::finish(value, n, with, result + o);
    if (!value.certified) Alone<O>::run(data + o * across, along, n, with, result + o);
  }
}

template <class O, class F = typename O::Fold> struct Many {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};

GPR_CLOSE
#endif
