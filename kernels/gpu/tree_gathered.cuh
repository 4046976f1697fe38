/* The one tree of outputs whose elements do not lie in the order of their index, and of few tall
 * columns: a block copies an aligned part to shared memory in the order in which it
 * lies, and folds it there in its own. */
#ifndef GPR_TREE_GATHERED_CUH
#define GPR_TREE_GATHERED_CUH

#include "climb.cuh"
#include "tree_staged.cuh"

GPR_OPEN

/* What a block copies (a.packets): outputs behind each other; or parts of an output, in lines, by
 * rows or of neighbouring long rows (tree_beside.cuh), or of columns. */
enum { TREE_BEHIND, TREE_BY_LINES, TREE_BY_ROWS, TREE_BY_PANELS, TREE_BY_COLUMNS };
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
/* Where every step-th of what some dimensions number lies, in bytes. Digits of the DIGITS innermost
 * are added up, and divisions are left to where the others change: to work places out was most of
 * what there was to do. Of (256, 32768, 4) doubles whose second dimension lies closest products
 * took 289 µs on an H200 where each row's place was found by divisions, and take 243. */
template <int DIGITS> struct PlacesApart {
  struct Digit {
    int size, left, rest; /* left: until it ends; rest: of a step */
    int64_t carry;        /* bytes, from its end to the next one's start */
  } digit[DIGITS];
  const gpr_axes_dim *dim;
  int many, far;                               /* far: of a step, what those digits do not hold */
  int64_t number, step, length, apart, at, on; /* bytes: apart, at, on */

  /* Of the innermost dimension there are `length` pieces, `apart` bytes from each other. */
  __device__ __forceinline__ PlacesApart(const gpr_axes_dim *dim, int many, int64_t number,
                                         int step, int64_t length, int64_t apart)
      : dim(dim), many(many), number(number), step(step), length(length), apart(apart), on(0) {
    int64_t over = number, bytes = apart;
    far = step;
#pragma unroll
    for (int d = 0; d < DIGITS; d++) {
      const bool ends = d + 1 < many; /* the outermost is not left */
      const int64_t size = !ends ? INT32_MAX : d ? dim[many - 1 - d].size : length;
      const int64_t above = ends ? quotient_of(over, size) : 0;
      const int64_t left = ends ? size - (over - above * size) : size;
      const int64_t next = ends ? dim[many - 2 - d].stride : 0;
      const int fit = (int)least(size, (int64_t)INT32_MAX), whole = ends ? far / fit : 0;
      digit[d] = {fit, (int)least(left, (int64_t)INT32_MAX), far - whole * fit,
                  next - size * bytes};
      on += digit[d].rest * bytes;
      over = above, bytes = next, far = whole;
    }
    at = find(dim, many, number, length, apart);
  }
  __device__ __forceinline__ PlacesApart(const gpr_axes_dim *dim, int many, int64_t number,
                                         int step)
      : PlacesApart(dim, many, number, step, many ? dim[many - 1].size : 1,
                    many ? dim[many - 1].stride : 0) {}
  static __device__ __noinline__ int64_t find(const gpr_axes_dim *dim, int many, int64_t number,
                                              int64_t length, int64_t apart) {
    if (many < 2) return number * apart;
    const int64_t above = quotient_of(number, length);
    return offset_of<&gpr_axes_dim::stride>(dim, many - 1, above) +
           (number - above * length) * apart;
  }
  __device__ __forceinline__ int64_t next() {
    const int64_t here = at;
    at += on, number += step;
    bool carried = false;
#pragma unroll
    for (int d = 0; d < DIGITS; d++) {
      digit[d].left -= digit[d].rest + carried;
      carried = digit[d].left <= 0;
      digit[d].left += carried ? digit[d].size : 0;
      at += carried ? digit[d].carry : 0;
    }
    if (many > DIGITS && (carried || far)) at = find(dim, many, number, length, apart);
    return here;
  }
};

/* Pieces i, i + step, … of those in [low, stop) to their places in the stage, where the first of
 * all is number `place`. What is on its way past the registers is waited for by who calls this; of
 * small ones LOADS go through them at a time. next() is where the next one lies. */
template <class Piece, int LOADS, class Next>
__device__ __forceinline__ void copy_every(char *stage, int place, int i, int step, int low,
                                           int stop, Next next) {
  const auto is_there = [=](int i) { return (uint32_t)(i - low) < (uint32_t)(stop - low); };
  const auto to = [=](int i) { return (place + i) * (int)sizeof(Piece); };
  if constexpr (sizeof(Piece) < 4) {
#pragma unroll 1
    for (; i < stop; i += LOADS * step) {
      Piece loaded[LOADS];
#pragma unroll
      for (int u = 0; u < LOADS; u++) {
        const int64_t from = next();
        if (is_there(i + u * step)) loaded[u] = __ldg((const Piece *)from);
      }
#pragma unroll
      for (int u = 0; u < LOADS; u++)
        if (is_there(i + u * step)) *(Piece *)(stage + to(i + u * step)) = loaded[u];
    }
  } else {
#pragma unroll 4
    for (; i < stop; i += step) {
      const int64_t from = next();
      if (i >= low) copy_one<Piece>(stage, to(i), (const char *)from);
    }
  }
}

template <class OP, class X> struct PartOfRows {
  typedef typename OP::Bits Bits;
  enum { LEAF = OP::LEAF };
  const X &x;
  int64_t first; /* leaf of the output */
  int leaves;

  __device__ __forceinline__ int outer() const { return x.a.reduced - x.a.boxed; }
  __device__ __forceinline__ const gpr_axes_dim *outer_dims() const { return x.a.dim + x.a.kept; }
  __device__ __forceinline__ const gpr_axes_dim *dims_inside() const {
    return outer_dims() + outer();
  }
  __device__ __forceinline__ int64_t begin_of(int64_t row) const {
    return x.base[0] + offset_of<&gpr_axes_dim::stride>(outer_dims(), outer(), row);
  }
  __device__ __forceinline__ int64_t inside(int i) const {
    return offset_of<&gpr_axes_dim::stride>(dims_inside(), x.a.boxed, i);
  }
  /* In lines of a.box, whose elements lie closest as they are numbered, by BYTES. */
  template <int BYTES> __device__ __forceinline__ void copy_lines(char *stage) const {
    enum { THREADS = OP::STAGED_THREADS, EACH = BYTES / LEAF };
    PlacesApart<3> at(outer_dims(), x.a.reduced, first / EACH + threadIdx.x, THREADS,
                      (int)x.a.box / EACH, EACH > 1 ? (int64_t)BYTES : x.step[0]);
    copy_every<typename Store<BYTES>::type, TREE_LOADS>(
        stage, 0, threadIdx.x, THREADS, 0, leaves / EACH, [&] { return x.base[0] + at.next(); });
  }
  __device__ __forceinline__ void copy_lines(char *stage) const {
    const int bytes = x.a.pitch;
    if constexpr (LEAF < 16)
      if (bytes == 16) return copy_lines<16>(stage);
    if constexpr (LEAF < 8)
      if (bytes == 8) return copy_lines<8>(stage);
    if constexpr (LEAF < 4)
      if (bytes == 4) return copy_lines<4>(stage);
    copy_lines<LEAF>(stage);
  }
  /* Of `across` rows at a time; who calls this waits for what it copies. */
  __device__ __forceinline__ void copy_rows(char *stage, int across) const {
    const int64_t box = x.a.box, rows = quotient_of(first + leaves + box - 1, box);
    const int along = OP::STAGED_THREADS / across;
    PlacesApart<2> at(outer_dims(), outer(), quotient_of(first, box) + threadIdx.x % across,
                      across);
#pragma unroll 1
    while (at.number < rows) {
      const int64_t leaf = at.number * box - first, from = x.base[0] + at.next();
      const int low = leaf < 0 ? (int)-leaf : 0,
                stop = leaf + box < leaves ? (int)box : (int)(leaves - leaf);
      const int i = low + (int)threadIdx.x / across;
      const auto copy = [&](auto next) {
        copy_every<Bits, TREE_LOADS>(stage, (int)leaf, i, along, low, stop, next);
      };
      /* Of one dimension no places are to be worked out, which was most of what there was to do: 64
       * instructions an element of (433254, 28) turned round. */
      int j = i - along;
      if (x.a.boxed == 1)
        copy([&] { return from + (j += along) * x.step[0]; });
      else
        copy([&] { return (j += along) < stop ? from + inside(j) : from; });
    }
  }
  __device__ __forceinline__ void copy(char *stage) const {
    if (x.a.packets == TREE_BY_LINES)
      copy_lines(stage);
    else
      copy_rows(stage, x.a.across);
    copies_begun();
    own_copies_came<0>();
  }
};

/* Columns that have so many bytes of each row, one piece of memory. The rows of a unit are a pitch,
 * and after each pitch there is a gap. */
template <class OP> struct PartOfColumns {
  typedef typename OP::Bits Bits;
  enum { LEAF = OP::LEAF, THREADS = OP::STAGED_THREADS };
  const char *from;
  int row, apart, bytes, skew, pitch; /* apart: from one column to the next */

  __device__ __forceinline__ PartOfColumns(int64_t at, int row, int columns, int apart, int leaves)
      : from((const char *)at),
        row(row),
        apart(apart),
        bytes((leaves - 1) * row + (columns - 1) * apart + LEAF),
        skew((int)(at & 15)),
        pitch((int)OP::UNIT * row) {}
  __device__ __forceinline__ void copy(char *stage) const {
    const int end = skew + bytes, all = THREADS * 16;
    const int pitches = all / pitch, rest = all - pitches * pitch;
    const char *const packets = from - skew;
    int at = threadIdx.x * 16, inside = at % pitch, gaps = at / pitch * TREE_GAP;
#pragma unroll 4
    for (; at + 16 <= end; at += all) {
      copy_packet(stage + at + gaps, packets + at);
      const bool ends = inside + rest >= pitch;
      inside += ends ? rest - pitch : rest;
      gaps += (pitches + ends) * TREE_GAP;
    }
    for (; at < end; at += LEAF) /* less than a packet */
      *(Bits *)(stage + at + gaps) = __ldg((const Bits *)(packets + at));
    copies_begun();
    own_copies_came<0>();
  }
  /* A unit of column o, whose first leaf is i. */
  template <class Leaves>
  __device__ __forceinline__ void load(Leaves &leaves, const char *stage, int o, int i) const {
    const char *const unit = stage + i / (int)OP::UNIT * (pitch + TREE_GAP);
    leaves.load_column(unit, skew + o * apart, row, pitch);
  }
};

/* From a block's roots, the i-th of part part_of(i), if that is one, of output o + i·apart. */
template <class OP, class Finish, class PartOf>
__device__ __forceinline__ void climb_all(const Staged<OP> &s, const gpr_axes_args &a, int64_t o,
                                          int apart, const Finish &finish, const PartOf &part_of) {
  typedef typename OP::State A;
  A *const nodes = (A *)((char *)a.scratch + AXES_POOL);
#pragma unroll 1
  for (int i = warp_of(); i < s.outs; i += Staged<OP>::THREADS / GPR_WARP) {
    const int64_t part = part_of(i), to = o + i * apart;
    if (part < 0) continue;
    A root = s.node[i];
    if (climb<Apart<OP>>(root, part, a.split, nodes + to * climb_nodes(a.split),
                         (uint32_t *)a.scratch + to * climb_tickets(a.split)) &&
        lane_of() == 0)
      finish(to, root);
  }
  __syncthreads();
}

/* a.split parts of a.share leaves are an output's; a.neighbours outputs are columns, if they are,
 * a.where_step bytes from each other, of rows of a.step bytes. */
template <class OP, class X, class Finish>
__device__ __forceinline__ void fold_gathered(const gpr_axes_args &a, StageRoom<OP> &room,
                                              const Finish &finish) {
  typedef Staged<OP> S;
  const int outs = a.neighbours, row = (int)a.step;
  for (int64_t b = blockIdx.x; b < quotient_of(a.outputs, outs) * a.split; b += gridDim.x) {
    const int64_t of = quotient_of(b, a.split), part = b - of * a.split, o = of * outs;
    const int64_t first = part * a.share;
    const X x(a, o);
    const int leaves = (int)(x.count - first < a.share ? x.count - first : a.share);
    S s(room, outs, leaves, outs, leaves, 1);
    if (a.packets == TREE_BY_COLUMNS) {
      const PartOfColumns<OP> rows(x.base[0] + first * row, row, outs, (int)a.where_step, leaves);
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
    climb_all<OP>(s, a, o, 1, finish, [&](int) { return part; });
  }
}

GPR_CLOSE
#endif
