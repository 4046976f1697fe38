#include "given.h"

#include "../kernels/abi/lists.h"
#include "errors.h"
#include "layout.h"
#include "resolve.h"

static gpr_status check_place(const char *name, const gpr_view *view) {
  if (view->memory != GPR_HOST_MEMORY && view->memory != GPR_CUDA_MEMORY)
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: memory is %d; GPR_HOST_MEMORY (0) and GPR_CUDA_MEMORY (1) are known", name,
                    view->memory);
  if (view->memory == GPR_CUDA_MEMORY && view->device < 0)
    return gpr_fail(GPR_BAD_VALUE, "%s: CUDA memory of device %d; devices count from 0", name,
                    view->device);
  if (view->memory == GPR_HOST_MEMORY && view->device != 0 && view->device != GPR_DEVICE_CPU)
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: host memory of device %d; memory = GPR_CUDA_MEMORY makes it a device's",
                    name, view->device);
  return GPR_OK;
}

/* Lengths and strides whose products are numbers that 64 bits hold. */
static gpr_status check_shape(const char *name, const gpr_view *view) {
  int64_t count = 1, least = 0, most = 0;
  int empty = 0, too_large = 0;
  for (int d = 0; d < view->ndim; d++) {
    int64_t span = 0;
    if (view->shape[d] < 0)
      return gpr_fail(GPR_BAD_VALUE, "%s: shape[%d] is %lld; lengths are 0 and up", name, d,
                      (long long)view->shape[d]);
    if (view->shape[d] == 0) {
      empty = 1;
      continue;
    }
    too_large |= __builtin_mul_overflow(count, view->shape[d], &count);
    too_large |= __builtin_mul_overflow(view->shape[d] - 1, view->strides[d], &span);
    too_large |= __builtin_add_overflow(span < 0 ? least : most, span, span < 0 ? &least : &most);
  }
  if (!empty && too_large)
    return gpr_fail(GPR_BAD_VALUE, "%s: shape and strides reach beyond 2^63 bytes or elements",
                    name);
  if (!empty && !view->data)
    return gpr_fail(GPR_BAD_VALUE, "%s: data is NULL, of %lld elements", name, (long long)count);
  return GPR_OK;
}

gpr_status gpr_check_view(const char *function, const gpr_view *view) {
  if (!view) return gpr_fail(GPR_BAD_VALUE, "%s: the view is NULL", function);
  if (!gpr_is_dtype(view->dtype))
    return gpr_fail(GPR_BAD_TYPE, "%s: dtype %d is none; GPR_BOOL (0) to %d are", function,
                    view->dtype, GPR_DTYPE_COUNT - 1);
  if (view->ndim < 0 || view->ndim > GPR_DIMS_MAX)
    return gpr_fail(GPR_BAD_VALUE, "%s: ndim is %d; 0 to %d would do", function, view->ndim,
                    GPR_DIMS_MAX);
  const gpr_status status = check_place(function, view);
  return status ? status : check_shape(function, view);
}

static gpr_status check_mask(const char *function, const gpr_view *view, const gpr_view *where) {
  const gpr_status status = gpr_check_view(function, where);
  if (status) return status;
  if (where->ndim != view->ndim)
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: the mask has %d dimensions and the array %d; strides of 0 broadcast it",
                    function, where->ndim, view->ndim);
  for (int d = 0; d < view->ndim; d++)
    if (where->shape[d] != view->shape[d])
      return gpr_fail(GPR_BAD_VALUE,
                      "%s: shape[%d] of the mask is %lld and that of the array %lld; a stride of 0 "
                      "broadcasts it",
                      function, d, (long long)where->shape[d], (long long)view->shape[d]);
  if (gpr_lies(where) != gpr_lies(view))
    return gpr_fail(GPR_BAD_VALUE, "%s: the mask lies elsewhere than the array", function);
  return GPR_OK;
}

static gpr_status check_segments(const char *function, const gpr_options *o) {
  if (o->segments < 0)
    return gpr_fail(GPR_BAD_VALUE, "%s: %lld segments; 0 and up would do", function,
                    (long long)o->segments);
  if (!o->starts != !o->stops || (o->segments && !o->starts))
    return gpr_fail(GPR_BAD_VALUE, "%s: segments take both starts and stops", function);
  return GPR_OK;
}

gpr_status gpr_check_options(const char *function, const gpr_view *view, const gpr_options *o) {
  if (o->size != sizeof *o)
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: the options are not made by gpr_defaults() of this version, %s", function,
                    GPUREDUCE_VERSION);
  if (o->dtype != GPR_NO_DTYPE && !gpr_is_dtype(o->dtype))
    return gpr_fail(GPR_BAD_TYPE, "%s: options dtype %d is none; GPR_NO_DTYPE or one would do",
                    function, o->dtype);
  if (o->device < GPR_DEVICE_LIST || o->out_device < GPR_DEVICE_CPU)
    return gpr_fail(GPR_BAD_VALUE, "%s: device %d, out_device %d: the least are %d and %d",
                    function, o->device, o->out_device, GPR_DEVICE_LIST, GPR_DEVICE_CPU);
  if (o->device == GPR_DEVICE_LIST && !o->devices && !o->and_cpu)
    return gpr_fail(GPR_BAD_VALUE, "%s: a list of no devices; .devices and .and_cpu name them",
                    function);
  if (o->kernel != GPR_NO_KERNEL && (o->kernel < 0 || o->kernel == GPR_KERNEL_COUNT ||
                                     o->kernel >= GPR_KERNEL_COUNT + GPR_VARIANT_END))
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %d is none; gpr_kernel_index() gives them", function,
                    o->kernel);
  if (o->axes != GPR_ALL_AXES && view->ndim < 64 && o->axes >> view->ndim)
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: axes 0x%llx name one that an array of %d dimensions has not", function,
                    (unsigned long long)o->axes, view->ndim);
  if (o->out_order != GPR_C_ORDER && o->out_order != GPR_MEMORY_ORDER)
    return gpr_fail(GPR_BAD_VALUE, "%s: out_order %d is neither GPR_C_ORDER nor GPR_MEMORY_ORDER",
                    function, o->out_order);
  if (o->initial && !gpr_is_dtype(o->initial->dtype))
    return gpr_fail(GPR_BAD_TYPE, "%s: dtype %d of initial is none", function, o->initial->dtype);
  const gpr_status status = check_segments(function, o);
  return status || !o->where ? status : check_mask(function, view, o->where);
}
