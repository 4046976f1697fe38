/* A slow axis: each thread folds a packet's adjacent columns, down the rows.
 *
 * A block is `team` threads across and `rows` down. Rows of a few elements that lie close together
 * are taken as one longer row, whose columns of the same place fall together at the end. Rows
 * that begin anywhere are read by words. */
#pragma once

#include "columns_run.cuh"

GPR_OPEN

/* G columns side by side as one. */
template <class F, int G> struct Neighbours {
  typedef typename F::State Each;
  struct alignas(G > 1 ? 16 : alignof(Each)) State {
    Each column[G];
  };
  static GPR_DEVICE void open(State &s) {
    GPR_EACH(e, G) F::open(s.column[e]);
  }
  static GPR_DEVICE void merge(State &s, const State &right) {
    GPR_EACH(e, G) F::merge(s.column[e], right.column[e]);
  }
};
template <class F, int G> struct MergedAtOnce<Neighbours<F, G>> {
  static_assert(sizeof(typename Neighbours<F, G>::State) == G * sizeof(typename F::State), "");
  static constexpr int value = G == 1 ? MergedAtOnce<F>::value : G < 16 ? 4 : 2;
  static constexpr bool fewer = G > 1;
};
/* How many of a packet's small states: V columns of bytes took the last block V rounds, of which
 * each waits for the memory. More states would not stay in registers. */
template <class F> GPR_FN GPR_CONSTEXPR int neighbours_of() {
  int all = WordLane<F>::is_there ? Packet<typename F::Element>::count : 1;
  while (all * (int)sizeof(typename F::State) > 64 && all > 1) all /= 2;
  return all;
}

/* Those of columns o, o + 1, … of which `left` exist become results in as few stores as can be. */
template <class F, int G>
__device__ __noinline__ void finish_neighbours(const gpr_axes_args *a, int64_t o,
                                               typename Neighbours<F, G>::State *s, int left) {
  if constexpr (G == 1) return finish_here<F>(*a, o, *s->column, CountOf<F>::of(*a, *s->column));
  int64_t n[G];
  GPR_EACH(e, G) n[e] = e < left ? CountOf<F>::of(*a, s->column[e]) : 0;
  finish_values<F>(*a, o, s->column, n, left);
}

/* Rows that were one: what the threads (x, 0) have of columns of the same place comes together, and
 * then done(column, state) by one thread for each of `width`. */
template <class F, int V, class N, int SLOTS, class Done>
GPR_DEVICE void join_groups(typename F::State *states, int x, int y, int width, int groups,
                            Slots<N, SLOTS> &slots, Done done) {
  typedef typename F::State State;
  const int first = x * V, room = (int)(sizeof slots / sizeof(State)) / groups; /* columns */
  State *const slot = (State *)&slots; /* by groups of those */
  GPR_ROLLED(int begin = 0; begin < width; begin += room) {
    const int here = least(width - begin, room);
    int group = first / width, column = first - group * width - begin;
    __syncthreads();
    GPR_ROLLED(int e = 0; y == 0 && e < V; e++) {
      if (column >= 0 && column < here) Move<F>::assign(slot[group * room + column], states[e]);
      if (++column == width - begin) column = -begin, group++;
    }
    __syncthreads();
    GPR_ROLLED(int j = threadIdx.x; j < here; j += AXES_THREADS) {
      GPR_ROLLED(int g = 1; g < groups; g++) F::merge(slot[j], slot[g * room + j]);
      done(begin + j, slot[j]);
    }
  }
}

/* What blocks that share columns leave for the last of them, which finishes these: states where
 * they stand in the row. */
template <class F, int V, int G, class N = Neighbours<F, G>, int SLOTS>
GPR_DEVICE void share_states(const gpr_axes_args &a, const ColumnsPlace &at, int x, int y,
                             typename N::State *s, Slots<N, SLOTS> &slots) {
  typedef typename N::State State;
  constexpr int M = V / G, at_once = G > 1 ? M : 1;
  const int groups = (int)a.groups, columns = groups > 1 ? (int)at.width : at.columns;
  const int across = (columns + G - 1) / G;
  /* Partial states, and from one to the next. */
  int64_t entries = a.split, step = groups > 1 ? across : a.team * M;
  State *partial = partials_of<N>(a) + at.group * a.split * step, *mine = partial + at.part * step;
  const int64_t o = at.batch * at.width + at.here;
  if (groups > 1) {
    join_groups<F, V>(s->column, x, y, columns, groups, slots, [&](int j, typename F::State &s) {
      if (a.split == 1) return finish_output<F>(&a, o + j, &s, CountOf<F>::of(a, s));
      Move<F>::assign(((typename F::State *)mine)[j], s);
    });
    if (a.split == 1) return;
  }
#pragma unroll at_once
  for (int m = 0; groups == 1 && y == 0 && m < M; m++) mine[x * M + m] = s[m];
  if (a.crowd > 1) { /* neighbours first: few states are left to the last block */
    const int64_t crowd = quotient_of(at.part, a.crowd), begin = crowd * a.crowd;
    const int members = (int)(entries - begin < a.crowd ? entries - begin : a.crowd);
    entries = quotient_of(entries + a.crowd - 1, a.crowd);
    const int64_t tickets = quotient_of(gridDim.x, a.split);
    if (!is_last_of((uint32_t *)a.scratch + tickets + at.group * entries + crowd, members)) return;
    mine = partial + begin * step;
    merge_partials<N>(mine, across, members, step, slots, *s,
                      [&](int j, State &s) { Move<N>::assign(mine[j], s); });
    step *= a.crowd;
  }
  if (!is_last_of((uint32_t *)a.scratch + at.group, (int)entries)) return;
  at.leave_queue(a);
  merge_partials<N>(partial, across, entries, step, slots, *s, [&](int j, State &s) {
    finish_neighbours<F, G>(&a, o + j * G, &s, least(columns - j * G, G));
  });
}

/* How much of each of a thread's columns was gone comes to the threads (x, 0). */
template <class F, int V>
GPR_DEVICE void merge_gone(int (&gone)[V], int x, int y, int wide, int high, Slots<F, V> &slots) {
  merge_halves(gone, x, y, wide, high, (int(*)[AXES_THREADS / 2]) & slots,
               [](int &mine, int theirs) { mine += theirs; });
}
/* The same of exact sums, by digits that all blocks add to, and a word for how many were gone. */
template <bool SKIPS, class F, int V>
GPR_DEVICE void share_sums(const gpr_axes_args &a, const ColumnsPlace &at, int x, int y,
                           int columns, typename F::State *states, int (&gone)[V],
                           Slots<F, V> &slots) {
  const int cells = a.groups > 1 ? (int)at.width : a.team * V;
  const int64_t words = Joint<F>::words + SKIPS;
  const Joint<F> joint = {
      (unsigned long long *)((char *)a.scratch + AXES_POOL) + at.group * cells * words, cells};
  unsigned long long *const missing = joint.word + Joint<F>::words * cells;
  joint.template add<V>(states, x, y, a.team, a.rows, columns, slots);
  if constexpr (SKIPS) {
    merge_gone<F>(gone, x, y, a.team, a.rows, slots);
    GPR_EACH(e, V) {
      const int c = x * V + e;
      if (y == 0 && c < columns && gone[e]) atomicAdd(missing + c % cells, gone[e]);
    }
  }
  if (!is_last_of((uint32_t *)a.scratch + at.group, a.split)) return;
  at.leave_queue(a);
  joint.take(cells < columns ? cells : columns, *states, [&](int j, typename F::State &s) {
    const int64_t n = a.count - (SKIPS ? (int64_t)__ldcg(missing + j) : 0);
    if (SKIPS) missing[j] = 0, tell_least(a, n);
    finish_output<F>(&a, at.batch * at.width + at.here + j, &s, n);
  });
}

/* Where NaN is skipped: what columns fold then, and whether they count it. */
template <class F> struct ColumnsSkip {
  static constexpr bool counts = Joint<F>::value, value = counts || HasNumbers<F>::value;
  typedef typename Either<counts, F, WithoutNaN<F>>::type Fold;
};
template <class F, bool SKIPS = false>
__global__ void __launch_bounds__(AXES_THREADS, ColumnsShape<F>::blocks)
    columns(const __grid_constant__ gpr_axes_args a) {
  typedef ColumnCells<F, SKIPS> Columns;
  constexpr int V = ColumnsOf<Columns>::V;
  __shared__ ColumnsPlace at;
  int gone[V];
  const int wide = a.team, high = a.rows, x = threadIdx.x % wide, y = threadIdx.x / wide;
  if (threadIdx.x == 0) at.set(a, V);
  __syncthreads();
  if constexpr (Joint<F>::value) {
    __shared__ Slots<F, V> slots;
    typename F::State states[V];
    fold_columns<Columns>(a, at, x, y, states, gone);
    if (a.split > 1 || a.groups > 1)
      return share_sums<SKIPS>(a, at, x, y, at.columns, states, gone, slots);
    merge_across<F, V>(states, x, y, wide, high, slots);
    if (SKIPS) merge_gone<F>(gone, x, y, wide, high, slots);
    const int first = x * V;
    GPR_ROLLED(int e = 0; y == 0 && e < V && first + e < at.columns; e++) {
      const int64_t n = SKIPS ? a.count - gone[e] : a.count;
      if (SKIPS) tell_least(a, n);
      finish_output<F>(&a, at.batch * at.width + at.here + first + e, states + e, n);
    }
  } else {
    constexpr int G = neighbours_of<F>(), M = V / G;
    typedef Neighbours<F, G> N;
    __shared__ Slots<N, 2 * M> slots;
    typename N::State s[M];
    typename F::State *const states = s->column;
    fold_columns<Columns>(a, at, x, y, states, gone);
    const int64_t first = at.here + x * V, groups = a.groups;
    constexpr int at_once = G > 1 ? V : 1;
    if constexpr (F::ordered)
#pragma unroll at_once
      for (int e = 0; groups > 1 && e < V; e++) { /* their rows were one */
        int64_t &index = s[e / G].column[e % G].index;
        if (index >= 0) index = index * groups + quotient_of(first + e, at.width);
      }
    merge_across<N, M>(s, x, y, wide, high, slots);
    if (a.split > 1 || groups > 1) return share_states<F, V, G>(a, at, x, y, s, slots);
    const int64_t o = at.batch * at.width + first;
    const int64_t left = at.here + at.columns - first;
    GPR_ROLLED(int e = 0; y == 0 && e < V && e < left; e += G)
      finish_neighbours<F, G>(&a, o + e, s + e / G, (int)least(left - e, (int64_t)G));
  }
}

GPR_CLOSE
