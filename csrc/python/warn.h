/* What a result tells of itself, as NumPy's do: its warnings, and what np.errstate asks for. */
#pragma once

#include "arguments.h"

/* Once, at import. */
int gpr_warn_init(void);

/* least: what gpr_least() gives. finite: no element was infinite, as far as is known. decided:
 * gpr_infinities', or -1. results: `count` of them in the order of the run, in host memory, or NULL
 * where they are not looked at. 0: an exception. */
int gpr_warn(const gpr_call *call, int64_t least, int finite, int64_t decided, const void *results,
             int64_t count);
