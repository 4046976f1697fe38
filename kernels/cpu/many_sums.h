/* Many exact sums and means at a time. */
#ifndef GPR_MANY_SUMS_H
#define GPR_MANY_SUMS_H

#include "few.h"
#include "many.h"

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

  GPR_APART static void run_alone(const char *data, int64_t along, int64_t n, Result *result) {
    ExactSumValue<T> sum;
    ExactFold<T>::open(sum.state);
    One::fold(sum.state, data, along, n, 0);
    *result = sum.template round<T>(DIVIDED ? (uint64_t)n : 1);
  }
  /* What was not caught is summed by itself; so is a zero, which may be -0.0. */
  template <class S>
  static void finish(const S &sums, int64_t column, const char *data, int64_t along, int64_t n,
                     Result *result) {
    R part[PARTS];
    for (int p = 0; p < PARTS; p++) {
      const Count c = sums.count(column * PARTS + p);
      if (c.missed || (is_zero(c) && starts_minus(data + p * (int64_t)sizeof(Part))))
        return run_alone(data, along, n, result);
      const Part rounded = round_count<Part>(c, DIVIDED ? (uint32_t)n : 1);
      memcpy((char *)part + p * (int64_t)sizeof rounded, &rounded, sizeof rounded);
    }
    memcpy(result, part, sizeof *result);
  }
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
    else if (n <= (in_row(along) ? least(TILE_ROWS, (int64_t)64) : TILE_ROWS))
      tiles(x, across, along, outputs, n, take);
    else
      for (int64_t o = 0; o < outputs; o++)
        if (in_row(along))
          ribbon(x + o * across, 1, n, o, take);
        else
          take_alone(o);
  }

  /* What is left of lanes that missed, from output `first` on: together, or one by one. */
  template <class Take, class TakeAlone>
  static void finish_rest(uint64_t missed, int64_t first, const char *x, int64_t across,
                          int64_t along, int64_t outputs, int64_t n, const Take &take,
                          const TakeAlone &take_alone) {
    if (__builtin_popcountll(missed) > LANES / 4)
      return each(
          x + first * across, across, along, outputs, n,
          [&](const auto &sums, int64_t j, int64_t o) { take(sums, j, first + o); },
          [&](int64_t o) { take_alone(first + o); });
    for (; missed; missed &= missed - 1) take_alone(first + __builtin_ctzll(missed) / PARTS);
  }
  /* The sums of a strip's columns, of which the first is output o: by doubles alone, where these
   * hold them. */
  template <class Take, class Rest>
  static void store_sums(Strip<R> &strip, const R *x, int64_t stride, int64_t outputs, int64_t n,
                         Part *to, const Take &take, const Rest &rest) {
    const auto store = [&](int64_t first, int64_t lanes, const double *sum) {
      for (int64_t l = 0; l < lanes; l++) to[first + l] = convert<Part>(sum[l]);
    };
    const auto rest_of = [&](uint64_t missed, int64_t first, int64_t lanes) {
      rest(missed, first / PARTS, lanes / PARTS);
    };
    if constexpr (plain)
      if (n <= TOGETHER) return strip.few_sums(x, stride, outputs * PARTS, n, to, rest_of);
    if constexpr (Strip<R>::narrow) {
      if (n <= Strip<R>::SPAN)
        return strip.plain_sums(
            x, stride, outputs * PARTS, n, PARTS,
            [&](int64_t first, int64_t lanes, const double *sum, uint64_t missed) {
              store(first, lanes, sum);
              if (lanes < LANES) missed &= (1ull << lanes) - 1; /* zeros beside them */
              if (missed) rest_of(missed, first, lanes);
            });
    } else {
      if (n <= CARRIED_ROWS) return strip.carried_sums(x, stride, outputs * PARTS, n, to, rest_of);
    }
    strip.run(x, stride, outputs * PARTS, n);
    strip.sums([&](int64_t first, int64_t lanes, const double *sum, uint64_t missed) {
      store(first, lanes, sum);
      for (; missed; missed &= missed - 1) {
        const int64_t l = __builtin_ctzll(missed);
        if (l < lanes) take(strip, (first + l) / PARTS);
      }
    });
  }
  template <class Take, class TakeAlone>
  static void quick_strips(const char *x, int64_t along, int64_t outputs, int64_t n, Result *result,
                           const Take &take, const TakeAlone &take_alone) {
    const int64_t across = sizeof(T);
    Strip<R> strip;
    const int64_t most = Strip<R>::columns_for(n) / PARTS;
    for (int64_t o = 0; o < outputs; o += most) {
      const R *at = (const R *)(const void *)(x + o * across);
      store_sums(
          strip, at, along / (int64_t)sizeof(R), least(most, outputs - o), n,
          (Part *)(void *)(result + o), [&](const auto &sums, int64_t j) { take(sums, j, o + j); },
          [&](uint64_t missed, int64_t first, int64_t m) {
            finish_rest(missed, o + first, x, across, along, m, n, take, take_alone);
          });
    }
  }
  /* At most GPR_BATCH elements each, in any step. */
  template <class Take, class TakeAlone>
  static void quick_tiles(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                          Result *result, const Take &take, const TakeAlone &take_alone) {
    alignas(64) R tile[GPR_BATCH * LANES];
    Strip<R> strip;
    for (int64_t o = 0; o < outputs; o += OUTPUTS) {
      const int64_t m = least((int64_t)OUTPUTS, outputs - o);
      if (m < OUTPUTS) memset(tile, 0, sizeof tile);
      fill_tile<PARTS, Part>(tile, x + o * across, across, along, m, n);
      store_sums(
          strip, tile, LANES, m, n, (Part *)(void *)(result + o),
          [&](const auto &sums, int64_t j) { take(sums, j, o + j); },
          [&](uint64_t missed, int64_t first, int64_t) {
            finish_rest(missed, o + first, x, across, along, m, n, take, take_alone);
          });
    }
  }
  static void run_row(const char *x, int64_t along, int64_t n, Result *result) {
    double sum;
    if (row_sum((const R *)(const void *)x, n, &sum))
      *result = convert<Part>(sum);
    else
      ribbon(x, 1, n, 0,
             [&](const auto &sums, int64_t j, int64_t) { finish(sums, j, x, along, n, result); });
  }

  GPR_APART static void run(const void *data, int64_t across, int64_t along, int64_t outputs,
                            int64_t n, Result *result) {
    const char *x = (const char *)data;
    const auto take = [&](const auto &sums, int64_t j, int64_t o) {
      finish(sums, j, x + o * across, along, n, result + o);
    };
    const auto take_alone = [&](int64_t o) { run_alone(x + o * across, along, n, result + o); };
    if constexpr (plain)
      if (side_by_side(across) && n <= (DIVIDED ? 1 : FEW_TERMS))
        return add_few((const R *)data, along / (int64_t)sizeof(R), outputs * PARTS, n,
                       (R *)result);
    if constexpr (!DIVIDED) {
      if constexpr (PARTS == 1)
        if (in_row(along) && n > GPR_BATCH) {
          for (int64_t o = 0; o < outputs; o++) run_row(x + o * across, along, n, result + o);
          return;
        }
      if (n > GPR_BATCH && is_ribbon(across, along, outputs))
        return each(x, across, along, outputs, n, take, take_alone);
      if (fills_lanes(across, outputs))
        return quick_strips(x, along, outputs, n, result, take, take_alone);
      if (n <= GPR_BATCH)
        return quick_tiles(x, across, along, outputs, n, result, take, take_alone);
    }
    each(x, across, along, outputs, n, take, take_alone);
  }

  static void fold(void *states, size_t slot, const void *data, int64_t across, int64_t along,
                   int64_t outputs, int64_t n, int64_t index) {
    typedef typename ExactFold<T>::State State;
    const char *x = (const char *)data;
    const auto alone = [&](int64_t o) {
      One::fold(*(State *)((char *)states + (size_t)o * slot), x + o * across, along, n, index);
    };
    each(
        x, across, along, outputs, n,
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
  static void run(const void *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                  const void *, void *to) {
    T *result = (T *)to;
    ManySums<T, O::divides>::run(data, across, along, outputs, n, result);
    finish_rounded<O>(result, (const char *)data, across, along, outputs, n, nullptr, [&](T sum) {
      return RoundedSum<T>{sum, O::divides ? (uint64_t)n : 1, true};
    });
  }
  static constexpr decltype(gpr_row::fold_many) fold = ManySums<T, false>::fold;
};

GPR_CLOSE
#endif
