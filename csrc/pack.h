#ifndef GPR_PACK_H
#define GPR_PACK_H

#include "plan.h"

/* Elements [start, start + n) of the plan, whose first is at `data`, contiguous, native and of the
 * row's dtype. `to` and `scratch` hold 16 bytes for each of their scalars. */
void gpr_pack(const gpr_plan *plan, const char *data, int64_t start, int64_t n, void *to,
              void *scratch);

/* Their bytes of the mask, whose first is at `where`: 1 where they count. */
void gpr_pack_mask(const gpr_dims *reduced, const char *where, int64_t start, int64_t n,
                   uint8_t *keep);

/* Moves elements of so many bytes that are kept to the front; how many they are. */
int64_t gpr_squeeze(char *x, int bytes, const uint8_t *keep, int64_t n);

#endif
