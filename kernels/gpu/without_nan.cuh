/* The extremes of those elements that are no NaN, as the hardware compares: of a NaN and a number
 * it takes the number. */
#pragma once

#include "lanes_of_extremes.cuh"
#include "load.cuh"

GPR_OPEN

template <class F> struct WithoutNaN : F {};

template <bool GREATEST> GPR_DEVICE float best_number(float a, float b, float) {
  return GREATEST ? fmaxf(a, b) : fminf(a, b);
}
template <bool GREATEST> GPR_DEVICE double best_number(double a, double b, double) {
  return GREATEST ? fmax(a, b) : fmin(a, b);
}
/* Of two pairs of 16 bits. */
template <bool GREATEST, class T> GPR_DEVICE uint32_t best_number(uint32_t a, uint32_t b, T) {
#if __CUDA_ARCH__ >= 800
  return best_pair<GREATEST, true>(a, b, T());
#else
  uint32_t best = 0;
  GPR_EACH(h, 2) {
    const T x{(uint16_t)(a >> 16 * h)}, y{(uint16_t)(b >> 16 * h)};
    const bool second = wide(x) != wide(x) || Order<T>::key(x) < Order<T>::key(y) == GREATEST;
    best |= (uint32_t)(second && wide(y) == wide(y) ? y : x).bits << 16 * h;
  }
  return best;
#endif
}

/* low, high: NaN where nothing was a number. */
template <class T> struct Lane<WithoutNaN<Extremes<T>>> {
  typedef Extremes<T> F;
  static constexpr bool neutral = false;
  static constexpr int each = sizeof(T) == 2 ? 2 : 1; /* elements of a word */
  typedef typename Either<each == 2, uint32_t, T>::type Word;
  Word low, high;
  __device__ Lane() { low = high = word_of(quiet_nan<T>()); }
  static GPR_DEVICE Word word_of(T x) {
    if constexpr (each == 2)
      return x.bits * 0x00010001u;
    else
      return x;
  }
  GPR_DEVICE void keep(typename F::State *) {}
  GPR_DEVICE void add(Word w) {
    low = best_number<false>(low, w, T());
    high = best_number<true>(high, w, T());
  }
  GPR_DEVICE void one(T x, int64_t) { add(word_of(x)); }
  template <int U> GPR_DEVICE void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    if constexpr (each == 2)
      GPR_EACH(i, 4 * U) add(word(v, i));
    else
      GPR_EACH(u, U)
        GPR_EACH(j, Packet<T>::count) add(v[u].element[j]);
  }
  GPR_DEVICE void result(typename F::State &s) const {
    T lows[each], highs[each];
    memcpy(lows, &low, sizeof low);
    memcpy(highs, &high, sizeof high);
    F::open(s);
    GPR_EACH(h, each) {
      if (is_nan_or_nat(lows[h])) continue;
      F::add(s, lows[h], 0);
      F::add(s, highs[h], 0);
    }
  }
};

GPR_CLOSE
