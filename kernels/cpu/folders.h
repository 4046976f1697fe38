/* How each fold takes a run of contiguous elements. The loops are plain or on GCC's vector types,
 * whose width follows the target. */
#ifndef GPR_FOLDERS_H
#define GPR_FOLDERS_H

#include "levels.h"
#include "near.h"
#include "peak.h"

#include "../core/convert.h"
#include "../core/operators.h"

GPR_OPEN

/* --- free folds: one loop, which the compiler vectorises ---------------------------------------
 */

template <class O, class F = typename O::Fold> struct Folder {
  typedef typename F::Element T;
  typedef typename F::State State;
  static void fold(State &state, const T *x, int64_t n, int64_t index) {
    State s;
    F::open(s);
    GPR_UNROLL(4)
    for (int64_t i = 0; i < n; i++) F::add(s, x[i], index + i);
    F::merge(state, s);
  }
};

/* Sums and counts in 32-bit lanes within stretches where these cannot overflow. */
static constexpr int64_t NARROW = 1 << 15;
template <class T, class Lane> GPR_FN uint64_t narrow_sum(const T *x, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i += NARROW) {
    const int64_t m = least(NARROW, n - i);
    Lane lane = 0;
    for (int64_t j = 0; j < m; j++) lane += (Lane)wide(x[i + j]);
    sum += (uint64_t)(int64_t)lane;
  }
  return sum;
}
template <class O, class T> struct Folder<O, IntegerSum<T>> {
  static void fold(typename IntegerSum<T>::State &s, const T *x, int64_t n, int64_t) {
    if constexpr (sizeof(T) > 2)
      s.sum += narrow_sum<T, uint64_t>(x, n);
    else if constexpr (Traits<T>::kind == KIND_INT)
      s.sum += narrow_sum<T, int32_t>(x, n);
    else
      s.sum += narrow_sum<T, uint32_t>(x, n);
  }
};
/* Halves of 32 bits, which cannot overflow within a stretch. */
template <class O, class T> struct Folder<O, LongSum<T>> {
  typedef LongSum<T> F;
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += NARROW) {
      const int64_t m = least(NARROW, n - i);
      if constexpr (sizeof(T) < 8) { /* 64 bits hold all of a stretch */
        typename IntegerSum<T>::State part = {0};
        Folder<Sum<T>, IntegerSum<T>>::fold(part, x + i, m, 0);
        const bool negative = Traits<T>::kind == KIND_INT && (int64_t)part.sum < 0;
        F::merge(s, {part.sum, negative ? -1 : 0});
        continue;
      }
      uint64_t low = 0;
      int64_t high = 0;
      for (int64_t j = 0; j < m; j++) {
        const auto w = wide(x[i + j]);
        low += (uint64_t)w & 0xffffffffu;
        high += (int64_t)(w >> 32);
      }
      F::merge(s, {low, 0});
      F::merge(s, {(uint64_t)high << 32, high >> 32});
    }
  }
};
template <class O, class T, int WHAT> struct Folder<O, Counting<T, WHAT>> {
  static void fold(typename Counting<T, WHAT>::State &s, const T *x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += NARROW) {
      const int64_t m = least(NARROW, n - i);
      typename Signed<(sizeof(T) < 4 ? 4 : sizeof(T))>::type lane = 0; /* as wide as a comparison */
      for (int64_t j = 0; j < m; j++) lane += is_true(x[i + j]) == (bool)WHAT;
      s.count += lane;
    }
  }
};

/* --- the least and the greatest ------------------------------------------------------------------
 */

/* What an operator asks of the extremes: ptp both. */
template <class O> struct Asks { static constexpr bool low = true, high = true; };
template <class T> struct Asks<Min<T>> { static constexpr bool low = true, high = false; };
template <class T> struct Asks<Max<T>> { static constexpr bool low = false, high = true; };

/* The key of the one of the two zeros that is wanted, if x, without better values, has it; NaN is
 * of neither sign. */
template <bool GREATEST, class T> GPR_APART auto zero_of(const T *x, int64_t n) {
  typedef typename Order<T>::Key Key;
  Key signs = GREATEST ? -1 : 0;
  for (int64_t i = 0; i < n; i++) {
    const Key b = x[i] == x[i] ? copy_bits<Key>(x[i]) : (Key)(GREATEST ? -1 : 0);
    signs = GREATEST ? signs & b : signs | b;
  }
  return (Key)(signs >> (8 * sizeof signs - 1));
}

template <class O, class T> struct Folder<O, Extremes<T>> {
  typedef Extremes<T> F;
  typedef typename F::State State;

  template <bool GREATEST, bool SKIP> static void fold_one(State &s, const T *x, int64_t n) {
    const auto peak = peak_of<GREATEST, false, SKIP>(natives(x), n);
    if (peak.spoiled) {
      if (!SKIP) s.high = greatest(s.high, F::O::key(F::O::poison()));
      return;
    }
    auto k = F::O::key(copy_bits<T>(peak.value));
    if constexpr (Traits<T>::kind == KIND_FLOAT)
      if (peak.value == 0) k = zero_of<GREATEST>(x, n);
    (GREATEST ? s.high : s.low) = GREATEST ? greatest(s.high, k) : least(s.low, k);
  }
  template <bool SKIP = false> static void fold(State &state, const T *x, int64_t n, int64_t) {
    if constexpr (is_native<T>()) {
      /* Who asks for both reads a block again while it is in the first cache. */
      const int64_t block = Asks<O>::low && Asks<O>::high ? 16384 / sizeof(T) : n;
      for (int64_t i = 0; i < n; i += block) {
        const int64_t m = least(block, n - i);
        if (Asks<O>::low) fold_one<false, SKIP>(state, x + i, m);
        if (Asks<O>::high) fold_one<true, SKIP>(state, x + i, m);
      }
    } else {
      State s;
      F::open(s);
      for (int64_t i = 0; i < n; i++) F::add(s, x[i], 0);
      F::merge(state, s);
    }
  }
};

/* The first byte that is not zero, or is; n if there is none. A word's lowest byte comes first, and
 * what found() makes of a word has its lowest bit in the first such byte. */
template <bool TRUTH> GPR_FN int64_t first_truth(const uint8_t *x, int64_t n) {
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

/* A block that holds something better than the champion is searched for its place, unless that is
 * known. */
template <class O, class T, bool GREATEST> struct Folder<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  typedef typename F::State State;
  typedef typename F::R R;
  /* 32 KiB: the end of a block and its start cost 50 ns, and searching it is quick in the cache. */
  static constexpr int64_t BLOCK = 32768 / sizeof(T), STRIDE = 256 / sizeof(T);
  /* Whether the best comes with its place. A byte would not number the rows of a block. */
  static constexpr bool PLACED = is_native<T>() && sizeof(T) > 1;
  static constexpr int64_t FIRST = PLACED ? BLOCK : BLOCK / 16; /* of a long row: a NaN ends it */

  template <bool SKIP> static State best_of(const T *x, int64_t n) {
    State s;
    F::open(s);
    if constexpr (Traits<T>::kind == KIND_BOOL) { /* the first one that wins ends the search */
      s.best = R::of(T{GREATEST});
      s.index = first_truth<GREATEST>(natives(x), n);
      if (s.index == n) s.best = R::of(T{!GREATEST}), s.index = 0;
    } else if constexpr (is_native<T>()) {
      const auto peak = peak_of<GREATEST, PLACED, SKIP>(natives(x), n);
      s.best = R::of(copy_bits<T>(peak.value));
      s.spoiled = peak.spoiled;
      if (PLACED) s.index = peak.place;
    } else {
      typedef Extremes<T> Both;
      typename Both::State both;
      Both::open(both);
      for (int64_t i = 0; i < n; i++) Both::add(both, x[i], 0);
      s.best = R::of(Both::O::value(GREATEST ? both.high : both.low));
      s.spoiled = Both::poisoned(both);
    }
    return s;
  }
  static bool matches(T x, const State &wanted) {
    if (wanted.spoiled) return R::poisoned(x);
    if constexpr (is_native<T>() && Traits<T>::kind != KIND_BOOL) return x == R::value(wanted.best);
    return !R::worse(R::of(x), wanted.best) && !R::worse(wanted.best, R::of(x));
  }
  static int64_t first_match(const T *x, int64_t n, const State &wanted) {
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE) {
      typename R::Flag any = 0;
      for (int j = 0; j < STRIDE; j++) any |= matches(x[i + j], wanted);
      if (any) break;
    }
    while (i < n && !matches(x[i], wanted)) i++;
    return i;
  }
  template <bool SKIP = false>
  static void fold(State &state, const T *x, int64_t n, int64_t index) {
    for (int64_t i = 0, m; i < n && !state.spoiled; i += m) {
      m = i || n < BLOCK ? least(BLOCK, n - i) : FIRST;
      State block = best_of<SKIP>(x + i, m);
      if (SKIP && block.spoiled) continue;
      const bool earlier = state.index >= 0 && state.index < index;
      if (earlier && !block.spoiled && !R::worse(state.best, block.best)) continue;
      if (block.index < 0) block.index = first_match(x + i, m, block);
      block.index += index + i;
      F::merge(state, block);
    }
  }
};

/* --- exact folds -------------------------------------------------------------------------------
 */

template <class T> GPR_FN const T *reals(const T *x) { return x; }
template <class R> GPR_FN const R *reals(const complex<R> *x) { return &x->re; }

/* Whether every element is -0.0 matters to the sign of a zero alone, and the first that is not
 * ends the question. */
template <class R> static void look_for_other(Exact &e, const R *x, int64_t n, int stride) {
  e.signs |= GPR_MET;
  for (int64_t i = 0; i < n && !(e.signs & GPR_OTHER); i += stride)
    if (bits((double)wide(x[i])) != 1ull << 63) e.signs |= GPR_OTHER;
}

template <class O, class T> struct Folder<O, ExactFold<T>> {
  typedef ExactFold<T> F;
  /* NaN in each part stays, whatever comes. */
  static bool is_settled(const typename F::State &s) {
    return s.part[0].special & s.part[F::parts - 1].special & GPR_NAN;
  }
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t) {
    const auto *r = reals(x);
    if (is_settled(s)) return;
    for (int p = 0; p < F::parts; p++)
      if (!(s.part[p].signs & GPR_OTHER)) look_for_other(s.part[p], r + p, n * F::parts, F::parts);
    AdderOfReals<F::parts, typename RealOf<T>::type> far(s.part);
    add_near<false>(far, r, n * F::parts);
  }
};

/* --- the tree ----------------------------------------------------------------------------------
 */

template <class O, class T, template <class> class Op> struct Folder<O, TreeFold<T, Op>> {
  typedef TreeFold<T, Op> F;
  typedef typename F::Wide A;
  typedef typename F::Combine C;
  enum { LEVEL = 10 };

  /* The perfect tree over 2^level elements, level by level. */
  static A block(const T *x, int level) {
    A one[1 << (LEVEL - 1)], two[1 << (LEVEL - 1)];
    A *from = one, *to = two;
    int64_t m = 1ll << level >> 1;
    GPR_UNROLL(4)
    for (int64_t i = 0; i < m; i++) from[i] = C::combine(wide(x[2 * i]), wide(x[2 * i + 1]));
    while (m > 1) {
      m >>= 1;
      halve(from, to, m);
      A *swap = from;
      from = to;
      to = swap;
    }
    return from[0];
  }
  static void halve(const A *__restrict from, A *__restrict to, int64_t m) {
    GPR_UNROLL(4)
    for (int64_t i = 0; i < m; i++) to[i] = C::combine(from[2 * i], from[2 * i + 1]);
  }
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t index) {
    F::start(s, index);
    while (n > 0) {
      int level = index ? __builtin_ctzll((uint64_t)index) : LEVEL;
      if (level > LEVEL) level = LEVEL;
      while (1ll << level > n) level--;
      push<C>(s, level ? block(x, level) : wide(*x), level);
      x += 1ll << level;
      n -= 1ll << level;
      index += 1ll << level;
    }
  }
};

GPR_CLOSE
#endif
