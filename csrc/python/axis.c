#define NO_IMPORT_ARRAY
#include "parse.h"

#include "objects.h"

/* --- axis, keepdims --------------------------------------------------------------------------- */

static int as_int(PyObject *object, const char *name, PyObject *too_large, const gpr_call *call,
                  int *value) {
  const npy_intp number = PyArray_PyIntAsIntp(object);
  if (number == -1 && PyErr_Occurred()) return 0;
  *value = (int)number;
  if (*value == number) return 1;
  return gpr_refuse(too_large, call->name, "%s=%zd does not fit into a C int", name,
                    (Py_ssize_t)number);
}

int gpr_counts_first(const gpr_call *call) {
  return (gpr_ops[call->op].flags & (GPR_EMPTY_WARNS | GPR_SPREAD)) &&
         !gpr_skips(call->op, call->view.dtype);
}

static int add_axis(PyObject *object, gpr_call *call) {
  const int ndim = call->view.ndim;
  PyObject *too_large = gpr_counts_first(call) ? PyExc_OverflowError : PyExc_ValueError;
  int axis;
  if (!as_int(object, "axis", too_large, call, &axis)) return 0;
  if (axis < -ndim || axis >= ndim) {
    PyObject *error = PyObject_CallFunction(gpr_axis_error, "ii", axis, ndim);
    if (error) PyErr_SetObject(gpr_axis_error, error);
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
  if (call->view.ndim || PyTuple_Check(object) || gpr_counts_first(call)) return 0;
  const int axis = PyArray_PyIntAsInt(object), failed = PyErr_Occurred() != NULL;
  if (failed) PyErr_Clear(); /* it comes again */
  return !failed && (axis == 0 || axis == -1);
}

int gpr_parse_axis(PyObject *object, gpr_call *call) {
  if (!gpr_is_given(object)) return 1;
  call->options.axes = 0;
  if (has_scalar_axis(object, call)) return 1;
  if (!PyTuple_Check(object) || (gpr_ops[call->op].flags & GPR_POSITION))
    return add_axis(object, call);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
    if (!add_axis(PyTuple_GET_ITEM(object, i), call)) return 0;
  return 1;
}

/* An integer for NumPy's ufuncs; anything that is true or false for its positions. */
int gpr_parse_keepdims(PyObject *object, const gpr_call *call, int *keepdims) {
  *keepdims = object == Py_True;
  if (!object || object == gpr_no_value || PyBool_Check(object)) return 1;
  if (gpr_ops[call->op].flags & GPR_POSITION) return (*keepdims = PyObject_IsTrue(object)) >= 0;
  return as_int(object, "keepdims", PyExc_OverflowError, call, keepdims);
}

void gpr_shape_result(gpr_call *call, int keepdims) {
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

/* --- segments --------------------------------------------------------------------------------- */

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
    gpr_refuse(PyExc_TypeError, function, "starts and stops are integers of 64 bits, not of %R",
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

int gpr_parse_bounds(const gpr_given *given, gpr_call *call) {
  if (!given->starts) return 1;
  if (!given->stops) return (call->starts = indices(given->starts, 0)) != NULL;
  return (call->starts = whole_indices(given->starts, call->name)) &&
         (call->stops = whole_indices(given->stops, call->name));
}

int gpr_parse_segments(const gpr_given *given, gpr_call *call) {
  int64_t length = 0;
  int axes = 0;
  if (!given->starts) return 1;
  for (int d = 0; d < call->view.ndim; d++)
    if (call->options.axes >> d & 1) axes++, length = call->view.shape[d];
  if (axes != 1)
    return gpr_refuse(call->view.ndim ? PyExc_ValueError : PyExc_TypeError, call->name,
                      "one axis is cut into segments, and axis= names %d; the array has %d", axes,
                      call->view.ndim);
  if (!call->stops && !end_segments(call, length)) return 0;
  call->options.segments = PyArray_SIZE(call->starts);
  call->options.starts = PyArray_DATA(call->starts);
  call->options.stops = PyArray_DATA(call->stops);
  if (PyArray_SIZE(call->stops) != call->options.segments)
    return gpr_refuse(PyExc_ValueError, call->name, "%zd starts and %zd stops",
                      (Py_ssize_t)call->options.segments, (Py_ssize_t)PyArray_SIZE(call->stops));
  for (int64_t i = 0; i < call->options.segments; i++)
    if (call->options.starts[i] < 0 || call->options.stops[i] > length)
      return gpr_refuse(PyExc_IndexError, call->name,
                        "segment %lld, [%lld, %lld), is not within [0, %lld)", (long long)i,
                        (long long)call->options.starts[i], (long long)call->options.stops[i],
                        (long long)length);
  return 1;
}
