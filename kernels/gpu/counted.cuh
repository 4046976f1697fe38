/* A fold with the number of elements that counted. */
#pragma once

#include "column_sums.cuh"

GPR_OPEN

template <class F> struct Counted {
  typedef typename F::Element Element;
  static constexpr bool ordered = F::ordered;
  struct State {
    typename F::State state;
    int64_t n;
  };
  static GPR_DEVICE void merge(State &s, const State &right) {
    F::merge(s.state, right.state);
    s.n += right.n;
  }
  static GPR_DEVICE void open(State &s) {
    F::open(s.state);
    s.n = 0;
  }
};
template <class F> struct PoolBytes<Counted<F>> : PoolBytes<F> {};

template <class F> struct StateTerms<Counted<F>> : StateTerms<F> {
  typedef StateTerms<F> Terms;
  typedef typename Counted<F>::State State;
  static constexpr bool counts = true;
  template <class X> static GPR_DEVICE bool get(const State &s, X &x) {
    return Terms::get(s.state, x);
  }
  template <class Some> static GPR_DEVICE void put(State &s, const Some &some) {
    Terms::put(s.state, some);
  }
};

template <class F> struct Move<Counted<F>> {
  typedef typename Counted<F>::State State;
  static GPR_DEVICE void assign(State &to, const State &from) {
    Move<F>::assign(to.state, from.state);
    to.n = from.n;
  }
  static GPR_DEVICE void merge_lanes(State &s, int lanes, int step = 1) {
    Move<F>::merge_lanes(s.state, lanes, step);
    for (int mask = lanes / 2; mask >= step; mask /= 2) s.n += shuffle_xor(s.n, mask);
  }
  static GPR_DEVICE void merge_all(State &s, const State *from, int64_t count, int64_t bytes) {
    Move<F>::merge_all(s.state, &from->state, count, bytes);
    /* Each of them by itself would wait for the memory. */
    enum { N = 8 };
    GPR_ROLLED(int64_t i = 0; i < count; i += N) {
      int64_t n[N];
      GPR_EACH(u, N) n[u] = i + u < count ? after(from, (i + u) * bytes)->n : 0;
      GPR_EACH(u, N) s.n += n[u];
    }
  }
};

template <class T> struct Quick<Counted<PairSum<T>>, 1> {
  typedef PairSum<T> F;
  typedef Counted<F> C;
  struct Sums {
    typename Quick<F, 1>::Sum part[F::parts];
    int64_t n;
  };
  template <int SLOTS>
  static GPR_DEVICE bool merge(typename C::State *s, int x, int y, int width, int height,
                               Slots<C, SLOTS> &slots) {
    Sums sums[1], (*slot)[AXES_THREADS / 2] = (Sums(*)[AXES_THREADS / 2]) & slots;
    static_assert(sizeof slots >= sizeof *slot, "");
    bool lost = Quick<F, 1>::take(&s->state, sums->part);
    sums->n = s->n;
    merge_halves(sums, x, y, width, height, slot, [&](Sums &mine, const Sums &theirs) {
      GPR_EACH(p, F::parts) mine.part[p] = merged(mine.part[p], theirs.part[p], lost);
      mine.n += theirs.n;
    });
    if (__syncthreads_or(lost)) return false;
    GPR_EACH(p, F::parts) s->state.part[p].sum = sums->part[p];
    s->n = sums->n;
    return true;
  }
};

GPR_CLOSE
