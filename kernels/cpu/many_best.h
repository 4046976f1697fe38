/* Many least or greatest values, or their places, at a time. */
#ifndef GPR_MANY_BEST_H
#define GPR_MANY_BEST_H

#include "few.h"
#include "many.h"

GPR_OPEN

/* min, max, argmin and argmax of what the hardware compares as it is. */
template <class O> struct Asked {
  enum { any = 0, greatest = 0, place = 0 };
};
template <class T> struct Asked<Min<T>> {
  enum { any = 1, greatest = 0, place = 0 };
};
template <class T> struct Asked<Max<T>> {
  enum { any = 1, greatest = 1, place = 0 };
};
template <class T> struct Asked<ArgMin<T>> {
  enum { any = 1, greatest = 0, place = 1 };
};
template <class T> struct Asked<ArgMax<T>> {
  enum { any = 1, greatest = 1, place = 1 };
};

template <class O, class F> struct ManyBest {
  typedef typename F::Element T;
  typedef typename F::State State;
  typedef typename O::Result Result;
  typedef typename Native<T>::type N;
  typedef Best<N, Asked<O>::greatest, Asked<O>::place> Columns;
  static constexpr int64_t TILE_COLUMNS = 64, TILE_ROWS = TILE_BYTES / 64 / (int)sizeof(T);
  /* Longer contiguous outputs are quicker one by one. On Zen 4, in ns each, as columns and alone:
   * the greatest double of 8 3.9 and 3.4, of 16 6.6 and 4.5, of 64 46 and 9; the greatest integer
   * of 4 4.5 and 1.9; the place of a double of 16 8.0 and 11.4, of 32 15.5 and 15.1 (28 and 15 from
   * DRAM), of 64 54 and 19, of a float of 32 12.3 and 13. */
  static constexpr int64_t PLACED_ROW = sizeof(T) > 4 ? 16 : 32, BEST_ROW = Columns::real ? 8 : 0;
  static constexpr int64_t SHORT_ROW = Asked<O>::place ? PLACED_ROW : BEST_ROW;

  /* Elements have to be looked at again for NaN, and for the sign of a zero. */
  static int unsure(const Columns &c, int64_t j) {
    return c.unsure(j) | (!Asked<O>::place && Columns::real && c.best[j] == 0);
  }
  static Result result_of(const Columns &c, int64_t j) {
    if constexpr (Asked<O>::place)
      return c.row[j];
    else
      return Order<T>::value(Order<T>::key(copy_bits<T>(c.best[j])));
  }
  /* take(columns, how many, the first's output) */
  template <class Take>
  static void strips(const char *x, int64_t along, int64_t outputs, int64_t n, const Take &take) {
    Columns c;
    const int64_t most = Columns::width(n);
    for (int64_t o = 0; o < outputs; o += most) {
      const int64_t m = least(most, outputs - o);
      c.run((const N *)(const void *)x + o, along / (int64_t)sizeof(T), m, n);
      take(c, m, o);
    }
  }
  template <class Take>
  static void tiles(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                    const Take &take) {
    alignas(64) N tile[TILE_ROWS * TILE_COLUMNS];
    Columns c;
    for (int64_t o = 0; o < outputs; o += TILE_COLUMNS) {
      const int64_t m = least(TILE_COLUMNS, outputs - o);
      for (int64_t j = 0; j < m; j++)
        walk(x + (o + j) * across, along, n, [&](int64_t i, const char *at) {
          memcpy(tile + i * TILE_COLUMNS + j, at, sizeof *tile);
        });
      c.run(tile, TILE_COLUMNS, m, n);
      take(c, m, o);
    }
  }
  template <class Take, class TakeAlone>
  static void each(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                   const Take &take, const TakeAlone &take_alone) {
    const bool in_row = along == (int64_t)sizeof(T);
    if (across == (int64_t)sizeof(T) && outputs >= 8)
      strips(x, along, outputs, n, take);
    else if (outputs >= 8 && n <= (in_row ? SHORT_ROW : TILE_ROWS))
      tiles(x, across, along, outputs, n, take);
    else
      for (int64_t o = 0; o < outputs; o++) take_alone(o);
  }
  static void run(const void *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                  const void *, void *to) {
    const char *x = (const char *)data;
    Result *result = (Result *)to;
    const auto take_alone = [&](int64_t o) {
      State s;
      if (along != (int64_t)sizeof(T))
        return Alone<O>::run(x + o * across, along, n, 0, result + o);
      F::open(s);
      Folder<O>::fold(s, (const T *)(const void *)(x + o * across), n, 0);
      finish_from<O>(s, n, 0, result + o);
    };
    if constexpr (!Asked<O>::place && Traits<T>::kind != KIND_BOOL)
      if (across == (int64_t)sizeof(T) && n <= FEW_RIVALS) {
        const int64_t stride = along / (int64_t)sizeof(T);
        if (best_few<Asked<O>::greatest>((const T *)data, stride, outputs, n, result))
          for (int64_t o = 0; o < outputs; o++)
            if (result[o] != result[o]) take_alone(o);
        return;
      }
    if constexpr (Asked<O>::place && Traits<T>::kind != KIND_BOOL)
      if (n == 2 && across == 2 * (int64_t)sizeof(T) && along == (int64_t)sizeof(T))
        return place_in_pairs<Asked<O>::greatest>((const T *)data, outputs, result);
    each(
        x, across, along, outputs, n,
        [&](const Columns &c, int64_t m, int64_t o) {
          int any = 0;
          for (int64_t j = 0; j < m; j++) {
            result[o + j] = result_of(c, j);
            any |= unsure(c, j);
          }
          for (int64_t j = 0; any && j < m; j++)
            if (unsure(c, j)) take_alone(o + j);
        },
        take_alone);
  }
  static void fold(void *states, size_t slot, const void *data, int64_t across, int64_t along,
                   int64_t outputs, int64_t n, int64_t index) {
    const char *x = (const char *)data;
    const auto state = [&](int64_t o) -> State & {
      return *(State *)((char *)states + (size_t)o * slot);
    };
    const auto take_alone = [&](int64_t o) {
      Alone<O>::fold(state(o), x + o * across, along, n, index);
    };
    each(
        x, across, along, outputs, n,
        [&](const Columns &c, int64_t m, int64_t o) {
          for (int64_t j = 0; j < m; j++)
            if (unsure(c, j))
              take_alone(o + j);
            else
              F::add(state(o + j), copy_bits<T>(c.best[j]), index + c.row[j]);
        },
        take_alone);
  }
};
template <class O, class T> constexpr bool has_best() { return Asked<O>::any && is_native<T>(); }
template <class O, class F, bool = has_best<O, typename F::Element>()> struct ManyBestIf {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};
template <class O, class F> struct ManyBestIf<O, F, true> : ManyBest<O, F> {};
template <class O, class T> struct Many<O, Extremes<T>> : ManyBestIf<O, Extremes<T>> {};
template <class O, class T, bool GREATEST>
struct Many<O, Position<T, GREATEST>> : ManyBestIf<O, Position<T, GREATEST>> {};

GPR_CLOSE
#endif
