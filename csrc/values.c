/* Views, values and names for C programs. */
#include <math.h>
#include <string.h>

#include "../kernels/abi/lists.h"
#include "errors.h"
#include "given.h"
#include "plan.h"
#include "resolve.h"

const char *gpr_version(void) { return GPUREDUCE_VERSION; }

const char *gpr_strerror(int status) {
  switch (status) {
    case GPR_OK: return "success";
    case GPR_MORE: return "not finished: step again";
    case GPR_BAD_VALUE: return "bad value";
    case GPR_BAD_TYPE: return "bad type";
    case GPR_OUT_OF_MEMORY: return "out of memory";
    case GPR_DEVICE_ERROR: return "device missing or failed";
    default: return "no status of gpureduce";
  }
}

const char *gpr_dtype_name(int dtype) {
  return gpr_is_dtype(dtype) ? gpr_dtypes[dtype].name : NULL;
}

int gpr_dtype_size(int dtype) { return gpr_is_dtype(dtype) ? gpr_dtypes[dtype].bytes : 0; }

const char *gpr_op_name(int op) {
  if (!gpr_is_op(op) || (gpr_ops[op].flags & GPR_HIDDEN)) return NULL;
  return gpr_ops[op].name;
}

/* --- views ------------------------------------------------------------------------------------ */

gpr_view gpr_view_nd(const void *data, int dtype, int ndim, const int64_t *shape) {
  gpr_view view = {.data = data, .dtype = dtype, .ndim = ndim, .device = GPR_DEVICE_CPU};
  int64_t stride = gpr_dtype_size(dtype);
  if (ndim > 0 && !shape) view.ndim = -1;                     /* which is refused, */
  if (view.ndim < 0 || view.ndim > GPR_DIMS_MAX) return view; /* and so are these */
  for (int d = ndim - 1; d >= 0; d--) {
    view.shape[d] = shape[d];
    view.strides[d] = stride;
    if (__builtin_mul_overflow(stride, shape[d], &stride)) stride = INT64_MAX;
  }
  return view;
}

gpr_view gpr_view_of(const void *data, int dtype, int64_t n) {
  return gpr_view_nd(data, dtype, 1, &n);
}

int64_t gpr_outputs(const gpr_view *view, const gpr_options *options) {
  const gpr_options defaults = gpr_defaults();
  if (!options) options = &defaults;
  if (gpr_check_view("gpr_outputs", view)) return -1;
  if (gpr_check_options("gpr_outputs", view, options)) return -1;
  return gpr_count_outputs(view, options);
}

/* --- values ----------------------------------------------------------------------------------- */

/* The value as one of another dtype, of 8 bytes. */
static gpr_status converted(const gpr_value *value, int which, int to, void *number) {
  if (!value || !gpr_is_dtype(value->dtype) || which < 0 || which > 1)
    return gpr_fail(GPR_BAD_VALUE, "no value %d: give a gpr_value of gpr_reduce() and 0 or 1",
                    which);
  const int from = value->dtype;
  const unsigned char *bytes = value->bytes + which * gpr_dtypes[from].bytes;
  const gpr_cast cast = gpr_cast_of(from, to);
  if (gpr_dtypes[from].kind == 'c' || (from != to && !cast))
    return gpr_fail(GPR_BAD_TYPE, "a value of dtype %s is no %s", gpr_dtypes[from].name,
                    gpr_dtypes[to].name);
  if (from == to)
    memcpy(number, bytes, 8);
  else
    cast(bytes, number, 1);
  return GPR_OK;
}

double gpr_as_double(const gpr_value *value, int which) {
  double number;
  return converted(value, which, GPR_FLOAT64, &number) ? (double)NAN : number;
}

int64_t gpr_as_int64(const gpr_value *value, int which) {
  int64_t number;
  return converted(value, which, GPR_INT64, &number) ? INT64_MIN : number;
}
