/* A whole array along the tree, the order kept.
 *
 * A warp folds aligned groups of eight rows; a row is 32 packets. Up to sixteen groups are a chunk
 * with one partial result, and warps climb from those to the root (climb.cuh). */
#pragma once

#include "axes_places.cuh"
#include "climb.cuh"
#include "flat.cuh"

GPR_OPEN

enum { TREE_ROWS = 8, TREE_GROUPS = 16, TREE_GROUP = GPR_WARP * 16 * TREE_ROWS }; /* bytes */
/* A multiprocessor: as many as leave registers for the nodes of a chunk. */
template <class A> GPR_CONSTEXPR int tree_blocks() { return sizeof(A) > 16 ? 2 : 3; }
/* One launch folds 4 GiB at most, in chunks of 64 KiB. */
enum { TREE_CHUNKS = 1 << 16 };

/* The nodes of all levels lie behind each other in the scratch, and so do their counters. */
enum { TREE_NODES = TREE_CHUNKS + TREE_CHUNKS / 64 + TREE_CHUNKS / 4096 + 1 };
static_assert(SCRATCH_COUNTERS + 4 * (TREE_NODES / CLIMB_FAN + 4) <= SCRATCH_PARTIALS, "");

template <class C, class A> GPR_DEVICE A ordered(bool right, const A &own, const A &other) {
  return right ? C::combine(other, own) : C::combine(own, other);
}

/* Every lane sends away half of what it has and keeps the other half: count/2 values afterwards,
 * over twice as many lanes each. In place of a shuffle for each value and step, half of one. */
template <class C, int COUNT, class A> GPR_DEVICE void exchange(A *v, int mask) {
  const bool right = lane_of() & mask;
  GPR_EACH(i, COUNT / 2) {
    const A first = v[2 * i], second = v[2 * i + 1];
    const A keep = right ? second : first, send = right ? first : second;
    v[i] = ordered<C>(right, keep, shuffle_xor(send, mask));
  }
}

template <class T, class F> struct TreeWarp {
  typedef typename F::Wide A;
  typedef typename F::Combine C;
  /* Elements of a lane in a row, and rows of a group: a lane loads 16 bytes TREE_ROWS times. */
  static constexpr int V = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  static constexpr int ROWS = sizeof(T) > 16 ? TREE_ROWS * 16 / (int)sizeof(T) : TREE_ROWS;
  static constexpr int64_t row = GPR_WARP * V, group = TREE_GROUP / sizeof(T);

  const T *data;
  int64_t n;
  bool aligned;
  int groups; /* of a chunk: a power of two, TREE_GROUPS at most */

  /* One value a lane of each row, lane after lane. */
  __device__ void load_rows(int64_t start, A *v) const {
    Packet<T> p[TREE_ROWS];
    const T *at = data + start + lane_of() * V;
    if (aligned) {
      GPR_EACH(r, TREE_ROWS) p[r].words = load_once(at + r * row);
    } else {
      GPR_EACH(r, TREE_ROWS)
        GPR_EACH(j, V) p[r].element[j] = at[r * row + j];
    }
    GPR_EACH(r, TREE_ROWS) v[r] = fold_some<V>(p[r].element, V);
  }

  /* An element of two loads. Neighbouring lanes load its halves, so that a load of the warp is one
   * piece of memory, and change what they do not keep: the even lanes have the row's first 16
   * elements then, the odd lanes the others. */
  __device__ void load_halves(int64_t start, A *v) const {
    const int odd = lane_of() & 1;
    if (aligned) {
      const uint4 *at = (const uint4 *)(data + start) + lane_of();
      uint4 p[TREE_ROWS];
      GPR_EACH(r, TREE_ROWS) p[r] = load_once(at + r * GPR_WARP);
      GPR_EACH(r, ROWS) {
        const uint4 keep = odd ? p[2 * r + 1] : p[2 * r], send = odd ? p[2 * r] : p[2 * r + 1];
        const uint4 got = shuffle_xor(send, 1), halves[] = {odd ? got : keep, odd ? keep : got};
        memcpy(v + r, halves, sizeof halves);
      }
    } else {
      const T *at = data + start + odd * (GPR_WARP / 2) + lane_of() / 2;
      GPR_EACH(r, ROWS) v[r] = wide(at[r * row]);
    }
  }

  /* A full group, every lane with the result: rows over lanes, then lanes over rows. Of halves the
   * last bit of the lane is the first of the place in the row. */
  __device__ A full_group(int64_t start) const {
    A v[ROWS];
    if constexpr (sizeof(T) > 16) {
      static_assert(sizeof(T) == 32 && sizeof(A) == 32, "");
      load_halves(start, v);
    } else {
      load_rows(start, v);
      exchange<C, 8>(v, 1);
    }
    exchange<C, 4>(v, 2);
    exchange<C, 2>(v, 4);
    A all = v[0];
    GPR_EACH(i, 5) {
      const int mask = i < 2 ? 8 << i : 1 << (i - 2);
      all = ordered<C>(lane_of() & mask, all, shuffle_xor(all, mask));
    }
    return all;
  }
  /* What is missing is always at the end: a right half is there if its first element is. */
  template <int COUNT> static __device__ A fold_some(const T *x, int present) {
    if constexpr (COUNT == 1) {
      return present > 0 ? wide(x[0]) : C::identity();
    } else {
      const A left = fold_some<COUNT / 2>(x, present);
      return present > COUNT / 2
                 ? C::combine(left, fold_some<COUNT / 2>(x + COUNT / 2, present - COUNT / 2))
                 : left;
    }
  }
  /* What there is of a group, a row at a time, each of which a lane keeps. */
  __device__ A cut_group(int64_t start) const {
    A own = C::identity();
    int rows = 0;
    GPR_ROLLED(int left = (int)(n - start); left > 0; left -= (int)row, start += row, rows++) {
      const int first = lane_of() * V;
      const A some = fold_some<V>(data + start + first, left - first);
      const A all = fold_first<C>(some, (left + V - 1) / V);
      if (lane_of() == rows) own = all;
    }
    return fold_first<C>(own, rows);
  }

  /* A chunk, group by group, as a counter counts: a set bit of it is a finished left half. One loop
   * and not a recursion unrolled, which would not fit the instruction cache. */
  __device__ A some_chunk(int64_t start) const {
    constexpr int levels = 4; /* 2^levels groups */
    static_assert(TREE_GROUPS == 1 << levels, "");
    A left[levels], value = C::identity();
    int done = 0;
    GPR_ROLLED(; done < groups && start < n; done++, start += group) {
      value = start + group <= n ? full_group(start) : cut_group(start);
      bool joins = true;
      GPR_EACH(l, levels) {
        if (joins && (done >> l & 1))
          value = C::combine(left[l], value);
        else if (joins)
          left[l] = value, joins = false;
      }
    }
    bool begun = done == groups;
    GPR_EACH(l, levels)
      if (done != groups && (done >> l & 1)) {
        value = begun ? C::combine(left[l], value) : left[l];
        begun = true;
      }
    return value;
  }
};

/* A Tree as far as its first node. */
template <class A> struct TreeAnswer {
  int64_t stop, count;
  Node<A> node;
};

/* So many chunks of each output, of `each` groups, that there is one for each warp as long as there
 * are so many. */
GPR_FN int64_t chunks_of(int64_t outputs, int64_t groups, int64_t warps, int &each) {
  for (each = 1; each < TREE_GROUPS && outputs * groups > warps; each *= 2)
    groups = (groups + 1) / 2;
  return groups;
}
/* Trees of n elements each, which lie side by side, by all warps of the grid. */
template <class F> struct TreeChunks {
  typedef TreeWarp<typename F::Element, F> W;
  typedef typename F::Wide A;
  int64_t outputs, n, warps, chunks;
  int groups;
  GPR_DEVICE TreeChunks(int64_t outputs, int64_t n)
      : outputs(outputs), n(n), warps((int64_t)gridDim.x * (FLAT_THREADS / GPR_WARP)) {
    chunks = chunks_of(outputs, (n + W::group - 1) / W::group, warps, groups);
  }
  /* Tree o begins at at(o), and done(o, root) is its end, by one thread. */
  template <class At, class Done>
  GPR_DEVICE void fold(A *nodes, uint32_t *tickets, const At &at, const Done &done) const {
    for (int64_t c = (int64_t)blockIdx.x * (FLAT_THREADS / GPR_WARP) + warp_of();
         c < outputs * chunks; c += warps) {
      const int64_t o = outputs == 1 ? 0 : quotient_of(c, chunks), part = c - o * chunks;
      const void *const data = at(o);
      const W warp = {(const typename F::Element *)data, n, (uintptr_t)data % 16 == 0, groups};
      A root = warp.some_chunk(part * groups * W::group);
      if (climb<typename F::Combine>(root, part, chunks, nodes + o * climb_nodes(chunks),
                                     tickets + o * climb_tickets(chunks)) &&
          lane_of() == 0)
        done(o, root);
    }
  }
};

template <class F>
__global__ void __launch_bounds__(FLAT_THREADS, tree_blocks<typename F::Wide>())
    flat_tree(gpr_flat_args args) {
  typedef typename F::Wide A;
  A *const nodes = scratch_at<A>(args.scratch, SCRATCH_PARTIALS);
  uint32_t *const tickets = scratch_at<uint32_t>(args.scratch, SCRATCH_COUNTERS);
  const auto data = [&](int64_t) { return args.data; };
  /* One node over the aligned block that holds the part: what it lacks is at the end of all. */
  const auto done = [&](int64_t, const A &value) {
    int level = 0;
    while (1ll << level < args.n) level++;
    TreeAnswer<A> root;
    root.stop = args.index + (1ll << level);
    root.count = 1;
    root.node.value = value;
    root.node.level = level;
    answer(args, root);
  };
  TreeChunks<F>(1, args.n).fold(nodes, tickets, data, done);
}

GPR_CLOSE
