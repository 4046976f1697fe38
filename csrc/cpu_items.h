/* A run of many outputs, item by item. */
#pragma once

#include "backend.h"
#include "cpu_cut.h"
#include "threads.h"

/* What one thread is at: items [item, stop), and in the first of them the box that is next. */
typedef struct gpr_lane {
  int number;
  int64_t item, stop, box, least;
  int opened;
  gpr_infinities infinite; /* met: an element may be that */
  char *states;
  gpr_room room;
} gpr_lane;

typedef struct gpr_axes_run {
  gpr_run base;
  const gpr_row *exact; /* where plan.row is a quick one, the row itself, else NULL */
  gpr_row quick_row;
  gpr_tiles tiles;
  gpr_shares shares;
  int64_t grain;                           /* items that a thread takes at a time */
  atomic_llong next, least, made, decided; /* made: huge pages of the results */
  atomic_int stop, infinite;
  uint64_t turned; /* kept dimensions that are read forwards, and whose results are then reversed */
  int begun, is_small; /* is_small: done before the clock would be read twice */
  gpr_team team;
  size_t slot_bytes, result_bytes, lane_bytes;
  char *states;                   /* one set a lane, then, if blocks are cut, one an item */
  char *rooms;                    /* one a lane */
  int64_t *counted;               /* one an output of an item, if blocks are cut */
  uint8_t *refused;               /* one an output of a block for each lane */
  _Alignas(16) char identity[64]; /* of the row */
  gpr_plan plan;
  gpr_axes axes;
} gpr_axes_run;

/* Whether blocks have several items. */
int gpr_is_cut(const gpr_axes_run *run);
int64_t gpr_outputs_of_block(const gpr_axes_run *run);
/* The states of a lane or, after those of all lanes, of an item. */
char *gpr_slots(const gpr_axes_run *run, int64_t set);

gpr_box gpr_block_at(const gpr_axes_run *run, int64_t number);
int gpr_has_means(const gpr_axes_run *run);

/* One tile more of the lane's item; how many elements. */
int64_t gpr_advance(gpr_axes_run *run, gpr_lane *lane);

/* Finishes a block of several items; the least number that counted in one of its outputs. */
int64_t gpr_merge_block(gpr_axes_run *run, gpr_lane *lane, int64_t number);
