/* The best of contiguous elements. */
#ifndef GPR_PEAK_H
#define GPR_PEAK_H

#include "best.h"

#include "../core/operators.h"

GPR_OPEN

/* Types that the hardware compares as they are; of booleans the bytes. */
template <class T> constexpr bool is_native() {
  return category<T>() == INTEGER || (Traits<T>::kind == KIND_FLOAT && sizeof(T) >= 4);
}
template <class T> constexpr bool is_half() {
  return Traits<T>::kind == KIND_FLOAT && sizeof(T) == 2;
}
template <class T> struct Native { typedef T type; };
template <> struct Native<boolean> { typedef uint8_t type; };
template <class T> GPR_FN const T *natives(const T *x) { return x; }
GPR_FN const uint8_t *natives(const boolean *x) { return &x->byte; }

/* The best value of a block, where the two zeros tie, and if that is asked for its first place. A
 * NaN spoils the block and is the end of it, and its place the first NaN's; a sum of the elements
 * tells it: that goes through every addition, and `inf - inf` costs a second look. Both are one
 * instruction a vector. Where NaN is left out it becomes the worst of all, by one instruction too,
 * and what is NaN alone is spoiled. Rows of vectors overlap at both ends, since no element counts
 * twice, so that the loads between do not straddle cache lines. */
template <class T, bool GREATEST, bool PLACE, bool SKIP> struct Peak {
  static constexpr bool real = Traits<T>::kind == KIND_FLOAT, looks = real && !SKIP;
  static_assert(real || !SKIP, "");
  template <class U, int BYTES> struct Vector {
    typedef U type __attribute__((vector_size(BYTES)));
  };
  typedef typename Unsigned<sizeof(T)>::type Number; /* of a row, or of an element in one */
  typedef typename Vector<T, GPR_VECTOR>::type V;
  typedef typename Vector<Number, GPR_VECTOR>::type Numbers;
  enum { VECTORS = 8, WIDTH = GPR_VECTOR / sizeof(T) };

  T value;
  bool spoiled;
  int64_t place;

  template <class U> static GPR_METHOD auto better(U a, U b) {
    if constexpr (GREATEST)
      return b > a;
    else
      return b < a;
  }
  struct Better {
    template <class U> static GPR_METHOD U of(U a, U b) { return better(a, b) ? b : a; }
  };
  struct Less {
    template <class U> static GPR_METHOD U of(U a, U b) { return b < a ? b : a; }
  };
  static GPR_METHOD T worst() { return GREATEST ? -(T)__builtin_inf() : (T)__builtin_inf(); }
  /* What is there before any rival. */
  static GPR_METHOD T first_of(const T *x) {
    if constexpr (SKIP)
      return worst();
    else
      return *x;
  }

  template <class Op, class U, int BYTES = GPR_VECTOR>
  static GPR_METHOD U across(typename Vector<U, BYTES>::type v) {
    if constexpr (BYTES > 8) {
      typename Vector<U, BYTES / 2>::type half[2];
      memcpy(half, &v, sizeof v);
      return across<Op, U, BYTES / 2>(Op::of(half[0], half[1]));
    }
    U one = v[0];
    for (int l = 1; l < BYTES / (int)sizeof(U); l++) one = Op::of(one, (U)v[l]);
    return one;
  }
  static GPR_METHOD V load(const T *x) {
    V v;
    memcpy(&v, x, sizeof v);
    return v;
  }
  /* Of a row of N vectors, lane by lane; they are loaded in their order, since in another one rows
   * from DRAM took 1.5 to 1.9 times as long on Zen 4. */
  template <int N> static GPR_METHOD void along(const T *x, V &best, V &sum) {
    if constexpr (N == 1) {
      best = sum = load(x);
      if constexpr (SKIP) best = Better::of(worst() - V{}, best);
      prefetch(x);
    } else {
      V best2, sum2;
      along<N / 2>(x, best, sum);
      along<N / 2>(x + N / 2 * WIDTH, best2, sum2);
      best = Better::of(best, best2);
      if (looks) sum += sum2;
    }
  }
  template <class Is> static int64_t first_that(const T *x, int64_t n, const Is &is) {
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
      if (const uint64_t found = mask_of(is(load(x + i)))) return i + __builtin_ctzll(found);
    while (i < n && !is(x[i])) i++;
    return i;
  }
  /* Whether one of the n from place on is NaN, and then where. */
  GPR_APART bool meets_nan(const T *x, int64_t from, int64_t n) {
    const int64_t at = first_that(x + from, n, [](auto e) { return e != e; });
    spoiled = at < n;
    if (spoiled) place = from + at;
    return spoiled;
  }
  /* Infinities that are the worst of all, or nothing but NaN. */
  GPR_APART void meet_worst(const T *x, int64_t n) {
    place = first_that(x, n, [](auto e) { return e == e; });
    spoiled = place == n;
  }

  GPR_METHOD void run_alone(const T *x, int64_t n) {
    T best = first_of(x), total = 0;
    int64_t at = 0;
    GPR_UNROLL(8)
    for (int64_t i = 0; i < n; i++) {
      if (PLACE) at = better(best, x[i]) ? i : at;
      best = Better::of(best, x[i]);
      if (looks) total += x[i];
    }
    value = best;
    place = at;
    if (looks && total != total) meets_nan(x, 0, n);
  }
  /* Each lane keeps its best and the first row that had it, so that one row is searched at last. */
  template <int N> void run_rows(const T *x, int64_t n) {
    constexpr int64_t ROW = N * WIDTH;
    const int64_t last = n - ROW;
    const int64_t past = n < 4 * ROW ? 0 : (int64_t)((uintptr_t)x % GPR_VECTOR / sizeof(T));
    V best = first_of(x) - V{};
    Numbers first = {}, number = {};
    for (int64_t i = 0;; number++) {
      V row, sum;
      along<N>(x + i, row, sum);
      if constexpr (looks)
        if (__builtin_expect(mask_of(sum != sum) != 0, 0) && meets_nan(x, i, ROW)) return;
      if (PLACE) first = better(best, row) ? number : first;
      best = Better::of(best, row);
      if (i == last) break;
      i = least(i ? i + ROW : ROW - past, last);
    }
    value = across<Better, T>(best);
    if (!PLACE) return;
    const int64_t r = across<Less, Number>(best == value ? first : ~Numbers{});
    place = least(r ? r * ROW - past : 0, last);
    Numbers lane, found = ~Numbers{};
    for (int l = 0; l < WIDTH; l++) lane[l] = (Number)l;
    for (int v = N; v--;)
      found = load(x + place + v * WIDTH) == value ? lane + (Number)(v * WIDTH) : found;
    place += (int64_t)across<Less, Number>(found);
  }
  GPR_METHOD Peak(const T *x, int64_t n) : spoiled(false), place(0) { /* n > 0 */
    if (n >= VECTORS * WIDTH)
      run_rows<VECTORS>(x, n);
    else if (n >= WIDTH && (real || PLACE)) /* the compiler's own are quicker */
      run_rows<1>(x, n);
    else
      run_alone(x, n);
    if constexpr (SKIP)
      if (value == worst()) meet_worst(x, n);
  }
};

template <bool GREATEST, bool PLACE, bool SKIP = false, class T>
GPR_FN Peak<T, GREATEST, PLACE, SKIP> peak_of(const T *x, int64_t n) {
  return Peak<T, GREATEST, PLACE, SKIP>(x, n);
}

GPR_CLOSE
#endif
