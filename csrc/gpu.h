#ifndef GPR_GPU_H
#define GPR_GPU_H

#include "backend.h"

/* Begins a plan on a device. The run is the caller's; on failure *run is NULL. */
gpr_status gpr_gpu_open(const gpr_plan *plan, int device, gpr_run **run);

/* Whether the CUDA driver knows the host memory at this address as pinned. */
int gpr_gpu_pinned(const void *address);

/* The device that the memory at this address belongs to, or -1. */
int gpr_gpu_device_of(const void *address);

#endif
