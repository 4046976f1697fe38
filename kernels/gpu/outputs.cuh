/* Many outputs: how threads and blocks that share one come together. */
#pragma once

#include "last_block.cuh"
#include "moves.cuh"

GPR_OPEN

enum { AXES_THREADS = 256 };

/* The scratch: tickets and locks, which every launch leaves zero; what the locks are for, of folds
 * that have it; partial states. */
enum { AXES_TICKETS = 4096, AXES_LOCKS = 1024, AXES_POOL = 4 * (AXES_TICKETS + AXES_LOCKS) };
template <class F> struct PoolBytes { static constexpr size_t value = 0; };

template <class F> GPR_DEVICE typename F::State *partials_of(const gpr_axes_args &a) {
  return (typename F::State *)((char *)a.scratch + AXES_POOL + PoolBytes<F>::value);
}

/* --- threads of a block that share an output -------------------------------------------------- */

/* Whether lanes of a warp have the same x where `width` threads lie across and `height` down. */
GPR_DEVICE bool by_lanes(int width, int height) {
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
GPR_DEVICE void merge_lanes(X (&all)[N], int width, Merge merge) {
  GPR_ROLLED(int mask = GPR_WARP / 2; mask >= width; mask /= 2)
    GPR_EACH(i, N) merge(all[i], shuffle_xor(all[i], mask));
}
/* And of all threads, by lanes and then by halves of the block. */
template <int N, class X, class Merge>
GPR_DEVICE void merge_halves(X (&all)[N], int x, int y, int width, int height,
                             X (*slot)[AXES_THREADS / 2], Merge merge) {
  if (by_lanes(width, height)) {
    merge_lanes(all, width, merge);
    height = AXES_THREADS / GPR_WARP;
    y = lane_of() < width ? warp_of() : height;
  }
  GPR_ROLLED(int half; height > 1; height = half) {
    half = (height + 1) / 2;
    __syncthreads();
    if (y >= half && y < height)
      GPR_EACH(i, N) slot[i][(y - half) * width + x] = all[i];
    __syncthreads();
    if (y + half < height)
      GPR_EACH(i, N) merge(all[i], slot[i][y * width + x]);
  }
}

/* True where a block's states came together without merge_across(), which is then not needed. */
template <class F, int N> struct Quick {
  typedef typename F::State State;
  static constexpr bool small = N * sizeof(State) <= 64 + 8; /* and a number beside */
  template <int SLOTS>
  static GPR_DEVICE bool merge(State *s, int x, int y, int width, int height,
                               Slots<F, SLOTS> &slots) {
    if constexpr (small) { /* all of them at a time */
      State all[N], (*slot)[AXES_THREADS / 2] = (State(*)[AXES_THREADS / 2]) & slots;
      static_assert(sizeof slots >= N * sizeof *slot, "");
      GPR_EACH(i, N) all[i] = s[i];
      merge_halves(all, x, y, width, height, slot,
                   [](State &mine, const State &theirs) { F::merge(mine, theirs); });
      __syncthreads();
      GPR_EACH(i, N) s[i] = all[i];
    }
    return small;
  }
};
/* Sums as long as nothing is lost: pairs alone, all of them at a time. */
template <class T, int N> struct Quick<PairSum<T>, N> {
  typedef PairSum<T> F;
  static constexpr int parts = F::parts, pairs = N * parts;
  /* Whether the states have more than pairs. */
  typedef typename RealSum<typename F::Real>::Sum Sum;
  static GPR_DEVICE bool take(const typename F::State *s, Sum (&sum)[pairs]) {
    bool more = false;
    GPR_EACH(i, pairs) {
      sum[i] = s[i / parts].part[i % parts].sum;
      more |= s[i / parts].part[i % parts].used != 0;
    }
    return more;
  }
  template <int SLOTS>
  static GPR_DEVICE bool merge(typename F::State *s, int x, int y, int width, int height,
                               Slots<F, SLOTS> &slots) {
    Sum sum[pairs], (*slot)[AXES_THREADS / 2] = (Sum(*)[AXES_THREADS / 2]) & slots;
    static_assert(sizeof slots >= pairs * sizeof *slot, "");
    bool lost = take(s, sum);
    merge_halves(sum, x, y, width, height, slot,
                 [&](Sum &mine, const Sum &theirs) { mine = merged(mine, theirs, lost); });
    if (__syncthreads_or(lost)) return false;
    GPR_EACH(i, pairs) s[i / parts].part[i % parts].sum = sum[i];
    return true;
  }
};

/* The N states of each of the threads (x, 0 … height) come to (x, 0). Called by all threads of the
 * block; those outside have y >= height. */
template <class F, int N, int SLOTS>
GPR_DEVICE void merge_down(typename F::State *s, int x, int y, int width, int height,
                           Slots<F, SLOTS> &slots) {
  constexpr int count = Slots<F, SLOTS>::count;
#pragma unroll 1
  while (height > 1) {
    const int half = (height + 1) / 2, sent = (height - half) * width;
    const int give = y >= half && y < height ? (y - half) * width + x : -1;
    const int get = y + half < height ? y * width + x : -1;
    GPR_ROLLED(int first = 0; first < sent * N; first += count) {
      __syncthreads();
      GPR_ROLLED(int e = 0, at = give - first; give >= 0 && e < N; e++, at += sent)
        if (at >= 0 && at < count) Move<F>::assign(slots.slot[at], s[e]);
      __syncthreads();
      GPR_ROLLED(int e = 0, at = get - first; get >= 0 && e < N; e++, at += sent)
        if (at >= 0 && at < count) F::merge(s[e], slots.slot[at]);
    }
    height = half;
  }
  __syncthreads();
}

/* The same of a block of all threads, neighbours of which lie across: as far as lanes of a warp
 * have the same x, by them. */
template <class F, int N, int SLOTS>
GPR_DEVICE void merge_across(typename F::State *s, int x, int y, int width, int height,
                             Slots<F, SLOTS> &slots) {
  if (Quick<F, N>::merge(s, x, y, width, height, slots)) return;
  if (by_lanes(width, height)) {
    GPR_ROLLED(int e = 0; e < N; e++) Move<F>::merge_lanes(s[e], GPR_WARP, width);
    height = AXES_THREADS / GPR_WARP;
    y = lane_of() < width ? warp_of() : height;
  }
  merge_down<F, N>(s, x, y, width, height, slots);
}

/* All threads' states, or `count` partial ones, come to thread 0: by lanes, and then by those of
 * one warp. */
template <class F>
GPR_DEVICE void merge_block(typename F::State &s, Slots<F> &slots,
                            const typename F::State *partial = nullptr,
                            int64_t count = AXES_THREADS) {
  constexpr int warps = AXES_THREADS / GPR_WARP;
  static_assert(Slots<F>::count >= warps, "");
  if constexpr (StateTerms<F>::sums > 0) {
    typedef BlockOfSums<F, warps> Block;
    static_assert(sizeof slots >= sizeof(Block), "");
    if (((Block *)&slots)->merge(s, partial, count)) return;
  }
  if (partial) F::open(s);
  if (partial && threadIdx.x < count)
    Move<F>::merge_all(s, partial + threadIdx.x,
                       quotient_of(count - threadIdx.x + AXES_THREADS - 1, AXES_THREADS),
                       AXES_THREADS * (int64_t)sizeof s);
  GPR_ROLLED(bool all = false;; all = true) {
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

/* --- blocks that share outputs ---------------------------------------------------------------- */

/* The last block's work: outputs 0 … outputs, each of `entries` partial states, of which entry e of
 * output j lies at partial[e·step + j]. done(j, state) is called by one thread of each; s is where
 * it is worked out. */
template <class F, int SLOTS, class Done>
GPR_DEVICE void merge_partials(const typename F::State *partial, int outputs, int64_t entries,
                               int64_t step, Slots<F, SLOTS> &slots, typename F::State &s,
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
GPR_DEVICE bool merge_parts(typename F::State &s, typename F::State *partial, int64_t part,
                            int64_t parts, uint32_t *ticket, Slots<F> &slots) {
  for (bool last = false;; last = true) {
    merge_block<F>(s, slots, last ? partial : nullptr, last ? parts : (int64_t)AXES_THREADS);
    if (last || parts == 1) return true;
    if (threadIdx.x == 0) Move<F>::assign(partial[part], s);
    if (!is_last_of(ticket, (int)parts)) return false;
  }
}

GPR_CLOSE
