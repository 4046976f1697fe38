/* Elements of the host on their way to a device: of one plan after the other, without a gap, so
 * that the copy engine goes on while what has come is folded. */
#pragma once

#include "device.h"
#include "gpu.h"

enum { GPR_COPIES_MOST = 8 }; /* plans under way: of two runs, each of two slabs with masks */

/* All but opening and closing (gpu.h) is done where its device was entered. */

/* Adds a plan without axes, of host memory: its elements go to `to` on the device, contiguous,
 * native and of the row's dtype. *number: by which it is asked for. */
gpr_status gpr_copies_add(gpr_copies *copies, const gpr_plan *plan, void *to, int64_t *number);
/* Whether that plan is there, and those that were added before it. */
int gpr_copies_are_there(const gpr_copies *copies, int64_t number);

/* Does what there is to do; *busy is 0 where that was nothing. */
gpr_status gpr_copies_step(gpr_copies *copies, int *busy);
