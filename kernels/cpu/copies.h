/* Elements in any step brought together. */
#ifndef GPR_COPIES_H
#define GPR_COPIES_H

#include "tiles.h"

GPR_OPEN

/* Of any alignment. */
template <int BYTES> struct Loose {
  typedef typename Unsigned<BYTES>::type type __attribute__((aligned(1), may_alias));
};
/* Every second element is a shuffle of vectors. */
template <int BYTES>
static GPR_APART void copy_every_second(const char *from, char *to, int64_t n) {
  typedef typename Loose<BYTES>::type E;
  for (int64_t i = 0; i < n; i++) ((E *)to)[i] = ((const E *)from)[2 * i];
}
/* Some elements by one store: loads of vectors wait for what was stored one by one. */
template <int BYTES, int... I>
GPR_FN void copy_vector(const char *from, int64_t step, char *to, Lanes<I...>) {
  typedef typename Unsigned<BYTES>::type V __attribute__((vector_size(GPR_VECTOR)));
  const V v = {*(const typename Loose<BYTES>::type *)(from + I * step)...};
  memcpy(to, &v, sizeof v);
}
template <int BYTES>
static void copy_as(const char *from, int64_t step, char *to, int64_t to_step, int64_t n) {
  enum { EACH = GPR_VECTOR / BYTES };
  int64_t i = 0;
  if constexpr (BYTES <= 8)
    if (to_step == BYTES && step == 2 * BYTES) return copy_every_second<BYTES>(from, to, n);
  if constexpr (BYTES == 4 || BYTES == 8)
    for (; to_step == BYTES && i + EACH <= n; i += EACH)
      copy_vector<BYTES>(from + i * step, step, to + i * BYTES, LanesTo<EACH>());
  GPR_UNROLL(8)
  for (; i < n; i++) memcpy(to + i * to_step, from + i * step, BYTES);
}
static void copy(const char *from, int64_t step, char *to, int64_t to_step, int64_t n, int bytes) {
  if (step == bytes && to_step == bytes) {
    memcpy(to, from, (size_t)(n * bytes));
    return;
  }
  switch (bytes) {
    case 1: return copy_as<1>(from, step, to, to_step, n);
    case 2: return copy_as<2>(from, step, to, to_step, n);
    case 4: return copy_as<4>(from, step, to, to_step, n);
    case 8: return copy_as<8>(from, step, to, to_step, n);
    case 16: return copy_as<16>(from, step, to, to_step, n);
    default: return copy_as<32>(from, step, to, to_step, n);
  }
}

/* A tile's elements, `step` bytes apart, as its row takes them. */
template <class T>
GPR_APART void bring(const gpr_tile *t, const char *from, int64_t step, int64_t n, T *to) {
  enum { BLOCK = 512 };
  alignas(64) char some[16 * BLOCK];
  if (!t->cast) return copy(from, step, (char *)to, sizeof(T), n, sizeof(T));
  if (step == t->bytes) return t->cast(from, to, n);
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t m = least(n - i, (int64_t)BLOCK);
    copy(from + i * step, step, some, t->bytes, m, t->bytes);
    t->cast(some, to + i, m);
  }
}

GPR_CLOSE
#endif
