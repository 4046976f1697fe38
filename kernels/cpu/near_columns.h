/* Columns side by side into exact states: lanes of near.h, each a column's. */
#ifndef GPR_NEAR_COLUMNS_H
#define GPR_NEAR_COLUMNS_H

#include "many.h"
#include "near.h"

GPR_OPEN

template <class T> GPR_FN void put_lane(typename ExactFold<T>::State &s, int part, int, double x) {
  scatter(s.part[part], x);
}
template <class T>
GPR_FN void put_lane(typename MomentsFold<T>::State &s, int part, int kind, double x) {
  if (kind)
    deposit(s.squares, x);
  else
    scatter(s.part[part], x);
}
/* Moments do not look for it. One element may stand for all rows. */
template <class R> static void look_for_others(Exact &e, const R *x, int64_t stride, int64_t rows) {
  if (e.signs & GPR_OTHER) return;
  look_for_other(e, x, stride ? rows * stride : 1, stride ? (int)stride : 1);
}

template <class O, class F> struct NearColumns {
  typedef typename F::Element T;
  typedef typename F::State State;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = F::parts, SQUARES = !Same<F, ExactFold<T>>::value, ACROSS = STEP / PARTS };
  /* Steps side by side, of which rows are read some at a time, so that the hardware can follow. */
  enum { STEPS = 16, WOVEN = 8 };
  static constexpr bool plain = sizeof(R) == sizeof(Part);
  typedef NearLanes<R, SQUARES> Lanes;

  char *states;
  size_t slot;
  int64_t outputs; /* of which each has a state: column j that of j % outputs */
  const gpr_tile *tile;
  int64_t index;
  NearBlock<R, SQUARES> block[STEPS];
  Lanes lanes[STEPS];
  bool far[STEPS];
  alignas(GPR_VECTOR) R copy[REALS];

  State &state(int64_t j) const {
    return *(State *)(void *)(states + (size_t)(j < outputs ? j : j % outputs) * slot);
  }
  const Part *at(int64_t o, int64_t row) const {
    return (const Part *)(const void *)(tile->data + o * tile->across + row * tile->along);
  }
  int64_t stride() const { return tile->along / (int64_t)sizeof(Part); }
  int64_t outputs_from(int64_t o) const { return least(tile->outputs - o, (int64_t)ACROSS); }
  bool is_copied(int64_t o) const { return !plain || outputs_from(o) < ACROSS; }

  /* Some rows of a block whose first row is `from`. */
  void add_rows(int64_t s, int64_t o, int64_t from, int64_t row, int64_t rows, int64_t ahead) {
    const Part *x = at(o, row);
    if constexpr (plain)
      if (!is_copied(o)) return block[s].add(x, stride(), rows, ahead);
    const int64_t reals = outputs_from(o) * PARTS;
    R *to = copy + (row - from) * STEP;
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = reals; j < STEP; j++) to[i * STEP + j] = 0;
      copy_wide(x + i * stride(), to + i * STEP, reals);
    }
    block[s].add(to, STEP, rows, 0);
  }
  bool close(int64_t s, int64_t o, int64_t row, int64_t rows) {
    if constexpr (plain)
      if (!is_copied(o)) return block[s].close(at(o, row), stride(), rows);
    return block[s].close(copy, STEP, rows);
  }
  /* What is far apart, from a row on: each by itself. */
  GPR_APART void by_themselves(int64_t first, int64_t row) const {
    for (int64_t o = first; o < first + outputs_from(first); o++)
      Alone<O>::fold(state(o), (const char *)at(o, row), tile->along, tile->n - row, index + row);
  }
  void flush(int64_t s, int64_t o) {
    lanes[s].flush([&](int lane, int kind, double value) {
      put_lane<T>(state(o + lane / PARTS), lane % PARTS, kind, value);
    });
  }
  void end_block(int64_t s, int64_t o, int64_t row, int64_t rows) {
    if (far[s]) return;
    far[s] = !close(s, o, row, rows);
    if (far[s]) return by_themselves(o, row);
    lanes[s].add(block[s], [&](int lane, int kind, double value) {
      put_lane<T>(state(o + lane / PARTS), lane % PARTS, kind, value);
    });
  }
  /* Some steps of outputs. */
  GPR_APART void run(int64_t first, int64_t steps) {
    int64_t few = NEAR_ROWS;
    if (steps > 1) few = WOVEN;
    const int64_t ahead = gpr_prefetch_columns && tile->n > 2 * few ? few * stride() : 0;
    for (int64_t s = 0; s < steps; s++) {
      lanes[s].open();
      block[s].forget();
      far[s] = false;
    }
    for (int64_t row = 0; row < tile->n; row += NEAR_ROWS) {
      const int64_t stop = least(tile->n, row + NEAR_ROWS);
      for (int64_t s = 0; s < steps; s++) block[s].open();
      for (int64_t i = row; i < stop; i += few)
        for (int64_t s = 0; s < steps; s++)
          if (!far[s]) add_rows(s, first + s * ACROSS, row, i, least(few, stop - i), ahead);
      for (int64_t s = 0; s < steps; s++) end_block(s, first + s * ACROSS, row, stop - row);
    }
    for (int64_t s = 0; s < steps; s++) flush(s, first + s * ACROSS);
  }
  GPR_APART void look_for_signs() const {
    for (int64_t o = 0; o < tile->outputs; o++)
      for (int p = 0; p < PARTS; p++)
        look_for_others(state(o).part[p], at(o, 0) + p, stride(), tile->n);
  }
};

/* Large states: columns side by side, and other outputs each by itself. */
template <class O, class F = typename O::Fold> struct ManyExact : ManyAlone<O> {
  typedef NearColumns<O, F> N;
  enum { LEAST_ROWS = 4 };
  /* Column j goes to state j % outputs. */
  static void fold_columns(void *states, size_t slot, const gpr_tile *t, int64_t outputs,
                           int64_t index) {
    N columns;
    columns.states = (char *)states;
    columns.slot = slot;
    columns.outputs = outputs;
    columns.tile = t;
    columns.index = index;
    const int64_t steps = (t->outputs + N::ACROSS - 1) / N::ACROSS;
    for (int64_t s = 0; s < steps; s += N::STEPS)
      columns.run(s * N::ACROSS, least(steps - s, (int64_t)N::STEPS));
    if (!N::SQUARES) columns.look_for_signs();
  }
  /* Rows of few columns that follow each other, as many of them as fill steps as one. */
  static void fold_ribbon(void *states, size_t slot, const gpr_tile *t, int64_t index) {
    int64_t together = 1;
    while (t->outputs * together % N::ACROSS) together++;
    gpr_tile wide = *t, rest = *t;
    wide.outputs *= together;
    wide.along *= together;
    wide.n /= together;
    rest.n -= wide.n * together;
    rest.data += wide.n * wide.along;
    if (wide.n) fold_columns(states, slot, &wide, t->outputs, index);
    if (rest.n) ManyAlone<O>::fold(states, slot, &rest, index + wide.n * together);
  }
  static void fold(void *states, size_t slot, const gpr_tile *t, int64_t index) {
    const int64_t each = sizeof(typename F::Element), part = sizeof(typename N::Part);
    if (t->outputs < 2 || t->across != each || t->n < LEAST_ROWS || t->along % part)
      ManyAlone<O>::fold(states, slot, t, index);
    else if (t->outputs < N::ACROSS && t->along == t->outputs * each)
      fold_ribbon(states, slot, t, index);
    else
      fold_columns(states, slot, t, t->outputs, index);
  }
};

GPR_CLOSE
#endif
