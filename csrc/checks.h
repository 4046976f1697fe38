/* What cannot be, by a message that says so. */
#pragma once

#include "resolve.h"

/* What is asked of the array, wherever it is. */
gpr_status gpr_check(const gpr_resolved *what, const gpr_view *view, const gpr_options *options);

/* Whether the kernel that is named can take n elements of this dtype, as far as its table tells. */
gpr_status gpr_check_kernel(const gpr_row *row, int64_t n, const gpr_options *options);
