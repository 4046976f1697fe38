/* What a user's operator reads of its arrays: the leaves of an output. */
#ifndef GPR_OPERATOR_LEAVES_CUH
#define GPR_OPERATOR_LEAVES_CUH

#include "../abi/operator.h"
#include "outputs.cuh"

GPR_OPEN

/* The greatest power of two up to 16 of which so many bytes are a multiple. */
GPR_CONSTEXPR int word_of(int bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

/* --- memory --------------------------------------------------------------------------------------
 */

/* N leaves' M numbers each, `step` bytes from one leaf to the next. */
template <class T, int M, int N>
__device__ __forceinline__ void load_leaves(T (&to)[M * N], const int64_t *data, int64_t offset,
                                            int64_t step, bool packed) {
  constexpr int bytes = (int)sizeof to, word = word_of(bytes);
  if constexpr (word > (int)sizeof(T)) {
    typedef typename Store<word>::type Word;
    const Word *from = (const Word *)(data[0] + offset);
    if (packed && (uintptr_t)from % word == 0) {
      Word w[bytes / word];
#pragma unroll
      for (int i = 0; i < bytes / word; i++) w[i] = __ldg(from + i);
      memcpy(to, w, sizeof to);
      return;
    }
  }
#pragma unroll
  for (int m = 0; m < M; m++) {
    const char *from = (const char *)(data[m] + offset);
#pragma unroll
    for (int j = 0; j < N; j++, from += step) to[j * M + m] = __ldg((const T *)from);
  }
}

/* Of any byte order, at any address. */
template <class T> __device__ __noinline__ T load_odd(const char *from, bool swapped) {
  char bytes[sizeof(T)];
  T x;
  for (int i = 0; i < (int)sizeof(T); i++) bytes[swapped ? (int)sizeof(T) - 1 - i : i] = from[i];
  memcpy(&x, bytes, sizeof x);
  return x;
}

/* --- an output -----------------------------------------------------------------------------------
 */

template <class OP> struct Operands {
  typedef typename OP::State A;
  enum { ARRAYS = OP::ARRAYS, LEAVES = OP::LEAVES, RUN = OP::RUN };
  const gpr_operator_args &a;
  const int64_t *numbers, *shape,
      *strides; /* reduced dimensions: those of array k lie k * dims on */
  int64_t base[ARRAYS], step[ARRAYS], count; /* step: of the last dimension */
  int dims;

  __device__ Operands(const gpr_operator_args &args, int64_t o)
      : a(args), count(args.count), dims((int)(args.kept + args.reduced)) {
    numbers = a.far ? a.far : a.near;
    shape = numbers + OP::STREAMS + OP::RESULTS;
    strides = shape + dims;
    int64_t begin = 0;
    if (a.starts) {
      const int64_t segment = quotient_of(o, a.per);
      o -= segment * a.per;
      begin = a.starts[segment];
      count = a.stops[segment] > begin ? a.stops[segment] - begin : 0;
    }
#pragma unroll
    for (int k = 0; k < ARRAYS; k++) base[k] = begin * strides[k * dims + a.kept];
    go(base, 0, (int)a.kept, o);
    shape += a.kept;
    strides += a.kept;
#pragma unroll
    for (int k = 0; k < ARRAYS; k++) step[k] = strides[k * dims + a.reduced - 1];
  }

  /* To a place of some dimensions in C order; what it is in the last of them. */
  __device__ __forceinline__ int64_t go(int64_t (&at)[ARRAYS], int first, int stop,
                                        int64_t place) const {
    int64_t last = 0;
#pragma unroll 1
    for (int d = stop - 1; d >= first; d--) {
      const int64_t over = d > first ? quotient_of(place, shape[d]) : 0;
      const int64_t here = place - over * shape[d];
#pragma unroll
      for (int k = 0; k < ARRAYS; k++) at[k] += here * strides[k * dims + d];
      if (d == stop - 1) last = here;
      place = over;
    }
    return last;
  }
  /* Where leaf i of array k lies. */
  __device__ __noinline__ int64_t far(int k, int64_t i) const {
    return base[k] + offset_of(shape, strides + k * dims, (int)a.reduced, i);
  }
  /* The number of a stream of array k that lies there. */
  template <class T> __device__ __forceinline__ T number(int k, int stream, int64_t at) const {
    const char *from = (const char *)(numbers[stream] + at);
    return a.odd >> k & 1 ? load_odd<T>(from, a.swapped >> k & 1) : __ldg((const T *)from);
  }
  /* Where leaves begin, and whether so many of them follow in the last dimension. */
  __device__ __forceinline__ bool begin(int64_t (&at)[ARRAYS], int64_t first, int64_t many) const {
    const bool is_line = a.reduced == 1;
#pragma unroll
    for (int k = 0; k < ARRAYS; k++) at[k] = base[k] + (is_line ? first * step[k] : 0);
    return (is_line || go(at, 0, (int)a.reduced, first) + many <= shape[a.reduced - 1]) && !a.odd;
  }

  template <int N>
  static __device__ __forceinline__ A fold(const typename OP::template Leaves<N> &leaves,
                                           int64_t i) {
    return fold_all<N>(leaves, 0, i);
  }
  template <int N, int ALL>
  static __device__ __forceinline__ A fold_all(const typename OP::template Leaves<ALL> &leaves,
                                               int j, int64_t i) {
    if constexpr (N == 1)
      return leaves.lift(j, i + j);
    else
      return OP::combine(fold_all<N / 2>(leaves, j, i), fold_all<N / 2>(leaves, j + N / 2, i));
  }
  /* What is missing is always at the end: a right half is there if its first leaf is. */
  template <int N, int ALL>
  static __device__ __forceinline__ A fold_some(const typename OP::template Leaves<ALL> &leaves,
                                                int j, int64_t i, int there) {
    if constexpr (N == 1) {
      return leaves.lift(j, i + j);
    } else {
      A value = fold_some<N / 2>(leaves, j, i, there);
      if (j + N / 2 < there)
        value = OP::combine(value, fold_some<N / 2>(leaves, j + N / 2, i, there));
      return value;
    }
  }

  /* The node of RUN leaves that follow each other in the last dimension. */
  __device__ __forceinline__ A run(const int64_t (&at)[ARRAYS], int64_t first) const {
    typename OP::template Leaves<RUN> leaves;
    leaves.load(*this, at);
    return fold<RUN>(leaves, first);
  }
  /* The node of up to LEAVES of them, wherever they lie. */
  __device__ __forceinline__ A some(int64_t first, int64_t stop) const {
    typename OP::template Leaves<LEAVES> leaves;
    const int there = stop - first < LEAVES ? (int)(stop - first) : (int)LEAVES;
    int64_t at[ARRAYS];
    const bool in_line = begin(at, first, there);
    if (in_line && there == LEAVES) {
      leaves.load(*this, at);
    } else {
#pragma unroll
      for (int j = 0; j < LEAVES; j++) {
        if (j >= there) break;
        if (!in_line && j) {
#pragma unroll
          for (int k = 0; k < ARRAYS; k++) at[k] = far(k, first + j);
        }
        leaves.load_one(*this, j, at);
        if (in_line) {
#pragma unroll
          for (int k = 0; k < ARRAYS; k++) at[k] += step[k];
        }
      }
    }
    return fold_some<LEAVES>(leaves, 0, first, there);
  }
};

GPR_CLOSE
#endif
