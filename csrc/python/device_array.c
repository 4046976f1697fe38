#include "device_array.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/abi/lists.h"
#include "dlpack.h"
#include "../cuda/gpu.h"
#include "module.h"
#include "objects.h"

/* Device memory that arrays and DLPack's tensors share; whoever is last may not hold the GIL. */
typedef struct buffer {
  atomic_int users;
  int device;
  void *mark; /* on the stream that makes it ready; streams themselves may be gone by then */
  void *data;
} buffer;

typedef struct device_array {
  PyObject_HEAD buffer *buffer;
  int dtype, ndim;
  int64_t offset; /* elements, as strides */
  int64_t shape[GPR_DIMS_MAX], strides[GPR_DIMS_MAX];
} device_array;

static PyTypeObject *type; /* the module's, made once */

#define LEGACY ((void *)1) /* the driver's name of the default stream */

static void drop(buffer *b) {
  if (!b || atomic_fetch_sub(&b->users, 1) != 1) return;
  gpr_gpu_release(b->device, b->data, b->mark);
  free(b);
}

static PyObject *make(buffer *b, int dtype) {
  device_array *a = PyObject_New(device_array, type);
  if (!a) return NULL;
  a->buffer = b;
  a->dtype = dtype;
  a->ndim = 0;
  a->offset = 0;
  return (PyObject *)a;
}

PyObject *gpr_device_array_new(int device, void *stream, int dtype, int64_t count) {
  buffer *b = calloc(1, sizeof *b);
  if (!b) return PyErr_NoMemory();
  b->device = device;
  atomic_init(&b->users, 1);
  const size_t bytes = (size_t)count * (size_t)gpr_dtypes[dtype].bytes;
  const gpr_status status = gpr_gpu_allocate(device, bytes, stream, &b->data);
  if (status) {
    free(b);
    return gpr_raise(status);
  }
  device_array *a = (device_array *)make(b, dtype);
  if (!a) {
    drop(b);
    return NULL;
  }
  a->ndim = 1;
  a->shape[0] = count;
  a->strides[0] = 1;
  return (PyObject *)a;
}

int gpr_device_array_mark(PyObject *array, void *stream) {
  buffer *b = ((device_array *)array)->buffer;
  return gpr_gpu_mark(b->device, stream, &b->mark) == GPR_OK;
}

void *gpr_device_array_data(PyObject *array) { return ((device_array *)array)->buffer->data; }

PyObject *gpr_device_array_view(PyObject *array, int64_t offset, int ndim, const int64_t *shape,
                                const int64_t *strides) {
  const device_array *from = (device_array *)array;
  device_array *a = (device_array *)make(from->buffer, from->dtype);
  if (!a) return NULL;
  atomic_fetch_add(&a->buffer->users, 1);
  a->offset = offset;
  a->ndim = ndim;
  memcpy(a->shape, shape, (size_t)ndim * sizeof *shape);
  memcpy(a->strides, strides, (size_t)ndim * sizeof *strides);
  return (PyObject *)a;
}

static void dealloc(PyObject *self) {
  drop(((device_array *)self)->buffer);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* --- what other libraries ask for ------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *unused) {
  const device_array *a = (device_array *)self;
  (void)unused;
  return gpr_tuple_of(a->ndim, a->shape, 1);
}

static PyObject *get_dtype(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(gpr_dtypes[((device_array *)self)->dtype].name);
}

/* The CUDA array interface, version 3, on the legacy default stream. */
static PyObject *get_interface(PyObject *self, void *unused) {
  const device_array *a = (device_array *)self;
  const gpr_dtype_info *dtype = &gpr_dtypes[a->dtype];
  char typestr[8];
  (void)unused;
  if (gpr_gpu_follow(a->buffer->device, a->buffer->mark, LEGACY))
    return PyErr_Format(PyExc_BufferError, "%s", gpr_error());
  snprintf(typestr, sizeof typestr, "%c%c%d", dtype->bytes == 1 ? '|' : '<', dtype->kind,
           dtype->bytes);
  return Py_BuildValue("{s:N,s:N,s:s,s:(NO),s:i,s:i}", "shape", gpr_tuple_of(a->ndim, a->shape, 1),
                       "strides", gpr_tuple_of(a->ndim, a->strides, dtype->bytes), "typestr",
                       typestr, "data",
                       PyLong_FromVoidPtr((char *)a->buffer->data + a->offset * dtype->bytes),
                       Py_False, "version", 3, "stream", 1);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused) {
  (void)unused;
  return Py_BuildValue("(ii)", GPR_DL_CUDA, ((device_array *)self)->buffer->device);
}

/* A tensor with its own copy of the shape. */
typedef struct exported {
  gpr_dl_managed managed;
  buffer *buffer;
  int64_t shape[GPR_DIMS_MAX], strides[GPR_DIMS_MAX];
} exported;

static void delete_exported(gpr_dl_managed *managed) {
  exported *e = managed->context;
  drop(e->buffer);
  free(e);
}

static void delete_capsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return; /* it was taken */
  gpr_dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
  managed->deleter(managed);
}

static PyObject *export_tensor(const device_array *a) {
  exported *e = calloc(1, sizeof *e);
  if (!e) return PyErr_NoMemory();
  atomic_fetch_add(&a->buffer->users, 1);
  e->buffer = a->buffer;
  memcpy(e->shape, a->shape, (size_t)a->ndim * sizeof *a->shape);
  memcpy(e->strides, a->strides, (size_t)a->ndim * sizeof *a->strides);
  e->managed.context = e;
  e->managed.deleter = delete_exported;
  e->managed.tensor =
      (gpr_dl_tensor){.data = a->buffer->data,
                      .device = {GPR_DL_CUDA, a->buffer->device},
                      .ndim = a->ndim,
                      .dtype = {.code = (uint8_t)gpr_dl_code(gpr_dtypes[a->dtype].kind),
                                .bits = (uint8_t)(8 * gpr_dtypes[a->dtype].bytes),
                                .lanes = 1},
                      .shape = e->shape,
                      .strides = e->strides,
                      .byte_offset = (uint64_t)(a->offset * gpr_dtypes[a->dtype].bytes)};
  PyObject *capsule = PyCapsule_New(&e->managed, "dltensor", delete_capsule);
  if (!capsule) delete_exported(&e->managed);
  return capsule;
}

/* The consumer's stream waits for what makes the data; None is the legacy default stream, -1 asks
 * for no order at all. */
static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  const device_array *a = (device_array *)self;
  PyObject *stream = Py_None, *version = NULL, *where = NULL, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO", names, &stream, &version, &where,
                                   &copy))
    return NULL;
  if (copy == Py_True || gpr_dl_code(gpr_dtypes[a->dtype].kind) < 0)
    return PyErr_Format(PyExc_BufferError, "gpureduce: no DLPack tensor of dtype %s%s",
                        gpr_dtypes[a->dtype].name, copy == Py_True ? " as a copy" : "");
  const long long handle = stream == Py_None ? 1 : PyLong_AsLongLong(stream);
  if (PyErr_Occurred()) return NULL;
  if (handle >= 0 && gpr_gpu_follow(a->buffer->device, a->buffer->mark, (void *)(intptr_t)handle))
    return PyErr_Format(PyExc_BufferError, "%s", gpr_error());
  return export_tensor(a);
}

static PyObject *represent(PyObject *self) {
  const device_array *a = (device_array *)self;
  PyObject *shape = gpr_tuple_of(a->ndim, a->shape, 1), *text = NULL;
  if (shape)
    text = PyUnicode_FromFormat("<gpureduce.DeviceArray of shape %R, dtype %s, on cuda:%d>", shape,
                                gpr_dtypes[a->dtype].name, a->buffer->device);
  Py_XDECREF(shape);
  return text;
}

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "Its dimensions.", NULL},
    {"dtype", get_dtype, NULL, "The name of its elements' type.", NULL},
    {"__cuda_array_interface__", get_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "The result of an array on a CUDA device, there: for any library that takes DLPack or "
     "__cuda_array_interface__."},
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, represent},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "gpureduce.DeviceArray",
    .basicsize = sizeof(device_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots};

int gpr_device_array_init(PyObject *module) {
  if (!type) type = (PyTypeObject *)PyType_FromSpec(&spec);
  return type && PyModule_AddObjectRef(module, "DeviceArray", (PyObject *)type) == 0;
}
