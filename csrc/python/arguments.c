#define NO_IMPORT_ARRAY
#include "parse.h"

#include "../plan.h"
#include "foreign.h"
#include "libraries.h"
#include "objects.h"

PyObject *gpr_no_value, *gpr_axis_error, *gpr_auto;

int gpr_arguments_init(void) {
  if (!gpr_no_value) gpr_no_value = gpr_imported("numpy", "_NoValue");
  if (!gpr_axis_error) gpr_axis_error = gpr_imported("numpy.exceptions", "AxisError");
  if (!gpr_auto) gpr_auto = PyUnicode_InternFromString("auto");
  return gpr_no_value && gpr_axis_error && gpr_auto;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Puts what the argument is called before NumPy's and Python's own words, which do not say. */
static int name_argument(const gpr_call *call, const char *argument) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *text = PyObject_Str(value), *named = NULL;
  const int plain =
      type == PyExc_TypeError || type == PyExc_ValueError || type == PyExc_OverflowError;
  const char *words = text && plain ? PyUnicode_AsUTF8(text) : NULL;
  if (words && !strstr(words, argument) && strncmp(words, "gpureduce.", strlen("gpureduce.")))
    named = Py_BuildValue(
        "(N)", PyUnicode_FromFormat("gpureduce.%s: %s: %s", call->name, argument, words));
  if (named) PyObject_SetAttrString(value, "args", named);
  Py_XDECREF(named);
  Py_XDECREF(text);
  PyErr_Restore(type, value, trace);
  return 0;
}
static int named(int fine, const gpr_call *call, const char *argument) {
  return fine || name_argument(call, argument);
}

/* --- the array -------------------------------------------------------------------------------- */

/* Tensors of a dtype that PyTorch gives to NumPy in no way, by their bits. */
static PyArrayObject *of_torch(PyObject *object) {
  PyObject *given = gpr_ask("gpureduce.libraries", "of_torch", PyTuple_Pack(1, object));
  PyObject *array = given ? PyArray_FromAny(given, NULL, 0, 0, 0, NULL) : NULL;
  Py_XDECREF(given);
  return (PyArrayObject *)array;
}

static PyArrayObject *as_array(PyObject *object, const char *function) {
  if (PyArray_CheckExact(object)) return (PyArrayObject *)Py_NewRef(object);
  if (PyObject_HasAttrString(object, "mask") && PyObject_HasAttrString(object, "compressed")) {
    gpr_refuse(PyExc_TypeError, function,
               "a masked array is not taken; give a.compressed() or a.filled(...)");
    return NULL;
  }
  if (gpr_library_of(object) == GPR_TORCH) return of_torch(object);
  return (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
}

static void set_view(gpr_view *view, PyArrayObject *array, int dtype) {
  memset(view, 0, offsetof(gpr_view, shape));
  view->data = PyArray_DATA(array);
  view->dtype = dtype;
  view->ndim = PyArray_NDIM(array);
  view->device = GPR_DEVICE_CPU;
  view->swapped = !PyArray_ISNOTSWAPPED(array);
  for (int d = 0; d < view->ndim; d++) {
    view->shape[d] = PyArray_DIM(array, d);
    view->strides[d] = PyArray_STRIDE(array, d);
  }
}

static int open_array(PyObject *object, gpr_call *call) {
  if (!PyArray_Check(object)) {
    const int found = gpr_foreign_view(object, call->name, &call->view, &call->holder);
    if (found < 0) return 0;
    if (found) {
      call->found = found;
      call->count = 1;
      for (int d = 0; d < call->view.ndim; d++) call->count *= call->view.shape[d];
      return 1;
    }
  }
  PyArrayObject *array = as_array(object, call->name);
  if (!array) return 0;
  call->holder = (PyObject *)array;
  call->descr = (PyArray_Descr *)Py_NewRef(PyArray_DESCR(array));
  call->count = PyArray_SIZE(array);
  const int dtype = gpr_supported_array(array, object, call->name);
  if (dtype != GPR_NO_DTYPE) set_view(&call->view, array, dtype);
  return dtype != GPR_NO_DTYPE;
}

/* --- device, dtype, initial ------------------------------------------------------------------- */

/* The name of a textbook kernel, or of a variant. */
static int parse_kernel(PyObject *object, const char *function, int *kernel) {
  if (!gpr_is_given(object)) return 1;
  const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
  if (!text && PyErr_Occurred()) return 0;
  *kernel = text ? gpr_kernel_index(text) : GPR_NO_KERNEL;
  if (*kernel != GPR_NO_KERNEL) return 1;
  PyObject *names = PyUnicode_FromString(gpr_kernels[0].name);
  for (int k = 1; names && k < GPR_KERNEL_COUNT; k++)
    Py_SETREF(names, PyUnicode_FromFormat("%U, %s", names, gpr_kernels[k].name));
  for (int v = GPR_ANY_VARIANT + 1; names && v < GPR_VARIANT_END; v++)
    Py_SETREF(names, PyUnicode_FromFormat("%U, %s", names, gpr_variants[v].name));
  if (names) gpr_refuse(PyExc_ValueError, function, "kernel %R is not one of %U", object, names);
  Py_XDECREF(names);
  return 0;
}

static int parse_dtype(PyObject *object, gpr_call *call) {
  if (!gpr_is_given(object)) return 1;
  if (!PyArray_DescrConverter(object, &call->asked)) return name_argument(call, "dtype");
  call->options.dtype = gpr_supported_dtype(call->asked, call->name);
  return call->options.dtype != GPR_NO_DTYPE;
}

/* Units of time are not converted, by NumPy's reductions neither: dtype may be the array's own, or
 * a time without unit. */
static int check_unit(PyArray_Descr *asked, PyArray_Descr *descr, const char *function) {
  PyArray_Descr *native = NULL, *own = NULL, *bare = NULL;
  int fits = 1;
  if (asked && descr && asked->kind == descr->kind && (asked->kind == 'm' || asked->kind == 'M')) {
    native = PyArray_DescrNewByteorder(asked, NPY_NATIVE);
    own = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
    bare = PyArray_DescrFromType(asked->type_num);
    fits = native && own && bare &&
           (PyArray_EquivTypes(native, own) || PyArray_EquivTypes(native, bare));
    if (!fits && !PyErr_Occurred())
      gpr_refuse(PyExc_TypeError, function,
                 "%R has another unit than the array's %R; convert with a.astype() first", asked,
                 descr);
  }
  Py_XDECREF(bare);
  Py_XDECREF(own);
  Py_XDECREF(native);
  return fits;
}

/* The reference to descr is the array's from here on. */
static int pack_matrix(PyObject *object, PyArray_Descr *descr, gpr_value *value) {
  const int flags = NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST;
  PyArrayObject *array = (PyArrayObject *)PyArray_FromAny(object, descr, 2, 2, flags, NULL);
  if (!array) return 0;
  const npy_intp rows = PyArray_DIM(array, 0), columns = PyArray_DIM(array, 1);
  const int fits = rows == 2 && columns == 2;
  if (fits)
    memcpy(value->bytes, PyArray_DATA(array), (size_t)PyArray_NBYTES(array));
  else
    PyErr_Format(PyExc_ValueError, "initial has the shape (%zd, %zd); a (2, 2) matrix would do",
                 rows, columns);
  Py_DECREF(array);
  return fits;
}

/* initial as a value of the result's dtype, taken or refused as NumPy's reductions do. */
static int pack_initial(PyObject *object, int dtype, gpr_call *call) {
  gpr_value *initial = &call->initial;
  PyArray_Descr *descr = gpr_result_descr(dtype, call->of);
  if (!descr) return 0;
  initial->dtype = dtype;
  if (gpr_ops[call->op].flags & GPR_MATRICES) return pack_matrix(object, descr, initial);
  const int failed = PyArray_Pack(descr, initial->bytes, object);
  Py_DECREF(descr);
  return !failed;
}

/* NumPy's None is no initial value at all, not even the identity. */
static int parse_initial(PyObject *object, gpr_call *call) {
  const gpr_op_info *o = &gpr_ops[call->op];
  const int dtype = call->what.result;
  if (object == Py_None && !(o->flags & GPR_NONEMPTY)) {
    const int masked = call->options.where != NULL;
    if (!masked && (call->count || !gpr_count_outputs(&call->view, &call->options))) return 1;
    PyErr_Format(PyExc_ValueError,
                 masked ? "reduction operation '%s' does not have an identity, so to use a where "
                          "mask one has to specify 'initial'"
                        : "zero-size array to reduction operation %s which has no identity",
                 o->ufunc);
    return 0;
  }
  if (!gpr_is_given(object) || dtype == GPR_NO_DTYPE) return 1; /* gpr_open() says why not */
  call->options.initial = &call->initial;
  return pack_initial(object, dtype, call);
}

static int warn_complex(int dtype, const gpr_options *options) {
  if (options->dtype == GPR_NO_DTYPE || gpr_dtypes[dtype].kind != 'c') return 1;
  const char kind = gpr_dtypes[options->dtype].kind;
  if (kind == 'c' || kind == 'b') return 1;
  PyObject *category = gpr_imported("numpy.exceptions", "ComplexWarning");
  const int fine =
      category &&
      !PyErr_WarnEx(category, "Casting complex values to real discards the imaginary part", 1);
  Py_XDECREF(category);
  return fine;
}

/* --- where, mean ------------------------------------------------------------------------------ */

static void mask_error(const gpr_call *call, const gpr_view *mask) {
  npy_intp own[GPR_DIMS_MAX], other[GPR_DIMS_MAX];
  for (int d = 0; d < call->view.ndim; d++) own[d] = (npy_intp)call->view.shape[d];
  for (int d = 0; d < mask->ndim; d++) other[d] = (npy_intp)mask->shape[d];
  PyObject *array = PyArray_IntTupleFromIntp(call->view.ndim, own);
  PyObject *where = PyArray_IntTupleFromIntp(mask->ndim, other);
  if (array && where)
    gpr_refuse(PyExc_ValueError, call->name,
               "where of shape %R could not be broadcast to the array's shape %R", where, array);
  Py_XDECREF(where);
  Py_XDECREF(array);
}

/* As the array is, with strides of 0 where the mask is broadcast. */
static int broadcast_mask(gpr_call *call, const gpr_view *mask) {
  const int extra = call->view.ndim - mask->ndim;
  int fits = extra >= 0;
  memcpy(&call->where, mask, offsetof(gpr_view, shape));
  call->where.ndim = call->view.ndim;
  for (int d = 0; fits && d < call->view.ndim; d++) {
    const int64_t length = d < extra ? 1 : mask->shape[d - extra];
    fits = length == 1 || length == call->view.shape[d];
    call->where.shape[d] = call->view.shape[d];
    call->where.strides[d] = length == 1 ? 0 : mask->strides[d - extra];
  }
  if (!fits) mask_error(call, mask);
  return fits;
}

static int parse_where(PyObject *object, gpr_call *call) {
  gpr_view mask;
  if (!object || object == gpr_no_value || object == Py_True) return 1;
  if (object == Py_None && gpr_counts_first(call))
    return gpr_refuse(PyExc_TypeError, call->name, "where must be a mask, not None");
  call->options.where = &call->where;
  if (call->view.device < 0) { /* look_again() fills it in */
    call->where_holder = PyArray_FromAny(object, PyArray_DescrFromType(NPY_BOOL), 0, 0, 0, NULL);
    return call->where_holder != NULL;
  }
  const int found = gpr_foreign_view(object, call->name, &mask, &call->where_holder);
  if (!found)
    gpr_refuse(PyExc_TypeError, call->name, "where must lie on the device, as the array does");
  if (found <= 0) return 0;
  if (mask.device != call->view.device)
    return gpr_refuse(PyExc_ValueError, call->name,
                      "where lies on cuda:%d, and the array on cuda:%d", mask.device,
                      call->view.device);
  return broadcast_mask(call, &mask);
}

/* When all of the caller's code has run, which may have resized the arrays of the host. */
static int look_again(gpr_call *call) {
  if (!call->descr) return 1;
  PyArrayObject *array = (PyArrayObject *)call->holder;
  const gpr_view *view = &call->view;
  const int bytes = gpr_dtypes[view->dtype].bytes;
  int same = PyArray_NDIM(array) == view->ndim && PyArray_ITEMSIZE(array) == bytes;
  for (int d = 0; same && d < view->ndim; d++)
    same = PyArray_DIM(array, d) == view->shape[d] && PyArray_STRIDE(array, d) == view->strides[d];
  if (!same)
    return gpr_refuse(PyExc_RuntimeError, call->name,
                      "the array was resized while the other arguments were read");
  call->view.data = PyArray_DATA(array);
  if (!call->where_holder) return 1;
  gpr_view mask;
  set_view(&mask, (PyArrayObject *)call->where_holder, GPR_BOOL);
  return broadcast_mask(call, &mask);
}

static int copy_numbers(PyArrayObject *to, PyObject *object, const char *function) {
  PyArrayObject *from = (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
  int fits = from && gpr_is_number(PyArray_DESCR(from)) &&
             (PyArray_ISCOMPLEX(to) || !PyArray_ISCOMPLEX(from));
  if (from && !fits)
    gpr_refuse(PyExc_TypeError, function, "mean is of %s numbers, not of %R",
               PyArray_ISCOMPLEX(to) ? "complex" : "real", (PyObject *)PyArray_DESCR(from));
  fits = fits && PyArray_CopyInto(to, from) >= 0;
  Py_XDECREF(from);
  return fits;
}

static int parse_spread(const gpr_given *given, gpr_call *call) {
  npy_intp shape[NPY_MAXDIMS];
  const int parts = gpr_dtypes[call->view.dtype].kind == 'c' ? 2 : 1;
  if (given->ddof) call->options.ddof = PyFloat_AsDouble(given->ddof);
  if (PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      gpr_refuse(PyExc_TypeError, call->name, "ddof must be a real number, not %.200s",
                 Py_TYPE(given->ddof)->tp_name);
    return 0;
  }
  if (!gpr_is_given(given->mean)) return 1;
  for (int d = 0; d < call->view.ndim; d++)
    shape[d] = call->options.axes >> d & 1 ? 1 : call->view.shape[d];
  call->means = (PyArrayObject *)PyArray_SimpleNew(call->view.ndim, shape,
                                                   parts == 2 ? NPY_COMPLEX128 : NPY_FLOAT64);
  if (!call->means || !copy_numbers(call->means, given->mean, call->name))
    return name_argument(call, "the mean");
  call->options.means = PyArray_DATA(call->means);
  return 1;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* An array of matrices has one axis, and its product is one matrix. */
static int check_matrices(const gpr_given *given, const gpr_call *call) {
  const int asked = gpr_is_given(given->axis) || gpr_is_given(given->out) ||
                    gpr_is_given(given->starts) ||
                    (gpr_is_given(given->where) && given->where != Py_True) ||
                    (gpr_is_given(given->keepdims) && given->keepdims != Py_False);
  if (!asked || !(gpr_ops[call->op].flags & GPR_MATRICES)) return 1;
  return gpr_refuse(PyExc_ValueError, call->name,
                    "all matrices are multiplied into one; there is no axis, out, "
                    "keepdims, where or segment");
}

static int parse_all(const gpr_given *given, gpr_call *call) {
  int keepdims;
  if (!check_matrices(given, call) || !parse_dtype(given->dtype, call) ||
      !gpr_parse_device(given->device, &call->options) ||
      !parse_kernel(given->kernel, call->name, &call->options.kernel) ||
      !open_array(given->a, call) || !gpr_widen_for_out(given->out, call) ||
      !warn_complex(call->view.dtype, &call->options) ||
      !check_unit(call->asked, call->descr, call->name) || !gpr_check_inexact(given->out, call))
    return 0;
  call->what = gpr_resolve(call->op, call->view.dtype, &call->options);
  call->of = call->asked && call->options.dtype != call->view.dtype ? call->asked : call->descr;
  if (!gpr_parse_bounds(given, call) || !named(gpr_parse_axis(given->axis, call), call, "axis") ||
      !gpr_parse_segments(given, call) || !named(parse_where(given->where, call), call, "where") ||
      !named(parse_initial(given->initial, call), call, "initial") ||
      !named(gpr_parse_keepdims(given->keepdims, call, &keepdims), call, "keepdims"))
    return 0;
  gpr_shape_result(call, keepdims);
  return ((gpr_ops[call->op].flags & GPR_SPREAD) == 0 || parse_spread(given, call)) &&
         gpr_parse_out(given->out, call) && look_again(call);
}

int gpr_arguments_open(int op, const gpr_given *given, gpr_call *call) {
  memset(call, 0, offsetof(gpr_call, view));
  call->op = op;
  call->is_ufunc = given->is_ufunc;
  call->name = !given->starts ? gpr_ops[op].name : given->stops ? "segments" : "reduceat";
  call->array = given->a;
  call->options = gpr_defaults();
  call->options.partials = given->partials;
  call->options.brief = given->brief;
  return parse_all(given, call);
}

void gpr_arguments_close(gpr_call *call) {
  Py_XDECREF(call->asked);
  Py_XDECREF(call->means);
  Py_XDECREF(call->stops);
  Py_XDECREF(call->starts);
  Py_XDECREF(call->out_holder);
  Py_XDECREF(call->where_holder);
  Py_XDECREF(call->holder);
  Py_XDECREF(call->descr);
}
