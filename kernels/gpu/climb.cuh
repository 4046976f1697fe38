/* From the nodes of neighbouring parts up to the root of one tree: the warp that writes the last of
 * some neighbours folds them, and so on, and no warp waits for another one. Blocks climb so, too
 * (tree_blocks.cuh). */
#pragma once

#include "last_block.cuh"
#include "warp.cuh"

GPR_OPEN

/* Neighbours whose nodes a warp folds, and a block: of 764047 rows of 31 floats products took 84 µs
 * on an H200 where a thread of the last block had 373 nodes to fold, and take 45. Users' operators
 * are cut by the same (gpureduce/custom/cut.py). */
enum { CLIMB_FAN = 64, CLIMB_BLOCKS = 32 };

/* The nodes of all levels lie behind each other, and so do their tickets: how many there are of
 * either for so many parts. */
GPR_CONSTEXPR int64_t climb_tickets(int64_t parts, int fan = CLIMB_FAN) {
  int64_t all = 0;
  while (parts > 1) all += parts = (parts + fan - 1) / fan;
  return all;
}
GPR_CONSTEXPR int64_t climb_nodes(int64_t parts, int fan = CLIMB_FAN) {
  return parts + climb_tickets(parts, fan);
}

/* The fold of what the first `there` lanes have, in order; every lane has it. */
template <class C, class A> GPR_DEVICE A fold_first(A v, int there) {
  GPR_ROLLED(int d = 1; d < GPR_WARP; d *= 2) {
    const A right = shuffle_down(v, d);
    if (!(lane_of() & (2 * d - 1)) && lane_of() + d < there) v = C::combine(v, right);
  }
  return broadcast(v, 0);
}
/* The same of some neighbours, two of each lane. */
template <class C, class A> GPR_DEVICE A fold_neighbours(const A *node, int count) {
  const int at = 2 * lane_of();
  A v = C::identity();
  if (at < count) v = node[at];
  if (at + 1 < count) v = C::combine(v, node[at + 1]);
  return fold_first<C>(v, (count + 1) / 2);
}

/* Up from a part's node for as long as this warp is the last of the neighbours. True in the one
 * warp that comes to the root. */
template <class C, class A>
GPR_DEVICE bool climb(A &value, int64_t index, int64_t count, A *node, uint32_t *ticket) {
#pragma unroll 1
  while (count > 1) {
    const int64_t parent = index / CLIMB_FAN, left = count - parent * CLIMB_FAN;
    const int children = left < CLIMB_FAN ? (int)left : (int)CLIMB_FAN;
    uint32_t drawn = 0;
    if (lane_of() == 0) {
      node[index] = value;
      drawn = draw(ticket + parent, (uint32_t)children - 1);
    }
    __syncwarp(GPR_ALL); /* what the first lane has acquired, all have */
    if (__shfl_sync(GPR_ALL, drawn, 0) != (uint32_t)children - 1) return false;
    value = fold_neighbours<C>(node + parent * CLIMB_FAN, children);
    node += count;
    count = (count + CLIMB_FAN - 1) / CLIMB_FAN;
    ticket += count;
    index = parent;
  }
  return true;
}

GPR_CLOSE
