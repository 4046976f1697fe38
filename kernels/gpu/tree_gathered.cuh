/* The one tree of outputs whose elements do not lie in the order of their index, and of few tall
 * columns side by side: a block copies an aligned part to shared memory in the order in which it
 * lies, and folds it there in its own. */
#ifndef GPR_TREE_GATHERED_CUH
#define GPR_TREE_GATHERED_CUH

#include "climb.cuh"
#include "tree_staged.cuh"

GPR_OPEN

/* A part has a power of two of leaves. It is cut into rows of a box: what is numbered inside the
 * dimension whose elements lie closest, or that dimension itself, if nothing is. Of so many rows
 * neighbours are read together, so many bytes of them. */
enum { TREE_PART_LEAST = 1024, TREE_ROWS_LEAST = 8, TREE_ROWS_BYTES = 64, TREE_LOADS = 16 };
/* Lines side by side that are no longer go so, and others by packets (tree_warps.cuh): of 32 MiB of
 * lines of 9, 100, 2466 and 8000 floats, each followed by another that is left out, products took
 * 316, 94, 43 and 29 µs on an H200 by packets and 30, 22, 22 and 22 so; of bfloat16, of the first
 * three, 619, 244 and 67, and 46, 45 and 42; of 8000 38, and 50 by an earlier form of this. */
enum { TREE_LINE_BYTES = 32 << 10, TREE_LINE_SMALL = 8 << 10 };
/* Threads along a row of so many elements; the others are as many rows. Small numbers, which go
 * through registers, are several of a thread's. */
GPR_CONSTEXPR int tree_along(int64_t box, int leaf, int threads) {
  int along = threads / (TREE_ROWS_BYTES / leaf);
  const int64_t enough = leaf < 4 ? box / TREE_LOADS : box;
  while (along > 1 && along > enough) along /= 2;
  return along;
}
/* Where every THREADS-th element of lines lies: of one dimension of them steps are added up, since
 * to work places out was most of what there was to do. */
template <int THREADS, class Part> struct AlongLines {
  const Part &part;
  int64_t line, place, step, on, carry; /* bytes; from a line's end to the next one's start */
  int i, length, lines, rest;           /* on: so many lines, and elements */
  bool is_near;
  __device__ __forceinline__ AlongLines(const Part &part, int64_t from) : part(part) {
    const gpr_axes_args &a = part.x.a;
    length = (int)a.box;
    line = quotient_of(from, length), i = (int)(from - line * length);
    lines = THREADS / length, rest = THREADS - lines * length;
    is_near = a.reduced <= 2;
    const int64_t apart = a.reduced == 2 ? a.dim[a.kept].stride : 0;
    step = part.x.step[0];
    on = lines * apart + rest * step, carry = apart - length * step;
    place = part.begin_of(line) + i * step;
  }
  __device__ __forceinline__ int64_t next() {
    const int64_t here = place;
    i += rest, line += lines;
    const bool ends = i >= length;
    if (ends) i -= length, line++;
    if (is_near || !(ends || lines))
      place += ends ? on + carry : on;
    else
      place = part.begin_of(line) + i * step;
    return here;
  }
};

template <class OP, class X> struct PartOfRows {
  typedef typename OP::Bits Bits;
  enum { LEAF = OP::LEAF };
  const X &x;
  int64_t first; /* leaf of the output */
  int leaves;

  __device__ __forceinline__ int64_t begin_of(int64_t row) const {
    const gpr_axes_args &a = x.a;
    const int outer = a.reduced - a.boxed;
    return x.base[0] + offset_of<&gpr_axes_dim::stride>(a.dim + a.kept, outer, row);
  }
  __device__ __forceinline__ int64_t inside(int i) const {
    const gpr_axes_args &a = x.a;
    const int dim = a.kept + a.reduced - a.boxed;
    return offset_of<&gpr_axes_dim::stride>(a.dim + dim, a.boxed, i);
  }
  /* Elements i, i + along, … below stop of the row that begins at `from`, each so far in; the row's
   * first one would be leaf `leaf` of the part. */
  template <class Inside>
  __device__ __forceinline__ void copy_row(char *stage, int64_t from, int leaf, int i, int stop,
                                           int along, const Inside &inside) const {
    if constexpr (LEAF < 4) {
#pragma unroll 1
      for (; i < stop; i += TREE_LOADS * along) {
        Bits loaded[TREE_LOADS];
#pragma unroll
        for (int u = 0; u < TREE_LOADS; u++)
          if (i + u * along < stop) loaded[u] = __ldg((const Bits *)(from + inside(i + u * along)));
#pragma unroll
        for (int u = 0; u < TREE_LOADS; u++)
          if (i + u * along < stop) *(Bits *)(stage + (leaf + i + u * along) * LEAF) = loaded[u];
      }
    } else {
#pragma unroll 4
      for (; i < stop; i += along)
        copy_one<Bits>(stage, (leaf + i) * LEAF, (const char *)from + inside(i));
    }
  }
  /* In lines of a.box, whose elements lie closest as they are numbered. */
  __device__ __forceinline__ void copy_lines(char *stage) const {
    enum { THREADS = OP::STAGED_THREADS, U = LEAF < 4 ? (int)TREE_LOADS : 1 };
    AlongLines<THREADS, PartOfRows> at(*this, first + threadIdx.x);
    const auto next = [&] { return at.next(); };
    if constexpr (LEAF < 4) {
#pragma unroll 1
      for (int i = threadIdx.x; i < leaves; i += U * THREADS) {
        Bits loaded[U];
#pragma unroll
        for (int u = 0; u < U; u++)
          if (i + u * THREADS < leaves) loaded[u] = __ldg((const Bits *)next());
#pragma unroll
        for (int u = 0; u < U; u++)
          if (i + u * THREADS < leaves) *(Bits *)(stage + (i + u * THREADS) * LEAF) = loaded[u];
      }
    } else {
#pragma unroll 4
      for (int i = threadIdx.x; i < leaves; i += THREADS)
        copy_one<Bits>(stage, i * LEAF, (const char *)next());
    }
  }
  __device__ __forceinline__ void copy_rows(char *stage) const {
    const int64_t box = x.a.box, rows = quotient_of(first + leaves + box - 1, box);
    const int across = x.a.across, along = OP::STAGED_THREADS / across;
#pragma unroll 1
    for (int64_t row = quotient_of(first, box) + threadIdx.x % across; row < rows; row += across) {
      const int64_t leaf = row * box - first;
      const int begin = leaf < 0 ? (int)-leaf : 0,
                stop = leaf + box < leaves ? (int)box : (int)(leaves - leaf);
      const int i = begin + (int)threadIdx.x / across;
      /* Of one dimension no places are to be worked out, which was most of what there was to do: 64
       * instructions an element of (433254, 28) turned round. */
      if (x.a.boxed == 1)
        copy_row(stage, begin_of(row), (int)leaf, i, stop, along,
                 [&](int i) { return i * x.step[0]; });
      else
        copy_row(stage, begin_of(row), (int)leaf, i, stop, along, [&](int i) { return inside(i); });
    }
  }
  __device__ __forceinline__ void copy(char *stage) const {
    if (x.a.across)
      copy_rows(stage);
    else
      copy_lines(stage);
    copies_begun();
    own_copies_came<0>();
  }
};

/* Rows of some columns side by side, one piece of memory. The rows of a unit are a pitch, and after
 * each pitch there is a gap. */
template <class OP> struct PartOfColumns {
  enum { LEAF = OP::LEAF, THREADS = OP::STAGED_THREADS };
  const char *from;
  int columns, leaves, skew, pitch;

  __device__ __forceinline__ PartOfColumns(int64_t at, int columns, int leaves)
      : from((const char *)at),
        columns(columns),
        leaves(leaves),
        skew((int)(at & 15)),
        pitch((int)OP::UNIT * columns * LEAF) {}
  __device__ __forceinline__ void copy(char *stage) const {
    const int bytes = skew + leaves * columns * LEAF, all = THREADS * 16;
    const int pitches = all / pitch, rest = all - pitches * pitch;
    int at = threadIdx.x * 16, inside = at % pitch, gaps = at / pitch * TREE_GAP;
#pragma unroll 4
    for (; at < bytes; at += all) {
      copy_ahead(stage + at + gaps, from - skew + at, bytes - at < 16 ? bytes - at : 16);
      const bool ends = inside + rest >= pitch;
      inside += ends ? rest - pitch : rest;
      gaps += (pitches + ends) * TREE_GAP;
    }
    copies_begun();
    own_copies_came<0>();
  }
  /* A unit of column o, whose first leaf is i. */
  template <class Leaves>
  __device__ __forceinline__ void load(Leaves &leaves, const char *stage, int o, int i) const {
    const char *const unit = stage + i / (int)OP::UNIT * (pitch + TREE_GAP);
    leaves.load_column(unit, skew + o * LEAF, columns * LEAF, pitch);
  }
};

/* `parts` of `share` leaves are an output's; so many outputs are columns side by side, or one. */
struct PartsCut {
  int64_t share, parts;
  int columns;
  void *tickets, *nodes; /* climb.cuh's, of each output's parts */
};
template <class OP, class X, class ARGS, class Finish>
__device__ __forceinline__ void fold_gathered(const ARGS &a, const PartsCut &cut,
                                              StageRoom<OP> &room, const Finish &finish) {
  typedef Staged<OP> S;
  typedef typename OP::State A;
  const int outs = cut.columns;
  for (int64_t b = blockIdx.x; b < quotient_of(a.outputs, outs) * cut.parts; b += gridDim.x) {
    const int64_t of = quotient_of(b, cut.parts), part = b - of * cut.parts, o = of * outs;
    const int64_t first = part * cut.share;
    const X x(a, o);
    const int leaves = (int)(x.count - first < cut.share ? x.count - first : cut.share);
    S s = {(char *)room.leaves, (A *)room.nodes, (A *)room.leaves, outs, leaves, outs};
    if (outs > 1) {
      const PartOfColumns<OP> rows(x.base[0] + first * x.step[0], outs, leaves);
      rows.copy(s.stage);
      __syncthreads();
      s.fold_roots(s.fold_units(x, true, [&](typename S::Leaves &leaves, int o, int i) {
        rows.load(leaves, s.stage, o, i);
      }));
    } else {
      PartOfRows<OP, X>{x, first, leaves}.copy(s.stage);
      __syncthreads();
      s.fold_roots(s.fold_rows(x, 0));
    }
#pragma unroll 1
    for (int i = warp_of(); i < outs; i += S::THREADS / GPR_WARP) {
      Branch<A> root = {s.node[i], 1};
      if (climb<Apart<OP>>(root.value, part, cut.parts,
                           (A *)cut.nodes + (o + i) * climb_nodes(cut.parts),
                           (uint32_t *)cut.tickets + (o + i) * climb_tickets(cut.parts)) &&
          lane_of() == 0)
        finish(o + i, &root);
    }
    __syncthreads();
  }
}

GPR_CLOSE
#endif
