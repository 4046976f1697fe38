/* Exact sums of floating-point numbers, as a fold. */
#pragma once

#include "exact.h"
#include "fold.h"

GPR_OPEN

/* PARTS accumulators: one, or one each for real and imaginary parts. */
template <class T> struct ExactFold : RealParts<T> {
  typedef T Element;
  static constexpr gpr_law law = GPR_EXACT;
  static constexpr bool ordered = false;
  using RealParts<T>::parts, RealParts<T>::real;
  struct State {
    Exact part[parts];
  };
  static GPR_METHOD void open(State &s) { memset(&s, 0, sizeof s); }
  static GPR_METHOD void add(State &s, T x, int64_t) {
    for (int p = 0; p < parts; p++) {
      const double part = real(x, p);
      s.part[p].signs |= bits(part) == 1ull << 63 ? GPR_MET : GPR_MET | GPR_OTHER;
      scatter(s.part[p], part);
    }
  }
  static GPR_METHOD void merge(State &s, const State &right) {
    for (int i = 0; i < parts; i++) gpr::merge(s.part[i], right.part[i]);
  }
};

template <class T> struct ExactSumValue {
  typename ExactFold<T>::State state;
  GPR_METHOD void add(T x) { ExactFold<T>::add(state, x, -1); }
  template <class R> GPR_METHOD R part(int p, uint64_t n) const {
    return round_exact<R>(state.part[p], n);
  }
  template <class R> GPR_METHOD R round(uint64_t n = 1) const { return Parts<R>::round(*this, n); }
};
template <class T> struct Shown<ExactFold<T>> {
  static GPR_METHOD ExactSumValue<T> of(const typename ExactFold<T>::State &s) { return {s}; }
};

GPR_CLOSE
