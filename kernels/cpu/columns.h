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

/* --- rows --------------------------------------------------------------------------------------
 */

/* The sum of n contiguous reals, which a double or two hold; false where that is not sure. */
GPR_FN bool row_sum(const float *x, int64_t n, double *to) {
  Plain p;
  p.open();
  p.add(x, LANES, n / LANES);
  if (n % LANES) {
    float rest[LANES] = {};
    memcpy(rest, x + n / LANES * LANES, (size_t)(n % LANES) * sizeof *x);
    p.add(rest, LANES, 1);
  }
  uint32_t most = 0, fewest = ~0u;
  double total = 0;
  for (int v = 1; v < VECTORS / 2; v++) {
    p.high[0] = p.high[0] > p.high[v] ? p.high[0] : p.high[v];
    p.low[0] = p.low[0] < p.low[v] ? p.low[0] : p.low[v];
  }
  for (int l = 0; l < 2 * WIDTH; l++) {
    most = greatest(most, (uint32_t)p.high[0][l]);
    fewest = least(fewest, (uint32_t)p.low[0][l]);
  }
  for (int v = 1; v < VECTORS; v++) p.sum[0] += p.sum[v];
  for (int l = 0; l < WIDTH; l++) total += p.sum[0][l];
  *to = total;
  const int spread = (int)(most >> 24) - (int)((fewest + 1) >> 24);
  return most && most < 0xff000000u && spread <= 53 - 24 - 12; /* GPR_SHORT are 2^12 */
}
/* Once through, as Adder::add_close(), in a window by the first numbers. */
GPR_FN bool close_row_sum(const double *x, int64_t n, double *to) {
  const int64_t full = n / LANES, rows = (n + LANES - 1) / LANES;
  const int top = top_of(x, (int)least(n, (int64_t)LANES)) + 2;
  if (top > GPR_TOP_MAX || top < GPR_TOP_MIN + 100) return false;
  const Window w = open_window(top);
  /* Beside the last numbers lies one that is caught, and counted. */
  enum { BESIDE = 50 - GPR_HEADROOM };
  double last[LANES];
  for (int l = 0; l < LANES; l++) last[l] = power_of_two(top - 1);
  memcpy(last, x + full * LANES, (size_t)(n - full * LANES) * sizeof *x);
  const Doubles start1 = w.start1 - Doubles{}, start2 = w.start2 - Doubles{};
  const Words lowest = (uint64_t)(top + 1023 - 32) << 52 | Words{};
  Words outside[VECTORS] = {}, count1 = {}, count2 = {};
  for (int64_t row = 0; row < rows;) {
    Doubles sum1[VECTORS], sum2[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum1[v] = start1, sum2[v] = start2;
    for (const int64_t stop = least(rows, row + GPR_BATCH); row < stop; row++) {
      const double *at = row < full ? x + row * LANES : last;
      for (int v = 0; v < VECTORS; v++) {
        const Doubles d = load(at + v * WIDTH);
        outside[v] |= bits(d) - lowest;
        sum2[v] += rest_of(sum1[v], d);
      }
    }
    for (int v = 0; v < VECTORS; v++) {
      count1 += bits(sum1[v]) - bits(start1);
      count2 += bits(sum2[v]) - bits(start2);
    }
  }
  for (int v = 1; v < VECTORS; v++) outside[0] |= outside[v];
  Count c = {-((rows * LANES - n) << BESIDE), 0, w.unit2, false};
  uint64_t any = 0;
  for (int l = 0; l < WIDTH; l++) {
    c.high += (int64_t)count1[l];
    c.low += (int64_t)count2[l];
    any |= outside[0][l];
  }
  if (any << 1 >> 58 || ((__int128)c.high << LEVELS) + c.low == 0) return false;
  *to = round_count<double>(c, 1);
  return true;
}
GPR_FN bool row_sum(const double *x, int64_t n, double *to) {
  if (close_row_sum(x, n, to)) return true;
  if (n > (int64_t)LANES * GPR_BATCH) return false;
  double rest[LANES] = {};
  memcpy(rest, x + n / LANES * LANES, (size_t)(n % LANES) * sizeof *x);
  Words most[VECTORS] = {};
  for (int64_t row = 0; row <= n / LANES; row++)
    for (int v = 0; v < VECTORS; v++) {
      Words b = bits(load((row < n / LANES ? x + row * LANES : rest) + v * WIDTH));
      b += b;
      most[v] = most[v] > b ? most[v] : b;
    }
  for (int v = 1; v < VECTORS; v++) most[0] = most[0] > most[v] ? most[0] : most[v];
  uint64_t highest = 0;
  for (int l = 0; l < WIDTH; l++) highest = greatest(highest, (uint64_t)most[0][l]);
  const int top = (int)(highest >> 53) - 1022;
  if (!highest || top > GPR_TOP_MAX || top < GPR_TOP_MIN + 100) return false;
  const Window w = open_window(top);
  const Doubles start1 = w.start1 - Doubles{}, start2 = w.start2 - Doubles{};
  Doubles sum1[VECTORS], sum2[VECTORS];
  Words away = {}, lost = {}, count1 = {}, count2 = {};
  for (int v = 0; v < VECTORS; v++) sum1[v] = start1, sum2[v] = start2;
  for (int64_t row = 0; row <= n / LANES; row++)
    for (int v = 0; v < VECTORS; v++) {
      const Doubles d = load((row < n / LANES ? x + row * LANES : rest) + v * WIDTH);
      add_two_levels(sum1[v], sum2[v], away, lost, start1, d);
    }
  for (int v = 0; v < VECTORS; v++) {
    count1 += bits(sum1[v]) - bits(start1);
    count2 += bits(sum2[v]) - bits(start2);
  }
  Count c = {0, 0, w.unit2, false};
  uint64_t any_away = 0, any_lost = 0;
  for (int l = 0; l < WIDTH; l++) {
    c.high += (int64_t)count1[l];
    c.low += (int64_t)count2[l];
    any_away |= away[l];
    any_lost |= lost[l];
  }
  return is_exact(any_away, any_lost) && (c.high | c.low) && round_by_doubles(c, to);
}

/* --- strips ------------------------------------------------------------------------------------
 */

/* Columns: of half as many, sums of (1024, 4096) doubles took a fifth longer on Zen 3. */
static constexpr int64_t STRIP = 512;
enum { STRIP_LANES = STRIP / LANES, STRIP_ROWS = GPR_BATCH * 128 };

/* Rows at a time: those of a matrix whose rows are a power of two apart compete for the same places
 * of the caches, which have 8 of them. */
enum { TOGETHER = 8 };
/* Floats' sums are plain for so many rows, 2^CARRIES. */
enum { CARRIES = 8, PLAIN_ROWS = 1 << CARRIES };

/* How many columns there are before the first whose rows start a cache line: NumPy's large arrays
 * lie 16 bytes beyond one, and 2^22 doubles in 512 rows, read across lines, took 2.4 ms in place of
 * 1.8 on Zen 3. LANES where the very first is one, or there is none, or few others. */
template <class R> GPR_FN int64_t lead_of(const R *x, int64_t stride, int64_t columns) {
  const int64_t line = least(64 / (int64_t)sizeof(R), (int64_t)LANES);
  const int64_t beyond = (int64_t)((uintptr_t)x / sizeof(R)) % line;
  return beyond && stride % line == 0 && columns >= 2 * LANES ? line - beyond : (int64_t)LANES;
}

template <class R> struct Strip {
  static constexpr bool narrow = sizeof(R) == sizeof(float);
  static constexpr int64_t SPAN = narrow ? (int)PLAIN_ROWS : (int)GPR_BATCH; /* rows for add() */
  /* Above the tops of the first rows: for what comes later, and for plain sums of many. */
  static constexpr int MARGIN = 4;
  static constexpr int PARTS = LANES / Carried<R>::COLUMNS;
  Lanes lanes[STRIP_LANES + 1];
  Plain plain[narrow ? STRIP_LANES + 1 : 1];
  Carried<R> carried[narrow ? 1 : STRIP_LANES / 2 * PARTS]; /* columns_for() few rows */
  R tail[GPR_BATCH * LANES];
  int64_t width, lead;   /* reals; those before the second lanes */
  int64_t height, above; /* rows of the strip; those before the ones that are woven */
  Tries close;

  void shape(int64_t columns, int64_t rows) {
    width = columns;
    lead = LANES;
    height = rows;
    above = 0;
    close = Tries();
  }
  /* How many columns are best for so many rows. */
  static int64_t columns_for(int64_t rows) {
    return narrow || rows > CARRIED_ROWS ? STRIP : STRIP / 2;
  }
  int64_t groups() const { return width > lead ? 1 + (width - lead + LANES - 1) / LANES : 1; }
  /* The first column of the g-th lanes. Those of the second and of the last may be others' too. */
  int64_t column_of(int64_t g) const {
    return g ? least(lead + (g - 1) * LANES, width - LANES) : 0;
  }
  /* Rows of fewer columns than lanes with zeros beside them. */
  const R *fill(const R *x, int64_t stride, int64_t rows) {
    memset(tail, 0, sizeof tail);
    for (int64_t row = 0; row < rows; row++)
      memcpy(tail + row * LANES, x + row * stride, (size_t)width * sizeof *x);
    return tail;
  }
  /* Calls take(rows of LANES reals, stride) for the g-th lanes. */
  template <class Take>
  void with_lanes(int64_t g, const R *x, int64_t stride, int64_t rows, const Take &take) {
    if (width >= LANES)
      take(x + column_of(g), stride);
    else
      take(fill(x, stride, rows), (int64_t)LANES);
  }
  /* Calls take(g, rows of the g-th lanes, stride, how many, how far ahead to look) for a few rows
   * of all lanes, then for the next few. What comes after the last of them is the next strip. */
  template <class Take> void weave(const R *x, int64_t stride, int64_t rows, const Take &take) {
    const int64_t all = groups(), steps = (height + TOGETHER - 1) / TOGETHER;
    const int64_t wanted = gpr_prefetch_columns / (int64_t)sizeof(R) / LANES;
    const int64_t far = least(wanted, steps * all), below = far / all, aside = far % all;
    for (int64_t row = 0; row < rows; row += TOGETHER)
      for (int64_t g = 0; g < all; g++) {
        const int64_t m = least(rows - row, (int64_t)TOGETHER), over = g + aside >= all;
        const int64_t down = (below + over) * TOGETHER;
        const int64_t next = above + row + down < height ? 0 : width - steps * TOGETHER * stride;
        const int64_t ahead = down * stride + next + (aside - over * all) * (int64_t)LANES;
        with_lanes(g, x + row * stride, stride, m,
                   [&](const R *at, int64_t step) { take(g, at, step, m, ahead); });
      }
  }

  void clear_tops() {
    for (int64_t g = 0; g < groups(); g++)
      for (int l = 0; l < LANES; l++) lanes[g].top[l] = INT32_MIN / 2;
  }
  /* From some first rows. */
  void raise(const R *x, int64_t stride, int64_t rows) {
    weave(x, stride, least(rows, (int64_t)TOGETHER),
          [&](int64_t g, const R *at, int64_t step, int64_t m, int64_t) {
            raise_tops(lanes[g].top, at, step, m);
          });
  }
  void open(int margin) {
    for (int64_t g = 0; g < groups(); g++) {
      for (int l = 0; l < LANES; l++) lanes[g].top[l] += margin;
      open_lanes(lanes[g]);
    }
  }

  void add_plain(const float *x, int64_t stride, int64_t rows) {
    for (int64_t g = 0; g < groups(); g++) plain[g].open();
    weave(x, stride, rows, [&](int64_t g, const float *at, int64_t step, int64_t m, int64_t ahead) {
      plain[g].add(at, step, m, ahead);
    });
  }
  void add_windows(int64_t g, const R *x, int64_t stride, int64_t rows) {
    for (int64_t row = 0; row < rows; row += GPR_BATCH) {
      const int64_t m = least(rows - row, (int64_t)GPR_BATCH);
      with_lanes(g, x + row * stride, stride, m,
                 [&](const R *at, int64_t step) { add_rows(lanes[g], at, step, m); });
    }
  }
  /* At most SPAN rows. */
  void add(const float *x, int64_t stride, int64_t rows) {
    if (!close.due())
      return weave(x, stride, rows,
                   [&](int64_t g, const float *at, int64_t step, int64_t m, int64_t ahead) {
                     add_rows(lanes[g], at, step, m, ahead);
                   });
    int64_t far = 0;
    add_plain(x, stride, rows);
    for (int64_t g = 0; g < groups(); g++) {
      double sum[LANES];
      memcpy(sum, plain[g].sum, sizeof sum);
      if (!plain[g].unsure(CARRIES)) {
        add_rows(lanes[g], sum, (int64_t)LANES, 1);
      } else {
        add_windows(g, x, stride, rows);
        far++;
      }
    }
    close.tell(2 * far <= groups());
  }
  void add(const double *x, int64_t stride, int64_t rows) {
    weave(x, stride, rows,
          [&](int64_t g, const double *at, int64_t step, int64_t m, int64_t ahead) {
            if (width < LANES || !close.due() ||
                !close.tell(add_close_rows(lanes[g], at, step, m, ahead)))
              add_rows(lanes[g], at, step, m, ahead);
          });
  }

  /* All of a strip of at most STRIP columns and STRIP_ROWS rows; stride in reals. */
  void run(const R *x, int64_t stride, int64_t columns, int64_t rows) {
    shape(columns, rows);
    lead = lead_of(x, stride, columns);
    clear_tops();
    raise(x, stride, rows);
    open(rows > TOGETHER ? MARGIN : 0);
    for (; above < rows; above += SPAN) add(x + above * stride, stride, least(rows - above, SPAN));
  }
  /* What run() has added up: store(first column, columns, sums, bits of those that sums_of() does
   * not tell). */
  template <class Store> void sums(const double *by, const Store &store) const {
    for (int64_t g = 0; g < groups(); g++) {
      double sum[LANES];
      const uint64_t missed = sums_of(lanes[g], !narrow, by ? by + column_of(g) : by, sum);
      store(column_of(g), least(width, (int64_t)LANES), sum, missed);
    }
  }
  /* Without run(): calls round(g, where to) for the sums of the g-th lanes, and rest(bits of those
   * that it is not sure of, first column, columns). */
  template <class Round, class Rest> void store_lanes(R *to, const Round &round, const Rest &rest) {
    for (int64_t g = 0; g < groups(); g++) {
      R sum[LANES];
      const int64_t first = column_of(g), lanes = least(width, (int64_t)LANES);
      uint64_t missed = round(g, lanes < LANES ? sum : to + first);
      if (lanes < LANES) {
        memcpy(to, sum, (size_t)lanes * sizeof *sum);
        missed &= (1ull << lanes) - 1;
      }
      if (missed) rest(missed, first, lanes);
    }
  }
  /* The sums of at most TOGETHER rows; zeros are sure. */
  template <class Rest>
  void few_sums(const R *x, int64_t stride, int64_t columns, int64_t rows, R *to,
                const Rest &rest) {
    shape(columns, rows);
    store_lanes(
        to,
        [&](int64_t g, R *sum) {
          uint64_t missed = 0;
          with_lanes(g, x, stride, rows,
                     [&](const R *at, int64_t step) { missed = sum_few(at, step, rows, sum); });
          return missed;
        },
        rest);
  }
  /* Of more rows; by: what each column is divided by, or NULL. */
  template <class Rest>
  void carried_sums(const R *x, int64_t stride, int64_t columns, int64_t rows, const double *by,
                    R *to, const Rest &rest) {
    shape(columns, rows);
    const auto each = [&](int64_t g, const auto &take) {
      for (int64_t k = 0; k < PARTS; k++) take(carried[g * PARTS + k], k * Carried<R>::COLUMNS);
    };
    for (int64_t g = 0; g < groups(); g++)
      with_lanes(g, x, stride, 1, [&](const R *at, int64_t) {
        each(g, [&](Carried<R> &c, int64_t j) { c.open(at + j); });
      });
    weave(x + stride, stride, rows - 1,
          [&](int64_t g, const R *at, int64_t step, int64_t m, int64_t ahead) {
            each(g, [&](Carried<R> &c, int64_t j) { c.add(at + j, step, m, ahead); });
          });
    store_lanes(
        to,
        [&](int64_t g, R *sum) {
          uint64_t missed = 0;
          each(g, [&](Carried<R> &c, int64_t j) {
            missed |= (by ? c.round(sum + j, by + column_of(g) + j) : c.round(sum + j)) << j;
          });
          return missed;
        },
        rest);
  }
  /* The same of at most SPAN rows of floats, of which so many are an element. */
  template <class Store>
  void plain_sums(const float *x, int64_t stride, int64_t columns, int64_t rows, int parts,
                  const Store &store) {
    shape(columns, rows);
    lead = lead_of(x, stride, columns);
    if (lead % parts) lead = LANES;
    add_plain(x, stride, rows);
    for (int64_t g = 0; g < groups(); g++) {
      double sum[LANES];
      memcpy(sum, plain[g].sum, sizeof sum);
      const uint64_t missed = plain[g].unsure(rows <= GPR_BATCH ? (int)GPR_HEADROOM : (int)CARRIES);
      store(column_of(g), least(width, (int64_t)LANES), sum, missed);
    }
  }
  Count count(int64_t column) const {
    const int64_t g = column < lead ? 0 : 1 + (column - lead) / LANES;
    return count_of(lanes[g], (int)(column - column_of(g)));
  }
};

/* --- ribbons -----------------------------------------------------------------------------------
 */

enum { RIBBON = 16 }; /* columns, at most: all multiples of LANES up to a strip's hold a ribbon */

/* A contiguous matrix of few columns, as one of as many columns as fill whole lanes. */
template <class R> struct Ribbon {
  Strip<R> strip;
  R rest[STRIP_LANES * LANES];
  int64_t period;

  /* All lanes of a column have one window, so that their counts add up. */
  void share_tops() {
    int top[RIBBON];
    for (int64_t c = 0; c < period; c++) top[c] = INT32_MIN;
    for (int64_t l = 0; l < strip.width; l++) {
      const int own = strip.lanes[l / LANES].top[l % LANES];
      top[l % period] = greatest(top[l % period], own);
    }
    for (int64_t l = 0; l < strip.width; l++)
      strip.lanes[l / LANES].top[l % LANES] = top[l % period];
  }
  /* reals of them, at most STRIP_ROWS rows of the widened matrix. */
  void run(const R *x, int64_t columns, int64_t reals) {
    int64_t width = columns;
    while (width % LANES) width += columns;
    period = columns;
    const int64_t rows = reals / width, more = reals - rows * width;
    strip.shape(width, rows);
    memset(rest, 0, (size_t)width * sizeof *rest);
    memcpy(rest, x + rows * width, (size_t)more * sizeof *x);
    strip.clear_tops();
    strip.raise(rest, width, 1);
    strip.raise(x, width, rows);
    share_tops();
    strip.open(rows > TOGETHER ? Strip<R>::MARGIN : 0);
    for (int64_t row = 0; row < rows; row += Strip<R>::SPAN)
      strip.add(x + row * width, width, least(rows - row, Strip<R>::SPAN));
    if (more) strip.add(rest, width, 1);
  }
  Count count(int64_t column) const {
    int64_t count1 = 0, count2 = 0;
    uint64_t missed = 0;
    for (int64_t l = column; l < strip.width; l += period) {
      const Lanes &s = strip.lanes[l / LANES];
      const int v = (int)(l % LANES) / WIDTH, i = (int)(l % LANES) % WIDTH;
      count1 += (int64_t)s.count1[v][i];
      count2 += (int64_t)s.count2[v][i];
      missed |= s.missed[v][i];
    }
    Count sum = count_of(strip.lanes[column / LANES], (int)(column % LANES));
    sum.high = count1;
    sum.low = count2;
    sum.missed = missed != 0;
    return sum;
  }
};

/* --- tiles -------------------------------------------------------------------------------------
 */

enum { TILE_BYTES = 32 << 10 };

/* Calls take(i, the i-th of n elements' address). Later compilers than GCC 12 would gather them by
 * one instruction, which takes ten times as long on Intel's processors since it was made safe. */
template <class Take> GPR_FN void walk(const char *at, int64_t step, int64_t n, const Take &take) {
  GPR_UNROLL(8)
  for (int64_t i = 0; i < n; i++, at += step) {
    asm("" : "+r"(at));
    take(i, at);
  }
}

/* Outputs that lie in any step, as columns of a tile: real `part` of element i of output o is at
 * tile[i * LANES + o * PARTS + part]. */
template <int PARTS, class T, class R>
static void fill_tile(R *tile, const char *data, int64_t across, int64_t along, int64_t outputs,
                      int64_t n) {
  for (int64_t o = 0; o < outputs; o++)
    walk(data + o * across, along, n, [&](int64_t i, const char *at) {
      T x[PARTS];
      memcpy(x, at, sizeof x);
      for (int p = 0; p < PARTS; p++) tile[i * LANES + o * PARTS + p] = wide(x[p]);
    });
}

/* Of at least two bytes. */
template <int BYTES> struct Signed { typedef int16_t type; };
template <> struct Signed<4> { typedef int32_t type; };
template <> struct Signed<8> { typedef int64_t type; };
template <> struct Signed<16> { typedef int64_t type; };
template <int BYTES> struct Unsigned { typedef uint64_t type; };
template <> struct Unsigned<1> { typedef uint8_t type; };
template <> struct Unsigned<2> { typedef uint16_t type; };
template <> struct Unsigned<4> { typedef uint32_t type; };

GPR_CLOSE
#endif
