/* The extension module: call → run → result, and the lists for Python. */
#include "arguments.h"

#include "../../kernels/abi/lists.h"
#include "../../kernels/abi/rows.h"
#include "../cpu.h"
#include "device_array.h"
#include "foreign.h"
#include "../cuda/gpu.h"
#include "programs.h"
#include "raise.h"

/* Below this a fold takes less than giving the GIL away and fetching it back under contention:
 * 64 KiB are about 2 µs. */
enum { GIL_BYTES = 64 << 10 };
/* How long a call may go without a look at Ctrl-C. */
enum { SIGNAL_NANOSECONDS = 50 * 1000 * 1000 };
/* And between two calls of progress. */
enum { PROGRESS_NANOSECONDS = 100 * 1000 * 1000 };

static PyObject *device_error;

PyObject *gpr_raise(gpr_status status) {
  switch (status) {
    case GPR_BAD_VALUE: PyErr_SetString(PyExc_ValueError, gpr_error()); break;
    case GPR_BAD_TYPE: PyErr_SetString(PyExc_TypeError, gpr_error()); break;
    case GPR_OUT_OF_MEMORY: PyErr_SetString(PyExc_MemoryError, gpr_error()); break;
    default: PyErr_SetString(device_error, gpr_error()); break;
  }
  return NULL;
}

/* --- the run -----------------------------------------------------------------------------------
 */

static int report(const gpr_run *run, PyObject *progress) {
  int64_t total;
  const int64_t done = gpr_done(run, &total);
  PyObject *answer = PyObject_CallFunction(progress, "LL", (long long)done, (long long)total);
  Py_XDECREF(answer);
  return answer != NULL;
}

/* To the end, with the GIL given away for what takes longer, and a look at Ctrl-C in between. */
static int run_to_end(gpr_run *run, npy_intp bytes, PyObject *progress) {
  const int64_t slice = progress ? PROGRESS_NANOSECONDS : SIGNAL_NANOSECONDS;
  gpr_status status = bytes < GIL_BYTES ? gpr_step(run, slice) : GPR_MORE;
  while (status == GPR_MORE) {
    Py_BEGIN_ALLOW_THREADS status = gpr_step(run, slice);
    Py_END_ALLOW_THREADS if (status == GPR_MORE && PyErr_CheckSignals()) return 0;
    if (status == GPR_MORE && progress && !report(run, progress)) return 0;
  }
  if (status) gpr_raise(status);
  return !status && (!progress || report(run, progress));
}

/* Closing waits for helpers and for the device, if a run has any. */
static void close_run(gpr_run *run, npy_intp bytes) {
  if (bytes < GIL_BYTES) {
    gpr_close(run);
  } else {
    Py_BEGIN_ALLOW_THREADS gpr_close(run);
    Py_END_ALLOW_THREADS
  }
}

/* --- results -----------------------------------------------------------------------------------
 */

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

/* Where the run writes: the result itself, or what has to be taken apart. */
static PyArrayObject *result_array(const gpr_call *call, int results) {
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

static PyObject *pack_results(PyObject *const *result, int results) {
  PyObject *packed = NULL;
  if (results == 1) return result[0];
  if (result[0] && result[1]) packed = PyTuple_Pack(2, result[0], result[1]);
  Py_XDECREF(result[0]);
  Py_XDECREF(result[1]);
  return packed;
}

static PyObject *results_of(const gpr_call *call, PyArrayObject *all, const gpr_value *value) {
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
  return pack_results(result, results);
}

/* NumPy's warnings, by the least number of elements that counted in an output. */
static int warn(const gpr_call *call, int64_t least) {
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

/* --- the call ----------------------------------------------------------------------------------
 */

static PyObject *perform(gpr_call *call, PyObject *progress) {
  const int is_scalar = call->ndim == 0 && !call->out[0];
  /* Segments may lie over each other: the array tells nothing of the work. */
  const npy_intp bytes = call->view.device < 0 && !call->options.starts
                             ? call->count * gpr_dtypes[call->view.dtype].bytes
                             : GIL_BYTES;
  PyArrayObject *all = NULL;
  PyObject *result = NULL;
  gpr_run *run = NULL;
  gpr_value value;
  gpr_status status = GPR_OK;
  if (!is_scalar && gpr_result_dtype(call->op, call->view.dtype, &call->options) != GPR_NO_DTYPE) {
    if (!(all = result_array(call, gpr_results(call->op)))) return NULL;
    call->options.out = PyArray_DATA(all);
  }
  if ((status = gpr_open(call->op, &call->view, &call->options, &run))) goto fail;
  if (!run_to_end(run, bytes, progress)) goto fail;
  if ((status = gpr_finish(run, &value))) goto fail;
  if (warn(call, gpr_least(run))) result = results_of(call, all, &value);
fail:
  if (status) gpr_raise(status);
  if (run) close_run(run, bytes);
  Py_XDECREF(all);
  return result;
}

/* --- the call of an array on a device, whose result stays there --------------------------------
 */

/* One of the results, of all that are there, as an array of the caller's kind. */
static PyObject *own_kind(const gpr_call *call, PyObject *all, int64_t outputs, int which) {
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

static gpr_status reduce_there(gpr_call *call, PyObject *progress, int *fine) {
  gpr_run *run = NULL;
  gpr_status status = gpr_open(call->op, &call->view, &call->options, &run);
  *fine = 0;
  if (status) return status;
  if (run_to_end(run, GIL_BYTES, progress) && !(status = gpr_finish(run, NULL)))
    *fine = warn(call, gpr_least(run));
  close_run(run, GIL_BYTES);
  return status;
}

/* Of an out that came by DLPack nobody knows the stream. */
static PyObject *wait_for_out(const gpr_call *call) {
  gpr_status status;
  Py_BEGIN_ALLOW_THREADS status = gpr_gpu_wait(call->view.device, call->view.stream);
  Py_END_ALLOW_THREADS return status ? gpr_raise(status) : Py_NewRef(call->device_out);
}

static PyObject *perform_there(gpr_call *call, PyObject *progress) {
  const int results = gpr_results(call->op);
  const int dtype = gpr_result_dtype(call->op, call->view.dtype, &call->options);
  const int64_t outputs = gpr_outputs(&call->view, &call->options);
  PyObject *all = NULL, *result[2] = {NULL, NULL};
  int fine = 0;
  call->options.out_device = call->view.device;
  if (!call->options.out && dtype != GPR_NO_DTYPE) {
    all = gpr_device_array_new(call->view.device, call->view.stream, dtype, outputs * results);
    if (!all) return NULL;
    call->options.out = gpr_device_array_data(all);
  }
  gpr_status status = reduce_there(call, progress, &fine);
  if (fine && all && !gpr_device_array_mark(all, call->view.stream))
    fine = 0, status = GPR_DEVICE_ERROR;
  if (status) gpr_raise(status);
  if (fine && !all) return wait_for_out(call);
  for (int i = 0; fine && i < results; i++)
    if (!(result[i] = own_kind(call, all, outputs, i))) break;
  Py_XDECREF(all);
  return fine ? pack_results(result, results) : NULL;
}

static PyObject *call_with(PyObject *number, const gpr_given *given) {
  const long op = PyLong_AsLong(number);
  gpr_call call;
  if (op < 0 || op >= GPR_OP_COUNT) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "no operator %ld", op);
    return NULL;
  }
  PyObject *progress = given->progress == Py_None ? NULL : given->progress, *result = NULL;
  if (gpr_arguments_open((int)op, given, &call))
    result = call.view.device >= 0 && (call.ndim || call.device_out)
                 ? perform_there(&call, progress)
                 : perform(&call, progress);
  gpr_arguments_close(&call);
  return result;
}

static int check_count(const char *name, Py_ssize_t count, Py_ssize_t wanted) {
  if (count == wanted) return 1;
  PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, count);
  return 0;
}

/* reduce(op, a, axis, dtype, out, keepdims, initial, where, ddof, mean, device, kernel, progress)
 */
static PyObject *reduce_by(PyObject *const *args, Py_ssize_t count, int is_ufunc) {
  if (!check_count("reduce", count, 13)) return NULL;
  const gpr_given given = {.a = args[1],
                           .axis = args[2],
                           .dtype = args[3],
                           .out = args[4],
                           .keepdims = args[5],
                           .initial = args[6],
                           .where = args[7],
                           .ddof = args[8],
                           .mean = args[9],
                           .device = args[10],
                           .kernel = args[11],
                           .progress = args[12],
                           .is_ufunc = is_ufunc};
  return call_with(args[0], &given);
}

static PyObject *reduce(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  return reduce_by(args, count, 0);
}

static PyObject *ufunc_reduce(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  return reduce_by(args, count, 1);
}

/* segments(op, a, starts, stops, axis, dtype, out, initial, device, progress): stops is None for
 * those that NumPy's reduceat has. */
static PyObject *segments(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  if (!check_count("segments", count, 10)) return NULL;
  const gpr_given given = {.a = args[1],
                           .starts = args[2],
                           .stops = args[3] == Py_None ? NULL : args[3],
                           .axis = args[4],
                           .dtype = args[5],
                           .out = args[6],
                           .initial = args[7],
                           .device = args[8],
                           .progress = args[9],
                           .is_ufunc = 1};
  return call_with(args[0], &given);
}

/* --- the lists, for Python ----------------------------------------------------------------------
 */

static PyObject *flag(const gpr_op_info *o, int which) { return PyBool_FromLong(o->flags & which); }

static PyObject *operators(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int op = 0; list && op < GPR_OP_COUNT; op++) {
    const gpr_op_info *o = &gpr_ops[op];
    if (o->flags & GPR_HIDDEN) continue;
    PyObject *item = Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:i,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N,s:N}", "name", o->name,
        "ufunc", o->ufunc, "alias", o->alias, "sentence", o->sentence, "results", gpr_results(op),
        "function", flag(o, GPR_FUNCTION), "takes_dtype", flag(o, GPR_TAKES_DTYPE), "takes_initial",
        flag(o, GPR_TAKES_INITIAL), "takes_where", flag(o, GPR_TAKES_WHERE), "takes_out",
        PyBool_FromLong(!(o->flags & GPR_NO_OUT)), "nonempty", flag(o, GPR_NONEMPTY), "position",
        flag(o, GPR_POSITION), "spread", flag(o, GPR_SPREAD), "skips_nan", flag(o, GPR_SKIPS_NAN),
        "takes_kernel", flag(o, GPR_TAKES_KERNEL), "matrices", flag(o, GPR_MATRICES));
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *dtypes(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int d = 0; list && d < GPR_DTYPE_COUNT; d++) {
    PyObject *item = PyUnicode_FromString(gpr_dtypes[d].name);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *kernels(PyObject *module, PyObject *unused) {
  static const char *const grids[] = {
      [GPR_ONE_BLOCK] = "one", [GPR_EVERY_TILE] = "tiles", [GPR_FULL_DEVICE] = "device"};
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < GPR_KERNEL_COUNT; i++) {
    const gpr_kernel_info *k = &gpr_kernels[i];
    PyObject *item =
        Py_BuildValue("{s:s,s:s,s:s,s:i,s:O,s:O,s:O,s:(ii),s:i,s:s}", "name", k->name, "sentence",
                      k->sentence, "section", gpr_chapters[k->chapter - 1], "limit", k->limit,
                      "in_order", k->flags & GPR_IN_ORDER ? Py_True : Py_False, "in_place",
                      k->flags & GPR_IN_PLACE ? Py_True : Py_False, "second_launch",
                      k->flags & GPR_SECOND_LAUNCH ? Py_True : Py_False, "threads", k->least,
                      k->most, "unroll", k->unroll, "grid", grids[k->grid]);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *kernel_dtypes(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int d = 0; list && d < GPR_DTYPE_COUNT; d++) {
    if (!gpr_kernel_dtypes[d]) continue;
    PyObject *item = PyUnicode_FromString(gpr_dtypes[d].name);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* (operator, dtype, result dtype, law) of every row. */
static PyObject *rows(PyObject *module, PyObject *unused) {
  static const char *const laws[] = {
      [GPR_FREE] = "free", [GPR_EXACT] = "exact", [GPR_TREE] = "tree"};
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < GPR_OP_COUNT * GPR_DTYPE_COUNT; i++) {
    const gpr_row *row = &gpr_cpu_table_here()->row[i];
    if (!row->open || (gpr_ops[row->op].flags & GPR_HIDDEN)) continue;
    PyObject *item = Py_BuildValue("(ssss)", gpr_ops[row->op].name, gpr_dtypes[row->dtype].name,
                                   gpr_dtypes[row->result].name, laws[row->law]);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* --- threads and build --------------------------------------------------------------------------
 */

static PyObject *set_num_threads(PyObject *module, PyObject *number) {
  (void)module;
  const long n = PyLong_AsLong(number);
  if (n == -1 && PyErr_Occurred()) return NULL;
  if (n < 0 || n > 1 << 20)
    return PyErr_Format(PyExc_ValueError, "%ld threads: give 1 and up, or 0 for the default", n);
  gpr_set_threads((int)n);
  Py_RETURN_NONE;
}

static PyObject *get_num_threads(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyLong_FromLong(gpr_threads());
}

static PyObject *isa(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyUnicode_FromString(gpr_isa());
}

/* The number of CUDA devices, and why there is none. */
static PyObject *device_count(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  const int n = gpr_device_count();
  return Py_BuildValue("(is)", n, n ? "" : gpr_error());
}

/* What gpr_device_info() tells of every device. */
static PyObject *devices(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  const int n = gpr_device_count();
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < n; i++) {
    gpr_device d;
    gpr_status status;
    Py_BEGIN_ALLOW_THREADS status = gpr_device_info(i, &d);
    Py_END_ALLOW_THREADS PyObject *item = NULL;
    if (status)
      gpr_raise(status);
    else
      item = Py_BuildValue(
          "{s:N,s:(ii),s:i,s:i,s:i,s:L,s:L,s:L,s:L,s:L,s:L,s:(ii)}", "name",
          PyUnicode_DecodeUTF8(d.name, (Py_ssize_t)strlen(d.name), "replace"), "compute_capability",
          d.major, d.minor, "multiprocessors", d.multiprocessors, "threads_per_multiprocessor",
          d.threads_per_multiprocessor, "bus_bits", d.bus_bits, "clock_hertz",
          (long long)d.clock_hertz, "memory_clock_hertz", (long long)d.memory_clock_hertz,
          "memory_total", (long long)d.memory_total, "memory_free", (long long)d.memory_free,
          "l2_bytes", (long long)d.l2_bytes, "shared_bytes", (long long)d.shared_bytes, "driver",
          d.driver / 1000, d.driver % 1000 / 10);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* bandwidth(device, bytes): bytes a second of each kind of transfer. */
static PyObject *bandwidth(PyObject *module, PyObject *args) {
  int device;
  long long bytes;
  gpr_bandwidth b;
  gpr_status status;
  (void)module;
  if (!PyArg_ParseTuple(args, "iL", &device, &bytes)) return NULL;
  Py_BEGIN_ALLOW_THREADS status = gpr_bandwidth_test(device, bytes, &b);
  Py_END_ALLOW_THREADS if (status) return gpr_raise(status);
  return Py_BuildValue("{s:d,s:d,s:d,s:d,s:d,s:d}", "to_device_pinned", b.to_device_pinned,
                       "to_device_pageable", b.to_device_pageable, "to_host_pinned",
                       b.to_host_pinned, "to_host_pageable", b.to_host_pageable, "on_device",
                       b.on_device, "read", b.read);
}

static PyObject *list_of(const double *values, int n) {
  PyObject *list = PyList_New(n);
  for (int i = 0; list && i < n; i++) {
    PyObject *value = PyFloat_FromDouble(values[i]);
    if (!value || PyList_SetItem(list, i, value)) Py_CLEAR(list);
  }
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
  gpr_status status;
  PyObject *result = NULL;
  (void)module;
  if (!PyArg_ParseTuple(args, "OsOOi", &given.kernel, &op, &given.a, &given.device, &repeats))
    return NULL;
  double *times = open_timed(op, &given, repeats, &call);
  if (!times) return NULL;
  Py_BEGIN_ALLOW_THREADS status = gpr_kernel_time(op, &call.view, &call.options, repeats, times);
  Py_END_ALLOW_THREADS if (status) gpr_raise(status);
  else result = list_of(times, repeats);
  PyMem_Free(times);
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
  out = gpr_device_array_new(call.view.device, call.view.stream,
                             gpr_result_dtype(index, call.view.dtype, &call.options),
                             gpr_outputs(&call.view, &call.options) * gpr_results(index));
  if (out) {
    call.options.out = gpr_device_array_data(out);
    call.options.out_device = call.view.device;
    status = gpr_open(index, &call.view, &call.options, &run);
  }
  if (!status) {
    Py_BEGIN_ALLOW_THREADS status = gpr_time(run, repeats, times);
    Py_END_ALLOW_THREADS
  }
  if (status && !PyErr_Occurred()) gpr_raise(status);
  if (!status) result = list_of(times, repeats);
fail:
  gpr_close(run);
  PyMem_Free(times);
  Py_XDECREF(out);
  gpr_arguments_close(&call);
  return result;
}

/* shuffle(name, x, out, width, by, i, j): x and out are contiguous arrays of one shape and dtype.
 */
static PyObject *shuffle(PyObject *module, PyObject *args) {
  const char *name;
  PyArrayObject *x, *out;
  gpr_shuffle_args shuffle;
  gpr_status status;
  (void)module;
  if (!PyArg_ParseTuple(args, "sO!O!iiii", &name, &PyArray_Type, &x, &PyArray_Type, &out,
                        &shuffle.width, &shuffle.by, &shuffle.i, &shuffle.j))
    return NULL;
  const int dtype = gpr_supported_dtype(PyArray_DESCR(x), name);
  if (dtype == GPR_NO_DTYPE) return NULL;
  shuffle.data = PyArray_DATA(x);
  shuffle.out = PyArray_DATA(out);
  shuffle.n = PyArray_SIZE(x);
  Py_BEGIN_ALLOW_THREADS status = gpr_gpu_shuffle(name, dtype, 0, shuffle);
  Py_END_ALLOW_THREADS if (status) return gpr_raise(status);
  Py_RETURN_NONE;
}

/* segment_sums(name, a, offsets, out, repeats): the milliseconds of each launch. The arrays are
 * contiguous, the last two of int64, and all offsets lie inside a. */
static PyObject *segment_sums(PyObject *module, PyObject *args) {
  const char *name;
  PyArrayObject *a, *offsets, *out;
  PyObject *result = NULL;
  int repeats;
  gpr_status status;
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
  Py_BEGIN_ALLOW_THREADS status = gpr_gpu_segment_sums(name, dtype, 0, segments, repeats, times);
  Py_END_ALLOW_THREADS if (status) gpr_raise(status);
  else result = list_of(times, repeats);
  PyMem_Free(times);
  return result;
}

static PyMethodDef methods[] = {
    {"reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL, NULL},
    {"ufunc_reduce", (PyCFunction)(void (*)(void))ufunc_reduce, METH_FASTCALL, NULL},
    {"segments", (PyCFunction)(void (*)(void))segments, METH_FASTCALL, NULL},
    {"operators", operators, METH_NOARGS, NULL},
    {"dtypes", dtypes, METH_NOARGS, NULL},
    {"kernels", kernels, METH_NOARGS, NULL},
    {"kernel_dtypes", kernel_dtypes, METH_NOARGS, NULL},
    {"rows", rows, METH_NOARGS, NULL},
    {"set_num_threads", set_num_threads, METH_O, NULL},
    {"get_num_threads", get_num_threads, METH_NOARGS, NULL},
    {"isa", isa, METH_NOARGS, NULL},
    {"device_count", device_count, METH_NOARGS, NULL},
    {"programs", gpr_programs_list, METH_NOARGS, NULL},
    {"program_image", gpr_programs_image, METH_VARARGS, NULL},
    {"compiler", gpr_programs_compiler, METH_O, NULL},
    {"cache_folder", gpr_programs_cache, METH_NOARGS, NULL},
    {"devices", devices, METH_NOARGS, NULL},
    {"bandwidth", bandwidth, METH_VARARGS, NULL},
    {"kernel_time", kernel_time, METH_VARARGS, NULL},
    {"axes_time", axes_time, METH_VARARGS, NULL},
    {"shuffle", shuffle, METH_VARARGS, NULL},
    {"segment_sums", segment_sums, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int exec_module(PyObject *module) {
  if (PyArray_ImportNumPyAPI() < 0) return -1;
  gpr_match_builtin_dtypes();
  if (!gpr_arguments_init() || !gpr_foreign_init() || !gpr_device_array_init(module)) return -1;
  if (!device_error)
    device_error = PyErr_NewExceptionWithDoc(
        "gpureduce.DeviceError", "The device asked for is missing, or a call to it failed.",
        PyExc_RuntimeError, NULL);
  gpr_programs_open();
  return PyModule_AddObjectRef(module, "DeviceError", device_error);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "gpureduce._core",
                                        .m_methods = methods,
                                        .m_slots = slots};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
