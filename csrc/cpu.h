#ifndef GPR_CPU_H
#define GPR_CPU_H

#include "backend.h"

/* The table for the best instruction set that this machine has. */
const gpr_cpu_table *gpr_cpu_table_here(void);

/* Begins a plan on the CPU. The run is the caller's; on failure *run is NULL. */
gpr_status gpr_cpu_open(const gpr_plan *plan, gpr_run **run);

/* Elements [start, start + n) of the plan, contiguous, native and of the row's dtype. `to` and
 * `scratch` hold n elements of 16 bytes each. */
void gpr_cpu_pack(const gpr_plan *plan, int64_t start, int64_t n, void *to, void *scratch);

#endif
