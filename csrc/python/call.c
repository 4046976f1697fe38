/* A call: arguments → run → results. */
#define NO_IMPORT_ARRAY
#include "parse.h"

#include "../../kernels/abi/lists.h"
#include "../backend.h"
#include "../brief.h"
#include "../cuda/gpu.h"
#include "../few.h"
#include "module.h"
#include "objects.h"
#include "results.h"
#include "warn.h"

/* Below this a fold takes less than giving the GIL away and fetching it back under contention:
 * 64 KiB are about 2 µs. */
enum { GIL_BYTES = 64 << 10, OPEN_BYTES = 256 << 20 };
/* How long a call may go without a look at Ctrl-C. */
enum { SIGNAL_NANOSECONDS = 50 * 1000 * 1000 };
/* And between two calls of progress. */
enum { PROGRESS_NANOSECONDS = 100 * 1000 * 1000 };

/* --- the run ---------------------------------------------------------------------------------- */

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
    status = UNLOCKED(gpr_step(run, slice));
    if (status == GPR_MORE && PyErr_CheckSignals()) return 0;
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

/* What is measured of a large array takes its time. */
static gpr_status open_run(gpr_call *call, npy_intp bytes, gpr_run **run) {
  if (bytes < OPEN_BYTES) return gpr_open(call->op, &call->view, &call->options, run);
  return UNLOCKED(gpr_open(call->op, &call->view, &call->options, run));
}

/* --- the call --------------------------------------------------------------------------------- */

/* Of partials in doubles; all others are words. */
static int is_held(const gpr_call *call, PyArrayObject *all) {
  const int doubles = call->what.results;
  return PyArray_TYPE(all) != NPY_FLOAT64 ||
         gpr_brief_is_held(PyArray_DATA(all), PyArray_SIZE(all) / doubles, doubles);
}

static PyObject *perform(gpr_call *call, PyObject *progress) {
  const int is_scalar =
      call->ndim == 0 && !call->out[0] && !call->options.partials && !call->is_array;
  /* Segments may lie over each other: the array tells nothing of the work. */
  const npy_intp bytes = call->view.device < 0 && !call->options.starts
                             ? call->count * gpr_dtypes[call->view.dtype].bytes
                             : GIL_BYTES;
  PyArrayObject *all = NULL;
  PyObject *result = NULL;
  gpr_run *run = NULL;
  gpr_value value;
  int64_t least = -1, decided = -1;
  int finite = 0;
  if (!is_scalar && call->what.result != GPR_NO_DTYPE) {
    if (!(all = gpr_result_array(call))) return NULL;
    call->options.out = PyArray_DATA(all);
  }
  gpr_status status =
      progress ? GPR_MORE
               : gpr_reduce_few(&call->what, &call->view, &call->options, &value, &least);
  if (status == GPR_MORE) {
    if ((status = open_run(call, bytes, &run))) goto fail;
    if (!run_to_end(run, bytes, progress)) goto fail;
    if ((status = gpr_finish(run, &value))) goto fail;
    least = gpr_least(run);
    finite = run->finite;
    decided = run->decided;
  }
  if (call->options.brief && !is_held(call, all))
    result = Py_NewRef(Py_None);
  else if (call->options.partials)
    result = gpr_words_of(call, all);
  else if (gpr_warn(call, least, finite, decided, all ? PyArray_DATA(all) : value.bytes,
                    all ? PyArray_SIZE(all) : 1))
    result = gpr_results_of(call, all, &value);
fail:
  if (status) gpr_raise(status);
  if (run) close_run(run, bytes);
  Py_XDECREF(all);
  return result;
}

/* --- the call of an array on a device, whose result stays there ------------------------------- */

static gpr_status reduce_there(gpr_call *call, PyObject *progress, int *fine) {
  gpr_run *run = NULL;
  gpr_status status = gpr_open(call->op, &call->view, &call->options, &run);
  *fine = 0;
  if (status) return status;
  if (run_to_end(run, GIL_BYTES, progress) && !(status = gpr_finish(run, NULL)))
    *fine = gpr_warn(call, gpr_least(run), 0, -1, NULL, 0);
  close_run(run, *fine ? 0 : GIL_BYTES); /* what has ended leaves nothing to wait for */
  return status;
}

/* What comes next on the stream that out's library works on waits for the result; of an out that
 * came by DLPack nobody knows the stream, and the host waits. */
static PyObject *hand_out(const gpr_call *call) {
  const int device = call->view.device;
  const gpr_status status =
      UNLOCKED(call->out_is_known ? gpr_gpu_order(device, call->view.stream, call->out_stream)
                                  : gpr_gpu_wait(device, call->view.stream));
  return status ? gpr_raise(status) : Py_NewRef(call->device_out);
}

static PyObject *perform_there(gpr_call *call, PyObject *progress) {
  PyObject *result = NULL;
  gpr_room room = {NULL};
  gpr_status status = GPR_OK;
  int fine = 0;
  call->options.out_device = call->view.device;
  if (call->device_out) {
    status = gpr_gpu_order(call->view.device, call->out_stream, call->view.stream);
  } else if (call->what.result != GPR_NO_DTYPE) {
    if (!gpr_room_open(call, &room)) return NULL;
    call->options.out = room.data;
  }
  if (!status) status = reduce_there(call, progress, &fine);
  if (status)
    gpr_raise(status);
  else if (fine)
    result = call->device_out ? hand_out(call) : gpr_room_results(call, &room);
  Py_XDECREF(room.array);
  return result;
}

/* Along axes that are named, even all of them; without any the answer is a number in hand, and so
 * is a textbook kernel's. */
static int stays_there(const gpr_call *call, const gpr_given *given) {
  const int textbook = call->options.kernel >= 0 && call->options.kernel < GPR_KERNEL_COUNT;
  if (call->view.device < 0 || (gpr_ops[call->op].flags & GPR_MATRICES)) return 0;
  return call->ndim || call->device_out ||
         ((gpr_is_given(given->axis) || call->is_array) && !textbook);
}

/* Results of an array of another library in host memory as arrays of that library. */
static PyObject *of_its_library(PyObject *result, PyObject *given) {
  const int arrays = result && (PyArray_CheckExact(result) || PyTuple_CheckExact(result));
  if (!arrays || PyArray_Check(given) || PyList_Check(given) || PyTuple_Check(given) ||
      !PyObject_HasAttrString(given, "__dlpack__"))
    return result;
  return gpr_ask("gpureduce.libraries", "of_host", Py_BuildValue("(NO)", result, given));
}

/* --- what Python calls ------------------------------------------------------------------------ */

static PyObject *call_with(PyObject *number, const gpr_given *given) {
  const long op = PyLong_AsLong(number);
  gpr_call call;
  if (op < 0 || op >= GPR_OP_COUNT) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "no operator %ld", op);
    return NULL;
  }
  PyObject *progress = given->progress == Py_None ? NULL : given->progress, *result = NULL;
  if (gpr_arguments_open((int)op, given, &call))
    result = stays_there(&call, given) && !given->partials ? perform_there(&call, progress)
                                                           : perform(&call, progress);
  const int is_own =
      call.view.device < 0 && (call.ndim || call.is_array) && !call.out[0] && !given->partials;
  gpr_arguments_close(&call);
  return is_own ? of_its_library(result, given->a) : result;
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

/* partials(op, a, axis, dtype, keepdims, where, device, kind, brief, progress): words of int64, or
 * doubles, along one axis more; None where doubles do not hold it. */
static PyObject *partials(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  if (!check_count("partials", count, 10)) return NULL;
  const unsigned long kind = PyLong_AsUnsignedLong(args[7]);
  if (PyErr_Occurred()) return NULL;
  const gpr_given given = {.a = args[1],
                           .axis = args[2],
                           .dtype = args[3],
                           .keepdims = args[4],
                           .where = args[5],
                           .device = args[6],
                           .partials = (uint32_t)kind,
                           .brief = args[8] == Py_True,
                           .progress = args[9],
                           .is_ufunc = 1};
  return call_with(args[0], &given);
}

PyMethodDef gpr_call_methods[] = {
    {"partials", (PyCFunction)(void (*)(void))partials, METH_FASTCALL, NULL},
    {"reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL, NULL},
    {"ufunc_reduce", (PyCFunction)(void (*)(void))ufunc_reduce, METH_FASTCALL, NULL},
    {"segments", (PyCFunction)(void (*)(void))segments, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
