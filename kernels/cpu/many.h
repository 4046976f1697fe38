/* Many outputs at a time: rows.h's `many` and `fold_many` for folds whose states are small. Columns
 * are added up side by side, whose lanes never meet; short rows are turned into columns first. */
#ifndef GPR_MANY_H
#define GPR_MANY_H

#include "best.h"
#include "few.h"
#include "folders.h"

GPR_OPEN

template <bool, class A, class> struct Either { typedef A type; };
template <class A, class B> struct Either<false, A, B> { typedef B type; };
/* Operators that differ in what they finish alone share what is compiled for their folds. */
template <class O, class F = typename O::Fold> struct FoldsAs { typedef O type; };
template <class O, class T> struct FoldsAs<O, ExactFold<T>> { typedef Sum<T> type; };
template <class O, class T> struct FoldsAs<O, MomentsFold<T>> { typedef Var<T> type; };
template <class O, class T> struct FoldsAs<O, IntegerMoments<T>> { typedef Var<T> type; };
template <class T, class F> struct FoldsAs<PeakToPeak<T>, F> { typedef MinMax<T> type; };
template <class T, class F> struct FoldsAs<LogicalXor<T>, F> { typedef CountNonzero<T> type; };

/* The Value of a state, which may have a quicker way to the same. */
template <class F> struct QuicklyShown : Shown<F> {};

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
  static void run(const char *data, int64_t along, int64_t n, int64_t count,
                  const typename FinishedWith<O>::type *with, typename O::Result *result) {
    State s;
    F::open(s);
    Alone<typename FoldsAs<O>::type>::fold(s, data, along, n, 0);
    finish_from<O>(s, count, with, result);
  }
};

/* --- columns -----------------------------------------------------------------------------------
 */

/* What a fold keeps of each column: states as they are. */
template <class F> struct Columns {
  typedef typename F::Element T;
  typename F::State state[COLUMNS];
  void open(int64_t columns) {
    for (int64_t j = 0; j < columns; j++) F::open(state[j]);
  }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t index) {
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) F::add(state[j], x[i * stride + j], index + i);
  }
  const typename F::State &get(int64_t j) const { return state[j]; }
};

/* Whether a fold can leave out NaN by itself. */
template <class F> struct FoldSkips {
  enum { value = 0 };
};
/* Into the states of at most COLUMNS columns, whose rows lie side by side. */
template <class O, class F> struct Side {
  typedef typename F::Element T;
  static GPR_APART void fold(typename F::State *to, const T *x, int64_t stride, int64_t columns,
                             int64_t rows, int64_t index, bool) {
    Columns<F> c;
    c.open(columns);
    c.add(x, stride, columns, rows, index);
    for (int64_t j = 0; j < columns; j++) F::merge(to[j], c.get(j));
  }
};
/* A few columns whose rows lie one after the other: more of them, each of some of the rows. */
template <class O, class F> struct Ribbon {
  typedef typename F::Element T;
  typedef typename F::State State;
  enum { ABREAST = 4 * GPR_VECTOR / sizeof(T), ROWS = 512, FEW_ROWS = 16 };
  static bool is(const gpr_tile *t) {
    return t->along == t->outputs * (int64_t)sizeof(T) && 4 * t->outputs < ABREAST &&
           t->n >= 4 * FEW_ROWS;
  }
  template <class S>
  static auto renumber(S &s, int64_t start, int64_t step) -> decltype(s.index, void()) {
    if (s.index >= 0) s.index = start + s.index * step;
  }
  template <class S>
  static auto renumber(S &s, int64_t start, int64_t step) -> decltype(s.high.index, void()) {
    renumber(s.low, start, step);
    renumber(s.high, start, step);
  }
  static GPR_APART void fold(State *to, const T *x, int64_t columns, int64_t rows, int64_t index,
                             bool skip) {
    State part[ABREAST];
    for (int64_t i = 0; i < rows;) {
      const int64_t fit = least(ABREAST / columns, (rows - i) / FEW_ROWS);
      const int64_t together = fit ? fit : least(ABREAST / columns, rows - i);
      const int64_t wide = together * columns, m = least((int64_t)ROWS, (rows - i) / together);
      for (int64_t j = 0; j < wide; j++) F::open(part[j]);
      Side<O, F>::fold(part, x + i * columns, wide, wide, m, 0, skip);
      for (int64_t k = 0, j = 0; k < together; k++)
        for (int64_t o = 0; o < columns; o++, j++) {
          if constexpr (F::ordered) renumber(part[j], index + i + k, together);
          F::merge(to[o], part[j]);
        }
      i += m * together;
    }
  }
};
/* The results of at most COLUMNS columns that have all their rows here; false where this is no way
 * to them, and then nothing is said. empty: NULL, or NaN does not count, and it becomes 1 where an
 * output has nothing else. */
template <class O, class F = typename O::Fold> struct Direct {
  typedef typename F::Element T;
  typedef typename FinishedWith<O>::type With;
  static GPR_APART bool run(const T *x, int64_t stride, int64_t columns, int64_t rows, int *empty,
                            const With *with, typename O::Result *to) {
    Columns<F> c;
    const int64_t alike = Same<With, gpr_spread>::value && rows == 1 ? 1 : columns;
    if (empty) return false;
    c.open(alike);
    c.add(x, stride, alike, rows, 0);
    for (int64_t j = 0; j < alike; j++) {
      const typename F::State state = c.get(j);
      auto &&value = QuicklyShown<F>::of(state);
      O::finish(value, rows, Same<With, gpr_spread>::value ? with : nullptr,
                to + j * Results<O>::value);
    }
    for (int64_t j = alike; j < columns; j++) to[j] = to[0]; /* variances of one integer each */
    return true;
  }
};

/* The result of one output from contiguous elements, as Direct's. */
template <class O, class F = typename O::Fold> struct Line {
  enum { possible = 0 };
  static void run(const typename F::Element *, int64_t, int *, typename O::Result *) {}
};

template <class O, class F = typename O::Fold> struct Many {
  enum { side = GPR_COLUMNS };
  typedef typename F::Element T;
  typedef typename F::State State;
  /* Of states that lie one after the other. */
  static void fold(void *states, size_t, const gpr_tile *t, int64_t index) {
    if (Ribbon<O, F>::is(t))
      return Ribbon<O, F>::fold((State *)states, (const T *)(const void *)t->data, t->outputs, t->n,
                                index, t->skip);
    for (int64_t o = 0; o < t->outputs; o += COLUMNS)
      Side<O, F>::fold((State *)states + o, (const T *)(const void *)t->data + o,
                       t->along / (int64_t)sizeof(T), least(COLUMNS, t->outputs - o), t->n, index,
                       t->skip);
  }
  static int run(const gpr_tile *t, const void *with, void *to) {
    typename O::Result *result = (typename O::Result *)to;
    const bool spread = Same<typename FinishedWith<O>::type, gpr_spread>::value;
    if (t->counts || (with && !spread) || Ribbon<O, F>::is(t)) return 0;
    if (t->along == (int64_t)sizeof(T) && t->across != t->along) {
      for (int64_t o = 0; Line<O, F>::possible && o < t->outputs; o++)
        Line<O, F>::run((const T *)(const void *)(t->data + o * t->across), t->n, t->skip,
                        result + o * Results<O>::value);
      if (Line<O, F>::possible || t->outputs > 1) return Line<O, F>::possible;
    }
    for (int64_t o = 0; o < t->outputs; o += COLUMNS)
      if (!Direct<O, F>::run((const T *)(const void *)t->data + o, t->along / (int64_t)sizeof(T),
                             least(COLUMNS, t->outputs - o), t->n, t->skip,
                             (const typename FinishedWith<O>::type *)(spread ? with : nullptr),
                             result + o * Results<O>::value))
        return 0;
    return 1;
  }
};

/* Large states: each output by itself. */
template <class O, class F = typename O::Fold> struct ManyAlone {
  enum { side = GPR_ANY_TILE };
  static constexpr decltype(gpr_row::many) run = nullptr;
  static void fold(void *states, size_t slot, const gpr_tile *t, int64_t index) {
    typedef typename F::Element T;
    for (int64_t o = 0; o < t->outputs; o++) {
      typename F::State &s = *(typename F::State *)((char *)states + (size_t)o * slot);
      const char *data = t->data + o * t->across;
      if (t->along == (int64_t)sizeof(T))
        Folder<O>::fold(s, (const T *)(const void *)data, t->n, index);
      else
        Alone<O>::fold(s, data, t->along, t->n, index);
    }
  }
};

GPR_CLOSE
#endif
