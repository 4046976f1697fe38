/* Some columns of a matrix of reals, added up a few rows at a time. */
#ifndef GPR_STRIPS_H
#define GPR_STRIPS_H

#include "row_sums.h"

GPR_OPEN

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
    const int64_t few = rows < 3 * TOGETHER ? rows : (int64_t)TOGETHER; /* of which states pay */
    for (int64_t row = 0; row < rows; row += few)
      for (int64_t g = 0; g < all; g++) {
        const int64_t m = least(rows - row, few), over = g + aside >= all;
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

GPR_CLOSE
#endif
