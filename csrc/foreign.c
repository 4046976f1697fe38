#include "foreign.h"

#include <stdlib.h>
#include <string.h>

#include "../kernels/lists.h"
#include "dlpack.h"
#include "gpu.h"

/* --- DLPack ------------------------------------------------------------------------------------
 */

static int find_dtype(char kind, int bytes) {
  for (int d = 0; d < GPR_DTYPE_COUNT; d++)
    if (gpr_dtypes[d].kind == kind && gpr_dtypes[d].bytes == bytes) return d;
  return GPR_NO_DTYPE;
}

static void c_strides(gpr_view *view) {
  int64_t stride = gpr_dtypes[view->dtype].bytes;
  for (int d = view->ndim - 1; d >= 0; d--) {
    view->strides[d] = stride;
    stride *= view->shape[d];
  }
}

static int check_ndim(long ndim, const char *function) {
  if (ndim >= 0 && ndim <= GPR_DIMS_MAX) return 1;
  PyErr_Format(PyExc_ValueError, "gpureduce.%s: an array of %ld dimensions; %d are possible",
               function, ndim, GPR_DIMS_MAX);
  return 0;
}

/* Not below zero, and no more elements than can be counted. */
static int check_shape(const gpr_view *view, const char *function) {
  int64_t count = 1;
  int fine = 1;
  for (int d = 0; d < view->ndim; d++) {
    const int overflows = view->shape[d] && __builtin_mul_overflow(count, view->shape[d], &count);
    if (view->shape[d] < 0 || overflows) fine = 0;
  }
  if (!fine)
    PyErr_Format(PyExc_ValueError, "gpureduce.%s: the device array has an impossible shape",
                 function);
  return fine;
}

static int view_of_tensor(const gpr_dl_tensor *t, const char *function, gpr_view *view) {
  const int bytes = t->dtype.bits / 8;
  if (!check_ndim(t->ndim, function)) return -1;
  *view = (gpr_view){.data = (const char *)t->data + t->byte_offset,
                     .ndim = t->ndim,
                     .device = t->device.id,
                     .dtype = t->dtype.lanes == 1 && t->dtype.bits % 8 == 0
                                  ? find_dtype(gpr_dl_kind(t->dtype.code), bytes)
                                  : GPR_NO_DTYPE};
  if (view->dtype == GPR_NO_DTYPE) {
    PyErr_Format(
        PyExc_TypeError,
        "gpureduce.%s: a DLPack tensor of type code %d, %d bits and %d lanes is not supported",
        function, t->dtype.code, t->dtype.bits, t->dtype.lanes);
    return -1;
  }
  for (int d = 0; d < t->ndim; d++) view->shape[d] = t->shape[d];
  if (!check_shape(view, function)) return -1;
  c_strides(view);
  for (int d = 0; d < t->ndim && t->strides; d++) view->strides[d] = t->strides[d] * bytes;
  return 1;
}

/* (device type, device id), if it is a CUDA device's. */
static int lies_on_cuda(PyObject *object) {
  PyObject *where = PyObject_CallMethod(object, "__dlpack_device__", NULL);
  long type = -1;
  if (where && PyTuple_Check(where) && PyTuple_GET_SIZE(where) == 2)
    type = PyLong_AsLong(PyTuple_GET_ITEM(where, 0));
  Py_XDECREF(where);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return 0;
  }
  return type == GPR_DL_CUDA || type == GPR_DL_CUDA_MANAGED;
}

/* The producer is told that its data will be read on the legacy default stream (1), makes the data
 * ready there, and that is the stream that the view names. The capsule frees what it holds. */
static int view_by_dlpack(PyObject *object, const char *function, gpr_view *view,
                          PyObject **holder) {
  PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = NULL, *keywords = NULL,
           *capsule = NULL;
  int result = -1;
  if (method) none = PyTuple_New(0);
  if (none) keywords = Py_BuildValue("{s:i}", "stream", 1);
  if (keywords) capsule = PyObject_Call(method, none, keywords);
  if (capsule) {
    const gpr_dl_tensor *tensor = PyCapsule_GetPointer(capsule, "dltensor");
    if (tensor) result = view_of_tensor(tensor, function, view);
  }
  if (result == 1)
    *holder = capsule;
  else
    Py_XDECREF(capsule);
  Py_XDECREF(keywords);
  Py_XDECREF(none);
  Py_XDECREF(method);
  return result;
}

/* --- the CUDA array interface, version 3
 * ---------------------------------------------------------- */

static int bad_interface(const char *function, const char *what) {
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_ValueError, "gpureduce.%s: __cuda_array_interface__ has no valid %s",
                 function, what);
  return -1;
}

static int read_sizes(PyObject *tuple, int ndim, int64_t *to) {
  if (!tuple || !PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != ndim) return 0;
  for (int d = 0; d < ndim; d++) {
    to[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, d));
    if (to[d] == -1 && PyErr_Occurred()) return 0;
  }
  return 1;
}

static int read_typestr(PyObject *text, gpr_view *view) {
  const char *t = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
  if (!t || strlen(t) < 3 || strlen(t) > 4) return 0;
  view->dtype = find_dtype(t[1], atoi(t + 2));
  view->swapped = t[0] == '>';
  return 1;
}

/* None is the default stream; 1 and 2 are the driver's names of the legacy and per-thread ones. */
static int read_stream(PyObject *stream, gpr_view *view) {
  if (!stream || stream == Py_None) return 1;
  const long long handle = PyLong_AsLongLong(stream);
  if (handle == 0 || (handle == -1 && PyErr_Occurred())) return 0;
  view->stream = (void *)(intptr_t)handle;
  return 1;
}

static int view_by_interface(PyObject *dict, const char *function, gpr_view *view) {
  if (!PyDict_Check(dict)) return bad_interface(function, "dict");
  PyObject *shape = PyDict_GetItemString(dict, "shape"), *data = PyDict_GetItemString(dict, "data");
  PyObject *strides = PyDict_GetItemString(dict, "strides"),
           *mask = PyDict_GetItemString(dict, "mask");
  *view = (gpr_view){.device = GPR_DEVICE_CPU};
  if (mask && mask != Py_None) {
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: masked device arrays are not supported", function);
    return -1;
  }
  if (!shape || !PyTuple_Check(shape)) return bad_interface(function, "shape");
  if (!check_ndim((long)PyTuple_GET_SIZE(shape), function)) return -1;
  view->ndim = (int)PyTuple_GET_SIZE(shape);
  if (!read_sizes(shape, view->ndim, view->shape)) return bad_interface(function, "shape");
  if (!check_shape(view, function)) return -1;
  if (!read_typestr(PyDict_GetItemString(dict, "typestr"), view))
    return bad_interface(function, "typestr");
  if (view->dtype == GPR_NO_DTYPE) {
    PyErr_Format(PyExc_TypeError, "gpureduce.%s: device arrays of type %R are not supported",
                 function, PyDict_GetItemString(dict, "typestr"));
    return -1;
  }
  c_strides(view);
  if (strides && strides != Py_None && !read_sizes(strides, view->ndim, view->strides))
    return bad_interface(function, "strides");
  if (!read_stream(PyDict_GetItemString(dict, "stream"), view))
    return bad_interface(function, "stream");
  if (!data || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) < 1)
    return bad_interface(function, "data");
  view->data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0));
  view->read_only = PyTuple_GET_SIZE(data) > 1 && PyObject_IsTrue(PyTuple_GET_ITEM(data, 1)) == 1;
  if (PyErr_Occurred()) return -1;
  view->device = gpr_gpu_device_of(view->data);
  if (view->device >= 0) return 1;
  for (int d = 0; d < view->ndim; d++)
    if (view->shape[d] == 0) return view->device = 0, 1; /* nothing will be read */
  PyErr_Format(PyExc_ValueError,
               "gpureduce.%s: the array's address %p is not one of a CUDA device's memory",
               function, view->data);
  return -1;
}

static PyObject *optional_attribute(PyObject *object, const char *name) {
  PyObject *value = PyObject_GetAttrString(object, name);
  if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  return value;
}

int gpr_foreign_view(PyObject *object, const char *function, gpr_view *view, PyObject **holder) {
  *holder = NULL;
  if (PyList_Check(object) || PyTuple_Check(object) || PyFloat_Check(object) ||
      PyLong_Check(object))
    return 0;
  if (lies_on_cuda(object)) return view_by_dlpack(object, function, view, holder);
  PyObject *dict = optional_attribute(object, "__cuda_array_interface__");
  if (!dict) return PyErr_Occurred() ? -1 : 0;
  const int result = view_by_interface(dict, function, view);
  Py_DECREF(dict);
  if (result == 1) *holder = Py_NewRef(object);
  return result;
}
