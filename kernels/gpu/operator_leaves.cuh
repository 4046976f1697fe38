/* What a user's operator reads of its arrays: the leaves of an output, and small nodes of them. */
#ifndef GPR_OPERATOR_LEAVES_CUH
#define GPR_OPERATOR_LEAVES_CUH

#include "../abi/operator.h"
#include "outputs.cuh"

GPR_OPEN

/* --- memory --------------------------------------------------------------------------------------
 */

/* The leaves' M numbers each, `step` bytes from one leaf to the next. */
template <class T, int M, int LEAVES>
__device__ __forceinline__ void load_leaves(T (&to)[M * LEAVES], const int64_t *data,
                                            int64_t offset, int64_t step, bool together) {
  constexpr int bytes = (int)sizeof to;
  constexpr int word = bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : sizeof(T);
  typedef typename Store<word>::type Word;
  if (together) {
    const Word *from = (const Word *)(data[0] + offset);
    Word w[bytes / word];
#pragma unroll
    for (int i = 0; i < bytes / word; i++) w[i] = __ldg(from + i);
    memcpy(to, w, sizeof to);
  } else {
#pragma unroll
    for (int j = 0; j < LEAVES; j++)
#pragma unroll
      for (int m = 0; m < M; m++) to[j * M + m] = __ldg((const T *)(data[m] + offset + j * step));
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
  enum { TOGETHER = OP::LEAVES, ARRAYS = OP::ARRAYS };
  const gpr_operator_args &a;
  const int64_t *numbers, *shape,
      *strides; /* reduced dimensions: those of array k lie k * dims on */
  int64_t base[ARRAYS], count;
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

  template <int N>
  __device__ __forceinline__ void load(typename OP::template Leaves<N> &leaves,
                                       const int64_t (&at)[ARRAYS]) const {
    int64_t step[ARRAYS];
#pragma unroll
    for (int k = 0; k < ARRAYS; k++) step[k] = strides[k * dims + a.reduced - 1];
    leaves.load(numbers, at, step, (int)a.together);
  }
  template <int N, int ALL>
  static __device__ __forceinline__ A fold(const typename OP::template Leaves<ALL> &leaves, int j,
                                           int64_t i) {
    if constexpr (N == 1)
      return leaves.lift(j, i + j);
    else
      return OP::combine(fold<N / 2>(leaves, j, i), fold<N / 2>(leaves, j + N / 2, i));
  }

  /* The node of up to TOGETHER leaves, one after the other. */
  __device__ __noinline__ void few(int64_t first, int64_t stop, A *to) const {
    A stack[8];
    int waiting = 0;
    if (stop - first > TOGETHER) stop = first + TOGETHER;
#pragma unroll 1
    for (int64_t i = first; i < stop; i++) {
      typename OP::template Leaves<1> leaf;
      int64_t at[ARRAYS];
#pragma unroll
      for (int k = 0; k < ARRAYS; k++) at[k] = base[k];
      go(at, 0, (int)a.reduced, i);
      if (a.odd)
        leaf.load_odd(numbers, at, a.swapped);
      else
        leaf.load(numbers, at, at, 0);
      A value = leaf.lift(0, i);
#pragma unroll 1
      for (int64_t place = i - first; place & 1; place >>= 1) {
        --waiting;
        OP::combine_apart(stack + waiting, &value, &value);
      }
      stack[waiting++] = value;
    }
    A value = stack[--waiting];
#pragma unroll 1
    while (waiting) {
      --waiting;
      OP::combine_apart(stack + waiting, &value, &value);
    }
    *to = value;
  }

  /* The same, all at a time where they lie in one run. */
  __device__ __forceinline__ A node(int64_t first, int64_t stop) const {
    A value;
    if (stop - first >= TOGETHER && !a.odd) {
      int64_t at[ARRAYS];
#pragma unroll
      for (int k = 0; k < ARRAYS; k++) at[k] = base[k];
      const int64_t here = go(at, 0, (int)a.reduced, first);
      if (a.reduced == 1 || here + TOGETHER <= shape[a.reduced - 1]) {
        typename OP::template Leaves<TOGETHER> leaves;
        load(leaves, at);
        return fold<TOGETHER>(leaves, 0, first);
      }
    }
    few(first, stop, &value);
    return value;
  }

  /* ROWS nodes of a lane, of rows that are whole and in one run. */
  __device__ __forceinline__ void rows(int64_t first, A *value) const {
    constexpr int64_t row = (int64_t)GPR_WARP * TOGETHER;
    typename OP::template Leaves<TOGETHER> leaves[OP::ROWS];
    const int64_t i = first + (int64_t)lane_of() * TOGETHER;
#pragma unroll
    for (int r = 0; r < OP::ROWS; r++) {
      int64_t at[ARRAYS];
#pragma unroll
      for (int k = 0; k < ARRAYS; k++) at[k] = base[k] + (i + r * row) * strides[k * dims];
      load(leaves[r], at);
    }
#pragma unroll
    for (int r = 0; r < OP::ROWS; r++) value[r] = fold<TOGETHER>(leaves[r], 0, i + r * row);
  }
};

GPR_CLOSE
#endif
