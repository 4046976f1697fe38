/* NaN and NaT among packets, which do not count where they are skipped. */
#pragma once

#include "lanes.cuh"
#include "load.cuh"

GPR_OPEN

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
  bool any = false;
  GPR_EACH(i, U * V) any |= is_nan_or_nat(v[i / V].element[i % V]);
  if (!any) return;
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
/* -0.0 in its place; all bits of either half that was. */
template <class T> GPR_DEVICE uint32_t drop_of_pair(uint32_t &w) {
  const uint32_t missing = missing_of_pair<T>(w);
  w = (w & ~missing) | (missing & 0x80008000u);
  return missing;
}
/* 1 if it was. */
template <class T> GPR_DEVICE int drop_one(T &x) {
  const bool gone = x != x;
  x = gone ? T(-0.0) : x;
  return gone;
}
template <class T> GPR_DEVICE uint32_t &word_of(Packet<T> &v, int i) {
  return i == 0 ? v.words.x : i == 1 ? v.words.y : i == 2 ? v.words.z : v.words.w;
}
/* How many they were, and of each of a packet's places. Without a branch, since most batches have
 * some if one number in 100 is NaN. */
template <class T, int U> GPR_DEVICE int drop_missing(Packet<T> (&v)[U]) {
  constexpr int V = Packet<T>::count;
  int n = 0;
  if constexpr (Traits<T>::kind != KIND_FLOAT) {
    drop_missing(v, [&](int) { n++; });
  } else if constexpr (sizeof(T) == 2) {
    GPR_EACH(i, 4 * U) n = dot4((int)drop_of_pair<T>(word_of(v[i / 4], i % 4)), ~0, n);
    n /= 2; /* bytes of -1 */
  } else {
    GPR_EACH(i, U * V) n += drop_one(v[i / V].element[i % V]);
  }
  return n;
}
template <class T, int U, int V> GPR_DEVICE void drop_missing(Packet<T> (&v)[U], int (&gone)[V]) {
  if constexpr (Traits<T>::kind != KIND_FLOAT) {
    drop_missing(v, [&](int e) { gone[e]++; });
  } else if constexpr (sizeof(T) == 2) {
    GPR_EACH(i, 4) {
      uint32_t both = 0;
      GPR_EACH(u, U) both += drop_of_pair<T>(word_of(v[u], i)) & 0x00010001u;
      gone[2 * i] += both & 0xffff;
      gone[2 * i + 1] += both >> 16;
    }
  } else {
    GPR_EACH(i, U * V) gone[i % V] += drop_one(v[i / V].element[i % V]);
  }
}

GPR_CLOSE
