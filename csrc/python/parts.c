/* One reduction of arrays that lie on several devices: all are under way at once, and one thread
 * looks after them. */
#define NO_IMPORT_ARRAY
#include "parse.h"

#include "../threads.h"
#include "module.h"
#include "results.h"

/* How long without a look at Ctrl-C. */
enum { SIGNAL_NANOSECONDS = 50 * 1000 * 1000 };

typedef struct part {
  gpr_call call;
  int is_open, is_done;
  gpr_run *run;
  PyArrayObject *words;
} part;

static int open_part(part *p, int op, const gpr_given *given) {
  p->is_open = 1;
  if (!gpr_arguments_open(op, given, &p->call)) return 0;
  p->words = gpr_result_array(&p->call);
  if (!p->words) return 0;
  p->call.options.out = PyArray_DATA(p->words);
  const gpr_status status = gpr_open(op, &p->call.view, &p->call.options, &p->run);
  if (status) gpr_raise(status);
  return !status;
}

/* For a while; GPR_MORE: some are under way still. */
static gpr_status step_all(part *parts, Py_ssize_t count) {
  const int64_t until = gpr_now() + SIGNAL_NANOSECONDS;
  int under_way;
  do {
    under_way = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
      if (parts[i].is_done) continue;
      const gpr_status status = gpr_step(parts[i].run, 0);
      if (status && status != GPR_MORE) return status;
      parts[i].is_done = !status;
      under_way += status == GPR_MORE;
    }
  } while (under_way && gpr_now() < until);
  return under_way ? GPR_MORE : GPR_OK;
}

static int run_all(part *parts, Py_ssize_t count) {
  gpr_status status = GPR_MORE;
  while (status == GPR_MORE) {
    status = UNLOCKED(step_all(parts, count));
    if (status == GPR_MORE && PyErr_CheckSignals()) return 0;
  }
  for (Py_ssize_t i = 0; !status && i < count; i++) status = gpr_finish(parts[i].run, NULL);
  if (status) gpr_raise(status);
  return !status;
}

static void close_part(part *p) {
  Py_BEGIN_ALLOW_THREADS gpr_close(p->run);
  Py_END_ALLOW_THREADS Py_XDECREF(p->words);
  if (p->is_open) gpr_arguments_close(&p->call);
}

/* partials_of_parts(op, arrays, dtype, kind): the words of each. */
static PyObject *partials_of_parts(PyObject *module, PyObject *args) {
  gpr_given given = {.is_ufunc = 1};
  PyObject *arrays, *words = NULL;
  unsigned int kind;
  int op;
  (void)module;
  if (!PyArg_ParseTuple(args, "iO!OI", &op, &PyTuple_Type, &arrays, &given.dtype, &kind))
    return NULL;
  if (op < 0 || op >= GPR_OP_COUNT) return PyErr_Format(PyExc_ValueError, "no operator %d", op);
  const Py_ssize_t count = PyTuple_GET_SIZE(arrays);
  part *parts = PyMem_Calloc((size_t)count + 1, sizeof *parts);
  if (!parts) return PyErr_NoMemory();
  given.partials = kind;
  int fine = 1;
  for (Py_ssize_t i = 0; fine && i < count; i++) {
    given.a = PyTuple_GET_ITEM(arrays, i);
    fine = open_part(&parts[i], op, &given);
  }
  if (fine && run_all(parts, count)) words = PyList_New(count);
  for (Py_ssize_t i = 0; words && i < count; i++) {
    PyObject *item = gpr_words_of(&parts[i].call, parts[i].words);
    if (item)
      PyList_SET_ITEM(words, i, item);
    else
      Py_CLEAR(words);
  }
  for (Py_ssize_t i = 0; i < count; i++) close_part(&parts[i]);
  PyMem_Free(parts);
  return words;
}

PyMethodDef gpr_part_methods[] = {
    {"partials_of_parts", partials_of_parts, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
