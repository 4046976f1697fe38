/* Extremes of contiguous elements and their places. */
#ifndef GPR_EXTREME_RUNS_H
#define GPR_EXTREME_RUNS_H

#include "extremes.h"
#include "find.h"

GPR_OPEN

/* The best of a run, if it has one: no NaN, or if that is left out something else. */
template <class T> GPR_FN bool best_of(const T *x, int64_t n, bool high, bool skip, T *best) {
  typedef typename Compared<T, false>::type N;
  const N *at = (const N *)(const void *)x;
  const auto flip = flip_of<N, T>(high);
  auto peak = peak_of<N, false>(at, n, flip, skip);
  if (Traits<T>::kind == KIND_FLOAT && !peak.spoiled && peak.value == 0)
    peak.value = zero_of(at, n, flip);
  *best = value_of<T>(peak.turn(peak.value));
  return !peak.spoiled;
}
template <class O, class T> struct Line<O, Extremes<T>> {
  enum { possible = is_native<T>() && Asks<O>::low != Asks<O>::high };
  static void run(const T *x, int64_t n, int *empty, typename O::Result *to) {
    if constexpr (possible)
      if (!best_of(x, n, Asks<O>::high, empty, to)) {
        spoil_result(to);
        if (empty) *empty = 1;
      }
  }
};
template <class O, class T, bool GREATEST> struct Line<O, Position<T, GREATEST>> {
  typedef typename Compared<T, true>::type N;
  enum { possible = is_native<T>() && sizeof(T) == sizeof(N) };
  static void run(const T *x, int64_t n, int *empty, int64_t *to) {
    if constexpr (possible) {
      const auto peak =
          peak_of<N, true>((const N *)(const void *)x, n, flip_of<N, T>(GREATEST), empty);
      if (empty) *empty |= peak.spoiled;
      *to = peak.place;
    }
  }
};

/* As one column, of which many stand abreast. */
template <class O, class S, class T>
GPR_FN void fold_abreast(S &s, const T *x, int64_t n, int64_t index, bool skip) {
  fold_ribbon(Sides<O>::job, (char *)&s, (const char *)x, 1, n, index, skip);
}
template <class O, class T> struct Folder<O, Extremes<T>> {
  typedef Extremes<T> F;
  typedef typename F::State State;
  template <bool GREATEST> static void fold_one(State &s, const T *x, int64_t n, bool skip) {
    T best;
    if (best_of(x, n, GREATEST, skip, &best))
      put<GREATEST>(s, best);
    else if (!skip)
      spoil(s);
  }
  static void fold(State &s, const T *x, int64_t n, int64_t index, bool skip = false) {
    if constexpr (is_native<T>()) {
      /* Who asks for both reads a block again while it is in the first cache. */
      const int64_t block = Asks<O>::low && Asks<O>::high ? 16384 / sizeof(T) : n;
      for (int64_t i = 0; i < n; i += block) {
        const int64_t m = least(block, n - i);
        if (Asks<O>::low) fold_one<false>(s, x + i, m, skip);
        if (Asks<O>::high) fold_one<true>(s, x + i, m, skip);
      }
    } else if constexpr (is_compared<T>()) {
      fold_abreast<O>(s, x, n, index, skip);
    } else {
      for (int64_t i = 0; i < n; i++) F::add(s, x[i], 0);
    }
  }
};

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

/* Runs by blocks of 32 KiB: the end of a block and its start cost 50 ns, and searching one for what
 * bytes do not number is quick in the cache. */
template <class O, class T, bool GREATEST> struct Folder<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  typedef typename F::State State;
  typedef typename F::R R;
  static constexpr int64_t BLOCK = 32768 / sizeof(T);

  /* Nothing where only NaN is, which does not count. */
  static State best_of(const T *x, int64_t n, const State &before, int64_t index, bool skip) {
    State s;
    F::open(s);
    if constexpr (Traits<T>::kind == KIND_BOOL) { /* the first one that wins ends the search */
      s.index = first_truth<GREATEST>(x, n);
      s.best = R::of(T{GREATEST});
      if (s.index == n) s.best = R::of(T{!GREATEST}), s.index = 0;
    } else {
      typedef typename Compared<T, false>::type N;
      constexpr bool placed = sizeof(T) > 1;
      const auto peak =
          peak_of<N, placed>((const N *)(const void *)x, n, flip_of<N, T>(GREATEST), skip);
      s.spoiled = peak.spoiled;
      s.best = R::of(value_of<T>(peak.turn(peak.value)));
      s.index = peak.spoiled && skip ? -1 : peak.place;
      const bool earlier = before.index >= 0 && before.index < index;
      if (!placed && !(earlier && !R::worse(before.best, s.best)))
        s.index = find_as<1>(x, n, 0xff, (uint8_t)peak.turn(peak.value));
    }
    return s;
  }
  static void fold(State &state, const T *x, int64_t n, int64_t index, bool skip = false) {
    if constexpr (is_native<T>()) {
      for (int64_t i = 0, m; i < n && !state.spoiled; i += m) {
        m = least(BLOCK, n - i);
        State block = best_of(x + i, m, state, index + i, skip);
        if (block.index >= 0) block.index += index + i;
        F::merge(state, block);
      }
    } else if constexpr (is_compared<T>()) {
      fold_abreast<O>(state, x, n, index, skip);
    } else {
      for (int64_t i = 0; i < n; i++) F::add(state, x[i], index + i);
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
#endif
