/* Many variances at a time. */
#ifndef GPR_MANY_SPREADS_H
#define GPR_MANY_SPREADS_H

#include "many.h"

GPR_OPEN

/* --- integers ----------------------------------------------------------------------------------
 */

/* √(x / divisor) in twice the precision, if that tells what it rounds to. */
GPR_FN bool root_of_quotient(uint128 x, uint64_t divisor, double *to) {
  if (x >> 100 || divisor >> 53) return false;
  const double d = (double)divisor, high = (double)x, low = (double)(__int128)(x - (uint128)high);
  const double q = high / d, back = q * d;
  const double more = ((high - back) - product_error(q, d, back) + low) / d;
  const double root = __builtin_sqrt(q), square = root * root;
  const double rest = ((q - square) - product_error(root, root, square) + more) / (2 * root);
  const double result = root + rest, error = rest - (result - root);
  const double size = from_bits((uint64_t)(bits(result) & 0x7ffull << 52));
  *to = result;
  return (error < 0 ? -error : error) * 0x1.000002p53 < size && bits(result) << 12;
}
/* n·Σx² − (Σx)² over n·(n − ddof), where 128 bits hold the one and 64 the other. */
template <bool ROOT, class S>
GPR_FN bool finish_small_spread(const S &s, int64_t n, const gpr_spread *how, double *to) {
  const double ddof = how ? how->ddof : 0, freedom = (double)n - ddof;
  const int64_t sign = (int64_t)s.low >> 63;
  if ((how && how->means) || !(freedom >= 1 && freedom <= 0x1p31) || n >> 31) return false;
  if (freedom != (double)(int64_t)freedom || s.square[1] | s.square[2] || s.high != sign)
    return false;
  const uint64_t size = (s.low ^ (uint64_t)sign) - (uint64_t)sign;
  const uint128 spread = (uint128)(uint64_t)n * s.square[0] - (uint128)size * size;
  const uint64_t divisor = (uint64_t)n * (uint64_t)freedom;
  if (ROOT && spread) return root_of_quotient(spread, divisor, to);
  *to = quotient(spread, divisor);
  return true;
}
template <class T> struct QuickMoments {
  const typename IntegerMoments<T>::State &s;
  template <class R, bool ROOT> R spread(int64_t n, const gpr_spread *how) const {
    double quick;
    if (Same<R, double>::value && finish_small_spread<ROOT>(s, n, how, &quick)) return (R)quick;
    return IntegerMomentsValue<T>{s}.template spread<R, ROOT>(n, how);
  }
};
template <class T> struct QuicklyShown<IntegerMoments<T>> {
  static QuickMoments<T> of(const typename IntegerMoments<T>::State &s) { return {s}; }
};

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

  GPR_APART static void run_alone(const gpr_tile *t, int64_t o, int64_t count,
                                  const gpr_spread *how, Result *result) {
    State s;
    MomentsFold<T>::open(s);
    One::fold(s, t->data + o * t->across, t->along, t->n, 0);
    result[o] = MomentsValue<T>{s}.template spread<T, ROOT>(count, how);
  }
  GPR_APART static void run(const gpr_tile *t, const gpr_spread *how, Result *result) {
    const char *x = t->data;
    const int64_t across = t->across, along = t->along, outputs = t->outputs, n = t->n;
    if (t->counts) {
      gpr_tile whole = *t; /* as if all counted; of what does not, the outputs again */
      whole.counts = nullptr;
      run(&whole, how, result);
      for (int64_t o = 0; o < outputs; o++)
        if (t->counts[o] != n) run_alone(t, o, t->counts[o], how, result);
      return;
    }
    const double ddof = how ? how->ddof : 0, freedom = (double)n - ddof;
    const bool whole = freedom >= 1 && freedom < 0x1p40 && freedom == (double)(int64_t)freedom;
    const uint64_t divisor = whole ? (uint64_t)n * (uint64_t)freedom : 0;
    const auto take_alone = [&](int64_t o) { run_alone(t, o, n, how, result); };
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
  static void fold(void *states, size_t slot, const gpr_tile *t, int64_t) {
    const char *x = t->data;
    const int64_t across = t->across, along = t->along, outputs = t->outputs, n = t->n;
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

template <class O, class T> struct Many<O, MomentsFold<T>> {
  enum { side = 0 };
  static int run(const gpr_tile *t, const void *with, void *to) {
    const gpr_spread *how = (const gpr_spread *)with;
    ManySpreads<T, O::root>::run(t, how, (T *)to);
    finish_rounded<O>(t, (T *)to, how, [](T spread, int64_t) {
      return RoundedSpread<T, O::root>{spread, true};
    });
    return 1;
  }
  static constexpr decltype(gpr_row::fold_many) fold = ManySpreads<T, false>::fold;
};
template <class O, class R> struct Many<O, MomentsFold<complex<R>>> : ManyAlone<O> {};

GPR_CLOSE
#endif
