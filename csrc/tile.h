/* A strided index in boxes, and the elements of a box where kernels take them. */
#pragma once

#include "plan.h"

/* Dimensions in C order: after `dim` whole, of it `step` at a time, before it one by one. */
typedef struct gpr_cut {
  int dim;
  int64_t inner, step, steps; /* elements of the dimensions after dim; steps along dim */
  int64_t most, boxes;        /* elements of a box, at most */
} gpr_cut;

/* Places [first, first + n) in C order, `step` of them along the dimension that is cut. */
typedef struct gpr_box {
  int64_t first, n, step;
  int64_t data, where; /* bytes from the first element of all to the box's */
} gpr_box;

/* As even as they go, of at most so many elements, at least 1; all along the last dimensions alone,
 * so many of them unless that is 0. */
gpr_cut gpr_cut_dims(const gpr_dims *dims, int64_t most, int last);
gpr_box gpr_box_at(const gpr_dims *dims, const gpr_cut *cut, int64_t number);

/* How a plan's elements come to tiles. */
typedef struct gpr_tiles {
  const gpr_plan *plan;
  gpr_cut kept, reduced;
  int direct;       /* they lie as a tile does */
  int side_by_side; /* if not, tiles have the outputs side by side, else the elements of each */
  int masked;       /* some do not count, and become the identity */
  int aligned;      /* elements, as their parts are */
  int brought;      /* direct, but kernels have to bring elements together, or to convert them */
  int runs;         /* direct, and kernels are told where the rows of several runs lie */
  int far;          /* the caches hold a part of all elements at most */
  const void *identity;
} gpr_tiles;

/* What a thread needs to make tiles of so many elements at most. */
typedef struct gpr_room {
  char *raw, *ready; /* 16 bytes an element */
  uint8_t *keep, *tally;
  int64_t *places; /* of GPR_SHORT lines */
  int64_t *counts; /* of the outputs of a block, from its tiles that have counts */
  int empty;       /* a tile's skip */
} gpr_room;
size_t gpr_room_bytes(int64_t elements, int64_t outputs);
gpr_room gpr_room_in(char *memory, int64_t elements, int64_t outputs, int counted);

/* The elements of both boxes. Where some do not count, what does is added to room->counts, and the
 * tile has these; without counts all do. */
gpr_tile gpr_tile_of(const gpr_tiles *tiles, const gpr_box *kept, const gpr_box *reduced,
                     gpr_room *room);
