#pragma once

#include "backend.h"

/* A core's share of the last cache: what is more is far (gpr_is_far). */
enum { GPR_CACHE_BYTES = 16 << 20 };

/* The table for the best instruction set that this machine has. */
const gpr_cpu_table *gpr_cpu_table_here(void);

/* A row that folds as its quick one does; it has no finish. */
gpr_row gpr_quick_row(const gpr_row *row);

/* Begins a plan on the CPU. The run is the caller's and lies in the block; on failure *run is NULL.
 */
gpr_status gpr_cpu_open(const gpr_plan *plan, gpr_block *block, gpr_run **run);

/* Folds elements [start, start + n) of a plan without axes; nonzero when the result is settled. */
int gpr_cpu_fold(const gpr_plan *plan, void *state, int64_t start, int64_t n);
