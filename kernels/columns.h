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

static constexpr int LEVELS = GPR_HEADROOM - 51 - (2 * GPR_HEADROOM - 103); /* unit1 - unit2 */

/* high·2^(unit + LEVELS) + low·2^unit. */
struct Count {
  int64_t high, low;
  int unit;
  bool missed; /* something was not caught */
};

/* The count divided by n, rounded once. n > 0 has 32 bits at most, so that the quotient has more
 * bits than are kept. */
GPR_FN Leading leading_of(__int128 value, int unit, uint32_t n) {
  const uint128 magnitude = value < 0 ? -(uint128)value : (uint128)value;
  Leading l = {0, 0, false};
  if (!magnitude) return l;
  const int zeros = magnitude >> 64 ? __builtin_clzll((uint64_t)(magnitude >> 64))
                                    : 64 + __builtin_clzll((uint64_t)magnitude);
  l.bits = magnitude << zeros;
  l.exponent = unit - zeros;
  if (n == 1) return l;
  const uint128 quotient = l.bits / n;
  l.sticky = quotient * n != l.bits;
  const int more = __builtin_clzll((uint64_t)(quotient >> 64)); /* n has less than 64 bits */
  l.bits = quotient << more;
  l.exponent -= more;
  return l;
}

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
template <class R> GPR_FN R round_count(const Count &c, uint32_t n) {
  R quick;
  if constexpr (sizeof(R) >= sizeof(float))
    if (n == 1 && round_by_doubles(c, &quick)) return quick;
  typedef Format<R> F;
  const uint64_t sign = F::infinity() + (1ull << (F::precision - 1));
  const __int128 value = ((__int128)c.high << LEVELS) + c.low;
  return F::make((value < 0 ? sign : 0) | round_bits_of<R>(leading_of(value, c.unit, n)));
}

/* One bit a lane of a vector of 0 and -1. */
template <class V> GPR_FN uint64_t mask_of(V lanes) {
  uint64_t mask = 0;
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if (sizeof lanes[0] == 4) return _mm512_movepi32_mask((__m512i)lanes);
  if (sizeof lanes[0] == 8) return _mm512_movepi64_mask((__m512i)lanes);
#endif
  for (unsigned l = 0; l < sizeof lanes / sizeof lanes[0]; l++)
    mask |= (uint64_t)(lanes[l] != 0) << l;
  return mask;
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

/* The lanes after the next, in the same row: the hardware does not follow so many rows. */
enum { AHEAD = 2 * LANES };

/* At most GPR_BATCH rows. */
template <class R> GPR_FN void add_rows(Lanes &s, const R *x, int64_t stride, int64_t rows) {
  const double down = power_of_two(-LEVELS);
  Doubles sum1[VECTORS], sum2[VECTORS];
  Words away[VECTORS] = {}, lost[VECTORS] = {};
  for (int v = 0; v < VECTORS; v++) sum1[v] = s.start[v], sum2[v] = s.start[v] * down;
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v++) {
      const R *at = x + row * stride + v * WIDTH;
      __builtin_prefetch(at + AHEAD);
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
      __builtin_prefetch(at + AHEAD);
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
    const int above = (int)(most[l] >> 24) - 126 > s.top[l];
    far |= (most[l] != 0) & (above | (greatest(field, 1) - 150 < unit));
    far |= most[l] >= 0xff000000u; /* inf or NaN, which a window at the very top would take */
  }
  if (far) return false;
  for (int v = 0; v < VECTORS; v++) s.count1[v] += bits(s.start[v] + sum[v]) - bits(s.start[v]);
  return true;
}
GPR_FN bool add_close_rows(Lanes &, const double *, int64_t, int64_t) { return false; }

/* Of at most GPR_BATCH rows that doubles hold exactly; bits of the lanes that they do not, or whose
 * sum is zero. */
GPR_FN uint64_t batch_sums(const float *x, int64_t stride, int64_t rows, double *to) {
  Doubles sum[VECTORS];
  Words32 high[VECTORS / 2] = {}, low[VECTORS / 2];
  for (int v = 0; v < VECTORS; v++) sum[v] = -Doubles{};
  for (int v = 0; v < VECTORS / 2; v++) low[v] = ~Words32{};
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v += 2) {
      const float *at = x + row * stride + v * WIDTH;
      Words32 b;
      memcpy(&b, at, sizeof b);
      b += b;
      high[v / 2] = high[v / 2] > b ? high[v / 2] : b;
      b -= 1;
      low[v / 2] = low[v / 2] < b ? low[v / 2] : b;
      sum[v] += load(at);
      sum[v + 1] += load(at + WIDTH);
    }
  memcpy(to, sum, sizeof sum);
  /* 24 bits of each, GPR_HEADROOM of carries: the rest of the 53 is for the exponents' spread */
  const uint32_t spread = (53 - 24 - GPR_HEADROOM) << 24, infinity = 0xff000000u;
  uint64_t missed = 0;
  for (int v = 0; v < VECTORS / 2; v++) {
    low[v] = (low[v] + 1) & 0xff000000u;
    high[v] &= 0xff000000u;
    const Words32 far = (Words32)((high[v] - low[v] > spread) & (high[v] > low[v])) |
                        (Words32)(high[v] == infinity);
    missed |= mask_of(far) << (v * 2 * WIDTH);
  }
  return missed;
}
GPR_FN uint64_t batch_sums(const double *x, int64_t stride, int64_t rows, double *to) {
  Lanes s;
  for (int l = 0; l < LANES; l++) s.top[l] = INT32_MIN / 2;
  raise_tops(s.top, x, stride, rows);
  open_lanes(s);
  const double down = power_of_two(-LEVELS);
  Doubles sum1[VECTORS], sum2[VECTORS];
  Words away[VECTORS] = {}, lost[VECTORS] = {};
  for (int v = 0; v < VECTORS; v++) sum1[v] = s.start[v], sum2[v] = s.start[v] * down;
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v++) {
      const Doubles d = load(x + row * stride + v * WIDTH);
      add_two_levels(sum1[v], sum2[v], away[v], lost[v], s.start[v], d);
    }
  uint64_t missed = 0;
  for (int v = 0; v < VECTORS; v++) {
    /* two exact differences, added with the one rounding that there is */
    const Doubles sum = (sum1[v] - s.start[v]) + (sum2[v] - s.start[v] * down);
    memcpy(to + v * WIDTH, &sum, sizeof sum);
    const Words bad = (away[v] >> 52 | lost[v] << 1 | (bits(sum) << 1 == 0 ? 1 : Words{})) != 0;
    missed |= mask_of(bad) << (v * WIDTH);
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
  Doubles sum[VECTORS] = {};
  Words32 high[VECTORS / 2] = {}, low[VECTORS / 2];
  for (int v = 0; v < VECTORS / 2; v++) low[v] = ~Words32{};
  float rest[LANES] = {};
  memcpy(rest, x + n / LANES * LANES, (size_t)(n % LANES) * sizeof *x);
  for (int64_t row = 0; row <= n / LANES; row++)
    for (int v = 0; v < VECTORS; v += 2) {
      const float *at = (row < n / LANES ? x + row * LANES : rest) + v * WIDTH;
      Words32 b;
      memcpy(&b, at, sizeof b);
      b += b;
      high[v / 2] = high[v / 2] > b ? high[v / 2] : b;
      b -= 1;
      low[v / 2] = low[v / 2] < b ? low[v / 2] : b;
      sum[v] += load(at);
      sum[v + 1] += load(at + WIDTH);
    }
  uint32_t most = 0, fewest = ~0u;
  double total = 0;
  for (int v = 0; v < VECTORS / 2; v++)
    for (int l = 0; l < 2 * WIDTH; l++) {
      most = greatest(most, (uint32_t)high[v][l]);
      fewest = least(fewest, (uint32_t)low[v][l]);
    }
  for (int v = 1; v < VECTORS; v++) sum[0] += sum[v];
  for (int l = 0; l < WIDTH; l++) total += sum[0][l];
  *to = total;
  const int spread = (int)(most >> 24) - (int)((fewest + 1) >> 24);
  return most && most < 0xff000000u && spread <= 53 - 24 - 12; /* GPR_SHORT are 2^12 */
}
GPR_FN bool row_sum(const double *x, int64_t n, double *to) {
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

enum { STRIP_LANES = 16, STRIP_ROWS = GPR_BATCH * 128 }; /* 16 KiB of lanes */
static constexpr int64_t STRIP = STRIP_LANES * LANES;    /* columns */

/* Rows at a time: those of a matrix whose rows are a power of two apart compete for the same places
 * of the caches, which have 8 of them. */
enum { TOGETHER = 8 };

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
  /* Sums of at most GPR_BATCH rows, which a double or two hold: false for lanes of which that is
   * not so, or which are zero. */
  template <class Store>
  void sums(const R *x, int64_t stride, int64_t columns, int64_t rows, const Store &store) {
    width = columns;
    full = columns / LANES;
    for (int64_t g = 0; g * LANES < width; g++) {
      const R *at = g < full ? x + g * LANES : fill(x, stride, rows);
      double sum[LANES];
      const uint64_t missed = batch_sums(at, g < full ? stride : (int64_t)LANES, rows, sum);
      store(g * LANES, least(width - g * LANES, (int64_t)LANES), sum, missed);
    }
  }
  /* All of a strip of at most STRIP columns and STRIP_ROWS rows; stride in reals. */
  void run(const R *x, int64_t stride, int64_t columns, int64_t rows) {
    width = columns;
    full = columns / LANES;
    open(x, stride, rows);
    for (int64_t g = 0; g * LANES < width; g++) open_lanes(lanes[g]);
    for (int64_t row = 0; row < rows; row += TOGETHER)
      add(x + row * stride, stride, least(rows - row, (int64_t)TOGETHER));
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
    int64_t count1 = 0, count2 = 0;
    uint64_t missed = 0;
    for (int64_t l = column; l < strip.width; l += period) {
      const Lanes &s = strip.lanes[l / LANES];
      const int v = (int)(l % LANES) / WIDTH, i = (int)(l % LANES) % WIDTH;
      count1 += (int64_t)s.count1[v][i];
      count2 += (int64_t)s.count2[v][i];
      missed |= s.missed[v][i];
    }
    Count sum = count_of(strip.lanes[0], (int)column);
    sum.high = count1;
    sum.low = count2;
    sum.missed = missed != 0;
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

/* Of at least two bytes. */
template <int BYTES> struct Signed { typedef int16_t type; };
template <> struct Signed<4> { typedef int32_t type; };
template <> struct Signed<8> { typedef int64_t type; };

/* --- extremes ----------------------------------------------------------------------------------
 */

/* The best of each column, where the two zeros tie, and its first row. A sum tells NaN, as for
 * whole arrays. */
template <class T, bool GREATEST, bool PLACE> struct Best {
  enum { COLUMNS = 256, TOGETHER = 4 };         /* rows between two looks at what was best */
  typedef typename Signed<sizeof(T)>::type Row; /* GPR_SHORT rows fit all of them */
  static constexpr bool real = Traits<T>::kind == KIND_FLOAT;
  T best[COLUMNS], sum[COLUMNS];
  Row row[COLUMNS];

  void run(const T *x, int64_t stride, int64_t columns, int64_t rows) {
    for (int64_t j = 0; j < columns; j++) best[j] = sum[j] = x[j];
    memset(row, 0, sizeof row);
    int64_t i = 1;
    for (; i + TOGETHER <= rows; i += TOGETHER)
      add<TOGETHER>(x + i * stride, stride, columns, (Row)i);
    for (; i < rows; i++) add<1>(x + i * stride, stride, columns, (Row)i);
  }
  template <int ROWS> void add(const T *__restrict x, int64_t stride, int64_t columns, Row i) {
    for (int64_t j = 0; j < columns; j++) {
      T b = best[j], s = sum[j];
      Row r = row[j];
      for (int k = 0; k < ROWS; k++) {
        const T e = x[k * stride + j];
        const bool better = GREATEST ? e > b : e < b;
        b = better ? e : b;
        if (PLACE) r = better ? (Row)(i + k) : r;
        if (real) s += e;
      }
      best[j] = b;
      if (PLACE) row[j] = r;
      if (real) sum[j] = s;
    }
  }
  bool unsure(int64_t column) const { return real && sum[column] != sum[column]; }
};

GPR_CLOSE
#endif
