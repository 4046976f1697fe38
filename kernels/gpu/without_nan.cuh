/* The extremes of those elements that are no NaN, as the hardware compares: of a NaN and a number
 * it takes the number. */
#pragma once

#include "axes_results.cuh"
#include "load.cuh"
#include "word_cells.cuh"

GPR_OPEN

template <class F> struct WithoutNaN : F {
  static GPR_DEVICE void add(typename F::State &s, typename F::Element x, int64_t index) {
    if (!is_nan_or_nat(x)) F::add(s, x, index);
  }
};
/* Which folds have rows and columns of it. */
template <class F> struct HasNumbers { static constexpr bool value = false; };
template <class T> struct HasNumbers<Extremes<T>> {
  static constexpr bool value = Traits<T>::kind == KIND_FLOAT;
};

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

/* Two bounds of an element, or of as many as a register holds: NaN where nothing was a number. */
template <class T> struct NumberBounds {
  typedef Extremes<T> F;
  static constexpr int each = sizeof(T) == 2 ? 2 : 1;
  typedef typename Either<each == 2, uint32_t, T>::type Word;
  Word low, high;
  __device__ NumberBounds() { open(); }
  GPR_DEVICE void open() { low = high = word_of(quiet_nan<T>()); }
  static GPR_DEVICE Word word_of(T x) {
    if constexpr (each == 2)
      return x.bits * 0x00010001u;
    else
      return x;
  }
  GPR_DEVICE void add(Word w) {
    low = best_number<false>(low, w, T());
    high = best_number<true>(high, w, T());
  }
  /* Those of its h-th element. */
  GPR_DEVICE void give(int h, typename F::State &s) const {
    T lows[each], highs[each];
    memcpy(lows, &low, sizeof low);
    memcpy(highs, &high, sizeof high);
    if (is_nan_or_nat(lows[h])) return;
    F::add(s, lows[h], 0);
    F::add(s, highs[h], 0);
  }
};

template <class T> struct Lane<WithoutNaN<Extremes<T>>> {
  typedef Extremes<T> F;
  static constexpr bool neutral = false;
  NumberBounds<T> bounds;
  GPR_DEVICE void keep(typename F::State *) {}
  GPR_DEVICE void one(T x, int64_t) { bounds.add(bounds.word_of(x)); }
  template <int U> GPR_DEVICE void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    if constexpr (sizeof(T) == 2) {
      GPR_EACH(i, 4 * U) bounds.add(word(v, i));
    } else {
      GPR_EACH(u, U)
        GPR_EACH(j, Packet<T>::count) bounds.add(v[u].element[j]);
    }
  }
  GPR_DEVICE void result(typename F::State &s) const {
    F::open(s);
    GPR_EACH(h, bounds.each) bounds.give(h, s);
  }
};

/* --- columns ---------------------------------------------------------------------------------- */

template <class T> struct Cell<WithoutNaN<Extremes<T>>> {
  typedef Extremes<T> F;
  NumberBounds<T> bounds;
  GPR_DEVICE void add(T x, int64_t) { bounds.add(bounds.word_of(x)); }
  GPR_DEVICE typename F::State done() const {
    typename F::State s;
    F::open(s);
    bounds.give(0, s);
    return s;
  }
};
template <class T> struct NumberWords {
  static constexpr bool is_there = true;
  static constexpr int most = 1 << 30;
  NumberBounds<T> bounds[4];
  GPR_DEVICE void open() {
    GPR_EACH(i, 4) bounds[i].open();
  }
  GPR_DEVICE void add(int i, uint32_t w) { bounds[i].add(w); }
  GPR_DEVICE void give(int c, typename Extremes<T>::State &s, int) const {
    bounds[c / 2].give(c % 2, s);
  }
};
template <class T>
struct WordLane<WithoutNaN<Extremes<T>>> : LaneIf<sizeof(T) == 2, NumberWords<T>> {};

/* --- results ---------------------------------------------------------------------------------- */

template <class F> struct StandsFor<WithoutNaN<F>> { typedef F Fold; };
/* How many there were is not asked, but whether there was one. */
template <class F> struct CountOf<WithoutNaN<F>> {
  static GPR_DEVICE int64_t of(const gpr_axes_args &a, const typename F::State &s) {
    const int64_t n = s.low <= s.high ? a.count : 0;
    tell_least(a, n);
    return n;
  }
};

GPR_CLOSE
