#ifndef GPR_GPU_H
#define GPR_GPU_H

#include "backend.h"

/* How many CUDA devices can be used; 0 leaves the reason for gpr_error(). */
int gpr_gpu_count(void);

/* Begins a plan on a device. The run is the caller's; on failure *run is NULL. */
gpr_status gpr_gpu_open(const gpr_plan *plan, int device, gpr_run **run);

#endif
