/* One message a thread, for gpr_error(). */
#pragma once

#include "gpureduce.h"

/* Leaves the message and returns the status, so that `return gpr_fail(...)` reads well. */
gpr_status gpr_fail(gpr_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
