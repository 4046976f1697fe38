#define NO_IMPORT_ARRAY
#include "results.h"

#include "../../kernels/abi/lists.h"
#include "device_array.h"

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

PyArrayObject *gpr_result_array(const gpr_call *call, int results) {
  npy_intp count = results;
  const int dtype = gpr_result_dtype(call->op, call->view.dtype, &call->options);
  PyArray_Descr *descr = gpr_result_descr(dtype, call->of);
  if (!descr) return NULL;
  for (int d = 0; d < call->ndim; d++) count *= call->shape[d];
  if (results == 1 && call->segments_axis == 0)
    return (PyArrayObject *)PyArray_Empty(call->ndim, (npy_intp *)call->shape, descr, 0);
  return (PyArrayObject *)PyArray_Empty(1, &count, descr, 0);
}

/* One of the results of each output, and the segments' axis where it belongs. */
static PyArrayObject *take_apart(const gpr_call *call, PyArrayObject *all, int results, int which) {
  npy_intp strides[NPY_MAXDIMS], stride = results * PyArray_ITEMSIZE(all);
  PyArray_Descr *descr = PyArray_DESCR(all);
  char *data = PyArray_BYTES(all) + which * PyArray_ITEMSIZE(all);
  for (int d = call->ndim - 1; d >= 0; d--) {
    if (d == call->segments_axis && call->options.starts) continue;
    strides[d] = stride;
    stride *= call->shape[d];
  }
  if (call->options.starts) strides[call->segments_axis] = stride;
  Py_INCREF(descr);
  PyArrayObject *view = (PyArrayObject *)PyArray_NewFromDescr(
      &PyArray_Type, descr, call->ndim, (npy_intp *)call->shape, strides, data, 0, NULL);
  PyArrayObject *copy = view ? (PyArrayObject *)PyArray_NewCopy(view, NPY_CORDER) : NULL;
  Py_XDECREF(view);
  return copy;
}

/* The array, as a scalar if it has no dimensions, or out with its values. Takes `array` over. */
static PyObject *hand_over(PyArrayObject *array, PyArrayObject *out) {
  if (!array || !out) return array ? PyArray_Return(array) : NULL;
  const int failed = PyArray_CopyInto(out, array) < 0;
  Py_DECREF(array);
  return failed ? NULL : Py_NewRef(out);
}

PyObject *gpr_pack_results(PyObject *const *result, int results) {
  PyObject *packed = NULL;
  if (results == 1) return result[0];
  if (result[0] && result[1]) packed = PyTuple_Pack(2, result[0], result[1]);
  Py_XDECREF(result[0]);
  Py_XDECREF(result[1]);
  return packed;
}

PyObject *gpr_results_of(const gpr_call *call, PyArrayObject *all, const gpr_value *value) {
  const int results = gpr_results(call->op), apart = results > 1 || call->segments_axis;
  if (gpr_ops[call->op].flags & GPR_MATRICES) return matrix(value, call->of);
  PyObject *result[2] = {NULL, NULL};
  for (int i = 0; i < results; i++) {
    if (!all)
      result[i] = scalar(value, i, call->of);
    else
      result[i] =
          hand_over(apart ? take_apart(call, all, results, i) : (PyArrayObject *)Py_NewRef(all),
                    call->out[i]);
    if (!result[i]) break;
  }
  return gpr_pack_results(result, results);
}

int gpr_warn(const gpr_call *call, int64_t least) {
  const int flags = gpr_ops[call->op].flags;
  const char *text = NULL;
  if (least < 0 || least == INT64_MAX) return 1;
  if ((flags & GPR_EMPTY_WARNS) && least == 0) text = "Mean of empty slice";
  if ((flags & GPR_SPREAD) && (double)least - call->options.ddof <= 0)
    text = "Degrees of freedom <= 0 for slice";
  if ((flags & GPR_SKIPS_NAN) && (flags & GPR_NONEMPTY) && !call->is_ufunc && least == 0)
    text = "All-NaN slice encountered";
  return !text || !PyErr_WarnEx(PyExc_RuntimeWarning, text, 1);
}

PyObject *gpr_own_kind(const gpr_call *call, PyObject *all, int64_t outputs, int which) {
  int64_t shape[GPR_DIMS_MAX], strides[GPR_DIMS_MAX], stride = 1;
  for (int d = call->ndim - 1; d >= 0; d--) {
    shape[d] = call->shape[d];
    if (d == call->segments_axis && call->options.starts) continue;
    strides[d] = stride;
    stride *= shape[d];
  }
  if (call->options.starts) strides[call->segments_axis] = stride;
  PyObject *view = gpr_device_array_view(all, which * outputs, call->ndim, shape, strides);
  PyObject *module = view ? PyImport_ImportModule("gpureduce.libraries") : NULL, *result = NULL;
  if (module) result = PyObject_CallMethod(module, "of_its_kind", "OO", view, call->array);
  Py_XDECREF(module);
  Py_XDECREF(view);
  return result;
}
