/* The one tree, once for each output: a thread folds an aligned part of an output's index to one
 * node, neighbouring threads' nodes fold in the block, and blocks' in the last one of them. */
#ifndef GPR_TREES_CUH
#define GPR_TREES_CUH

#include "load.cuh"
#include "outputs.cuh"

GPR_OPEN

/* A node, or nothing where the index has ended. */
template <class A> struct Branch {
  A value;
  int64_t there;
};
template <class Combine, class A>
__device__ __forceinline__ void join(Branch<A> &left, const Branch<A> &right) {
  if (right.there) left.value = Combine::combine(left.value, right.value);
}

enum { TREE_LEAVES = 8 }; /* that a thread loads at a time */

/* The leaves of one output; what does not count is the identity. */
template <class F, class LOAD> struct Leaves {
  typedef typename F::Element T;
  typedef typename F::Wide A;
  enum { TOGETHER = TREE_LEAVES };
  const gpr_axes_args &a;
  const char *base, *where;
  int64_t count;

  __device__ Leaves(const gpr_axes_args &args, int64_t o) : a(args), count(args.count) {
    int64_t begin = 0, kept = o;
    if (a.starts) {
      const int64_t per = quotient_of(a.outputs, a.segments), segment = quotient_of(o, per);
      kept = o - segment * per;
      begin = a.starts[segment];
      count = a.stops[segment] > begin ? a.stops[segment] - begin : 0;
    }
    const KeptPlace place = kept_place(a, kept);
    base = a.data + place.data + begin * a.strides[a.kept];
    where = a.where ? a.where + place.where + begin * a.where_strides[a.kept] : nullptr;
  }
  __device__ A leaf(int64_t i) const {
    const T x =
        Load<T, LOAD>::get(base + offset_of(a.shape + a.kept, a.strides + a.kept, a.reduced, i), a);
    const bool masked =
        where && !where[offset_of(a.shape + a.kept, a.where_strides + a.kept, a.reduced, i)];
    return masked || (a.skip && is_nan_or_nat(x)) ? F::Combine::identity() : wide(x);
  }
  /* The node of up to TOGETHER leaves from first on. */
  __device__ A node(int64_t first, int64_t stop) const {
    A value[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; i++)
      if (first + i < stop) value[i] = leaf(first + i);
#pragma unroll
    for (int apart = 1; apart < TOGETHER; apart *= 2)
#pragma unroll
      for (int i = 0; i + apart < TOGETHER; i += 2 * apart)
        if (first + i + apart < stop) value[i] = F::Combine::combine(value[i], value[i + apart]);
    return value[0];
  }
};

/* The node of [first, stop): an aligned part, or as much of one as there is. */
template <class F, class LOAD>
__device__ __forceinline__ Branch<typename F::Wide> fold_part(const Leaves<F, LOAD> &leaves,
                                                              int64_t first, int64_t stop) {
  typedef typename F::Wide A;
  enum { TOGETHER = TREE_LEAVES };
  A stack[60]; /* nodes that wait for their right sibling */
  int waiting = 0;
  if (first >= stop) return {F::Combine::identity(), 0};
  for (int64_t i = first, done = 0; i < stop; i += TOGETHER, done++) {
    A value = leaves.node(i, stop);
    for (int64_t place = done; place & 1; place >>= 1)
      value = F::Combine::combine(stack[--waiting], value);
    stack[waiting++] = value;
  }
  A value = stack[--waiting];
  while (waiting) value = F::Combine::combine(stack[--waiting], value);
  return {value, 1};
}

/* Of `entries` nodes, one behind the other `step` apart, the root. */
template <class F, class A>
__device__ __forceinline__ Branch<A> fold_nodes(Branch<A> *node, int64_t entries, int64_t step) {
  for (int64_t apart = 1; apart < entries; apart *= 2)
    for (int64_t i = 0; i + apart < entries; i += 2 * apart)
      join<typename F::Combine>(node[i * step], node[(i + apart) * step]);
  return node[0];
}

template <class F>
__device__ __forceinline__ void finish_tree(const gpr_axes_args &a, int64_t o,
                                            const Branch<typename F::Wide> &root) {
  const int64_t per = a.starts ? quotient_of(a.outputs, a.segments) : a.outputs;
  const int64_t first = a.starts ? quotient_of(o, per) * per : 0;
  const TreeValue<F> value[1] = {{root.value}};
  finish_values<F>(a, first + kept_place(a, o - first).out, value, a.count, 1);
}

template <class F, class LOAD>
__global__ void __launch_bounds__(AXES_THREADS) trees(const __grid_constant__ gpr_axes_args a) {
  typedef Branch<typename F::Wide> B;
  __shared__ B node[AXES_THREADS];
  const int wide = a.team > 0 ? a.team : -a.team, high = a.rows; /* powers of two */
  const int x = a.team > 0 ? threadIdx.x % wide : threadIdx.x / high;
  const int y = a.team > 0 ? threadIdx.x / wide : threadIdx.x % high;
  for (int64_t b = blockIdx.x; b < a.tiles * a.split; b += gridDim.x) {
    const int64_t part = quotient_of(b, a.tiles), tile = b - part * a.tiles, o = tile * wide + x;
    const bool mine = o < a.outputs && y < high;
    B root = {F::Combine::identity(), 0};
    if (mine) {
      const Leaves<F, LOAD> leaves(a, o);
      int64_t share = TREE_LEAVES;
      while (share * high * a.split < leaves.count) share *= 2;
      const int64_t first = (part * high + y) * share, stop = first + share;
      root = fold_part<F, LOAD>(leaves, first, stop < leaves.count ? stop : leaves.count);
    }
    __syncthreads();
    node[y * wide + x] = root;
    for (int apart = 1; apart < high; apart *= 2) {
      __syncthreads();
      if (y % (2 * apart) == 0 && y + apart < high)
        join<typename F::Combine>(node[y * wide + x], node[(y + apart) * wide + x]);
    }
    if (a.split == 1) {
      if (mine && y == 0) finish_tree<F>(a, o, node[x]);
      continue;
    }
    B *partial = (B *)((char *)a.scratch + AXES_POOL) + tile * a.split * wide;
    if (y == 0) partial[part * wide + x] = node[x];
    if (!is_last_of((uint32_t *)a.scratch + tile, a.split)) continue;
    if (mine && y == 0) finish_tree<F>(a, o, fold_nodes<F>(partial + x, a.split, wide));
  }
}

GPR_CLOSE
#endif
