#pragma once

#include "tile.h"

/* Between looks at the clock and at `stop`: elements. */
enum { GPR_STRETCH = 64 << 10 };

/* An item is a part of a block of outputs, the parts side by side. */
typedef struct gpr_shares {
  int64_t items, parts, part; /* part: of how many boxes */
} gpr_shares;

/* Fills in *tiles but for its plan and its identity. The plan's states take so many bytes each. */
gpr_shares gpr_share_out(gpr_tiles *tiles, size_t state_bytes);
