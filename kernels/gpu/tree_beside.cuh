/* Rows of a box that are longer than a part of it, while what follows each other in memory are the
 * same places of neighbouring rows: a block copies a part of each of some neighbours, so that what
 * it reads at a time lies close together. Products of (649, 15867, 20) floats whose dimensions lie
 * the other way round took 6.0 ms on an H200 by a row's part each, and take 1.1, of (90, 7, 40000)
 * 559 µs and 165. */
#pragma once

#include "tree_gathered.cuh"

GPR_OPEN

/* A part belongs to the row that its first leaf is in. Whole ones are panels: of a.across
 * neighbours the k-th each. The last part, if it is cut, is by itself. */
struct PanelsCut {
  int64_t box, count, share;
  int wide;
  int64_t rows = quotient_of(count, box), whole = quotient_of(count, share); /* whole: parts */
  int64_t groups = quotient_of(rows + wide - 1, wide); /* of rows that a block takes parts of */
  /* As many for each group as a row has parts, at most: all groups' first ones, which lie side by
   * side, then all second ones. */
  GPR_DEVICE int64_t panels() const { return groups * quotient_of(box + share - 1, share); }
  /* The k-th part of a row; -1: it has no whole one. */
  GPR_DEVICE int64_t part_of(int64_t row, int64_t k) const {
    const int64_t part = quotient_of(row * box + share - 1, share) + k;
    return row < rows && part < whole && part * share < (row + 1) * box ? part : -1;
  }
};

template <class OP, class X> struct Panel {
  typedef typename OP::Bits Bits;
  enum { LEAF = OP::LEAF, THREADS = OP::STAGED_THREADS, LOADS = 8 };
  const PanelsCut &cut;
  int64_t item;
  int64_t k = quotient_of(item, cut.groups), row = (item - k * cut.groups) * cut.wide; /* first */

  GPR_DEVICE int64_t part_of(int r) const { return cut.part_of(row + r, k); }
  GPR_DEVICE static int pitch(int64_t share) { return (int)share + 16 / LEAF; }

  /* The k-th parts begin up to `share` apart in their rows, and may end in the next ones. Threads
   * of all rows go through places k·share, k·share + 1, … at once, each through those that are its
   * part's. */
  GPR_DEVICE void copy(const PartOfRows<OP, X> &rows, char *stage) const {
    const int r = threadIdx.x % cut.wide, y = threadIdx.x / cut.wide, step = THREADS / cut.wide,
              share = (int)cut.share, box = (int)cut.box;
    const int64_t part = part_of(r);
    if (part < 0) return;
    int low = (int)(part * share - (row + r) * box), first = (int)k * share + y;
    GPR_ROLLED(int64_t of = row + r; low + share > 0; of++, low -= box, first = y) {
      PlacesApart<2> at(rows.begin_of(of), rows.dims_inside(), rows.x.a.boxed, first, step);
      const int stop = least(low + share, box);
      const uint32_t many = (uint32_t)(stop - low);
      copy_pieces<Bits, LOADS>(
          stage, r * pitch(share) - low, first, stop, step,
          [=](int i) { return (uint32_t)(i - low) < many; }, [&](int) { return at.place; },
          [&] { at.go(); });
    }
  }
};

GPR_CLOSE
