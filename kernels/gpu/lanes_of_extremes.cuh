/* Packets folded to the least, the greatest, and where they stand. */
#ifndef GPR_LANES_OF_EXTREMES_CUH
#define GPR_LANES_OF_EXTREMES_CUH

#include "lanes.cuh"

GPR_OPEN

/* The keys of a word, two of 16 bits a register: bytes are spread over two, sign and all; floats
 * are flipped as FloatOrder does. */
template <class T> __device__ __forceinline__ uint32_t pair_keys(uint32_t w, int pair) {
  if constexpr (sizeof(T) == 1 && Traits<T>::kind == KIND_INT)
    return permute(w, pair ? 0xb3a2 : 0x9180);
  else if constexpr (sizeof(T) == 1)
    return permute(w, pair ? 0x4342 : 0x4140);
  else if constexpr (Traits<T>::kind == KIND_FLOAT)
    return w ^ ((w >> 15 & 0x00010001u) * 0x7fffu);
  else
    return w;
}

/* Of elements of one or two bytes. */
template <class T> struct PairExtremes {
  typedef Extremes<T> F;
  static constexpr bool is_signed = Traits<T>::kind != KIND_UINT;
  typename F::State state;
  uint32_t low, high;
  __device__ PairExtremes() {
    F::open(state);
    low = is_signed ? 0x7fff7fffu : 0xffffffffu;
    high = is_signed ? 0x80008000u : 0;
  }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
#pragma unroll
    for (int i = 0; i < 4 * U; i++)
#pragma unroll
      for (int pair = 0; pair < 2 / (int)sizeof(T); pair++) {
        const uint32_t k = pair_keys<T>(word(v, i), pair);
        low = is_signed ? __vmins2(low, k) : __vminu2(low, k);
        high = is_signed ? __vmaxs2(high, k) : __vmaxu2(high, k);
      }
  }
  /* Where nothing was folded yet the pairs lie outside a byte's range, which the casts of the
   * untouched bounds must not wrap: they are compared as 16 bits. */
  __device__ void take(int l, int h) {
    if (l <= h) {
      state.low = least(state.low, (typename F::Key)l);
      state.high = greatest(state.high, (typename F::Key)h);
    }
  }
  __device__ typename F::State done() {
    for (int half = 0; half < 2; half++) {
      const uint16_t l = (uint16_t)(low >> 16 * half), h = (uint16_t)(high >> 16 * half);
      if (is_signed)
        take((int16_t)l, (int16_t)h);
      else
        take(l, h);
    }
    return state;
  }
};
template <class T, bool = sizeof(T) <= 2> struct ExtremesLane : AnyLane<Extremes<T>> {};
template <class T> struct ExtremesLane<T, true> : PairExtremes<T> {};
template <class T> struct Lane<Extremes<T>> : ExtremesLane<T> {};

template <> struct Lane<Extremes<boolean>> {
  typedef Extremes<boolean> F;
  F::State state;
  uint32_t any, all;
  bool met;
  __device__ Lane() : any(0), all(0x80808080u), met(false) { F::open(state); }
  template <int U> __device__ void add(const Packet<boolean> (&v)[U], int64_t, int64_t) {
    met = true;
#pragma unroll
    for (int i = 0; i < 4 * U; i++) {
      const uint32_t t = true_bytes(word(v, i));
      any |= t;
      all &= t;
    }
  }
  __device__ F::State done() {
    if (met) F::merge(state, F::State{(uint8_t)(all == 0x80808080u), (uint8_t)(any != 0)});
    return state;
  }
};

/* What lies between the warp's extremes by its real part alone changes nothing, and two comparisons
 * tell; the rest is taken in full. */
template <class R> struct Lane<Extremes<complex<R>>> {
  typedef Extremes<complex<R>> F;
  typedef complex<R> T;
  typename F::State state;
  __device__ Lane() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
    const R low = F::value(state.low).re, high = F::value(state.high).re; /* NaN at first */
    bool within[4] = {true, true, true, true};
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < Packet<T>::count; j++) {
        const T x = v[u].element[j];
        within[u % 4] &= (x.re > low) & (x.re < high) & (x.im == x.im);
      }
    const bool all = within[0] & within[1] & within[2] & within[3];
    if (!__any_sync(GPR_ALL, !(all | state.nan))) return;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < Packet<T>::count; j++) F::add(state, v[u].element[j], 0);
    merge_warp<F>(state);
  }
  __device__ typename F::State done() { return state; }
};

/* --- positions ---------------------------------------------------------------------------------
 */

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

/* Since sm_80 one instruction compares two floats of 16 bits, and keeps a NaN. */
#define GPR_BEST_PAIR(type, letters)                                            \
  template <bool GREATEST>                                                      \
  __device__ __forceinline__ uint32_t best_pair(uint32_t a, uint32_t b, type) { \
    uint32_t best;                                                              \
    if (GREATEST)                                                               \
      asm("max.NaN." letters "x2 %0, %1, %2;" : "=r"(best) : "r"(a), "r"(b));   \
    else                                                                        \
      asm("min.NaN." letters "x2 %0, %1, %2;" : "=r"(best) : "r"(a), "r"(b));   \
    return best;                                                                \
  }
GPR_BEST_PAIR(float16, "f16")
GPR_BEST_PAIR(bfloat16, "bf16")
#undef GPR_BEST_PAIR
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
