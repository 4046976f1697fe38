/* Columns that are folded along the one tree. */
#pragma once

#include "many.h"

GPR_OPEN

/* Columns whose aligned blocks of rows are folded level by level. */
template <class O, class T, template <class> class Op> struct Many<O, TreeFold<T, Op>> {
  enum { side = GPR_COLUMNS, LEVELS_MOST = 13 }; /* GPR_SHORT rows */
  enum { BASE = 3 };                             /* of 8 rows in registers */
  typedef TreeFold<T, Op> F;
  typedef typename F::Wide A;
  typedef typename F::Combine C;
  typedef typename FinishedWith<O>::type With;
  enum { ACROSS = 2048 / sizeof(A) };
  typedef A Row[ACROSS];
  enum { LINE = 64 / sizeof(T), AHEAD = 16 };

  /* Of 2^LEVEL rows an element each. */
  template <int LEVEL> static GPR_METHOD A root_of(const T *const *row, int64_t j) {
    if constexpr (LEVEL)
      return C::combine(root_of<LEVEL - 1>(row, j),
                        root_of<LEVEL - 1>(row + (1 << (LEVEL - 1)), j));
    else
      return wide(row[0][j]);
  }
  template <int LEVEL = BASE>
  static void fold_rows(Row *node, const Panel<T> &x, int64_t columns, int level) {
    if constexpr (LEVEL > 0)
      if (level < LEVEL) return fold_rows<LEVEL - 1>(node, x, columns, level);
    fold_by<LEVEL>(node, x, columns, level);
  }
  /* 2^level rows, 2^LEVEL at a time, of which node[level] becomes the root. */
  template <int LEVEL>
  static GPR_APART void fold_by(Row *node, const Panel<T> &x, int64_t columns, int level) {
    for (int64_t row = 0; row < 1ll << (level - LEVEL); row++) {
      Row value;
      const T *some[1 << LEVEL], *next[1 << LEVEL];
      int at = LEVEL;
      for (int i = 0; i < 1 << LEVEL; i++) {
        const int64_t number = (row << LEVEL) + i, later = number + least((int64_t)AHEAD, x.n);
        next[i] = later < x.n ? x[later] : x[later - x.n] + columns;
        some[i] = x[number];
      }
      int64_t j = 0;
      for (; j + LINE <= columns; j += LINE) {
        for (int i = 0; i < 1 << LEVEL; i++) prefetch_later<LINE>(next[i], j);
        for (int k = 0; k < LINE; k++) value[j + k] = root_of<LEVEL>(some, j + k);
      }
      for (; j < columns; j++) value[j] = root_of<LEVEL>(some, j);
      for (int64_t place = row; place & 1; place >>= 1, at++)
        for (int64_t j = 0; j < columns; j++) value[j] = C::combine(node[at][j], value[j]);
      memcpy(node[at], value, (size_t)columns * sizeof *value);
    }
  }
  /* Calls take(root of a block, level) for the blocks of rows [index, index + n), in their order.
   */
  template <class Take>
  static void blocks(const Panel<T> &x, int64_t columns, int64_t index, const Take &take) {
    Row node[LEVELS_MOST];
    for (int64_t i = 0, n = x.n; n > 0;) {
      int level = LEVELS_MOST - 1;
      if (index) level = least(level, __builtin_ctzll((uint64_t)index));
      while (1ll << level > n) level--;
      fold_rows(node, x.part(i, n), columns, level);
      take(node[level], level);
      i += 1ll << level;
      index += 1ll << level;
      n -= 1ll << level;
    }
  }
  /* Calls take(rows, columns, the first one's output) for all; outputs are every `step`-th. */
  template <class Take> static void pieces(const gpr_tile *t, int64_t step, const Take &take) {
    const int64_t all = (t->outputs - 1) * step + 1, each = ACROSS / step * step;
    for (int64_t j = 0; j < all; j += each)
      take(panel_of<T>(t).across(j), least(each, all - j), j / step);
  }
  static int64_t step_of(const gpr_tile *t) {
    return t->outputs > 1 ? t->across / (int64_t)sizeof(T) : 1;
  }
  static int run(const gpr_tile *t, const void *with, void *to) {
    const int64_t step = step_of(t);
    if (step > 1 && t->along == (int64_t)sizeof(T)) return 0; /* rows */
    pieces(t, step, [&](const Panel<T> &x, int64_t columns, int64_t o) {
      Row part[LEVELS_MOST];
      int parts = 0;
      blocks(x, columns, 0, [&](const Row &root, int) {
        memcpy(part[parts++], root, (size_t)columns * sizeof *root);
      });
      for (int i = parts - 2; i >= 0; i--)
        for (int64_t j = 0; j < columns; j++) part[i][j] = C::combine(part[i][j], part[i + 1][j]);
      const auto finish_with = [&](const With *initial) {
        typename O::Result *result = (typename O::Result *)to + o;
        for (int64_t j = 0; j < columns; j += step) {
          TreeValue<F> value = {part[0][j]};
          O::finish(value, t->n, initial, result++);
        }
      };
      if (with)
        finish_with((const With *)with);
      else /* the compiler leaves loops as they are */
        finish_with(nullptr);
    });
    return 1;
  }
  static void fold(void *states, size_t, const gpr_tile *t, int64_t index) {
    const int64_t step = step_of(t);
    pieces(t, step, [&](const Panel<T> &x, int64_t columns, int64_t o) {
      typename F::State *state = (typename F::State *)states + o;
      const int64_t outputs = (columns - 1) / step + 1;
      for (int64_t j = 0; j < outputs; j++) F::start(state[j], index);
      blocks(x, columns, index, [&](const Row &root, int level) {
        for (int64_t j = 0; j < outputs; j++) push<C>(state[j], root[j * step], level);
      });
    });
  }
};
/* Matrices are folded in whole arrays alone. */
template <class O, class T, template <class> class Op> struct Many<O, TreeFold<matrix<T>, Op>> {
  enum { side = GPR_ANY_TILE };
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};

GPR_CLOSE
