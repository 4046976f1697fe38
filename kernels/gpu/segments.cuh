/* Segments of the fast axis, of any lengths.
 *
 * The long ones come in pieces, a block to each. A warp takes a few of the others: the short ones
 * by teams of 1, 4, 8, 16 or 32 lanes, all of a size at once, then the rest one after the other.
 * Who works next is up to the hardware, which starts a block wherever one ends. */
#pragma once

#include "few_sums.cuh"
#include "rows.cuh"

GPR_OPEN

/* Segments a warp; lanes of the smallest team of several; elements of a segment that one lane
 * takes, and a lane of a team, whose packets, of which two may lie partly outside, then hold
 * FEW_MOST at most. */
enum { SEGMENTS_MOST = 32, SEGMENTS_TEAM = 4, SEGMENTS_TINY = 24, SEGMENTS_SHORT = 48 };

/* --- places ----------------------------------------------------------------------------------- */

struct Segment {
  const char *data;
  int64_t n;
};
GPR_DEVICE Segment segment_of(const gpr_axes_args &a, int64_t start, int64_t n, int64_t kept,
                              int bytes) {
  const char *base = a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept, kept);
  return {base + start * bytes, n > 0 ? n : 0};
}
/* x / per and the rest, which cost nothing where an array has one axis. */
GPR_DEVICE int64_t share_out(int64_t x, int64_t per, int64_t &rest) {
  const int64_t quotient = per == 1 ? x : quotient_of(x, per);
  rest = x - quotient * per;
  return quotient;
}

/* --- long ones -------------------------------------------------------------------------------- */

/* Packets [first, stop) by one warp, or by all of a block. What is alive where this is called would
 * hold registers of its loads. */
template <class F>
__device__ __noinline__ void fold_part(const gpr_axes_args &a, const Segment segment, int64_t first,
                                       int64_t stop, bool alone, typename F::State *s) {
  constexpr int tile = GPR_WARP * RowsShape<F>::loads, warps = AXES_THREADS / GPR_WARP;
  static_assert(GPR_PIECE_BYTES % (warps * tile * 16) == 0, "");
  const Packets<typename F::Element> in(segment.data, segment.n);
  const bool whole = may_read_whole(a, in);
  Lane<F> lane;
  lane.keep(s);
  if (stop > in.packets()) stop = in.packets();
  for (int64_t p = first + (alone ? 0 : warp_of()) * tile; p < stop;
       p += (alone ? 1 : warps) * tile)
    fold_tile<F, false>(a, in, p, 0, whole, lane);
  lane.result(*s);
}

/* By a block, of which the last one of its segment finishes it. */
template <class F>
GPR_DEVICE void fold_piece(const gpr_axes_args &a, int64_t work, Slots<F> &slots) {
  typedef typename F::State State;
  int64_t kept;
  const int64_t i = share_out(work, a.per, kept);
  const gpr_axes_piece piece = a.pieces[i];
  const int64_t packets = a.piece_bytes / 16, first = piece.piece * packets;
  State s;
  fold_part<F>(a, segment_of(a, piece.start, piece.n, kept, sizeof(typename F::Element)), first,
               piece.piece == piece.pieces - 1 ? INT64_MAX : first + packets, false, &s);
  /* The segment's partials, and its ticket, which is the first one of as many. */
  const int64_t o = piece.segment * a.per + kept;
  const int64_t place = (i - piece.piece) * a.per + kept * piece.pieces;
  const int64_t tickets = (a.piece_count * a.per + 3) / 4 * 4;
  State *partial = (State *)((uint32_t *)a.scratch + tickets) + place;
  if (merge_parts<F>(s, partial, piece.piece, piece.pieces, (uint32_t *)a.scratch + place, slots) &&
      threadIdx.x == 0)
    finish_output<F>(&a, o, &s, piece.n);
}

/* --- short ones ------------------------------------------------------------------------------- */

/* A lane's packets id, id + team, …, whole ones: what lies around a segment may be read. */
template <class F>
GPR_DEVICE void fold_short(Few<F> &few, const char *data, unsigned n, int id, int team) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count, U = sizeof(T) < 4 ? sizeof(T) : 5;
  const unsigned before = (unsigned)((uintptr_t)data % 16 / sizeof(T));
  const unsigned packets = n ? (before + n + V - 1) / V : 0;
  const uint4 *packet = (const uint4 *)(data - before * sizeof(T));
  GPR_ROLLED(unsigned first = id; first < packets; first += U * team) {
    Packet<T> v[U];
    GPR_EACH(u, U)
      if (first + u * team < packets) v[u].words = __ldg(packet + (first + u * team));
    GPR_EACH(u, U) {
      if (first + u * team >= packets) break;
      const unsigned at = (first + u * team) * V - before; /* beyond any n where it lies before 0 */
      GPR_EACH(j, V)
        if (at + j < n) few.add(v[u].element[j], (int)(at + j));
    }
  }
}
template <class F>
__device__ __noinline__ void fold_short_slowly(typename F::State &s, const char *data, int n,
                                               int id, int team) {
  const Packets<typename F::Element> in(data, n);
  F::open(s);
  for (int p = id; p < in.packets(); p += team)
    in.each(p, [&](typename F::Element x, int64_t i, int) { F::add(s, x, i); });
}

/* The place of the one that `before` others precede. */
GPR_DEVICE int place_of_one(uint32_t mask, int before) {
  int place = 0;
  GPR_UNROLLED(int half = GPR_WARP / 2; half; half /= 2) {
    const int below = __popc(mask >> place & ((1u << half) - 1));
    if (before >= below) before -= below, place += half;
  }
  return place;
}

/* Lane l has the elements of output first + l and how many there are, or -1. Those of more than
 * `least` and at most `most` are folded, side by side. */
template <class F>
GPR_DEVICE void fold_teams(const gpr_axes_args &a, int64_t first, const char *data, int n, int team,
                           int least, int most) {
  const uint32_t members = __ballot_sync(GPR_ALL, n > least && n <= most);
  const int id = lane_of() & (team - 1), count = __popc(members);
  GPR_ROLLED(int done = 0; done < count; done += GPR_WARP / team) {
    const int k = done + lane_of() / team;
    const bool mine = k < count;
    const int j = place_of_one(members, mine ? k : 0);
    const int length = __shfl_sync(GPR_ALL, n, j), here = mine ? length : 0;
    const char *from = broadcast(data, j);
    Few<F> few;
    fold_short(few, from, here, id, team);
    if (few.finish_team(a, first + j, here, team, id == 0 && mine)) continue;
    typename F::State s;
    if (!few.done(s)) fold_short_slowly<F>(s, from, here, id, team);
    Move<F>::merge_lanes(s, team);
    if (id == 0 && mine) finish_output<F>(&a, first + j, &s, here);
  }
}

/* A warp's segments, of which the long ones are others' work. */
template <class F> GPR_DEVICE void fold_segments(const gpr_axes_args &a, int64_t first) {
  constexpr int bytes = sizeof(typename F::Element);
  static_assert(GPR_WARP * SEGMENTS_SHORT * bytes <= GPR_PIECE_BYTES / 4, "");
  const int64_t o = first + lane_of();
  Segment mine = {a.data, -1};
  if (lane_of() < a.rows && o < a.outputs) {
    int64_t kept;
    const int64_t segment = share_out(o, a.per, kept), start = a.starts[segment];
    mine = segment_of(a, start, a.stops[segment] - start, kept, bytes);
  }
  const Packets<typename F::Element> in(mine.data, mine.n);
  const bool few = mine.n <= GPR_WARP * SEGMENTS_SHORT && may_read_whole(a, in);
  int least = -1, most = SEGMENTS_TINY;
  GPR_ROLLED(int team = 1; team <= GPR_WARP; team = team == 1 ? (int)SEGMENTS_TEAM : 2 * team) {
    fold_teams<F>(a, first, mine.data, few ? (int)mine.n : -1, team, least, most);
    least = most;
    most = team == 1 ? SEGMENTS_TEAM * SEGMENTS_SHORT : 2 * most;
  }
  uint32_t left = __ballot_sync(GPR_ALL, !few && mine.n * bytes <= a.piece_bytes / 4);
  for (; left; left &= left - 1) {
    const int j = __ffs(left) - 1;
    const Segment segment = {broadcast(mine.data, j), broadcast(mine.n, j)};
    typename F::State s;
    fold_part<F>(a, segment, 0, INT64_MAX, true, &s);
    Move<F>::merge_lanes(s, GPR_WARP);
    if (lane_of() == 0) finish_output<F>(&a, first + j, &s, segment.n);
  }
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, RowsShape<F>::blocks)
    segments(const __grid_constant__ gpr_axes_args a) {
  __shared__ Slots<F> slots;
  const uint64_t b = blockIdx.x, pieces = b * a.mix >> 32;
  if ((b + 1) * a.mix >> 32 > pieces)
    fold_piece<F>(a, (int64_t)pieces, slots);
  else
    fold_segments<F>(a, ((int64_t)(b - pieces) * (AXES_THREADS / GPR_WARP) + warp_of()) * a.rows);
}

GPR_CLOSE
