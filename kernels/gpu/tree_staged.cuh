/* The one tree of many short outputs that lie behind each other, or nearly so: a block copies some
 * of them to shared memory, and folds all their units, whosever they are, then all nodes of eight
 * of those, until there is one for each output. No thread waits for a longer one. */
#pragma once

#include "tree_units.cuh"

GPR_OPEN

/* Of a multiprocessor's shared memory five blocks have so much each. */
enum { TREE_ROOM = 44 << 10, TREE_FAN_STAGE = 8 };
/* What of it is for leaves; the nodes of their units have the rest. */
GPR_CONSTEXPR int tree_stage(int unit_bytes, int state) {
  return TREE_ROOM / (unit_bytes + state) * unit_bytes / 16 * 16;
}
/* As many outputs, `pitch` leaves from each other, as a block has room for, or less than one: from
 * one of an output's nodes to its next is an odd number of them, so that they lie in different
 * banks. */
GPR_CONSTEXPR int64_t tree_team(int64_t count, int64_t pitch, int leaf, int unit, int64_t state) {
  const int64_t stage = tree_stage(unit * leaf, (int)state), units = (count + unit - 1) / unit;
  const int64_t others = (units + TREE_FAN_STAGE - 1) / TREE_FAN_STAGE;
  const int64_t outputs = stage / (pitch * leaf), nodes = (TREE_ROOM - stage) / (units * state);
  const int64_t least = nodes < stage / (others * state) ? nodes : stage / (others * state);
  return outputs < ((least - 1) | 1) ? outputs : (least - 1) | 1;
}

/* A thread's units of so many outputs: which one, and of which output. Where outputs end within a
 * unit, neighbouring threads take neighbouring outputs, so that no bank has all their leaves and
 * all of them end together. */
struct UnitOf {
  int wide, across, along, across_on, along_on;
  bool is_down;
  GPR_DEVICE UnitOf(int outputs, int units, bool down, int threads)
      : wide(down ? outputs : units), is_down(down) {
    along = (int)threadIdx.x / wide, across = (int)threadIdx.x - along * wide;
    along_on = threads / wide, across_on = threads - along_on * wide;
  }
  GPR_DEVICE int output() const { return is_down ? across : along; }
  GPR_DEVICE int unit() const { return is_down ? along : across; }
  GPR_DEVICE void go() {
    along += along_on, across += across_on;
    if (across >= wide) across -= wide, along++;
  }
};

/* Some nodes in place of leaves. */
template <class OP> struct NodesThere {
  const typename OP::State *node;
  int apart, there;
  template <class X> GPR_DEVICE typename OP::State lift(const X &, int j, int64_t) const {
    return node[(j < there ? j : 0) * apart];
  }
};

/* --- a block ---------------------------------------------------------------------------------- */

/* Room for leaves and for nodes, of which a thread may read some more; whole lines of it, within
 * which packets change places. */
template <class OP> struct StageRoom {
  enum { STAGE = tree_stage(OP::UNIT * OP::LEAF, (int)sizeof(typename OP::State)) };
  enum { STEP = OP::HAS_STEPS ? 2 : 1 };
  enum { BYTES = STAGE + (STEP * OP::UNIT - 1) * OP::LEAF + 32, LINE = 128 };
  alignas(LINE) uint4 leaves[(BYTES + LINE - 1) / LINE * LINE / 16];
  uint4 nodes[(TREE_ROOM - STAGE) / 16];
};

/* Some outputs, one piece of memory. */
template <class OP> struct Staged {
  typedef typename OP::State A;
  typedef typename OP::template Leaves<OP::UNIT> Leaves;
  enum { THREADS = OP::STAGED_THREADS, UNIT = OP::UNIT, LEAF = OP::LEAF };
  StageRoom<OP> &room;
  int outs, count, apart;
  int pitch, step; /* bytes from an output to the next, and from one of its leaves to the next */
  int skew = 0;    /* bytes before the first of them */
  Stage stage = {(char *)room.leaves, 0};
  A *node = (A *)room.nodes, *other = (A *)room.leaves;

  GPR_DEVICE bool are_columns() const { return pitch < step; }
  /* Their leaves, from the packet on that the first one is in. */
  GPR_DEVICE void bring(int64_t base) {
    skew = (int)(base & 15);
    stage.swizzle = count % UNIT == 0 || are_columns() ? (int)Stage::SWIZZLE : 0;
    const int bytes = skew + (outs - 1) * pitch + (count - 1) * step + LEAF;
    const char *from = (const char *)(base - skew);
    const int packets = bytes & ~15; /* what is left may be all that is there of one */
    for (int at = threadIdx.x * 16; at < packets; at += THREADS * 16)
      copy_packet(stage.at(at), from + at);
    for (int at = packets + threadIdx.x; at < bytes; at += THREADS)
      *stage.at(at) = __ldg(from + at);
  }
  GPR_DEVICE void load(Leaves &leaves, int at) const {
    if constexpr (OP::HAS_STEPS)
      if (step > LEAF) return leaves.load_column(stage, at, step);
    leaves.load_shared(stage, at);
  }
  /* Waits for what was copied; every output's root is its first node then. */
  template <class X> GPR_DEVICE void fold(const X &x) {
    copies_done();
    const int many = (count + UNIT - 1) / UNIT;
    UnitOf of(outs, many, count % UNIT != 0 || are_columns(), THREADS);
    GPR_ROLLED(int u = threadIdx.x; u < outs * many; u += THREADS, of.go()) {
      const int i = of.unit() * UNIT, o = of.output();
      Leaves leaves;
      load(leaves, skew + o * pitch + i * step);
      leaves.settle();
      node[of.unit() * apart + o] = fold_leaves<OP, UNIT>(x, leaves, i, count - i);
    }
    __syncthreads();
    GPR_ROLLED(int left = many; left > 1;) {
      left = fold_nodes(x, left);
      __syncthreads();
    }
  }
  /* Nodes of eight times as many leaves each. */
  template <class X> GPR_DEVICE int fold_nodes(const X &x, int before) {
    const int many = (before + TREE_FAN_STAGE - 1) / TREE_FAN_STAGE;
    UnitOf of(outs, many, true, THREADS);
    GPR_ROLLED(int u = threadIdx.x; u < outs * many; u += THREADS, of.go()) {
      const int first = of.unit() * TREE_FAN_STAGE, o = of.output();
      const NodesThere<OP> nodes = {node + first * apart + o, apart, before - first};
      other[of.unit() * apart + o] =
          fold_leaves<OP, TREE_FAN_STAGE>(x, nodes, first, before - first);
    }
    A *const last = node;
    node = other, other = last;
    return many;
  }
};

/* a.team outputs at a time of each a.per that lie behind each other. */
template <class OP, class X>
__global__ void __launch_bounds__(OP::STAGED_THREADS, OP::STAGED_BLOCKS)
    trees_staged(const __grid_constant__ typename X::Args a) {
  __shared__ StageRoom<OP> room;
  const int64_t wide = a.team, each = quotient_of(a.per + wide - 1, wide);
  int pitch = (int)a.count, step = 1;
  if constexpr (OP::HAS_STEPS) pitch = a.pitch, step = a.apart;
  for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    const int64_t above = quotient_of(tile, each), first = (tile - above * each) * wide;
    const int64_t o = above * a.per + first;
    const X x(a, o);
    const int outs = (int)least(a.per - first, wide);
    Staged<OP> s = {room, outs, (int)x.count, outs | 1, pitch * OP::LEAF, step * OP::LEAF};
    s.bring(x.base[0]);
    s.fold(x);
    for (int r = threadIdx.x; r < outs; r += OP::STAGED_THREADS) X::finish(a, o + r, s.node[r]);
    __syncthreads();
  }
}

GPR_CLOSE
