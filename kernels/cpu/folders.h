/* How each fold takes a run of contiguous elements. The loops are plain or on GCC's vector types,
 * whose width follows the target. */
#pragma once

#include "panel.h"
#include "simd.h"
#include "tiles.h"

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
static constexpr int64_t TOGETHER_ROWS = 4;

template <class A> struct Plus {
  static GPR_METHOD A identity() { return 0; }
  static GPR_METHOD A combine(A a, A b) { return (A)(a + b); }
};
/* Rows that come some later, or with which the next columns begin: of (11955, 553) int64 products
 * took 3.4 ms on Zen 4 without and 2.2 so, whether some of (11955, 4424) bytes are true 9.5 and,
 * by wider rows too, 3.0 to 3.6. */
template <class T> GPR_FN void prefetch_rows(const Panel<T> &x, int64_t columns, int64_t i) {
  enum { AHEAD = 8 * TOGETHER_ROWS, LINE = 64 / sizeof(T) };
  const int64_t first = i + least((int64_t)AHEAD, x.n);
  for (int64_t later = first; later < first + TOGETHER_ROWS; later++) {
    const T *at = later < x.n ? x[later] : x[later - x.n] + columns;
    for (int64_t j = 0; j < columns; j += LINE) prefetch_later<1>(at + j, 0);
  }
}
/* Words of each column, value() of each element, four rows at a time or one. */
template <template <class> class Op, class A, class T, class Value>
GPR_FN void combine_rows(A *all, const Panel<T> x, int64_t columns, const Value &value) {
  typedef Op<A> C;
  const bool is_far = gpr_is_far && gpr_prefetch_columns;
  int64_t i = 0;
  for (; i + TOGETHER_ROWS <= x.n; i += TOGETHER_ROWS) {
    const T *a = x[i], *b = x[i + 1], *c = x[i + 2], *d = x[i + 3];
    if (is_far) prefetch_rows(x, columns, i);
    for (int64_t j = 0; j < columns; j++)
      all[j] = C::combine(all[j], C::combine(C::combine(value(a[j]), value(b[j])),
                                             C::combine(value(c[j]), value(d[j]))));
  }
  for (; i < x.n; i++) {
    const T *a = x[i];
    for (int64_t j = 0; j < columns; j++) all[j] = C::combine(all[j], value(a[j]));
  }
}
template <template <class> class Op, class A, class T>
static GPR_APART void combine_columns(A *all, const Panel<T> &x, int64_t columns) {
  combine_rows<Op>(all, x, columns, [](T e) { return (A)wide(e); });
}
template <class O, class T> struct Folder<O, IntegerProduct<T>> {
  static void fold(typename IntegerProduct<T>::State &s, const T *x, int64_t n, int64_t) {
    uint64_t all = s.product;
    GPR_UNROLL(4)
    for (int64_t i = 0; i < n; i++) all *= (uint64_t)wide(x[i]);
    s.product = all;
  }
};
/* In 128 bits what 64 hold. */
template <class T> GPR_FN typename LongSum<T>::State long_of(uint64_t sum) {
  return {sum, Traits<T>::kind == KIND_INT && (int64_t)sum < 0 ? -1 : 0};
}
/* Halves of 32 bits, which cannot overflow within a stretch. */
template <class O, class T> struct Folder<O, LongSum<T>> {
  typedef LongSum<T> F;
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += NARROW) {
      const int64_t m = least(NARROW, n - i);
      if constexpr (sizeof(T) < 8) { /* 64 bits hold all of a stretch */
        typename IntegerSum<T>::State part = {0};
        Folder<Sum<T>, IntegerSum<T>>::fold(part, x + i, m, 0);
        F::merge(s, long_of<T>(part.sum));
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
  typedef uint8_t Bytes __attribute__((vector_size(GPR_VECTOR)));
  static GPR_METHOD int64_t sum_of(const Bytes lanes) {
    const Words pairs = ((Words)lanes & (~0ull / 257)) + ((Words)lanes >> 8 & (~0ull / 257));
    const Words all = pairs * (~0ull / 65535) >> 48;
    int64_t sum = 0;
    for (int l = 0; l < WIDTH; l++) sum += (int64_t)all[l];
    return sum;
  }
  /* Of bytes, in bytes: how many are zero. */
  static int64_t zeros(const uint8_t *x, int64_t n) {
    int64_t count = 0, i = 0;
    while (i + GPR_VECTOR <= n) {
      Bytes lanes = {}, v;
      for (const int64_t stop = least(n - GPR_VECTOR, i + 254 * GPR_VECTOR); i <= stop;
           i += GPR_VECTOR) {
        memcpy(&v, x + i, sizeof v);
        lanes -= (Bytes)(v == 0);
      }
      count += sum_of(lanes);
    }
    Bytes rest = ~Bytes{};
    memcpy(&rest, x + i, (size_t)(n - i));
    return count + sum_of(-(Bytes)(rest == 0));
  }
  static void fold(typename Counting<T, WHAT>::State &s, const T *x, int64_t n, int64_t) {
    if constexpr (sizeof(T) == 1) {
      const int64_t none = zeros((const uint8_t *)x, n);
      s.count += WHAT ? n - none : none;
      return;
    }
    for (int64_t i = 0; i < n; i += NARROW) {
      const int64_t m = least(NARROW, n - i);
      typename Signed<(sizeof(T) < 4 ? 4 : sizeof(T))>::type lane = 0; /* as wide as a comparison */
      for (int64_t j = 0; j < m; j++) lane += is_true(x[i + j]) == (bool)WHAT;
      s.count += lane;
    }
  }
};

/* What an operator asks of the extremes: ptp both. */
template <class O> struct Asks { static constexpr bool low = true, high = true; };
template <class T> struct Asks<Min<T>> { static constexpr bool low = true, high = false; };
template <class T> struct Asks<Max<T>> { static constexpr bool low = false, high = true; };

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
