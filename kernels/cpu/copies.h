/* Elements in any step brought together. */
#pragma once

#include "tiles.h"

GPR_OPEN

/* Of any alignment. */
template <int BYTES> struct Loose {
  typedef typename Unsigned<BYTES>::type type __attribute__((aligned(1), may_alias));
};
/* Every second element is a shuffle of vectors. What no cache holds is asked for while others are
 * copied: means of 6.4 million floats took 4.2 ms on Zen 4 without and 2.1 so. */
template <int BYTES>
static GPR_APART void copy_every_second(const char *from, char *to, int64_t n) {
  typedef typename Loose<BYTES>::type E;
  enum { PART = 512 / BYTES, AHEAD = 12 << 10 };
  int64_t i = 0;
  for (; gpr_is_far && i + PART <= n; i += PART) {
    for (int64_t l = 0; l < 2 * PART * BYTES; l += 64)
      __builtin_prefetch(from + 2 * i * BYTES + AHEAD + l, 0, 2);
    for (int64_t j = i; j < i + PART; j++) ((E *)to)[j] = ((const E *)from)[2 * j];
  }
  for (; i < n; i++) ((E *)to)[i] = ((const E *)from)[2 * i];
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
/* f of the width of a word, the greatest of so many bytes at most. */
template <int BYTES> struct Word { static constexpr int bytes = BYTES; };
template <class F> GPR_FN auto by_word(int64_t bytes, const F &f) {
  if (bytes >= 32) return f(Word<32>());
  if (bytes >= 16) return f(Word<16>());
  if (bytes >= 8) return f(Word<8>());
  if (bytes >= 4) return f(Word<4>());
  return bytes >= 2 ? f(Word<2>()) : f(Word<1>());
}
static void copy(const char *from, int64_t step, char *to, int64_t to_step, int64_t n, int bytes) {
  if (step == bytes && to_step == bytes)
    memcpy(to, from, (size_t)(n * bytes));
  else
    by_word(bytes, [=](auto w) { copy_as<w.bytes>(from, step, to, to_step, n); });
}

/* Squares of neighbours are turned, of which the last overlap the ones before. */
template <int BYTES>
static void turn_squares(const char *from, const int64_t *at, int64_t n, int64_t lines, char *to,
                         int64_t apart) {
  enum { SIDE = BYTES == 2 ? 8 : GPR_VECTOR / BYTES };
  typedef typename Unsigned<BYTES>::type V __attribute__((vector_size(SIDE * BYTES)));
  V v[SIDE];
  for (int64_t i = 0;; i = least(i + SIDE, n - SIDE)) {
    for (int64_t l = 0;; l = least(l + SIDE, lines - SIDE)) {
      for (int k = 0; k < SIDE; k++) memcpy(v + k, from + at[i + k] + l * BYTES, sizeof *v);
      turn(v);
      for (int k = 0; k < SIDE; k++) memcpy(to + (l + k) * apart + i * BYTES, v + k, sizeof *v);
      if (l == lines - SIDE) break;
    }
    if (i == n - SIDE) return;
  }
}
/* Each by a word of so many bytes at its start and, where it has more, one at its end. */
template <int WORD>
static void gather_words(const char *from, const int64_t *at, int64_t n, int64_t bytes, char *to) {
  const int64_t last = bytes - WORD;
  GPR_UNROLL(8)
  for (int64_t i = 0; last == 0 && i < n; i++) memcpy(to + i * WORD, from + at[i], WORD);
  GPR_UNROLL(4)
  for (int64_t i = 0; last && i < n; i++) {
    memcpy(to + i * bytes, from + at[i], WORD);
    memcpy(to + i * bytes + last, from + at[i] + last, WORD);
  }
}
template <int WORD>
static void gather_as(const char *from, const int64_t *at, int64_t n, int64_t bytes, int64_t lines,
                      int64_t step, char *to, int64_t apart) {
  if constexpr (WORD == 2 || WORD == 4 || WORD == 8)
    if (step == WORD && least(n, lines) >= greatest(8, GPR_VECTOR / WORD))
      return turn_squares<WORD>(from, at, n, lines, to, apart);
  for (int64_t l = 0; l < lines; l++)
    gather_words<WORD>(from + l * step, at, n, bytes, to + l * apart);
}
static void gather(const char *from, const int64_t *at, int64_t n, int64_t bytes, int64_t lines,
                   int64_t step, char *to, int64_t apart) {
  if (bytes > 64)
    for (int64_t i = 0; i < n; i++) memcpy(to + i * bytes, from + at[i], (size_t)bytes);
  else
    by_word(bytes, [=](auto w) { gather_as<w.bytes>(from, at, n, bytes, lines, step, to, apart); });
}

template <int BYTES> static void swap_as(char *data, int64_t n) {
  typename Loose<BYTES>::type *x = (typename Loose<BYTES>::type *)data;
  for (int64_t i = 0; i < n; i++)
    x[i] = BYTES == 2   ? __builtin_bswap16((uint16_t)x[i])
           : BYTES == 4 ? __builtin_bswap32((uint32_t)x[i])
                        : __builtin_bswap64((uint64_t)x[i]);
}
static void swap(char *data, int64_t bytes, int unit) {
  if (unit == 2) return swap_as<2>(data, bytes / 2);
  unit == 4 ? swap_as<4>(data, bytes / 4) : swap_as<8>(data, bytes / 8);
}

/* gpr_find; also of bytes. */
template <int BYTES>
static int64_t find_as(const void *words, int64_t n, uint64_t mask, uint64_t wanted) {
  typedef typename Unsigned<BYTES>::type W;
  enum { BLOCK = 256 / BYTES };
  const typename Loose<BYTES>::type *x = (const typename Loose<BYTES>::type *)words;
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK) {
    W any = 0;
    for (int j = 0; j < BLOCK; j++) any |= (W)(x[i + j] & (W)mask) == (W)wanted;
    if (any) break;
  }
  while (i < n && (x[i] & (W)mask) != (W)wanted) i++;
  return i;
}
static int64_t find(const void *words, int64_t n, int bytes, uint64_t mask, uint64_t wanted) {
  if (bytes == 2) return find_as<2>(words, n, mask, wanted);
  return bytes == 4 ? find_as<4>(words, n, mask, wanted) : find_as<8>(words, n, mask, wanted);
}

GPR_FN int64_t place_of(const gpr_tile *t, int64_t i) {
  return t->places ? t->places[i] : i * t->along;
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
/* Those of the output at `data`, from this one on. */
template <class T>
GPR_APART void bring_output(const gpr_tile *t, const char *data, int64_t first, int64_t n, T *to) {
  const int64_t each = t->places ? 1 : n;
  for (int64_t i = 0; i < n; i += each)
    bring(t, data + place_of(t, first + i), t->along, each, to + i);
}

GPR_CLOSE
