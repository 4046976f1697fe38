/* A user's operator along the one tree, for any number of arrays of any layout.
 *
 * A unit folds an aligned part of an output's index to one node: a thread, where neighbouring
 * outputs lie side by side or are short, else a warp, whose lanes fold runs of a tile in shared
 * memory. Units' nodes fold in the block, and blocks' in the last one of them, as trees.cuh has it.
 * The operator is text: csrc has it from Python. */
#ifndef GPR_OPERATOR_CUH
#define GPR_OPERATOR_CUH

#include "last_block.cuh"
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

/* Of a thread. */
template <class OP> struct Waiting {
  typedef typename OP::State A;
  A stack[OP::DEPTH];
  int count = 0;
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
  A stack[OP::DEPTH];
  int count = 0;
  int64_t times = 0;

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

/* --- units: the node of [first, stop), an aligned part or as much of one as there is
 * --------------
 */

template <class OP>
__device__ __forceinline__ Branch<typename OP::State> fold_by_thread(const Operands<OP> &x,
                                                                     int64_t first, int64_t stop) {
  constexpr int times = OP::RUN / OP::LEAVES;
  typedef typename OP::State A;
  Waiting<OP> waiting;
  if (first >= stop) return nothing<OP>();
  int64_t i = first, done = 0;
#pragma unroll 1
  while (i < stop) {
    int64_t at[OP::ARRAYS];
    if (done % times == 0 && i + OP::RUN <= stop && x.begin(at, i, OP::RUN)) {
      A value = x.run(at, i);
      waiting.push(value, done / times);
      i += OP::RUN, done += times;
    } else {
      A value = x.some(i, stop);
      waiting.push(value, done);
      i += OP::LEAVES, done++;
    }
  }
  return {waiting.all(), 1};
}

/* A tile that ends early: of the warp's first lane. */
template <class OP>
__device__ __noinline__ void fold_rest(const Operands<OP> &x, const char *tile, int64_t first,
                                       int64_t stop, typename OP::State *to) {
  typedef typename OP::State A;
  const int64_t mine = first + (int64_t)lane_of() * OP::RUN;
  const int64_t most = mine + OP::RUN < stop ? mine + OP::RUN : stop;
  const int there = mine < stop;
  A value = OP::identity();
  if (there) {
    Waiting<OP> waiting;
#pragma unroll 1
    for (int64_t i = mine, done = 0; i < most; i += OP::LEAVES, done++) {
      A node;
      if constexpr (OP::TILE) {
        typename OP::template Leaves<OP::LEAVES> leaves;
        leaves.get(tile, (int)(i - mine));
        node = x.template fold_some<OP::LEAVES>(leaves, 0, i, (int)(most - i));
      } else {
        node = x.some(i, most);
      }
      waiting.push(node, done);
    }
    value = waiting.all();
  }
#pragma unroll 1
  for (int apart = 1; apart < GPR_WARP; apart *= 2) {
    const A right = shuffle_down(value, apart);
    const int is_there = __shfl_down_sync(GPR_ALL, there, apart);
    if (is_there && lane_of() % (2 * apart) == 0) OP::combine_apart(&value, &right, &value);
  }
  *to = value;
}

/* Of the warp's first lane. `tiles`: room for STAGES of them, of which all but the one that is
 * folded are on their way. */
template <class OP>
__device__ __forceinline__ Branch<typename OP::State> fold_by_warp(const Operands<OP> &x,
                                                                   int64_t first, int64_t stop,
                                                                   char *tiles) {
  typedef typename OP::State A;
  constexpr int64_t all = (int64_t)GPR_WARP * OP::RUN;
  constexpr int stages = OP::TILE ? OP::STAGES : 1;
  LanesWaiting<OP> waiting;
  if (first >= stop) return nothing<OP>();
  A rest = OP::identity();
  int64_t ahead = first;
  int to = 0, at = 0;
#pragma unroll 1
  for (int64_t i = first - (stages - 1) * all; i < stop; i += all) {
    if constexpr (OP::TILE) {
      if (ahead < stop) OP::bring(tiles + to * OP::TILE, x, ahead, stop);
      copies_begun();
      ahead += all;
      to = to + 1 == stages ? 0 : to + 1;
      if (i < first) continue;
      copies_came<stages - 1>();
    }
    const char *tile = tiles + at * OP::TILE;
    if (i + all <= stop) {
      typename OP::template Leaves<OP::RUN> leaves;
      const int64_t mine = i + (int64_t)lane_of() * OP::RUN;
      A value;
      if constexpr (OP::TILE) {
        leaves.get(tile, 0);
        value = x.template fold<OP::RUN>(leaves, mine);
      } else {
        value = x.some(mine, stop);
      }
      waiting.push(value);
    } else {
      fold_rest<OP>(x, tile, i, stop, &rest);
    }
    if (OP::TILE) __syncwarp(); /* all have read what the next copies go to */
    at = at + 1 == stages ? 0 : at + 1;
  }
  return {waiting.all(rest, (stop - first) % all != 0), 1};
}

/* --- blocks --------------------------------------------------------------------------------------
 */

template <class OP>
__device__ __noinline__ void finish_operator(const gpr_operator_args &a, int64_t o,
                                             const Branch<typename OP::State> *root) {
  const int dims = (int)(a.kept + a.reduced), width = dims + 1;
  const int64_t *numbers = a.far ? a.far : a.near, *shape = numbers + OP::STREAMS + OP::RESULTS;
  const int64_t *steps = shape + dims + OP::ARRAYS * dims;
  const int64_t segment = a.starts ? quotient_of(o, a.per) : 0;
  int64_t at[OP::OUTS];
  o -= segment * a.per;
#pragma unroll
  for (int r = 0; r < OP::OUTS; r++) at[r] = segment * steps[r * width + dims];
#pragma unroll 1
  for (int d = (int)a.kept - 1; d >= 0; d--) {
    const int64_t over = d ? quotient_of(o, shape[d]) : 0, here = o - over * shape[d];
#pragma unroll
    for (int r = 0; r < OP::OUTS; r++) at[r] += here * steps[r * width + d];
    o = over;
  }
  typename OP::State value = root->value;
  if (a.has_initial) {
    typename OP::State left;
    memcpy(&left, a.initial, sizeof left);
    OP::combine_apart(&left, &value, &value);
  }
  OP::finish(value, numbers + OP::STREAMS, at);
}

/* The roots of `high` nodes for each of `wide` outputs, by a thread for each node. */
template <class OP>
__device__ __forceinline__ void fold_block(Branch<typename OP::State> *node, int x, int y, int wide,
                                           int high, bool is_mine) {
#pragma unroll 1
  for (int apart = 1; apart < high; apart *= 2) {
    __syncthreads();
    if (is_mine && y % (2 * apart) == 0 && y + apart < high)
      join<OP>(node[y * wide + x], node[(y + apart) * wide + x]);
  }
}

/* The node of some neighbours in memory, which lie `wide` apart, several at a time. */
template <class OP>
__device__ __noinline__ void fold_nodes(const Branch<typename OP::State> *from, int64_t first,
                                        int64_t stop, int wide, Branch<typename OP::State> *to) {
  typedef typename OP::State A;
  constexpr int many = sizeof(A) <= 8 ? 16 : sizeof(A) <= 32 ? 8 : 2;
  Waiting<OP> waiting;
  *to = nothing<OP>();
  int64_t done = 0;
#pragma unroll 1
  for (int64_t i = first; i < stop; i += many) {
    Branch<A> some[many];
#pragma unroll
    for (int j = 0; j < many; j++) {
      some[j].there = 0;
      if (i + j < stop) some[j] = from[(i + j) * wide];
    }
#pragma unroll 1
    for (int j = 0; j < many; j++)
      if (some[j].there) waiting.push(some[j].value, done++);
  }
  if (done) *to = {waiting.all(), 1};
}

/* Of `many` neighbouring parts' nodes the roots for `wide` outputs: node[column] of the first row,
 * by a thread for an output and some of the parts. */
template <class OP>
__device__ __noinline__ void fold_parts(const Branch<typename OP::State> *from, int64_t many,
                                        int wide, Branch<typename OP::State> *node) {
  const int column = threadIdx.x % wide, row = threadIdx.x / wide, rows = OP::THREADS / wide;
  int64_t each = 1;
  while (each * rows < many) each *= 2;
  const int64_t first = row * each, stop = first + each < many ? first + each : many;
  fold_nodes<OP>(from + column, first, stop, wide, &node[row * wide + column]);
  fold_block<OP>(node, column, row, wide, rows, true);
}

template <class OP, int UNIT>
__global__ void __launch_bounds__(OP::THREADS, OP::BLOCKS)
    operate(const __grid_constant__ gpr_operator_args a) {
  typedef Branch<typename OP::State> B;
  constexpr int least = UNIT == 1 ? (int)OP::LEAVES : GPR_WARP * (int)OP::RUN;
  constexpr int tiles = UNIT == 1 ? 0 : OP::THREADS / GPR_WARP * OP::STAGES * OP::TILE;
  constexpr int room = tiles > OP::THREADS * (int)sizeof(B) ? tiles : OP::THREADS * (int)sizeof(B);
  __shared__ uint4 shared[(room + 15) / 16];
  B *const node = (B *)shared;
  char *const of_warp = (char *)shared + tiles / (OP::THREADS / GPR_WARP) * warp_of();
  const int unit = threadIdx.x / UNIT, high = (int)a.rows;
  const int wide = (int)(a.team > 0 ? a.team : -a.team);
  const int x = a.team > 0 ? unit % wide : unit / high, y = a.team > 0 ? unit / wide : unit % high;
  const bool leads = threadIdx.x % UNIT == 0 && y < high;
  for (int64_t b = blockIdx.x; b < a.tiles * a.split; b += gridDim.x) {
    const int64_t part = quotient_of(b, a.tiles), tile = b - part * a.tiles, o = tile * wide + x;
    B root = nothing<OP>();
    if (o < a.outputs && y < high) {
      const Operands<OP> operands(a, o);
      int64_t share = least;
      while (share * high * a.split < operands.count) share *= 2;
      const int64_t first = (part * high + y) * share;
      const int64_t stop = first + share < operands.count ? first + share : operands.count;
      if constexpr (UNIT == 1)
        root = fold_by_thread<OP>(operands, first, stop);
      else
        root = fold_by_warp<OP>(operands, first, stop, of_warp);
    }
    __syncthreads();
    if (leads) node[y * wide + x] = root;
    fold_block<OP>(node, x, y, wide, high, leads);
    if (a.split == 1) {
      if (leads && y == 0 && o < a.outputs) finish_operator<OP>(a, o, &node[x]);
      __syncthreads();
      continue;
    }
    /* The last block of a group folds its nodes, and the last of those the groups'. */
    const int64_t groups = quotient_of(a.split + a.group - 1, a.group);
    uint32_t *const ticket = (uint32_t *)a.scratch + tile * (groups > 1 ? groups + 1 : 1);
    B *of_parts = (B *)((char *)a.scratch + a.nodes) + tile * (a.split + groups) * wide;
    int64_t many = a.split;
    if (leads && y == 0) of_parts[part * wide + x] = node[x];
    if (groups > 1) {
      B *const of_groups = of_parts + a.split * wide;
      const int64_t group = quotient_of(part, a.group), first = group * a.group;
      many = first + a.group < a.split ? a.group : a.split - first;
      if (!is_last_of(ticket + 1 + group, (int)many)) continue;
      fold_parts<OP>(of_parts + first * wide, many, wide, node);
      if (threadIdx.x < wide) of_groups[group * wide + threadIdx.x] = node[threadIdx.x];
      of_parts = of_groups, many = groups;
    }
    if (!is_last_of(ticket, (int)many)) continue;
    fold_parts<OP>(of_parts, many, wide, node);
    const int64_t of = tile * wide + threadIdx.x;
    if (threadIdx.x < wide && of < a.outputs) finish_operator<OP>(a, of, &node[threadIdx.x]);
    __syncthreads();
  }
}

GPR_CLOSE
#endif
