/* The one tree, once for each output, of leaves that somebody else knows how to load.
 *
 * Threads fold what neighbouring outputs have side by side, or what is very short (tree_units.cuh);
 * their nodes fold in the block, and blocks' in the last of each CLIMB_BLOCKS neighbours, level by
 * level. Warps fold the rest, each by itself (tree_warps.cuh). */
#pragma once

#include "tree_units.cuh"

GPR_OPEN

/* The roots of `high` nodes for each of `wide` outputs, by a thread for each node. */
template <class OP>
GPR_DEVICE void fold_block(Branch<typename OP::State> *node, int x, int y, int wide, int high,
                           bool is_mine) {
  GPR_ROLLED(int apart = 1; apart < high; apart *= 2) {
    __syncthreads();
    if (is_mine && y % (2 * apart) == 0 && y + apart < high)
      join<OP>(node[y * wide + x], node[(y + apart) * wide + x]);
  }
}

/* Of `many` neighbouring parts' nodes the roots for `wide` outputs: node[column] of the first row,
 * by a thread for an output and some of the parts. Blocks that share outputs have two rows or more,
 * and what has no node comes last. */
template <class OP>
__device__ __noinline__ void fold_parts(const Branch<typename OP::State> *from, int many, int wide,
                                        Branch<typename OP::State> *node) {
  typedef typename OP::State A;
  enum { MOST = CLIMB_BLOCKS / 2 };
  constexpr int together = sizeof(A) <= 8 ? 16 : sizeof(A) <= 32 ? 8 : 2; /* loads */
  A own[MOST];
  own[0] = OP::identity();
  const int column = threadIdx.x % wide, row = threadIdx.x / wide, rows = OP::THREADS / wide;
  int each = 1, there = 0;
  while (each * rows < many) each *= 2;
  const int first = row * each, stop = first + each < many ? first + each : many;
#pragma unroll together
  for (int j = 0; j < MOST; j++)
    if (first + j < stop) {
      const Branch<A> one = from[(first + j) * wide + column];
      own[j] = one.value, there += one.there != 0;
    }
  fold_apart<OP>(own, there);
  node[row * wide + column] = {own[0], there};
  fold_block<OP>(node, column, row, wide, rows, true);
}

/* Up from a part's nodes of `wide` outputs, which come first, for as long as this block is the last
 * of the neighbours. True in the one block that has the roots. */
template <class OP, class X, class ARGS>
GPR_DEVICE bool climb_with(const ARGS &a, int64_t part, int64_t tile, int wide,
                           Branch<typename OP::State> *node) {
  typedef Branch<typename OP::State> B;
  enum { FAN = CLIMB_BLOCKS };
  uint32_t *ticket = (uint32_t *)a.scratch + tile * climb_tickets(a.split, FAN);
  B *nodes = (B *)X::nodes(a) + tile * climb_nodes(a.split, FAN) * wide;
  GPR_ROLLED(int64_t count = a.split; count > 1;) {
    const int64_t parent = part / FAN, left = count - parent * FAN;
    const int children = left < FAN ? (int)left : (int)FAN;
    if (threadIdx.x < wide) nodes[part * wide + threadIdx.x] = node[threadIdx.x];
    if (!is_last_of(ticket + parent, children)) return false;
    fold_parts<OP>(nodes + parent * FAN * wide, children, wide, node);
    nodes += count * wide;
    count = (count + FAN - 1) / FAN;
    ticket += count;
    part = parent;
  }
  return true;
}

/* Threads of which a.team go across outputs, or below 0 those that are neighbours along the index,
 * and a.rows along it; blocks have a.tiles of that many outputs, and a.split of them share one. */
template <class OP, class X>
__global__ void __launch_bounds__(OP::THREADS, OP::BLOCKS)
    trees_by_threads(const __grid_constant__ typename X::Args a) {
  typedef typename OP::State A;
  typedef Branch<A> B;
  constexpr int of_warp = Ahead<OP, X>::BYTES;
  constexpr int ahead = OP::THREADS / GPR_WARP * of_warp, nodes = OP::THREADS * (int)sizeof(B);
  __shared__ uint4 shared[((ahead > nodes ? ahead : nodes) + 15) / 16];
  __shared__ uint4 room[OP::THREADS / GPR_WARP][(Nodes<OP>::ROOM * sizeof(A) + 15) / 16];
  B *const node = (B *)shared;
  A *const near = (A *)room[warp_of()] + lane_of();
  const int64_t split = a.split;
  const int t = threadIdx.x, high = (int)a.rows;
  const bool is_across = a.team > 0;
  const int wide = (int)(is_across ? a.team : -a.team), fast = is_across ? wide : high;
  const int slow = t / fast, x = is_across ? t % fast : slow, y = is_across ? slow : t % fast;
  const bool is_there = x < wide && y < high;
  for (int64_t b = blockIdx.x; b < a.tiles * split; b += gridDim.x) {
    const int64_t part = quotient_of(b, a.tiles), tile = b - part * a.tiles, o = tile * wide + x;
    B root = nothing<OP>();
    if (o < a.outputs && is_there) {
      const X operands(a, o);
      int64_t share = OP::LEAVES;
      while (share * high * split < operands.count) share *= 2;
      const int64_t first = (part * high + y) * share;
      const int64_t stop = first + share < operands.count ? first + share : operands.count;
      root = fold_by_thread<OP>(operands, first, stop, near, (char *)shared + of_warp * warp_of());
    }
    __syncthreads();
    if (is_there) node[y * wide + x] = root;
    fold_block<OP>(node, x, y, wide, high, is_there);
    __syncthreads();
    if (climb_with<OP, X>(a, part, tile, wide, node)) {
      const int64_t of = tile * wide + t;
      if (t < wide && of < a.outputs) X::finish(a, of, node[t].value);
    }
    __syncthreads();
  }
}

GPR_CLOSE
