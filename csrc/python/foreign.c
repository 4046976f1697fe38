#include "foreign.h"

#include <stdlib.h>
#include <string.h>

#include "../../kernels/abi/lists.h"
#include "dlpack.h"
#include "libraries.h"
#include "objects.h"
#include "../cuda/gpu.h"

/* Made once: a name costs as much as the look-up. */
static PyObject *name_dlpack, *name_device, *name_interface, *name_exchange, *name_stream;
static PyObject *name_gradient, *name_conjugated, *name_negated;
static PyObject *stream_names, *legacy_stream;

int gpr_foreign_init(void) {
  const struct {
    PyObject **name;
    const char *text;
  } names[] = {{&name_dlpack, "__dlpack__"},
               {&name_device, "__dlpack_device__"},
               {&name_interface, "__cuda_array_interface__"},
               {&name_exchange, GPR_DL_EXCHANGE},
               {&name_stream, "stream"},
               {&name_gradient, "requires_grad"},
               {&name_conjugated, "is_conj"},
               {&name_negated, "is_neg"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!*names[i].name && !(*names[i].name = PyUnicode_InternFromString(names[i].text))) return 0;
  if (!stream_names) stream_names = PyTuple_Pack(1, name_stream);
  if (!legacy_stream) legacy_stream = PyLong_FromLong(1);
  return stream_names && legacy_stream;
}

/* NULL without an exception if there is none. */
static PyObject *optional_attribute(PyObject *object, PyObject *name) {
  PyObject *value;
#if PY_VERSION_HEX >= 0x030d0000
  PyObject_GetOptionalAttr(object, name, &value);
#else
  value = PyObject_GetAttr(object, name);
  if (!value && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
#endif
  return value;
}

/* The same of a type: to say by an exception that it has none takes 0.4 µs. */
static PyObject *optional_attribute_of(PyTypeObject *type, PyObject *name) {
#if PY_VERSION_HEX >= 0x030d0000
  return optional_attribute((PyObject *)type, name);
#else
  return Py_XNewRef(_PyType_Lookup(type, name));
#endif
}

int gpr_pass_over(void) {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return 0;
  PyErr_Clear();
  return 1;
}

/* --- DLPack ----------------------------------------------------------------------------------- */

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
  return gpr_refuse(PyExc_ValueError, function, "an array of %ld dimensions; %d are possible", ndim,
                    GPR_DIMS_MAX);
}

/* Not below zero, and no more elements than can be counted. */
static int check_shape(const gpr_view *view, const char *function) {
  int64_t count = 1;
  int fine = 1;
  for (int d = 0; d < view->ndim; d++) {
    const int overflows = view->shape[d] && __builtin_mul_overflow(count, view->shape[d], &count);
    if (view->shape[d] < 0 || overflows) fine = 0;
  }
  if (!fine) gpr_refuse(PyExc_ValueError, function, "the device array has an impossible shape");
  return fine;
}

static int is_cuda(long type) { return type == GPR_DL_CUDA || type == GPR_DL_CUDA_MANAGED; }

static int view_of_tensor(const gpr_dl_tensor *t, const char *function, gpr_view *view) {
  const int bytes = t->dtype.bits / 8;
  if (!check_ndim(t->ndim, function)) return -1;
  if (!is_cuda(t->device.type) || t->device.id < 0) {
    gpr_refuse(PyExc_ValueError, function,
               "the DLPack tensor names device %d of type %d, which is no CUDA device",
               t->device.id, t->device.type);
    return -1;
  }
  *view = (gpr_view){.data = (const char *)t->data + t->byte_offset,
                     .ndim = t->ndim,
                     .device = t->device.id,
                     .dtype = t->dtype.lanes == 1 && t->dtype.bits % 8 == 0
                                  ? find_dtype(gpr_dl_kind(t->dtype.code), bytes)
                                  : GPR_NO_DTYPE};
  if (view->dtype == GPR_NO_DTYPE) {
    gpr_refuse(PyExc_TypeError, function,
               "a DLPack tensor of type code %d, %d bits and %d lanes is not supported",
               t->dtype.code, t->dtype.bits, t->dtype.lanes);
    return -1;
  }
  for (int d = 0; d < t->ndim; d++) view->shape[d] = t->shape[d];
  if (!check_shape(view, function)) return -1;
  c_strides(view);
  for (int d = 0; d < t->ndim && t->strides; d++) view->strides[d] = t->strides[d] * bytes;
  return 1;
}

/* (device type, device id), if it is a CUDA device's; -1 for what is not to be passed over. */
static int lies_on_cuda(PyObject *object) {
  PyObject *where = PyObject_CallMethodNoArgs(object, name_device);
  long type = -1;
  if (where && PyTuple_Check(where) && PyTuple_GET_SIZE(where) == 2)
    type = PyLong_AsLong(PyTuple_GET_ITEM(where, 0));
  Py_XDECREF(where);
  if (PyErr_Occurred()) return gpr_pass_over() ? 0 : -1;
  return is_cuda(type);
}

/* The producer is told that its data will be read on the legacy default stream (1), makes the data
 * ready there, and that is the stream that the view names. The capsule frees what it holds. */
static int view_by_dlpack(PyObject *object, const char *function, gpr_view *view,
                          PyObject **holder) {
  PyObject *capsule = PyObject_VectorcallMethod(name_dlpack, (PyObject *[]){object, legacy_stream},
                                                1, stream_names);
  int result = -1;
  if (capsule) {
    const gpr_dl_tensor *tensor = PyCapsule_GetPointer(capsule, "dltensor");
    if (tensor) result = view_of_tensor(tensor, function, view);
  }
  if (result == 1)
    *holder = capsule;
  else
    Py_XDECREF(capsule);
  return result;
}

/* NULL if the object's type has none, or of another version. */
static const gpr_dl_exchange *exchange_of(PyObject *object) {
  PyObject *capsule = optional_attribute_of(Py_TYPE(object), name_exchange);
  const gpr_dl_exchange *exchange =
      capsule ? PyCapsule_GetPointer(capsule, GPR_DL_EXCHANGE_CAPSULE) : NULL;
  Py_XDECREF(capsule); /* the type keeps it */
  return gpr_pass_over() && exchange && exchange->version.major == 1 && exchange->tensor_of &&
                 exchange->current_stream
             ? exchange
             : NULL;
}

/* Whether what came of asking for it, which is taken over, is true. */
static int is_true(PyObject *value) {
  const int answer = value && PyObject_IsTrue(value) == 1;
  Py_XDECREF(value);
  return gpr_pass_over() && answer;
}
/* Whether a method says so, if there is one. */
static int says(PyObject *object, PyObject *name) {
  return is_true(PyObject_CallMethodNoArgs(object, name));
}

/* PyTorch's exchange gives the memory as it is of tensors that its __dlpack__ refuses, as they need
 * gradients or are to be conjugated first. Neither looks at a sign that is to be changed. */
static int check_negated(PyObject *object, const char *function) {
  if (!says(object, name_negated)) return !PyErr_Occurred();
  return gpr_refuse(
      PyExc_BufferError, function,
      "the tensor is a view whose signs are not changed yet: use tensor.resolve_neg()");
}
static int is_refused(PyObject *object, int is_complex) {
  return is_true(optional_attribute(object, name_gradient)) ||
         (is_complex && !PyErr_Occurred() && says(object, name_conjugated));
}

/* 0 also for what it has no answer for: __dlpack__ will say why. */
static int view_by_exchange(const gpr_dl_exchange *exchange, PyObject *object, const char *function,
                            gpr_view *view) {
  gpr_dl_tensor tensor;
  void *stream = NULL;
  if (exchange->tensor_of(object, &tensor)) return gpr_pass_over() ? 0 : -1;
  if (!is_cuda(tensor.device.type)) return 0;
  if (is_refused(object, gpr_dl_kind(tensor.dtype.code) == 'c') || PyErr_Occurred()) return 0;
  if (!check_negated(object, function)) return -1;
  if (exchange->current_stream(tensor.device.type, tensor.device.id, &stream)) {
    if (!PyErr_Occurred())
      gpr_refuse(PyExc_BufferError, function, "the tensor's library names no stream");
    return -1;
  }
  const int result = view_of_tensor(&tensor, function, view);
  view->stream = stream;
  return result;
}

/* Likewise, of a library without an exchange. */
static int view_by_library(int library, PyObject *object, const char *function, gpr_view *view) {
  if (library == GPR_TORCH && (is_refused(object, 1) || PyErr_Occurred())) return 0;
  const int found = gpr_library_view(library, object, view);
  return found == 1 && library == GPR_TORCH && !check_negated(object, function) ? -1 : found;
}

/* --- the CUDA array interface, version 3
 * ---------------------------------------------------------- */

static int bad_interface(const char *function, const char *what) {
  if (!PyErr_Occurred())
    gpr_refuse(PyExc_ValueError, function, "__cuda_array_interface__ has no valid %s", what);
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

static int read_interface(PyObject *dict, const char *function, gpr_view *view) {
  PyObject *shape = PyDict_GetItemString(dict, "shape"), *data = PyDict_GetItemString(dict, "data");
  PyObject *strides = PyDict_GetItemString(dict, "strides"),
           *mask = PyDict_GetItemString(dict, "mask");
  *view = (gpr_view){.device = GPR_DEVICE_CPU};
  if (mask && mask != Py_None) {
    gpr_refuse(PyExc_TypeError, function, "masked device arrays are not supported");
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
    gpr_refuse(PyExc_TypeError, function, "device arrays of type %R are not supported",
               PyDict_GetItemString(dict, "typestr"));
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
  gpr_refuse(PyExc_ValueError, function,
             "the array's address %p is not one of a CUDA device's memory", view->data);
  return -1;
}

/* By a copy: a number's __index__ may empty the dict that it came in. */
static int view_by_interface(PyObject *given, const char *function, gpr_view *view) {
  if (!PyDict_Check(given)) return bad_interface(function, "dict");
  PyObject *dict = PyDict_Copy(given);
  const int result = dict ? read_interface(dict, function, view) : -1;
  Py_XDECREF(dict);
  return result;
}

static int find_view(PyObject *object, const char *function, gpr_view *view, PyObject **holder) {
  *holder = NULL;
  if (PyList_Check(object) || PyTuple_Check(object) || PyFloat_Check(object) ||
      PyLong_Check(object))
    return GPR_NOT_THERE;
  int result = 0;
  const gpr_dl_exchange *exchange = exchange_of(object);
  const int library = exchange ? GPR_NO_LIBRARY : gpr_library_of(object);
  if (exchange) result = view_by_exchange(exchange, object, function, view);
  if (library) result = view_by_library(library, object, function, view);
  if (PyErr_Occurred()) return -1;
  if (result == 1) {
    *holder = Py_NewRef(object);
    return GPR_ON_ITS_STREAM;
  }
  const int there = lies_on_cuda(object);
  if (there < 0) return -1;
  if (there) return view_by_dlpack(object, function, view, holder);
  PyObject *dict = optional_attribute(object, name_interface);
  if (dict) result = view_by_interface(dict, function, view);
  Py_XDECREF(dict);
  if (PyErr_Occurred()) return -1;
  if (result == 1) *holder = Py_NewRef(object);
  return result;
}

int gpr_foreign_view(PyObject *object, const char *function, gpr_view *view, PyObject **holder) {
  const int found = find_view(object, function, view, holder);
  if (found > 0) view->memory = GPR_CUDA_MEMORY;
  return found;
}
