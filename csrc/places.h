/* Where a reduction is done: by the CPU, by a device, or by several together. */
#pragma once

#include "gpureduce.h"

typedef struct gpr_places {
  uint64_t devices; /* a bit for each CUDA device */
  int cpu;
} gpr_places;

static inline int gpr_are_several(gpr_places places) {
  return places.devices && (places.cpu || (places.devices & (places.devices - 1)));
}

/* The one place that works alone: GPR_DEVICE_CPU, or the first device. */
int gpr_first_place(gpr_places places);

/* For options->device, and an array that lies on a device or, with GPR_DEVICE_CPU, on the host: on
 * a device it is reduced where it lies. Every device is there. */
gpr_status gpr_places_of(const gpr_options *options, int lies, gpr_places *places);
