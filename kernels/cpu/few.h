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

/* The best of at most four; NaN where one is, and whether there may be such. A sum tells NaN, and
 * also inf - inf. */
enum { FEW_RIVALS = 4 };
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
  if constexpr (real)
    for (int64_t j = 0; any && j < columns; j++) {
      bool nan = false;
      for (int i = 0; i < ROWS; i++) nan |= !(x[i * stride + j] == x[i * stride + j]);
      to[j] = nan ? Order<T>::poison() : to[j];
    }
  return any;
}
template <bool GREATEST, class T>
static bool best_few(const T *x, int64_t stride, int64_t columns, int64_t rows, T *to) {
  switch (rows) {
    case 1: return best_rows<GREATEST, 1>(x, stride, columns, to);
    case 2: return best_rows<GREATEST, 2>(x, stride, columns, to);
    case 3: return best_rows<GREATEST, 3>(x, stride, columns, to);
    default: return best_rows<GREATEST, FEW_RIVALS>(x, stride, columns, to);
  }
}

GPR_CLOSE
#endif
