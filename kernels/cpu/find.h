/* Bits among words. */
#ifndef GPR_FIND_H
#define GPR_FIND_H

#include "copies.h"

GPR_OPEN

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
  switch (bytes) {
    case 2: return find_as<2>(words, n, mask, wanted);
    case 4: return find_as<4>(words, n, mask, wanted);
    default: return find_as<8>(words, n, mask, wanted);
  }
}

GPR_CLOSE
#endif
