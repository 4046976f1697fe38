#define NO_IMPORT_ARRAY
#include "arguments.h"

#include "../cuda/gpu.h"
#include "../speeds.h"
#include "../plan.h"
#include "device_array.h"
#include "module.h"

/* bandwidth(device, bytes): bytes a second of each kind of transfer. */
static PyObject *bandwidth(PyObject *module, PyObject *args) {
  int device;
  long long bytes;
  gpr_bandwidth b;
  (void)module;
  if (!PyArg_ParseTuple(args, "iL", &device, &bytes)) return NULL;
  const gpr_status status = UNLOCKED(gpr_bandwidth_test(device, bytes, &b));
  if (status) return gpr_raise(status);
  return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "to_device_pinned", b.to_device_pinned,
                       "to_device_pageable", b.to_device_pageable, "to_host_pinned",
                       b.to_host_pinned, "to_host_pageable", b.to_host_pageable, "on_device",
                       b.on_device, "read", b.read);
}

/* The times, which are given up, as a list; or what went wrong. */
static PyObject *told(gpr_status status, double *times, int n) {
  PyObject *list = status ? gpr_raise(status) : PyList_New(n);
  for (int i = 0; list && i < n; i++) {
    PyObject *value = PyFloat_FromDouble(times[i]);
    if (!value || PyList_SetItem(list, i, value)) Py_CLEAR(list);
  }
  PyMem_Free(times);
  return list;
}

/* The call that is to be timed, and room for its times; NULL: an exception is set, nothing open. */
static double *open_timed(const char *op, const gpr_given *given, int repeats, gpr_call *call) {
  const int index = gpr_op_index(op);
  double *times = NULL;
  if (index < 0) return PyErr_Format(PyExc_ValueError, "unknown operator %s", op), NULL;
  if (gpr_arguments_open(index, given, call)) {
    times = PyMem_Calloc((size_t)(repeats > 0 ? repeats : 1), sizeof *times);
    if (!times) PyErr_NoMemory();
  }
  if (!times) gpr_arguments_close(call);
  return times;
}

/* kernel_time(kernel, op, a, device, repeats): milliseconds of each of the runs. */
static PyObject *kernel_time(PyObject *module, PyObject *args) {
  const char *op;
  gpr_given given = {NULL};
  int repeats;
  gpr_call call;
  (void)module;
  if (!PyArg_ParseTuple(args, "OsOOi", &given.kernel, &op, &given.a, &given.device, &repeats))
    return NULL;
  double *times = open_timed(op, &given, repeats, &call);
  if (!times) return NULL;
  PyObject *result = told(UNLOCKED(gpr_kernel_time(op, &call.view, &call.options, repeats, times)),
                          times, repeats);
  gpr_arguments_close(&call);
  return result;
}

/* axes_time(op, a, axis, starts, stops, repeats): milliseconds of each launch, for an array on a
 * device whose result stays there. */
static PyObject *axes_time(PyObject *module, PyObject *args) {
  const char *op;
  gpr_given given = {NULL};
  int repeats;
  gpr_call call;
  gpr_run *run = NULL;
  PyObject *out = NULL, *result = NULL;
  (void)module;
  if (!PyArg_ParseTuple(args, "sOOOOi", &op, &given.a, &given.axis, &given.starts, &given.stops,
                        &repeats))
    return NULL;
  if (given.starts == Py_None) given.starts = given.stops = NULL;
  double *times = open_timed(op, &given, repeats, &call);
  if (!times) return NULL;
  const int index = gpr_op_index(op);
  gpr_status status = GPR_DEVICE_ERROR;
  if (call.view.device < 0) {
    PyErr_SetString(PyExc_ValueError, "only what lies on a device is timed");
    goto fail;
  }
  out = gpr_device_array_new(call.view.device, call.view.stream, call.what.result,
                             gpr_count_outputs(&call.view, &call.options) * call.what.results);
  if (out) {
    call.options.out = gpr_device_array_data(out);
    call.options.out_device = call.view.device;
    status = gpr_open(index, &call.view, &call.options, &run);
  }
  if (!status) status = UNLOCKED(gpr_time(run, repeats, times));
fail:
  if (PyErr_Occurred())
    PyMem_Free(times);
  else
    result = told(status, times, repeats);
  gpr_close(run);
  Py_XDECREF(out);
  gpr_arguments_close(&call);
  return result;
}

/* chosen(op, a, axis, dtype, where, kernel, multiprocessors): (kernel, fold, blocks, how many of
 * these share an output), as if the array lay on a device with its strides. */
static PyObject *chosen(PyObject *module, PyObject *args) {
  const char *op;
  gpr_given given = {NULL};
  gpr_call call;
  gpr_choice choice;
  int multiprocessors;
  PyObject *result = NULL;
  (void)module;
  if (!PyArg_ParseTuple(args, "sOOOOOi", &op, &given.a, &given.axis, &given.dtype, &given.where,
                        &given.kernel, &multiprocessors))
    return NULL;
  if (given.where == Py_None) given.where = NULL;
  const int index = gpr_op_index(op);
  if (index < 0) return PyErr_Format(PyExc_ValueError, "unknown operator %s", op);
  if (multiprocessors < 1)
    return PyErr_Format(PyExc_ValueError, "a device has a multiprocessor at least, not %d",
                        multiprocessors);
  if (gpr_arguments_open(index, &given, &call)) {
    const gpr_status status =
        gpr_choose(index, &call.view, &call.options, multiprocessors, &choice);
    result = status ? gpr_raise(status)
                    : Py_BuildValue("(ssLi)", choice.program->kernel, choice.program->fold,
                                    (long long)choice.blocks, choice.split);
  }
  gpr_arguments_close(&call);
  return result;
}

/* shuffle(name, x, out, width, by, i, j): x and out are contiguous arrays of one shape and dtype.
 */
static PyObject *shuffle(PyObject *module, PyObject *args) {
  const char *name;
  PyArrayObject *x, *out;
  gpr_shuffle_args shuffle;
  (void)module;
  if (!PyArg_ParseTuple(args, "sO!O!iiii", &name, &PyArray_Type, &x, &PyArray_Type, &out,
                        &shuffle.width, &shuffle.by, &shuffle.i, &shuffle.j))
    return NULL;
  const int dtype = gpr_supported_dtype(PyArray_DESCR(x), name);
  if (dtype == GPR_NO_DTYPE) return NULL;
  shuffle.data = PyArray_DATA(x);
  shuffle.out = PyArray_DATA(out);
  shuffle.n = PyArray_SIZE(x);
  return gpr_nothing(UNLOCKED(gpr_gpu_shuffle(name, dtype, 0, shuffle)));
}

/* segment_sums(name, a, offsets, out, repeats): the milliseconds of each launch. The arrays are
 * contiguous, the last two of int64, and all offsets lie inside a. */
static PyObject *segment_sums(PyObject *module, PyObject *args) {
  const char *name;
  PyArrayObject *a, *offsets, *out;
  int repeats;
  (void)module;
  if (!PyArg_ParseTuple(args, "sO!O!O!i", &name, &PyArray_Type, &a, &PyArray_Type, &offsets,
                        &PyArray_Type, &out, &repeats))
    return NULL;
  const int dtype = gpr_supported_dtype(PyArray_DESCR(a), name);
  if (dtype == GPR_NO_DTYPE) return NULL;
  const gpr_segment_args segments = {.data = PyArray_DATA(a),
                                     .offset = PyArray_DATA(offsets),
                                     .sum = PyArray_DATA(out),
                                     .n = PyArray_SIZE(a),
                                     .count = PyArray_SIZE(offsets)};
  double *times = PyMem_Calloc((size_t)repeats, sizeof *times);
  if (!times) return PyErr_NoMemory();
  return told(UNLOCKED(gpr_gpu_segment_sums(name, dtype, 0, segments, repeats, times)), times,
              repeats);
}

/* speeds(): of each kind of memory None, or bytes a second of the CPU, the devices and both, the
 * seconds that CUDA takes to start, and who reduces an array of 1 GiB. */
static PyObject *speeds(PyObject *module, PyObject *unused) {
  static const char *const kinds[] = {[GPR_PAGEABLE] = "pageable", [GPR_PINNED] = "pinned"};
  PyObject *found = PyDict_New();
  (void)module, (void)unused;
  for (int kind = 0; found && kind < GPR_MEMORY_KINDS; kind++) {
    gpr_speeds s;
    PyObject *item = NULL;
    if (gpr_speeds_known(kind, &s)) {
      const gpr_places best = gpr_speeds_choose(&s, 0x1p30, 1);
      item = Py_BuildValue("{s:d,s:d,s:d,s:d,s:s}", "cpu", s.cpu, "devices", s.devices, "all",
                           s.all, "start", s.start, "best",
                           !best.devices ? "cpu"
                           : best.cpu    ? "all"
                                         : "cuda:all");
    } else {
      item = Py_NewRef(Py_None);
    }
    if (!item || PyDict_SetItemString(found, kinds[kind], item)) Py_CLEAR(found);
    Py_XDECREF(item);
  }
  return found;
}

/* measure_speeds(bytes): with so many of each kind; they are kept. */
static PyObject *measure_speeds(PyObject *module, PyObject *number) {
  (void)module;
  const long long bytes = PyLong_AsLongLong(number);
  if (PyErr_Occurred()) return NULL;
  if (bytes < 1) return PyErr_Format(PyExc_ValueError, "%lld bytes cannot be measured", bytes);
  return gpr_nothing(UNLOCKED(gpr_speeds_measure_all(bytes)));
}

PyMethodDef gpr_timing_methods[] = {
    {"speeds", speeds, METH_NOARGS, NULL},
    {"measure_speeds", measure_speeds, METH_O, NULL},
    {"bandwidth", bandwidth, METH_VARARGS, NULL},
    {"kernel_time", kernel_time, METH_VARARGS, NULL},
    {"chosen", chosen, METH_VARARGS, NULL},
    {"axes_time", axes_time, METH_VARARGS, NULL},
    {"shuffle", shuffle, METH_VARARGS, NULL},
    {"segment_sums", segment_sums, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
