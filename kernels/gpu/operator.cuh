/* A user's operator along the one tree, for any number of arrays of any layout.
 *
 * A unit folds an aligned part of an output's index to one node: a thread, where neighbouring
 * outputs lie side by side or are short, else a warp. Units' nodes fold in the block, and blocks'
 * in the last one of them, as trees.cuh has it. The operator is text: csrc has it from Python. */
#ifndef GPR_OPERATOR_CUH
#define GPR_OPERATOR_CUH

#include "flat_tree.cuh"
#include "operator_leaves.cuh"
#include "trees.cuh"

GPR_OPEN

/* --- units ---------------------------------------------------------------------------------------
 */

/* Nodes that wait for their right sibling: as a counter counts. */
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

template <class OP> struct Nothing {
  static __device__ __forceinline__ Branch<typename OP::State> branch() {
    return {OP::identity(), 0};
  }
};

/* The node of [first, stop) by a thread: an aligned part, or as much of one as there is. */
template <class OP>
__device__ __forceinline__ Branch<typename OP::State> fold_by_thread(const Operands<OP> &x,
                                                                     int64_t first, int64_t stop) {
  Waiting<OP> waiting;
  if (first >= stop) return Nothing<OP>::branch();
  int64_t done = 0;
#pragma unroll 1
  for (int64_t i = first; i < stop; i += OP::LEAVES, done++) {
    typename OP::State value = x.node(i, stop);
    waiting.push(value, done);
  }
  return {waiting.all(), 1};
}

/* A row that may end early; of the warp's first lane. */
template <class OP>
__device__ __forceinline__ typename OP::State fold_row(const Operands<OP> &x, int64_t first,
                                                       int64_t stop) {
  const int64_t mine = first + (int64_t)lane_of() * OP::LEAVES;
  int there = mine < stop;
  typename OP::State value = OP::identity();
  if (there) value = x.node(mine, stop);
#pragma unroll 1
  for (int apart = 1; apart < GPR_WARP; apart *= 2) {
    const typename OP::State right = shuffle_down(value, apart);
    const int is_there = __shfl_down_sync(GPR_ALL, there, apart);
    if (is_there && lane_of() % (2 * apart) == 0) OP::combine_apart(&value, &right, &value);
  }
  return value;
}

/* Rows over lanes, then lanes over rows; every lane has the node. */
template <class OP>
__device__ __forceinline__ typename OP::State fold_rows(const Operands<OP> &x, int64_t first) {
  typedef typename OP::State A;
  constexpr int rows = OP::ROWS, levels = rows == 8 ? 3 : rows == 4 ? 2 : rows == 2 ? 1 : 0;
  A v[rows];
  x.rows(first, v);
  if constexpr (rows >= 8) exchange<OP, 8>(v, 1);
  if constexpr (rows >= 4) exchange<OP, 4>(v, rows / 4);
  if constexpr (rows >= 2) exchange<OP, 2>(v, rows / 2);
  A all = v[0];
#pragma unroll 1
  for (int i = 0; i < 5; i++) {
    /* The lanes' places in a row that are left, then the rows, which the first lanes stand for. */
    const int mask = i < 5 - levels ? rows << i : 1 << (i - (5 - levels));
    const A other = shuffle_xor(all, mask);
    all = ordered<OP>(lane_of() & mask, all, other);
  }
  return all;
}

template <class OP>
__device__ __forceinline__ Branch<typename OP::State> fold_by_warp(const Operands<OP> &x,
                                                                   int64_t first, int64_t stop) {
  constexpr int64_t row = (int64_t)GPR_WARP * OP::LEAVES, group = OP::ROWS * row;
  Waiting<OP> waiting;
  if (first >= stop) return Nothing<OP>::branch();
  int64_t done = 0; /* rows */
#pragma unroll 1
  for (int64_t i = first; i < stop;) {
    typename OP::State value;
    if (i + group <= stop && x.a.reduced == 1 && !x.a.odd) {
      value = fold_rows<OP>(x, i);
      waiting.push(value, done / OP::ROWS);
      i += group;
      done += OP::ROWS;
    } else {
      value = fold_row<OP>(x, i, stop);
      waiting.push(value, done++);
      i += row;
    }
  }
  return {waiting.all(), 1};
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

/* Of `split` nodes for each of `wide` outputs the roots, by all threads of a block. */
template <class OP>
__device__ __noinline__ void fold_blocks(Branch<typename OP::State> *node, int split, int wide) {
  for (int64_t apart = 1; apart < split; apart *= 2) {
    const int64_t pairs = (split + 2 * apart - 1) / (2 * apart);
    for (int64_t t = threadIdx.x; t < pairs * wide; t += OP::THREADS) {
      const int64_t pair = quotient_of(t, wide), i = pair * 2 * apart;
      if (i + apart >= split) continue;
      Branch<typename OP::State> *left = node + i * wide + (t - pair * wide);
      const Branch<typename OP::State> *right = left + apart * wide;
      if (right->there) OP::combine_apart(&left->value, &right->value, &left->value);
    }
    __syncthreads();
  }
}

/* The same of one output, where each thread has neighbours and warps change what they have: what
 * lies in memory is read once. The root is node[0]'s. */
template <class OP>
__device__ __noinline__ void fold_one(Branch<typename OP::State> *node, int split) {
  typedef Branch<typename OP::State> B;
  __shared__ B of_warp[OP::THREADS / GPR_WARP];
  int each = 1;
  while (each * OP::THREADS < split) each *= 2;
  const int first = (int)threadIdx.x * each, left = split - first, mine = left < each ? left : each;
  B all = Nothing<OP>::branch();
#pragma unroll 1
  for (int apart = 1; apart < mine; apart *= 2)
    for (int i = 0; i + apart < mine; i += 2 * apart) {
      B &to = node[first + i];
      const B &right = node[first + i + apart];
      if (right.there) OP::combine_apart(&to.value, &right.value, &to.value);
    }
  if (mine > 0) all = node[first];
#pragma unroll 1
  for (int apart = 1; apart < GPR_WARP; apart *= 2) {
    const B right = shuffle_down(all, apart);
    if (right.there && lane_of() % (2 * apart) == 0)
      OP::combine_apart(&all.value, &right.value, &all.value);
  }
  if (lane_of() == 0) of_warp[warp_of()] = all;
  __syncthreads();
  if (threadIdx.x) return;
#pragma unroll 1
  for (int apart = 1; apart < OP::THREADS / GPR_WARP; apart *= 2)
    for (int i = 0; i + apart < OP::THREADS / GPR_WARP; i += 2 * apart) {
      const B &right = of_warp[i + apart];
      if (right.there) OP::combine_apart(&of_warp[i].value, &right.value, &of_warp[i].value);
    }
  node[0] = of_warp[0];
}

template <class OP, int UNIT>
__global__ void __launch_bounds__(OP::THREADS)
    operate(const __grid_constant__ gpr_operator_args a) {
  typedef Branch<typename OP::State> B;
  constexpr int least = UNIT == 1 ? OP::LEAVES : GPR_WARP * OP::LEAVES * OP::ROWS;
  __shared__ B node[OP::THREADS / UNIT];
  const int unit = threadIdx.x / UNIT, high = (int)a.rows;
  const int wide = (int)(a.team > 0 ? a.team : -a.team);
  const int x = a.team > 0 ? unit % wide : unit / high, y = a.team > 0 ? unit / wide : unit % high;
  for (int64_t b = blockIdx.x; b < a.tiles * a.split; b += gridDim.x) {
    const int64_t part = quotient_of(b, a.tiles), tile = b - part * a.tiles, o = tile * wide + x;
    const bool mine = o < a.outputs && y < high;
    B root = Nothing<OP>::branch();
    if (mine) {
      const Operands<OP> operands(a, o);
      int64_t share = least;
      while (share * high * a.split < operands.count) share *= 2;
      const int64_t first = (part * high + y) * share;
      const int64_t stop = first + share < operands.count ? first + share : operands.count;
      if constexpr (UNIT == 1)
        root = fold_by_thread<OP>(operands, first, stop);
      else
        root = fold_by_warp<OP>(operands, first, stop);
    }
    const bool leads = threadIdx.x % UNIT == 0;
    __syncthreads();
    if (leads && y < high) node[y * wide + x] = root;
    for (int apart = 1; apart < high; apart *= 2) {
      __syncthreads();
      if (leads && y % (2 * apart) == 0 && y + apart < high) {
        B &left = node[y * wide + x], &right = node[(y + apart) * wide + x];
        if (right.there) OP::combine_apart(&left.value, &right.value, &left.value);
      }
    }
    if (a.split == 1) {
      if (mine && leads && y == 0) finish_operator<OP>(a, o, &node[x]);
      continue;
    }
    B *partial = (B *)((char *)a.scratch + a.nodes) + tile * a.split * wide;
    if (leads && y == 0) partial[part * wide + x] = node[x];
    if (!is_last_of((uint32_t *)a.scratch + tile, (int)a.split)) continue;
    if (wide == 1)
      fold_one<OP>(partial, (int)a.split);
    else
      fold_blocks<OP>(partial, (int)a.split, wide);
    if (mine && leads && y == 0) finish_operator<OP>(a, o, partial + x);
  }
}

GPR_CLOSE
#endif
