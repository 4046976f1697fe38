#define NO_IMPORT_ARRAY
#include "results.h"

#include "../../kernels/abi/lists.h"
#include "../plan.h"
#include "device_array.h"
#include "foreign.h"
#include "libraries.h"
#include "module.h"
#include "objects.h"

static PyObject *scalar(const gpr_value *value, int which, PyArray_Descr *of) {
  const unsigned char *bytes = value->bytes + which * gpr_dtypes[value->dtype].bytes;
  PyArray_Descr *descr = gpr_result_descr(value->dtype, of);
  if (!descr) return NULL;
  PyObject *result = PyArray_Scalar((void *)bytes, descr, NULL);
  Py_DECREF(descr);
  return result;
}

static PyObject *matrix(const gpr_value *value, PyArray_Descr *of) {
  const npy_intp shape[] = {2, 2};
  PyArray_Descr *descr = gpr_result_descr(value->dtype, of);
  if (!descr) return NULL;
  PyObject *result = PyArray_NewFromDescr(&PyArray_Type, descr, 2, shape, NULL, NULL, 0, NULL);
  if (!result) return NULL;
  PyArrayObject *array = (PyArrayObject *)result;
  memcpy(PyArray_DATA(array), value->bytes, (size_t)PyArray_NBYTES(array));
  return result;
}

/* The result's axes as they lie in memory, the slowest first. */
static void axes_in_memory(const gpr_call *call, int *axes) {
  const gpr_options *o = &call->options;
  const int kept_all = call->ndim == call->view.ndim;
  int n = 0, kept[GPR_DIMS_MAX];
  if (o->out_order == GPR_C_ORDER) {
    if (o->starts) axes[n++] = call->segments_axis;
    for (int d = 0; d < call->ndim; d++)
      if (!o->starts || d != call->segments_axis) axes[n++] = d;
    return;
  }
  for (int d = 0; d < call->ndim; d++)
    if (kept_all && (o->axes >> d & 1)) axes[n++] = d;
  const int count = gpr_memory_order(&call->view, o->axes, kept);
  for (int i = 0; i < count; i++)
    axes[n++] = kept_all ? kept[i] : gpr_kept_before(kept[i], o->axes);
}

/* Steps along the axes of one of the results, in units of the step from one output to the next. */
static void steps(const gpr_call *call, int64_t step, int64_t *strides) {
  int axes[GPR_DIMS_MAX];
  axes_in_memory(call, axes);
  for (int i = call->ndim - 1; i >= 0; i--) {
    strides[axes[i]] = step;
    step *= call->shape[axes[i]];
  }
}

PyArrayObject *gpr_result_array(gpr_call *call) {
  gpr_options *o = &call->options;
  npy_intp count = call->what.results;
  PyArray_Descr *descr = gpr_result_descr(call->what.result, call->of);
  if (!descr) return NULL;
  for (int d = 0; d < call->ndim; d++) count *= call->shape[d];
  if (call->what.results > 1 || call->segments_axis)
    return (PyArrayObject *)PyArray_Empty(1, &count, descr, 0);
  int64_t strides[NPY_MAXDIMS];
  const int on_host =
      call->view.device < 0 && (o->device == GPR_DEVICE_AUTO || o->device == GPR_DEVICE_CPU);
  if (on_host && !o->starts && !o->means) o->out_order = GPR_MEMORY_ORDER; /* as NumPy's are */
  steps(call, PyDataType_ELSIZE(descr), strides);
  return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, call->ndim,
                                               (npy_intp *)call->shape, strides, NULL, 0, NULL);
}

/* One of the results of each output, and the segments' axis where it belongs. */
static PyArrayObject *take_apart(const gpr_call *call, PyArrayObject *all, int which) {
  int64_t strides[NPY_MAXDIMS];
  PyArray_Descr *descr = PyArray_DESCR(all);
  char *data = PyArray_BYTES(all) + which * PyArray_ITEMSIZE(all);
  steps(call, call->what.results * PyArray_ITEMSIZE(all), strides);
  Py_INCREF(descr);
  PyArrayObject *view = (PyArrayObject *)PyArray_NewFromDescr(
      &PyArray_Type, descr, call->ndim, (npy_intp *)call->shape, strides, data, 0, NULL);
  PyArrayObject *copy = view ? (PyArrayObject *)PyArray_NewCopy(view, NPY_CORDER) : NULL;
  Py_XDECREF(view);
  return copy;
}

/* The array, as a scalar if it has no dimensions, or out with its values. Takes `array` over. */
static PyObject *hand_over(PyArrayObject *array, PyArrayObject *out, int is_array) {
  if (!array || is_array) return (PyObject *)array;
  if (!out) return PyArray_Return(array);
  const int failed = PyArray_CopyInto(out, array) < 0;
  Py_DECREF(array);
  return failed ? NULL : Py_NewRef(out);
}

static PyObject *pack_results(PyObject *const *result, int results) {
  PyObject *packed = NULL;
  if (results == 1) return result[0];
  if (result[0] && result[1]) packed = PyTuple_Pack(2, result[0], result[1]);
  Py_XDECREF(result[0]);
  Py_XDECREF(result[1]);
  return packed;
}

PyObject *gpr_results_of(const gpr_call *call, PyArrayObject *all, const gpr_value *value) {
  const int results = call->what.results, apart = results > 1 || call->segments_axis;
  if (gpr_ops[call->op].flags & GPR_MATRICES) return matrix(value, call->of);
  PyObject *result[2] = {NULL, NULL};
  for (int i = 0; i < results; i++) {
    if (!all)
      result[i] = scalar(value, i, call->of);
    else
      result[i] = hand_over(apart ? take_apart(call, all, i) : (PyArrayObject *)Py_NewRef(all),
                            call->out[i], call->is_array);
    if (!result[i]) break;
  }
  return pack_results(result, results);
}

PyObject *gpr_words_of(const gpr_call *call, PyArrayObject *all) {
  npy_intp shape[NPY_MAXDIMS];
  if (call->ndim == NPY_MAXDIMS) {
    PyErr_Format(PyExc_ValueError, "%s: partials have one axis more than the result's %d, too many",
                 call->name, call->ndim);
    return NULL;
  }
  for (int d = 0; d < call->ndim; d++) shape[d] = call->shape[d];
  shape[call->ndim] = call->what.results;
  PyArray_Dims dims = {shape, call->ndim + 1};
  return PyArray_Newshape(all, &dims, NPY_CORDER);
}

/* --- results that stay on a device ------------------------------------------------------------ */

/* Of results in the order of the input's memory, as NumPy's are: GPR_MEMORY_ORDER. */
enum { ORDER_THERE = GPR_MEMORY_ORDER };

/* What the run writes, as an array of the caller's library. */
static int room_of_library(const gpr_call *call, gpr_room *room) {
  int64_t shape[GPR_DIMS_MAX + 1] = {call->what.results};
  int axes[GPR_DIMS_MAX], n = call->what.results > 1;
  axes_in_memory(call, axes);
  for (int i = 0; i < call->ndim; i++) shape[n++] = call->shape[axes[i]];
  return gpr_library_empty(room->library, call->array, call->view.dtype, call->view.device,
                           call->what.result, n, shape, &room->array, &room->data);
}

int gpr_room_open(gpr_call *call, gpr_room *room) {
  const int results = call->what.results;
  const int64_t outputs = gpr_count_outputs(&call->view, &call->options);
  if (results == 1 && !call->options.starts && !call->options.means)
    call->options.out_order = ORDER_THERE;
  if (call->found == GPR_ON_ITS_STREAM && outputs) room->library = gpr_library_of(call->array);
  if (room->library) {
    const int made = room_of_library(call, room);
    if (made) return made > 0;
    room->library = GPR_NO_LIBRARY;
  }
  room->array = gpr_device_array_new(call->view.device, call->view.stream, call->what.result,
                                     outputs * results);
  if (room->array) room->data = gpr_device_array_data(room->array);
  return room->array != NULL;
}

static PyObject *of_library(const gpr_call *call, const gpr_room *room, int which) {
  int axes[GPR_DIMS_MAX], order[GPR_DIMS_MAX], as_it_is = 1;
  PyObject *one = NULL, *number = PyLong_FromLong(which);
  if (number)
    one = call->what.results > 1 ? PyObject_GetItem(room->array, number) : Py_NewRef(room->array);
  Py_XDECREF(number);
  axes_in_memory(call, axes);
  for (int i = 0; i < call->ndim; i++) {
    order[axes[i]] = i;
    as_it_is = as_it_is && axes[i] == i;
  }
  if (one && !as_it_is) Py_SETREF(one, gpr_library_permuted(room->library, one, call->ndim, order));
  return one;
}

/* As an array of the caller's kind, by DLPack. */
static PyObject *own_kind(const gpr_call *call, const gpr_room *room, int which) {
  const int64_t outputs = gpr_count_outputs(&call->view, &call->options);
  int64_t shape[GPR_DIMS_MAX], strides[GPR_DIMS_MAX];
  for (int d = 0; d < call->ndim; d++) shape[d] = call->shape[d];
  steps(call, 1, strides);
  PyObject *view = gpr_device_array_view(room->array, which * outputs, call->ndim, shape, strides);
  if (!view) return NULL;
  return gpr_ask("gpureduce.libraries", "of_its_kind", Py_BuildValue("(NO)", view, call->array));
}

PyObject *gpr_room_results(const gpr_call *call, const gpr_room *room) {
  const int results = call->what.results;
  PyObject *result[2] = {NULL, NULL};
  if (!room->library && !gpr_device_array_mark(room->array, call->view.stream))
    return gpr_raise(GPR_DEVICE_ERROR);
  for (int i = 0; i < results; i++) {
    result[i] = room->library ? of_library(call, room, i) : own_kind(call, room, i);
    if (!result[i]) break;
  }
  return pack_results(result, results);
}
