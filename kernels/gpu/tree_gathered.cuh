/* The one tree of outputs whose elements do not lie in the order of their index, and of few tall
 * columns: a block copies an aligned part to shared memory in the order in which it
 * lies, and folds it there in its own. */
#pragma once

#include "tree_staged.cuh"

GPR_OPEN

/* What a block copies (a.packets): parts of an output, in lines, by rows or of neighbouring long
 * rows (tree_beside.cuh), or of columns. */
enum { TREE_BY_LINES, TREE_BY_ROWS, TREE_BY_PANELS, TREE_BY_COLUMNS };
/* A part has a power of two of leaves. It is cut into rows of a box: what is numbered inside the
 * dimension whose elements lie closest, or that dimension itself, if nothing is. Of so many rows
 * neighbours are read together, so many bytes of them. */
enum { TREE_PART_LEAST = 1024, TREE_ROWS_LEAST = 8, TREE_ROWS_BYTES = 64, TREE_LOADS = 16 };
/* Lines side by side that are no longer go so, and others by packets (tree_warps.cuh): of 32 MiB of
 * lines of 9, 100, 2466 and 8000 floats, each followed by another that is left out, products took
 * 316, 94, 43 and 29 µs on an H200 by packets and 30, 22, 22 and 22 so. */
enum { TREE_LINE_BYTES = 32 << 10, TREE_LINE_SMALL = 8 << 10 };
/* Threads along a row of so many elements; the others are as many rows. Small numbers, which go
 * through registers, are several of a thread's. */
GPR_CONSTEXPR int tree_along(int64_t box, int leaf, int threads) {
  int along = threads / (TREE_ROWS_BYTES / leaf);
  const int64_t enough = leaf < 4 ? box / TREE_LOADS : box;
  while (along > 1 && along > enough) along /= 2;
  return along;
}
/* Where every step-th of what some dimensions number lies: the digits of the innermost are added
 * up, since to work places out was most of what there was to do. Of (256, 32768, 4) doubles
 * whose second dimension lies closest products took 289 µs on an H200 where divisions found each
 * row's place, and take 243. */
template <int DIGITS> struct PlacesApart {
  struct Digit {
    int size, left, rest; /* left: until it ends; rest: of a step */
    int64_t carry;        /* bytes, from its end to the next one's start */
    GPR_DEVICE bool go(int64_t &place, bool carried) {
      left -= rest + carried;
      const bool ends = left <= 0;
      left += ends ? size : 0;
      place += ends ? carry : 0;
      return ends;
    }
  } digit[DIGITS];
  int64_t place, on; /* an address; bytes of a step */
  const gpr_axes_dim *dim;
  int dims, far;         /* that those digits do not hold, and a step of what they number */
  int64_t number, begin; /* of them, and how far that lies */
  /* The innermost dimension has so many places, `apart` bytes from each other. */
  GPR_DEVICE PlacesApart(int64_t base, const gpr_axes_dim *dim, int many, int64_t first, int step,
                         int64_t size, int64_t apart)
      : place(base), on(0), dim(dim), dims(many - DIGITS), far(step), number(first), begin(0) {
    GPR_EACH(d, DIGITS) {
      const bool ends = d + 1 < many; /* the outermost is not left */
      const gpr_axes_dim next = ends ? dim[many - 2 - d] : gpr_axes_dim();
      const int fit = ends ? (int)least(size, (int64_t)INT32_MAX) : (int)INT32_MAX;
      const int64_t above = ends ? quotient_of(number, size) : 0, here = number - above * size;
      const int over = ends ? far / fit : 0;
      digit[d] = {fit, ends ? (int)least(size - here, (int64_t)INT32_MAX) : fit, far - over * fit,
                  (d + 1 < DIGITS ? next.stride : 0) - size * apart};
      place += here * apart, on += digit[d].rest * apart;
      number = above, far = over, size = next.size, apart = next.stride;
    }
    if (dims > 0) go_far();
  }
  GPR_DEVICE PlacesApart(int64_t base, const gpr_axes_dim *dim, int many, int64_t first, int step)
      : PlacesApart(base, dim, many, first, step, many ? dim[many - 1].size : 0,
                    many ? dim[many - 1].stride : 0) {}
  GPR_DEVICE void go_far() {
    const int64_t before = begin;
    begin = far_offset_of<&gpr_axes_dim::stride>(dim, dims, number);
    place += begin - before;
  }
  GPR_DEVICE void go() {
    bool carried = false;
    place += on;
    GPR_EACH(d, DIGITS) carried = digit[d].go(place, carried);
    if (!carried && !far) return;
    number += far + carried;
    go_far();
  }
};

/* Pieces i, i + step, … below stop to the stage, where piece 0 would be the place-th, as far as
 * they are there: from(i) is where one lies, and go() leads to the next one. Small ones go through
 * registers, LOADS at a time. */
template <class Piece, int LOADS, class There, class From, class Go>
GPR_DEVICE void copy_pieces(char *stage, int place, int i, int stop, int step, There is_there,
                            From from, Go go) {
  enum { BYTES = (int)sizeof(Piece) };
  if constexpr (BYTES < 4) {
    GPR_ROLLED(; i < stop; i += LOADS * step) {
      Piece loaded[LOADS];
      GPR_UNROLLED(int u = 0; u < LOADS; u++, go())
        if (is_there(i + u * step)) loaded[u] = __ldg((const Piece *)from(i + u * step));
      GPR_EACH(u, LOADS)
        if (is_there(i + u * step)) *(Piece *)(stage + (place + i + u * step) * BYTES) = loaded[u];
    }
  } else {
#pragma unroll 4
    for (; i < stop; i += step, go())
      if (is_there(i)) copy_one<Piece>(stage, (place + i) * BYTES, (const char *)from(i));
  }
}

template <class OP, class X> struct PartOfRows {
  typedef typename OP::Bits Bits;
  enum { LEAF = OP::LEAF };
  const X &x;
  int64_t first; /* leaf of the output */
  int leaves;

  GPR_DEVICE int outer() const { return x.a.reduced - x.a.boxed; }
  GPR_DEVICE const gpr_axes_dim *outer_dims() const { return x.a.dim + x.a.kept; }
  GPR_DEVICE const gpr_axes_dim *dims_inside() const { return outer_dims() + outer(); }
  GPR_DEVICE int64_t begin_of(int64_t row) const {
    return x.base[0] + offset_of<&gpr_axes_dim::stride>(outer_dims(), outer(), row);
  }
  GPR_DEVICE int64_t inside(int i) const {
    return offset_of<&gpr_axes_dim::stride>(dims_inside(), x.a.boxed, i);
  }
  /* Elements i, i + along, … below stop of the row that begins at `from`, each so far in; the row's
   * first one would be leaf `leaf` of the part. */
  template <class Inside>
  GPR_DEVICE void copy_row(char *stage, int64_t from, int leaf, int i, int stop, int along,
                           const Inside &inside) const {
    copy_pieces<Bits, TREE_LOADS>(
        stage, leaf, i, stop, along, [=](int i) { return i < stop; },
        [&](int i) { return from + inside(i); }, [] {});
  }
  template <int BYTES> GPR_DEVICE void copy_lines(char *stage, PlacesApart<3> &at) const {
    const int pieces = leaves * LEAF / BYTES;
    copy_pieces<typename Store<BYTES>::type, TREE_LOADS>(
        stage, 0, threadIdx.x, pieces, OP::STAGED_THREADS, [=](int i) { return i < pieces; },
        [&](int) { return at.place; }, [&] { at.go(); });
  }
  /* In lines of a.box, whose elements lie closest as they are numbered, by so many bytes. */
  GPR_DEVICE void copy_lines(char *stage) const {
    const int each = x.a.pitch > LEAF ? x.a.pitch / LEAF : 1, bytes = each * LEAF;
    PlacesApart<3> at(x.base[0], outer_dims(), x.a.reduced, quotient_of(first, each) + threadIdx.x,
                      OP::STAGED_THREADS, (int)x.a.box / each,
                      each > 1 ? (int64_t)bytes : x.step[0]);
    if constexpr (LEAF < 16)
      if (bytes == 16) return copy_lines<16>(stage, at);
    if constexpr (LEAF < 8)
      if (bytes == 8) return copy_lines<8>(stage, at);
    if constexpr (LEAF < 4)
      if (bytes == 4) return copy_lines<4>(stage, at);
    copy_lines<LEAF>(stage, at);
  }
  /* Of `across` rows at a time. */
  GPR_DEVICE void copy_rows(char *stage, int across) const {
    const int64_t box = x.a.box, rows = quotient_of(first + leaves + box - 1, box);
    const int along = OP::STAGED_THREADS / across;
    int64_t row = quotient_of(first, box) + threadIdx.x % across;
    PlacesApart<2> at(x.base[0], outer_dims(), outer(), row, across);
    GPR_ROLLED(; row < rows; row += across, at.go()) {
      const int64_t leaf = row * box - first, from = at.place;
      const int begin = leaf < 0 ? (int)-leaf : 0,
                stop = leaf + box < leaves ? (int)box : (int)(leaves - leaf);
      const int i = begin + (int)threadIdx.x / across;
      /* Of one dimension no places are to be worked out, which was most of what there was to do: 64
       * instructions an element of (433254, 28) turned round. */
      if (x.a.boxed == 1)
        copy_row(stage, from, (int)leaf, i, stop, along, [&](int i) { return i * x.step[0]; });
      else
        copy_row(stage, from, (int)leaf, i, stop, along, [&](int i) { return inside(i); });
    }
  }
};

GPR_CLOSE
