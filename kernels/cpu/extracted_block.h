/* Blocks of doubles by error-free extraction (Rump, Ogita, Oishi, "Accurate floating-point
 * summation", 2008): the lanes of a sum that starts so high that it counts all numbers in units of
 * one size, exactly, and nearly the sum of what these leave. */
#ifndef GPR_EXTRACTED_BLOCK_H
#define GPR_EXTRACTED_BLOCK_H

#include "step_blocks.h"

GPR_OPEN

/* In cache, columns of 300 doubles took 0.40 ns each on Zen 3 by sums that carry their errors
 * along, and take 0.29. Beside what is below `above`, a power of two that the rows before had. */
template <> struct StepBlock<TwofoldSum<Doubles>, double> {
  typedef TwofoldSum<Doubles> K;
  static constexpr double LEAST = 0x1p-900, MOST = 0x1p900;
  /* Above the greatest of a piece, for those that follow; and what is not too far above the first
   * piece of an output. */
  static constexpr double ROOM = 16, FAR = 0x1p-12;
  /* A unit is 2^-44 of above, and BLOCK_ROWS numbers stay in the binade. What they leave is at most
   * half a unit each, 2^-39 of above together, of which each addition rounds away 2^-53. */
  static constexpr double START = 0x1.8p8, OFF = 0x1p-86;
  static_assert(BLOCK_ROWS == 64, "");
  Doubles sum[2], rest[2], above[2];
  Doubles zero[2]; /* what a sum of zero is */
  Words rough[2];  /* lanes whose rest is not known to be exact */
  bool is_usual;   /* these are 0 and all lanes, whatever they say */
  bool has_above = false, is_new, has_part, infinite;
  K part[2]; /* seldom */

  GPR_METHOD void open(bool is_first) {
    if (!has_above) above[0] = above[1] = ROOM - Doubles{};
    has_above = true;
    is_new = is_first;
    has_part = infinite = false;
    begin();
  }
  GPR_METHOD void begin() {
    is_usual = false;
    for (int k = 0; k < 2; k++) {
      sum[k] = START * above[k];
      rest[k] = Doubles{};
      zero[k] = -Doubles{};
      rough[k] = Words{};
    }
  }
  GPR_METHOD K *parts() {
    if (!has_part) part[0].open(), part[1].open();
    has_part = true;
    return part;
  }
  GPR_METHOD void put(K *to) const {
    for (int k = 0; k < 2; k++) {
      const Doubles one = sum[k] - START * above[k], none = is_usual ? Doubles{} : zero[k];
      const Words off = is_usual ? ~Words{} : rough[k];
      to[k].add_exactly(choose((Words)(one == 0), none, one));
      to[k].add_low(rest[k]);
      to[k].errors += (Doubles)(off & bits(OFF * above[k]));
    }
  }
  static GPR_METHOD Doubles leave(Doubles &sum, const Doubles x) {
    const Doubles from = sum;
    sum += x;
    return x - minus(sum, from);
  }
  /* Lanes of numbers that are not too great, nor all so small that the unit says little of them. */
  GPR_METHOD Words fit(const Doubles most, int k) const {
    const Doubles least = is_new ? FAR * above[k] : LEAST - Doubles{};
    return (Words)(most < above[k]) & (Words)(most >= least);
  }
  struct Lanes {
    Doubles sum[2], rest[2], most[2]; /* most: the greatest magnitudes */
  };
  GPR_METHOD bool add(const Piece<double> &rows, bool exactly) {
    if (exactly) return add_rows<true>(parts(), rows);
    Lanes l = {{sum[0], sum[1]}, {rest[0], rest[1]}, {}};
    const double *at = rows.x;
    for (int64_t row = 0; row < rows.n; row++, at += rows.stride) {
      if (rows.ahead) prefetch_later<STEP>(at, rows.ahead);
      const Doubles x = rows.get(at, 0), y = rows.get(at, 1);
      l.most[0] = greater_size(l.most[0], x);
      l.most[1] = greater_size(l.most[1], y);
      l.rest[0] += leave(l.sum[0], x);
      l.rest[1] += leave(l.sum[1], y);
    }
    const Words usual = fit(l.most[0], 0) & fit(l.most[1], 1) & (Words)(size_of(l.rest[0]) > 0) &
                        (Words)(size_of(l.rest[1]) > 0);
    if (mask_of(~usual)) return add_unusual(rows, l);
    is_usual = true;
    keep(l);
    return infinite;
  }
  GPR_METHOD void keep(const Lanes &l) {
    is_new = false;
    for (int k = 0; k < 2; k++) {
      sum[k] = l.sum[k];
      rest[k] = l.rest[k];
    }
  }
  GPR_APART bool add_unusual(const Piece<double> &rows, const Lanes &l) {
    Words odd[2], misfit = {};
    for (int k = 0; k < 2; k++) {
      odd[k] = (Words)(l.sum[k] - l.sum[k] != 0);
      const Words great = (Words)(l.most[k] >= above[k]) & (Words)(l.most[k] < __builtin_inf());
      misfit |= great | ~(odd[k] | fit(l.most[k], k) | (Words)(l.most[k] == 0));
    }
    if (mask_of(misfit)) return add_again(rows, l.most);
    keep(l);
    if (mask_of(odd[0] | odd[1])) set_aside(rows, odd);
    for (int k = 0; k < 2 && !is_usual; k++) {
      zero[k] = sum_of_zeros(rows, k, (Words)(l.most[k] == 0));
      rough[k] |= (Words)(rest[k] != 0);
      if (mask_of(~rough[k])) rough[k] |= rests(rows, k);
    }
    return infinite;
  }
  /* Lanes that have met what is not finite, which decides alone. */
  GPR_APART void set_aside(const Piece<double> &rows, const Words *odd) {
    K special[2];
    special[0].open(), special[1].open();
    infinite |= look_for_special(special, rows);
    for (int k = 0; k < 2; k++) {
      parts()[k].special += special[k].special;
      sum[k] = choose(odd[k], START * above[k], sum[k]);
      rest[k] = (Doubles)(bits(rest[k]) & ~odd[k]);
    }
  }
  GPR_METHOD Doubles sum_of_zeros(const Piece<double> &rows, int k, const Words none) const {
    Doubles all = zero[k];
    for (int64_t row = 0; row < rows.n && mask_of(none); row++)
      all += rows.get(rows.x + row * rows.stride, k);
    return (Doubles)(none & bits(all));
  }
  /* Lanes of numbers that are no whole units; rests of zero alone may have cancelled. */
  GPR_METHOD Words rests(const Piece<double> &rows, int k) const {
    Words any = {};
    for (int64_t row = 0; row < rows.n; row++) {
      Doubles start = START * above[k];
      any |= (Words)(leave(start, rows.get(rows.x + row * rows.stride, k)) != 0);
    }
    return any;
  }
  /* With another power of two; or where there is none, as sums that carry their errors along. */
  GPR_APART bool add_again(const Piece<double> &rows, const Doubles *most) {
    Words odd = {};
    put(parts());
    for (int k = 0; k < 2; k++) {
      const Words none = (Words)(most[k] == 0) | (Words)(most[k] - most[k] != 0);
      const Doubles power = ROOM * (Doubles)(bits(most[k]) & 0x7ffull << 52);
      const Words stays = none | (is_new ? Words{} : (Words)(power < above[k]));
      odd |= ~(none | ((Words)(most[k] >= LEAST) & (Words)(most[k] <= MOST)));
      above[k] = choose(stays, above[k], power);
    }
    const bool is_held = !mask_of(odd);
    if (!is_held) above[0] = above[1] = ROOM - Doubles{};
    begin();
    if (is_held) return add(rows, false);
    K one[2];
    one[0].open(), one[1].open();
    infinite |= add_rows<false>(one, rows);
    for (int k = 0; k < 2; k++) {
      one[k].settle((double)(rows.n + 4));
      part[k].merge(one[k]);
    }
    return infinite;
  }
  GPR_METHOD bool close(K *to, int64_t, bool, bool is_first) {
    if (is_first) to[0].open(), to[1].open();
    put(to);
    for (int k = 0; has_part && k < 2; k++) to[k].merge(part[k]);
    return false;
  }
};

GPR_CLOSE
#endif
