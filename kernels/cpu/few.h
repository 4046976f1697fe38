/* Outputs of so few elements that each is one expression, side by side. */
#ifndef GPR_FEW_H
#define GPR_FEW_H

#include "exact_lanes.h"

#include "../core/operators.h"

GPR_OPEN

/* The better of two, of which zeros have their order: compared both ways, the two differ where they
 * tie. */
template <bool GREATEST, class T> GPR_FN T better_of(T a, T b) {
  if constexpr (Traits<T>::kind == KIND_FLOAT) {
    typedef decltype(Order<T>::key(a)) Key;
    const Key one = copy_bits<Key>(GREATEST ? (b > a ? b : a) : (b < a ? b : a));
    const Key other = copy_bits<Key>(GREATEST ? (a > b ? a : b) : (a < b ? a : b));
    return copy_bits<T>((Key)(GREATEST ? one & other : one | other));
  } else {
    return GREATEST ? greatest(a, b) : least(a, b);
  }
}

/* x where `nan` is 0, and `other` where it is -1. */
template <class Key, class T> GPR_FN T unless(Key nan, T x, T other) {
  return copy_bits<T>((Key)((copy_bits<Key>(x) & ~nan) | (copy_bits<Key>(other) & nan)));
}

/* The best of at most eight; NaN where one is, and whether there is any. A sum tells NaN, and also
 * inf - inf. */
enum { FEW_RIVALS = 8 };
template <bool GREATEST, int ROWS, class T>
static bool best_rows(const T *x, int64_t stride, int64_t columns, T *__restrict to) {
  constexpr bool real = Traits<T>::kind == KIND_FLOAT;
  int any = 0;
  for (int64_t j = 0; j < columns; j++) {
    T best = x[j], sum = x[j];
    for (int i = 1; i < ROWS; i++) {
      const T e = x[i * stride + j];
      best = better_of<GREATEST>(best, e);
      if (real) sum += e;
    }
    if (real) any |= sum != sum;
    to[j] = best;
  }
  if constexpr (real) {
    typedef typename Order<T>::Key Key;
    if (!any) return false;
    for (int64_t j = 0; j < columns; j++) {
      Key nan = 0;
      for (int i = 0; i < ROWS; i++) nan |= (Key) - !(x[i * stride + j] == x[i * stride + j]);
      to[j] = unless(nan, to[j], Order<T>::poison());
    }
  }
  return any;
}
/* The same where NaN does not count: NaN, and whether there is any, where nothing else is. */
template <bool GREATEST, int ROWS, class T>
static bool best_counted_rows(const T *x, int64_t stride, int64_t columns, T *__restrict to) {
  typedef typename Order<T>::Key Key;
  const T worst = GREATEST ? -(T)__builtin_inf() : (T)__builtin_inf();
  Key any = 0;
  for (int64_t j = 0; j < columns; j++) {
    T best = worst;
    Key all = -1;
    for (int i = 0; i < ROWS; i++) {
      const T e = x[i * stride + j];
      const Key nan = (Key) - !(e == e);
      best = better_of<GREATEST>(best, unless(nan, e, worst));
      all &= nan;
    }
    any |= all;
    to[j] = unless(all, best, Order<T>::poison());
  }
  return any != 0;
}
template <bool GREATEST, bool SKIP, int ROWS, class T>
static bool best_few(const T *x, int64_t stride, int64_t columns, int64_t rows, T *to) {
  if constexpr (ROWS < FEW_RIVALS)
    if (rows > ROWS) return best_few<GREATEST, SKIP, ROWS + 1>(x, stride, columns, rows, to);
  if constexpr (SKIP)
    return best_counted_rows<GREATEST, ROWS>(x, stride, columns, to);
  else
    return best_rows<GREATEST, ROWS>(x, stride, columns, to);
}
template <bool GREATEST, bool SKIP = false, class T>
static bool best_few(const T *x, int64_t stride, int64_t columns, int64_t rows, T *to) {
  return best_few<GREATEST, SKIP, 1>(x, stride, columns, rows, to);
}

GPR_CLOSE
#endif
