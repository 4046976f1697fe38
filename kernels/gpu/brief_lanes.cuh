/* What the lanes of a warp that share a short output keep of it, in registers. */
#pragma once

#include "staged.cuh"
#include "tile_cells.cuh"

GPR_OPEN

/* loads of a lane are under way together. finish() is called by whole warps, of which lanes `mine`
 * write; false: the outputs have to be folded again, which is never so if the lanes are sure. */
template <class F> struct BriefLanes {
  typedef typename F::Element T;
  typedef NothingShared Shared; /* by all outputs */
  static constexpr int loads = sizeof(T) <= 4 ? 16 : 64 / sizeof(T);
  static constexpr bool are_sure = true;
  Few<F> few;
  int64_t place; /* steps of the index from one element to the next */
  GPR_DEVICE BriefLanes(const Shared &, int64_t place, bool *) : place(place) {}
  /* With what a lane has of an output, before anything else. */
  template <class Share> GPR_DEVICE void begin(const Share &) {}
  template <int U> GPR_DEVICE void add(const T (&x)[U], uint32_t valid, int r, int down) {
    if (valid == ~0u >> (32 - U)) {
      GPR_EACH(u, U) few.add(x[u], F::ordered ? (r + u * down) * place : 0);
    } else {
      GPR_EACH(u, U)
        if (valid >> u & 1) few.add(x[u], F::ordered ? (r + u * down) * place : 0);
    }
  }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int n, int team, bool, bool mine) {
    typename F::State all;
    few.result(all);
    Move<F>::merge_lanes(all, team, a.across);
    if (mine) finish_here<F>(a, o, all, n);
    return true;
  }
};
/* What looks again where that could not tell; whether there is such. */
template <class F> struct TiedLanes;
template <class F> struct HasTies { static constexpr bool value = false; };

/* What the sum in registers could not hold was lost: it only says so. */
struct NoRest {
  bool *lost;
};
GPR_DEVICE void add_rest(NoRest rest, double) { *rest.lost = true; }

/* Of complex numbers twice as many loads: (444, 37935) complex floats took 62 µs on an H200 by
 * eight, and take 47, (138, 73791) complex doubles 70 and 56; of floats, doubles and halves 0.84 to
 * 1.46 times the time, mostly more. */
template <class T> struct BriefLanes<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::Real R;
  typedef typename RealOf<T>::type Stored;
  typedef typename RealSum<R>::Sum Sum;
  static constexpr int parts = F::parts, loads = sizeof(T) <= 4 ? 16 : parts * 64 / sizeof(T);
  static constexpr bool are_sure = false;
  Sum sum[parts];
  NoRest rest;
  typedef NothingShared Shared;
  GPR_DEVICE BriefLanes(const Shared &, int64_t, bool *lost) : rest{lost} {
    GPR_EACH(p, parts) clear(sum[p]);
  }
  template <class Share> GPR_DEVICE void begin(const Share &) {}
  template <int U> GPR_DEVICE void add(const T (&x)[U], uint32_t valid, int, int) {
    R v[U * parts];
    GPR_EACH(i, U * parts) v[i] = F::real(x[i / parts], i % parts);
    if (valid != ~0u >> (32 - U))
      GPR_EACH(i, U * parts)
        if (!(valid >> i / parts & 1)) v[i] = R(-0.0);
    GPR_EACH(p, parts) take<Stored, U * parts, parts>(sum[p], v, p, rest);
  }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int n, int team, bool lost, bool mine) {
    GPR_EACH(p, parts)
      GPR_ROLLED(int mask = team / 2; mask >= a.across; mask /= 2)
        sum[p] = merged(sum[p], shuffle_xor(sum[p], mask), lost);
    int all = lost;
    GPR_ROLLED(int mask = team / 2; mask >= a.across; mask /= 2) all |= shuffle_xor(all, mask);
    return mine && finish_value<F>(a, o, n, Few<F>::rounded(a, n, sum, !all));
  }
};

/* Elements that a lane folds in a short time. */
template <class F> struct BriefEach { static constexpr int value = 16 * BriefLanes<F>::loads; };
template <class T> struct BriefEach<PairSum<T>> {
  typedef BriefLanes<PairSum<T>> Lanes;
  static constexpr int value = 16 * Lanes::loads / Lanes::parts;
};

GPR_CLOSE
