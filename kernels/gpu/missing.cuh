/* NaN and NaT among packets, which do not count where they are skipped. */
#pragma once

#include "lanes_of_extremes.cuh"
#include "load.cuh"

GPR_OPEN

/* Whether any element is NaN or NaT: of floats of 16 bits two by one instruction. */
template <class T, int U> GPR_DEVICE bool any_missing(const Packet<T> (&v)[U]) {
  bool any = false;
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 2 && Traits<T>::kind == KIND_FLOAT) {
    uint32_t most = 0;
    GPR_EACH(i, 4 * U) most = best_pair<true>(most, word(v, i), T());
    return is_nan_or_nat(T{(uint16_t)most}) || is_nan_or_nat(T{(uint16_t)(most >> 16)});
  }
#endif
  GPR_EACH(i, U * Packet<T>::count)
    any |= is_nan_or_nat(v[i / Packet<T>::count].element[i % Packet<T>::count]);
  return any;
}

/* What changes no sum. */
template <class T> GPR_DEVICE T neutral_of() {
  if constexpr (Traits<T>::kind == KIND_FLOAT || Traits<T>::kind == KIND_COMPLEX)
    return minus_zero<T>();
  else
    return T();
}
/* What is missing is neutral_of() then; gone(place in its packet) is called for each. */
template <class T, int U, class Gone> GPR_DEVICE void drop_missing(Packet<T> (&v)[U], Gone gone) {
  constexpr int V = Packet<T>::count;
  if (!any_missing(v)) return;
  GPR_EACH(i, U * V) {
    T &x = v[i / V].element[i % V];
    if (is_nan_or_nat(x)) x = neutral_of<T>(), gone(i % V);
  }
}
/* Of two numbers of 16 bits in a word; how many they were, in either half. */
template <class T> GPR_DEVICE uint32_t drop_of_pair(uint32_t &w) {
  const uint32_t both = 0x00010001u, beyond = 0x7fff - (uint32_t)Format<T>::infinity();
  const uint32_t nan = ((w & 0x7fff7fffu) + beyond * both) & 0x80008000u, ones = nan >> 15;
  w = (w & ~(nan - ones)) | nan; /* -0.0 */
  return ones;
}
/* How many they were: of halves without a branch for each, since most batches have some if one
 * number in 100 is NaN. */
template <class T, int U> GPR_DEVICE int drop_missing(Packet<T> (&v)[U]) {
  if constexpr (sizeof(T) == 2 && Traits<T>::kind == KIND_FLOAT) {
    uint32_t n = 0;
    if (!any_missing(v)) return 0;
    GPR_EACH(u, U) {
      n += drop_of_pair<T>(v[u].words.x) + drop_of_pair<T>(v[u].words.y);
      n += drop_of_pair<T>(v[u].words.z) + drop_of_pair<T>(v[u].words.w);
    }
    return (int)((n & 0xffff) + (n >> 16));
  } else {
    int n = 0;
    drop_missing(v, [&](int) { n++; });
    return n;
  }
}

GPR_CLOSE
