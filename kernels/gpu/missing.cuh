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
/* All bits of either half that is NaN, of two numbers of 16 bits. */
template <class T> GPR_DEVICE uint32_t missing_of_pair(uint32_t w) {
#if __CUDA_ARCH__ >= 900
  uint32_t missing;
  if (Same<T, float16>::value)
    asm("set.nan.u32.f16x2 %0, %1, %1;" : "=r"(missing) : "r"(w));
  else
    asm("set.nan.u32.bf16x2 %0, %1, %1;" : "=r"(missing) : "r"(w));
  return missing;
#else
  const uint32_t beyond = 0x7fff - (uint32_t)Format<T>::infinity();
  const uint32_t top = ((w & 0x7fff7fffu) + beyond * 0x00010001u) & 0x80008000u;
  return top | (top - (top >> 15));
#endif
}
/* n becomes so much greater as bytes were dropped. */
template <class T> GPR_DEVICE void drop_of_pair(uint32_t &w, int &n) {
  const uint32_t missing = missing_of_pair<T>(w);
  w = (w & ~missing) | (missing & 0x80008000u); /* -0.0 */
  n = dot4((int)missing, (int)0xffffffff, n);
}
/* How many they were: without a branch for each, since most batches have some if one number in 100
 * is NaN. */
template <class T, int U> GPR_DEVICE int drop_missing(Packet<T> (&v)[U]) {
  int n = 0;
  if constexpr (sizeof(T) == 2 && Traits<T>::kind == KIND_FLOAT) {
    GPR_EACH(u, U) {
      drop_of_pair<T>(v[u].words.x, n), drop_of_pair<T>(v[u].words.y, n);
      drop_of_pair<T>(v[u].words.z, n), drop_of_pair<T>(v[u].words.w, n);
    }
    return n / 2;
  } else if constexpr (sizeof(T) == 4 && Traits<T>::kind == KIND_FLOAT) {
    GPR_EACH(i, U * 4) {
      float &x = v[i / 4].element[i % 4];
      const bool gone = x != x;
      x = gone ? -0.0f : x;
      n += gone;
    }
  } else {
    drop_missing(v, [&](int) { n++; });
  }
  return n;
}

GPR_CLOSE
