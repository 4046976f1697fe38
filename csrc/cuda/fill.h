/* Filling of the pinned ring by several threads: pieces of a plan, converted on the way. */
#pragma once

#include <stdatomic.h>

#include "../threads.h"
#include "workspace.h"

typedef struct gpr_filling {
  char *ring;
  int64_t pieces; /* that were opened */
  struct {
    const gpr_plan *plan;
    int64_t start, n, wanted; /* elements, and fillings */
    int bytes;                /* of an element in the row's dtype */
  } slots[SLOTS];
  atomic_llong next, all, filled[SLOTS]; /* fillings: to be taken, opened, done of a slot's */
  atomic_int ended;
  gpr_team team;
} gpr_filling;

void gpr_filling_open(gpr_filling *f, char *ring);
/* Has the pool's threads help, with this plan and others. Else somebody calls gpr_filling_one(). */
void gpr_filling_offer(gpr_filling *f, const gpr_plan *plan);
void gpr_filling_close(gpr_filling *f);

/* Opens the next slot of the ring, which is free, for elements [start, start + n) of the plan,
 * which stays until they are there; the piece's number. is_last: no more pieces come. */
int64_t gpr_filling_piece(gpr_filling *f, const gpr_plan *plan, int64_t start, int64_t n,
                          int is_last);
void gpr_filling_end(gpr_filling *f);
/* Whether the piece of that number is there, and where. */
int gpr_filling_is_there(gpr_filling *f, int64_t piece);
char *gpr_filling_place(const gpr_filling *f, int64_t piece);

/* Fills one stretch of the ring, if one is free to be filled. Any thread may. */
int gpr_filling_one(gpr_filling *f);
