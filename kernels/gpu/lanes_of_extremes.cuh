/* Packets folded to the least and the greatest. */
#pragma once

#include "lanes.cuh"

GPR_OPEN

/* The keys of a word, two of 16 bits a register: bytes are spread over two, sign and all; floats
 * are flipped as FloatOrder does. */
template <class T> GPR_DEVICE uint32_t pair_keys(uint32_t w, int pair) {
  if constexpr (sizeof(T) == 1 && Traits<T>::kind == KIND_INT)
    return permute(w, pair ? 0xb3a2 : 0x9180);
  else if constexpr (sizeof(T) == 1)
    return permute(w, pair ? 0x4342 : 0x4140);
  else if constexpr (Traits<T>::kind == KIND_FLOAT)
    return w ^ ((w >> 15 & 0x00010001u) * 0x7fffu);
  else
    return w;
}

/* The bounds of pairs of such keys. */
template <class T> struct PairBounds {
  typedef Extremes<T> F;
  static constexpr bool is_signed = Traits<T>::kind != KIND_UINT;
  uint32_t low, high;
  static constexpr uint32_t no_low = is_signed ? 0x7fff7fffu : 0xffffffffu,
                            no_high = is_signed ? 0x80008000u : 0;
  GPR_DEVICE void open() { low = no_low, high = no_high; }
  GPR_DEVICE void add(uint32_t keys) { add(keys, keys); }
  GPR_DEVICE void add(uint32_t for_low, uint32_t for_high) {
    low = is_signed ? __vmins2(low, for_low) : __vminu2(low, for_low);
    high = is_signed ? __vmaxs2(high, for_high) : __vmaxu2(high, for_high);
  }
  /* Those that have their bits in `counts`. */
  GPR_DEVICE void add_some(uint32_t keys, uint32_t counts) {
    add((keys & counts) | (no_low & ~counts), (keys & counts) | (no_high & ~counts));
  }
  static GPR_DEVICE int half(uint32_t pair, int h) {
    return is_signed ? (int)(int16_t)(pair >> 16 * h) : (int)(uint16_t)(pair >> 16 * h);
  }
  /* Where nothing was folded yet the pairs lie outside a byte's range, which the casts of the
   * untouched bounds must not wrap: they are compared as 16 bits. */
  GPR_DEVICE void give(int which, typename F::State &s) const {
    typedef typename F::Key Key;
    const int l = half(low, which), h = half(high, which);
    if (l <= h) s.low = least(s.low, (Key)l), s.high = greatest(s.high, (Key)h);
  }
};
/* Of elements of one or two bytes. */
template <class T> struct PairExtremes : AnyLane<Extremes<T>> {
  PairBounds<T> bounds;
  __device__ PairExtremes() { bounds.open(); }
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    GPR_EACH(i, 4 * U)
      GPR_EACH(pair, 2 / (int)sizeof(T)) bounds.add(pair_keys<T>(word(v, i), pair));
  }
  __device__ void result(typename Extremes<T>::State &s) {
    s = this->state;
    bounds.give(0, s);
    bounds.give(1, s);
  }
};
template <class T>
struct Lane<Extremes<T>> : Either<sizeof(T) <= 2, PairExtremes<T>, AnyLane<Extremes<T>>>::type {};

template <> struct Lane<Extremes<boolean>> : AnyLane<Extremes<boolean>> {
  typedef Extremes<boolean> F;
  uint32_t any = 0, all = 0x80808080u;
  bool met = false;
  template <int U> __device__ void take(const Packet<boolean> (&v)[U], int64_t, int64_t) {
    met = true;
    GPR_EACH(i, 4 * U) {
      const uint32_t t = true_bytes(word(v, i));
      any |= t;
      all &= t;
    }
  }
  __device__ void result(F::State &s) {
    s = state;
    if (met) F::merge(s, F::State{(uint8_t)(all == 0x80808080u), (uint8_t)(any != 0)});
  }
};

/* What lies between the warp's extremes by its real part alone changes nothing, and two comparisons
 * tell; the rest is taken in full. */
template <class R> struct Lane<Extremes<complex<R>>> : AnyLane<Extremes<complex<R>>> {
  typedef Extremes<complex<R>> F;
  typedef complex<R> T;
  using AnyLane<F>::state;
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    const R low = F::value(state.low).re, high = F::value(state.high).re; /* NaN at first */
    bool within[4] = {true, true, true, true};
    GPR_EACH(u, U)
      GPR_EACH(j, Packet<T>::count) {
        const T x = v[u].element[j];
        within[u % 4] &= (x.re > low) & (x.re < high) & (x.im == x.im);
      }
    const bool all = within[0] & within[1] & within[2] & within[3];
    if (!__any_sync(GPR_ALL, !(all | state.nan))) return;
    AnyLane<F>::take(v, 0, 0);
    merge_warp<F>(state);
  }
};

/* Since sm_80 one instruction compares two floats of 16 bits; of a NaN and a number it takes the
 * NaN, or with NUMBER the other. */
#define GPR_BEST_PAIR(type, letters)                                          \
  template <bool GREATEST, bool NUMBER = false>                               \
  GPR_DEVICE uint32_t best_pair(uint32_t a, uint32_t b, type) {               \
    uint32_t best;                                                            \
    if (GREATEST && NUMBER)                                                   \
      asm("max." letters "x2 %0, %1, %2;" : "=r"(best) : "r"(a), "r"(b));     \
    else if (NUMBER)                                                          \
      asm("min." letters "x2 %0, %1, %2;" : "=r"(best) : "r"(a), "r"(b));     \
    else if (GREATEST)                                                        \
      asm("max.NaN." letters "x2 %0, %1, %2;" : "=r"(best) : "r"(a), "r"(b)); \
    else                                                                      \
      asm("min.NaN." letters "x2 %0, %1, %2;" : "=r"(best) : "r"(a), "r"(b)); \
    return best;                                                              \
  }
GPR_BEST_PAIR(float16, "f16")
GPR_BEST_PAIR(bfloat16, "bf16")
#undef GPR_BEST_PAIR

GPR_CLOSE
