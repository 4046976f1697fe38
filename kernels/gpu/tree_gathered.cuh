/* The one tree of outputs whose elements do not lie in the order of their index: a block copies an
 * aligned part to shared memory in the order in which it lies, and folds it there in its own. */
#ifndef GPR_TREE_GATHERED_CUH
#define GPR_TREE_GATHERED_CUH

#include "climb.cuh"
#include "tree_staged.cuh"

GPR_OPEN

/* A part has a power of two of leaves. A row of it is what is numbered inside the dimension whose
 * elements lie closest: of so many rows those lie side by side, and so many bytes of them are read
 * together, or more where rows are short. */
enum { TREE_PART_LEAST = 1024, TREE_ROWS_LEAST = 8, TREE_ROWS_BYTES = 64 };

template <class OP, class X> struct PartOfRows {
  typedef typename OP::Bits Bits;
  enum { LEAF = OP::LEAF, HIGH = OP::STAGED_THREADS / (TREE_ROWS_BYTES / LEAF) };
  const X &x;
  int64_t first; /* leaf of the output */
  int leaves;

  __device__ __forceinline__ int64_t begin_of(int64_t row) const {
    const gpr_axes_args &a = x.a;
    return x.base[0] + offset_of(a.shape + a.kept, a.strides + a.kept, a.reduced - a.boxed, row);
  }
  __device__ __forceinline__ int64_t inside(int i) const {
    const gpr_axes_args &a = x.a;
    const int dim = a.kept + a.reduced - a.boxed;
    return offset_of(a.shape + dim, a.strides + dim, a.boxed, i);
  }
  /* Numbers come past the registers; of smaller ones several are on their way at once. */
  __device__ __forceinline__ void copy(char *stage) const {
    constexpr int U = LEAF < 4 ? 8 : 1;
    const int box = (int)x.a.box;
    int high = HIGH;
    while (high > 1 && high / 2 >= box) high /= 2;
    const int across = OP::STAGED_THREADS / high, y = (int)threadIdx.x / across;
    const int64_t stop = quotient_of(first + leaves + box - 1, box);
    int64_t row = quotient_of(first, box) + threadIdx.x % across, from = 0;
    int i = y;
    if (row < stop) from = begin_of(row);
#pragma unroll 1
    while (row < stop) {
      Bits loaded[U];
      int to[U];
#pragma unroll
      for (int u = 0; u < U; u++) {
        const int64_t leaf = row * box + i - first;
        const bool is_mine = i < box && row < stop && leaf >= 0 && leaf < leaves;
        to[u] = is_mine ? (int)leaf * LEAF : -1;
        if constexpr (LEAF < 4) {
          if (is_mine) loaded[u] = __ldg((const Bits *)(from + inside(i)));
        } else {
          if (is_mine) copy_one<Bits>(stage, to[u], (const char *)from + inside(i));
        }
        i += high;
        if (i >= box) {
          i = y;
          row += across;
          if (row < stop) from = begin_of(row);
        }
      }
      if constexpr (LEAF < 4)
#pragma unroll
        for (int u = 0; u < U; u++)
          if (to[u] >= 0) *(Bits *)(stage + to[u]) = loaded[u];
    }
    copies_begun();
    own_copies_came<0>();
  }
};

/* `parts` of `share` leaves are an output's. */
struct PartsCut {
  int64_t share, parts;
  void *tickets, *nodes; /* climb.cuh's, of each output's parts */
};
template <class OP, class X, class ARGS, class Finish>
__device__ __forceinline__ void fold_gathered(const ARGS &a, const PartsCut &cut,
                                              StageRoom<OP> &room, const Finish &finish) {
  typedef Staged<OP> S;
  typedef typename OP::State A;
  for (int64_t b = blockIdx.x; b < a.outputs * cut.parts; b += gridDim.x) {
    const int64_t o = quotient_of(b, cut.parts), part = b - o * cut.parts, first = part * cut.share;
    const X x(a, o);
    const int leaves = (int)(x.count - first < cut.share ? x.count - first : cut.share);
    S s = {(char *)room.leaves, (A *)room.nodes, (A *)room.leaves, 1, leaves, 1};
    PartOfRows<OP, X>{x, first, leaves}.copy(s.stage);
    __syncthreads();
    int many = s.fold_units(x, 0);
    __syncthreads();
#pragma unroll 1
    while (many > 1) {
      many = s.fold_nodes(many);
      __syncthreads();
    }
    Branch<A> root = {s.node[0], 1};
    if (warp_of() == 0 &&
        climb<Apart<OP>>(root.value, part, cut.parts, (A *)cut.nodes + o * climb_nodes(cut.parts),
                         (uint32_t *)cut.tickets + o * climb_tickets(cut.parts)) &&
        lane_of() == 0)
      finish(o, &root);
    __syncthreads();
  }
}

GPR_CLOSE
#endif
