/* Few elements to one value, without a run: what is left of a call then is the half of it. */
#ifndef GPR_FEW_H
#define GPR_FEW_H

#include "resolve.h"

/* Of what was not checked yet. GPR_MORE: nothing was done, and a run does it or says why it cannot
 * be done. *least is what gpr_least() would give. */
gpr_status gpr_reduce_few(const gpr_resolved *what, const gpr_view *view,
                          const gpr_options *options, gpr_value *result, int64_t *least);

#endif
