/* Many outputs at a time: rows.h's `many` and `fold_many` for folds whose states are small. Columns
 * are added up side by side, whose lanes never meet; short rows are turned into columns first. */
#pragma once

#include "copies.h"
#include "folders.h"
#include "greatest.h"

GPR_OPEN

/* Operators that differ in what they finish alone share what is compiled for their folds. */
template <class O, class F = typename O::Fold> struct FoldsAs { typedef O type; };
template <class O, class T> struct FoldsAs<O, ExactFold<T>> { typedef Sum<T> type; };
template <class O, class T> struct FoldsAs<O, MomentsFold<T>> { typedef Var<T> type; };
template <class O, class T> struct FoldsAs<O, IntegerMoments<T>> { typedef Var<T> type; };
template <class T, class F> struct FoldsAs<PeakToPeak<T>, F> { typedef MinMax<T> type; };
template <class T, class F> struct FoldsAs<LogicalXor<T>, F> { typedef CountNonzero<T> type; };

/* The Value of a state, which may have a quicker way to the same. */
template <class F> struct QuicklyShown : Shown<F> {};

/* gpr_row's. */
template <class O, class F = typename O::Fold>
static GPR_APART void finish(const void *state, int64_t n, const void *with, void *result) {
  auto &&value = QuicklyShown<F>::of(*(const typename F::State *)state);
  O::finish(value, n, (const typename FinishedWith<O>::type *)with, (typename O::Result *)result);
}
/* What several outputs at a time leave over: one by itself. */
template <class O, class F = typename O::Fold>
static void reduce_alone(const typename F::Element *x, int64_t n, int64_t count, const void *with,
                         void *result) {
  typename F::State s;
  F::open(s);
  Folder<typename FoldsAs<O>::type>::fold(s, x, n, 0);
  finish<O>(&s, count, with, result);
}

/* gpr_row's: by how much there is to do with each. */
enum { APART = 6, APART_LITTLE = 3, NOT_APART = 1 };
template <class O, class F = typename O::Fold> struct Apart {
  static constexpr int most = F::law == GPR_FREE ? APART : APART_LITTLE;
};
template <class O, class T> struct Apart<O, IntegerProduct<T>> {
  static constexpr int most = APART_LITTLE;
};
template <class O, class T> struct Apart<O, LongSum<T>> {
  static constexpr int most = sizeof(T) < 8 ? APART : NOT_APART;
};
template <class O, class T> struct Apart<O, IntegerMoments<T>> {
  static constexpr int most = NOT_APART;
};

/* --- columns -----------------------------------------------------------------------------------
 */

/* What a fold keeps of each column: states as they are. */
template <class F> struct Columns {
  typedef typename F::Element T;
  enum { most = COLUMNS }; /* at a time */
  typename F::State state[most];
  void open(int64_t columns) {
    for (int64_t j = 0; j < columns; j++) F::open(state[j]);
  }
  void add(const Panel<T> &x, int64_t columns, int64_t index) {
    for (int64_t i = 0; i < x.n; i++) {
      const T *row = x[i];
      for (int64_t j = 0; j < columns; j++) F::add(state[j], row[j], index + i);
    }
  }
  const typename F::State &get(int64_t j) const { return state[j]; }
};

/* Whether a fold can leave out NaN by itself. */
template <class F> struct FoldSkips {
  enum { value = 0 };
};
/* Into the states of Columns<F>::most columns at most, whose rows lie side by side. */
template <class O, class F> struct Side {
  typedef typename F::Element T;
  static GPR_APART void fold(typename F::State *to, const Panel<T> &x, int64_t columns,
                             int64_t index, bool) {
    Columns<F> c;
    c.open(columns);
    c.add(x, columns, index);
    for (int64_t j = 0; j < columns; j++) {
      asm(""); /* not worth vectors */
      F::merge(to[j], c.get(j));
    }
  }
};
/* The same as tables have it. */
struct SideBySide {
  void (*fold)(void *to, const gpr_tile *t, int64_t index);
  void (*open)(void *state);
  void (*merge)(void *state, const void *right);
  void (*renumber)(void *state, int64_t start, int64_t step); /* or NULL */
  int64_t state, element;                                     /* bytes */
  int64_t columns;                                            /* at most */
};
enum { ABREAST_BYTES = 256, SMALL_STATE = 64 };

/* Of small elements there are many states to a vector, which take longer than they save. */
static bool is_small(int64_t element) { return element < 4; }
static int64_t abreast(int64_t element) {
  return is_small(element) ? 4 * GPR_VECTOR : (int64_t)ABREAST_BYTES;
}

/* A few columns whose rows lie one after the other: more of them, each of some of the rows. */
static bool is_ribbon(const gpr_tile *t, int64_t element) {
  const int64_t row = t->outputs * element, most = abreast(element);
  return !t->places && t->along == row && t->n >= 64 &&
         (is_small(element) ? 4 * row < most : 2 * row <= most);
}
static GPR_APART void fold_ribbon(const SideBySide &f, char *to, const gpr_tile *t, int64_t index) {
  enum { ROWS = 512, FEW_ROWS = 16 };
  const int64_t columns = t->outputs, rows = t->n;
  gpr_tile some = *t;
  alignas(64) char part[ABREAST_BYTES * SMALL_STATE];
  const int64_t most = abreast(f.element) / f.element / columns;
  for (int64_t i = 0; i < rows;) {
    const int64_t fit = least(most, (rows - i) / FEW_ROWS);
    const int64_t together = fit ? fit : least(most, rows - i);
    const int64_t wide = together * columns, m = least((int64_t)ROWS, (rows - i) / together);
    for (int64_t j = 0; j < wide; j++) f.open(part + j * f.state);
    some.data = t->data + i * t->along;
    some.along = wide * f.element;
    some.outputs = wide;
    some.n = m;
    f.fold(part, &some, 0);
    for (int64_t j = 0; j < wide; j++) {
      if (f.renumber) f.renumber(part + j * f.state, index + i + j / columns, together);
      f.merge(to + j % columns * f.state, part + j * f.state);
    }
    i += m * together;
  }
}
/* How many of the columns that are left at a time, so that no few of them are left at the end:
 * these take as long as many. The greatest of (512, 1032) floats took 110 us on Zen 4 by 512, 512
 * and 8 columns, and takes 50 by 512, 256 and 264. */
GPR_FN int64_t strip_of(int64_t left, int64_t most) {
  enum { FEW = 64 };
  if (left <= most) return left;
  return left - most < FEW ? most / 2 : most;
}
/* Calls take(columns, the first one's output) for all, until it is false; whether it never was. */
template <class Take>
static bool for_strips(const gpr_tile *t, int64_t element, int64_t most, const Take &take) {
  gpr_tile strip = *t;
  for (int64_t o = 0; o < t->outputs; o += strip.outputs) {
    strip.data = t->data + o * element;
    strip.outputs = strip_of(t->outputs - o, most);
    if (!take(&strip, o)) return false;
  }
  return true;
}
/* Columns that lie some elements apart, with those between, which come from memory anyway: so many
 * at a time that these have room for what is kept of each. */
enum { APART_BYTES = 16 << 10 };
GPR_FN gpr_tile with_between(const gpr_tile *t, int64_t element) {
  gpr_tile all = *t;
  all.outputs = (t->outputs - 1) * (t->across / element) + 1;
  all.across = element;
  return all;
}
static GPR_APART void fold_apart(const SideBySide &f, char *states, const gpr_tile *t,
                                 int64_t index) {
  const int64_t step = t->across / f.element, most = least(f.columns, APART_BYTES / f.state);
  alignas(64) char part[APART_BYTES];
  for_strips(t, t->across, most / step, [&](const gpr_tile *strip, int64_t o) {
    const gpr_tile all = with_between(strip, f.element);
    for (int64_t j = 0; j < all.outputs; j++) f.open(part + j * f.state);
    f.fold(part, &all, index);
    for (int64_t j = 0; j < strip->outputs; j++)
      f.merge(states + (o + j) * f.state, part + j * step * f.state);
    return true;
  });
}
static GPR_APART void fold_sides(const SideBySide &f, char *states, const gpr_tile *t,
                                 int64_t index) {
  if (t->across != f.element) return fold_apart(f, states, t, index);
  if (is_ribbon(t, f.element)) return fold_ribbon(f, states, t, index);
  for_strips(t, f.element, f.columns, [&](const gpr_tile *strip, int64_t o) {
    f.fold(states + o * f.state, strip, index);
    return true;
  });
}
template <class F> struct State {
  static void open(void *state) { F::open(*(typename F::State *)state); }
  static void merge(void *state, const void *right) {
    F::merge(*(typename F::State *)state, *(const typename F::State *)right);
  }
};
template <class O, class F = typename O::Fold> struct Sides {
  typedef typename F::State State;
  template <class S>
  static auto renumber(S &s, int64_t start, int64_t step) -> decltype(s.index, void()) {
    if (s.index >= 0) s.index = start + s.index * step;
  }
  template <class S>
  static auto renumber(S &s, int64_t start, int64_t step) -> decltype(s.high.index, void()) {
    renumber(s.low, start, step);
    renumber(s.high, start, step);
  }
  static constexpr auto renumbered() -> decltype(SideBySide::renumber) {
    if constexpr (F::ordered)
      return [](void *s, int64_t start, int64_t step) { renumber(*(State *)s, start, step); };
    else
      return nullptr;
  }
  static void fold(void *to, const gpr_tile *t, int64_t index) {
    static_assert(sizeof(State) <= SMALL_STATE, "");
    Side<O, F>::fold((State *)to, panel_of<typename F::Element>(t), t->outputs, index, t->skip);
  }
  static constexpr SideBySide job = {
      fold,          gpr::State<F>::open,         gpr::State<F>::merge, renumbered(),
      sizeof(State), sizeof(typename F::Element), Columns<F>::most};
};

/* The results of Columns<F>::most columns at most that have all their rows here; false where this
 * is no way to them, and then nothing is said. empty: NULL, or NaN does not count, and it becomes 1
 * where an output has nothing else. */
template <class O, class F = typename O::Fold> struct Direct {
  enum { possible = 0 };
  static bool run(const Panel<typename F::Element> &, int64_t, int *, typename O::Result *) {
    return false;
  }
};
struct AtOnce {
  bool (*columns)(const gpr_tile *t, void *to);
  int64_t element, result; /* bytes */
  int64_t most;            /* columns */
};
static GPR_APART int run_apart(const AtOnce &a, const gpr_tile *t, char *to) {
  const int64_t step = t->across / a.element, most = least(a.most, APART_BYTES / a.result);
  alignas(64) char some[APART_BYTES];
  if (t->skip) return 0; /* of which those between would be told as well */
  return for_strips(t, t->across, most / step, [&](const gpr_tile *strip, int64_t o) {
    const gpr_tile all = with_between(strip, a.element);
    if (!a.columns(&all, some)) return false;
    copy(some, step * a.result, to + o * a.result, a.result, strip->outputs, (int)a.result);
    return true;
  });
}
static GPR_APART int run_at_once(const AtOnce &a, const gpr_tile *t, const void *with, char *to) {
  if (t->counts || with || is_ribbon(t, a.element)) return 0;
  if (t->along == a.element && t->across != t->along && t->outputs > 1) return 0; /* rows */
  if (t->across != a.element && t->outputs > 1) return run_apart(a, t, to);
  return for_strips(t, a.element, a.most, [&](const gpr_tile *strip, int64_t o) {
    return a.columns(strip, to + o * a.result);
  });
}

template <class O, class F> struct ManySides {
  enum { side = GPR_COLUMNS };
  typedef typename F::Element T;
  typedef typename O::Result Result;
  static void fold(void *states, size_t, const gpr_tile *t, int64_t index) {
    fold_sides(Sides<O>::job, (char *)states, t, index);
  }
  static bool columns(const gpr_tile *t, void *to) {
    return Direct<O>::run(panel_of<T>(t), t->outputs, t->skip, (Result *)to);
  }
  static constexpr AtOnce at_once = {columns, sizeof(T), Results<O>::value * sizeof(Result),
                                     Columns<F>::most};
  static int run_all(const gpr_tile *t, const void *with, void *to) {
    return run_at_once(at_once, t, with, (char *)to);
  }
  static constexpr decltype(gpr_row::many) run = Direct<O>::possible ? run_all : nullptr;
};
template <class O, class F = typename O::Fold> struct Many : ManySides<O, F> {};

GPR_CLOSE
