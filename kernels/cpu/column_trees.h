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
  enum { ACROSS = 1024 / sizeof(A) };
  typedef A Row[ACROSS];
  enum { AHEAD = 64 / sizeof(T), AHEAD_ROWS = 16 };

  /* 2^LEVEL elements of a column. */
  template <int LEVEL> static GPR_METHOD A root_of(const T *x, int64_t stride) {
    if constexpr (LEVEL)
      return C::combine(root_of<LEVEL - 1>(x, stride),
                        root_of<LEVEL - 1>(x + (stride << (LEVEL - 1)), stride));
    else
      return wide(*x);
  }
  static void fold_rows(Row *node, const T *x, int64_t stride, int64_t columns, int level) {
    if (level >= BASE)
      fold_by<BASE>(node, x, stride, columns, level);
    else if (level)
      fold_by<1>(node, x, stride, columns, level);
    else
      for (int64_t j = 0; j < columns; j++) node[0][j] = wide(x[j]);
  }
  /* 2^level rows, 2^LEVEL at a time, of which node[level] becomes the root. */
  template <int LEVEL>
  static GPR_APART void fold_by(Row *node, const T *x, int64_t stride, int64_t columns, int level) {
    for (int64_t row = 0; row < 1ll << (level - LEVEL); row++, x += stride << LEVEL) {
      Row value;
      int at = LEVEL;
      for (int64_t j = 0; j < columns; j += AHEAD) {
        for (int i = 0; i < 1 << LEVEL; i++)
          prefetch_later<AHEAD>(x + j, (AHEAD_ROWS + i) * stride);
      }
      for (int64_t j = 0; j < columns; j++) value[j] = root_of<LEVEL>(x + j, stride);
      for (int64_t place = row; place & 1; place >>= 1, at++)
        for (int64_t j = 0; j < columns; j++) value[j] = C::combine(node[at][j], value[j]);
      memcpy(node[at], value, (size_t)columns * sizeof *value);
    }
  }
  /* Calls take(root of a block, level) for the blocks of rows [index, index + n), in their order.
   */
  template <class Take>
  static void blocks(const T *x, int64_t stride, int64_t columns, int64_t n, int64_t index,
                     const Take &take) {
    Row node[LEVELS_MOST];
    while (n > 0) {
      int level = LEVELS_MOST - 1;
      if (index) level = least(level, __builtin_ctzll((uint64_t)index));
      while (1ll << level > n) level--;
      fold_rows(node, x, stride, columns, level);
      take(node[level], level);
      x += stride << level;
      index += 1ll << level;
      n -= 1ll << level;
    }
  }
  template <class Take> static void pieces(const gpr_tile *t, const Take &take) {
    for (int64_t o = 0; o < t->outputs; o += ACROSS)
      take((const T *)(const void *)t->data + o, t->along / (int64_t)sizeof(T),
           least((int64_t)ACROSS, t->outputs - o), o);
  }
  static int run(const gpr_tile *t, const void *with, void *to) {
    if (t->outputs > 1 && t->across != (int64_t)sizeof(T)) return 0;
    pieces(t, [&](const T *x, int64_t stride, int64_t columns, int64_t o) {
      Row part[LEVELS_MOST];
      int parts = 0;
      blocks(x, stride, columns, t->n, 0, [&](const Row &root, int) {
        memcpy(part[parts++], root, (size_t)columns * sizeof *root);
      });
      for (int i = parts - 2; i >= 0; i--)
        for (int64_t j = 0; j < columns; j++) part[i][j] = C::combine(part[i][j], part[i + 1][j]);
      const auto finish_with = [&](const With *initial) {
        for (int64_t j = 0; j < columns; j++) {
          TreeValue<F> value = {part[0][j]};
          O::finish(value, t->n, initial, (typename O::Result *)to + o + j);
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
    pieces(t, [&](const T *x, int64_t stride, int64_t columns, int64_t o) {
      typename F::State *state = (typename F::State *)states + o;
      for (int64_t j = 0; j < columns; j++) F::start(state[j], index);
      blocks(x, stride, columns, t->n, index, [&](const Row &root, int level) {
        for (int64_t j = 0; j < columns; j++) push<C>(state[j], root[j], level);
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
