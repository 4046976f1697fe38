/* The fast axis: a warp or a block to each output, or several blocks. */
#ifndef GPR_ROWS_CUH
#define GPR_ROWS_CUH

#include "outputs.cuh"

GPR_OPEN

enum { ROWS_FEW = 2 };

/* Blocks a multiprocessor, and packets a thread has under way. With four blocks an exact sum's
 * loads wait for registers (71 % of the read limit for 79); two positions of small elements would
 * be thousands of instructions. */
template <class F> struct RowsShape { static constexpr int blocks = 4, loads = 8; };
template <class T> struct RowsShape<PairSum<T>> { static constexpr int blocks = 3, loads = 8; };
template <class T> struct RowsShape<Positions<T>> {
  static constexpr int blocks = 4, loads = sizeof(T) < 4 ? 2 : 4;
};

/* U packets a thread from p on, a team's width apart, all inside. */
template <int U, class F>
__device__ __forceinline__ void fold_packets(RowLane<F> &lane,
                                             const Packets<typename F::Element> &in, int64_t p,
                                             int team, int64_t index) {
  typedef typename F::Element T;
  Packet<T> v[U];
#pragma unroll
  for (int u = 0; u < U; u++) v[u].words = in.load(p + u * team);
  const int64_t at = index - in.first + p * Packet<T>::count;
  if (!lane.take(v, at, team * Packet<T>::count) && !RowLane<F>::certain)
    lane.template rest<U>(in.data + p * Packet<T>::count, team * (int64_t)sizeof(Packet<T>));
}

/* Each thread's share of a tile of a team's packets, RowsShape<F>::loads a thread, of which the
 * last may lie outside. Called by whole warps. */
template <class F>
__device__ __forceinline__ void fold_tile(const Packets<typename F::Element> &in, int64_t first,
                                          int64_t index, int team, RowLane<F> &lane) {
  typedef typename F::Element T;
  const int id = threadIdx.x & (team - 1), warp = id & ~(GPR_WARP - 1);
  constexpr int loads = RowsShape<F>::loads;
  if (in.inside(first, (int64_t)team * loads)) {
    fold_packets<loads>(lane, in, first + id, team, index);
    return;
  }
#pragma unroll 1
  for (int u = 0; u < loads; u += ROWS_FEW) {
    const int64_t p = first + u * team;
    if (p >= in.packets()) break;
    if (in.inside(p + warp, GPR_WARP) && in.inside(p + warp + (ROWS_FEW - 1) * team, GPR_WARP)) {
      fold_packets<ROWS_FEW>(lane, in, p + id, team, index);
    } else {
#pragma unroll 1
      for (int k = 0; k < ROWS_FEW; k++)
        in.each(p + id + k * team, [&](T x, int64_t i, int) { lane.one(x, index + i); });
    }
  }
}

/* The part-th of `parts` shares of an output's elements. */
template <class F>
__device__ __forceinline__ void fold_row(const gpr_axes_args &a, const char *base, int64_t part,
                                         int64_t parts, int team, RowLane<F> &lane) {
  typedef typename F::Element T;
  const int64_t tile = (int64_t)team * RowsShape<F>::loads;
  /* One tile more than needed where a run starts in the middle of a packet. */
  const int64_t tiles = a.length / Packet<T>::count / tile + 1 + 1;
  /* Parts take turns: what is read at a time lies close together. */
  for (int64_t t = part; t < a.runs * tiles; t += parts) {
    const int64_t run = a.runs > 1 ? quotient_of(t, tiles) : 0, first = (t - run * tiles) * tile;
    const char *data = base + offset_of(a.shape + a.kept, a.strides + a.kept, a.reduced - 1, run);
    fold_tile<F>(Packets<T>(data, a.length), first, run * a.length, team, lane);
  }
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, RowsShape<F>::blocks)
    rows(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::State State;
  __shared__ Slots<F> slots;
  const int team = a.team, teams = AXES_THREADS / team;
  const int64_t outputs = a.outputs, split = a.split;
  State s; /* once: local memory is not shared by what is not alive together */
  if (team == GPR_WARP) {
    for (int64_t o = (int64_t)blockIdx.x * teams + warp_of(); o < outputs;
         o += (int64_t)gridDim.x * teams) {
      RowLane<F> lane;
      lane.keep(&s);
      fold_row<F>(a, a.data + offset_of(a.shape, a.strides, a.kept, o), 0, 1, GPR_WARP, lane);
      lane.result(s);
      Move<F>::merge_lanes(s, GPR_WARP);
      if (lane_of() == 0) finish_output<F>(&a, o, &s, a.count);
    }
    return;
  }
  for (int64_t b = blockIdx.x; b < outputs * split; b += gridDim.x) {
    const int64_t o = quotient_of(b, split), part = b - o * split;
    RowLane<F> lane;
    lane.keep(&s);
    fold_row<F>(a, a.data + offset_of(a.shape, a.strides, a.kept, o), part, split, AXES_THREADS,
                lane);
    lane.result(s);
    merge_block<F>(s, slots);
    if (split > 1) {
      State *partial = partials_of<F>(a) + o * split;
      if (threadIdx.x == 0) Move<F>::assign(partial[part], s);
      if (!is_last_of((uint32_t *)a.scratch + o, (int)split)) continue;
      merge_row<F>(s, partial, split, slots);
      if (threadIdx.x == 0) finish_output<F>(&a, o, &s, a.count);
    } else if (threadIdx.x == 0) {
      finish_output<F>(&a, o, &s, a.count);
    }
  }
}

GPR_CLOSE
#endif
