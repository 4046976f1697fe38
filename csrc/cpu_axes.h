#ifndef GPR_CPU_AXES_H
#define GPR_CPU_AXES_H

#include "backend.h"

/* Begins a plan with axes on the CPU. The run is the caller's; on failure *run is NULL. */
gpr_status gpr_axes_open(const gpr_plan *plan, gpr_run **run);

#endif
