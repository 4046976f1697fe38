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

  /* Elements [low, high) of the row that begins at `from`, every `step`-th from `first` on: the
   * row's first one would be leaf `place` of the stage. */
  GPR_DEVICE static void copy_some(const PartOfRows<OP, X> &rows, int64_t from, int first, int step,
                                   int low, int high, char *stage, int place) {
    PlacesApart<2> at(from, rows.dims_inside(), rows.x.a.boxed, first, step);
    const uint32_t many = (uint32_t)(high - low);
    copy_pieces<Bits, LOADS>(
        stage, place, first, high, step, [=](int i) { return (uint32_t)(i - low) < many; },
        [&](int) { return at.place; }, [&] { at.go(); });
  }
  /* The k-th parts begin up to `share` apart in their rows. Threads of all rows go through places
   * k·share, k·share + 1, … at once, each through those that are its part's. */
  GPR_DEVICE void copy(const X &x, char *stage) const {
    const PartOfRows<OP, X> rows = {x, 0, 0};
    const int wide = cut.wide, r = threadIdx.x % wide, y = threadIdx.x / wide,
              step = THREADS / wide, share = (int)cut.share, box = (int)cut.box;
    const int64_t part = part_of(r);
    if (part >= 0) {
      const int low = (int)(part * share - (row + r) * box), high = low + share;
      const int place = r * pitch(share) - low;
      copy_some(rows, rows.begin_of(row + r), (int)k * share + y, step, low,
                high < box ? high : box, stage, place);
      if (high > box)
        copy_some(rows, rows.begin_of(row + r + 1), y, step, 0, high - box, stage, place + box);
    }
  }
};

GPR_CLOSE
