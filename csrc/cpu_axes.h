#pragma once

#include "backend.h"

/* As gpr_cpu_open(), of a plan with axes. */
gpr_status gpr_axes_open(const gpr_plan *plan, gpr_block *block, gpr_run **run);
