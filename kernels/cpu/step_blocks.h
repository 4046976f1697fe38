/* Two vectors of columns, of a few rows at a time: how their sums are kept. */
#ifndef GPR_STEP_BLOCKS_H
#define GPR_STEP_BLOCKS_H

#include "exact_lanes.h"
#include "many.h"
#include "twofold.h"

GPR_OPEN

/* Numbers are added up by blocks of rows, and then these, so that few roundings add up; some rows
 * of a panel of columns at a time, which the hardware can follow. Of 256 columns, (4096, 1024)
 * doubles took 1.87 ms on a Xeon, of 512 1.60. */
enum { PANEL_BYTES = 4096, BLOCK_ROWS = 64, WOVEN_ROWS = 16 };
/* Rows that lie whole pages apart meet in one set of the caches, which has at least so many ways.
 */
enum { PAGE_BYTES = 4096, WAYS = 8 };

/* Rows of STEP reals where they lie; the next ones lie `ahead` of them, or 0. */
template <class R> struct Piece {
  const R *x;
  int64_t stride, n, ahead;
};
/* What the blocks of a tile have in common. */
struct Habit {
  bool exactly;          /* so few doubles that ties are frequent */
  bool wide = false;     /* numbers of more exponents than a window keeps */
  bool is_known = false; /* the window */
  Window window;
};

/* Whether a lane has an infinity, of what is not finite. */
template <class K, class R> GPR_APART bool look_for_special(K *to, const Piece<R> &rows) {
  Words infinite = {};
  for (int k = 0; k < 2; k++) {
    Doubles special = {};
    for (int64_t row = 0; row < rows.n; row++) {
      const Doubles d = load(rows.x + row * rows.stride + k * WIDTH);
      special += (Doubles)(bits(d) & (Words)(d - d != 0));
      infinite |= (Words)(size_of(d) == __builtin_inf());
    }
    to[k].special += special;
    to[k].set_aside((Words)(to[k].sum.high - to[k].sum.high != 0));
  }
  return mask_of(infinite);
}
template <bool EXACTLY, class K, class R> GPR_FN bool add_rows(K *to, const Piece<R> &rows) {
  constexpr bool narrow = sizeof(R) < sizeof(double);
  K a = to[0], b = to[1];
  for (int64_t row = 0; row < rows.n; row++) {
    const R *at = rows.x + row * rows.stride;
    if (rows.ahead) prefetch_later<STEP>(at, rows.ahead);
    if constexpr (EXACTLY) {
      a.add_exactly(load(at));
      b.add_exactly(load(at + WIDTH));
    } else {
      a.template add<narrow>(load(at));
      b.template add<narrow>(load(at + WIDTH));
    }
  }
  to[0] = a;
  to[1] = b;
  const Doubles all = a.sum.high + b.sum.high;
  return mask_of((Words)(all - all != 0)) && look_for_special(to, rows);
}

/* What a step keeps of a block of n rows, which come in pieces, and `again` as one: sums that know
 * what they lose. Results of add() and close(): whether an element is infinite, in a lane without
 * NaN. */
template <class K, class R> struct PartBlock {
  K part[2];

  template <class Again> static void prepare(const Again &, Habit &) {}
  GPR_METHOD void open(const Habit &) {
    part[0].open();
    part[1].open();
  }
  GPR_METHOD bool add(const Piece<R> &rows, const Habit &habit) {
    constexpr bool sums = Same<K, TwofoldSum<Doubles>>::value;
    return sums && habit.exactly ? add_rows<sums>(part, rows) : add_rows<false>(part, rows);
  }
  template <class Again>
  GPR_METHOD bool close(K *to, int64_t n, const Again &, const Habit &habit, bool is_first) {
    for (int k = 0; k < 2; k++) {
      if (!habit.exactly) part[k].settle((double)(n + 4));
      if (is_first)
        to[k] = part[k];
      else
        to[k].merge(part[k]);
    }
    return false;
  }
};
template <class K, class R> struct StepBlock : PartBlock<K, R> {};

/* Of floats plain sums of doubles: exact where their exponents are close, else off by
 * rows²·u·max|x| at most. Nothing overflows, so that what is not finite stays. */
template <> struct StepBlock<TwofoldSum<Doubles>, float> {
  Doubles sum[2];
  Words32 high, low; /* magnitudes, shifted; zero is no low */

  template <class Again> static void prepare(const Again &, Habit &) {}
  GPR_METHOD void open(const Habit &) {
    sum[0] = sum[1] = -Doubles{};
    high = Words32{};
    low = ~Words32{};
  }
  GPR_METHOD bool add(const Piece<float> &rows, const Habit &) {
    StepBlock s = *this;
    const float *x = rows.x;
    for (int64_t row = 0; row < rows.n; row++, x += rows.stride) {
      if (rows.ahead) prefetch_later<STEP>(x, rows.ahead);
      Words32 size;
      memcpy(&size, x, sizeof size);
      size += size;
      s.high = s.high > size ? s.high : size;
      size -= 1;
      s.low = s.low < size ? s.low : size;
      s.sum[0] += load(x);
      s.sum[1] += load(x + WIDTH);
    }
    *this = s;
    return false;
  }
  template <class Again>
  GPR_METHOD bool close(TwofoldSum<Doubles> *to, int64_t n, const Again &, const Habit &,
                        bool is_first) {
    const uint32_t infinity = 0xff000000u;
    const uint32_t near = (uint32_t)(53 - 24 - (n > 8 ? 6 : 3)) << 24;
    const double by = 0x1p-52 * (double)n * (double)(n + 4);
    const Words32 most = high & infinity, fewest = (low + 1) & infinity;
    const Words32 far = (Words32)((most - fewest > near) & (most > fewest));
    Words32 infinite = {};
    if (is_first) to[0].open(), to[1].open();
    if (mask_of(far | (Words32)(most == infinity))) {
      float size[STEP];
      infinite = (Words32)(high == infinity);
      high = high >> 1 & far;
      memcpy(size, &high, sizeof size);
      for (int k = 0; k < 2; k++) {
        const Words odd = (Words)(sum[k] - sum[k] != 0);
        to[k].special += (Doubles)(odd & bits(sum[k]));
        sum[k] = (Doubles)(~odd & bits(sum[k]));
        to[k].errors += (Doubles)(~odd & bits(by * load((const float *)size + k * WIDTH)));
      }
    }
    for (int k = 0; k < 2; k++)
      if (is_first)
        to[k].sum.high = sum[k];
      else
        to[k].add_exactly(sum[k]);
    return mask_of(infinite);
  }
};

/* Of doubles a window, and where that does not keep them sums that know what they lose. */
struct WindowLanes {
  Doubles first[2], second[2];
  Words away[2], lost[2];
};
struct WindowBlock : WindowLanes {
  double start1, start2;

  void open(const Window &w) {
    start1 = w.start1;
    start2 = w.start2;
    for (int k = 0; k < 2; k++) {
      first[k] = start1 - Doubles{};
      second[k] = start2 - Doubles{};
      away[k] = lost[k] = Words{};
    }
  }
  GPR_METHOD void add(const Piece<double> &rows) {
    const Doubles start = start1 - Doubles{};
    WindowLanes w = *this;
    const double *x = rows.x;
    for (int64_t row = 0; row < rows.n; row++, x += rows.stride) {
      if (rows.ahead) prefetch_later<STEP>(x, rows.ahead);
      for (int k = 0; k < 2; k++)
        add_two_levels(w.first[k], w.second[k], w.away[k], w.lost[k], start, load(x + k * WIDTH));
    }
    (WindowLanes &)*this = w;
  }
  /* Lanes that it did not keep. */
  GPR_METHOD Words failed(int k) const { return (Words)((away[k] >> 52 | lost[k] << 1) != 0); }
  /* The sums, without the signs of zeros; whether there are any. */
  GPR_METHOD bool get(Doubles *high, Doubles *low) const {
    Words zero = {};
    for (int k = 0; k < 2; k++) {
      high[k] = first[k] - start1;
      low[k] = second[k] - start2;
      zero |= (Words)(high[k] == 0) & (Words)(low[k] == 0);
    }
    return mask_of(zero);
  }
};
/* Zeros that come of nothing but -0.0 are that. */
static GPR_APART void sign_zeros(const Piece<double> &rows, Doubles *high, Doubles *low) {
  for (int k = 0; k < 2; k++) {
    Words all = (Words)(high[k] == 0) & (Words)(low[k] == 0) & 1ull << 63;
    for (int64_t row = 0; row < rows.n; row++)
      all &= bits(load(rows.x + row * rows.stride + k * WIDTH));
    high[k] = (Doubles)(bits(high[k]) | all);
    low[k] = (Doubles)(bits(low[k]) | all);
  }
}
template <> struct StepBlock<TwofoldSum<Doubles>, double> {
  typedef TwofoldSum<Doubles> K;
  typedef PartBlock<K, double> Parts;
  union {
    WindowBlock window;
    Parts parts;
  };
  bool windowed;

  /* The largest that is not NaN. */
  static GPR_APART double most_of(const Piece<double> &rows) {
    Doubles most[4] = {};
    double all = 0;
    for (int64_t row = 0; row < rows.n; row += 2) {
      const double *at = rows.x + row * rows.stride;
      const double *next = row + 1 < rows.n ? at + rows.stride : at;
      for (int k = 0; k < 4; k++) {
        const Doubles size = size_of(load((k < 2 ? at : next) + k % 2 * WIDTH));
        most[k] = size > most[k] ? size : most[k];
      }
    }
    for (int k = 1; k < 4; k++) most[0] = most[k] > most[0] ? most[k] : most[0];
    for (int l = 0; l < WIDTH; l++) all = most[0][l] > all ? most[0][l] : all;
    return all;
  }
  /* A window for these, if there is one, and one that is higher than that before. */
  static void choose(double most, Habit &habit) {
    const int top = (int)(bits(most) >> 52) - 1022 + 2;
    habit.wide = !(most < TWOFOLD_MOST && most > TWOFOLD_LEAST) ||
                 (habit.is_known && top <= habit.window.top);
    habit.is_known = true;
    if (!habit.wide) habit.window = open_window(top);
  }
  template <class Again> static void prepare(const Again &again, Habit &habit) {
    if (!habit.is_known) choose(most_of(again()), habit);
  }
  GPR_METHOD void open(const Habit &habit) {
    windowed = !habit.wide;
    if (windowed)
      window.open(habit.window);
    else
      parts.open(habit);
  }
  GPR_METHOD bool add(const Piece<double> &rows, const Habit &habit) {
    if (!windowed) return parts.add(rows, habit);
    window.add(rows);
    return false;
  }
  template <class Again>
  GPR_METHOD bool close(K *to, int64_t n, const Again &again, Habit &habit, bool is_first) {
    Doubles high[2], low[2];
    if (!windowed) return parts.close(to, n, again, habit, is_first);
    if (mask_of(window.failed(0) | window.failed(1)))
      return close_again(to, again, habit, is_first);
    if (window.get(high, low)) sign_zeros(again(), high, low);
    for (int k = 0; k < 2; k++) keep(to[k], high[k], low[k], is_first);
    return false;
  }
  static GPR_METHOD void keep(K &to, const Doubles first, const Doubles second, bool is_first) {
    if (is_first) {
      to.begin(first);
      to.sum.add(second);
    } else {
      to.add_exactly(first);
      to.add_exactly(second);
    }
  }
  /* A NaN fails in its lane alone; but what an operation makes may come of numbers that overflow
   * and one infinity. */
  template <class Again>
  GPR_APART bool close_again(K *to, const Again &again, Habit &habit, bool is_first) {
    volatile const double inf = __builtin_inf();
    const uint64_t made = bits(inf - inf);
    Words nan[2], far = {};
    Doubles high[2], low[2];
    for (int k = 0; k < 2; k++) {
      nan[k] = (Words)(window.first[k] != window.first[k]) & (Words)(bits(window.first[k]) != made);
      far |= window.failed(k) & ~nan[k];
    }
    if (mask_of(far)) {
      const Piece<double> rows = again();
      choose(most_of(rows), habit);
      parts.open(habit);
      const bool infinite = parts.add(rows, habit);
      return parts.close(to, rows.n, rows, habit, is_first) | infinite;
    }
    if (window.get(high, low)) sign_zeros(again(), high, low);
    for (int k = 0; k < 2; k++) {
      keep(to[k], (Doubles)(~nan[k] & bits(high[k])), (Doubles)(~nan[k] & bits(low[k])), is_first);
      to[k].special += (Doubles)(nan[k] & bits(window.first[k]));
    }
    return false;
  }
};

GPR_CLOSE
#endif
