/* Sums of few rows, lane by lane, of numbers of any range. */
#pragma once

#include "bounds.h"
#include "step_blocks.h"

GPR_OPEN

enum { FEW_ROWS = 128 };

/* Two steps of vectors of some rows: where these begin, and how far apart the rows are. places: as
 * a tile's. */
template <class R> struct FewSteps {
  enum { STEPS = 2, LANES = STEPS * STEP, ALL = 2 * STEPS }; /* of a row; vectors of it */
  const R *at[STEPS];
  int64_t rows, stride, ahead; /* ahead: the next ones lie so far from them, or 0 */
  const int64_t *places;

  /* Calls take(step, a step of a row) for all rows. */
  template <class Take> GPR_METHOD void each(const Take &take) const {
    const FewSteps f = *this; /* which no store changes */
    for (int64_t row = 0; row < f.rows; row++) {
      const int64_t next = f.places ? f.places[row] / (int64_t)sizeof(R) : row * f.stride;
      for (int s = 0; s < STEPS; s++) {
        if (f.ahead) prefetch_later<STEP>(f.at[s] + next, f.ahead);
        take(s, f.at[s] + next);
      }
    }
  }
  /* So many bits hold one of a row. */
  int headroom() const { return rows > 1 ? 64 - leading_zeros((uint64_t)(rows - 1)) : 0; }
};

template <class R> struct FewRows;

/* Doubles hold the sums of floats that lie close together, and of others nearly. */
template <> struct FewRows<float> : FewSteps<float> {
  Doubles sum[ALL], off[ALL];   /* off: less than 0, or 0.0 where they are exact */
  bool exact, infinite = false; /* infinite: there is such an element */

  /* Whether an element is infinite. */
  GPR_METHOD bool add() {
    Sizes<float> sizes[STEPS];
    Doubles part[ALL], all = {};
    for (int v = 0; v < ALL; v++) part[v] = -Doubles{};
    each([&](int s, const float *x) {
      sizes[s].see(x);
      for (int k = 0; k < 2; k++) part[2 * s + k] += load(x + k * WIDTH);
    });
    exact = !mask_of(sizes[0].far_apart(range()) | sizes[1].far_apart(range()));
    for (int v = 0; v < ALL; v++) all += sum[v] = part[v];
    if (mask_of((Words)(all != all)))
      for (int v = 0; v < ALL; v++)
        sum[v] = choose((Words)(sum[v] == sum[v]), sum[v], quiet_nan<double>() - Doubles{});
    return !exact && bound(sizes);
  }
  int range() const { return 53 - 24 - headroom(); }
  /* What they may be off by. */
  GPR_APART bool bound(const Sizes<float> *sizes) {
    Words32 huge = {};
    for (int s = 0; s < STEPS; s++) {
      Doubles by[2];
      sizes[s].bounds(range(), (double)rows, by);
      for (int k = 0; k < 2; k++) {
        const Doubles one = sum[2 * s + k];
        off[2 * s + k] = (Doubles)(bits(Doubles{} - by[k]) & (Words)(one - one == 0));
      }
      huge |= sizes[s].are_infinite();
    }
    return infinite = mask_of(huge);
  }
  /* A vector of them, divided if DIVIDED; bits as decided()'s, and of lanes that are not sure. */
  template <bool DIVIDED> GPR_METHOD uint64_t round(int v, const Divisor &by, float *to) const {
    const Doubles one = sum[v];
    if (exact && DIVIDED) return divide_narrow(one, by.n, to);
    const uint64_t odd = infinite ? decided(one) : 0;
    if (DIVIDED) return divide_close(one, size_of(off[v]), by.n, by.over, to) | odd;
    round_lanes(one, to);
    if (exact) return 0;
    const Doubles lost = size_of(one - load((const float *)to));
    const Doubles half =
        (Doubles)(bits(one) & 0x7ffull << 52) * 0x1p-24; /* of a float's last bit */
    return signs_of(bits(off[v]) & ~bits(lost - off[v] - half)) | odd;
  }
};

/* The greatest of a lane tells where to cut its numbers: what lies above adds up exactly, and so
 * does the rest, unless the least lies too far below. Idea: error-free extraction (Rump, Ogita,
 * Oishi, "Accurate floating-point summation", 2008), of each lane by itself. */
template <> struct FewRows<double> : FewSteps<double> {
  static constexpr double MOST = 0x1p1000; /* below nothing overflows */
  struct Lanes {
    Doubles most[ALL], least[ALL]; /* magnitudes */
    Doubles high[ALL], low[ALL];   /* the sum of what lies above, and nearly of the rest */
  };
  alignas(GPR_VECTOR) double kept[FEW_ROWS * LANES];
  Lanes lanes;
  bool exact, zeros = false, infinite = false; /* infinite: there has been such an element */

  /* Keeps them for a second look. ZEROS: these are not the least. */
  template <bool ZEROS> GPR_METHOD void look(Lanes &l) {
    Sizes<double> sizes[STEPS];
    double *to = kept;
    each([&](int s, const double *x) {
      for (int k = 0; k < 2; k++, to += WIDTH) {
        const Doubles d = load(x + k * WIDTH);
        if (ZEROS)
          sizes[s].see_but_zero(d, k);
        else
          sizes[s].see(d, k);
        memcpy(to, &d, sizeof d);
      }
    });
    for (int v = 0; v < ALL; v++) {
      l.most[v] = sizes[v / 2].most[v % 2];
      l.least[v] = sizes[v / 2].least[v % 2];
    }
  }
  GPR_METHOD void add_parts(Lanes &l) const {
    const double above = 1.5 * power_of_two(headroom() + 2);
    Doubles start[ALL], sum[ALL], rest[ALL];
    for (int v = 0; v < ALL; v++) {
      start[v] = sum[v] = (Doubles)(bits(l.most[v]) & 0x7ffull << 52) * above;
      rest[v] = Doubles{};
    }
    for (const double *x = kept, *end = x + rows * LANES; x < end; x += LANES)
      for (int v = 0; v < ALL; v++) rest[v] += rest_of(sum[v], load(x + v * WIDTH));
    for (int v = 0; v < ALL; v++) {
      l.high[v] = sum[v] - start[v];
      l.low[v] = rest[v];
    }
  }
  /* Negative where the rests' sum is exact, and a lane not all zeros. These are below 2^headroom
   * units of the last bit above, which is 50 - headroom below the greatest's first. */
  GPR_METHOD Doubles nearness(const Lanes &l, int v) const {
    return l.most[v] * power_of_two(2 * headroom() - 52) - l.least[v];
  }
  GPR_METHOD bool add() {
    Lanes l;
    Words near = ~Words{};
    Doubles all = {};
    zeros ? look<true>(l) : look<false>(l);
    add_parts(l);
    for (int v = 0; v < ALL; v++) {
      near &= bits(nearness(l, v));
      if (zeros) near &= (Words)(l.most[v] != 0);
      all += l.high[v] + l.low[v];
    }
    exact = !mask_of((Words)((Counts)near >= 0) | ~(Words)(all - all == 0));
    lanes = l;
    return !exact && is_odd();
  }
  /* The same where there is what is not finite, or zeros; whether an element has been infinite. */
  GPR_APART bool is_odd() {
    Words odd = {};
    Lanes &l = lanes;
    for (int v = 0; v < ALL; v++) {
      const Words huge = (Words)(l.most[v] == __builtin_inf());
      const Words nan = huge | ((Words)(l.high[v] != l.high[v]) & ~(Words)(l.most[v] >= MOST));
      const int64_t all = mask_of(huge) ? rows : 0;
      Doubles special = {}; /* a part of the sum is so as well, and does not overflow */
      for (int64_t row = 0; row < all; row++)
        special += 0x1p-10 * load(kept + v * WIDTH + row * LANES);
      infinite |= all > 0;
      const Words finite = (Words)(l.high[v] - l.high[v] == 0);
      if (mask_of((Words)(l.least[v] == 0))) {
        zeros = true; /* and so are the next */
        l.least[v] = Sizes<double>::least_of(kept + v * WIDTH, LANES, rows);
      }
      special =
          choose(huge & (Words)(special == special), special, quiet_nan<double>() - Doubles{});
      l.high[v] = choose(nan, special, l.high[v]);
      l.low[v] = (Doubles)(bits(l.low[v]) & ~nan);
      const Words zero = (Words)(l.most[v] == 0); /* of either sign */
      odd |= ~nan & ((Words)((Counts)nearness(l, v) >= 0) | zero | ~finite);
    }
    exact = !mask_of(odd);
    return infinite;
  }
  template <bool DIVIDED> GPR_METHOD uint64_t round(int v, const Divisor &by, double *to) const {
    const uint64_t bits = infinite ? decided(lanes.high[v]) : 0;
    if (!DIVIDED) return round_lanes(lanes.high[v] + lanes.low[v], to), bits;
    return divide_exact(lanes.high[v], lanes.low[v], by, to) | bits;
  }
  /* Where they are not exact. */
  GPR_APART void close(TwofoldSum<Doubles> *to) {
    const double off = power_of_two(headroom() - 105) * (double)(rows * rows);
    Words special = {};
    for (int v = 0; v < ALL; v++) {
      const double *x = kept + v * WIDTH;
      const Words zero = (Words)(lanes.most[v] == 0);
      Doubles sum = load(x);
      for (int64_t row = 1; row < rows && mask_of(zero); row++) sum += load(x + row * LANES);
      to[v].begin(choose(zero, sum, lanes.high[v]));
      to[v].sum.low = lanes.low[v];
      to[v].errors = (Doubles)(bits(off * lanes.most[v]) & ~(Words)(nearness(lanes, v) < 0));
      special |= (Words)(lanes.high[v] - lanes.high[v] != 0);
    }
    for (int s = 0; mask_of(special) && s < STEPS; s++)
      look_for_special(to + 2 * s, Piece<double>{kept + s * STEP, LANES, rows, 0});
  }
};

GPR_CLOSE
