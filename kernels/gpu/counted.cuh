/* A fold with the number of elements that counted. */
#ifndef GPR_COUNTED_CUH
#define GPR_COUNTED_CUH

#include "outputs.cuh"

GPR_OPEN

template <class F> struct Counted {
  typedef typename F::Element Element;
  static constexpr bool ordered = F::ordered;
  struct State {
    typename F::State state;
    int64_t n;
  };
  static __device__ __forceinline__ void merge(State &s, const State &right) {
    F::merge(s.state, right.state);
    s.n += right.n;
  }
  static __device__ __forceinline__ void open(State &s) {
    F::open(s.state);
    s.n = 0;
  }
};
template <class F> struct PoolBytes<Counted<F>> : PoolBytes<F> {};

template <class F> struct Move<Counted<F>> {
  typedef typename Counted<F>::State State;
  static __device__ __forceinline__ void assign(State &to, const State &from) {
    Move<F>::assign(to.state, from.state);
    to.n = from.n;
  }
  static __device__ __forceinline__ void merge_lanes(State &s, int lanes, int step = 1) {
    Move<F>::merge_lanes(s.state, lanes, step);
    for (int mask = lanes / 2; mask >= step; mask /= 2) s.n += shuffle_xor(s.n, mask);
  }
  static __device__ __forceinline__ void merge_all(State &s, const State *from, int64_t count,
                                                   int64_t bytes) {
    Move<F>::merge_all(s.state, &from->state, count, bytes);
#pragma unroll 1
    for (int64_t i = 0; i < count; i++) s.n += after(from, i * bytes)->n;
  }
};

/* With the numbers of elements, once the states are together. */
template <class F> struct Quick<Counted<F>, 1> {
  template <int SLOTS>
  static __device__ __forceinline__ bool merge(typename Counted<F>::State *s, int x, int y,
                                               int width, int height,
                                               Slots<Counted<F>, SLOTS> &slots) {
    int64_t n[1] = {s->n}, (*slot)[AXES_THREADS / 2] = (int64_t(*)[AXES_THREADS / 2]) & slots;
    if (!Quick<F, 1>::merge(&s->state, x, y, width, height, (Slots<F> &)slots)) return false;
    merge_halves(n, x, y, width, height, slot,
                 [](int64_t &mine, int64_t theirs) { mine += theirs; });
    __syncthreads();
    s->n = n[0];
    return true;
  }
};

GPR_CLOSE
#endif
