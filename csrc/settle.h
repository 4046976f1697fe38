/* What a call comes to before it runs: where, and whether as one state of all elements. */
#pragma once

#include "../kernels/abi/lists.h"
#include "places.h"
#include "plan.h"
#include "resolve.h"

void gpr_flat_plan(gpr_plan *plan, const gpr_resolved *what, const gpr_view *view);

/* A variant for many outputs that is asked for by name, or GPR_ANY_VARIANT. */
static inline int gpr_variant_of(const gpr_options *options) {
  return options->kernel > GPR_KERNEL_COUNT ? options->kernel - GPR_KERNEL_COUNT : GPR_ANY_VARIANT;
}
/* Whether the result is to be on a device. */
static inline int gpr_is_there(const gpr_options *options) {
  return options->out && options->out_device >= 0;
}
/* Whether it was auto that took a device; where that cannot begin, the CPU does. */
static inline int gpr_chose_devices(const gpr_options *options, const gpr_view *view,
                                    gpr_places places) {
  return options->device == GPR_DEVICE_AUTO && options->kernel == GPR_NO_KERNEL &&
         gpr_lies(view) < 0 && places.devices;
}

/* Where the kernel that is named works, which is one device, on so many elements that lie there or,
 * with GPR_DEVICE_CPU, on the host. */
gpr_status gpr_settle_kernel(const gpr_row *row, int64_t count, int lies,
                             const gpr_options *options, gpr_places *places);

/* Where to work and, with *is_whole, the plan whose elements all go into one state there. */
gpr_status gpr_settle(const gpr_resolved *what, const gpr_view *view, const gpr_options *options,
                      gpr_places *places, gpr_plan *flat, int *is_whole);
