/* Few elements of which nothing special is asked, without a run: that takes half of the time. */
#pragma once

#include "resolve.h"

/* To options->out or, without it, one value. GPR_MORE: nothing was done, and a run does it or says
 * why it cannot be done. *least is what gpr_least() would give. */
gpr_status gpr_reduce_few(const gpr_resolved *what, const gpr_view *view,
                          const gpr_options *options, gpr_value *result, int64_t *least);
