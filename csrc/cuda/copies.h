/* Elements of the host on their way to a device: of one plan after the other, without a gap, so
 * that the copy engine goes on while what has come is folded. */
#ifndef GPR_COPIES_H
#define GPR_COPIES_H

#include "device.h"

enum { GPR_COPIES_MOST = 4 }; /* plans under way */

typedef struct gpr_copies gpr_copies;

/* The caller's. All but closing is done where its device was entered. */
gpr_status gpr_copies_open(int device, gpr_copies **copies);
void gpr_copies_close(gpr_copies *copies);

/* Adds a plan without axes, of host memory: its elements go to `to` on the device, contiguous,
 * native and of the row's dtype. */
gpr_status gpr_copies_add(gpr_copies *copies, const gpr_plan *plan, void *to);
/* How many of the plans that were added are there, in their order. */
int64_t gpr_copies_done(const gpr_copies *copies);

/* Does what there is to do; *busy is 0 where that was nothing. */
gpr_status gpr_copies_step(gpr_copies *copies, int *busy);

#endif
