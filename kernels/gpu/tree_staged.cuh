/* The one tree of many short outputs that lie behind each other: a block copies some of them to
 * shared memory, and folds all their packets, whosever they are, then all nodes of eight of those,
 * until there is one for each output. No thread waits for a longer one. */
#ifndef GPR_TREE_STAGED_CUH
#define GPR_TREE_STAGED_CUH

#include "tree_units.cuh"

GPR_OPEN

/* Bytes of a block's leaves, and of its nodes. */
enum { TREE_STAGE = 28 << 10, TREE_NODES_STAGE = 16 << 10, TREE_FAN_STAGE = 8 };

/* A thread's units of `many` for each output: which one, and of which output. */
struct UnitOf {
  int many, output, unit, outputs_on, units_on;
  __device__ __forceinline__ UnitOf(int each, int threads) : many(each) {
    output = (int)threadIdx.x / each, unit = (int)threadIdx.x - output * each;
    outputs_on = threads / each, units_on = threads - outputs_on * each;
  }
  __device__ __forceinline__ void go() {
    output += outputs_on, unit += units_on;
    if (unit >= many) unit -= many, output++;
  }
};

template <class OP, int N>
__device__ __forceinline__ typename OP::State fold_nodes_there(const typename OP::State *node,
                                                               int there) {
  if constexpr (N == 1) {
    return *node;
  } else {
    typename OP::State value = fold_nodes_there<OP, N / 2>(node, there);
    if (there > N / 2)
      value = OP::combine(value, fold_nodes_there<OP, N / 2>(node + N / 2, there - N / 2));
    return value;
  }
}

/* `wide` outputs of a block are one piece of memory. */
template <class OP, class X, class ARGS, class Finish>
__device__ __forceinline__ void fold_staged(const ARGS &a, int64_t wide, int64_t tiles,
                                            const Finish &finish) {
  typedef typename OP::State A;
  enum { THREADS = OP::STAGED_THREADS, PACKET = OP::PACKET };
  __shared__ uint4 stage[(TREE_STAGE + 64) / 16], room[TREE_NODES_STAGE / 16];
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t o = tile * wide;
    const X x(a, o);
    const int outs = (int)(a.outputs - o < wide ? a.outputs - o : wide), count = (int)x.count;
    const int skew = (int)(x.base[0] & 15), bytes = skew + outs * count * (int)OP::LEAF;
    const char *from = (const char *)(x.base[0] - skew);
    for (int at = threadIdx.x * 16; at < bytes; at += THREADS * 16)
      copy_ahead((char *)stage + at, from + at, bytes - at < 16 ? bytes - at : 16);
    copies_begun();
    own_copies_came<0>();
    __syncthreads();
    const bool is_even = (skew | count * (int)OP::LEAF) % 16 == 0;
    int many = (count + PACKET - 1) / PACKET;
    A *node = (A *)room, *other = (A *)stage;
    {
      UnitOf of(many, THREADS);
      for (int u = threadIdx.x; u < outs * many; u += THREADS, of.go()) {
        const int i = of.unit * PACKET, left = count - i;
        typename OP::template Leaves<PACKET> leaves;
        leaves.load_shared((const char *)stage + skew + (of.output * count + i) * (int)OP::LEAF,
                           is_even);
        leaves.settle();
        node[u] = fold_there<OP, PACKET>(x, leaves, i, 0, left < PACKET ? left : (int)PACKET);
      }
    }
#pragma unroll 1
    while (many > 1) {
      const int before = many;
      many = (many + TREE_FAN_STAGE - 1) / TREE_FAN_STAGE;
      __syncthreads();
      UnitOf of(many, THREADS);
#pragma unroll 1
      for (int u = threadIdx.x; u < outs * many; u += THREADS, of.go()) {
        const int first = of.unit * TREE_FAN_STAGE;
        other[u] =
            fold_nodes_there<OP, TREE_FAN_STAGE>(node + of.output * before + first, before - first);
      }
      A *const last = node;
      node = other, other = last;
    }
    __syncthreads();
    for (int r = threadIdx.x; r < outs; r += THREADS) {
      const Branch<A> root = {node[r], 1};
      finish(o + r, &root);
    }
    __syncthreads();
  }
}

GPR_CLOSE
#endif
