/* Columns and rows of real and complex numbers as lanes of twofold sums. */
#pragma once

#include "extracted_block.h"

GPR_OPEN

/* Rows of STEP reals, `pitch` apart, from the elements of STEP / PARTS outputs, which are
 * contiguous: of complex numbers first all real parts. The last output stands for those that are
 * not there. For each vector the next line of what follows is asked for, from `later` on: sums of
 * 60 MB in rows of 113 doubles took 0.70 ns each on Zen 4 where it was asked for before the rows,
 * and take 0.38. */
enum { FOLLOW_BYTES = 8 << 10 }; /* or what so many outputs take */
template <int PARTS, class R>
const R *turned(const char *data, int64_t across, int64_t outputs, int64_t n, R *to, int64_t pitch,
                const char *&later) {
  typedef R V __attribute__((vector_size(WIDTH * sizeof(R))));
  enum { EACH = STEP / PARTS };
  const int64_t reals = n * PARTS;
  const R *row[WIDTH];
  V v[WIDTH];
  const auto place = [&](int64_t real) { return real / PARTS * pitch + real % PARTS * EACH; };
  for (int64_t first = 0; first < EACH; first += WIDTH) {
    for (int64_t r = 0; r < WIDTH; r++)
      row[r] = (const R *)(const void *)(data + least(first + r, outputs - 1) * across);
    for (int64_t j = 0; reals < WIDTH && j < reals; j++)
      for (int64_t r = 0; r < WIDTH; r++) to[first + place(j) + r] = row[r][j];
    for (int64_t next = 0; reals >= WIDTH && next < reals; next += WIDTH) {
      const int64_t j = least(next, reals - WIDTH);
      for (int64_t r = 0; r < WIDTH; r++) {
        memcpy(v + r, row[r] + j, sizeof *v);
        prefetch_later<1>(later, 0), later += sizeof *v;
      }
      turn(v);
      for (int64_t r = 0; r < WIDTH; r++) memcpy(to + first + place(j + r), v + r, sizeof *v);
    }
  }
  return to;
}

/* How elements become reals: of one part or two, each of so many bytes, which they are already or
 * that are brought. */
template <class R> struct Source {
  bool plain;
  int parts, bytes;
  void (*bring)(const gpr_tile *tile, const char *from, int64_t step, int64_t n, R *to);
};

/* Reals in steps, of which the last may have some of the one before it again. */
template <class R> struct RealSteps {
  enum { PANEL = PANEL_BYTES / sizeof(R), STEPS = PANEL / STEP };
  alignas(GPR_VECTOR) R copy[WAYS * PANEL];
  const gpr_tile *tile;
  int parts; /* of an element */
  Source<R> source;
  int64_t width;

  int64_t start_of(int64_t step) const {
    return greatest((int64_t)0, least(step * STEP, width - STEP));
  }
  bool is_straight(const Lines &l) const { return l.step == parts * source.bytes && !tile->cast; }
  bool is_plain(const Lines &l) const { return source.plain && is_straight(l); }
  /* Whether they are every second one of doubles. */
  bool skips(const Lines &l) const {
    return sizeof(R) == sizeof(double) && source.plain && !tile->cast &&
           l.step == 2 * parts * source.bytes;
  }
  bool lies_ready(const Lines &l) const { return width >= STEP && (is_plain(l) || skips(l)); }
  /* Whether the last one before this is less than a step, or beyond its last element some are read
   * that need not be there. */
  bool is_cut(const Lines &l, int64_t row) const {
    return l.reals ? row * STEP > l.reals - skips(l) : skips(l) && row == tile->n;
  }
  /* The last of a row in any lanes: what is before them was there already. */
  GPR_METHOD void keep_last(const R *x, int64_t before) {
    for (int64_t j = 0; j < STEP; j++) {
      const R one = x[j];
      copy[j] = j < before ? -(R)0 : one;
    }
  }
  /* Rows of some steps, which -0.0 fills up. What is `ahead` is so of the row so much `later`. */
  GPR_APART Piece<R> rows_of(const Lines &l, int64_t row, int64_t n, int64_t first, int64_t steps,
                             int64_t later, int64_t ahead) {
    const int64_t from = start_of(first);
    const char *const begin = l.x + from / parts * l.step, *x = begin + l.place(row);
    const R *const at = (const R *)(const void *)x;
    int64_t reals = least(start_of(first + steps - 1) + STEP - from, width);
    int64_t pitch = greatest(reals, (int64_t)STEP), lines = n;
    if (lies_ready(l) && !is_cut(l, row + n)) {
      const int unit = skips(l) ? parts : 0;
      const int64_t stride = l.along / (int64_t)sizeof(R);
      if (!l.places) return {at, stride, n, later * stride + ahead, unit};
      return {(const R *)(const void *)begin, 0, n, ahead, unit, l.places + row, later};
    }
    const Piece<R> all = {copy, pitch, n, 0};
    if (l.reals) {
      pitch = n * STEP;
      reals = least(pitch, l.reals - row * STEP);
      lines = 1;
      if (n == 1 && l.reals >= STEP && is_plain(l)) {
        keep_last(at + reals - STEP, STEP - reals);
        return all;
      }
    }
    for (R *to = copy; lines-- > 0; row++, to += pitch) {
      x = begin + l.place(row);
      for (int64_t j = reals; j < pitch; j++) to[j] = -(R)0;
      if (is_plain(l))
        memcpy(to, x, (size_t)reals * sizeof *to);
      else
        source.bring(tile, x, l.step, reals / parts, to);
    }
    return all;
  }
};
/* Sums of steps. */
template <class R, class K> struct StepSums {
  enum { STEPS = RealSteps<R>::STEPS };
  typedef StepBlock<K, R> Block;
  K at[2 * STEPS];
  Block block[STEPS];
  int alive[STEPS];
};
template <class R, class K> struct TwofoldColumns : StepSums<R, K>, RealSteps<R> {
  using Sums = StepSums<R, K>;
  using Own = RealSteps<R>;
  using Own::copy, Own::parts, Own::source, Own::width;
  using Own::start_of, Own::is_plain, Own::lies_ready, Own::skips, Own::is_cut, Own::keep_last;
  using Sums::STEPS, Sums::at, Sums::block, Sums::alive, typename Sums::Block;
  int64_t additions;
  bool exactly, infinite = false;

  /* rows: what a lane adds up; numbers: what an output has, in all its lanes. */
  void choose(int64_t reals, int64_t rows, int64_t numbers) {
    width = reals;
    exactly = sizeof(R) == sizeof(double) && numbers <= PIECE_ROWS;
    additions = least(rows, (int64_t)Block::ROWS) + 2 * (rows / PIECE_ROWS) + 4;
  }
  /* How many rows at a time. */
  int64_t few_of(const Lines &l, int64_t rows, int64_t steps) const {
    if (steps == 1) return lies_ready(l) ? (int64_t)Block::ROWS : (int64_t)PIECE_ROWS;
    return lies_ready(l) && !rows_meet(l, rows) ? (int64_t)WOVEN_ROWS : (int64_t)WAYS;
  }
  /* Whether each column of a step has met a NaN in the rows before this one. */
  bool is_known(const Lines &l, int64_t row, int64_t s) const {
    const K *k = at + 2 * s;
    return row && !l.reals &&
           !mask_of((Words)(k[0].special == k[0].special) | (Words)(k[1].special == k[1].special));
  }
  /* All rows of some steps, of each until all of it is NaN, as of one row. Blocks, and what comes
   * at a time, are of about the same length, so that each asks for as much as follows: with `next`
   * for the rows behind these, else for what lies `ahead`, and at the end for what lies `beside`,
   * in the next panel; 0: for nothing. */
  GPR_APART void add_rows(const Lines &l, int64_t rows, int64_t first, int64_t steps, int64_t ahead,
                          bool next = false, int64_t beside = 0) {
    const int64_t few = few_of(l, rows, steps), each = even_part(rows, Block::ROWS);
    for (int64_t k = 0; !rows && k < 2 * steps; k++) at[k].open();
    for (int64_t row = 0; row < rows; row += each) {
      const int64_t n = least(rows - row, each), some = even_part(n, few);
      int64_t live = 0;
      for (int64_t s = 0; s < steps; s++)
        if (!is_known(l, row, s)) block[s].open(!row, l.reals), alive[live++] = (int)s;
      if (!live) break;
      for (int64_t i = 0, m; i < n; i += m) {
        m = least(some, n - i);
        if (m > 1 && lies_ready(l) && is_cut(l, row + i + m)) m--; /* which is copied by itself */
        const bool ends = row + i + some >= rows && beside;
        const int64_t most = l.places ? rows - row - i - m : m; /* that there are */
        const int64_t later = ends ? -(row + i) : next ? least(m, most) : 0;
        Piece<R> piece = this->rows_of(l, row + i, m, first, steps, later, ends ? beside : ahead);
        const int64_t apart = piece.unit ? 2 : 1;
        const R *x = piece.x - apart * start_of(first);
        for (int64_t k = 0; k < live; k += Block::TOGETHER) {
          const int64_t at = apart * start_of(first + alive[k]);
          piece.x = x + at;
          if constexpr (Block::TOGETHER > 1)
            if (k + 1 < live) {
              const int64_t next = apart * start_of(first + alive[k + 1]);
              block[alive[k]].add_two(block[alive[k + 1]], piece, next - at);
              continue;
            }
          infinite |= block[alive[k]].add(piece, exactly);
        }
      }
      for (int64_t k = 0; k < live; k++)
        infinite |= block[alive[k]].close(at + 2 * alive[k], n, exactly, !row);
      if (l.reals && has_nan()) break; /* which stays */
    }
  }
  /* How long a part is, where n are cut into as few even ones as can be, of `most` at most. */
  static int64_t even_part(int64_t n, int64_t most) {
    const int64_t parts = (n + most - 1) / most;
    return parts ? (n + parts - 1) / parts : most;
  }
  /* Of some steps of a matrix of so many reals a row. */
  GPR_APART void run(const Lines &l, int64_t reals, int64_t rows, int64_t first, int64_t steps) {
    choose(reals, rows, rows);
    const int64_t few = few_of(l, rows, steps), stride = l.along / source.bytes;
    const bool follows = stride == reals || rows > 2 * few; /* a next tile, or rows of this */
    const bool prefetches = prefetches_panels<R>();
    const bool asks = prefetches && follows && !rows_meet(l, rows);
    add_rows(l, rows, first, steps, 0, asks,
             prefetches && (first + steps) * STEP < reals ? steps * STEP * (1 + skips(l)) : 0);
  }
  /* Outputs of a tile from this one on, side by side in the first two. */
  GPR_APART void run_turned(const gpr_tile *t, int64_t first) {
    const auto turn_lines = parts == 1 ? turned<1, R> : turned<2, R>;
    const int64_t each_step = STEP / parts, left = t->outputs - first,
                  some = least(left, each_step);
    const bool ready = is_plain({t->data, 0, t->along, 0});
    R *const brought = copy + STEP * PIECE_ROWS;
    const int64_t follow = greatest(each_step * t->across, (int64_t)FOLLOW_BYTES);
    const char *later = ready ? t->data + first * t->across + follow : (const char *)brought;
    choose(STEP, t->n, t->n);
    const int64_t each = (even_part(t->n, PIECE_ROWS) + WIDTH - 1) / WIDTH * WIDTH;
    for (int64_t row = 0, open = 0; row < t->n; row += each) {
      const int64_t m = least(t->n - row, each), reals = m * parts;
      const char *from = t->data + first * t->across + row * t->along;
      for (int64_t o = 0; !ready && o < some; o++)
        source.bring(t, from + o * t->across, t->along, m, brought + o * reals);
      const R *x = ready ? turn_lines(from, t->across, left, m, copy, STEP, later)
                         : turn_lines((const char *)brought, reals * (int64_t)sizeof(R), some, m,
                                      copy, STEP, later);
      if (row == open) block->open(!row, false);
      infinite |= block->add({x, STEP, m, 0}, exactly);
      if (row + m < t->n && row + m + each <= open + Block::ROWS) continue;
      infinite |= block->close(at, row + m - open, exactly, !open);
      open = row + m;
    }
  }
  /* In all parts of the first two, which come by turns. */
  bool has_nan() const {
    const uint64_t odd = (1ull << WIDTH) / 3 << 1;
    const uint64_t nan =
        mask_of((Words)(at[0].special != at[0].special) | (Words)(at[1].special != at[1].special));
    return parts == 1 ? nan : (nan & odd) && (nan & ~odd);
  }
  /* A row of one block, without the loops over panels and pieces: by these (500, 256) doubles took
   * 57 us on Zen 4, and take 45 so. */
  GPR_METHOD void add_block(const R *x, int64_t reals, int64_t ahead) {
    const int64_t rows = reals / STEP, left = reals % STEP;
    block->open(true, true);
    infinite |= block->add({x, STEP, rows, ahead}, exactly);
    if (left) {
      keep_last(x + reals - STEP, STEP - left);
      infinite |= block->add({copy, STEP, 1, 0}, exactly);
    }
    infinite |= block->close(at, rows + (left != 0), exactly, true);
  }
  /* All lanes of n elements in the first two. */
  void run_row(const char *x, int64_t step, int64_t n, int64_t ahead) {
    const Lines l = {x, STEP / parts * step, step, n * parts};
    const int64_t rows = (l.reals + STEP - 1) / STEP;
    choose(STEP, rows, l.reals);
    if (is_plain(l) && l.reals >= STEP && l.reals <= Block::ROWS * STEP)
      add_block((const R *)(const void *)x, l.reals, ahead);
    else
      add_rows(l, rows, 0, 1, ahead);
    at[0].merge(at[1]);
    additions += 2 * WIDTH;
  }
};

GPR_CLOSE
