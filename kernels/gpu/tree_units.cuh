/* Units of the one tree: an aligned part of an output's index, folded to one node by a thread, or
 * by a warp, whose lanes fold runs of a tile in shared memory.
 *
 * OP has the operator, its State, and of ARRAYS that a leaf is made of the Leaves<N> of a thread
 * and the tiles of a warp; X is where an output's leaves lie. */
#ifndef GPR_TREE_UNITS_CUH
#define GPR_TREE_UNITS_CUH

#include "operator_tiles.cuh"

GPR_OPEN

/* A node, or nothing where the index has ended. */
template <class A> struct Branch {
  A value;
  int64_t there;
};
template <class OP> __device__ __forceinline__ Branch<typename OP::State> nothing() {
  return {OP::identity(), 0};
}
template <class OP>
__device__ __forceinline__ void join(Branch<typename OP::State> &left,
                                     const Branch<typename OP::State> &right) {
  if (right.there) OP::combine_apart(&left.value, &right.value, &left.value);
}

/* --- nodes that wait for their right sibling: as a counter counts --------------------------------
 */

/* Of a thread. The stack is the caller's, or the count beside it would be in memory too. */
template <class OP> struct Waiting {
  typedef typename OP::State A;
  A *stack;
  int count;
  /* The next node, which as many like it came before. */
  __device__ __forceinline__ void push(A &value, int64_t before) {
#pragma unroll 1
    for (; before & 1; before >>= 1) {
      --count;
      OP::combine_apart(stack + count, &value, &value);
    }
    stack[count++] = value;
  }
  __device__ __forceinline__ A all() {
    A value = stack[--count];
#pragma unroll 1
    while (count) {
      --count;
      OP::combine_apart(stack + count, &value, &value);
    }
    return value;
  }
};

/* Of a warp, whose lanes have neighbouring nodes each time. Siblings are not joined by some of the
 * lanes for all: each lane gives half of what waits and what came to another one, and keeps the
 * other half. So of 2^l times 32 nodes lane bit l % 5 says afterwards which half of the times it
 * has, in place of which neighbour. */
template <class OP> struct LanesWaiting {
  typedef typename OP::State A;
  A *stack;
  int count;
  int64_t times;

  /* The node of both lanes whose numbers differ in that bit; `other` is the other one's. */
  static __device__ __forceinline__ A joined(int mask, const A &own, const A &other) {
    const bool right = lane_of() & mask;
    const A a = right ? other : own, b = right ? own : other;
    return OP::combine(a, b);
  }
  __device__ __forceinline__ void push(A &value) {
    int mask = 1;
#pragma unroll 1
    for (int64_t before = times++; before & 1; before >>= 1) {
      const bool right = lane_of() & mask;
      const A left = stack[--count], keep = right ? value : left, send = right ? left : value;
      value = joined(mask, keep, shuffle_xor(send, mask));
      mask = mask == GPR_WARP / 2 ? 1 : 2 * mask;
    }
    stack[count++] = value;
  }
  /* The node of all before `last`, and of that if it is there; every lane has it. */
  __device__ __forceinline__ A all(const A &last, bool is_there) {
    A value = last;
    int level = 0;
#pragma unroll 1
    for (int64_t left = times; left; left >>= 1, level = level == 4 ? 0 : level + 1) {
      if (!(left & 1)) continue;
      A node = stack[--count];
#pragma unroll 1
      for (int i = 0; i < 5; i++) {
        const int mask = 1 << (level + i < 5 ? level + i : level + i - 5);
        node = joined(mask, node, shuffle_xor(node, mask));
      }
      if (is_there) OP::combine_apart(&node, &value, &node);
      value = node;
      is_there = true;
    }
    return value;
  }
};

/* --- leaves in registers -------------------------------------------------------------------------
 */

template <class OP, int N, class X, class Leaves>
__device__ __forceinline__ typename OP::State fold_run(const X &x, const Leaves &leaves, int64_t i,
                                                       int j = 0) {
  if constexpr (N == 1)
    return leaves.lift(x, j, i + j);
  else
    return OP::combine(fold_run<OP, N / 2>(x, leaves, i, j),
                       fold_run<OP, N / 2>(x, leaves, i, j + N / 2));
}
/* What is missing is always at the end: a right half is there if its first leaf is. */
template <class OP, int N, class X, class Leaves>
__device__ __forceinline__ typename OP::State fold_there(const X &x, const Leaves &leaves,
                                                         int64_t i, int j, int there) {
  if constexpr (N == 1) {
    return leaves.lift(x, j, i + j);
  } else {
    typename OP::State value = fold_there<OP, N / 2>(x, leaves, i, j, there);
    if (j + N / 2 < there)
      value = OP::combine(value, fold_there<OP, N / 2>(x, leaves, i, j + N / 2, there));
    return value;
  }
}
/* The node of up to LEAVES of them, wherever they lie. */
template <class OP, class X>
__device__ __forceinline__ typename OP::State fold_some(const X &x, int64_t first, int64_t stop) {
  typename OP::template Leaves<OP::LEAVES> leaves;
  const int there = stop - first < OP::LEAVES ? (int)(stop - first) : (int)OP::LEAVES;
  int64_t at[OP::ARRAYS], left = x.begin(at, first);
  if (left >= there && there == OP::LEAVES && x.is_direct()) {
    leaves.load(x, at, left);
  } else {
#pragma unroll
    for (int j = 0; j < OP::LEAVES; j++) {
      if (j >= there) break;
      if (!left) left = x.begin(at, first + j);
      leaves.load_one(x, j, at);
      left--;
#pragma unroll
      for (int k = 0; k < OP::ARRAYS; k++) at[k] += x.step[k];
    }
  }
  return fold_there<OP, OP::LEAVES>(x, leaves, first, 0, there);
}

/* --- units: the node of [first, stop), an aligned part or as much of one as there is
 * --------------
 */

/* Some runs of a line that is not packed. Their leaves come to the thread's own places in shared
 * memory, a whole run ahead: of registers a compiler waits for all that a loop loads together. */
template <class OP, class X> struct Ahead {
  typedef typename OP::State A;
  enum { PARTS = 4, MANY = OP::RUN / PARTS, BYTES = MANY * GPR_WARP * OP::LEAF };
  const X &x;
  char *const places;
  int64_t at[OP::ARRAYS], parts; /* of the leaves that come next, and how much is left of them */

  __device__ __forceinline__ void bring(int part) {
    if (parts > 0) {
      OP::template bring<MANY>(places + part * BYTES, x, at);
#pragma unroll
      for (int k = 0; k < OP::ARRAYS; k++) at[k] += MANY * x.step[k];
    }
    parts--;
    copies_begun();
  }
  __device__ __forceinline__ void begin(const int64_t (&from)[OP::ARRAYS], int64_t runs) {
#pragma unroll
    for (int k = 0; k < OP::ARRAYS; k++) at[k] = from[k];
    parts = runs * PARTS;
#pragma unroll
    for (int part = 0; part < PARTS; part++) bring(part);
  }
  /* The node of the next N parts. */
  template <int N = PARTS, int PART = 0> __device__ __forceinline__ A fold(int64_t i) {
    if constexpr (N > 1) {
      const A left = fold<N / 2, PART>(i);
      return OP::combine(left, fold<N / 2, PART + N / 2>(i + N / 2 * MANY));
    } else {
      typename OP::template Leaves<MANY> leaves;
      own_copies_came<PARTS - 1>();
      leaves.get_own(places + PART * BYTES);
      bring(PART);
      return fold_run<OP, MANY>(x, leaves, i);
    }
  }
};

/* Half a run of leaves, or the one of it: more of them would not fit into the registers. */
template <class OP, class X>
__device__ __forceinline__ typename OP::State fold_next(const X &x, int64_t (&at)[OP::ARRAYS],
                                                        int64_t &left, int64_t i) {
  constexpr int half = OP::RUN > 1 ? OP::RUN / 2 : 1;
  typename OP::template Leaves<half> leaves;
  leaves.load(x, at, left);
#pragma unroll
  for (int k = 0; k < OP::ARRAYS; k++) at[k] += half * x.step[k];
  left -= half;
  return fold_run<OP, half>(x, leaves, i);
}

/* `places`: room for a run of each of the warp's threads, if there is some. */
template <class OP, class X>
__device__ __forceinline__ Branch<typename OP::State> fold_by_thread(const X &x, int64_t first,
                                                                     int64_t stop, char *places) {
  constexpr int times = OP::RUN / OP::LEAVES;
  typedef typename OP::State A;
  A stack[OP::DEPTH];
  Waiting<OP> waiting = {stack, 0};
  Ahead<OP, X> ahead = {x, places, {}, 0};
  if (first >= stop) return nothing<OP>();
  const bool is_ahead = OP::IS_AHEAD && x.is_copied() && !x.is_packed(0);
  int64_t i = first, done = 0;
#pragma unroll 1
  while (i < stop) {
    int64_t at[OP::ARRAYS], left = 0, runs = 0;
    if (done % times == 0 && i + OP::RUN <= stop && x.is_direct()) {
      left = x.begin(at, i);
      runs = (left < stop - i ? left : stop - i) / OP::RUN;
    }
    if constexpr (OP::IS_AHEAD)
      if (is_ahead && runs) ahead.begin(at, runs);
    A value;
#pragma unroll 1
    for (int64_t n = 0; n < runs; n++, i += OP::RUN, done += times) {
      if constexpr (OP::IS_AHEAD)
        if (is_ahead) value = ahead.fold(i);
      if (!is_ahead) {
        value = fold_next<OP>(x, at, left, i);
        if constexpr (OP::RUN > 1)
          value = OP::combine(value, fold_next<OP>(x, at, left, i + OP::RUN / 2));
      }
      waiting.push(value, done / times);
    }
    if (runs) continue;
    value = fold_some<OP>(x, i, stop);
    waiting.push(value, done);
    i += OP::LEAVES, done++;
  }
  return {waiting.all(), 1};
}

/* The node of the first `there` lanes' nodes, one a lane, in the first lane. */
template <class OP>
__device__ __forceinline__ typename OP::State fold_warp(typename OP::State value, int there) {
#pragma unroll 1
  for (int apart = 1; apart < GPR_WARP; apart *= 2) {
    const typename OP::State right = shuffle_down(value, apart);
    if (lane_of() + apart < there) OP::combine_apart(&value, &right, &value);
  }
  return value;
}

/* A tile that ends early, whose nodes lanes have: but the one of the leaves that make no run. */
template <class OP, class X>
__device__ __noinline__ void fold_rest(const X x, const char *shared, int tile, int64_t first,
                                       int64_t stop, typename OP::State *node) {
  const int there = (int)(stop - first), whole = there / OP::RUN, left = there % OP::RUN;
  typename OP::State value = *node;
  if constexpr (OP::TILE) {
    if (left) {
      const int e = whole * OP::RUN + (lane_of() < left ? lane_of() : 0);
      typename OP::template Leaves<1> leaf;
      leaf.get_one(shared, tile, e);
      const typename OP::State last = fold_warp<OP>(leaf.lift(x, 0, first + e), left);
      const typename OP::State everywhere = broadcast(last, 0);
      if (lane_of() == whole) value = everywhere;
    }
  }
  *node = fold_warp<OP>(value, whole + (left > 0));
}

/* A tile on its way. */
template <class OP, class X> struct Coming {
  int64_t at[OP::ARRAYS], left, first;
  int there;
  __device__ __forceinline__ Coming(const X &x, int64_t from, int64_t stop) : left(0), first(from) {
    const int64_t rest = stop - first, all = GPR_WARP * OP::RUN;
    there = (int)(rest < 0 ? 0 : rest < all ? rest : all);
    if (there) left = x.begin(at, first);
  }
  /* What can be copied past the registers. */
  __device__ __forceinline__ void copy(const X &x, char *tile) const {
    if (there) OP::copy(tile, x, at, left, first, there);
    copies_begun();
  }
  __device__ __forceinline__ void put(const X &x, char *tile) const {
    if (there) OP::put(tile, x, left, first, there);
  }
};

/* Of the warp's first lane. `tiles`: room for STAGES of them, each on its way again when its leaves
 * are in registers. What is no copy waits for the fold: registers would not outlive its call. */
template <class OP, class X>
__device__ __forceinline__ Branch<typename OP::State> fold_by_warp(const X &x, int64_t first,
                                                                   int64_t stop, char *shared,
                                                                   int tiles) {
  typedef typename OP::State A;
  constexpr int64_t all = (int64_t)GPR_WARP * OP::RUN;
  A stack[OP::DEPTH];
  LanesWaiting<OP> waiting = {stack, 0, 0};
  if (first >= stop) return nothing<OP>();
  A rest = OP::identity();
  int at = 0;
  if constexpr (OP::TILE) {
#pragma unroll 1
    for (int n = 0; n < OP::STAGES; n++) {
      const Coming<OP, X> coming(x, first + n * all, stop);
      coming.copy(x, shared + tiles + n * OP::TILE);
      coming.put(x, shared + tiles + n * OP::TILE);
    }
  }
#pragma unroll 1
  for (int64_t i = first; i < stop; i += all) {
    const int64_t mine = i + (int64_t)lane_of() * OP::RUN;
    const int tile = tiles + at;
    A value;
    if constexpr (OP::TILE) {
      const Coming<OP, X> coming(x, i + OP::STAGES * all, stop);
      typename OP::template Leaves<OP::RUN> leaves;
      copies_came<OP::STAGES - 1>();
      leaves.get(shared, tile);
      __syncwarp(); /* all have read what the next copies go to */
      coming.copy(x, shared + tile);
      value = fold_run<OP, OP::RUN>(x, leaves, mine);
      coming.put(x, shared + tile);
      at = at == (OP::STAGES - 1) * OP::TILE ? 0 : at + OP::TILE;
    } else {
      value = mine < stop ? fold_some<OP>(x, mine, stop) : OP::identity();
    }
    if (i + all <= stop)
      waiting.push(value);
    else
      fold_rest<OP>(x, shared, tile, i, stop, &(rest = value));
  }
  return {waiting.all(rest, (stop - first) % all != 0), 1};
}

GPR_CLOSE
#endif
