#ifndef GPR_PACK_H
#define GPR_PACK_H

#include "plan.h"

/* Elements [start, start + n) of the plan, whose first is at `data`, contiguous, native and of the
 * row's dtype. `to` and `scratch` hold 16 bytes for each of their scalars. */
void gpr_pack(const gpr_plan *plan, const char *data, int64_t start, int64_t n, void *to,
              void *scratch);

/* Reverses the bytes of each `unit`. */
void gpr_swap_bytes(char *data, int64_t bytes, int unit);

#endif
