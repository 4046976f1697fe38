#define NO_IMPORT_ARRAY
#include "parse.h"

#include "foreign.h"
#include "objects.h"

static int is_time(const PyArray_Descr *descr) { return descr->kind == 'm' || descr->kind == 'M'; }

/* NumPy's reductions cast numbers to out as they have to, and times to times and integers. */
static int is_cast(PyArray_Descr *from, PyArray_Descr *to) {
  if (is_time(to))
    return PyArray_CanCastTypeTo(from, to,
                                 is_time(from) ? NPY_SAME_KIND_CASTING : NPY_SAFE_CASTING);
  if (!is_time(from) || PyTypeNum_ISOBJECT(to->type_num)) return gpr_is_number(to);
  return from->kind == 'm' && (PyTypeNum_ISINTEGER(to->type_num) || PyTypeNum_ISBOOL(to->type_num));
}

/* Truth goes wherever assignment takes it. */
static int is_truth(int op) { return gpr_result_dtype(op, GPR_FLOAT64, NULL) == GPR_BOOL; }

static int check_cast(const gpr_call *call, PyArray_Descr *to) {
  const int flags = gpr_ops[call->op].flags;
  const int dtype = call->what.result;
  if (dtype == GPR_NO_DTYPE) return 1; /* gpr_open() says why not */
  PyArray_Descr *from = gpr_result_descr(dtype, call->of);
  if (!from) return 0;
  int fits = is_truth(call->op) ? !PyDataType_HASFIELDS(to) : is_cast(from, to);
  if (flags & GPR_POSITION) fits = PyArray_CanCastTypeTo(to, from, NPY_SAFE_CASTING);
  if (flags & GPR_OUT_KIND) fits &= PyArray_CanCastTypeTo(from, to, NPY_SAME_KIND_CASTING);
  if (!fits)
    gpr_refuse(PyExc_TypeError, call->name, "cannot cast the result from %R to out's %R",
               (PyObject *)from, (PyObject *)to);
  Py_DECREF(from);
  return fits;
}

static int shape_error(const gpr_call *call, PyObject *given) {
  PyObject *shape = PyArray_IntTupleFromIntp(call->ndim, call->shape);
  if (shape && given)
    gpr_refuse(PyExc_ValueError, call->name, "the result has shape %R, and out %R", shape, given);
  Py_XDECREF(given);
  Py_XDECREF(shape);
  return 0;
}

static int check_out(PyObject *object, const gpr_call *call) {
  PyArrayObject *out = (PyArrayObject *)object;
  if (!PyArray_Check(object))
    return gpr_refuse(PyExc_TypeError, call->name, "out must be an array or ..., not %.200s",
                      Py_TYPE(object)->tp_name);
  int fits = PyArray_NDIM(out) == call->ndim;
  for (int d = 0; fits && d < call->ndim; d++) fits = PyArray_DIM(out, d) == call->shape[d];
  if (!fits)
    return shape_error(call, PyArray_IntTupleFromIntp(PyArray_NDIM(out), PyArray_DIMS(out)));
  return PyArray_FailUnlessWriteable(out, "output array") >= 0 &&
         check_cast(call, PyArray_DESCR(out));
}

/* A device array's out lies beside it, as the result would. */
static int parse_device_out(PyObject *object, gpr_call *call) {
  const int dtype = call->what.result;
  gpr_view out;
  if (dtype == GPR_NO_DTYPE) return 1; /* gpr_open() says why not */
  const int found =
      call->what.results == 1 ? gpr_foreign_view(object, call->name, &out, &call->out_holder) : 0;
  if (found < 0) return 0;
  if (!found || out.device != call->view.device)
    return gpr_refuse(PyExc_TypeError, call->name, "out must be one array on cuda:%d, where a is",
                      call->view.device);
  int fits = out.ndim == call->ndim, ready = !out.read_only && !out.swapped;
  int64_t stride = gpr_dtypes[dtype].bytes;
  for (int d = call->ndim - 1; fits && d >= 0; d--) {
    fits = out.shape[d] == call->shape[d];
    ready = ready && (out.shape[d] <= 1 || out.strides[d] == stride);
    stride *= out.shape[d];
  }
  if (!fits) return shape_error(call, PyArray_IntTupleFromIntp(out.ndim, out.shape));
  if (out.dtype != dtype)
    return gpr_refuse(PyExc_TypeError, call->name, "the result is of dtype %s, and out of %s",
                      gpr_dtypes[dtype].name, gpr_dtypes[out.dtype].name);
  if (!ready || call->segments_axis)
    return gpr_refuse(PyExc_ValueError, call->name,
                      "out must be writeable and in C order, and segments must be along "
                      "the first axis");
  call->device_out = object;
  call->out_stream = out.stream;
  call->out_is_known = found == GPR_ON_ITS_STREAM;
  call->options.out = (void *)out.data;
  return 1;
}

int gpr_parse_out(PyObject *object, gpr_call *call) {
  const int results = call->what.results;
  if (object == Py_Ellipsis) call->is_array = 1;
  if (!gpr_is_given(object) || call->is_array) return 1;
  if (call->view.device >= 0) return parse_device_out(object, call);
  if (results == 1) {
    call->out[0] = (PyArrayObject *)object;
    return check_out(object, call);
  }
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != results)
    return gpr_refuse(PyExc_TypeError, call->name, "out must be a tuple of %d arrays or ...",
                      results);
  for (int i = 0; i < results; i++) {
    call->out[i] = (PyArrayObject *)PyTuple_GET_ITEM(object, i);
    if (!check_out((PyObject *)call->out[i], call)) return 0;
  }
  return 1;
}

int gpr_widen_for_out(PyObject *object, gpr_call *call) {
  if (!gpr_is_given(object) || !PyArray_Check(object) || call->asked || !call->descr ||
      !(gpr_ops[call->op].flags & GPR_TAKES_DTYPE) || call->descr->kind == 'm')
    return 1;
  PyArray_Descr *both = PyArray_PromoteTypes(call->descr, PyArray_DESCR((PyArrayObject *)object));
  if (!both) PyErr_Clear();
  const int dtype = both ? gpr_dtype_of(both) : GPR_NO_DTYPE;
  const int wider = gpr_is_inexact(call->view.dtype)
                        ? call->view.dtype != dtype
                        : dtype != GPR_NO_DTYPE && gpr_is_inexact(dtype);
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

int gpr_check_inexact(PyObject *out, const gpr_call *call) {
  const int flags = gpr_ops[call->op].flags;
  const char *what = NULL;
  if (!(flags & GPR_SKIPS_NAN) || !(flags & (GPR_EMPTY_WARNS | GPR_SPREAD))) return 1;
  if (!gpr_is_inexact(call->view.dtype)) return 1;
  if (call->options.dtype != GPR_NO_DTYPE && !gpr_is_inexact(call->options.dtype)) what = "dtype";
  if (gpr_is_given(out) && PyArray_Check(out)) {
    const int dtype = gpr_dtype_of(PyArray_DESCR((PyArrayObject *)out));
    if (dtype == GPR_NO_DTYPE || !gpr_is_inexact(dtype)) what = "out";
  }
  if (what)
    gpr_refuse(PyExc_TypeError, call->name, "if a is inexact, then %s must be inexact", what);
  return !what;
}
