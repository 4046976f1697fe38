/* Many exact sums and means at a time. */
#ifndef GPR_MANY_SUMS_H
#define GPR_MANY_SUMS_H

#include "many.h"
#include "settle.h"
#include "strips.h"
#include "twofold_sums.h"

GPR_OPEN

/* Rounded, or divided by their number and then rounded. */
template <class T, bool DIVIDED> struct ManySums {
  typedef T Result;
  typedef Alone<Sum<T>> One;
  typedef typename RealOf<T>::type Part; /* as it lies */
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = ExactFold<T>::parts, OUTPUTS = LANES / PARTS };
  static constexpr int64_t TILE_ROWS = TILE_BYTES / (int)sizeof(R) / LANES;
  static constexpr bool plain = sizeof(Part) == sizeof(R);

  static bool is_zero(const Count &c) { return ((__int128)c.high << LEVELS) + c.low == 0; }
  static bool starts_minus(const char *data) {
    Part first;
    memcpy(&first, data, sizeof first);
    return bits((double)wide(first)) == 1ull << 63;
  }

  /* Calls take(sums, column of sums, output) for every output. */
  template <class Take>
  static void strips(const char *data, int64_t along, int64_t outputs, int64_t n,
                     const Take &take) {
    Strip<R> strip;
    const int64_t most = STRIP / PARTS;
    for (int64_t o = 0; o < outputs; o += most) {
      const int64_t m = least(most, outputs - o);
      const char *at = data + o * (int64_t)sizeof(T);
      strip.run((const R *)(const void *)at, along / (int64_t)sizeof(R), m * PARTS, n);
      for (int64_t j = 0; j < m; j++) take(strip, j, o + j);
    }
  }
  /* Columns so few that several rows fill the lanes; or one, which is a row. */
  template <class Take>
  static void ribbon(const char *data, int64_t columns, int64_t n, int64_t o, const Take &take) {
    Ribbon<R> ribbon;
    ribbon.run((const R *)(const void *)data, columns * PARTS, n * columns * PARTS);
    for (int64_t j = 0; j < columns; j++) take(ribbon, j, o + j);
  }
  template <class Take>
  static void tiles(const char *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                    const Take &take) {
    alignas(64) R tile[TILE_ROWS * LANES];
    Strip<R> strip;
    memset(tile, 0, (size_t)n * LANES * sizeof *tile);
    for (int64_t o = 0; o < outputs; o += OUTPUTS) {
      const int64_t m = least((int64_t)OUTPUTS, outputs - o);
      fill_tile<PARTS, Part>(tile, data + o * across, across, along, m, n);
      strip.run(tile, LANES, LANES, n);
      for (int64_t j = 0; j < m; j++) take(strip, j, o + j);
    }
  }
  static bool side_by_side(int64_t across) { return plain && across == (int64_t)sizeof(T); }
  static bool in_row(int64_t along) { return plain && along == (int64_t)sizeof(T); }

  static bool is_ribbon(int64_t across, int64_t along, int64_t outputs) {
    return side_by_side(across) && along == outputs * across && outputs * PARTS <= RIBBON;
  }
  static bool fills_lanes(int64_t across, int64_t outputs) {
    return side_by_side(across) && outputs * PARTS >= LANES / 2;
  }

  /* Whichever fits the steps; take_alone(output) where none does. */
  template <class Take, class TakeAlone>
  static void each(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                   const Take &take, const TakeAlone &take_alone) {
    if (is_ribbon(across, along, outputs))
      ribbon(x, outputs, n, 0, take);
    else if (fills_lanes(across, outputs))
      strips(x, along, outputs, n, take);
    else if (n <= TILE_ROWS)
      tiles(x, across, along, outputs, n, take);
    else
      for (int64_t o = 0; o < outputs; o++)
        if (in_row(along))
          ribbon(x + o * across, 1, n, o, take);
        else
          take_alone(o);
  }

  /* --- finished sums ---------------------------------------------------------------------------
   */

  const char *x;
  int64_t across, along, outputs, n;
  const int64_t *counts;
  Result *result;
  double by[STRIP + LANES]; /* what each of a strip's columns is divided by, and some more */
  int64_t hard;             /* columns that were not quick */
  Tries easy;               /* what is quick, but not of any data */

  int64_t count_at(int64_t o) const { return counts ? counts[o] : n; }
  void round(const ExactSumValue<T> &sum, int64_t o) {
    result[o] = sum.template round<T>(DIVIDED ? (uint64_t)count_at(o) : 1);
  }
  GPR_APART void alone(int64_t o) {
    ExactSumValue<T> sum;
    ExactFold<T>::open(sum.state);
    One::fold(sum.state, x + o * across, along, n, 0);
    round(sum, o);
  }
  /* What was not caught is summed by itself; so is a zero, which may be -0.0. */
  template <class S> bool finish(const S &sums, int64_t column, int64_t o) {
    Part part[PARTS];
    for (int p = 0; p < PARTS; p++) {
      const Count c = sums.count(column * PARTS + p);
      if (c.missed || (is_zero(c) && starts_minus(x + o * across + p * (int64_t)sizeof(Part))))
        return false;
      part[p] = round_count<Part>(c, DIVIDED ? (uint32_t)count_at(o) : 1);
    }
    memcpy(result + o, part, sizeof part);
    return true;
  }
  void fill_by(int64_t first, int64_t m) {
    if (!DIVIDED || !counts) { /* a masked load of nothing takes hundreds of cycles */
      for (int64_t j = 0; j < m * PARTS; j++) by[j] = DIVIDED ? (double)n : 1;
      return;
    }
    for (int64_t j = 0; j < m; j++)
      for (int p = 0; p < PARTS; p++)
        by[j * PARTS + p] = (double)greatest((int64_t)1, counts[first + j]);
  }
  /* Columns of reals that are left of a strip whose first output is o, by ways for any data. */
  void rest(uint64_t missed, const R *at, int64_t stride, int64_t first, int64_t columns,
            int64_t o) {
    Part *to = (Part *)(void *)(result + o) + first;
    hard += __builtin_popcountll(missed);
    missed = twofold_columns(at + first, stride, columns, n, missed, by + first, to);
    if (missed) missed = settle_special(at + first, stride, columns, n, missed, to);
    for (int64_t last = -1; missed; missed &= missed - 1) {
      const int64_t output = o + (first + __builtin_ctzll(missed)) / PARTS;
      if (output != last) alone(output);
      last = output;
    }
  }
  /* The sums of a strip's columns, of which the first is output o. */
  void store_sums(Strip<R> &strip, const R *at, int64_t stride, int64_t m, int64_t o) {
    const int64_t columns = m * PARTS;
    fill_by(o, m);
    hard = 0;
    if (!easy.due()) {
      for (int64_t j = 0; j < columns; j += 32)
        rest((1ull << least((int64_t)32, columns - j)) - 1, at, stride, j,
             least((int64_t)32, columns - j), o);
      return;
    }
    store_quick(strip, at, stride, m, o);
    easy.tell(2 * hard <= columns);
  }
  void store_quick(Strip<R> &strip, const R *at, int64_t stride, int64_t m, int64_t o) {
    Part *to = (Part *)(void *)(result + o);
    const int64_t columns = m * PARTS;
    const auto rest_of = [&](uint64_t missed, int64_t first, int64_t lanes) {
      rest(missed, at, stride, first, lanes, o);
    };
    if constexpr (plain && !DIVIDED)
      if (n <= TOGETHER) return strip.few_sums(at, stride, columns, n, to, rest_of);
    /* Sums that a double holds. */
    const auto store = [&](int64_t first, int64_t lanes, const double *sum, uint64_t missed) {
      if constexpr (DIVIDED)
        missed |= divide_sums(sum, by + first, lanes, to + first);
      else
        for (int64_t l = 0; l < lanes; l++) to[first + l] = convert<Part>(sum[l]);
      if (lanes < LANES) missed &= (1ull << lanes) - 1; /* zeros beside them */
      return missed;
    };
    if constexpr (Strip<R>::narrow) {
      if (n <= Strip<R>::SPAN)
        return strip.plain_sums(
            at, stride, columns, n, PARTS,
            [&](int64_t first, int64_t lanes, const double *sum, uint64_t missed) {
              missed = store(first, lanes, sum, missed);
              for (uint64_t left = missed; left; left &= left - 1) {
                const int l = __builtin_ctzll(left);
                if (sum[l] - sum[l] == 0) continue;
                to[first + l] = convert<Part>(plain_nan(sum[l])); /* of floats all that matters */
                missed &= ~(1ull << l);
              }
              if (missed) rest_of(missed, first, lanes);
            });
    } else {
      if (n <= CARRIED_ROWS)
        return strip.carried_sums(at, stride, columns, n, DIVIDED ? by : nullptr, to, rest_of);
    }
    strip.run(at, stride, columns, n);
    strip.sums(DIVIDED && !Strip<R>::narrow ? by : nullptr,
               [&](int64_t first, int64_t lanes, const double *sum, uint64_t missed) {
                 if (DIVIDED && !Strip<R>::narrow)
                   memcpy(to + first, sum, (size_t)lanes * sizeof *to);
                 else
                   missed = store(first, lanes, sum, missed);
                 if (lanes < LANES) missed &= (1ull << lanes) - 1;
                 uint64_t left = 0;
                 for (; missed; missed &= missed - 1) {
                   const int64_t l = __builtin_ctzll(missed);
                   if (!finish(strip, (first + l) / PARTS, o + (first + l) / PARTS))
                     left |= 1ull << l;
                 }
                 if (left) rest_of(left, first, lanes);
               });
  }
  void quick_strips() {
    Strip<R> strip;
    const int64_t most = Strip<R>::columns_for(n) / PARTS;
    for (int64_t o = 0; o < outputs; o += most)
      store_sums(strip, (const R *)(const void *)(x + o * across), along / (int64_t)sizeof(R),
                 least(most, outputs - o), o);
  }
  /* At most TILE_ROWS elements each, in any step. */
  void quick_tiles() {
    alignas(64) R tile[TILE_ROWS * LANES];
    Strip<R> strip;
    for (int64_t o = 0; o < outputs; o += OUTPUTS) {
      const int64_t m = least((int64_t)OUTPUTS, outputs - o);
      if (m < OUTPUTS) memset(tile, 0, (size_t)n * LANES * sizeof *tile);
      fill_tile<PARTS, Part>(tile, x + o * across, across, along, m, n);
      store_sums(strip, tile, LANES, m, o);
    }
  }
  void run_row(int64_t o) {
    const R *at = (const R *)(const void *)(x + o * across);
    const bool later = DIVIDED && Strip<R>::narrow; /* sums that are to be divided yet */
    const uint32_t count = DIVIDED ? (uint32_t)greatest((int64_t)1, count_at(o)) : 1;
    double sum[WIDTH] = {}, each[WIDTH];
    Part part[PARTS];
    if (row_sum<PARTS>(at, n * PARTS, later ? 1 : count, sum)) {
      for (int l = 0; l < WIDTH; l++) each[l] = (double)count;
      const uint64_t missed = later ? divide_sums(sum, each, PARTS, part) : 0;
      for (int p = 0; !later && p < PARTS; p++) part[p] = convert<Part>(sum[p]);
      memcpy(result + o, part, sizeof part);
      if (!missed) return;
    }
    if (twofold_row<PARTS>(at, n * PARTS, (double)count, part))
      memcpy(result + o, part, sizeof part);
    else if (!settle_row(at, o))
      alone(o);
  }
  /* What is not finite decides the sum of a row too. */
  bool settle_row(const R *at, int64_t o) {
    R sum[LANES] = {}, special = 0;
    if (PARTS > 1) return false;
    const auto part_of = [](R e) { return e - e == 0 ? 0 : e; };
    for (int64_t i = 0; i < n / LANES; i++)
      for (int64_t l = 0; l < LANES; l++) sum[l] += part_of(at[i * LANES + l]);
    for (int64_t i = n / LANES * LANES; i < n; i++) special += part_of(at[i]);
    for (int64_t l = 0; l < LANES; l++) special += sum[l];
    if (special == 0) return false;
    const Part part = convert<Part>((double)plain_nan(special));
    memcpy((void *)(result + o), &part, sizeof part);
    return true;
  }
  /* Means of two: half of a sum is rounded where the sum is, unless that overflows or is small. */
  void halve() {
    const R *a = (const R *)(const void *)x, *b = a + along / (int64_t)sizeof(R);
    R *to = (R *)(void *)result;
    const R least = (R)(Strip<R>::narrow ? 0x1p-100 : 0x1p-1000);
    const R most = (R)(Strip<R>::narrow ? 0x1p126 : 0x1p1022);
    int any = 0;
    for (int64_t j = 0; j < outputs * PARTS; j++) {
      const R sum = a[j] + b[j], size = sum < 0 ? -sum : sum;
      to[j] = plain_nan(sum * (R)0.5);
      any |= (size < least) & (sum != 0);
      any |= size > most;
    }
    for (int64_t j = 0; any && j < outputs * PARTS; j++) {
      const R sum = a[j] + b[j], size = sum < 0 ? -sum : sum;
      if ((size < least && sum != 0) || size > most) alone(j / PARTS);
    }
  }
  void run_all() {
    if constexpr (plain)
      if (side_by_side(across) && n <= (DIVIDED ? 1 : FEW_TERMS) && (!DIVIDED || !counts))
        return add_few((const R *)(const void *)x, along / (int64_t)sizeof(R), outputs * PARTS, n,
                       (R *)(void *)result);
    if (plain && DIVIDED && n == 2 && !counts && side_by_side(across)) return halve();
    if (in_row(along) && n * PARTS > GPR_BATCH) {
      for (int64_t o = 0; o < outputs; o++) run_row(o);
    } else if (n > GPR_BATCH && is_ribbon(across, along, outputs)) {
      ribbon(x, outputs, n, 0, [&](const auto &sums, int64_t j, int64_t o) {
        if (!finish(sums, j, o)) alone(o);
      });
    } else if (fills_lanes(across, outputs)) {
      quick_strips();
    } else if (n <= (in_row(along) ? least(TILE_ROWS, (int64_t)64) : TILE_ROWS)) {
      quick_tiles();
    } else {
      for (int64_t o = 0; o < outputs; o++)
        if (in_row(along))
          run_row(o);
        else
          alone(o);
    }
  }
  GPR_APART static void run(const gpr_tile *t, Result *to) {
    ManySums job;
    job.x = t->data, job.across = t->across, job.along = t->along;
    job.outputs = t->outputs, job.n = t->n, job.counts = t->counts;
    job.result = to;
    job.run_all();
    for (int64_t o = 0; t->counts && o < t->outputs; o++)
      if (!t->counts[o]) {
        ExactSumValue<T> none;
        ExactFold<T>::open(none.state);
        job.round(none, o);
      }
  }

  /* --- sums that go on -------------------------------------------------------------------------
   */

  static void fold(void *states, size_t slot, const gpr_tile *t, int64_t index) {
    typedef typename ExactFold<T>::State State;
    const char *x = t->data;
    const int64_t across = t->across, along = t->along, n = t->n;
    const auto alone = [&](int64_t o) {
      One::fold(*(State *)((char *)states + (size_t)o * slot), x + o * across, along, n, index);
    };
    each(
        x, across, along, t->outputs, n,
        [&](const auto &sums, int64_t j, int64_t o) {
          State &s = *(State *)((char *)states + (size_t)o * slot);
          bool missed = false;
          for (int p = 0; p < PARTS; p++) {
            const Count c = sums.count(j * PARTS + p);
            missed |= c.missed || (is_zero(c) && !(s.part[p].signs & GPR_OTHER));
          }
          if (missed) return alone(o);
          for (int p = 0; p < PARTS; p++) add(s.part[p], sums.count(j * PARTS + p));
        },
        alone);
  }
  static void add(Exact &e, const Count &c) {
    if (!is_zero(c)) e.signs |= GPR_MET | GPR_OTHER;
    deposit(e, c.high, c.unit + LEVELS);
    deposit(e, c.low, c.unit);
  }
};

template <class O, class T> struct Many<O, ExactFold<T>> {
  enum { side = GPR_ANY_TILE };
  static int run(const gpr_tile *t, const void *with, void *to) {
    if (with) return 0;
    ManySums<T, O::divides>::run(t, (T *)to);
    finish_rounded<O>(t, (T *)to, nullptr, [](T sum, int64_t count) {
      return RoundedSum<T>{sum, O::divides ? (uint64_t)count : 1, true};
    });
    return 1;
  }
  static constexpr decltype(gpr_row::fold_many) fold = ManySums<T, false>::fold;
};

GPR_CLOSE
#endif
