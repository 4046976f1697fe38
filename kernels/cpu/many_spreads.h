/* Many variances at a time. */
#ifndef GPR_MANY_SPREADS_H
#define GPR_MANY_SPREADS_H

#include "many.h"

GPR_OPEN

/* Variances of real numbers whose degrees of freedom are whole. */
template <class T, bool ROOT> struct ManySpreads {
  typedef T Result;
  typedef Alone<Var<T>> One;
  typedef typename Traits<T>::Wide R;
  typedef typename MomentsFold<T>::State State;
  static constexpr int64_t TILE_ROWS = TILE_BYTES / (int)sizeof(R) / LANES;
  static constexpr bool plain = sizeof(T) == sizeof(R);

  /* Calls take(count, output) for every output, or take_alone(output), but for those that are done
   * already: quick(reals, stride, along rows?, first output, its lanes from, to) says by a bit a
   * lane which are not. */
  template <class Quick, class Take, class TakeAlone>
  static void each(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                   const Quick &quick, const Take &take, const TakeAlone &take_alone) {
    const bool side_by_side = plain && across == (int64_t)sizeof(T);
    const bool rows = plain && along == (int64_t)sizeof(T) && n > 64;
    alignas(64) R tile[TILE_ROWS * LANES];
    SpreadLanes<R> lanes;
    if (!rows && n > TILE_ROWS && !side_by_side) {
      for (int64_t o = 0; o < outputs; o++) take_alone(o);
      return;
    }
    if (!rows && n <= TILE_ROWS) memset(tile, 0, (size_t)n * LANES * sizeof *tile);
    const int64_t lead =
        side_by_side ? lead_of((const R *)(const void *)x, along / (int64_t)sizeof(R), outputs)
                     : (int64_t)LANES;
    for (int64_t o = 0, next; o < outputs; o = next) {
      /* Side by side, lanes that lie whole in the matrix and may be others' too. */
      const int64_t first = side_by_side ? greatest((int64_t)0, least(o, outputs - LANES)) : o;
      const int64_t m = least((int64_t)LANES, outputs - first);
      const char *at = x + first * across;
      const R *reals = (const R *)(const void *)at;
      int64_t stride = (rows ? across : along) / (int64_t)sizeof(R);
      next = first + (o ? m : least(m, lead));
      if (!rows && (!side_by_side || m < LANES)) {
        if (n > TILE_ROWS) {
          for (int64_t l = 0; l < m; l++) take_alone(o + l);
          continue;
        }
        fill_tile<1, T>(tile, at, across, along, m, n);
        reals = tile;
        stride = LANES;
      }
      uint64_t left = quick(reals, stride, rows, first, o - first, next - first);
      if (left && !rows) lanes.run(reals, stride, n);
      for (; left; left &= left - 1) {
        const int l = __builtin_ctzll(left);
        if (rows) lanes.run_row(reals + l * stride, n);
        take(rows ? spread_of_row(lanes) : spread_of_lane(lanes, l), first + l);
      }
    }
  }
  static uint64_t lanes_between(int64_t from, int64_t to) { return (1ull << to) - (1ull << from); }

  GPR_APART static void run_alone(const char *data, int64_t along, int64_t n, const gpr_spread *how,
                                  Result *result) {
    State s;
    MomentsFold<T>::open(s);
    One::fold(s, data, along, n, 0);
    *result = MomentsValue<T>{s}.template spread<T, ROOT>(n, how);
  }
  GPR_APART static void run(const void *data, int64_t across, int64_t along, int64_t outputs,
                            int64_t n, const gpr_spread *how, Result *result) {
    const char *x = (const char *)data;
    const double ddof = how ? how->ddof : 0, freedom = (double)n - ddof;
    const bool whole = freedom >= 1 && freedom < 0x1p40 && freedom == (double)(int64_t)freedom;
    const uint64_t divisor = whole ? (uint64_t)n * (uint64_t)freedom : 0;
    const auto take_alone = [&](int64_t o) {
      run_alone(x + o * across, along, n, how, result + o);
    };
    if (!whole) {
      for (int64_t o = 0; o < outputs; o++) take_alone(o);
      return;
    }
    if (n == 1) {
      for (int64_t o = 0; o < outputs; o++) {
        T one;
        memcpy(&one, x + o * across, sizeof one);
        const R zero = wide(one) - wide(one); /* or NaN */
        result[o] = zero == 0 ? Format<Result>::make(0) : quiet_nan<Result>();
      }
      return;
    }
    Tries twofold;
    const auto quick = [&](const R *reals, int64_t stride, bool rows, int64_t o, int64_t from,
                           int64_t to) {
      uint64_t left = lanes_between(from, to);
      if constexpr (sizeof(R) == sizeof(double)) {
        double spread[LANES];
        if (!twofold.due()) return left;
        left &= rows ? twofold_rows<ROOT>(reals, stride, to, n, (double)divisor, spread)
                     : twofold_columns<ROOT>(reals, stride, n, (double)divisor, spread);
        memcpy(result + o + from, spread + from, (size_t)(to - from) * sizeof *result);
        twofold.tell(2 * __builtin_popcountll(left) <= to - from);
      }
      if constexpr (sizeof(R) == sizeof(float) && !ROOT) {
        double sum[LANES], square[LANES];
        Result rounded[LANES];
        bool sure[LANES];
        if (rows)
          for (int64_t l = 0; l < to; l++) row_moments(reals + l * stride, n, sum + l, square + l);
        else
          plain_moments(reals, stride, n, sum, square);
        for (int64_t l = 0; l < to; l++)
          sure[l] = round_plain(sum[l], square[l], (double)n, freedom, rounded + l);
        memcpy(result + o + from, rounded + from, (size_t)(to - from) * sizeof *result);
        for (int64_t l = from; l < to; l++) left &= ~((uint64_t)sure[l] << l);
      }
      return left;
    };
    each(
        x, across, along, outputs, n, quick,
        [&](const SpreadCount &c, int64_t o) {
          if (c.missed) return take_alone(o);
          const Leading spread = spread_of_count(c, n, divisor);
          result[o] = round_leading<Result>(ROOT ? root_of(spread) : spread);
        },
        take_alone);
  }
  static void fold(void *states, size_t slot, const void *data, int64_t across, int64_t along,
                   int64_t outputs, int64_t n, int64_t) {
    const char *x = (const char *)data;
    const auto state = [&](int64_t o) -> State & {
      return *(State *)((char *)states + (size_t)o * slot);
    };
    const auto take_alone = [&](int64_t o) { One::fold(state(o), x + o * across, along, n, 0); };
    each(
        x, across, along, outputs, n,
        [](const R *, int64_t, bool, int64_t, int64_t from, int64_t to) {
          return lanes_between(from, to);
        },
        [&](const SpreadCount &c, int64_t o) {
          if (c.missed) return take_alone(o);
          add_spread(state(o).part[0], state(o).squares, c);
        },
        take_alone);
  }
};

template <class O, class T, bool = Traits<T>::kind == KIND_FLOAT> struct ManySpreadsIf {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};
template <class O, class T> struct ManySpreadsIf<O, T, true> {
  static void run(const void *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                  const void *with, void *to) {
    const gpr_spread *how = (const gpr_spread *)with;
    ManySpreads<T, O::root>::run(data, across, along, outputs, n, how, (T *)to);
    finish_rounded<O>((T *)to, (const char *)data, across, along, outputs, n, how, [](T spread) {
      return RoundedSpread<T, O::root>{spread, true};
    });
  }
  static constexpr decltype(gpr_row::fold_many) fold = ManySpreads<T, false>::fold;
};
template <class O, class T> struct Many<O, MomentsFold<T>> : ManySpreadsIf<O, T> {};

GPR_CLOSE
#endif
