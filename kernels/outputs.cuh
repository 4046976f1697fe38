/* Many outputs: where their elements lie, how threads and blocks that share one come together, and
 * how its state becomes a result. */
#ifndef GPR_OUTPUTS_CUH
#define GPR_OUTPUTS_CUH

#include "axes.h"
#include "cells.cuh"

GPR_OPEN

enum { AXES_THREADS = 256 };

/* The scratch: tickets and locks, which every launch leaves zero; what the locks are for, of folds
 * that have it; partial states. */
enum { AXES_TICKETS = 4096, AXES_LOCKS = 1024, AXES_POOL = 4 * (AXES_TICKETS + AXES_LOCKS) };
template <class F> struct PoolBytes { static constexpr size_t value = 0; };

/* --- places --------------------------------------------------------------------------------------
 */

/* a / b of what is not negative: a division of 64 bits takes a hundred instructions. */
template <int = 0> __device__ __noinline__ int64_t long_quotient(int64_t a, int64_t b) {
  return a / b;
}
__device__ __forceinline__ int64_t quotient_of(int64_t a, int64_t b) {
  return ((uint64_t)a | (uint64_t)b) >> 32 ? long_quotient<>(a, b)
                                           : (int64_t)((uint32_t)a / (uint32_t)b);
}

/* The offset of place `at` in C order of `dims` dimensions. */
template <int = 0>
__device__ __noinline__ int64_t far_offset_of(const int64_t *shape, const int64_t *strides,
                                              int dims, int64_t at) {
  int64_t offset = 0;
  for (int d = dims - 1; d > 0; d--) {
    const int64_t n = shape[d], rest = quotient_of(at, n);
    offset += (at - rest * n) * strides[d];
    at = rest;
  }
  return offset + at * strides[0];
}
__device__ __forceinline__ int64_t offset_of(const int64_t *shape, const int64_t *strides, int dims,
                                             int64_t at) {
  if (dims <= 1) return dims ? at * strides[0] : 0;
  if (dims > 2) return far_offset_of<>(shape, strides, dims, at);
  const int64_t row = quotient_of(at, shape[1]);
  return row * strides[0] + (at - row * shape[1]) * strides[1];
}

/* --- results -------------------------------------------------------------------------------------
 */

template <class A, class B> struct Same { static constexpr bool value = false; };
template <class A> struct Same<A, A> { static constexpr bool value = true; };

template <class O, class F>
__device__ __forceinline__ void finish_as(const gpr_axes_args &a, int64_t o,
                                          typename F::State &state, int64_t n) {
  if constexpr (Same<typename O::Fold, F>::value)
    if constexpr (Same<typename FinishedWith<O>::type, typename O::Result>::value) {
      typedef typename O::Result R;
      constexpr int results = Results<O>::value;
      R initial, result[results];
      memcpy(&initial, a.initial, sizeof initial);
      O::finish(state, n, a.has_initial ? &initial : nullptr, result);
      for (int r = 0; r < results; r++) ((R *)a.out)[o * results + r] = result[r];
    }
}

/* Inline where every thread finishes an output, else once a kernel. */
template <class F> struct Finish {
  static __device__ __forceinline__ void here(const gpr_axes_args &a, int64_t o,
                                              typename F::State &state, int64_t n) {
    typedef typename F::Element T;
    switch (a.op) {
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) \
  case GPR_OP_##id: finish_as<op<T>, F>(a, o, state, n); break;
      GPR_OPS(GPR_X)
#undef GPR_X
    }
  }
};
template <class T> struct Finish<PairSum<T>> {
  typedef PairSum<T> F;
  static __device__ __forceinline__ void here(const gpr_axes_args &a, int64_t o,
                                              typename F::State &state, int64_t n) {
    T initial;
    memcpy(&initial, a.initial, sizeof initial);
    if (a.has_initial)
      F::add(state, initial, -1);
    else if (n == 0) /* a sum of nothing is +0.0 */
      F::add(state, T{}, -1);
    const bool mean = a.op == GPR_OP_MEAN || a.op == GPR_OP_NANMEAN;
    F::finish(state, mean ? n : 1, (T *)a.out + o);
  }
};

template <class F>
__device__ __noinline__ void finish_output(const gpr_axes_args *a, int64_t o,
                                           typename F::State *state, int64_t n) {
  Finish<F>::here(*a, o, *state, n);
}

/* --- states that are copied and merged -----------------------------------------------------------
 */

template <class F> struct Move {
  typedef typename F::State State;
  static __device__ __forceinline__ void assign(State &to, const State &from) { to = from; }
  /* Among each `lanes` neighbours of a warp, a power of two; all have the result. */
  static __device__ __forceinline__ void merge_lanes(State &s, int lanes) {
#pragma unroll 1
    for (int mask = lanes / 2; mask; mask /= 2) {
      const State other = shuffle_xor(s, mask);
      F::merge(s, other);
    }
  }
  /* `count` states, `step` apart: several are on their way at a time, where they fit. */
  static __device__ __forceinline__ void merge_all(State &s, const State *from, int64_t count,
                                                   int64_t step) {
    constexpr int N = sizeof(State) <= 32 ? 8 : 1;
    State part[N];
    int64_t i = 0;
#pragma unroll 1
    for (; i + N <= count; i += N) {
#pragma unroll
      for (int u = 0; u < N; u++) part[u] = from[(i + u) * step];
#pragma unroll
      for (int u = 0; u < N; u++) F::merge(s, part[u]);
    }
#pragma unroll 1
    for (; i < count; i++) F::merge(s, from[i * step]);
  }
};

template <class T> struct Move<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef RealSum<typename F::Real> Real;
  static __device__ __forceinline__ void assign(State &to, const State &from) {
    F::assign(to, from);
  }
  static __device__ __forceinline__ void merge_all(State &s, const State *from, int64_t count,
                                                   int64_t step);
  /* Only what a thread could not hold makes a state a used one: zeros keep their signs in others.
   */
  static __device__ __noinline__ void merge_slowly(Real *s, int lanes) {
    for (int i = 0; !s->used && i < Long<typename F::Real>::words; i++) s->rest.word[i] = 0;
    for (int mask = lanes / 2; mask; mask /= 2) {
      Real other;
      uint32_t *to = (uint32_t *)&other, *from = (uint32_t *)s;
      for (int i = 0; i < (int)(sizeof other / 4); i++)
        to[i] = __shfl_xor_sync(GPR_ALL, from[i], mask);
      merge(*s, other);
    }
  }
  static __device__ __forceinline__ void merge_lanes(State &s, int lanes) {
#pragma unroll
    for (int p = 0; p < F::parts; p++) {
      Pair pair = s.part[p].pair;
      bool lost = s.part[p].used;
#pragma unroll 1
      for (int mask = lanes / 2; mask; mask /= 2)
        pair = merged(pair, shuffle_xor(pair, mask), lost);
      if (__any_sync(GPR_ALL, lost))
        merge_slowly(&s.part[p], lanes);
      else
        s.part[p].pair = pair;
    }
  }
};

template <class T> struct MergePairs {
  typedef PairSum<T> F;
  typedef typename F::State State;
  enum { N = 8 };
  /* N states' pairs of one part: false if they do not fit. */
  static __device__ __forceinline__ bool merge(State &s, const State *from, int64_t step, int p) {
    Pair next[N], sum = s.part[p].pair;
    bool lost = s.part[p].used;
#pragma unroll
    for (int u = 0; u < N; u++) {
      next[u] = from[u * step].part[p].pair;
      lost |= from[u * step].part[p].used;
    }
#pragma unroll
    for (int u = 0; u < N; u++) sum = merged(sum, next[u], lost);
    if (!lost) s.part[p].pair = sum;
    return !lost;
  }
};
template <class T>
__device__ __forceinline__ void Move<PairSum<T>>::merge_all(State &s, const State *from,
                                                            int64_t count, int64_t step) {
  enum { N = MergePairs<T>::N };
#pragma unroll 1
  for (int p = 0; p < F::parts; p++) {
    int64_t i = 0;
#pragma unroll 1
    for (; i + N <= count && MergePairs<T>::merge(s, from + i * step, step, p); i += N) continue;
#pragma unroll 1
    for (; i < count; i++) merge(s.part[p], from[i * step].part[p]);
  }
}

/* A fold with the number of elements that counted. */
template <class F> struct Counted {
  struct State {
    typename F::State state;
    int64_t n;
  };
  static __device__ __forceinline__ void merge(State &s, const State &right) {
    F::merge(s.state, right.state);
    s.n += right.n;
  }
  static __device__ __forceinline__ void open(State &s) {
    F::open(s.state);
    s.n = 0;
  }
};
template <class F> struct PoolBytes<Counted<F>> : PoolBytes<F> {};
template <class F>
__device__ __forceinline__ typename F::State *partials_of(const gpr_axes_args &a) {
  return (typename F::State *)((char *)a.scratch + AXES_POOL + PoolBytes<F>::value);
}

template <class F> struct Move<Counted<F>> {
  typedef typename Counted<F>::State State;
  static __device__ __forceinline__ void assign(State &to, const State &from) {
    Move<F>::assign(to.state, from.state);
    to.n = from.n;
  }
  static __device__ __forceinline__ void merge_all(State &s, const State *from, int64_t count,
                                                   int64_t step) {
#pragma unroll 1
    for (int64_t i = 0; i < count; i++) Counted<F>::merge(s, from[i * step]);
  }
};

/* --- threads of a block that share an output -----------------------------------------------------
 */

/* What the states of half a block need, or of less in several rounds. */
template <class F> struct Slots {
  typedef typename F::State State;
  static constexpr int count =
      AXES_THREADS / 2 * sizeof(State) <= 40960 ? AXES_THREADS / 2 : (int)(40960 / sizeof(State));
  State slot[count];
};

/* The states of threads (x, 0 … height) come to (x, 0). Called by all threads of the block; those
 * outside have y >= height. */
template <class F>
__device__ __forceinline__ void merge_down(typename F::State &s, int x, int y, int width,
                                           int height, Slots<F> &slots) {
#pragma unroll 1
  while (height > 1) {
    const int half = (height + 1) / 2, sent = (height - half) * width;
    const int give = y >= half && y < height ? (y - half) * width + x : -1;
    const int get = y + half < height ? y * width + x : -1;
#pragma unroll 1
    for (int first = 0; first < sent; first += Slots<F>::count) {
      const int stop = first + Slots<F>::count;
      __syncthreads();
      if (give >= first && give < stop) Move<F>::assign(slots.slot[give - first], s);
      __syncthreads();
      if (get >= first && get < stop) F::merge(s, slots.slot[get - first]);
    }
    height = half;
  }
  __syncthreads();
}

/* All threads' states come to thread 0: by lanes, then its own hands, for there are few warps. */
template <class F>
__device__ __forceinline__ void merge_block(typename F::State &s, Slots<F> &slots) {
  constexpr int warps = AXES_THREADS / GPR_WARP;
  static_assert(Slots<F>::count >= warps, "");
  Move<F>::merge_lanes(s, GPR_WARP);
  __syncthreads();
  if (lane_of() == 0) Move<F>::assign(slots.slot[warp_of()], s);
  __syncthreads();
  if (threadIdx.x == 0)
#pragma unroll 1
    for (int w = 1; w < warps; w++) F::merge(s, slots.slot[w]);
}

/* --- blocks that share outputs -------------------------------------------------------------------
 */

/* True in all threads of the block that comes last of `blocks`. */
__device__ __forceinline__ bool is_last_of(uint32_t *ticket, int blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicInc(ticket, blocks - 1) == (uint32_t)blocks - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/* The last block's work: outputs 0 … outputs, each of `entries` partial states, of which entry e of
 * output j lies at partial[e·step + j]. done(j, state) is called by one thread of each; s is where
 * it is worked out. */
template <class F, class Done>
__device__ __forceinline__ void merge_partials(const typename F::State *partial, int outputs,
                                               int64_t entries, int64_t step, Slots<F> &slots,
                                               typename F::State &s, Done done) {
  int height = 1;
  while (height < entries && 2 * height * outputs <= AXES_THREADS) height *= 2;
  const int width = AXES_THREADS / height, x = threadIdx.x % width, y = threadIdx.x / width;
  for (int first = 0; first < outputs; first += width) {
    const int j = first + x;
    F::open(s);
    if (j < outputs && y < entries)
      Move<F>::merge_all(s, partial + y * step + j, (entries - y + height - 1) / height,
                         height * step);
    merge_down<F>(s, x, y, width, height, slots);
    if (y == 0 && j < outputs) done(j, s);
  }
}

/* The same for one output; thread 0 has it. */
template <class F>
__device__ __forceinline__ void merge_row(typename F::State &s, const typename F::State *partial,
                                          int64_t entries, Slots<F> &slots) {
  F::open(s);
  const int64_t mine = entries - threadIdx.x + AXES_THREADS - 1;
  if (threadIdx.x < entries)
    Move<F>::merge_all(s, partial + threadIdx.x, quotient_of(mine, AXES_THREADS), AXES_THREADS);
  merge_block<F>(s, slots);
}

GPR_CLOSE
#endif
