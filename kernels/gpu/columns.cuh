/* A slow axis: each thread folds a packet's adjacent columns, down the rows.
 *
 * A block is `team` threads across and `rows` down. Rows of a few elements that lie close together
 * are taken as one longer row, whose columns of the same place fall together at the end. Of rows
 * that begin at several places of a packet, a block takes those that begin at one of them, its
 * phase: a packet's columns are then `shift` less than those of a row that begins with it. Rows
 * that all begin with a packet and end within one have one phase. */
#ifndef GPR_COLUMNS_CUH
#define GPR_COLUMNS_CUH

#include "columns_run.cuh"

GPR_OPEN

/* The state of the rows' group number `place` of `groups` that were one row. */
template <class F> struct Reindex {
  static __device__ __forceinline__ void apply(typename F::State &, int64_t, int64_t) {}
};
template <class T, bool G> struct Reindex<Position<T, G>> {
  static __device__ __forceinline__ void apply(typename Position<T, G>::State &s, int64_t groups,
                                               int64_t place) {
    if (s.index >= 0) s.index = s.index * groups + place;
  }
};

/* Columns of one output come together, a row's width apart, in the first slots; false where there
 * are not slots for all of them. Threads (x, 0) have their states. */
template <class F, int V, int SLOTS>
__device__ __forceinline__ bool merge_groups(const typename F::State *states, int x, int y,
                                             int width, int columns, Slots<F, SLOTS> &slots) {
  if (columns > Slots<F, SLOTS>::count) return false;
  __syncthreads();
#pragma unroll 1
  for (int e = 0; y == 0 && e < V && x * V + e < columns; e++)
    Move<F>::assign(slots.slot[x * V + e], states[e]);
  __syncthreads();
#pragma unroll 1
  for (int j = threadIdx.x; j < width; j += AXES_THREADS)
    for (int c = j + width; c < columns; c += width) F::merge(slots.slot[j], slots.slot[c]);
  __syncthreads();
  return true;
}

/* put(to) leaves a block's `cells` states there. */
template <class F, int SLOTS, class Put>
__device__ __forceinline__ void share_states(const gpr_axes_args &a, const ColumnsPlace &at,
                                             int cells, int columns, Put put,
                                             typename F::State *states, Slots<F, SLOTS> &slots) {
  typedef typename F::State State;
  int64_t entries = a.split, step = cells; /* of partial states, and from one to the next */
  State *partial = partials_of<F>(a) + at.group * a.split * step;
  put(partial + at.part * step);
  if (a.crowd > 1) { /* neighbours first: few states are left to the last block */
    const int64_t crowd = quotient_of(at.part, a.crowd), begin = crowd * a.crowd;
    const int members = (int)(entries - begin < a.crowd ? entries - begin : a.crowd);
    entries = quotient_of(entries + a.crowd - 1, a.crowd);
    const int64_t tickets = quotient_of(gridDim.x, a.split);
    if (!is_last_of((uint32_t *)a.scratch + tickets + at.group * entries + crowd, members)) return;
    State *mine = partial + begin * step;
    merge_partials<F>(mine, cells, members, step, slots, *states,
                      [&](int j, State &s) { Move<F>::assign(mine[j], s); });
    step *= a.crowd;
  }
  if (!is_last_of((uint32_t *)a.scratch + at.group, (int)entries)) return;
  at.leave_queue(a);
  const auto done = [&](int j, State &s) {
    finish_output<F>(&a, at.batch * at.width + at.here + j, &s, a.count);
  };
  const bool together = columns > at.width; /* one tile holds the whole of a row of groups */
  merge_partials<F>(partial, together ? (int)at.width : columns,
                    together ? a.groups * a.split : entries, together ? at.width : step, slots,
                    *states, done);
}

/* The same of exact sums, by digits that all blocks add to. */
template <class F, int V>
__device__ __forceinline__ void share_sums(const gpr_axes_args &a, const ColumnsPlace &at, int x,
                                           int y, int columns, typename F::State *states,
                                           Slots<F, V> &slots) {
  const int cells = a.groups > 1 ? (int)at.width : a.team * V;
  const Joint<F> joint = {
      (unsigned long long *)((char *)a.scratch + AXES_POOL) + at.group * cells * Joint<F>::words,
      cells};
  joint.template add<V>(states, x, y, a.team, a.rows, columns, slots, at.shift);
  if (!is_last_of((uint32_t *)a.scratch + at.group, a.split)) return;
  at.leave_queue(a);
  joint.take(cells < columns ? cells : columns, *states, [&](int j, typename F::State &s) {
    finish_output<F>(&a, at.batch * at.width + at.here + j, &s, a.count);
  });
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, ColumnsShape<F>::blocks)
    columns(const __grid_constant__ gpr_axes_args a) {
  constexpr int V = ColumnsOf<F>::V;
  __shared__ Slots<F, Joint<F>::value ? V : 2 * V> slots;
  __shared__ ColumnsPlace at;
  typename F::State states[V];
  const int wide = a.team, high = a.rows, x = threadIdx.x % wide, y = threadIdx.x / wide;
  if (threadIdx.x == 0) at.set(a, V, sizeof(typename F::Element));
  __syncthreads();
  fold_columns<F>(a, at, x, y, states);

  const int first = x * V - at.shift, columns = at.columns; /* of the tile */
  const int begin = first < 0 ? -first : 0, end = columns - first < V ? columns - first : V;
  const bool groups = a.groups > 1;
#pragma unroll 1
  for (int e = 0; (groups || at.phases > 1) && e < V; e++)
    Reindex<F>::apply(states[e], groups ? a.groups : at.phases,
                      groups ? quotient_of(at.here + first + e, at.width) : at.phase);
  if constexpr (Joint<F>::value) {
    if (at.shared(a)) return share_sums(a, at, x, y, columns, states, slots);
    merge_across<F, V>(states, x, y, wide, high, slots);
  } else {
    merge_across<F, V>(states, x, y, wide, high, slots);
    const int width = (int)at.width;
    const bool together = a.groups > 1 && merge_groups<F, V>(states, x, y, width, columns, slots);
    const auto put = [&](typename F::State *to) {
#pragma unroll 1
      for (int j = threadIdx.x; together && j < width; j += AXES_THREADS)
        Move<F>::assign(to[j], slots.slot[j]);
#pragma unroll 1
      for (int e = begin; !together && y == 0 && e < end; e++)
        Move<F>::assign(to[first + e], states[e]);
    };
    if (at.shared(a))
      return share_states<F>(a, at, together ? width : wide * V, together ? width : columns, put,
                             states, slots);
  }
#pragma unroll 1
  for (int e = begin; y == 0 && e < end; e++)
    finish_output<F>(&a, at.batch * at.width + at.here + first + e, states + e, a.count);
}

GPR_CLOSE
#endif
