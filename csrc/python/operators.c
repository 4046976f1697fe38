/* What Python needs to fold with users' operators on devices: memory there, and launches. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../../kernels/abi/lists.h"
#include "../cuda/gpu.h"
#include "device_array.h"
#include "foreign.h"
#include "module.h"
#include "objects.h"

enum { STEP_NANOSECONDS = 50 * 1000 * 1000 };

/* --- arrays ----------------------------------------------------------------------------------- */

/* device_view(object, name): where an array lies on a device, or None; the last one keeps it there:
 * (address, dtype, shape, strides, device, stream, swapped, read only, whether the stream is its
 * library's, holder). */
static PyObject *device_view(PyObject *module, PyObject *args) {
  PyObject *object, *holder;
  const char *name;
  gpr_view view;
  (void)module;
  if (!PyArg_ParseTuple(args, "Os", &object, &name)) return NULL;
  const int found = gpr_foreign_view(object, name, &view, &holder);
  if (found < 0) return NULL;
  if (found == GPR_NOT_THERE) Py_RETURN_NONE;
  return Py_BuildValue("(NsNNiNiiiN)", PyLong_FromVoidPtr((void *)(uintptr_t)view.data),
                       gpr_dtypes[view.dtype].name, gpr_tuple_of(view.ndim, view.shape, 1),
                       gpr_tuple_of(view.ndim, view.strides, 1), view.device,
                       PyLong_FromVoidPtr(view.stream), view.swapped, view.read_only,
                       found == GPR_ON_ITS_STREAM, holder);
}

static void *pointer_of(unsigned long long number) { return (void *)(uintptr_t)number; }

static int dtype_named(const char *name) {
  for (int d = 0; d < GPR_DTYPE_COUNT; d++)
    if (!strcmp(gpr_dtypes[d].name, name)) return d;
  PyErr_Format(PyExc_TypeError, "no device has arrays of dtype %s", name);
  return GPR_NO_DTYPE;
}

/* device_memory(device, stream, dtype, count): a DeviceArray of what is there. */
static PyObject *device_memory(PyObject *module, PyObject *args) {
  int device;
  unsigned long long stream;
  const char *name;
  long long count;
  (void)module;
  if (!PyArg_ParseTuple(args, "iKsL", &device, &stream, &name, &count)) return NULL;
  const int dtype = dtype_named(name);
  if (dtype == GPR_NO_DTYPE) return NULL;
  return gpr_device_array_new(device, pointer_of(stream), dtype, count);
}

static int is_device_array(PyObject *object) {
  return !strcmp(Py_TYPE(object)->tp_name, "gpureduce.DeviceArray") ||
         (PyErr_SetString(PyExc_TypeError, "this takes a DeviceArray"), 0);
}

static PyObject *device_address(PyObject *module, PyObject *array) {
  (void)module;
  return is_device_array(array) ? PyLong_FromVoidPtr(gpr_device_array_data(array)) : NULL;
}

/* device_mark(array, stream): it is ready when the stream is done with what it has now. */
static PyObject *device_mark(PyObject *module, PyObject *args) {
  PyObject *array;
  unsigned long long stream;
  (void)module;
  if (!PyArg_ParseTuple(args, "OK", &array, &stream) || !is_device_array(array)) return NULL;
  return gpr_nothing(gpr_device_array_mark(array, pointer_of(stream)) ? GPR_OK : GPR_DEVICE_ERROR);
}

static int read_numbers(PyObject *tuple, int64_t *to) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    to[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
  return !PyErr_Occurred();
}

/* device_shaped(array, shape, strides in elements) */
static PyObject *device_shaped(PyObject *module, PyObject *args) {
  PyObject *array, *shape, *strides;
  int64_t lengths[GPR_DIMS_MAX], steps[GPR_DIMS_MAX];
  (void)module;
  if (!PyArg_ParseTuple(args, "OO!O!", &array, &PyTuple_Type, &shape, &PyTuple_Type, &strides) ||
      !is_device_array(array))
    return NULL;
  const Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
  if (ndim > GPR_DIMS_MAX || PyTuple_GET_SIZE(strides) != ndim)
    return PyErr_Format(PyExc_ValueError, "%zd dimensions; %d are possible", ndim, GPR_DIMS_MAX);
  if (!read_numbers(shape, lengths) || !read_numbers(strides, steps)) return NULL;
  return gpr_device_array_view(array, 0, (int)ndim, lengths, steps);
}

/* --- copies and order ------------------------------------------------------------------------- */

/* device_put(device, stream, address, bytes-like), device_get(device, stream, address, to) */
static PyObject *move(PyObject *args, int is_put) {
  int device;
  unsigned long long stream, address;
  Py_buffer host;
  if (!PyArg_ParseTuple(args, is_put ? "iKKy*" : "iKKw*", &device, &stream, &address, &host))
    return NULL;
  void *there = pointer_of(address);
  const gpr_status status =
      UNLOCKED(gpr_gpu_move(device, pointer_of(stream), is_put ? there : host.buf,
                            is_put ? host.buf : there, (size_t)host.len));
  PyBuffer_Release(&host);
  return gpr_nothing(status);
}
static PyObject *device_put(PyObject *module, PyObject *args) {
  (void)module;
  return move(args, 1);
}
static PyObject *device_get(PyObject *module, PyObject *args) {
  (void)module;
  return move(args, 0);
}

/* device_order(device, before, stream): what comes on the stream waits for what the other has. */
static PyObject *device_order(PyObject *module, PyObject *args) {
  int device;
  unsigned long long before, stream;
  (void)module;
  if (!PyArg_ParseTuple(args, "iKK", &device, &before, &stream)) return NULL;
  return gpr_nothing(gpr_gpu_order(device, pointer_of(before), pointer_of(stream)));
}

static PyObject *device_wait(PyObject *module, PyObject *args) {
  int device;
  unsigned long long stream;
  (void)module;
  if (!PyArg_ParseTuple(args, "iK", &device, &stream)) return NULL;
  return gpr_nothing(UNLOCKED(gpr_gpu_wait(device, pointer_of(stream))));
}

static PyObject *multiprocessors(PyObject *module, PyObject *args) {
  int device, number = 0;
  (void)module;
  if (!PyArg_ParseTuple(args, "i", &device)) return NULL;
  const gpr_status status = gpr_gpu_multiprocessors(device, &number);
  return status ? gpr_raise(status) : PyLong_FromLong(number);
}

/* --- operators -------------------------------------------------------------------------------- */

#define PROGRAM "gpureduce.program"

static void drop(PyObject *capsule) { gpr_program_drop(PyCapsule_GetPointer(capsule, PROGRAM)); }

/* operator_program(header, defines, kernel) */
static PyObject *operator_program(PyObject *module, PyObject *args) {
  const char *header, *defines, *kernel;
  (void)module;
  if (!PyArg_ParseTuple(args, "sss", &header, &defines, &kernel)) return NULL;
  gpr_program *program = gpr_program_new(header, defines, kernel);
  if (!program) return PyErr_NoMemory();
  PyObject *capsule = PyCapsule_New(program, PROGRAM, drop);
  if (!capsule) gpr_program_drop(program);
  return capsule;
}

/* The program may be dropped by who has it while the compiler has it still. */
static gpr_status launch_at_last(const gpr_operator_launch *l) {
  gpr_status status;
  do status = UNLOCKED(gpr_gpu_operator(l, STEP_NANOSECONDS));
  while (status == GPR_MORE && !PyErr_CheckSignals());
  return status;
}

/* operator_launch(program, device, stream, args, blocks, threads, scratch, is_own, words,
 * segments): the first words of a gpr_operator_args that the caller has set, and what is to be
 * brought. */
static PyObject *operator_launch(PyObject *module, PyObject *arguments) {
  PyObject *capsule;
  gpr_operator_launch l = {NULL};
  unsigned long long stream;
  long long blocks, scratch, segments;
  Py_buffer args, words;
  PyObject *result = NULL;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OiKw*LiLpy*L", &capsule, &l.device, &stream, &args, &blocks,
                        &l.threads, &scratch, &l.is_own, &words, &segments))
    return NULL;
  const int64_t far = words.len / (int64_t)sizeof *l.words - 2 * segments;
  if ((l.program = PyCapsule_GetPointer(capsule, PROGRAM)) == NULL) goto fail;
  if (args.len != (Py_ssize_t)sizeof *l.args || far < 0) {
    PyErr_Format(PyExc_ValueError, "the arguments of an operator have %zu bytes, not %zd",
                 sizeof *l.args, args.len);
    goto fail;
  }
  l.args = args.buf, l.words = words.buf;
  l.stream = pointer_of(stream);
  l.blocks = blocks, l.scratch = (size_t)scratch;
  l.segments = segments, l.far = far;
  const gpr_status status = launch_at_last(&l);
  if (!PyErr_Occurred()) result = gpr_nothing(status);
fail:
  PyBuffer_Release(&args);
  PyBuffer_Release(&words);
  return result;
}

PyMethodDef gpr_operator_methods[] = {
    {"device_view", device_view, METH_VARARGS, NULL},
    {"device_memory", device_memory, METH_VARARGS, NULL},
    {"device_address", device_address, METH_O, NULL},
    {"device_mark", device_mark, METH_VARARGS, NULL},
    {"device_shaped", device_shaped, METH_VARARGS, NULL},
    {"device_put", device_put, METH_VARARGS, NULL},
    {"device_get", device_get, METH_VARARGS, NULL},
    {"device_order", device_order, METH_VARARGS, NULL},
    {"device_wait", device_wait, METH_VARARGS, NULL},
    {"multiprocessors", multiprocessors, METH_VARARGS, NULL},
    {"operator_program", operator_program, METH_VARARGS, NULL},
    {"operator_launch", operator_launch, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
