/* Strips of columns: what a thread reads of some rows at a time, from any address. */
#pragma once

#include "outputs.cuh"

GPR_OPEN

/* What a thread reads of a row of columns: of a packet of smaller elements it would have thousands
 * of instructions. And how many rows go together, and the last ones: of 240 MB in 3 and in 7 rows
 * sums of floats took 140 and 96 µs on an H200 by two, and take 122 and 82 by four; of doubles 128
 * and 100, and 169 and 111. */
template <class T> struct StripShape {
  static constexpr int bytes = sizeof(T) >= 4 ? 16 : 4 * sizeof(T), count = bytes / sizeof(T),
                       loads = sizeof(T) >= 4 ? 4 : 8;
  static constexpr bool all = sizeof(T) == 16 || sizeof(typename RealOf<T>::type) == 4;
  static constexpr int last = all ? loads : loads / 2;
};
template <class T> union StripOf {
  static constexpr int bytes = StripShape<T>::bytes, count = StripShape<T>::count;
  typedef typename Store<bytes>::type Words;
  typedef typename Store<bytes / 2>::type Half;
  Words words;
  Half half[2];
  T element[count];
  __device__ StripOf() {}
  /* By the words around it: what they have beside it lies in an allocation's own 8 bytes, of which
   * memcheck may not know the last ones. */
  GPR_DEVICE void load_shifted(const char *from) {
    const int skew = (uintptr_t)from % 8 * 8;
    const uint2 *word = (const uint2 *)((uintptr_t)from & ~(uintptr_t)7);
    const uint2 first = __ldg(word);
    uint2 next = first;
    if (skew + 8 * bytes > 64) next = __ldg(word + 1);
    const bool is_far = skew >= 32;
    const uint32_t low = is_far ? first.y : first.x, middle = is_far ? next.x : first.y,
                   high = is_far ? next.y : next.x;
    const uint32_t both[2] = {__funnelshift_r(low, middle, skew),
                              __funnelshift_r(middle, high, skew)};
    memcpy(element, both, bytes < 8 ? bytes : 8);
  }
  /* Of small elements to shift every row takes longer than to wait for those that need not be. */
  GPR_DEVICE void load_full(const char *from) {
    if ((uintptr_t)from % bytes == 0) {
      words = load_once_as(from, words);
    } else if (bytes >= 8 && (uintptr_t)from % (bytes / 2) == 0) {
      half[0] = load_once_as(from, half[0]);
      half[1] = load_once_as(from + bytes / 2, half[1]);
    } else {
      load_shifted(from);
    }
  }
};
/* Strips of U rows, as far as there are `rows`, of their first `left` elements, `step` bytes from
 * one to the next, from any address.
 * How they lie is asked once: behind a branch of its own what a row's load brings is moved, which
 * waits for the memory before the next row is asked for. 100 MB of doubles in 12 rows took 37 µs on
 * an H200 so, and 32 by as many blocks. */
template <int U, class T>
GPR_DEVICE void load_rows(StripOf<T> (&v)[U], const char *from, int64_t stride, int64_t step,
                          int rows, int left) {
  typedef StripOf<T> V;
  const bool is_full = left == V::count && step == (int64_t)sizeof(T);
  if (rows == 1) stride = 0; /* may be no multiple of a strip, and nothing lies that far away */
  const uintptr_t places = (uintptr_t)from | (uintptr_t)stride;
  GPR_EACH(u, U) v[u].words = typename V::Words(); /* not what was there before */
  if (is_full && places % V::bytes == 0) {
    GPR_EACH(u, U)
      if (u < rows) v[u].words = load_once_as(from + u * stride, v[u].words);
  } else if (sizeof(T) != 8 && V::bytes >= 8 && is_full && places % (V::bytes / 2) == 0) {
    GPR_EACH(i, 2 * U)
      if (i / 2 < rows)
        v[i / 2].half[i % 2] =
            __ldg((const typename V::Half *)(from + i / 2 * stride + i % 2 * (V::bytes / 2)));
  } else if (sizeof(T) < 4 && is_full) {
    GPR_EACH(u, U)
      if (u < rows) v[u].load_full(from + u * stride);
  } else {
    GPR_EACH(i, U * V::count)
      if (i / V::count < rows && i % V::count < left)
        v[i / V::count].element[i % V::count] =
            *(const T *)(from + i / V::count * stride + i % V::count * step);
  }
}

GPR_CLOSE
