/* Python and NumPy, with foreign.c the only ones that see them: array → view, value → scalar,
 * status → exception. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include "../kernels/lists.h"
#include "../kernels/rows.h"
#include "cpu.h"
#include "foreign.h"
#include "gpu.h"
#include "gpureduce.h"

/* Below this a fold takes less than giving the GIL away and fetching it back under contention:
 * 64 KiB are about 2 µs. */
enum { GIL_BYTES = 64 << 10 };
/* How long a call may go without a look at Ctrl-C. */
enum { SIGNAL_NANOSECONDS = 50 * 1000 * 1000 };

static PyObject *device_error;

static PyObject *raise_status(gpr_status status) {
  switch (status) {
    case GPR_BAD_VALUE: PyErr_SetString(PyExc_ValueError, gpr_error()); break;
    case GPR_BAD_TYPE: PyErr_SetString(PyExc_TypeError, gpr_error()); break;
    case GPR_OUT_OF_MEMORY: PyErr_SetString(PyExc_MemoryError, gpr_error()); break;
    default: PyErr_SetString(device_error, gpr_error()); break;
  }
  return NULL;
}

/* --- dtypes ------------------------------------------------------------------------------------
 */

/* NumPy's type numbers below NPY_NTYPES_LEGACY, as ours; filled in once at import. */
static int builtin_dtype[NPY_NTYPES_LEGACY];

static void match_builtin_dtypes(void) {
  for (int num = 0; num < NPY_NTYPES_LEGACY; num++) {
    builtin_dtype[num] = GPR_NO_DTYPE;
    PyArray_Descr *descr = PyArray_DescrFromType(num);
    if (!descr) {
      PyErr_Clear();
      continue;
    }
    for (int d = 0; d < GPR_DTYPE_COUNT; d++)
      if (gpr_dtypes[d].kind == descr->kind && gpr_dtypes[d].bytes == PyDataType_ELSIZE(descr))
        builtin_dtype[num] = d;
    Py_DECREF(descr);
  }
}

/* Types that another package registers, bfloat16 of ml_dtypes, go by their name. */
static int dtype_of(PyArray_Descr *descr) {
  const int num = descr->type_num;
  if (num >= 0 && num < NPY_NTYPES_LEGACY) return builtin_dtype[num];
  const char *name = strrchr(descr->typeobj->tp_name, '.');
  name = name ? name + 1 : descr->typeobj->tp_name;
  for (int d = 0; d < GPR_DTYPE_COUNT; d++)
    if (gpr_dtypes[d].kind == 'V' && !strcmp(gpr_dtypes[d].name, name)) return d;
  return GPR_NO_DTYPE;
}

static int supported_dtype(PyArray_Descr *descr, const char *function) {
  const int dtype = dtype_of(descr);
  if (dtype == GPR_NO_DTYPE)
    PyErr_Format(
        PyExc_TypeError,
        "gpureduce.%s: dtype %R is not supported; booleans, integers, floats up to 64 bits, "
        "complex numbers and times are (gpureduce.dtypes() lists them)",
        function, (PyObject *)descr);
  return dtype;
}

/* datetime64[unit] as timedelta64[unit]. */
static PyArray_Descr *as_timedelta(PyArray_Descr *descr) {
  PyArray_Descr *result = NULL;
  PyObject *text = PyObject_GetAttrString((PyObject *)descr, "str"), *unit = NULL, *spec = NULL;
  if (!text) return NULL;
  unit = PyUnicode_Substring(text, 2, PyUnicode_GetLength(text));
  if (unit) spec = PyUnicode_FromFormat("m%U", unit);
  if (spec && !PyArray_DescrConverter(spec, &result)) result = NULL;
  Py_XDECREF(spec);
  Py_XDECREF(unit);
  Py_DECREF(text);
  return result;
}

/* The descr of a result of this dtype. descr is the array's, whose unit of time is kept, or NULL.
 */
static PyArray_Descr *result_descr(int dtype, PyArray_Descr *descr) {
  const gpr_dtype_info *type = &gpr_dtypes[dtype];
  if (descr && dtype_of(descr) == dtype) return PyArray_DescrNewByteorder(descr, NPY_NATIVE);
  if (descr && type->kind == 'm' && descr->kind == 'M') return as_timedelta(descr);
  for (int num = 0; num < NPY_NTYPES_LEGACY; num++)
    if (builtin_dtype[num] == dtype) return PyArray_DescrFromType(num);
  PyObject *package = PyImport_ImportModule("ml_dtypes"), *name = NULL;
  PyArray_Descr *result = NULL;
  if (package) name = PyObject_GetAttrString(package, type->name);
  if (name && !PyArray_DescrConverter(name, &result)) result = NULL;
  Py_XDECREF(name);
  Py_XDECREF(package);
  return result;
}

/* --- array → view ------------------------------------------------------------------------------
 */

static PyArrayObject *as_array(PyObject *object, const char *function) {
  if (PyArray_CheckExact(object)) return (PyArrayObject *)Py_NewRef(object);
  if (PyObject_HasAttrString(object, "mask") && PyObject_HasAttrString(object, "compressed")) {
    PyErr_Format(
        PyExc_TypeError,
        "gpureduce.%s: masked arrays are not supported; give a.compressed() or a.filled(...)",
        function);
    return NULL;
  }
  return (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
}

static gpr_view view_of(PyArrayObject *array, int dtype) {
  gpr_view view = {.data = PyArray_DATA(array),
                   .dtype = dtype,
                   .ndim = PyArray_NDIM(array),
                   .device = GPR_DEVICE_CPU};
  view.swapped = !PyArray_ISNOTSWAPPED(array);
  for (int d = 0; d < view.ndim; d++) {
    view.shape[d] = PyArray_DIM(array, d);
    view.strides[d] = PyArray_STRIDE(array, d);
  }
  return view;
}

/* --- arguments ---------------------------------------------------------------------------------
 */

/* "auto", "cpu", "cuda" or "cuda:N". */
static int parse_device(PyObject *object, int *device) {
  const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
  char *end = NULL;
  if (!text && PyErr_Occurred()) return 0;
  if (text && !strcmp(text, "auto")) {
    *device = GPR_DEVICE_AUTO;
  } else if (text && !strcmp(text, "cpu")) {
    *device = GPR_DEVICE_CPU;
  } else if (text && !strcmp(text, "cuda")) {
    *device = 0;
  } else if (text && !strncmp(text, "cuda:", 5) && text[5] >= '0' && text[5] <= '9' &&
             strlen(text) < 10 && (*device = (int)strtol(text + 5, &end, 10), *end == 0)) {
    return 1;
  } else {
    PyErr_Format(PyExc_ValueError,
                 "device %R is not one of 'auto', 'cpu', 'cuda' and 'cuda:0', 'cuda:1', ...",
                 object);
    return 0;
  }
  return 1;
}

/* One of the textbook kernels' names, or None. */
static int parse_kernel(PyObject *object, int *kernel) {
  if (object == Py_None) return 1;
  const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
  if (!text && PyErr_Occurred()) return 0;
  *kernel = text ? gpr_kernel_index(text) : GPR_NO_KERNEL;
  if (*kernel != GPR_NO_KERNEL) return 1;
  PyObject *names = PyUnicode_FromString(gpr_kernels[0].name);
  for (int k = 1; names && k < GPR_KERNEL_COUNT; k++)
    Py_SETREF(names, PyUnicode_FromFormat("%U, %s", names, gpr_kernels[k].name));
  if (names) PyErr_Format(PyExc_ValueError, "kernel %R is not one of %U", object, names);
  Py_XDECREF(names);
  return 0;
}

/* *asked is a new reference, or NULL where no dtype is asked for. */
static int parse_dtype(PyObject *object, const char *function, gpr_options *options,
                       PyArray_Descr **asked) {
  if (object == Py_None) return 1;
  if (!PyArray_DescrConverter(object, asked)) return 0;
  options->dtype = supported_dtype(*asked, function);
  return options->dtype != GPR_NO_DTYPE;
}

/* Units of time are not converted, by NumPy's reductions neither: dtype may be the array's own, or
 * a time without unit. */
static int check_unit(PyArray_Descr *asked, PyArray_Descr *descr, const char *function) {
  PyArray_Descr *native = NULL, *own = NULL, *bare = NULL;
  int fits = 1;
  if (asked && descr && asked->kind == descr->kind && (asked->kind == 'm' || asked->kind == 'M')) {
    native = PyArray_DescrNewByteorder(asked, NPY_NATIVE);
    own = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
    bare = PyArray_DescrFromType(asked->type_num);
    fits = native && own && bare &&
           (PyArray_EquivTypes(native, own) || PyArray_EquivTypes(native, bare));
    if (!fits && !PyErr_Occurred())
      PyErr_Format(PyExc_TypeError,
                   "gpureduce.%s: dtype %R has another unit than the array's %R; "
                   "convert with a.astype() first",
                   function, asked, descr);
  }
  Py_XDECREF(bare);
  Py_XDECREF(own);
  Py_XDECREF(native);
  return fits;
}

/* The reference to descr is the array's from here on. */
static int parse_matrix(PyObject *object, PyArray_Descr *descr, gpr_value *value) {
  const int flags = NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST;
  PyArrayObject *array = (PyArrayObject *)PyArray_FromAny(object, descr, 2, 2, flags, NULL);
  if (!array) return 0;
  const npy_intp rows = PyArray_DIM(array, 0), columns = PyArray_DIM(array, 1);
  const int fits = rows == 2 && columns == 2;
  if (fits)
    memcpy(value->bytes, PyArray_DATA(array), (size_t)PyArray_NBYTES(array));
  else
    PyErr_Format(PyExc_ValueError, "initial has the shape (%zd, %zd); a (2, 2) matrix would do",
                 rows, columns);
  Py_DECREF(array);
  return fits;
}

/* initial as a value of the result's dtype, taken or refused as NumPy's reductions do. */
static int parse_initial(PyObject *object, int op, int dtype, PyArray_Descr *of,
                         gpr_value *initial) {
  PyArray_Descr *descr = result_descr(dtype, of);
  if (!descr) return 0;
  initial->dtype = dtype;
  if (gpr_ops[op].flags & GPR_MATRICES) return parse_matrix(object, descr, initial);
  const int failed = PyArray_Pack(descr, initial->bytes, object);
  Py_DECREF(descr);
  return !failed;
}

static int warn_complex(int dtype, const gpr_options *options) {
  if (options->dtype == GPR_NO_DTYPE || gpr_dtypes[dtype].kind != 'c') return 1;
  const char kind = gpr_dtypes[options->dtype].kind;
  if (kind == 'c' || kind == 'b') return 1;
  PyObject *module = PyImport_ImportModule("numpy.exceptions"), *category = NULL;
  if (module) category = PyObject_GetAttrString(module, "ComplexWarning");
  const int fine =
      category &&
      !PyErr_WarnEx(category, "Casting complex values to real discards the imaginary part", 1);
  Py_XDECREF(category);
  Py_XDECREF(module);
  return fine;
}

/* --- the run -----------------------------------------------------------------------------------
 */

/* To the end, with the GIL given away for what takes longer, and a look at Ctrl-C in between. */
static int run_to_end(gpr_run *run, npy_intp bytes) {
  gpr_status status;
  if (bytes < GIL_BYTES) {
    do status = gpr_step(run, SIGNAL_NANOSECONDS);
    while (status == GPR_MORE);
  } else {
    do {
      Py_BEGIN_ALLOW_THREADS status = gpr_step(run, SIGNAL_NANOSECONDS);
      Py_END_ALLOW_THREADS if (status == GPR_MORE && PyErr_CheckSignals()) return 0;
    } while (status == GPR_MORE);
  }
  if (status) raise_status(status);
  return !status;
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

static PyObject *scalar(const gpr_value *value, PyArray_Descr *of) {
  PyArray_Descr *descr = result_descr(value->dtype, of);
  if (!descr) return NULL;
  PyObject *result = PyArray_Scalar((void *)value->bytes, descr, NULL);
  Py_DECREF(descr);
  return result;
}

static PyObject *matrix(const gpr_value *value, PyArray_Descr *of) {
  const npy_intp shape[] = {2, 2};
  PyArray_Descr *descr = result_descr(value->dtype, of);
  if (!descr) return NULL;
  PyObject *result = PyArray_NewFromDescr(&PyArray_Type, descr, 2, shape, NULL, NULL, 0, NULL);
  if (!result) return NULL;
  PyArrayObject *array = (PyArrayObject *)result;
  memcpy(PyArray_DATA(array), value->bytes, (size_t)PyArray_NBYTES(array));
  return result;
}

/* What an argument turned out to be: a NumPy array, or one of another library on a device. */
typedef struct source {
  gpr_view view;
  PyObject *holder;     /* keeps the data alive */
  PyArray_Descr *descr; /* NumPy's, borrowed from the holder, or NULL */
  npy_intp count;
} source;

static int open_source(PyObject *object, const char *function, source *s) {
  if (!PyArray_Check(object)) {
    const int found = gpr_foreign_view(object, function, &s->view, &s->holder);
    if (found < 0) return 0;
    if (found) {
      s->count = 1;
      for (int d = 0; d < s->view.ndim; d++) s->count *= s->view.shape[d];
      return 1;
    }
  }
  PyArrayObject *array = as_array(object, function);
  if (!array) return 0;
  s->holder = (PyObject *)array;
  s->descr = PyArray_DESCR(array);
  s->count = PyArray_SIZE(array);
  const int dtype = supported_dtype(s->descr, function);
  if (dtype != GPR_NO_DTYPE) s->view = view_of(array, dtype);
  return dtype != GPR_NO_DTYPE;
}

static int check_op(PyObject *number) {
  const long op = PyLong_AsLong(number);
  if (op >= 0 && op < GPR_OP_COUNT) return (int)op;
  if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "no operator %ld", op);
  return -1;
}

/* reduce(op, a, dtype, initial, device, kernel): initial and kernel are None for none. */
static PyObject *reduce(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  source s = {.holder = NULL, .descr = NULL};
  PyArray_Descr *asked = NULL;
  PyObject *result = NULL;
  gpr_run *run = NULL;
  gpr_options options = gpr_defaults();
  gpr_value initial, value;
  gpr_status status;
  npy_intp bytes = GIL_BYTES;
  (void)module;

  if (count != 6) return PyErr_Format(PyExc_TypeError, "reduce takes 6 arguments, not %zd", count);
  const int op = check_op(args[0]);
  if (op < 0) return NULL;
  const char *name = gpr_ops[op].name;

  if (!parse_dtype(args[2], name, &options, &asked)) goto fail;
  if (!parse_device(args[4], &options.device)) goto fail;
  if (!parse_kernel(args[5], &options.kernel)) goto fail;
  if (!open_source(args[1], name, &s)) goto fail;
  if (!warn_complex(s.view.dtype, &options) || !check_unit(asked, s.descr, name)) goto fail;
  /* what the result's descr is made from: what was asked for, or the array's, which has the unit */
  PyArray_Descr *of = asked && options.dtype != s.view.dtype ? asked : s.descr;
  if (args[3] != Py_None) {
    const int dtype = gpr_result_dtype(op, s.view.dtype, &options);
    if (dtype != GPR_NO_DTYPE) { /* else gpr_open() says why not */
      if (!parse_initial(args[3], op, dtype, of, &initial)) goto fail;
      options.initial = &initial;
    }
  }
  if ((gpr_ops[op].flags & GPR_EMPTY_WARNS) && s.count == 0 &&
      PyErr_WarnEx(PyExc_RuntimeWarning, "Mean of empty slice.", 1))
    goto fail;

  status = gpr_open(op, &s.view, &options, &run);
  if (status) {
    raise_status(status);
    goto fail;
  }
  bytes = s.view.device < 0 ? s.count * gpr_dtypes[s.view.dtype].bytes : GIL_BYTES;
  if (!run_to_end(run, bytes)) goto fail;
  status = gpr_finish(run, &value);
  if (status)
    raise_status(status);
  else
    result = gpr_ops[op].flags & GPR_MATRICES ? matrix(&value, of) : scalar(&value, of);
fail:
  if (run) close_run(run, bytes);
  Py_XDECREF(asked);
  Py_XDECREF(s.holder);
  return result;
}

/* --- the lists, for Python ----------------------------------------------------------------------
 */

static PyObject *operators(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int op = 0; list && op < GPR_OP_COUNT; op++) {
    const gpr_op_info *o = &gpr_ops[op];
    PyObject *item =
        Py_BuildValue("{s:s,s:s,s:s,s:s,s:O,s:O,s:O,s:O,s:O,s:O,s:O}", "name", o->name, "ufunc",
                      o->ufunc, "alias", o->alias, "sentence", o->sentence, "function",
                      o->flags & GPR_FUNCTION ? Py_True : Py_False, "takes_dtype",
                      o->flags & GPR_TAKES_DTYPE ? Py_True : Py_False, "takes_initial",
                      o->flags & GPR_TAKES_INITIAL ? Py_True : Py_False, "nonempty",
                      o->flags & GPR_NONEMPTY ? Py_True : Py_False, "position",
                      o->flags & GPR_POSITION ? Py_True : Py_False, "takes_kernel",
                      o->flags & GPR_TAKES_KERNEL ? Py_True : Py_False, "matrices",
                      o->flags & GPR_MATRICES ? Py_True : Py_False);
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
    if (!row->open) continue;
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
      raise_status(status);
    else
      item = Py_BuildValue(
          "{s:N,s:(ii),s:i,s:i,s:i,s:L,s:L,s:L,s:L,s:L,s:L,s:(ii),s:(ii)}", "name",
          PyUnicode_DecodeUTF8(d.name, (Py_ssize_t)strlen(d.name), "replace"), "compute_capability",
          d.major, d.minor, "multiprocessors", d.multiprocessors, "threads_per_multiprocessor",
          d.threads_per_multiprocessor, "bus_bits", d.bus_bits, "clock_hertz",
          (long long)d.clock_hertz, "memory_clock_hertz", (long long)d.memory_clock_hertz,
          "memory_total", (long long)d.memory_total, "memory_free", (long long)d.memory_free,
          "l2_bytes", (long long)d.l2_bytes, "shared_bytes", (long long)d.shared_bytes, "driver",
          d.driver / 1000, d.driver % 1000 / 10, "runtime", d.runtime / 1000,
          d.runtime % 1000 / 10);
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
  Py_END_ALLOW_THREADS if (status) return raise_status(status);
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

/* kernel_time(kernel, op, a, device, repeats): milliseconds of each of the runs. */
static PyObject *kernel_time(PyObject *module, PyObject *args) {
  const char *op;
  PyObject *kernel, *a, *device, *result = NULL;
  int repeats;
  gpr_options options = gpr_defaults();
  source s = {.holder = NULL, .descr = NULL};
  double *times = NULL;
  gpr_status status;
  (void)module;
  if (!PyArg_ParseTuple(args, "OsOOi", &kernel, &op, &a, &device, &repeats)) return NULL;
  if (!parse_kernel(kernel, &options.kernel) || !parse_device(device, &options.device)) return NULL;
  if (!open_source(a, op, &s)) goto fail;
  if (!(times = PyMem_Calloc((size_t)(repeats > 0 ? repeats : 1), sizeof *times))) {
    PyErr_NoMemory();
    goto fail;
  }
  Py_BEGIN_ALLOW_THREADS status = gpr_kernel_time(op, &s.view, &options, repeats, times);
  Py_END_ALLOW_THREADS if (status) {
    raise_status(status);
    goto fail;
  }
  result = list_of(times, repeats);
fail:
  PyMem_Free(times);
  Py_XDECREF(s.holder);
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
  const int dtype = supported_dtype(PyArray_DESCR(x), name);
  if (dtype == GPR_NO_DTYPE) return NULL;
  shuffle.data = PyArray_DATA(x);
  shuffle.out = PyArray_DATA(out);
  shuffle.n = PyArray_SIZE(x);
  Py_BEGIN_ALLOW_THREADS status = gpr_gpu_shuffle(name, dtype, 0, shuffle);
  Py_END_ALLOW_THREADS if (status) return raise_status(status);
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
  const int dtype = supported_dtype(PyArray_DESCR(a), name);
  if (dtype == GPR_NO_DTYPE) return NULL;
  const gpr_segment_args segments = {.data = PyArray_DATA(a),
                                     .offset = PyArray_DATA(offsets),
                                     .sum = PyArray_DATA(out),
                                     .n = PyArray_SIZE(a),
                                     .count = PyArray_SIZE(offsets)};
  double *times = PyMem_Calloc((size_t)repeats, sizeof *times);
  if (!times) return PyErr_NoMemory();
  Py_BEGIN_ALLOW_THREADS status = gpr_gpu_segment_sums(name, dtype, 0, segments, repeats, times);
  Py_END_ALLOW_THREADS if (status) raise_status(status);
  else result = list_of(times, repeats);
  PyMem_Free(times);
  return result;
}

static PyMethodDef methods[] = {
    {"reduce", (PyCFunction)(void (*)(void))reduce, METH_FASTCALL, NULL},
    {"operators", operators, METH_NOARGS, NULL},
    {"dtypes", dtypes, METH_NOARGS, NULL},
    {"kernels", kernels, METH_NOARGS, NULL},
    {"kernel_dtypes", kernel_dtypes, METH_NOARGS, NULL},
    {"rows", rows, METH_NOARGS, NULL},
    {"set_num_threads", set_num_threads, METH_O, NULL},
    {"get_num_threads", get_num_threads, METH_NOARGS, NULL},
    {"isa", isa, METH_NOARGS, NULL},
    {"device_count", device_count, METH_NOARGS, NULL},
    {"devices", devices, METH_NOARGS, NULL},
    {"bandwidth", bandwidth, METH_VARARGS, NULL},
    {"kernel_time", kernel_time, METH_VARARGS, NULL},
    {"shuffle", shuffle, METH_VARARGS, NULL},
    {"segment_sums", segment_sums, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int exec_module(PyObject *module) {
  if (PyArray_ImportNumPyAPI() < 0) return -1;
  match_builtin_dtypes();
  if (!device_error)
    device_error = PyErr_NewExceptionWithDoc(
        "gpureduce.DeviceError", "The device asked for is missing, or a call to it failed.",
        PyExc_RuntimeError, NULL);
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
