#define NO_IMPORT_ARRAY
#include "arguments.h"

#include "../../kernels/abi/lists.h"
#include "foreign.h"

static PyObject *no_value, *axis_error;

int gpr_arguments_init(void) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *exceptions = PyImport_ImportModule("numpy.exceptions");
  if (numpy && exceptions && !no_value) {
    no_value = PyObject_GetAttrString(numpy, "_NoValue");
    axis_error = PyObject_GetAttrString(exceptions, "AxisError");
  }
  Py_XDECREF(exceptions);
  Py_XDECREF(numpy);
  return no_value && axis_error;
}

static int is_given(const PyObject *object) {
  return object && object != Py_None && object != no_value;
}

static int is_inexact(int dtype) {
  const char kind = gpr_dtypes[dtype].kind;
  return kind == 'f' || kind == 'c' || kind == 'V';
}

static int is_time(const PyArray_Descr *descr) { return descr->kind == 'm' || descr->kind == 'M'; }

/* Neither text nor bytes without meaning; bfloat16 is a type of the user's to NumPy. */
static int is_number(const PyArray_Descr *descr) {
  const int num = descr->type_num;
  return PyTypeNum_ISNUMBER(num) || PyTypeNum_ISBOOL(num) || PyTypeNum_ISUSERDEF(num) ||
         PyTypeNum_ISOBJECT(num);
}

/* --- the array ---------------------------------------------------------------------------------
 */

static PyArrayObject *as_array(PyObject *object, const char *function) {
  if (PyArray_CheckExact(object)) return (PyArrayObject *)Py_NewRef(object);
  if (PyObject_HasAttrString(object, "mask") && PyObject_HasAttrString(object, "compressed")) {
    PyErr_Format(
        PyExc_TypeError,
        "gpureduce.%s: masked arrays are not supported; give a.compressed() or a.filled(...)",
        function);
    return NULL;
  }
  return (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
}

static gpr_view view_of(PyArrayObject *array, int dtype) {
  gpr_view view = {.data = PyArray_DATA(array),
                   .dtype = dtype,
                   .ndim = PyArray_NDIM(array),
                   .device = GPR_DEVICE_CPU};
  view.swapped = !PyArray_ISNOTSWAPPED(array);
  for (int d = 0; d < view.ndim; d++) {
    view.shape[d] = PyArray_DIM(array, d);
    view.strides[d] = PyArray_STRIDE(array, d);
  }
  return view;
}

static int open_array(PyObject *object, gpr_call *call) {
  if (!PyArray_Check(object)) {
    const int found = gpr_foreign_view(object, call->name, &call->view, &call->holder);
    if (found < 0) return 0;
    if (found) {
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
  const int dtype = gpr_supported_dtype(call->descr, call->name);
  if (dtype != GPR_NO_DTYPE) call->view = view_of(array, dtype);
  return dtype != GPR_NO_DTYPE;
}

/* --- device, dtype, initial --------------------------------------------------------------------
 */

/* "auto", "cpu", "cuda" or "cuda:N". */
static int parse_device(PyObject *object, int *device) {
  if (!object) return 1;
  const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
  char *end = NULL;
  if (!text && PyErr_Occurred()) return 0;
  if (text && !strcmp(text, "auto")) {
    *device = GPR_DEVICE_AUTO;
  } else if (text && !strcmp(text, "cpu")) {
    *device = GPR_DEVICE_CPU;
  } else if (text && !strcmp(text, "cuda")) {
    *device = 0;
  } else if (text && !strncmp(text, "cuda:", 5) && text[5] >= '0' && text[5] <= '9' &&
             strlen(text) < 10 && (*device = (int)strtol(text + 5, &end, 10), *end == 0)) {
    return 1;
  } else {
    PyErr_Format(PyExc_ValueError,
                 "device %R is not one of 'auto', 'cpu', 'cuda' and 'cuda:0', 'cuda:1', ...",
                 object);
    return 0;
  }
  return 1;
}

/* One of the textbook kernels' names. */
static int parse_kernel(PyObject *object, int *kernel) {
  if (!is_given(object)) return 1;
  const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
  if (!text && PyErr_Occurred()) return 0;
  *kernel = text ? gpr_kernel_index(text) : GPR_NO_KERNEL;
  if (*kernel != GPR_NO_KERNEL) return 1;
  PyObject *names = PyUnicode_FromString(gpr_kernels[0].name);
  for (int k = 1; names && k < GPR_KERNEL_COUNT; k++)
    Py_SETREF(names, PyUnicode_FromFormat("%U, %s", names, gpr_kernels[k].name));
  if (names) PyErr_Format(PyExc_ValueError, "kernel %R is not one of %U", object, names);
  Py_XDECREF(names);
  return 0;
}

static int parse_dtype(PyObject *object, gpr_call *call) {
  if (!is_given(object)) return 1;
  if (!PyArray_DescrConverter(object, &call->asked)) return 0;
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
      PyErr_Format(PyExc_TypeError,
                   "gpureduce.%s: dtype %R has another unit than the array's %R; "
                   "convert with a.astype() first",
                   function, asked, descr);
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
  const int dtype = gpr_result_dtype(call->op, call->view.dtype, &call->options);
  if (object == Py_None && !(o->flags & GPR_NONEMPTY)) {
    const int masked = call->options.where != NULL;
    if (!masked && (call->count || !gpr_outputs(&call->view, &call->options))) return 1;
    PyErr_Format(PyExc_ValueError,
                 masked ? "reduction operation '%s' does not have an identity, so to use a where "
                          "mask one has to specify 'initial'"
                        : "zero-size array to reduction operation %s which has no identity",
                 o->ufunc);
    return 0;
  }
  if (!is_given(object) || dtype == GPR_NO_DTYPE) return 1; /* gpr_open() says why not */
  call->options.initial = &call->initial;
  return pack_initial(object, dtype, call);
}

static int warn_complex(int dtype, const gpr_options *options) {
  if (options->dtype == GPR_NO_DTYPE || gpr_dtypes[dtype].kind != 'c') return 1;
  const char kind = gpr_dtypes[options->dtype].kind;
  if (kind == 'c' || kind == 'b') return 1;
  PyObject *module = PyImport_ImportModule("numpy.exceptions"), *category = NULL;
  if (module) category = PyObject_GetAttrString(module, "ComplexWarning");
  const int fine =
      category &&
      !PyErr_WarnEx(category, "Casting complex values to real discards the imaginary part", 1);
  Py_XDECREF(category);
  Py_XDECREF(module);
  return fine;
}

/* --- axis, keepdims ----------------------------------------------------------------------------
 */

static int as_int(PyObject *object, const char *name, PyObject *too_large, const gpr_call *call,
                  int *value) {
  const npy_intp number = PyArray_PyIntAsIntp(object);
  if (number == -1 && PyErr_Occurred()) return 0;
  *value = (int)number;
  if (*value == number) return 1;
  PyErr_Format(too_large, "gpureduce.%s: %s=%zd does not fit into a C int", call->name, name,
               (Py_ssize_t)number);
  return 0;
}

/* NumPy's means and variances are Python's, and count the elements along the axes first. */
static int counts_first(const gpr_call *call) {
  const int flags = gpr_ops[call->op].flags;
  return (flags & (GPR_EMPTY_WARNS | GPR_SPREAD)) &&
         !((flags & GPR_SKIPS_NAN) && is_inexact(call->view.dtype));
}

static int add_axis(PyObject *object, gpr_call *call) {
  const int ndim = call->view.ndim;
  PyObject *too_large = counts_first(call) ? PyExc_OverflowError : PyExc_ValueError;
  int axis;
  if (!as_int(object, "axis", too_large, call, &axis)) return 0;
  if (axis < -ndim || axis >= ndim) {
    PyObject *error = PyObject_CallFunction(axis_error, "ii", axis, ndim);
    if (error) PyErr_SetObject(axis_error, error);
    Py_XDECREF(error);
    return 0;
  }
  if (axis < 0) axis += ndim;
  if (call->options.axes & GPR_AXIS(axis)) {
    PyErr_SetString(PyExc_ValueError, "duplicate value in 'axis'");
    return 0;
  }
  call->options.axes |= GPR_AXIS(axis);
  return 1;
}

/* NumPy lets most functions reduce a scalar along axis 0. */
static int has_scalar_axis(PyObject *object, const gpr_call *call) {
  if (call->view.ndim || PyTuple_Check(object) || counts_first(call)) return 0;
  const int axis = PyArray_PyIntAsInt(object), failed = PyErr_Occurred() != NULL;
  if (failed) PyErr_Clear(); /* it comes again */
  return !failed && (axis == 0 || axis == -1);
}

static int parse_axis(PyObject *object, gpr_call *call) {
  if (!is_given(object)) return 1;
  call->options.axes = 0;
  if (has_scalar_axis(object, call)) return 1;
  if (!PyTuple_Check(object) || (gpr_ops[call->op].flags & GPR_POSITION))
    return add_axis(object, call);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
    if (!add_axis(PyTuple_GET_ITEM(object, i), call)) return 0;
  return 1;
}

/* An integer for NumPy's ufuncs; anything that is true or false for its positions. */
static int parse_keepdims(PyObject *object, const gpr_call *call, int *keepdims) {
  *keepdims = object == Py_True;
  if (!object || object == no_value || PyBool_Check(object)) return 1;
  if (gpr_ops[call->op].flags & GPR_POSITION) return (*keepdims = PyObject_IsTrue(object)) >= 0;
  return as_int(object, "keepdims", PyExc_OverflowError, call, keepdims);
}

static void shape_result(gpr_call *call, int keepdims) {
  for (int d = 0; d < call->view.ndim; d++) {
    const int reduced = call->options.axes >> d & 1;
    if (reduced && call->options.starts)
      call->segments_axis = call->ndim, call->shape[call->ndim++] = call->options.segments;
    else if (!reduced)
      call->shape[call->ndim++] = call->view.shape[d];
    else if (keepdims)
      call->shape[call->ndim++] = 1;
  }
}

/* --- where, mean -------------------------------------------------------------------------------
 */

/* As the array is, with strides of 0 where the mask is broadcast. */
static int broadcast_mask(gpr_call *call, const gpr_view *mask) {
  const int extra = call->view.ndim - mask->ndim;
  int fits = extra >= 0;
  call->where = *mask;
  call->where.ndim = call->view.ndim;
  for (int d = 0; fits && d < call->view.ndim; d++) {
    const int64_t length = d < extra ? 1 : mask->shape[d - extra];
    fits = length == 1 || length == call->view.shape[d];
    call->where.shape[d] = call->view.shape[d];
    call->where.strides[d] = length == 1 ? 0 : mask->strides[d - extra];
  }
  if (!fits)
    PyErr_Format(PyExc_ValueError,
                 "gpureduce.%s: where could not be broadcast to the shape of the array: it has %d "
                 "dimensions and the array %d, which have to agree from the last or be 1",
                 call->name, mask->ndim, call->view.ndim);
  return fits;
}

static int parse_where(PyObject *object, gpr_call *call) {
  gpr_view mask;
  if (!object || object == no_value || object == Py_True) return 1;
  call->options.where = &call->where;
  if (call->view.device < 0) { /* look_again() fills it in */
    call->where_holder = PyArray_FromAny(object, PyArray_DescrFromType(NPY_BOOL), 0, 0, 0, NULL);
    return call->where_holder != NULL;
  }
  const int found = gpr_foreign_view(object, call->name, &mask, &call->where_holder);
  if (!found)
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: where is to lie on the device, as the array does",
                 call->name);
  if (found != 1) return 0;
  if (mask.device != call->view.device) {
    PyErr_Format(PyExc_ValueError, "gpureduce.%s: where lies on cuda:%d, and the array on cuda:%d",
                 call->name, mask.device, call->view.device);
    return 0;
  }
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
  if (!same) {
    PyErr_Format(PyExc_RuntimeError,
                 "gpureduce.%s: the array was resized while the other arguments were read",
                 call->name);
    return 0;
  }
  call->view.data = PyArray_DATA(array);
  if (!call->where_holder) return 1;
  const gpr_view mask = view_of((PyArrayObject *)call->where_holder, GPR_BOOL);
  return broadcast_mask(call, &mask);
}

static int copy_numbers(PyArrayObject *to, PyObject *object, const char *function) {
  PyArrayObject *from = (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
  int fits =
      from && is_number(PyArray_DESCR(from)) && (PyArray_ISCOMPLEX(to) || !PyArray_ISCOMPLEX(from));
  if (from && !fits)
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: mean is of %s numbers, not of %R", function,
                 PyArray_ISCOMPLEX(to) ? "complex" : "real", (PyObject *)PyArray_DESCR(from));
  fits = fits && PyArray_CopyInto(to, from) >= 0;
  Py_XDECREF(from);
  return fits;
}

static int parse_spread(const gpr_given *given, gpr_call *call) {
  npy_intp shape[NPY_MAXDIMS];
  const int parts = gpr_dtypes[call->view.dtype].kind == 'c' ? 2 : 1;
  if (given->ddof) call->options.ddof = PyFloat_AsDouble(given->ddof);
  if (PyErr_Occurred()) return 0;
  if (!is_given(given->mean)) return 1;
  for (int d = 0; d < call->view.ndim; d++)
    shape[d] = call->options.axes >> d & 1 ? 1 : call->view.shape[d];
  call->means = (PyArrayObject *)PyArray_SimpleNew(call->view.ndim, shape,
                                                   parts == 2 ? NPY_COMPLEX128 : NPY_FLOAT64);
  if (!call->means || !copy_numbers(call->means, given->mean, call->name)) return 0;
  call->options.means = PyArray_DATA(call->means);
  return 1;
}

/* --- out ---------------------------------------------------------------------------------------
 */

/* NumPy's reductions cast numbers to out as they have to, and times to times and integers. */
static int is_cast(PyArray_Descr *from, PyArray_Descr *to) {
  if (is_time(to))
    return PyArray_CanCastTypeTo(from, to,
                                 is_time(from) ? NPY_SAME_KIND_CASTING : NPY_SAFE_CASTING);
  if (!is_time(from) || PyTypeNum_ISOBJECT(to->type_num)) return is_number(to);
  return from->kind == 'm' && (PyTypeNum_ISINTEGER(to->type_num) || PyTypeNum_ISBOOL(to->type_num));
}

/* Truth goes wherever assignment takes it. */
static int is_truth(int op) { return gpr_result_dtype(op, GPR_FLOAT64, NULL) == GPR_BOOL; }

static int check_cast(const gpr_call *call, PyArray_Descr *to) {
  const int flags = gpr_ops[call->op].flags;
  const int dtype = gpr_result_dtype(call->op, call->view.dtype, &call->options);
  if (dtype == GPR_NO_DTYPE) return 1; /* gpr_open() says why not */
  PyArray_Descr *from = gpr_result_descr(dtype, call->of);
  if (!from) return 0;
  int fits = is_truth(call->op) ? !PyDataType_HASFIELDS(to) : is_cast(from, to);
  if (flags & GPR_POSITION) fits = PyArray_CanCastTypeTo(to, from, NPY_SAFE_CASTING);
  if (flags & GPR_OUT_KIND) fits &= PyArray_CanCastTypeTo(from, to, NPY_SAME_KIND_CASTING);
  if (!fits)
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: cannot cast the result from %R to out's %R",
                 call->name, (PyObject *)from, (PyObject *)to);
  Py_DECREF(from);
  return fits;
}

static int shape_error(const gpr_call *call, PyObject *given) {
  PyObject *shape = PyArray_IntTupleFromIntp(call->ndim, call->shape);
  if (shape && given)
    PyErr_Format(PyExc_ValueError, "gpureduce.%s: the result has shape %R, and out %R", call->name,
                 shape, given);
  Py_XDECREF(given);
  Py_XDECREF(shape);
  return 0;
}

static int check_out(PyObject *object, const gpr_call *call) {
  PyArrayObject *out = (PyArrayObject *)object;
  if (!PyArray_Check(object)) {
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: out is to be an array, not %.200s", call->name,
                 Py_TYPE(object)->tp_name);
    return 0;
  }
  int fits = PyArray_NDIM(out) == call->ndim;
  for (int d = 0; fits && d < call->ndim; d++) fits = PyArray_DIM(out, d) == call->shape[d];
  if (!fits)
    return shape_error(call, PyArray_IntTupleFromIntp(PyArray_NDIM(out), PyArray_DIMS(out)));
  return PyArray_FailUnlessWriteable(out, "output array") >= 0 &&
         check_cast(call, PyArray_DESCR(out));
}

/* A device array's out lies beside it, as the result would. */
static int parse_device_out(PyObject *object, gpr_call *call, int results) {
  const int dtype = gpr_result_dtype(call->op, call->view.dtype, &call->options);
  gpr_view out;
  if (dtype == GPR_NO_DTYPE) return 1; /* gpr_open() says why not */
  const int found =
      results == 1 ? gpr_foreign_view(object, call->name, &out, &call->out_holder) : 0;
  if (found < 0) return 0;
  if (!found || out.device != call->view.device) {
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: out is to be one array on cuda:%d, where a is",
                 call->name, call->view.device);
    return 0;
  }
  int fits = out.ndim == call->ndim, ready = !out.read_only && !out.swapped;
  int64_t stride = gpr_dtypes[dtype].bytes;
  for (int d = call->ndim - 1; fits && d >= 0; d--) {
    fits = out.shape[d] == call->shape[d];
    ready = ready && (out.shape[d] <= 1 || out.strides[d] == stride);
    stride *= out.shape[d];
  }
  if (!fits) return shape_error(call, PyArray_IntTupleFromIntp(out.ndim, out.shape));
  if (out.dtype != dtype) {
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: the result is of dtype %s, and out of %s",
                 call->name, gpr_dtypes[dtype].name, gpr_dtypes[out.dtype].name);
    return 0;
  }
  if (!ready || call->segments_axis) {
    PyErr_Format(
        PyExc_ValueError,
        "gpureduce.%s: out is to be writeable and in C order, and segments are to be along "
        "the first axis",
        call->name);
    return 0;
  }
  call->device_out = object;
  call->options.out = (void *)out.data;
  return 1;
}

static int parse_out(PyObject *object, gpr_call *call, int results) {
  if (!is_given(object)) return 1;
  if (call->view.device >= 0) return parse_device_out(object, call, results);
  if (results == 1) {
    call->out[0] = (PyArrayObject *)object;
    return check_out(object, call);
  }
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != results) {
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: out is to be a tuple of %d arrays", call->name,
                 results);
    return 0;
  }
  for (int i = 0; i < results; i++) {
    call->out[i] = (PyArrayObject *)PyTuple_GET_ITEM(object, i);
    if (!check_out((PyObject *)call->out[i], call)) return 0;
  }
  return 1;
}

/* Without dtype, NumPy's sums and products are taken in what both the array and out fit. */
static int widen_for_out(PyObject *object, gpr_call *call) {
  if (!is_given(object) || !PyArray_Check(object) || call->asked || !call->descr ||
      !(gpr_ops[call->op].flags & GPR_TAKES_DTYPE) || call->descr->kind == 'm')
    return 1;
  PyArray_Descr *both = PyArray_PromoteTypes(call->descr, PyArray_DESCR((PyArrayObject *)object));
  if (!both) PyErr_Clear();
  const int dtype = both ? gpr_dtype_of(both) : GPR_NO_DTYPE;
  const int wider = is_inexact(call->view.dtype) ? call->view.dtype != dtype
                                                 : dtype != GPR_NO_DTYPE && is_inexact(dtype);
  const int both_parts = dtype != GPR_NO_DTYPE && gpr_dtypes[dtype].kind == 'c' &&
                         (gpr_ops[call->op].flags & GPR_SPREAD); /* whose result is real */
  if (dtype != GPR_NO_DTYPE && wider && !both_parts) {
    call->asked = both;
    call->options.dtype = dtype;
  } else {
    Py_XDECREF(both);
  }
  return 1;
}

/* NumPy's nanmean, nanvar and nanstd of inexact numbers. */
static int check_inexact(PyObject *out, const gpr_call *call) {
  const int flags = gpr_ops[call->op].flags;
  const char *what = NULL;
  if (!(flags & GPR_SKIPS_NAN) || !(flags & (GPR_EMPTY_WARNS | GPR_SPREAD))) return 1;
  if (!is_inexact(call->view.dtype)) return 1;
  if (call->options.dtype != GPR_NO_DTYPE && !is_inexact(call->options.dtype)) what = "dtype";
  if (is_given(out) && PyArray_Check(out)) {
    const int dtype = gpr_dtype_of(PyArray_DESCR((PyArrayObject *)out));
    if (dtype == GPR_NO_DTYPE || !is_inexact(dtype)) what = "out";
  }
  if (what)
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: if a is inexact, then %s must be inexact",
                 call->name, what);
  return !what;
}

/* --- segments ----------------------------------------------------------------------------------
 */

/* Always a copy: they are checked once and read until the call ends. Of a list NumPy takes floats
 * too, without what follows the point. */
static PyArrayObject *indices(PyObject *object, int more) {
  const int flags = NPY_ARRAY_DEFAULT | NPY_ARRAY_ENSURECOPY | more;
  return (PyArrayObject *)PyArray_FromAny(object, PyArray_DescrFromType(NPY_INT64), 1, 1, flags,
                                          NULL);
}

/* Whole numbers, of a list too; an empty one is of floats to NumPy. */
static PyArrayObject *whole_indices(PyObject *object, const char *function) {
  PyArrayObject *given = (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
  PyArray_Descr *whole = PyArray_DescrFromType(NPY_INT64);
  PyArrayObject *result = NULL;
  if (given && PyArray_SIZE(given) && !PyArray_CanCastArrayTo(given, whole, NPY_SAFE_CASTING))
    PyErr_Format(PyExc_TypeError,
                 "gpureduce.%s: starts and stops are integers of 64 bits, not of %R", function,
                 (PyObject *)PyArray_DESCR(given));
  else if (given)
    result = indices((PyObject *)given, NPY_ARRAY_FORCECAST);
  Py_DECREF(whole);
  Py_XDECREF(given);
  return result;
}

/* As NumPy's reduceat: each starts where it says and ends where the next one starts, and one that
 * would end before it starts is its first element alone. */
static int end_segments(gpr_call *call, int64_t length) {
  const npy_intp n = PyArray_SIZE(call->starts);
  const int64_t *starts = PyArray_DATA(call->starts);
  call->stops = (PyArrayObject *)PyArray_SimpleNew(1, &n, NPY_INT64);
  if (!call->stops) return 0;
  int64_t *stops = PyArray_DATA(call->stops);
  for (npy_intp i = 0; i < n; i++) {
    if (starts[i] < 0 || starts[i] >= length) {
      PyErr_Format(PyExc_IndexError, "index %lld out-of-bounds in reduceat [0, %lld)",
                   (long long)starts[i], (long long)length);
      return 0;
    }
    stops[i] = i + 1 < n ? starts[i + 1] : length;
    if (stops[i] <= starts[i]) stops[i] = starts[i] + 1;
  }
  return 1;
}

static int parse_bounds(const gpr_given *given, gpr_call *call) {
  if (!given->starts) return 1;
  if (!given->stops) return (call->starts = indices(given->starts, 0)) != NULL;
  return (call->starts = whole_indices(given->starts, call->name)) &&
         (call->stops = whole_indices(given->stops, call->name));
}

static int parse_segments(const gpr_given *given, gpr_call *call) {
  int64_t length = 0;
  int axes = 0;
  if (!given->starts) return 1;
  for (int d = 0; d < call->view.ndim; d++)
    if (call->options.axes >> d & 1) axes++, length = call->view.shape[d];
  if (axes != 1) {
    PyErr_Format(call->view.ndim ? PyExc_ValueError : PyExc_TypeError,
                 "gpureduce.%s: segments are parts of one axis, not of %d (the array has %d)",
                 call->name, axes, call->view.ndim);
    return 0;
  }
  if (!call->stops && !end_segments(call, length)) return 0;
  call->options.segments = PyArray_SIZE(call->starts);
  call->options.starts = PyArray_DATA(call->starts);
  call->options.stops = PyArray_DATA(call->stops);
  if (PyArray_SIZE(call->stops) != call->options.segments) {
    PyErr_Format(PyExc_ValueError, "gpureduce.%s: %zd starts and %zd stops", call->name,
                 (Py_ssize_t)call->options.segments, (Py_ssize_t)PyArray_SIZE(call->stops));
    return 0;
  }
  for (int64_t i = 0; i < call->options.segments; i++)
    if (call->options.starts[i] < 0 || call->options.stops[i] > length) {
      PyErr_Format(PyExc_IndexError,
                   "gpureduce.%s: segment %lld, [%lld, %lld), is not within [0, %lld)", call->name,
                   (long long)i, (long long)call->options.starts[i],
                   (long long)call->options.stops[i], (long long)length);
      return 0;
    }
  return 1;
}

/* --- all of them -------------------------------------------------------------------------------
 */

/* An array of matrices has one axis, and its product is one matrix. */
static int check_matrices(const gpr_given *given, const gpr_call *call) {
  const int asked = is_given(given->axis) || is_given(given->out) || is_given(given->starts) ||
                    (is_given(given->where) && given->where != Py_True) ||
                    (is_given(given->keepdims) && given->keepdims != Py_False);
  if (!asked || !(gpr_ops[call->op].flags & GPR_MATRICES)) return 1;
  PyErr_Format(PyExc_ValueError,
               "gpureduce.%s: all matrices are multiplied into one; there is no axis, out, "
               "keepdims, where or segment",
               call->name);
  return 0;
}

static int parse_all(const gpr_given *given, gpr_call *call) {
  int keepdims;
  const int results = gpr_results(call->op);
  if (!check_matrices(given, call) || !parse_dtype(given->dtype, call) ||
      !parse_device(given->device, &call->options.device) ||
      !parse_kernel(given->kernel, &call->options.kernel) || !open_array(given->a, call) ||
      !widen_for_out(given->out, call) || !warn_complex(call->view.dtype, &call->options) ||
      !check_unit(call->asked, call->descr, call->name) || !check_inexact(given->out, call))
    return 0;
  call->of = call->asked && call->options.dtype != call->view.dtype ? call->asked : call->descr;
  if (!parse_bounds(given, call) || !parse_axis(given->axis, call) ||
      !parse_segments(given, call) || !parse_where(given->where, call) ||
      !parse_initial(given->initial, call) || !parse_keepdims(given->keepdims, call, &keepdims))
    return 0;
  shape_result(call, keepdims);
  return ((gpr_ops[call->op].flags & GPR_SPREAD) == 0 || parse_spread(given, call)) &&
         parse_out(given->out, call, results) && look_again(call);
}

int gpr_arguments_open(int op, const gpr_given *given, gpr_call *call) {
  memset(call, 0, offsetof(gpr_call, view));
  call->op = op;
  call->is_ufunc = given->is_ufunc;
  call->name = !given->starts ? gpr_ops[op].name : given->stops ? "segments" : "reduceat";
  call->array = given->a;
  call->options = gpr_defaults();
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
