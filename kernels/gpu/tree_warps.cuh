/* Units of the one tree that a warp folds.
 *
 * A row is a packet of leaves for each lane, side by side, and a group is ROWS of them, on their
 * way at once. Every lane folds its packets; then rows change places with lanes, each lane giving
 * away half of what it has. What is no whole group goes the same way, as far as it is there. */
#pragma once

#include "tree_units.cuh"

GPR_OPEN

/* The node of both lanes whose numbers differ in that bit, or the left one if the right one is not
 * there; `other` is the other one's. */
template <class A, class How>
GPR_DEVICE A joined(int mask, const A &own, const A &other, How &how, bool is_right_there = true) {
  const bool right = lane_of() & mask;
  return how.with(either(right, other, own), is_right_there,
                  [&] { return either(right, own, other); });
}

/* --- groups --------------------------------------------------------------------------------- */

template <class OP> struct RowsOf {
  enum { PACKET = OP::PACKET, ROWS = OP::ROWS, ROW = GPR_WARP * PACKET, GROUP = ROWS * ROW };
  typedef typename OP::template Leaves<OP::PACKET> Leaves;
  /* The leaves of a group before a packet. */
  static GPR_DEVICE int before(int row, int lane) { return row * (int)ROW + lane * (int)PACKET; }
};

/* Of which all is there. */
template <class OP> struct WholeGroup {
  enum { leaves = RowsOf<OP>::GROUP };
  static GPR_DEVICE int of_packet(int) { return OP::PACKET; }
  static GPR_DEVICE bool is_there(int, int) { return true; }
};
/* Of which only the first `leaves` are. */
template <class OP> struct CutGroup {
  int leaves;
  GPR_DEVICE int of_packet(int row) const {
    const int left = leaves - RowsOf<OP>::before(row, lane_of());
    return left < 0 ? 0 : left < (int)OP::PACKET ? left : (int)OP::PACKET;
  }
  GPR_DEVICE bool is_there(int row, int lane) const {
    return RowsOf<OP>::before(row, lane) < leaves;
  }
};

/* Every lane sends away half of what it has of COUNT rows or groups of rows, until it has one: its
 * lowest bits say then which row, and the others which neighbouring lanes' packets. */
template <int COUNT, int MASK, class A, class Group, class How>
GPR_DEVICE void exchange(A *node, const Group &group, How &how) {
  if constexpr (COUNT > 1) {
    const bool right = lane_of() & MASK;
    GPR_EACH(i, COUNT / 2) {
      const A keep = either(right, node[2 * i + 1], node[2 * i]),
              other = shuffle_xor(either(right, node[2 * i], node[2 * i + 1]), MASK);
      const int row = 2 * MASK * i + (lane_of() & (2 * MASK - 1)),
                beside = (lane_of() & -(2 * MASK)) | MASK;
      node[i] = joined(MASK, keep, other, how, group.is_there(row, beside));
    }
    exchange<COUNT / 2, 2 * MASK>(node, group, how);
  }
}

/* The same of nodes in memory, of each row the first of so many. */
template <class OP>
__device__ __noinline__ void exchange_apart(typename OP::State *node, const CutGroup<OP> group) {
  typedef typename OP::State A;
  Inline<Apart<OP>> how;
  GPR_ROLLED(int mask = 1; mask < OP::ROWS; mask *= 2)
    GPR_ROLLED(int i = 0; i < OP::ROWS / 2 / mask; i++) {
      const int right = (lane_of() & mask) != 0, row = 2 * mask * i + (lane_of() & (2 * mask - 1)),
                beside = (lane_of() & -(2 * mask)) | mask;
      const A *const pair = node + 2 * i * OP::PACKET;
      const A other = shuffle_xor(pair[(1 - right) * OP::PACKET], mask);
      node[i * OP::PACKET] =
          joined(mask, pair[right * OP::PACKET], other, how, group.is_there(row, beside));
    }
}
/* A group's node of its leaves', which are in memory. */
template <class OP>
__device__ __noinline__ void fold_group_apart(typename OP::State *node, const CutGroup<OP> group) {
  GPR_ROLLED(int r = 0; r < OP::ROWS; r++)
    fold_apart<OP>(node + r * OP::PACKET, group.of_packet(r));
  exchange_apart<OP>(node, group);
}

/* --- packets -------------------------------------------------------------------------------- */

/* A group whose rows lie in one line or two; whether they do. All lanes follow the lines. */
template <class OP, class X, class Leaves>
GPR_DEVICE bool load_lines(Leaves (&leaves)[OP::ROWS], const X &x, int64_t first,
                           const CutGroup<OP> &group) {
  enum { ROW = RowsOf<OP>::ROW };
  int64_t at[OP::ARRAYS], left = x.begin(at, first);
  if (!x.is_direct() || (left < group.leaves && x.line() < ROW)) return false;
  const int from = lane_of() * (int)OP::PACKET;
  const X apart = x; /* or all of x would be in memory */
  GPR_EACH(r, OP::ROWS) {
    int64_t next[OP::ARRAYS], further = 0;
    const bool ends = left < ROW && left < group.leaves - r * (int)ROW;
    if (ends) further = apart.find(next, first + r * (int)ROW + left);
    GPR_EACH(k, OP::ARRAYS) next[k] = ends ? next[k] - left * x.step[k] : at[k];
    leaves[r].load_lines(x, at, next, from, ends ? (int)left - from : (int)ROW, group.of_packet(r));
    GPR_EACH(k, OP::ARRAYS) at[k] = next[k] + (int)ROW * x.step[k];
    left += further - (int)ROW;
  }
  GPR_EACH(r, OP::ROWS) leaves[r].settle();
  return true;
}
/* The node of a loaded group, for each lane that of some neighbouring packets of one row. */
template <class OP, class X, class Group> struct GroupRun {
  const X &x;
  typename RowsOf<OP>::Leaves (&leaves)[OP::ROWS];
  int64_t first;
  const Group &group;
  template <class How> GPR_DEVICE typename OP::State operator()(How &how) const {
    typename OP::State node[OP::ROWS];
    GPR_EACH(r, OP::ROWS) {
      node[r] = OP::identity();
      if (r * (int)RowsOf<OP>::ROW < group.leaves)
        node[r] = fold_there<OP, OP::PACKET>(x, leaves[r], first + RowsOf<OP>::before(r, lane_of()),
                                             0, group.of_packet(r), how);
    }
    exchange<OP::ROWS, 1>(node, group, how);
    return node[0];
  }
  GPR_DEVICE typename OP::State slowly() const {
    typename OP::State node[OP::ROWS * OP::PACKET];
    typename RowsOf<OP>::Leaves copy[OP::ROWS];
    GPR_EACH(r, OP::ROWS) copy[r] = leaves[r];
    GPR_ROLLED(int r = 0; r < OP::ROWS; r++)
      lift_all<OP, OP::PACKET>(x, copy[r], first + RowsOf<OP>::before(r, lane_of()),
                               node + r * OP::PACKET);
    fold_group_apart<OP>(node, CutGroup<OP>{group.leaves});
    return node[0];
  }
};

/* What lies in more of them. */
template <class OP, class X>
__device__ __noinline__ void fold_packet(const X x, int64_t first, int64_t stop,
                                         typename OP::State *to) {
  *to = fold_some<OP, OP::PACKET>(x, first, stop);
}

/* A group, wherever it lies, a row at a time. */
template <class OP, class X>
GPR_DEVICE typename OP::State fold_anywhere(const X &x, int64_t first, const CutGroup<OP> &group) {
  typename OP::State node[OP::ROWS * OP::PACKET];
  GPR_ROLLED(int r = 0; r < OP::ROWS; r++) {
    const int64_t i = first + RowsOf<OP>::before(r, lane_of());
    node[r * OP::PACKET] = OP::identity();
    if (group.of_packet(r)) fold_packet<OP>(x, i, i + group.of_packet(r), node + r * OP::PACKET);
  }
  exchange_apart<OP>(node, group);
  return node[0];
}

/* --- outputs -------------------------------------------------------------------------------- */

/* Whole groups' nodes that wait for their right sibling. They are not joined by some of the lanes
 * for all: each lane gives half of what waits and what came to another one, and keeps the other
 * half. So of 2^l groups the l bits above the row's, and from the lowest again, say afterwards
 * which of the groups a lane has, in place of which neighbours. */
template <class OP> struct LanesWaiting {
  typedef typename OP::State A;
  enum { FIRST = (int)OP::ROWS % GPR_WARP ? (int)OP::ROWS : 1 };
  Nodes<OP> nodes;
  uint32_t groups;

  static GPR_DEVICE int after(int mask) { return mask == GPR_WARP / 2 ? 1 : 2 * mask; }
  /* What a next group's node becomes by those that wait for it. */
  template <class How> GPR_DEVICE A with(A value, How &how) const {
    int mask = FIRST, top = __popc(groups);
    GPR_ROLLED(uint32_t before = groups; before & 1; before >>= 1, mask = after(mask)) {
      const bool right = lane_of() & mask;
      const A left = nodes.get(--top), send = either(right, left, value);
      value = joined(mask, either(right, value, left), shuffle_xor(send, mask), how);
    }
    return value;
  }
  GPR_DEVICE void push(const A &value) {
    nodes.put(__popc(groups & (groups + 1)), value);
    groups++;
  }
  /* The node of all, in every lane: of those that wait, and of a last one, cut, of which the lanes
   * of `there` have some. It climbs as if what is missing on its right came too. */
  template <class How> GPR_DEVICE A all(A value, uint32_t there, How &how) const {
    int mask = FIRST, top = __popc(groups);
    GPR_ROLLED(uint32_t left = groups; left; left >>= 1, mask = after(mask)) {
      const bool right = lane_of() & mask, waits = left & 1;
      if (!waits && !there) continue;
      const A before = waits ? nodes.get(--top) : value;
      value = joined(mask, either(right, value, before),
                     shuffle_xor(either(right, before, value), mask), how,
                     (waits && !right) || there >> (lane_of() | mask) & 1);
      there = __ballot_sync(GPR_ALL, right ? waits && there >> (lane_of() ^ mask) & 1
                                           : waits || there >> lane_of() & 1);
    }
    GPR_ROLLED(int i = 0; i < 5; i++, mask = after(mask)) {
      value = joined(mask, value, shuffle_xor(value, mask), how, there >> (lane_of() | mask) & 1);
      there = __ballot_sync(GPR_ALL, there >> (lane_of() & ~mask) & 1);
    }
    return value;
  }
};
template <class OP, class Run> struct WaitingRun {
  const LanesWaiting<OP> &waiting;
  const Run &run;
  template <class How> GPR_DEVICE typename OP::State operator()(How &how) const {
    return waiting.with(run(how), how);
  }
  GPR_DEVICE typename OP::State slowly() const {
    Inline<Apart<OP>> how;
    return waiting.with(run.slowly(), how);
  }
};
/* The root of a part of an index, whose last group is cut. */
template <class OP> struct LastRun {
  const LanesWaiting<OP> &waiting;
  const typename OP::State &node;
  uint32_t there;
  template <class How> GPR_DEVICE typename OP::State operator()(How &how) const {
    return waiting.all(node, there, how);
  }
  GPR_DEVICE typename OP::State slowly() const {
    Inline<Apart<OP>> how;
    return (*this)(how);
  }
};

/* As many whole groups as follow each other in one line; their leaves. */
template <class OP, class X>
GPR_DEVICE int64_t fold_line(LanesWaiting<OP> &waiting, const X &x, int64_t first, int64_t stop) {
  constexpr int all = RowsOf<OP>::GROUP;
  typedef GroupRun<OP, X, WholeGroup<OP>> Run;
  int64_t at[OP::ARRAYS], i = first;
  const int64_t left = x.begin(at, first);
  const bool is_even = OP::is_even(at);
  const int64_t fits = (left - (is_even ? 0 : (int)OP::BEYOND)) / all, there = (stop - first) / all;
  const int64_t groups = fits < there ? fits : there;
  if (groups <= 0) return 0;
  OP::go(at, lane_of() * (int)OP::PACKET);
  GPR_ROLLED(int64_t n = groups; n > 0; n--, i += all) {
    typename RowsOf<OP>::Leaves leaves[OP::ROWS];
    if (is_even) {
      GPR_EACH(r, OP::ROWS) leaves[r].load_packed(at, r * (int)RowsOf<OP>::ROW, true);
    } else {
      GPR_EACH(r, OP::ROWS) leaves[r].load_packed(at, r * (int)RowsOf<OP>::ROW, false);
    }
    OP::go(at, all);
    GPR_EACH(r, OP::ROWS) leaves[r].settle();
    const Run run = {x, leaves, i, WholeGroup<OP>()};
    waiting.push(fold_quickly<OP, true>(WaitingRun<OP, Run>{waiting, run}));
  }
  return groups * all;
}

/* The node of [first, stop), in every lane. */
template <class OP, class X>
GPR_DEVICE typename OP::State fold_by_warp(const X &x, int64_t first, int64_t stop,
                                           typename OP::State *near) {
  typedef typename OP::State A;
  constexpr int all = RowsOf<OP>::GROUP;
  A far[OP::DEPTH], node = OP::identity();
  LanesWaiting<OP> waiting = {{near, far}, 0};
  int64_t i = first;
#pragma unroll 1
  while (i < stop) {
    const int64_t folded = x.all_packed() ? fold_line<OP>(waiting, x, i, stop) : 0;
    i += folded;
    if (folded) continue;
    const CutGroup<OP> group = {stop - i < all ? (int)(stop - i) : all};
    typename RowsOf<OP>::Leaves leaves[OP::ROWS];
    if (load_lines<OP>(leaves, x, i, group))
      node = fold_quickly<OP, true>(GroupRun<OP, X, CutGroup<OP>>{x, leaves, i, group});
    else
      node = fold_anywhere<OP>(x, i, group);
    if (group.leaves == all) {
      Inline<Apart<OP>> how;
      waiting.push(waiting.with(node, how));
    }
    i += all;
  }
  const CutGroup<OP> last = {(int)((stop - first) % all)};
  const bool has_some = last.is_there(lane_of() & (OP::ROWS - 1), lane_of() & -(int)OP::ROWS);
  return fold_quickly<OP, true>(LastRun<OP>{waiting, node, __ballot_sync(GPR_ALL, has_some)});
}

/* A block is a warp: no part waits for another one. An output has a.split parts, or what a short
 * one is worth. */
template <class OP, class X>
__global__ void __launch_bounds__(GPR_WARP, OP::WARPS)
    trees_by_warps(const __grid_constant__ typename X::Args a) {
  typedef typename OP::State A;
  __shared__ uint4 near[(Nodes<OP>::ROOM * sizeof(A) + 15) / 16];
  for (int64_t b = blockIdx.x; b < a.outputs * a.split; b += gridDim.x) {
    const int64_t o = quotient_of(b, a.split), part = b - o * a.split;
    const X x(a, o);
    int64_t share = RowsOf<OP>::GROUP;
    while (share * a.split < x.count) share *= 2;
    const int64_t first = part * share, parts = x.count > share ? (x.count + share - 1) / share : 1;
    if (part >= parts) continue;
    A root = fold_by_warp<OP>(x, first, first + share < x.count ? first + share : x.count,
                              (A *)near + lane_of());
    climb_up<OP, X>(a, o, part, parts, root);
  }
}

GPR_CLOSE
