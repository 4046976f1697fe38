#define NO_IMPORT_ARRAY
#include "warn.h"

#include <numpy/ufuncobject.h>

#include "../cpu.h"
#include "module.h"
#include "objects.h"
#include "parse.h"

int gpr_warn_init(void) { return PyUFunc_ImportUFuncAPI() >= 0; }

/* --- numbers that are none -------------------------------------------------------------------- */

/* A float, or a part of a complex number. */
typedef struct real {
  int bytes, parts, swapped;
  uint64_t infinity; /* its bits; 0 of what has none */
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

/* From i on the first that is not finite, or is infinite, or count: of what is not finite the bits
 * of the mask are just infinity's. */
static int64_t next_of(const char *data, int64_t i, int64_t count, const real *r, int infinite) {
  const int unused = 64 - 8 * r->bytes;
  uint64_t mask = infinite ? UINT64_MAX >> (unused + 1) : r->infinity, bits = r->infinity;
  if (r->swapped) {
    mask = __builtin_bswap64(mask) >> unused;
    bits = __builtin_bswap64(bits) >> unused;
  }
  return i + gpr_cpu_table_here()->find(data + i * r->bytes, count - i, r->bytes, mask, bits);
}
static int64_t next_special(const char *data, int64_t i, int64_t count, const real *r) {
  return next_of(data, i, count, r, 0);
}

/* --- where a result came from ----------------------------------------------------------------- */

/* Outputs that are no numbers and whose elements have not been seen to be none: a bit for each
 * class, or for each of either part. */
typedef struct pending {
  unsigned char *classes;
  int64_t left, read; /* read: elements, or so, since Ctrl-C was asked for */
  int apart;          /* the parts of complex sums, which add up by themselves */
  int skips;          /* elements do not count for the NaN in another part */
} pending;

enum { CLASSES = INFINITE | NO_NUMBER, IMAGINARY = 2 };

static int bit_of(const pending *p, int class, int64_t i) {
  return p->apart && i % 2 ? class << IMAGINARY : class;
}

/* Some milliseconds' look. */
enum { AT_A_TIME = 1 << 22 };

/* Without the GIL. After Ctrl-C nothing is left to look for. */
static void ask_for_signals(pending *p, int64_t read) {
  p->read += read;
  if (p->read < AT_A_TIME) return;
  p->read = 0;
  const PyGILState_STATE state = PyGILState_Ensure();
  if (PyErr_CheckSignals()) p->left = 0;
  PyGILState_Release(state);
}

static void is_known(pending *p, int64_t output, int bit) {
  if (!(p->classes[output] & bit)) return;
  p->classes[output] &= (unsigned char)~bit;
  p->left--;
}

/* A row of elements. Their outputs are `place` apart. */
static void look_at_row(const char *data, const char *mask, const gpr_dims *dims, int64_t output,
                        const real *r, pending *p) {
  const int d = dims->n - 1;
  const int64_t n = dims->n ? dims->shape[d] : 1, stride = dims->n ? dims->strides[d] : 0;
  const int64_t step = dims->n ? dims->where[d] : 0, place = dims->n ? dims->place[d] : 0;
  const int is_dense = n > 1 && stride == r->bytes * r->parts;
  for (int64_t i = 0; i < n * r->parts && p->left; i++) {
    if (!place && !p->classes[output]) break;
    const int64_t from = i, left = n * r->parts - i;
    const int64_t stop = i + (left < AT_A_TIME ? left : AT_A_TIME);
    if (is_dense) i = next_special(data, i, stop, r);
    ask_for_signals(p, i - from + 1);
    if (i == stop) {
      i--;
      continue;
    }
    const int64_t element = i / r->parts, part = i % r->parts;
    const char *at = data + element * stride;
    const int class = class_of(at + part * r->bytes, r);
    if (!class || (mask && !mask[element * step])) continue;
    if (p->skips && class_of(at + (r->parts - 1 - part) * r->bytes, r) == NO_NUMBER) continue;
    is_known(p, output + element * place, bit_of(p, class, i));
  }
}

static void look_at(gpr_dims dims, const char *data, const char *mask, int64_t output,
                    const real *r, pending *p) {
  int64_t at[GPR_DIMS_MAX] = {0};
  gpr_dims_sort(&dims);
  gpr_dims_coalesce(&dims);
  for (int d = 0; d >= 0 && p->left;) {
    look_at_row(data, mask, &dims, output, r, p);
    for (d = dims.n - 2; d >= 0; d--) {
      data += dims.strides[d];
      output += dims.place[d];
      if (mask) mask += dims.where[d];
      if (++at[d] < dims.shape[d]) break;
      data -= at[d] * dims.strides[d];
      output -= at[d] * dims.place[d];
      if (mask) mask -= at[d] * dims.where[d];
      at[d] = 0;
    }
  }
}

/* The axes that are kept, as the run has the outputs, the slowest first. */
static int kept_axes(const gpr_call *call, int *axes) {
  const gpr_options *o = &call->options;
  int n = 0;
  if (o->out_order == GPR_MEMORY_ORDER) return gpr_memory_order(&call->view, o->axes, axes);
  for (int d = 0; d < call->view.ndim; d++)
    if (!(o->axes >> d & 1)) axes[n++] = d;
  return n;
}

/* The array, with the steps from output to output; of one segment, that part of it; of one output
 * (-1: of all) its elements. */
static void look_at_array(const gpr_call *call, int64_t segment, int64_t only, const real *r,
                          pending *p) {
  const gpr_view *view = &call->view, *where = call->options.where;
  const gpr_options *o = &call->options;
  const char *data = view->data, *mask = where ? where->data : NULL;
  int axes[GPR_DIMS_MAX];
  gpr_dims dims = {0};
  int64_t place = 1;
  for (int d = 0; d < view->ndim; d++) {
    int64_t length = view->shape[d];
    if (o->starts && (o->axes >> d & 1)) {
      length = o->stops[segment] - o->starts[segment];
      data += o->starts[segment] * view->strides[d];
    }
    if (length <= 0) return;
    gpr_dims_append(&dims, length, view->strides[d], where ? where->strides[d] : 0);
  }
  for (int i = kept_axes(call, axes) - 1; i >= 0; i--) {
    const int d = axes[i];
    const int64_t at = only < 0 ? 0 : only / place % view->shape[d];
    data += at * dims.strides[d];
    if (mask) mask += at * dims.where[d];
    dims.place[d] = place;
    place *= view->shape[d];
    if (only >= 0) dims.shape[d] = 1;
  }
  look_at(dims, data, mask, segment * place + (only < 0 ? 0 : only), r, p);
}

/* Numbers that are read one after the other in the time of one output's look by itself, and of one
 * of its numbers where they lie apart. */
enum { LOOK = 2048, APART = 16 };
static double look_of_one(const gpr_call *call) {
  const gpr_view *view = &call->view;
  double elements = 1;
  int64_t step = INT64_MAX; /* to the nearest */
  for (int d = 0; d < view->ndim; d++) {
    const int64_t stride = gpr_magnitude(view->strides[d]);
    if (!(call->options.axes >> d & 1) || view->shape[d] < 2) continue;
    elements *= (double)view->shape[d];
    if (stride < step) step = stride;
  }
  return LOOK + elements * (step > gpr_dtypes[view->dtype].bytes ? APART : 1);
}
/* Whether there is such an output that no element explains, by the first: then it is all one what
 * the others are. */
static int is_met(const gpr_call *call, int bit, int64_t count, const real *r, pending *p) {
  int64_t i = 0;
  while (i < count && !(p->classes[i] & bit)) i++;
  if (i == count || call->options.starts) return 0;
  look_at_array(call, 0, i, r, p);
  if (!(p->classes[i] & bit)) return 0;
  for (; i < count; i++) is_known(p, i, bit);
  return bit;
}
/* Of few outputs each by itself, since the others' elements need not be read. */
static void look_for(const gpr_call *call, int64_t count, const real *r, pending *p) {
  const gpr_options *o = &call->options;
  const int few = !o->starts && (double)p->left * look_of_one(call) < (double)call->count;
  for (int64_t s = 0; o->starts && s < o->segments; s++) look_at_array(call, s, -1, r, p);
  for (int64_t i = 0; few && p->left && i < count; i++)
    if (p->classes[i]) look_at_array(call, 0, i, r, p);
  if (!o->starts && !few && p->left) look_at_array(call, 0, -1, r, p);
}

/* --- what is told ----------------------------------------------------------------------------- */

/* Integers have none, and NumPy hands them to the functions that do not look. */
static int skips_nan(const gpr_call *call) { return gpr_skips(call->op, call->view.dtype); }

static int are_apart(const gpr_call *call) {
  return gpr_dtypes[call->what.result].kind == 'c' && gpr_dtypes[call->view.dtype].kind == 'c' &&
         call->what.row->law == GPR_EXACT;
}

/* Flags of what went wrong: of numbers a result that is none. `told`: that nothing counted.
 * decided: gpr_infinities', which tells without a look at the elements whether they explain as many
 * infinite results, and that variances are no numbers for them alone; or -1. */
static int flags_of(const gpr_call *call, const char *results, int64_t count, int told,
                    int64_t decided) {
  const int is_spread = (gpr_ops[call->op].flags & GPR_SPREAD) != 0;
  int64_t many = 0;
  const int skips = skips_nan(call), infinite = told ? NPY_FPE_DIVIDEBYZERO : NPY_FPE_OVERFLOW;
  const real r = real_of(call->what.result, 0), of = real_of(call->view.dtype, call->view.swapped);
  pending p = {.classes = PyMem_RawCalloc((size_t)count, 1),
               .apart = are_apart(call),
               .skips = skips && of.parts == 2};
  int flags = 0, found = 0;
  if (!p.classes) return 0;
  for (int64_t i = 0; (i = next_special(results, i, count * r.parts, &r)) < count * r.parts; i++) {
    const int class = class_of(results + i * r.bytes, &r), bit = bit_of(&p, class, i);
    if (class == NO_NUMBER && skips) {
      flags |= told ? 0 : NPY_FPE_INVALID;
    } else if (class == INFINITE && decided >= 0) {
      many++;
    } else if (class == NO_NUMBER && is_spread && decided > 0) {
      found = NO_NUMBER;
    } else if (!(p.classes[i / r.parts] & bit)) {
      p.classes[i / r.parts] |= (unsigned char)bit;
      p.left++;
    }
  }
  if (of.infinity && p.left) {
    for (int bit = 1; bit <= NO_NUMBER << IMAGINARY; bit <<= 1)
      found |= is_met(call, bit, count, &of, &p);
    look_for(call, count, &of, &p);
  }
  if (decided >= 0 && many > (is_spread ? 0 : decided)) found |= INFINITE;
  for (int64_t i = 0; p.left && i < count; i++) found |= p.classes[i];
  PyMem_RawFree(p.classes);
  found = (found | found >> IMAGINARY) & CLASSES;
  return flags | (found & NO_NUMBER ? NPY_FPE_INVALID : 0) | (found & INFINITE ? infinite : 0);
}

/* Where no element is infinite and something counted: what is no number had an element that is
 * none, and what is infinite has overflown. */
static int flags_of_finite(const gpr_call *call, const char *results, int64_t count) {
  const real r = real_of(call->what.result, 0);
  return next_of(results, 0, count * r.parts, &r, 1) < count * r.parts ? NPY_FPE_OVERFLOW : 0;
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

/* As np.errstate says. NumPy divides by the number of elements last, or twice; an int64 divides no
 * scalar but those of doubles. */
static int give(const gpr_call *call, int flags, const char *text, int64_t least) {
  const int op_flags = gpr_ops[call->op].flags;
  const char *name = call->options.starts ? "reduceat" : "reduce";
  const real r = real_of(call->what.result, 0);
  if (text) name = call->ndim || r.bytes < 8 ? "divide" : "scalar divide";
  if (text && (op_flags & GPR_SPREAD) && !skips_nan(call) && !least &&
      PyUFunc_GiveFloatingpointErrors("divide", NPY_FPE_INVALID) < 0)
    return 0;
  if (op_flags & GPR_NONEMPTY) name = call->ndim ? "subtract" : "scalar subtract";
  return !flags || PyUFunc_GiveFloatingpointErrors(name, flags) >= 0;
}

/* Whether np.errstate asks for any of it; -1 with an error, which may be Ctrl-C. */
static int is_asked_for(void) {
  static const char *const kinds[] = {"invalid", "over", "divide"};
  PyObject *modes = gpr_ask("numpy", "geterr", PyTuple_New(0));
  int asked = !modes ? -1 : !PyDict_Check(modes);
  for (size_t i = 0; !asked && i < sizeof kinds / sizeof kinds[0]; i++) {
    PyObject *mode = PyDict_GetItemString(modes, kinds[i]); /* borrowed */
    asked = !mode || !PyUnicode_Check(mode) || PyUnicode_CompareWithASCIIString(mode, "ignore");
  }
  Py_XDECREF(modes);
  return asked;
}

/* Without outputs, what each would have had. */
static int64_t least_of(const gpr_call *call, int64_t least) {
  int64_t n = 1;
  if (least != INT64_MAX || call->options.where || call->options.starts || !gpr_counts_first(call))
    return least;
  for (int d = 0; d < call->view.ndim; d++)
    if (call->options.axes >> d & 1) n *= call->view.shape[d];
  return n;
}

static const char *text_of(const gpr_call *call, int64_t least) {
  const int flags = gpr_ops[call->op].flags, skips = skips_nan(call);
  least = least_of(call, least);
  if (least < 0 || least == INT64_MAX) return NULL;
  if (skips && (flags & GPR_NONEMPTY) && !call->is_ufunc && least == 0)
    return "All-NaN slice encountered";
  if ((flags & GPR_SPREAD) && (double)least - call->options.ddof <= 0)
    return skips ? "Degrees of freedom <= 0 for slice." : "Degrees of freedom <= 0 for slice";
  return (flags & GPR_EMPTY_WARNS) && least == 0 ? "Mean of empty slice" : NULL;
}

/* To ask np.errstate takes 1 µs, as the look at so many numbers does that lie apart. */
enum { FEW = 512 };

static int look(const gpr_call *call, int finite, int64_t decided, const char *results,
                int64_t count, int told) {
  /* Of complex numbers kernels tell whether a part is infinite, so that of as many parts in all
   * each is explained; they may not know of numbers that are left out for the NaN in one part, and
   * where the other is no number. */
  const int is_complex = gpr_dtypes[call->view.dtype].kind == 'c';
  if (finite && !told) return flags_of_finite(call, results, count);
  if (told || (is_complex && skips_nan(call))) decided = -1;
  const int flags = flags_of(call, results, count, told, decided);
  const int is_sure = decided < 0 || !is_complex || !(flags & NPY_FPE_OVERFLOW);
  return is_sure ? flags : flags_of(call, results, count, told, -1);
}

int gpr_warn(const gpr_call *call, int64_t least, int finite, int64_t decided, const void *results,
             int64_t count) {
  const char *text = text_of(call, least);
  const gpr_value *initial = call->options.initial;
  int flags = 0;
  if (text && PyErr_WarnEx(PyExc_RuntimeWarning, text, 1)) return 0;
  if (!results || !is_arithmetic(call) || (initial && !is_finite(initial))) return 1;
  const real r = real_of(call->what.result, 0);
  if (next_special(results, 0, count * r.parts, &r) == count * r.parts) return 1;
  const int is_few = call->count + count <= FEW, asked = is_few ? 1 : is_asked_for();
  if (asked < 0) return 0;
  if (is_few) {
    flags = look(call, finite, decided, results, count, text != NULL);
  } else if (asked) {
    flags = UNLOCKED(look(call, finite, decided, results, count, text != NULL));
    if (PyErr_Occurred()) return 0;
  }
  return give(call, flags, text, least);
}

/* float_errors(name, flags of NPY_FPE_*): as np.errstate says. */
static PyObject *float_errors(PyObject *module, PyObject *args) {
  const char *name;
  int flags;
  (void)module;
  if (!PyArg_ParseTuple(args, "si", &name, &flags)) return NULL;
  if (flags && PyUFunc_GiveFloatingpointErrors(name, flags) < 0) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef gpr_warn_methods[] = {
    {"float_errors", float_errors, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
