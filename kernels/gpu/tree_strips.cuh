/* Units of the one tree for outputs that lie side by side: a thread folds some neighbours', which
 * come by words of all of them, so that a warp reads longer pieces and loads less often. */
#ifndef GPR_TREE_STRIPS_CUH
#define GPR_TREE_STRIPS_CUH

#include "tree_units.cuh"

GPR_OPEN

/* --- past the registers: SIDE leaves side by side, of M numbers each -----------------------------
 */

template <class T, int M, int SIDE> struct SideBySide {
  enum { BYTES = SIDE * M * (int)sizeof(T), WORD = word_of(BYTES), WORDS = BYTES / WORD };
  typedef typename Store<WORD>::type Word;

  template <int N>
  static __device__ __forceinline__ void bring(char *places, int64_t at, int64_t step) {
    char *const own = places + lane_of() * WORD;
#pragma unroll
    for (int j = 0; j < N; j++, at += step)
#pragma unroll
      for (int w = 0; w < WORDS; w++)
        copy_one<Word>(own, (j * WORDS + w) * GPR_WARP * WORD, (const char *)at + w * WORD);
  }
  /* Of time j to the numbers from to[s][j * M] on. */
  template <int N>
  static __device__ __forceinline__ void get(const char *places, int j, T *const (&to)[SIDE]) {
    T numbers[SIDE * M];
#pragma unroll
    for (int w = 0; w < WORDS; w++) {
      const Word word = ((const Word *)places)[(j * WORDS + w) * GPR_WARP + lane_of()];
      memcpy((char *)numbers + w * WORD, &word, WORD);
    }
#pragma unroll
    for (int n = 0; n < SIDE * M; n++) to[n / M][j * M + n % M] = numbers[n];
  }
};

/* Some runs of them, whose leaves come a whole run ahead. */
template <class OP, int SIDE, class X> struct AheadSideBySide {
  typedef typename OP::State A;
  enum { PARTS = 4, RUN = 2 * (int)OP::RUN / SIDE, MANY = RUN / PARTS };
  enum { BYTES = MANY * GPR_WARP * SIDE * (int)OP::LEAF };
  const X &x;
  char *const places;
  int64_t at[OP::ARRAYS], parts; /* of the leaves that come next, and how much is left of them */

  __device__ __forceinline__ void bring(int part) {
    if (parts > 0) {
      OP::template bring_strip<MANY, SIDE>(places + part * BYTES, x, at);
#pragma unroll
      for (int k = 0; k < OP::ARRAYS; k++) at[k] += MANY * x.step[k];
    }
    parts--;
    copies_begun();
  }
  __device__ __forceinline__ void begin(const int64_t (&from)[OP::ARRAYS], int64_t runs) {
#pragma unroll
    for (int k = 0; k < OP::ARRAYS; k++) at[k] = from[k];
    parts = runs * PARTS;
#pragma unroll
    for (int part = 0; part < PARTS; part++) bring(part);
  }
  /* The nodes of the next N parts. */
  template <int N = PARTS, int PART = 0>
  __device__ __forceinline__ void fold(int64_t i, A (&node)[SIDE]) {
    if constexpr (N > 1) {
      A right[SIDE];
      fold<N / 2, PART>(i, node);
      fold<N / 2, PART + N / 2>(i + N / 2 * MANY, right);
#pragma unroll
      for (int s = 0; s < SIDE; s++) node[s] = OP::combine(node[s], right[s]);
    } else {
      typename OP::template Leaves<MANY> leaves[SIDE];
      own_copies_came<PARTS - 1>();
      OP::template get_strip<MANY, SIDE>(leaves, places + PART * BYTES);
      bring(PART);
#pragma unroll
      for (int s = 0; s < SIDE; s++) node[s] = fold_own<OP, MANY>(x, leaves[s], i);
    }
  }
};

/* The nodes of [first, stop) of SIDE neighbours, x is the first of them. */
template <class OP, int SIDE, class X>
__device__ __forceinline__ void fold_strip(X x, int64_t first, int64_t stop, char *places,
                                           Branch<typename OP::State> (&root)[SIDE]) {
  typedef typename OP::State A;
  typedef AheadSideBySide<OP, SIDE, X> S;
  constexpr int times = S::RUN / OP::LEAVES;
  A stack[SIDE][OP::DEPTH];
  int count = 0;
  int64_t done = 0, i = first;
  const auto push = [&](int s, A value, int64_t before) {
    Waiting<OP> waiting = {stack[s], count};
    waiting.push(value, before);
    return waiting.count;
  };
#pragma unroll 1
  while (i < stop) {
    int64_t at[OP::ARRAYS], left = 0, runs = 0;
    if (done % times == 0 && i + S::RUN <= stop) {
      left = x.begin(at, i);
      runs = (left < stop - i ? left : stop - i) / S::RUN;
    }
    S strip = {x, places, {}, 0};
    if (runs) strip.begin(at, runs);
#pragma unroll 1
    for (int64_t n = 0; n < runs; n++, i += S::RUN, done += times) {
      A node[SIDE];
      int after = 0;
      strip.fold(i, node);
#pragma unroll
      for (int s = 0; s < SIDE; s++) after = push(s, node[s], done / times);
      count = after;
    }
    if (runs) continue;
    X own = x;
    int after = 0;
#pragma unroll 1
    for (int s = 0; s < SIDE; s++, OP::go(own.base, 1))
      after = push(s, fold_some<OP, OP::LEAVES>(own, i, stop), done);
    count = after;
    i += OP::LEAVES, done++;
  }
#pragma unroll
  for (int s = 0; s < SIDE; s++) {
    root[s] = nothing<OP>();
    if (done) root[s] = {Waiting<OP>{stack[s], count}.all(), 1};
  }
}

GPR_CLOSE
#endif
