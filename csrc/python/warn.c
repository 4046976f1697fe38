#define NO_IMPORT_ARRAY
#include "warn.h"

#include <numpy/ufuncobject.h>

#include "../layout.h"
#include "parse.h"

int gpr_warn_init(void) { return PyUFunc_ImportUFuncAPI() >= 0; }

/* --- numbers that are none ---------------------------------------------------------------------
 */

/* A float, or a part of a complex number. */
typedef struct real {
  int bytes, parts, swapped;
  uint64_t infinity; /* its bits */
} real;

enum { FINITE, INFINITE, NO_NUMBER };

static real real_of(int dtype, int swapped) {
  const gpr_dtype_info *d = &gpr_dtypes[dtype];
  const int parts = d->kind == 'c' ? 2 : 1, bytes = d->bytes / parts;
  uint64_t infinity = 0;
  if (gpr_is_inexact(dtype))
    infinity = bytes == 8             ? UINT64_C(0x7ff0000000000000)
               : bytes == 4           ? 0x7f800000
               : dtype == GPR_FLOAT16 ? 0x7c00
                                      : 0x7f80;
  return (real){bytes, parts, swapped, infinity};
}

static int class_of(const char *at, const real *r) {
  uint16_t two;
  uint32_t four;
  uint64_t bits;
  switch (r->bytes) {
    case 2: memcpy(&two, at, 2), bits = r->swapped ? __builtin_bswap16(two) : two; break;
    case 4: memcpy(&four, at, 4), bits = r->swapped ? __builtin_bswap32(four) : four; break;
    default: memcpy(&bits, at, 8), bits = r->swapped ? __builtin_bswap64(bits) : bits; break;
  }
  bits &= ~(UINT64_C(1) << (8 * r->bytes - 1));
  return bits < r->infinity ? FINITE : bits == r->infinity ? INFINITE : NO_NUMBER;
}

/* Blocks that are looked at without a branch: most results are finite. */
#define SKIP_FINITE(type)                                               \
  for (; i + BLOCK <= count; i += BLOCK) {                              \
    const type *x = (const type *)data + i;                             \
    type any = 0;                                                       \
    for (int j = 0; j < BLOCK; j++) any |= (x[j] & special) == special; \
    if (any) break;                                                     \
  }

/* From i on the first that is not finite, or count. */
static int64_t next_special(const char *data, int64_t i, int64_t count, const real *r) {
  enum { BLOCK = 32 };
  for (;;) {
    if (r->bytes == 4) {
      const uint32_t special = (uint32_t)r->infinity;
      SKIP_FINITE(uint32_t)
    } else if (r->bytes == 8) {
      const uint64_t special = r->infinity;
      SKIP_FINITE(uint64_t)
    }
    const int64_t end = i + BLOCK < count ? i + BLOCK : count;
    for (; i < end; i++)
      if (class_of(data + i * r->bytes, r)) return i;
    if (i == count) return count;
  }
}

/* --- where a result came from ------------------------------------------------------------------
 */

/* The axes of the outputs, as the run has them, the slowest first. */
static int kept_axes(const gpr_call *call, int *axes) {
  const gpr_options *o = &call->options;
  int n = 0;
  if (o->out_order == GPR_MEMORY_ORDER) return gpr_memory_order(&call->view, o->axes, axes);
  for (int d = 0; o->starts && d < call->view.ndim; d++)
    if (o->axes >> d & 1) axes[n++] = d;
  for (int d = 0; d < call->view.ndim; d++)
    if (!(o->axes >> d & 1)) axes[n++] = d;
  return n;
}

/* The elements of one output: what is reduced to it. */
static gpr_dims elements_of(const gpr_call *call, int64_t output, const char **data,
                            const char **mask) {
  const gpr_view *view = &call->view;
  const gpr_options *o = &call->options;
  int axes[GPR_DIMS_MAX];
  gpr_dims dims = {0};
  *data = view->data;
  *mask = o->where ? o->where->data : NULL;
  for (int d = 0; d < view->ndim; d++)
    if ((o->axes >> d & 1) && !o->starts)
      gpr_dims_append(&dims, view->shape[d], view->strides[d], o->where ? o->where->strides[d] : 0);
  for (int i = kept_axes(call, axes) - 1; i >= 0; i--) {
    const int d = axes[i], is_cut = o->starts && (o->axes >> d & 1);
    const int64_t length = is_cut ? o->segments : view->shape[d];
    int64_t at = output % length;
    output /= length;
    if (is_cut) {
      const int64_t start = o->starts[at], stop = o->stops[at];
      gpr_dims_append(&dims, stop > start ? stop - start : 0, view->strides[d], 0);
      at = start;
    }
    *data += at * view->strides[d];
    if (o->where) *mask += at * o->where->strides[d];
  }
  gpr_dims_sort(&dims);
  gpr_dims_coalesce(&dims);
  return dims;
}

static int row_has(const char *data, const char *mask, int64_t n, int64_t stride, int64_t step,
                   int wanted, const real *r) {
  for (int64_t i = 0; i < n; i++)
    for (int part = 0; part < r->parts && (!mask || mask[i * step]); part++)
      if (class_of(data + i * stride + part * r->bytes, r) == wanted) return 1;
  return 0;
}

/* Whether one of the elements of an output is of this class. */
static int has(const gpr_call *call, int64_t output, int wanted, const real *r) {
  const char *data, *mask;
  gpr_dims dims = elements_of(call, output, &data, &mask);
  int64_t at[GPR_DIMS_MAX] = {0};
  if (!r->infinity) return 0;
  if (!dims.n) return row_has(data, mask, 1, 0, 0, wanted, r);
  for (int d = 0; d < dims.n; d++)
    if (!dims.shape[d]) return 0;
  const int last = dims.n - 1;
  for (int d = last; d >= 0;) {
    if (row_has(data, mask, dims.shape[last], dims.strides[last], dims.where[last], wanted, r))
      return 1;
    for (d = last - 1; d >= 0; d--) {
      data += dims.strides[d];
      if (mask) mask += dims.where[d];
      if (++at[d] < dims.shape[d]) break;
      data -= at[d] * dims.strides[d];
      if (mask) mask -= at[d] * dims.where[d];
      at[d] = 0;
    }
  }
  return 0;
}

/* --- what is told ------------------------------------------------------------------------------
 */

/* Flags of what went wrong: a result that no number is, of numbers. A few NaN or infinities of the
 * array are met soon; it is overflow that has all elements of its output looked at. */
static int flags_of(const gpr_call *call, const char *results, int64_t count, int warned) {
  const int skips = gpr_ops[call->op].flags & GPR_SKIPS_NAN;
  const real r = real_of(call->what.result, 0), of = real_of(call->view.dtype, call->view.swapped);
  const int infinite = warned ? NPY_FPE_DIVIDEBYZERO : NPY_FPE_OVERFLOW;
  int flags = 0;
  count *= r.parts;
  for (int64_t i = 0; (i = next_special(results, i, count, &r)) < count; i++) {
    const int class = class_of(results + i * r.bytes, &r);
    const int flag = class == NO_NUMBER ? NPY_FPE_INVALID : infinite;
    if (flags & flag) continue;
    const int known = class == NO_NUMBER && skips ? warned : has(call, i / r.parts, class, &of);
    if (!known) flags |= flag;
    if (flags == (NPY_FPE_INVALID | infinite)) break;
  }
  return flags;
}

static int is_arithmetic(const gpr_call *call) {
  const int flags = gpr_ops[call->op].flags, is_difference = flags & GPR_OUT_KIND;
  const int is_extreme = (flags & GPR_NONEMPTY) && !is_difference;
  return call->what.results == 1 && gpr_is_inexact(call->what.result) && !is_extreme &&
         !(flags & GPR_MATRICES) && call->view.device < 0 && !call->options.means;
}

static int is_finite(const gpr_value *value) {
  const real r = real_of(value->dtype, 0);
  return next_special((const char *)value->bytes, 0, r.parts, &r) == r.parts;
}

/* As np.errstate says. NumPy divides by the number of elements last, or twice. */
static int give(const gpr_call *call, int flags, const char *text, int64_t least) {
  const int op_flags = gpr_ops[call->op].flags;
  const char *name = call->options.starts ? "reduceat" : "reduce";
  if (text) name = call->ndim ? "divide" : "scalar divide";
  if (text && (op_flags & GPR_SPREAD) && !(op_flags & GPR_SKIPS_NAN) && !least &&
      PyUFunc_GiveFloatingpointErrors("divide", NPY_FPE_INVALID) < 0)
    return 0;
  if (op_flags & GPR_NONEMPTY) name = call->ndim ? "subtract" : "scalar subtract";
  return !flags || PyUFunc_GiveFloatingpointErrors(name, flags) >= 0;
}

static const char *text_of(const gpr_call *call, int64_t least) {
  const int flags = gpr_ops[call->op].flags, skips = flags & GPR_SKIPS_NAN;
  if (least < 0 || least == INT64_MAX) return NULL;
  if (skips && (flags & GPR_NONEMPTY) && !call->is_ufunc && least == 0)
    return "All-NaN slice encountered";
  if ((flags & GPR_SPREAD) && (double)least - call->options.ddof <= 0)
    return skips ? "Degrees of freedom <= 0 for slice." : "Degrees of freedom <= 0 for slice";
  return (flags & GPR_EMPTY_WARNS) && least == 0 ? "Mean of empty slice" : NULL;
}

int gpr_warn(const gpr_call *call, int64_t least, const void *results, int64_t count) {
  const char *text = text_of(call, least);
  const gpr_value *initial = call->options.initial;
  int flags = 0;
  if (text && PyErr_WarnEx(PyExc_RuntimeWarning, text, 1)) return 0;
  if (!results || !is_arithmetic(call) || (initial && !is_finite(initial))) return 1;
  const real r = real_of(call->what.result, 0);
  if (next_special(results, 0, count * r.parts, &r) == count * r.parts) return 1;
  Py_BEGIN_ALLOW_THREADS flags = flags_of(call, results, count, text != NULL);
  Py_END_ALLOW_THREADS return give(call, flags, text, least);
}
