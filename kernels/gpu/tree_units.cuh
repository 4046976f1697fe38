/* Units of the one tree: an aligned part of an output's index, folded to one node by a thread.
 *
 * OP has the operator, its State, and of the ARRAYS that a leaf is made of the Leaves<N> of a
 * thread; X is where an output's leaves lie. */
#pragma once

#include "climb.cuh"
#include "leaves.cuh"
#include "quick.cuh"

GPR_OPEN

/* A node, or nothing where the index has ended. */
template <class A> struct Branch {
  A value;
  int64_t there;
};
template <class OP> GPR_DEVICE Branch<typename OP::State> nothing() { return {OP::identity(), 0}; }
template <class OP>
GPR_DEVICE void join(Branch<typename OP::State> &left, const Branch<typename OP::State> &right) {
  if (right.there) OP::combine_apart(&left.value, &right.value, &left.value);
}

/* --- nodes that wait -------------------------------------------------------------------------- */

/* A stack of them: of the first levels, for which there is room, in shared memory, a lane beside
 * the next one; of all in the caller's array, or the count beside it would be in memory too. What
 * local memory is told goes on to the second cache: of columns of 24-byte states as much as all
 * that was read. */
enum { NEAR_BYTES = 6 << 10 }; /* of a warp; eight levels are enough */
template <class OP> struct Nodes {
  typedef typename OP::State A;
  enum { FIT = NEAR_BYTES / (GPR_WARP * (int)sizeof(A)), NEAR = FIT > 8 ? 8 : FIT };
  enum { ROOM = NEAR > 0 ? NEAR *GPR_WARP : 1 }; /* of a warp, in nodes */
  A *near, *far;                                 /* this lane's, GPR_WARP apart; all levels */
  GPR_DEVICE A get(int level) const { return level < NEAR ? near[level * GPR_WARP] : far[level]; }
  GPR_DEVICE void put(int level, const A &value) const {
    if (level < NEAR)
      near[level * GPR_WARP] = value;
    else
      far[level] = value;
  }
};

/* Those of one thread, which wait for their right sibling as a counter counts. */
template <class OP> struct Waiting {
  typedef typename OP::State A;
  Nodes<OP> nodes;
  int count;
  /* The next node, which as many like it came before. */
  GPR_DEVICE void push(A value, int64_t before) {
    GPR_ROLLED(; before & 1; before >>= 1) value = OP::combine(nodes.get(--count), value);
    nodes.put(count++, value);
  }
  GPR_DEVICE A all() {
    A value = nodes.get(--count);
#pragma unroll 1
    while (count) value = OP::combine(nodes.get(--count), value);
    return value;
  }
};

/* --- how nodes become one --------------------------------------------------------------------- */

/* By words, for which no address has to be chosen, which would put an array into memory. */
template <class A> GPR_DEVICE A either(bool is_first, const A &a, const A &b) {
  constexpr int count = (sizeof(A) + 3) / 4;
  uint32_t of_a[count] = {}, of_b[count] = {};
  A chosen;
  memcpy(of_a, &a, sizeof a);
  memcpy(of_b, &b, sizeof b);
  GPR_EACH(i, count) of_a[i] = is_first ? of_a[i] : of_b[i];
  memcpy(&chosen, of_a, sizeof chosen);
  return chosen;
}

template <class OP> struct Inline {
  typedef typename OP::State A;
  GPR_DEVICE A operator()(const A &a, const A &b) { return OP::combine(a, b); }
  template <class Right> GPR_DEVICE A with(const A &a, bool is_there, const Right &right) {
    if (is_there) return (*this)(a, right());
    return a;
  }
};
/* The same operator, compiled once. */
template <class OP> struct Apart {
  typedef typename OP::State State, A;
  static GPR_DEVICE A identity() { return OP::identity(); }
  static GPR_DEVICE A combine(const A &a, const A &b) {
    A both;
    OP::combine_apart(&a, &b, &both);
    return both;
  }
};
/* By steps that are right for nearly all numbers. */
template <class OP> struct Nearly {
  typedef typename OP::State A;
  QuickMath quick;
  GPR_DEVICE A operator()(const A &a, const A &b) { return OP::combine_quick(a, b, quick); }
  /* What is not there says nothing of how sure the steps are. */
  template <class Right> GPR_DEVICE A with(const A &a, bool is_there, const Right &right) {
    const QuickMath before = quick;
    const A both = (*this)(a, right());
    quick.of_roots = is_there ? quick.of_roots : before.of_roots;
    quick.of_quotients = is_there ? quick.of_quotients : before.of_quotients;
    return either(is_there, both, a);
  }
};
/* The first `there` of some nodes in memory, to the first of them. */
template <class OP> __device__ __noinline__ void fold_apart(typename OP::State *node, int there) {
  GPR_ROLLED(int apart = 1; apart < there; apart *= 2)
    GPR_ROLLED(int j = 0; j + apart < there; j += 2 * apart)
      OP::combine_apart(node + j, node + j + apart, node + j);
}
/* What `fold` makes of them; slowly if some lane is not sure, where all go together. */
template <class OP, bool TOGETHER, class Fold>
GPR_DEVICE typename OP::State fold_quickly(const Fold &fold) {
  if constexpr (OP::IS_QUICK) {
    Nearly<OP> nearly;
    const typename OP::State found = fold(nearly);
    const bool is_sure = nearly.quick.is_sure();
    if (TOGETHER ? __all_sync(GPR_ALL, is_sure) : is_sure) return found;
    return fold.slowly();
  } else {
    Inline<OP> at_once;
    return fold(at_once);
  }
}

/* --- leaves in registers ---------------------------------------------------------------------- */

/* Of a copy in memory: what is made of leaves in registers would else be kept for this. */
template <class OP, int N, class X, class Leaves>
GPR_DEVICE void lift_all(const X &x, const Leaves &copy, int64_t i, typename OP::State *to) {
  GPR_ROLLED(int j = 0; j < N; j++) to[j] = copy.lift(x, j, i + j);
}
template <class OP, int N, class X, class Leaves>
GPR_DEVICE typename OP::State fold_slowly(const X &x, const Leaves &leaves, int64_t i, int there) {
  typename OP::State node[N];
  const Leaves copy = leaves;
  lift_all<OP, N>(x, copy, i, node);
  fold_apart<OP>(node, there < N ? there : N);
  return node[0];
}
/* What is missing is always at the end: a right half is there if its first leaf is. */
template <class OP, int N, class X, class Leaves, class How>
GPR_DEVICE typename OP::State fold_there(const X &x, const Leaves &leaves, int64_t i, int j,
                                         int there, How &how) {
  if constexpr (N == 1) {
    return leaves.lift(x, j, i + j);
  } else {
    const typename OP::State value = fold_there<OP, N / 2>(x, leaves, i, j, there, how);
    return how.with(value, j + N / 2 < there,
                    [&] { return fold_there<OP, N / 2>(x, leaves, i, j + N / 2, there, how); });
  }
}
/* Those of one thread. */
template <class OP, int N, class X, class Leaves> struct RunThere {
  const X &x;
  const Leaves &leaves;
  int64_t i;
  int there;
  template <class How> GPR_DEVICE typename OP::State operator()(How &how) const {
    return fold_there<OP, N>(x, leaves, i, 0, there, how);
  }
  GPR_DEVICE typename OP::State slowly() const { return fold_slowly<OP, N>(x, leaves, i, there); }
};
template <class OP, int N, class X, class Leaves>
GPR_DEVICE typename OP::State fold_leaves(const X &x, const Leaves &leaves, int64_t i, int there) {
  return fold_quickly<OP, false>(RunThere<OP, N, X, Leaves>{x, leaves, i, there});
}
/* The node of up to N of them, wherever they lie. */
template <class OP, int N, class X>
GPR_DEVICE typename OP::State fold_some(const X &x, int64_t first, int64_t stop) {
  typename OP::template Leaves<N> leaves;
  const int there = stop - first < N ? (int)(stop - first) : N;
  int64_t at[OP::ARRAYS], left = x.begin(at, first);
  if (left >= there && x.is_direct()) {
    leaves.load_some(x, at, there);
    leaves.settle();
  } else {
    GPR_EACH(j, N) {
      if (j >= there) break;
      if (!left) left = x.begin(at, first + j);
      leaves.load_one(x, j, at);
      left--;
      GPR_EACH(k, OP::ARRAYS) at[k] += x.step[k];
    }
  }
  Inline<OP> how;
  return fold_there<OP, N>(x, leaves, first, 0, there, how);
}

/* --- units: the node of [first, stop), an aligned part or as much of one as there is ---------- */

/* The node of the next N parts of a run that is on its way. */
template <class OP, class X, int N = Ahead<OP, X>::PARTS, int PART = 0>
GPR_DEVICE typename OP::State fold_ahead(Ahead<OP, X> &ahead, int64_t i) {
  constexpr int many = Ahead<OP, X>::MANY;
  if constexpr (N > 1) {
    const typename OP::State left = fold_ahead<OP, X, N / 2, PART>(ahead, i);
    return OP::combine(left, fold_ahead<OP, X, N / 2, PART + N / 2>(ahead, i + N / 2 * many));
  } else {
    typename OP::template Leaves<many> leaves;
    ahead.get(leaves, PART);
    return fold_leaves<OP, many>(ahead.x, leaves, i, many);
  }
}

/* The next leaves of a run: all small numbers of it, or half of it, since more would not fit into
 * the registers. */
template <class OP> GPR_CONSTEXPR int at_once() {
  return OP::RUN > 1 && OP::LEAF >= 4 ? OP::RUN / 2 : OP::RUN;
}
template <class OP, class X>
GPR_DEVICE typename OP::State fold_next(const X &x, int64_t (&at)[OP::ARRAYS], int64_t &left,
                                        int64_t i) {
  constexpr int many = at_once<OP>();
  typename OP::template Leaves<many> leaves;
  if (x.all_packed() && (OP::is_even(at) || left >= many + (int)OP::BEYOND))
    leaves.load_packed(at, 0, OP::is_even(at));
  else
    leaves.load_some(x, at, many);
  leaves.settle();
  GPR_EACH(k, OP::ARRAYS) at[k] += many * x.step[k];
  left -= many;
  return fold_leaves<OP, many>(x, leaves, i, many);
}

/* `near`: this lane's room for nodes. `places`: the warp's room for runs (Ahead). */
template <class OP, class X>
GPR_DEVICE Branch<typename OP::State> fold_by_thread(const X &x, int64_t first, int64_t stop,
                                                     typename OP::State *near, char *places) {
  constexpr int times = OP::RUN / OP::LEAVES;
  typedef typename OP::State A;
  A far[OP::DEPTH];
  Waiting<OP> waiting = {{near, far}, 0};
  Ahead<OP, X> ahead = {x, places, {}, 0};
  if (first >= stop) return nothing<OP>();
  int64_t i = first, done = 0;
#pragma unroll 1
  while (i < stop) {
    int64_t at[OP::ARRAYS], left = 0, runs = 0;
    if (done % times == 0 && i + OP::RUN <= stop && x.is_direct()) {
      left = x.begin(at, i);
      runs = (left < stop - i ? left : stop - i) / OP::RUN;
    }
    const bool is_ahead = OP::IS_AHEAD && runs > 0 && !x.is_packed(0);
    if constexpr (OP::IS_AHEAD)
      if (is_ahead) ahead.begin(at, runs);
    A value;
    GPR_ROLLED(int64_t n = 0; n < runs; n++, i += OP::RUN, done += times) {
      if constexpr (OP::IS_AHEAD)
        if (is_ahead) value = fold_ahead<OP>(ahead, i);
      GPR_ROLLED(int before = 0; !is_ahead && before < OP::RUN; before += at_once<OP>()) {
        const A next = fold_next<OP>(x, at, left, i + before);
        value = before ? OP::combine(value, next) : next;
      }
      waiting.push(value, done / times);
    }
    if (runs) continue;
    value = fold_some<OP, OP::LEAVES>(x, i, stop);
    waiting.push(value, done);
    i += OP::LEAVES, done++;
  }
  return {waiting.all(), 1};
}

/* --- parts of an output ----------------------------------------------------------------------- */

/* From the node of one of `parts` of output o, by a warp, to its end. */
template <class OP, class X, class ARGS>
GPR_DEVICE void climb_up(const ARGS &a, int64_t o, int64_t part, int64_t parts,
                         typename OP::State node) {
  typename OP::State *const nodes = (typename OP::State *)X::nodes(a) + o * climb_nodes(a.split);
  uint32_t *const tickets = (uint32_t *)a.scratch + o * climb_tickets(a.split);
  if (climb<Apart<OP>>(node, part, parts, nodes, tickets) && lane_of() == 0) X::finish(a, o, node);
}

GPR_CLOSE
