/* Many outputs: how threads and blocks that share one come together. */
#ifndef GPR_OUTPUTS_CUH
#define GPR_OUTPUTS_CUH

#include "axes_results.cuh"
#include "last_block.cuh"
#include "warp_sums.cuh"

GPR_OPEN

enum { AXES_THREADS = 256 };

/* The scratch: tickets and locks, which every launch leaves zero; what the locks are for, of folds
 * that have it; partial states. */
enum { AXES_TICKETS = 4096, AXES_LOCKS = 1024, AXES_POOL = 4 * (AXES_TICKETS + AXES_LOCKS) };
template <class F> struct PoolBytes { static constexpr size_t value = 0; };

/* --- states that are copied and merged -----------------------------------------------------------
 */

/* Of a state, what moves as a rule. */
template <class F> struct MovedBytes { static constexpr size_t value = sizeof(typename F::State); };
template <class T> struct MovedBytes<PairSum<T>> {
  typedef RealSum<typename PairSum<T>::Real> Real;
  static constexpr size_t value = PairSum<T>::parts * (sizeof(typename Real::Sum) + 8);
};

template <class S> __device__ __forceinline__ const S *after(const S *from, int64_t bytes) {
  return (const S *)((const char *)from + bytes);
}

/* States that are on their way from memory together; whether fewer are too. */
template <class F> struct MergedAtOnce {
  static constexpr int value = sizeof(typename F::State) <= 32 ? 8 : 1;
  static constexpr bool fewer = false;
};
template <class F> struct Move {
  typedef typename F::State State;
  static __device__ __forceinline__ void assign(State &to, const State &from) { to = from; }
  /* Every `step`-th of each `lanes` neighbours of a warp, powers of two; all have the result. */
  static __device__ __forceinline__ void merge_lanes(State &s, int lanes, int step = 1) {
#pragma unroll 1
    for (int mask = lanes / 2; mask >= step; mask /= 2) {
      const State other = shuffle_xor(s, mask);
      F::merge(s, other);
    }
  }
  /* `count` states, so many bytes apart: several are on their way at a time, where they fit. */
  static __device__ __forceinline__ void merge_all(State &s, const State *from, int64_t count,
                                                   int64_t bytes) {
    constexpr int N = MergedAtOnce<F>::value;
    constexpr bool fewer = MergedAtOnce<F>::fewer;
    State part[N];
    int64_t i = 0;
#pragma unroll 1
    for (; i + (fewer ? 1 : N) <= count; i += N) {
#pragma unroll
      for (int u = 0; u < N; u++)
        if (!fewer || i + u < count) part[u] = *after(from, (i + u) * bytes);
#pragma unroll
      for (int u = 0; u < N; u++)
        if (!fewer || i + u < count) F::merge(s, part[u]);
    }
#pragma unroll 1
    for (; i < count; i++) F::merge(s, *after(from, i * bytes));
  }
};

template <class T> struct Move<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef RealSum<typename F::Real> Real;
  static __device__ __forceinline__ void assign(State &to, const State &from) {
    F::assign(to, from);
  }
  /* The pairs of one part of N states, or of `count`: false if they do not fit. */
  enum { N = 8 };
  static __device__ __forceinline__ bool merge_pairs(State &s, const State *from, int64_t count,
                                                     int64_t bytes, int p) {
    typename Real::Sum next[N], sum = s.part[p].sum;
    bool lost = s.part[p].used;
#pragma unroll
    for (int u = 0; u < N; u++) {
      clear(next[u]);
      if (u >= count) continue;
      const Real &real = after(from, u * bytes)->part[p];
      next[u] = real.sum;
      lost |= real.used;
    }
#pragma unroll
    for (int u = 0; u < N; u++)
      if (u < count) sum = merged(sum, next[u], lost);
    if (!lost) s.part[p].sum = sum;
    return !lost;
  }
  static __device__ __forceinline__ void merge_all(State &s, const State *from, int64_t count,
                                                   int64_t bytes) {
#pragma unroll 1
    for (int p = 0; p < F::parts; p++) {
      int64_t i = 0;
#pragma unroll 1
      while (i < count && merge_pairs(s, after(from, i * bytes), count - i, bytes, p)) i += N;
#pragma unroll 1
      for (; i < count; i++) merge(s.part[p], after(from, i * bytes)->part[p]);
    }
  }
  static __device__ __forceinline__ bool all_added(State &s) {
    typename Real::Sum sum[F::parts];
    bool more = false, told = true;
#pragma unroll
    for (int p = 0; p < F::parts; p++) sum[p] = s.part[p].sum, more |= s.part[p].used != 0;
    if (__any_sync(GPR_ALL, more)) return false;
#pragma unroll
    for (int p = 0; p < F::parts; p++) told = added_by_warp(sum[p]) && told;
#pragma unroll
    for (int p = 0; told && p < F::parts; p++) s.part[p].sum = sum[p];
    return told;
  }
  /* Only what a thread could not hold makes a state a used one, and zeros keep their signs. */
  static __device__ __noinline__ void merge_slowly(Real *s, int lanes, int step) {
    for (int i = 0; !s->used && i < Long<typename F::Real>::words; i++) s->rest.word[i] = 0;
    for (int mask = lanes / 2; mask >= step; mask /= 2) {
      Real other;
      uint32_t *to = (uint32_t *)&other, *from = (uint32_t *)s;
      for (int i = 0; i < (int)(sizeof other / 4); i++)
        to[i] = __shfl_xor_sync(GPR_ALL, from[i], mask);
      merge(*s, other);
    }
  }
  static __device__ __forceinline__ void merge_lanes(State &s, int lanes, int step = 1) {
    if (lanes == GPR_WARP && step == 1 && all_added(s)) return;
    typename Real::Sum sum[F::parts], other[F::parts];
    bool lost[F::parts];
#pragma unroll
    for (int p = 0; p < F::parts; p++) {
      sum[p] = s.part[p].sum, lost[p] = s.part[p].used;
      other[p] = shuffle_xor(sum[p], lanes / 2);
    }
#pragma unroll 1
    for (int mask = lanes / 2; mask >= step; mask /= 2)
#pragma unroll
      for (int p = 0; p < F::parts; p++) {
        sum[p] = merged(sum[p], other[p], lost[p]);
        other[p] = shuffle_xor(sum[p], mask / 2); /* the next one's, while this one is checked */
      }
#pragma unroll
    for (int p = 0; p < F::parts; p++)
      if (__any_sync(GPR_ALL, lost[p]))
        merge_slowly(&s.part[p], lanes, step);
      else
        s.part[p].sum = sum[p];
  }
};

template <class F>
__device__ __forceinline__ typename F::State *partials_of(const gpr_axes_args &a) {
  return (typename F::State *)((char *)a.scratch + AXES_POOL + PoolBytes<F>::value);
}

/* --- threads of a block that share an output -----------------------------------------------------
 */

/* Whether lanes of a warp have the same x where `width` threads lie across and `height` down. */
__device__ __forceinline__ bool by_lanes(int width, int height) {
  return width < GPR_WARP && width * height == AXES_THREADS;
}

/* What half a block of threads with N states each need, or less in several rounds. */
enum { SLOTS_BYTES = 40960 };
template <class F, int N = 1> struct Slots {
  typedef typename F::State State;
  static constexpr int most = SLOTS_BYTES / sizeof(State), wanted = AXES_THREADS / 2 * N,
                       count = wanted < most ? wanted : most;
  State slot[count];
};

/* N things of each thread and of the lanes that have the same x: merge(mine, theirs). */
template <int N, class X, class Merge>
__device__ __forceinline__ void merge_lanes(X (&all)[N], int width, Merge merge) {
#pragma unroll 1
  for (int mask = GPR_WARP / 2; mask >= width; mask /= 2)
#pragma unroll
    for (int i = 0; i < N; i++) merge(all[i], shuffle_xor(all[i], mask));
}
/* And of all threads, by lanes and then by halves of the block. */
template <int N, class X, class Merge>
__device__ __forceinline__ void merge_halves(X (&all)[N], int x, int y, int width, int height,
                                             X (*slot)[AXES_THREADS / 2], Merge merge) {
  if (by_lanes(width, height)) {
    merge_lanes(all, width, merge);
    height = AXES_THREADS / GPR_WARP;
    y = lane_of() < width ? warp_of() : height;
  }
#pragma unroll 1
  for (int half; height > 1; height = half) {
    half = (height + 1) / 2;
    __syncthreads();
    if (y >= half && y < height)
#pragma unroll
      for (int i = 0; i < N; i++) slot[i][(y - half) * width + x] = all[i];
    __syncthreads();
    if (y + half < height)
#pragma unroll
      for (int i = 0; i < N; i++) merge(all[i], slot[i][y * width + x]);
  }
}

/* True where a block's states came together without merge_across(), which is then not needed: a few
 * small ones, all of them at a time. */
template <class F, int N> struct Quick {
  typedef typename F::State State;
  static constexpr bool small = N * sizeof(State) <= 64;
  template <int SLOTS>
  static __device__ __forceinline__ bool merge(State *s, int x, int y, int width, int height,
                                               Slots<F, SLOTS> &slots) {
    if constexpr (small) merge_small(s, x, y, width, height, slots);
    return small;
  }
  template <int SLOTS>
  static __device__ __forceinline__ void merge_small(State *s, int x, int y, int width, int height,
                                                     Slots<F, SLOTS> &slots) {
    State all[N], (*slot)[AXES_THREADS / 2] = (State(*)[AXES_THREADS / 2]) & slots;
    static_assert(sizeof slots >= N * sizeof *slot, "");
#pragma unroll
    for (int i = 0; i < N; i++) all[i] = s[i];
    merge_halves(all, x, y, width, height, slot,
                 [](State &mine, const State &theirs) { F::merge(mine, theirs); });
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++) s[i] = all[i];
  }
};
/* Sums as long as nothing is lost: pairs alone, all of them at a time. */
template <class T, int N> struct Quick<PairSum<T>, N> {
  typedef PairSum<T> F;
  static constexpr int parts = F::parts, pairs = N * parts;
  /* Whether the states have more than pairs. */
  typedef typename RealSum<typename F::Real>::Sum Sum;
  static __device__ __forceinline__ bool take(const typename F::State *s, Sum (&sum)[pairs]) {
    bool more = false;
#pragma unroll
    for (int i = 0; i < pairs; i++) {
      sum[i] = s[i / parts].part[i % parts].sum;
      more |= s[i / parts].part[i % parts].used != 0;
    }
    return more;
  }
  template <int SLOTS>
  static __device__ __forceinline__ bool merge(typename F::State *s, int x, int y, int width,
                                               int height, Slots<F, SLOTS> &slots) {
    Sum sum[pairs], (*slot)[AXES_THREADS / 2] = (Sum(*)[AXES_THREADS / 2]) & slots;
    static_assert(sizeof slots >= pairs * sizeof *slot, "");
    bool lost = take(s, sum);
    merge_halves(sum, x, y, width, height, slot,
                 [&](Sum &mine, const Sum &theirs) { mine = merged(mine, theirs, lost); });
    if (__syncthreads_or(lost)) return false;
#pragma unroll
    for (int i = 0; i < pairs; i++) s[i / parts].part[i % parts].sum = sum[i];
    return true;
  }
};

/* The N states of each of the threads (x, 0 … height) come to (x, 0). Called by all threads of the
 * block; those outside have y >= height. */
template <class F, int N, int SLOTS>
__device__ __forceinline__ void merge_down(typename F::State *s, int x, int y, int width,
                                           int height, Slots<F, SLOTS> &slots) {
  constexpr int count = Slots<F, SLOTS>::count;
#pragma unroll 1
  while (height > 1) {
    const int half = (height + 1) / 2, sent = (height - half) * width;
    const int give = y >= half && y < height ? (y - half) * width + x : -1;
    const int get = y + half < height ? y * width + x : -1;
#pragma unroll 1
    for (int first = 0; first < sent * N; first += count) {
      __syncthreads();
#pragma unroll 1
      for (int e = 0, at = give - first; give >= 0 && e < N; e++, at += sent)
        if (at >= 0 && at < count) Move<F>::assign(slots.slot[at], s[e]);
      __syncthreads();
#pragma unroll 1
      for (int e = 0, at = get - first; get >= 0 && e < N; e++, at += sent)
        if (at >= 0 && at < count) F::merge(s[e], slots.slot[at]);
    }
    height = half;
  }
  __syncthreads();
}

/* The same of a block of all threads, neighbours of which lie across: as far as lanes of a warp
 * have the same x, by them. */
template <class F, int N, int SLOTS>
__device__ __forceinline__ void merge_across(typename F::State *s, int x, int y, int width,
                                             int height, Slots<F, SLOTS> &slots) {
  if (Quick<F, N>::merge(s, x, y, width, height, slots)) return;
  if (by_lanes(width, height)) {
#pragma unroll 1
    for (int e = 0; e < N; e++) Move<F>::merge_lanes(s[e], GPR_WARP, width);
    height = AXES_THREADS / GPR_WARP;
    y = lane_of() < width ? warp_of() : height;
  }
  merge_down<F, N>(s, x, y, width, height, slots);
}

/* All threads' states come to thread 0: by lanes, and then by those of one warp. */
template <class F>
__device__ __forceinline__ void merge_block(typename F::State &s, Slots<F> &slots) {
  constexpr int warps = AXES_THREADS / GPR_WARP;
  static_assert(Slots<F>::count >= warps, "");
#pragma unroll 1
  for (bool all = false;; all = true) {
    Move<F>::merge_lanes(s, GPR_WARP);
    if (all) return;
    __syncthreads();
    if (lane_of() == 0) Move<F>::assign(slots.slot[warp_of()], s);
    __syncthreads();
    if (warp_of() > 0) return;
    if (lane_of() < warps)
      Move<F>::assign(s, slots.slot[lane_of()]);
    else
      F::open(s);
  }
}

/* --- blocks that share outputs -------------------------------------------------------------------
 */

/* The last block's work: outputs 0 … outputs, each of `entries` partial states, of which entry e of
 * output j lies at partial[e·step + j]. done(j, state) is called by one thread of each; s is where
 * it is worked out. */
template <class F, int SLOTS, class Done>
__device__ __forceinline__ void merge_partials(const typename F::State *partial, int outputs,
                                               int64_t entries, int64_t step,
                                               Slots<F, SLOTS> &slots, typename F::State &s,
                                               Done done) {
  int height = 1;
  while (height < entries && 2 * height * outputs <= AXES_THREADS) height *= 2;
  const int width = AXES_THREADS / height, x = threadIdx.x % width, y = threadIdx.x / width;
  for (int first = 0; first < outputs; first += width) {
    const int j = first + x;
    F::open(s);
    if (j < outputs && y < entries)
      Move<F>::merge_all(s, partial + y * step + j, (entries - y + height - 1) / height,
                         height * step * (int64_t)sizeof s);
    merge_across<F, 1>(&s, x, y, width, height, slots);
    if (y == 0 && j < outputs) done(j, s);
  }
}

/* The states of one output's threads come to thread 0 of the last of its blocks; returns whether
 * this block is it. The states of blocks go through the code that those of threads went through,
 * which the instruction cache has by then. */
template <class F>
__device__ __forceinline__ bool merge_parts(typename F::State &s, typename F::State *partial,
                                            int64_t part, int64_t parts, uint32_t *ticket,
                                            Slots<F> &slots) {
  for (bool all = parts == 1;; all = true) {
    merge_block<F>(s, slots);
    if (all) return true;
    if (threadIdx.x == 0) Move<F>::assign(partial[part], s);
    if (!is_last_of(ticket, (int)parts)) return false;
    F::open(s);
    const int64_t mine = parts - threadIdx.x + AXES_THREADS - 1;
    if (threadIdx.x < parts)
      Move<F>::merge_all(s, partial + threadIdx.x, quotient_of(mine, AXES_THREADS),
                         AXES_THREADS * (int64_t)sizeof s);
  }
}

GPR_CLOSE
#endif
