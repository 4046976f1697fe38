/* Extremes of contiguous elements and their places. */
#pragma once

#include "extremes.h"

GPR_OPEN

/* The first byte that is not zero, or is; n if there is none. A word's lowest byte comes first, and
 * what found() makes of a word has its lowest bit in the first such byte. */
template <bool TRUTH> GPR_FN int64_t first_truth(const boolean *from, int64_t n) {
  const uint8_t *x = &from->byte;
  enum { WORDS = 32 };
  const auto found = [](const uint8_t *at) {
    const uint64_t ones = ~UINT64_C(0) / 255;
    uint64_t w;
    memcpy(&w, at, sizeof w);
    return TRUTH ? w : (w - ones) & ~w & ones << 7;
  };
  if (n >= 8 && found(x)) return __builtin_ctzll(found(x)) / 8; /* as in most rows */
  int64_t i = 0;
  for (uint64_t any; i + 8 * WORDS <= n; i += 8 * WORDS) {
    any = 0;
    for (int j = 0; j < WORDS; j++) any |= found(x + i + 8 * j);
    if (any) break;
  }
  for (; i + 8 <= n; i += 8)
    if (const uint64_t bits = found(x + i)) return i + __builtin_ctzll(bits) / 8;
  while (i < n && (x[i] != 0) != TRUTH) i++;
  return i;
}

/* A run's best and its place; of NaN alone, or with one that is not left out, spoiled. */
template <class T> struct Best {
  T value;
  int64_t place;
  bool spoiled;
};
/* Integers and floats where they lie; halves as floats. */
template <class T, bool PLACE> struct BestOfRun {
  typedef typename Compared<T, false>::type N;
  static constexpr int64_t most = is_native<T>() ? INT64_MAX : 1024;
  static Best<T> of(const T *x, int64_t n, bool high, bool skip) {
    constexpr bool placed = PLACE && sizeof(T) > 1;
    alignas(64) N wide[is_native<T>() ? 1 : GPR_SHORT];
    const N *at = is_native<T>() ? (const N *)(const void *)x : wide;
    if constexpr (!is_native<T>()) copy_wide(x, wide, n);
    const auto flip = flip_of<N, T>(high);
    auto peak = peak_of<N, placed>(at, n, flip, skip);
    if (!PLACE && Traits<T>::kind == KIND_FLOAT && !peak.spoiled && peak.value == 0)
      peak.value = zero_of(at, n, flip);
    if (PLACE && !placed) peak.place = find_as<1>(x, n, 0xff, (uint8_t)peak.turn(peak.value));
    return {value_of<T>(peak.turn(peak.value)), peak.place, peak.spoiled};
  }
};
/* The first one that wins ends the search. */
template <> struct BestOfRun<boolean, true> {
  static constexpr int64_t most = INT64_MAX;
  static Best<boolean> of(const boolean *x, int64_t n, bool high, bool) {
    const int64_t at = high ? first_truth<true>(x, n) : first_truth<false>(x, n);
    return {{(uint8_t)(at == n ? !high : high)}, at == n ? 0 : at, false};
  }
};
/* The greatest real part and, where several have it, among these the greatest imaginary one. */
template <class R> struct BestOfRun<complex<R>, true> {
  typedef complex<R> T;
  static constexpr int64_t most = 1024;
  enum { PIECE = 64 }; /* elements that are read before NaN, which may end it, is looked for */
  /* Real parts, or NaN; whether there is such. */
  static bool take_real(const T *__restrict x, int64_t n, R *__restrict to) {
    int nan = 0;
    for (int64_t i = 0; i < n; i++) {
      to[i] = x[i].im == x[i].im ? x[i].re : quiet_nan<R>();
      nan |= to[i] != to[i];
    }
    return nan;
  }
  static GPR_APART Best<T> of(const T *x, int64_t n, bool high, bool skip) {
    alignas(64) R part[GPR_SHORT];
    const auto flip = flip_of<R, R>(high);
    for (int64_t i = 0; i < n; i += PIECE)
      if (const int64_t m = least((int64_t)PIECE, n - i); take_real(x + i, m, part + i) && !skip)
        for (int64_t at = i;; at++)
          if (part[at] != part[at]) return {x[at], at, true};
    const auto peak = peak_of<R, true>(part, n, flip, skip);
    int64_t at = peak.place;
    if (peak.spoiled) return {x[0], at, true}; /* nothing else is there */
    const int64_t rest = n - at - 1;
    if (peak.first_that(part + at + 1, rest, [&](auto e) { return e == peak.value; }) < rest) {
      const R best = part[at], none = peak.turn(peak.worst());
      for (int64_t i = at; i < n; i++) part[i] = part[i] == best ? x[i].im : none;
      at += peak_of<R, true>(part + at, n - at, flip, false).place;
    }
    return {x[at], at, false};
  }
};
template <class R> struct BestOfRun<complex<R>, false> : BestOfRun<complex<R>, true> {
  typedef complex<R> T;
  static Best<T> of(const T *x, int64_t n, bool high, bool skip) {
    auto best = BestOfRun<T, true>::of(x, n, high, skip);
    if (!best.spoiled) best.value = order_zeros(x, best.place, n, high);
    return best;
  }
  /* Zeros have their order among what is else the same. */
  static GPR_APART T order_zeros(const T *x, int64_t at, int64_t n, bool high) {
    const auto rank = [=](T e) {
      return 2 * (!__builtin_signbit(e.re) == high) + (!__builtin_signbit(e.im) == high);
    };
    T best = x[at];
    for (int64_t i = at; (best.re == 0 || best.im == 0) && i < n; i++)
      if (x[i].re == best.re && x[i].im == best.im && rank(x[i]) > rank(best)) best = x[i];
    return best;
  }
};

template <class T>
static GPR_APART void fold_run(typename Extremes<T>::State &s, const T *x, int64_t n, bool high,
                               bool skip) {
  const auto best = BestOfRun<T, false>::of(x, n, high, skip);
  add_best<T>(s, best.value, best.spoiled, skip);
}
template <class O, class T> struct Folder<O, Extremes<T>> {
  typedef Extremes<T> F;
  typedef typename F::State State;
  static void fold(State &s, const T *x, int64_t n, int64_t, bool skip = false) {
    if constexpr (is_compared<T>()) {
      /* Who asks for both reads a block again while it is in the first cache. */
      const int64_t both = Asks<O>::low && Asks<O>::high ? 16384 / sizeof(T) : n;
      const int64_t block = least(both, BestOfRun<T, false>::most);
      for (int64_t i = 0; i < n; i += block) {
        const int64_t m = least(block, n - i);
        if (Asks<O>::low) fold_run(s, x + i, m, false, skip);
        if (Asks<O>::high) fold_run(s, x + i, m, true, skip);
      }
    } else {
      for (int64_t i = 0; i < n; i++) F::add(s, x[i], 0);
    }
  }
};

/* Runs by blocks of 32 KiB: the end of a block and its start cost 50 ns, and searching one for what
 * bytes do not number is quick in the cache. */
template <class O, class T, bool GREATEST> struct Folder<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t index, bool skip = false) {
    if constexpr (is_compared<T>()) {
      const int64_t block = least((int64_t)(32768 / sizeof(T)), BestOfRun<T, true>::most);
      for (int64_t i = 0; i < n && !s.spoiled; i += block) {
        const auto best = BestOfRun<T, true>::of(x + i, least(block, n - i), GREATEST, skip);
        if (!(best.spoiled && skip)) /* else only NaN is there, which does not count */
          F::merge(s, {index + i + best.place, best.spoiled, F::R::of(best.value)});
      }
    } else {
      for (int64_t i = 0; i < n; i++) F::add(s, x[i], index + i);
    }
  }
};
template <class O, class T> struct Folder<O, Positions<T>> {
  static void fold(typename Positions<T>::State &s, const T *x, int64_t n, int64_t index) {
    Folder<ArgMin<T>>::fold(s.low, x, n, index);
    Folder<ArgMax<T>>::fold(s.high, x, n, index);
  }
};

GPR_CLOSE
