/* Filling of the pinned ring by several threads: pieces of a plan, converted on the way. */
#ifndef GPR_FILL_H
#define GPR_FILL_H

#include <stdatomic.h>

#include "../threads.h"
#include "workspace.h"

typedef struct gpr_filling {
  const gpr_plan *plan;
  char *ring;
  int bytes;          /* of an element in the row's dtype */
  int64_t each, most; /* elements of one filling, and fillings of a whole piece */
  int64_t pieces;     /* that were opened */
  int64_t start[SLOTS], count[SLOTS];
  atomic_llong next, all, filled[SLOTS]; /* fillings */
  atomic_int ended;
  gpr_team team;
} gpr_filling;

void gpr_filling_open(gpr_filling *f, const gpr_plan *plan, char *ring, int bytes);
/* Has the pool's threads help, in so many pieces at most. Else others call gpr_filling_one(). */
void gpr_filling_offer(gpr_filling *f, int64_t elements);
void gpr_filling_close(gpr_filling *f);

/* Opens the next slot of the ring, which is free, for elements [start, start + n): all of a piece,
 * but for the last. */
void gpr_filling_piece(gpr_filling *f, int64_t start, int64_t n);
/* No more pieces come. */
void gpr_filling_end(gpr_filling *f);
/* Whether the piece of that number is there. */
int gpr_filling_is_there(gpr_filling *f, int64_t piece);

/* Fills one stretch of the ring, if one is free to be filled. Any thread may. */
int gpr_filling_one(gpr_filling *f);

#endif
