/* Lanes that change places, and signed integers by their width. */
#pragma once

#include "../core/fold.h"
#include "simd.h"

GPR_OPEN

/* --- a square of vectors, turned ---------------------------------------------------------------
 */

template <int... L> struct Lanes {};
template <int N, int... L> struct LanesTo : LanesTo<N - 1, N - 1, L...> {};
template <int... L> struct LanesTo<0, L...> : Lanes<L...> {};
/* Of four blocks of S lanes each the two that lie across from each other. */
template <int S, class V, int... L> GPR_FN void swap_blocks(V &a, V &b, Lanes<L...>) {
  constexpr int N = sizeof...(L);
  const V upper = __builtin_shufflevector(a, b, (L & S ? N + L - S : L)...);
  b = __builtin_shufflevector(a, b, (L & S ? N + L : L + S)...);
  a = upper;
}
/* Every second lane of both. */
template <class V, int... L> GPR_FN void part_lanes(V a, V b, V &even, V &odd, Lanes<L...>) {
  even = __builtin_shufflevector(a, b, (2 * L)...);
  odd = __builtin_shufflevector(a, b, (2 * L + 1)...);
}
template <int S = 1, class V, int N> GPR_FN void turn(V (&v)[N]) {
  if constexpr (S < N) {
    for (int i = 0; i < N; i++)
      if (!(i & S)) swap_blocks<S>(v[i], v[i + S], LanesTo<N>());
    turn<2 * S>(v);
  }
}

/* Of at least two bytes. */
template <int BYTES> struct Signed { typedef int16_t type; };
template <> struct Signed<4> { typedef int32_t type; };
template <> struct Signed<8> { typedef int64_t type; };
template <> struct Signed<16> { typedef int64_t type; };

GPR_CLOSE
