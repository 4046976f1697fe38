#include "places.h"

#include "errors.h"

static uint64_t bit_of(int device) { return UINT64_C(1) << device; }
static uint64_t all_below(int devices) {
  return devices >= GPR_DEVICES_MAX ? UINT64_MAX : bit_of(devices) - 1;
}

int gpr_first_place(gpr_places places) {
  return places.devices ? __builtin_ctzll(places.devices) : GPR_DEVICE_CPU;
}

/* What is asked for of the host's arrays. */
static gpr_places asked_for(const gpr_options *options, int devices) {
  switch (options->device) {
    case GPR_DEVICE_AUTO:
    case GPR_DEVICE_CPU: return (gpr_places){0, 1};
    case GPR_DEVICE_CUDA_ALL: return (gpr_places){all_below(devices), 0};
    case GPR_DEVICE_ALL: return (gpr_places){all_below(devices), 1};
    case GPR_DEVICE_LIST: return (gpr_places){options->devices, options->and_cpu};
    default: return (gpr_places){bit_of(options->device), 0};
  }
}

static gpr_status missing(int device, int devices) {
  return gpr_fail(GPR_DEVICE_ERROR, "there is no device cuda:%d: there are %d, numbered from 0",
                  device, devices);
}

static int names_devices(const gpr_options *options) {
  return options->device != GPR_DEVICE_AUTO && options->device != GPR_DEVICE_CPU &&
         !(options->device == GPR_DEVICE_LIST && !options->devices);
}

/* Whether an array on a device may be reduced there. */
static int may_lie(const gpr_options *options, int lies) {
  switch (options->device) {
    case GPR_DEVICE_AUTO:
    case GPR_DEVICE_CUDA_ALL:
    case GPR_DEVICE_ALL: return 1;
    case GPR_DEVICE_LIST: return lies < GPR_DEVICES_MAX && (options->devices & bit_of(lies));
    default: return options->device == lies;
  }
}

gpr_status gpr_places_of(const gpr_options *options, int lies, gpr_places *places) {
  *places = (gpr_places){0, 0};
  if (lies >= 0 && !may_lie(options, lies))
    return gpr_fail(
        GPR_BAD_VALUE,
        "the array lies on cuda:%d, where it can be reduced; copy it to reduce it elsewhere", lies);
  const int needed = lies >= 0 || names_devices(options);
  const int devices = needed ? gpr_device_count() : 0;
  if (needed && !devices) return GPR_DEVICE_ERROR;
  const int highest = lies >= 0 ? lies : options->device;
  if (highest >= 0 && highest >= devices) return missing(highest, devices);
  *places = lies >= 0 ? (gpr_places){bit_of(lies), 0} : asked_for(options, devices);
  const uint64_t others = places->devices & ~all_below(devices);
  return others ? missing(__builtin_ctzll(others), devices) : GPR_OK;
}
