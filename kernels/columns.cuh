/* A slow axis: each thread folds a packet's adjacent columns, down the rows.
 *
 * A block is `team` threads across and `rows` down. Rows of a few elements that lie close together
 * are taken as one longer row, whose columns of the same place fall together at the end. */
#ifndef GPR_COLUMNS_CUH
#define GPR_COLUMNS_CUH

#include "outputs.cuh"

GPR_OPEN

template <class F> struct ColumnsShape {
  static constexpr int blocks = 2, loads = sizeof(typename F::Element) >= 4 ? 8 : 4;
};
template <class T> struct ColumnsShape<Positions<T>> {
  static constexpr int blocks = 2, loads = sizeof(T) >= 4 ? 4 : 2;
};

/* The state of the rows' group number `place` of `groups` that were one row. */
template <class S> __device__ __forceinline__ void reindex(S &, int64_t, int64_t) {}
template <class T, bool G>
__device__ __forceinline__ void reindex_position(typename Position<T, G>::State &s, int64_t groups,
                                                 int64_t place) {
  if (s.index >= 0) s.index = s.index * groups + place;
}
template <class F> struct Reindex {
  static __device__ __forceinline__ void apply(typename F::State &, int64_t, int64_t) {}
};
template <class T, bool G> struct Reindex<Position<T, G>> {
  static __device__ __forceinline__ void apply(typename Position<T, G>::State &s, int64_t groups,
                                               int64_t place) {
    reindex_position<T, G>(s, groups, place);
  }
};
template <class T> struct Reindex<Positions<T>> {
  static __device__ __forceinline__ void apply(typename Positions<T>::State &s, int64_t groups,
                                               int64_t place) {
    reindex_position<T, false>(s.low, groups, place);
    reindex_position<T, true>(s.high, groups, place);
  }
};

/* Some multiprocessors are nearer to the memory: of 256 MiB in equal parts blocks had read theirs
 * after 56 to 66 µs on an H200, after 62 to 63 where a sixth of the turns was drawn. Each warp of
 * the blocks that share columns draws for itself. */
enum { DRAWN_PART = 6 };
struct Turns {
  int64_t drawn;   /* from this row on */
  uint32_t *queue; /* a counter for each warp, `apart` words from the next one's: draws of a sector
                      wait for each other */
  int apart;
};

/* What a thread sees of one run of rows: its packet of each. */
template <class F> struct ColumnsOf {
  typedef typename F::Element T;
  static constexpr int V = Packet<T>::count, U = ColumnsShape<F>::loads;
  const char *base;
  int64_t bytes, index; /* from one row to the next; of the run's first row */
  int left;             /* elements of this thread's packet that exist */

  __device__ __forceinline__ const T *row(int64_t r) const { return (const T *)(base + r * bytes); }
  __device__ __forceinline__ void load(int64_t r, T *x) const {
    if (left == V) {
      Packet<T> v;
      v.words = load_once(row(r));
#pragma unroll
      for (int e = 0; e < V; e++) x[e] = v.element[e];
    } else {
#pragma unroll
      for (int e = 0; e < V; e++)
        if (e < left) x[e] = row(r)[e];
    }
  }
  __device__ __forceinline__ void miss(Cells<F, V> &cells, uint32_t missed, int64_t r, int64_t step,
                                       int rows) const {
    cells.template rest<1>(missed & ((1u << left) - 1), row(r), step * bytes, rows);
  }
  /* U rows from r on. */
  __device__ __forceinline__ void batch(Cells<F, V> &cells, int64_t r, int64_t step) const {
    Packet<T> v[U];
    T x[U * V];
#pragma unroll
    for (int u = 0; u < U; u++) v[u].words = load_once(row(r + u * step));
#pragma unroll
    for (int i = 0; i < U * V; i++) x[i] = v[i / V].element[i % V];
    const uint32_t missed = cells.template add<U>(x, index + r, step);
    if (!Cells<F, V>::certain && missed) miss(cells, missed, r, step, U);
  }
  /* Rows r, r + step, … below stop, in any case. */
  __device__ __forceinline__ void some(Cells<F, V> &cells, int64_t r, int64_t step,
                                       int64_t stop) const {
#pragma unroll 1
    for (; r < stop; r += FEW * step) {
      T x[FEW * V];
      uint64_t valid = 0;
      int here = 0;
#pragma unroll
      for (int u = 0; u < FEW; u++)
        if (r + u * step < stop) {
          load(r + u * step, x + u * V);
          valid |= ((1ull << V) - 1) << (u * V);
          here = u + 1;
        }
      const uint32_t missed = cells.template some<FEW>(x, valid, index + r, step);
      if (!Cells<F, V>::certain && missed) miss(cells, missed, r, step, here);
    }
  }
  static constexpr int FEW = 4;
  /* A range of a run: rows r, r + step, … below stop. */
  __device__ __forceinline__ void fold(Cells<F, V> &cells, int64_t r, int64_t step,
                                       int64_t stop) const {
    if (left == V)
#pragma unroll 1
      for (; r + (U - 1) * step < stop; r += U * step) batch(cells, r, step);
    some(cells, r, step, stop);
  }
  /* The only run, of `full` rows: parts take turns of U·step rows, so that all blocks read what
   * lies together, and at last draw them. */
  __device__ __forceinline__ void take_turns(Cells<F, V> &cells, int64_t part, int64_t parts,
                                             int64_t y, int64_t step, int64_t full,
                                             const Turns &turns) const {
    const int64_t turn = U * step, count = quotient_of(full, turn), stop = count * turn;
    int64_t r = part * turn + y;
    if (left == V)
#pragma unroll 1
      for (int64_t next; r < stop; r = next) {
        uint32_t drawn = 0;
        next = r + parts * turn;
        if (next >= turns.drawn && lane_of() == 0)
          drawn = atomicAdd(turns.queue + warp_of() * turns.apart, 1);
        batch(cells, r, step);
        if (next >= turns.drawn) next = turns.drawn + __shfl_sync(GPR_ALL, drawn, 0) * turn + y;
      }
#pragma unroll 1
    for (; r < stop; r += parts * turn) some(cells, r, step, r - y + turn);
    if (count - quotient_of(count, parts) * parts == part) some(cells, stop + y, step, full);
  }
};

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, ColumnsShape<F>::blocks)
    columns(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  typedef typename F::State State;
  constexpr int V = Packet<T>::count, WARPS = AXES_THREADS / GPR_WARP;
  __shared__ Slots<F, V> slots;
  const int wide = a.team, high = a.rows, x = threadIdx.x % wide, y = threadIdx.x / wide;
  /* length: elements of a row; groups rows of width elements are one. */
  const int64_t width = a.shape[a.kept - 1], groups = quotient_of(a.length, width);
  const int64_t above = quotient_of(blockIdx.x, a.tiles), tile = blockIdx.x - above * a.tiles;
  const int64_t batch = quotient_of(above, a.split), part = above - batch * a.split;
  const int64_t first = (tile * wide + x) * V; /* this thread's first column */
  const int64_t full = quotient_of(a.count, groups);
  __shared__ Turns turns;
  if (threadIdx.x == 0) {
    const int64_t most = quotient_of(full, (int64_t)ColumnsOf<F>::U * high * a.split);
    const bool draws = a.queue && (tile + 1) * wide * V <= a.length && wide * high == AXES_THREADS;
    turns.drawn = draws && most >= DRAWN_PART
                      ? (most - most / DRAWN_PART) * a.split * ColumnsOf<F>::U * high
                      : INT64_MAX;
    turns.apart = a.queue_apart;
    turns.queue = (uint32_t *)a.scratch + a.queue + (batch * a.tiles + tile) * WARPS * turns.apart;
  }
  __syncthreads();
  const int64_t share = quotient_of(full + a.split - 1, a.split);
  const int64_t start = part * share, stop = start + share < full ? start + share : full;
  State buffer[V];
  Cells<F, V> cells;
  cells.keep(buffer);
  const char *base =
      a.data + offset_of(a.shape, a.strides, a.kept - 1, batch) + first * (int64_t)sizeof(T);
  const int64_t left = a.length - first;
  const int inner = a.kept + a.reduced - 1;
  ColumnsOf<F> in = {base, a.strides[inner] * groups, 0,
                     y >= high || left <= 0 ? 0
                     : left < V             ? (int)left
                                            : V};
  const int64_t run = a.shape[inner];
  if (in.left && a.reduced == 1) in.take_turns(cells, part, a.split, y, high, full, turns);
  if (in.left && a.reduced > 1)
#pragma unroll 1
    for (int64_t begin = quotient_of(start, run) * run; begin < stop; begin += run) {
      in.base = base + offset_of(a.shape + a.kept, a.strides + a.kept, a.reduced - 1,
                                 quotient_of(begin, run));
      in.index = begin;
      in.fold(cells, (start > begin ? start - begin : 0) + y, high,
              stop - begin < run ? stop - begin : run);
    }
  /* Rows beyond the last full group: of one group of them, some. */
  if (groups > 1 && part == a.split - 1 && y == 0 && in.left) {
    const int64_t extra = (a.count - full * groups) * width - first;
    T v[V];
    uint64_t valid = 0;
#pragma unroll
    for (int e = 0; e < V; e++)
      if (e < extra) {
        v[e] = in.row(full)[e];
        valid |= 1ull << e;
      }
    const uint32_t missed = valid ? cells.template some<1>(v, valid, full, 0) : 0;
    if (!Cells<F, V>::certain && missed) in.miss(cells, missed & (uint32_t)valid, full, 0, 1);
  }

  const bool shared = a.split > 1 || groups > 1;
  const int64_t group = batch * a.tiles + tile; /* the blocks that share outputs */
  State *partial = partials_of<F>(a) + group * a.split * wide * V;
  State *states = cells.done(buffer);
  if (groups > 1)
#pragma unroll 1
    for (int e = 0; e < V; e++) Reindex<F>::apply(states[e], groups, quotient_of(first + e, width));
  merge_across<F, V>(states, x, y, wide, high, slots);
#pragma unroll 1
  for (int e = 0; y == 0 && e < in.left; e++)
    if (shared)
      Move<F>::assign(partial[(part * wide + x) * V + e], states[e]);
    else
      finish_output<F>(&a, batch * width + first + e, states + e, a.count);
  if (!shared) return;
  uint32_t *ticket = (uint32_t *)a.scratch + group;
  int64_t entries = a.split, step = wide * V; /* of partial states, and from one to the next */
  if (a.crowd > 1) { /* neighbours first: few states are left to the last block */
    const int64_t crowd = quotient_of(part, a.crowd), begin = crowd * a.crowd;
    const int members = (int)(entries - begin < a.crowd ? entries - begin : a.crowd);
    entries = quotient_of(entries + a.crowd - 1, a.crowd);
    const int64_t tickets = quotient_of(gridDim.x, a.split);
    if (!is_last_of((uint32_t *)a.scratch + tickets + group * entries + crowd, members)) return;
    State *mine = partial + begin * step;
    merge_partials<F>(mine, wide * V, members, step, slots, *states,
                      [&](int j, State &s) { Move<F>::assign(mine[j], s); });
    step *= a.crowd;
  }
  if (!is_last_of(ticket, (int)entries)) return;
  if (a.queue && lane_of() == 0) turns.queue[warp_of() * turns.apart] = 0;
  const int64_t here = tile * wide * V; /* the tile's first column */
  const auto done = [&](int j, State &s) {
    finish_output<F>(&a, batch * width + here + j, &s, a.count);
  };
  /* One tile holds the whole of a row of groups. */
  if (groups > 1)
    merge_partials<F>(partial, (int)width, groups * a.split, width, slots, *states, done);
  else
    merge_partials<F>(partial, (int)(width - here < wide * V ? width - here : wide * V), entries,
                      step, slots, *states, done);
}

GPR_CLOSE
#endif
