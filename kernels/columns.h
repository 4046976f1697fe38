/* Many outputs side by side: vectors across columns, whose lanes never meet.
 *
 * A strip is some columns of a matrix of reals. Each lane has a window of its own (exact.cuh), and
 * counts in it as long as the window catches everything; a column that it does not is left to the
 * caller, who folds it by itself. Short rows are turned into columns, long ones into columns that
 * are added up. */
#ifndef GPR_COLUMNS_H
#define GPR_COLUMNS_H

#include "exact_lanes.h"

#include "big.cuh"

GPR_OPEN

/* --- a sum as an integer that fits a register or two -------------------------------------------
 */

/* value·2^unit. */
struct Count {
  __int128 value;
  int unit;
  bool missed; /* something was not caught */
};

/* The count divided by n, rounded once. n > 0 has 32 bits at most, so that the quotient has more
 * bits than are kept. */
GPR_FN Leading leading_of(const Count &c, uint32_t n) {
  const uint128 magnitude = c.value < 0 ? -(uint128)c.value : (uint128)c.value;
  Leading l = {0, 0, false};
  if (!magnitude) return l;
  const int zeros = magnitude >> 64 ? __builtin_clzll((uint64_t)(magnitude >> 64))
                                    : 64 + __builtin_clzll((uint64_t)magnitude);
  l.bits = magnitude << zeros;
  l.exponent = c.unit - zeros;
  if (n == 1) return l;
  const uint128 quotient = l.bits / n;
  l.sticky = quotient * n != l.bits;
  const int more = __builtin_clzll((uint64_t)(quotient >> 64)); /* n has less than 64 bits */
  l.bits = quotient << more;
  l.exponent -= more;
  return l;
}
template <class R> GPR_FN R round_count(const Count &c, uint32_t n) {
  typedef Format<R> F;
  const uint64_t sign = F::infinity() + (1ull << (F::precision - 1));
  return F::make((c.value < 0 ? sign : 0) | round_bits_of<R>(leading_of(c, n)));
}

/* --- lanes -------------------------------------------------------------------------------------
 */

/* What LANES columns have counted. */
struct Lanes {
  Doubles start[VECTORS];
  Words count1[VECTORS], count2[VECTORS], missed[VECTORS];
  int top[LANES];
};

static constexpr int LEVELS = GPR_HEADROOM - 51 - (2 * GPR_HEADROOM - 103); /* unit1 - unit2 */

/* Into tops the exponents (as top_of() has them) of the largest magnitudes of each column. */
template <class R, class U, int SHIFT, int BIAS>
GPR_FN void raise_tops(int *top, const R *x, int64_t stride, int64_t rows) {
  U most[LANES] = {};
  for (int64_t row = 0; row < rows; row++)
    for (int l = 0; l < LANES; l++) {
      const U b = (U)(copy_bits<U>(x[row * stride + l]) << 1);
      most[l] = most[l] < b ? b : most[l];
    }
  for (int l = 0; l < LANES; l++) top[l] = greatest(top[l], (int)(most[l] >> SHIFT) - BIAS + 1);
}
GPR_FN void raise_tops(int *top, const float *x, int64_t stride, int64_t rows) {
  raise_tops<float, uint32_t, 24, 127>(top, x, stride, rows);
}
GPR_FN void raise_tops(int *top, const double *x, int64_t stride, int64_t rows) {
  raise_tops<double, uint64_t, 53, 1023>(top, x, stride, rows);
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

/* At most GPR_BATCH rows. */
template <class R> GPR_FN void add_rows(Lanes &s, const R *x, int64_t stride, int64_t rows) {
  const double down = power_of_two(-LEVELS);
  Doubles sum1[VECTORS], sum2[VECTORS];
  Words away[VECTORS] = {}, lost[VECTORS] = {};
  for (int v = 0; v < VECTORS; v++) sum1[v] = s.start[v], sum2[v] = s.start[v] * down;
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v++) {
      const R *at = x + row * stride + v * WIDTH;
      add_two_levels(sum1[v], sum2[v], away[v], lost[v], s.start[v], load(at));
    }
  for (int v = 0; v < VECTORS; v++) {
    s.count1[v] += bits(sum1[v]) - bits(s.start[v]);
    s.count2[v] += bits(sum2[v]) - bits(s.start[v] * down);
    s.missed[v] |= away[v] >> 52 | lost[v] << 1;
  }
}

/* Floats whose exponents are so close that plain sums of doubles are exact and lie in the window's
 * first level: as Adder::add_close(), for each lane by itself. False: nothing was added. */
GPR_FN bool add_close_rows(Lanes &s, const float *x, int64_t stride, int64_t rows) {
  Doubles sum[VECTORS] = {};
  Words32 high[VECTORS / 2] = {}, low[VECTORS / 2];
  for (int v = 0; v < VECTORS / 2; v++) low[v] = ~Words32{};
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v += 2) {
      const float *at = x + row * stride + v * WIDTH;
      Words32 b;
      memcpy(&b, at, sizeof b);
      b += b; /* no sign */
      high[v / 2] = high[v / 2] > b ? high[v / 2] : b;
      b -= 1; /* zero becomes the greatest */
      low[v / 2] = low[v / 2] < b ? low[v / 2] : b;
      sum[v] += load(at);
      sum[v + 1] += load(at + WIDTH);
    }
  uint32_t most[LANES], least_[LANES];
  memcpy(most, high, sizeof most);
  memcpy(least_, low, sizeof least_);
  int far = 0;
  for (int l = 0; l < LANES; l++) {
    const int field = (int)((least_[l] + 1) >> 24), unit = s.top[l] + GPR_HEADROOM - 51;
    far |=
        most[l] != 0 && ((int)(most[l] >> 24) - 126 > s.top[l] || (field ? field : 1) - 150 < unit);
  }
  if (far) return false;
  for (int v = 0; v < VECTORS; v++) s.count1[v] += bits(s.start[v] + sum[v]) - bits(s.start[v]);
  return true;
}
GPR_FN bool add_close_rows(Lanes &, const double *, int64_t, int64_t) { return false; }

GPR_FN Count count_of(const Lanes &s, int lane) {
  const int v = lane / WIDTH, l = lane % WIDTH;
  Count c;
  c.value = ((__int128)(int64_t)s.count1[v][l] << LEVELS) + (int64_t)s.count2[v][l];
  c.unit = s.top[lane] + 2 * GPR_HEADROOM - 103;
  c.missed = s.missed[v][l] != 0;
  return c;
}

/* --- strips ------------------------------------------------------------------------------------
 */

enum { STRIP_LANES = 16, STRIP_ROWS = GPR_BATCH * 128 }; /* 16 KiB of lanes */
static constexpr int64_t STRIP = STRIP_LANES * LANES;    /* columns */

template <class R> struct Strip {
  Lanes lanes[STRIP_LANES];
  R tail[GPR_BATCH * LANES];
  int64_t width, full; /* reals; lanes that lie whole in the matrix */

  /* Rows of the last, partial lanes with zeros beside them. */
  const R *fill(const R *x, int64_t stride, int64_t rows) {
    const int64_t rest = width - full * LANES;
    memset(tail, 0, sizeof tail);
    for (int64_t row = 0; row < rows; row++)
      memcpy(tail + row * LANES, x + row * stride + full * LANES, (size_t)rest * sizeof *x);
    return tail;
  }
  void open(const R *x, int64_t stride, int64_t rows) {
    const int64_t first = least(rows, (int64_t)GPR_BATCH);
    const int margin = rows > first ? 2 : 0; /* for what comes later */
    for (int64_t g = 0; g * LANES < width; g++) {
      for (int l = 0; l < LANES; l++) lanes[g].top[l] = INT32_MIN / 2;
      if (g < full)
        raise_tops(lanes[g].top, x + g * LANES, stride, first);
      else
        raise_tops(lanes[g].top, fill(x, stride, first), LANES, first);
      for (int l = 0; l < LANES; l++) lanes[g].top[l] += margin;
    }
  }
  void add(const R *x, int64_t stride, int64_t rows) {
    for (int64_t g = 0; g * LANES < width; g++) {
      const R *at = g < full ? x + g * LANES : fill(x, stride, rows);
      const int64_t step = g < full ? stride : (int64_t)LANES;
      if (!add_close_rows(lanes[g], at, step, rows)) add_rows(lanes[g], at, step, rows);
    }
  }
  /* All of a strip of at most STRIP columns and STRIP_ROWS rows; stride in reals. */
  void run(const R *x, int64_t stride, int64_t columns, int64_t rows) {
    width = columns;
    full = columns / LANES;
    open(x, stride, rows);
    for (int64_t g = 0; g * LANES < width; g++) open_lanes(lanes[g]);
    for (int64_t row = 0; row < rows; row += GPR_BATCH)
      add(x + row * stride, stride, least(rows - row, (int64_t)GPR_BATCH));
  }
  Count count(int64_t column) const {
    return count_of(lanes[column / LANES], (int)(column % LANES));
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
  void share_tops(int margin) {
    int top[RIBBON];
    for (int64_t c = 0; c < period; c++) top[c] = INT32_MIN;
    for (int64_t l = 0; l < strip.width; l++) {
      const int own = strip.lanes[l / LANES].top[l % LANES];
      top[l % period] = greatest(top[l % period], own);
    }
    for (int64_t l = 0; l < strip.width; l++)
      strip.lanes[l / LANES].top[l % LANES] = top[l % period] + margin;
  }
  /* reals of them, at most STRIP_ROWS rows of the widened matrix. */
  void run(const R *x, int64_t columns, int64_t reals) {
    int64_t width = columns;
    while (width % LANES) width += columns;
    period = columns;
    strip.width = width;
    strip.full = width / LANES;
    const int64_t rows = reals / width, more = reals - rows * width;
    memset(rest, 0, (size_t)width * sizeof *rest);
    memcpy(rest, x + rows * width, (size_t)more * sizeof *x);
    strip.open(rest, width, 1);
    for (int64_t g = 0; g < strip.full; g++)
      raise_tops(strip.lanes[g].top, x + g * LANES, width, least(rows, (int64_t)GPR_BATCH));
    share_tops(rows > GPR_BATCH ? 2 : 0);
    for (int64_t g = 0; g < strip.full; g++) open_lanes(strip.lanes[g]);
    for (int64_t row = 0; row < rows; row += GPR_BATCH)
      strip.add(x + row * width, width, least(rows - row, (int64_t)GPR_BATCH));
    if (more) strip.add(rest, width, 1);
  }
  Count count(int64_t column) const {
    Count sum = strip.count(column);
    for (int64_t l = column + period; l < strip.width; l += period) {
      const Count c = strip.count(l);
      sum.value += c.value;
      sum.missed |= c.missed;
    }
    return sum;
  }
};

/* --- tiles -------------------------------------------------------------------------------------
 */

enum { TILE_BYTES = 32 << 10 };

/* Outputs that lie in any step, as columns of a tile: real `part` of element i of output o is at
 * tile[i * LANES + o * PARTS + part]. */
template <int PARTS, class T, class R>
static void fill_tile(R *tile, const char *data, int64_t across, int64_t along, int64_t outputs,
                      int64_t n) {
  for (int64_t o = 0; o < outputs; o++)
    for (int64_t i = 0; i < n; i++) {
      T x[PARTS];
      memcpy(x, data + o * across + i * along, sizeof x);
      for (int p = 0; p < PARTS; p++) tile[i * LANES + o * PARTS + p] = wide(x[p]);
    }
}

GPR_CLOSE
#endif
