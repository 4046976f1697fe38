/* Blocks of doubles by error-free extraction (Rump, Ogita, Oishi, "Accurate floating-point
 * summation", 2008): each lane's sum starts so high that it counts its numbers in units of one
 * size, exactly; what these leave is added up beside it, and nearly exact. */
#pragma once

#include "step_blocks.h"

GPR_OPEN

/* Four additions a number, where sums that carry their errors along take eight. `above`, a power of
 * two, is above all numbers that are there: the first rows of a lane say which, and so does what is
 * greater than that, or so small that the unit says little of it. */
template <> struct StepBlock<TwofoldSum<Doubles>, double> {
  enum { ROWS = BLOCK_ROWS, TOGETHER = 1 };
  typedef TwofoldSum<Doubles> K;
  static constexpr double ROOM = 0x1p8, FAR = 0x1p-18; /* above the greatest, and below */
  static constexpr double LEAST = 0x1p-1000, MOST = 0x1p900;
  /* A unit is 2^-43 of above, and ROWS numbers stay in the binade. What n of them leave is at most
   * half a unit each, n of these together, of which each addition rounds away 2^-53. */
  static constexpr double START = 0x1.8p9, OFF = 0x1p-97;
  static_assert(ROWS == 256, "");
  struct Lanes {
    Doubles sum, rest, most; /* most: the greatest magnitudes of an output */
    Words rough;             /* bits of what is left */

    GPR_METHOD void take(const Doubles x) {
      const Doubles from = sum;
      sum += x;
      const Doubles left = minus(x, minus(sum, from));
      rest += left;
      rough |= bits(left);
      most = greater_size(most, x);
    }
  };
  Lanes lane[2];
  Doubles above[2];
  bool has_above = false, has_part, is_wild, is_one; /* one: a row, of which all lanes are */
  K part[2];                                         /* seldom */

  GPR_METHOD void open(bool is_first, bool one) {
    is_one = one;
    if (!has_above) above[0] = above[1] = ROOM - Doubles{};
    for (int k = 0; is_first && k < 2; k++) lane[k].most = Doubles{};
    if (is_first) is_wild = false;
    has_above = true;
    has_part = false;
    begin();
  }
  GPR_METHOD void begin() {
    for (int k = 0; k < 2; k++) {
      lane[k].sum = START * above[k];
      lane[k].rest = -Doubles{}; /* and so it stays of nothing but such zeros */
      lane[k].rough = Words{};
    }
  }
  GPR_METHOD K *parts() {
    if (!has_part) part[0].open(), part[1].open();
    has_part = true;
    return part;
  }
  /* The sums of n numbers. */
  GPR_METHOD void put(K *to, int64_t n, bool is_first) const {
    const double off = OFF * (double)(n * n);
    for (int k = 0; k < 2; k++) {
      const Doubles one = lane[k].sum - START * above[k];
      const Words none = (Words)(one == 0);
      const Doubles high = choose(none, lane[k].rest, one);
      const Doubles low = (Doubles)(~none & bits(lane[k].rest));
      const Doubles error = (Doubles)((Words)(lane[k].rough << 1 != 0) & bits(off * above[k]));
      if (is_first) {
        to[k] = {{high, low}, error, Doubles{}};
      } else {
        to[k].add_exactly(high);
        to[k].add_low(low);
        to[k].errors += error;
      }
    }
  }
  GPR_METHOD Words fit(const Doubles most, const Doubles all, int k) const {
    return (Words)(most < above[k]) & (Words)(all >= FAR * above[k]);
  }
  static GPR_METHOD void add_to(Lanes *l, const Piece<double> &rows) {
    Lanes a = l[0], b = l[1];
    rows.each([&](const Doubles x, const Doubles y) GPR_INLINED {
      a.take(x);
      b.take(y);
    });
    l[0] = a;
    l[1] = b;
  }
  GPR_METHOD bool add(const Piece<double> &rows, bool exactly) {
    if (exactly) return add_rows<true>(parts(), rows);
    if (is_wild) return add_wild(rows);
    Lanes l[2] = {lane[0], lane[1]};
    add_to(l, rows);
    const Doubles rest = l[0].rest + l[1].rest;
    const Words fits = fit(l[0].most, l[0].most, 0) & fit(l[1].most, l[1].most, 1);
    if (mask_of(~(fits & (Words)(rest == rest)))) return add_unusual(rows, l);
    lane[0] = l[0];
    lane[1] = l[1];
    return false;
  }
  /* Lanes of zeros, which fit as they are, of what is not finite, or of what does not fit. */
  GPR_APART bool add_unusual(const Piece<double> &rows, Lanes *l) {
    Words odd[2], misfit[2];
    double all = 0;
    /* With AVX-512 the greater magnitude of a signalling NaN is NaN. */
    for (int k = 0; k < 2; k++) l[k].most = l[k].most > 0 ? l[k].most : Doubles{};
    for (int i = 0; is_one && i < STEP; i++) all = greatest(all, l[i / WIDTH].most[i % WIDTH]);
    for (int k = 0; k < 2; k++) {
      const Doubles most = is_one ? all - Doubles{} : l[k].most;
      const Words great = (Words)(l[k].most >= above[k]) & (Words)(l[k].most < __builtin_inf());
      odd[k] = (Words)(l[k].rest != l[k].rest) & ~great; /* which may have overflown */
      misfit[k] = ~(odd[k] | fit(l[k].most, most, k) | (Words)(l[k].most == 0));
    }
    if (!mask_of(misfit[0] | misfit[1])) return keep(rows, l, odd);
    is_wild = mask_of((Words)(l[0].most > MOST) | (Words)(l[1].most > MOST));
    return is_wild ? add_wild(rows) : add_again(rows, l, misfit, all);
  }
  /* Lanes that have met what is not finite, which decides alone, without that. */
  GPR_METHOD bool keep(const Piece<double> &rows, Lanes *l, const Words *odd) {
    const bool infinite = mask_of(odd[0] | odd[1]) && set_aside(rows, l, odd);
    lane[0] = l[0];
    lane[1] = l[1];
    return infinite;
  }
  GPR_METHOD bool set_aside(const Piece<double> &rows, Lanes *l, const Words *odd) {
    K special[2];
    Words huge = {}, unclear = {}; /* the sum: NaN or, of infinities of one sign alone, that */
    for (int k = 0; k < 2; k++) {
      special[k].open();
      special[k].special = (Doubles)(odd[k] & bits(l[k].sum));
      huge |= (Words)(l[k].most == __builtin_inf());
      unclear |= (Words)(l[k].most == __builtin_inf()) & (Words)(l[k].sum != l[k].sum);
    }
    bool infinite = mask_of(huge);
    if (mask_of(unclear)) {
      special[0].open(), special[1].open();
      infinite = look_for_special(special, rows);
    }
    parts();
    for (int k = 0; k < 2; k++) {
      part[k].special += special[k].special;
      l[k].sum = choose(odd[k], START * above[k], l[k].sum);
      l[k].rest = (Doubles)(bits(l[k].rest) & ~odd[k]);
      l[k].rough &= ~odd[k];
      l[k].most = choose(odd[k], lane[k].most, l[k].most);
    }
    return infinite;
  }
  /* What no power of two is above, as sums that carry their errors along. */
  GPR_APART bool add_wild(const Piece<double> &rows) {
    K one[2];
    one[0].open(), one[1].open();
    const bool infinite = add_rows<false>(one, rows);
    for (int k = 0; k < 2; k++) {
      one[k].settle((double)(rows.n + 4));
      parts()[k].merge(one[k]);
    }
    return infinite;
  }
  /* Above what is greatest now. */
  GPR_METHOD bool add_again(const Piece<double> &rows, Lanes *l, const Words *misfit, double all) {
    put(parts(), ROWS, false);
    for (int k = 0; k < 2; k++) {
      const Doubles most = is_one ? all - Doubles{} : l[k].most;
      Doubles power = ROOM * (Doubles)(bits(most) & 0x7ffull << 52);
      power = choose((Words)(power > LEAST), power, LEAST - Doubles{});
      above[k] = choose(misfit[k] | (Words)(power > above[k]), power, above[k]);
    }
    begin();
    for (int k = 0; k < 2; k++) l[k] = lane[k];
    add_to(l, rows);
    const Words odd[2] = {(Words)(l[0].rest != l[0].rest), (Words)(l[1].rest != l[1].rest)};
    return keep(rows, l, odd);
  }
  GPR_METHOD bool close(K *to, int64_t n, bool exactly, bool is_first) {
    if (!exactly)
      put(to, n, is_first);
    else if (is_first)
      to[0].open(), to[1].open();
    for (int k = 0; has_part && k < 2; k++) to[k].merge(part[k]);
    return false;
  }
};

GPR_CLOSE
