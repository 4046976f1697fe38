/* What a C program hands in, looked at before anything else reads it. */
#pragma once

#include "gpureduce.h"

/* Whether the view describes an array, and the options what can be asked of it, as far as can be
 * told without the operator. `function` is named in messages. */
gpr_status gpr_check_view(const char *function, const gpr_view *view);
gpr_status gpr_check_options(const char *function, const gpr_view *view,
                             const gpr_options *options);
