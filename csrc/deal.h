/* An array of the host that several devices, or devices and the CPU, reduce together: a queue,
 * whoever is free takes from it, and what they found is merged by the host. */
#pragma once

#include "backend.h"
#include "places.h"
#include "resolve.h"

/* Begins a plan without axes, of host memory. */
gpr_status gpr_deal_open(const gpr_plan *plan, gpr_places places, gpr_run **run);

/* The same of many outputs, which may be one place's too: whole ones to each. `what` and `view` as
 * gpr_open() has them. Those that cannot be dealt: *run is NULL, and GPR_OK. */
/* How many pieces of work they would be for one place; 0 where they cannot be dealt. */
int64_t gpr_deal_slabs(const gpr_resolved *what, const gpr_view *view, const gpr_options *options);
gpr_status gpr_deal_axes_open(const gpr_resolved *what, const gpr_view *view,
                              const gpr_options *options, gpr_places places, gpr_run **run);
