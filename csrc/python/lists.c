#define NO_IMPORT_ARRAY
#include "descr.h"

#include "../../kernels/abi/lists.h"
#include "../../kernels/abi/rows.h"
#include "../cpu.h"
#include "../gpureduce.h"
#include "module.h"
#include "objects.h"

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
    gpr_append(&list, item);
  }
  return list;
}

static PyObject *dtypes(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int d = 0; list && d < GPR_DTYPE_COUNT; d++)
    gpr_append(&list, PyUnicode_FromString(gpr_dtypes[d].name));
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
    gpr_append(&list, item);
  }
  return list;
}

static PyObject *kernel_dtypes(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int d = 0; list && d < GPR_DTYPE_COUNT; d++)
    if (gpr_kernel_dtypes[d]) gpr_append(&list, PyUnicode_FromString(gpr_dtypes[d].name));
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
    gpr_append(&list, Py_BuildValue("(ssss)", gpr_ops[row->op].name, gpr_dtypes[row->dtype].name,
                                    gpr_dtypes[row->result].name, laws[row->law]));
  }
  return list;
}

/* --- threads and build ------------------------------------------------------------------------ */

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
    const gpr_status status = UNLOCKED(gpr_device_info(i, &d));
    PyObject *item = NULL;
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
    gpr_append(&list, item);
  }
  return list;
}

PyMethodDef gpr_list_methods[] = {
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
    {NULL, NULL, 0, NULL},
};
