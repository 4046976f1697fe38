/* Columns side by side. */
#pragma once

#include "../abi/rows.h"
#include "../core/types.h"

GPR_OPEN

/* n rows, `stride` elements apart or, with places, so many bytes from x on. */
template <class T> struct Panel {
  const T *x;
  int64_t stride, n;
  const int64_t *places = nullptr;

  GPR_METHOD const T *operator[](int64_t i) const {
    if (!places) return x + i * stride;
    return (const T *)(const void *)((const char *)x + places[i]);
  }
  GPR_METHOD Panel part(int64_t first, int64_t m) const {
    if (!places) return {x + first * stride, stride, m};
    return {x, stride, m, places + first};
  }
  GPR_METHOD Panel across(int64_t j) const { return {x + j, stride, n, places}; }
  template <class E> GPR_METHOD Panel<E> as() const {
    return {(const E *)(const void *)x, stride, n, places};
  }
};
template <class T> GPR_FN Panel<T> panel_of(const gpr_tile *t) {
  return {(const T *)(const void *)t->data, t->along / (int64_t)sizeof(T), t->n, t->places};
}

GPR_CLOSE
