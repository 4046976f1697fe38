/* Whether what a warp's lanes have met is the result, whatever comes: then no more is read. */
#pragma once

#include "cells.cuh"

GPR_OPEN

template <class F> struct Settled { static constexpr bool value = false; };

/* NaN, in each part of complex numbers. */
GPR_DEVICE bool is_lost(double sum) { return sum != sum; }
template <class Sum> GPR_DEVICE bool is_lost(const Sum &sum) { return sum.hi != sum.hi; }
template <class T> struct Settled<PairSum<T>> {
  typedef Cells<PairSum<T>, 1> Sums;
  static constexpr bool value = true;
  static GPR_DEVICE bool of(const Lane<PairSum<T>> &lane, int) {
    constexpr int parts = PairSum<T>::parts, sums = sizeof Sums::sum / sizeof *Sums::sum;
    bool all = true;
    GPR_EACH(p, parts) {
      bool lost = false;
      GPR_UNROLLED(int i = p; i < sums; i += parts) lost |= is_lost(lane.cells.sum[i]);
      all &= __any_sync(GPR_ALL, lost) != 0;
    }
    return all;
  }
};
/* NaN. Of doubles the registers for it cost more than it gains: 3 to 10 % of the time without. */
template <class T> struct Settled<Extremes<T>> {
  typedef Extremes<T> F;
  static constexpr bool value = sizeof(T) <= 4 && Traits<T>::kind == KIND_FLOAT;
  static GPR_DEVICE bool of(const Lane<F> &lane, int) {
    bool is_nan = F::poisoned(lane.state);
    if constexpr (sizeof(T) == 2) {
      const auto half = [](uint32_t pair, int h) { return PairBounds<T>::half(pair, h); };
      const uint32_t low = lane.bounds.low, high = lane.bounds.high;
      is_nan |= Order<T>::poisoned(least(half(low, 0), half(low, 1)),
                                   greatest(half(high, 0), half(high, 1)));
    }
    return __any_sync(GPR_ALL, is_nan);
  }
};
template <class T> struct Settled<Counting<T, 1>> {
  static constexpr bool value = true;
  static GPR_DEVICE bool of(const Lane<Counting<T, 1>> &lane, int op) {
    return op == GPR_OP_ANY && __any_sync(GPR_ALL, lane.state.count > 0);
  }
};

GPR_CLOSE
