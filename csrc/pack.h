#ifndef GPR_PACK_H
#define GPR_PACK_H

#include "plan.h"

/* Elements [start, start + n) of the plan, contiguous, native and of the row's dtype. `to` and
 * `scratch` hold 16 bytes for each of their scalars. */
void gpr_pack(const gpr_plan *plan, int64_t start, int64_t n, void *to, void *scratch);

#endif
