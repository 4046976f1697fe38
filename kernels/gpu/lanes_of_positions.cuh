/* Packets folded to where the least or the greatest stands. */
#ifndef GPR_LANES_OF_POSITIONS_CUH
#define GPR_LANES_OF_POSITIONS_CUH

#include "lanes_of_extremes.cuh"

GPR_OPEN

/* Whether anything in the batch could come before the champion: the best of it is found first, with
 * the instructions that find extremes. A false alarm costs time alone. */
enum Challenger { BY_NUMBERS, BY_INTEGERS, BY_PAIRS, BY_HALVES };
template <class T> GPR_CONSTEXPR Challenger challenger() {
  return sizeof(T) <= 2 ? Traits<T>::kind == KIND_FLOAT ? BY_HALVES : BY_PAIRS
         : Same<T, int32_t>::value || Same<T, uint32_t>::value ? BY_INTEGERS
                                                               : BY_NUMBERS;
}
template <class T, bool GREATEST, Challenger = challenger<T>()> struct Challenge {
  typedef Rank<T, GREATEST> R;
  template <int U> static __device__ bool any(const Packet<T> (&v)[U], T champion) {
    bool beaten[4] = {}; /* four chains, for their latency */
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < Packet<T>::count; j++)
        beaten[(u * Packet<T>::count + j) % 4] |= R::beats(v[u].element[j], champion);
    return beaten[0] | beaten[1] | beaten[2] | beaten[3];
  }
};
template <class T, bool GREATEST> struct Challenge<T, GREATEST, BY_INTEGERS> {
  typedef Rank<T, GREATEST> R;
  template <int U> static __device__ bool any(const Packet<T> (&v)[U], T champion) {
    T best = champion;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < Packet<T>::count; j++)
        best = GREATEST ? greatest(best, v[u].element[j]) : least(best, v[u].element[j]);
    return best != champion;
  }
};

/* Small types: the pairs of PairExtremes; the other end tells NaN. */
template <class T, bool GREATEST> struct Challenge<T, GREATEST, BY_PAIRS> {
  template <int U> static __device__ bool any(const Packet<T> (&v)[U], T champion) {
    Lane<Extremes<T>> lane;
    lane.add(v, 0, 0);
    const typename Extremes<T>::State s = lane.done();
    const typename Order<T>::Key key = Order<T>::key(champion);
    return Order<T>::poisoned(s.low, s.high) || (GREATEST ? s.high > key : s.low < key);
  }
};

template <class T, bool GREATEST> struct Challenge<T, GREATEST, BY_HALVES> {
  template <int U> static __device__ bool any(const Packet<T> (&v)[U], T champion) {
#if __CUDA_ARCH__ >= 800
    const uint32_t both = champion.bits * 0x10001u;
    uint32_t best[4] = {both, both, both, both};
#pragma unroll
    for (int i = 0; i < 4 * U; i++) best[i % 4] = best_pair<GREATEST>(best[i % 4], word(v, i), T());
    best[0] = best_pair<GREATEST>(best[0], best[1], T());
    best[2] = best_pair<GREATEST>(best[2], best[3], T());
    const uint32_t pair = best_pair<GREATEST>(best[0], best[2], T());
    const float a = widen(T{(uint16_t)pair}), b = widen(T{(uint16_t)(pair >> 16)});
    const float c = widen(champion); /* zeros of both signs tie */
    return GREATEST ? !(a <= c && b <= c) : !(a >= c && b >= c);
#else
    return Challenge<T, GREATEST, BY_PAIRS>::any(v, champion);
#endif
  }
};

/* A warp has one champion, and a batch that does not challenge it is passed over. */
template <class T, bool GREATEST> struct Lane<Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  typedef typename F::R R;
  typename F::State state;
  __device__ Lane() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t index, int64_t step) {
    const bool beaten = state.index < 0 || Challenge<T, GREATEST>::any(v, R::value(state.best));
    if (!__any_sync(GPR_ALL, beaten && !state.spoiled)) return;
    T best = v[0].element[0];
    int where = 0;
#pragma unroll
    for (int i = 1; i < U * Packet<T>::count; i++) {
      const T x = v[i / Packet<T>::count].element[i % Packet<T>::count];
      if (R::beats(x, best) && !R::poisoned(best)) best = x, where = i;
    }
    F::add(state, best, index + where / Packet<T>::count * step + where % Packet<T>::count);
    merge_warp<F>(state);
  }
  __device__ typename F::State done() { return state; }
};

GPR_CLOSE
#endif
