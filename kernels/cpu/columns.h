/* Many outputs side by side: vectors across columns, whose lanes never meet.
 *
 * A strip is some columns of a matrix of reals. Each lane has a window of its own (exact.h), and
 * counts in it as long as the window catches everything; a column that it does not is left to the
 * caller, who folds it by itself. Short rows are turned into columns, long ones into columns that
 * are added up. */
#ifndef GPR_COLUMNS_H
#define GPR_COLUMNS_H

#include "carried.h"

#include "../core/round.h"

GPR_OPEN

/* --- a sum as an integer that fits a register or two -------------------------------------------
 */

static constexpr int LEVELS = GPR_HEADROOM - 51 - (2 * GPR_HEADROOM - 103); /* unit1 - unit2 */

/* high·2^(unit + LEVELS) + low·2^unit. */
struct Count {
  int64_t high, low;
  int unit;
  bool missed; /* something was not caught */
};

/* Two doubles of which the second is 0 or T is a double need but one rounding. */
template <class R> GPR_FN bool round_by_doubles(const Count &c, R *to) {
  const int64_t most = 1ll << 53;
  if (c.unit < -1022 || c.high > most || c.high < -most || c.low > most || c.low < -most)
    return false;
  if (c.low && sizeof(R) < sizeof(double)) return false;
  const double high = (double)c.high * power_of_two(c.unit + LEVELS);
  *to = (R)(high + (double)c.low * power_of_two(c.unit));
  return true;
}
/* Divided by n and rounded once. */
template <class R> GPR_FN R round_count(const Count &c, uint32_t n) {
  R quick;
  if constexpr (sizeof(R) >= sizeof(float))
    if (n == 1 && round_by_doubles(c, &quick)) return quick;
  const __int128 value = ((__int128)c.high << LEVELS) + c.low;
  const Leading sum = leading_of(value < 0 ? -(uint128)value : (uint128)value, c.unit);
  return round_leading<R>(over(sum, n), value < 0);
}

/* --- lanes -------------------------------------------------------------------------------------
 */

/* What LANES columns have counted. */
struct Lanes {
  Doubles start[VECTORS];
  Words count1[VECTORS], count2[VECTORS], missed[VECTORS];
  int top[LANES];
};

/* Into tops the exponents (as top_of() has them) of the largest magnitudes of each column. */
template <class R, class I, int SHIFT, int BIAS>
GPR_FN void raise_tops(int *top, const R *x, int64_t stride, int64_t rows) {
  const I no_sign = (I)(~(I)0 ^ (I)1 << (8 * sizeof(I) - 1));
  I most[LANES] = {}; /* signed, as AVX2 compares */
  for (int64_t row = 0; row < rows; row++)
    for (int l = 0; l < LANES; l++) {
      const I b = copy_bits<I>(x[row * stride + l]) & no_sign;
      most[l] = most[l] < b ? b : most[l];
    }
  for (int l = 0; l < LANES; l++) top[l] = greatest(top[l], (int)(most[l] >> SHIFT) - BIAS + 1);
}
GPR_FN void raise_tops(int *top, const float *x, int64_t stride, int64_t rows) {
  raise_tops<float, int32_t, 23, 127>(top, x, stride, rows);
}
GPR_FN void raise_tops(int *top, const double *x, int64_t stride, int64_t rows) {
  raise_tops<double, int64_t, 52, 1023>(top, x, stride, rows);
}

/* What is not finite has the greatest exponent: no window will catch it. */
GPR_FN void open_lanes(Lanes &s) {
  double start[LANES];
  for (int l = 0; l < LANES; l++) {
    s.top[l] = greatest(least(s.top[l], (int)GPR_TOP_MAX), (int)GPR_TOP_MIN);
    start[l] = 1.5 * power_of_two(s.top[l] + GPR_HEADROOM - 51 + 52);
  }
  memcpy(s.start, start, sizeof start);
  memset(s.count1, 0, sizeof s.count1);
  memset(s.count2, 0, sizeof s.count2);
  memset(s.missed, 0, sizeof s.missed);
}

/* Vectors that a loop over rows goes through at a time: a cache line of doubles, where 16 registers
 * would not do for all VECTORS. */
enum { ABREAST = WIDTH < 8 ? 2 : VECTORS };

/* At most GPR_BATCH rows. */
template <class R>
GPR_FN void add_rows(Lanes &s, const R *x, int64_t stride, int64_t rows, int64_t ahead = 0) {
  const double down = power_of_two(-LEVELS);
  for (int w = 0; w < VECTORS; w += ABREAST, x += ABREAST * WIDTH) {
    Doubles start[ABREAST], sum1[ABREAST], sum2[ABREAST];
    Words away[ABREAST] = {}, lost[ABREAST] = {};
    for (int v = 0; v < ABREAST; v++) {
      start[v] = sum1[v] = s.start[w + v];
      sum2[v] = start[v] * down;
    }
    const R *at = x;
    for (int64_t row = 0; row < rows; row++, at += stride) {
      prefetch_later<ABREAST * WIDTH>(at, ahead);
      for (int v = 0; v < ABREAST; v++)
        add_two_levels(sum1[v], sum2[v], away[v], lost[v], start[v], load(at + v * WIDTH));
    }
    for (int v = 0; v < ABREAST; v++) {
      s.count1[w + v] += bits(sum1[v]) - bits(start[v]);
      s.count2[w + v] += bits(sum2[v]) - bits(start[v] * down);
      s.missed[w + v] |= away[v] >> 52 | lost[v] << 1;
    }
  }
}

/* Doubles whose exponents are among the 32 below the windows' tops: as Adder::add_close(), for each
 * lane by itself. False: nothing was added. */
GPR_FN bool add_close_rows(Lanes &s, const double *x, int64_t stride, int64_t rows, int64_t ahead) {
  const double down = power_of_two(-LEVELS);
  const uint64_t above = (uint64_t)(GPR_HEADROOM + 1 + 32) << 52 | 1ull << 51;
  Doubles sum1[VECTORS], sum2[VECTORS];
  Words outside = {};
  for (int w = 0; w < VECTORS; w += ABREAST, x += ABREAST * WIDTH) {
    Words lowest[ABREAST];
    for (int v = 0; v < ABREAST; v++) {
      sum1[w + v] = s.start[w + v], sum2[w + v] = s.start[w + v] * down;
      lowest[v] = bits(s.start[w + v]) - above;
    }
    const double *at = x;
    for (int64_t row = 0; row < rows; row++, at += stride) {
      prefetch_later<ABREAST * WIDTH>(at, ahead);
      for (int v = 0; v < ABREAST; v++) {
        const Doubles d = load(at + v * WIDTH);
        outside |= bits(d) - lowest[v];
        sum2[w + v] += rest_of(sum1[w + v], d);
      }
    }
  }
  uint64_t any = 0;
  for (int l = 0; l < WIDTH; l++) any |= outside[l];
  if (any << 1 >> 58) return false; /* an exponent is 32 or more above the lowest, or below it */
  for (int v = 0; v < VECTORS; v++) {
    s.count1[v] += bits(sum1[v]) - bits(s.start[v]);
    s.count2[v] += bits(sum2[v]) - bits(s.start[v] * down);
  }
  return true;
}

/* Sums of floats in doubles, which are exact where the exponents are close. */
struct Plain {
  Doubles sum[VECTORS];
  Words32 high[VECTORS / 2], low[VECTORS / 2]; /* the magnitudes' bits, shifted; zero is no low */

  GPR_METHOD void open() {
    for (int v = 0; v < VECTORS; v++) sum[v] = -Doubles{};
    for (int v = 0; v < VECTORS / 2; v++) high[v] = Words32{}, low[v] = ~Words32{};
  }
  GPR_METHOD void add(const float *x, int64_t stride, int64_t rows, int64_t ahead = 0) {
    Plain p = *this;
    for (int64_t row = 0; row < rows; row++) {
      prefetch_later<LANES>(x + row * stride, ahead);
      for (int v = 0; v < VECTORS; v += 2) {
        const float *at = x + row * stride + v * WIDTH;
        Words32 b;
        memcpy(&b, at, sizeof b);
        b += b; /* no sign */
        p.high[v / 2] = p.high[v / 2] > b ? p.high[v / 2] : b;
        b -= 1; /* zero becomes the greatest */
        p.low[v / 2] = p.low[v / 2] < b ? p.low[v / 2] : b;
        p.sum[v] += load(at);
        p.sum[v + 1] += load(at + WIDTH);
      }
    }
    *this = p;
  }
  /* Bits of the lanes whose sum of 2^carries numbers at most is not sure. */
  GPR_METHOD uint64_t unsure(int carries) const {
    const uint32_t spread = (uint32_t)(53 - 24 - carries) << 24, infinity = 0xff000000u;
    uint64_t missed = 0;
    for (int v = 0; v < VECTORS / 2; v++) {
      const Words32 most = high[v] & infinity, fewest = (low[v] + 1) & infinity;
      const Words32 far = (Words32)((most - fewest > spread) & (most > fewest));
      missed |= mask_of(far | (Words32)(most == infinity)) << (v * 2 * WIDTH);
    }
    return missed;
  }
};

/* The sums of all lanes, where a double holds each or, if wide, two do; bits of the lanes of which
 * that is not so, or whose sum is zero. */
GPR_FN uint64_t sums_of(const Lanes &s, bool wide, const double *by, double *to) {
  const Words one = 1 - Words{}, half = one << 51, unit = 52 * (one << 52);
  const Doubles magic = (Doubles)(((1023 + 52) * one) << 52 | half); /* 1.5·2^52 */
  uint64_t missed = 0;
  for (int v = 0; v < VECTORS; v++) {
    const Words unit1 = bits(s.start[v]) - half - unit, unit2 = unit1 - LEVELS * (one << 52);
    const Doubles high = (Doubles)(bits(magic) + s.count1[v]) - magic;
    const Doubles low = (Doubles)(bits(magic) + s.count2[v]) - magic;
    const Doubles above = high * (Doubles)unit1, below = low * (Doubles)unit2;
    Words unsure = {};
    const Doubles n = by ? load(by + v * WIDTH) : Doubles{};
    const Doubles sum = by ? round_pair(above, below, ~Words{}, n, unsure) : above + below;
    const Words far = ((s.count1[v] + half) | (s.count2[v] + half)) >> 52;
    const Words more = wide ? Words{} : s.count2[v];
    const Words tiny = (Words)(s.start[v] < 0x1p-900) | (Words)(bits(sum) << 1 == 0);
    missed |= mask_of((Words)((s.missed[v] | far | more | tiny | unsure) != 0)) << (v * WIDTH);
    memcpy(to + v * WIDTH, &sum, sizeof sum);
  }
  return missed;
}

GPR_FN Count count_of(const Lanes &s, int lane) {
  const int v = lane / WIDTH, l = lane % WIDTH;
  Count c;
  c.high = (int64_t)s.count1[v][l];
  c.low = (int64_t)s.count2[v][l];
  c.unit = s.top[lane] + 2 * GPR_HEADROOM - 103;
  c.missed = s.missed[v][l] != 0;
  return c;
}

GPR_CLOSE
#endif
