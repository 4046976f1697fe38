/* What a thread keeps of a sum whose elements are converted before they are added. */
#pragma once

#include "cells.cuh"

GPR_OPEN

/* Whether elements go to the sum as they are stored: floats, whose batches are certified by the
 * bits that they have, whatever the sum's type holds. */
template <class F, class FROM> struct AddsStored {
  static constexpr bool value = Traits<FROM>::kind == KIND_FLOAT && sizeof(FROM) <= sizeof(float) &&
                                !Same<FROM, typename F::Element>::value;
};
template <class F, class FROM, int N>
GPR_DEVICE void add_converted(Cells<F, 1> &cells, const FROM (&x)[N]) {
  if constexpr (!AddsStored<F, FROM>::value) {
    typename F::Element w[N];
    GPR_EACH(i, N) w[i] = convert<typename F::Element>(x[i]);
    cells.template add<N>(w, 0, 0);
  } else if constexpr (Same<FROM, bfloat16>::value && N % 2 == 0) {
    take_pairs<N, true>(cells.sum[0], x, cells.rest(0));
  } else {
    float w[N];
    GPR_EACH(i, N) w[i] = wide(x[i]);
    take<FROM, N, 1, true>(cells.sum[0], w, 0, cells.rest(0));
  }
}
template <class F, class FROM> struct ConvertedCells : Cells<F, 1> {
  template <int N> GPR_DEVICE void add(const FROM (&x)[N], int64_t, int64_t) {
    add_converted<F>(*this, x);
  }
};

GPR_CLOSE
