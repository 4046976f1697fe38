/* Partials that come back: merged, and finished. */
#define NO_IMPORT_ARRAY
#include "descr.h"

#include "../../kernels/abi/lists.h"
#include "../../kernels/abi/partials.h"
#include "../brief.h"
#include "module.h"
#include "objects.h"

/* --- what there is ---------------------------------------------------------------------------- */

static PyObject *answers_of(int op, int dtype) {
  PyObject *list = PyList_New(0);
  for (int asked = 0; list && asked < GPR_OP_COUNT; asked++) {
    if ((gpr_ops[asked].flags & GPR_HIDDEN) || !gpr_partials_answer(op, dtype, asked)) continue;
    gpr_append(&list, PyUnicode_FromString(gpr_ops[asked].name));
  }
  return list;
}

/* (operator, dtype, the operator that its partials are named by, words, additive, what they answer)
 * of every operator that has partials. */
static PyObject *partials_rows(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < GPR_OP_COUNT * GPR_DTYPE_COUNT; i++) {
    const int op = i / GPR_DTYPE_COUNT, dtype = i % GPR_DTYPE_COUNT;
    if (!gpr_partials_words(op, dtype) || (gpr_ops[op].flags & GPR_HIDDEN)) continue;
    gpr_append(&list, Py_BuildValue("(sssiNN)", gpr_ops[op].name, gpr_dtypes[dtype].name,
                                    gpr_ops[gpr_partials_op(op, dtype)].name,
                                    gpr_partials_words(op, dtype),
                                    PyBool_FromLong(gpr_partials_are_additive(op, dtype)),
                                    answers_of(op, dtype)));
  }
  return list;
}

/* --- words ------------------------------------------------------------------------------------ */

/* Contiguous words of partials of the operator, as `ndim` dimensions; a borrowed reference. */
static int check_words(PyArrayObject *words, int op, int dtype, int ndim) {
  if (!gpr_is_op(op) || dtype == GPR_NO_DTYPE || !gpr_partials_words(op, dtype)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "there are no such partials");
    return 0;
  }
  if (PyArray_TYPE(words) == NPY_INT64 && PyArray_ISCARRAY_RO(words) &&
      PyArray_NDIM(words) == ndim && PyArray_DIM(words, ndim - 1) == gpr_partials_words(op, dtype))
    return 1;
  PyErr_Format(PyExc_ValueError, "words are a C array of int64 with %d dimensions, the last of %d",
               ndim, gpr_partials_words(op, dtype));
  return 0;
}

/* partials_check(kind, words of each along the last axis): an enum gpr_words. */
static PyObject *partials_check(PyObject *module, PyObject *args) {
  unsigned int kind;
  PyArrayObject *words;
  (void)module;
  if (!PyArg_ParseTuple(args, "IO!", &kind, &PyArray_Type, &words)) return NULL;
  const int ndim = PyArray_NDIM(words);
  if (PyArray_TYPE(words) != NPY_INT64 || !PyArray_ISCARRAY_RO(words) || !ndim ||
      PyArray_DIM(words, ndim - 1) < GPR_WORDS_OF_HEADER)
    return PyErr_Format(PyExc_ValueError, "words are a C array of int64, along the last axis");
  const npy_intp each = PyArray_DIM(words, ndim - 1);
  return PyLong_FromLong(
      gpr_partials_check(kind, PyArray_DATA(words), (int)each, PyArray_SIZE(words) / each));
}

/* partials_merge(op, dtype, kind, words[count, outputs, words of each]) */
static PyObject *partials_merge(PyObject *module, PyObject *args) {
  int op;
  PyArray_Descr *descr;
  unsigned int kind;
  PyArrayObject *words;
  (void)module;
  if (!PyArg_ParseTuple(args, "iO!IO!", &op, &PyArrayDescr_Type, &descr, &kind, &PyArray_Type,
                        &words))
    return NULL;
  const int dtype = gpr_supported_dtype(descr, "merge");
  if (!check_words(words, op, dtype, 3)) return NULL;
  PyArrayObject *merged = (PyArrayObject *)PyArray_SimpleNew(2, PyArray_DIMS(words) + 1, NPY_INT64);
  if (!merged) return NULL;
  const gpr_status status =
      UNLOCKED(gpr_partials_merge(op, dtype, kind, PyArray_DATA(words), PyArray_DIM(words, 0),
                                  PyArray_DIM(words, 1), PyArray_DATA(merged)));
  if (!status) return (PyObject *)merged;
  Py_DECREF(merged);
  return gpr_raise(status);
}

/* partials_finish(op, dtype, asked, dtype to round into, ddof, words[outputs, words of each]):
 * (results one after the other, the least number of elements that counted). */
static PyObject *partials_finish(PyObject *module, PyObject *args) {
  int op, asked;
  PyArray_Descr *descr, *into;
  double ddof;
  PyArrayObject *words;
  int64_t least;
  (void)module;
  if (!PyArg_ParseTuple(args, "iO!iO!dO!", &op, &PyArrayDescr_Type, &descr, &asked,
                        &PyArrayDescr_Type, &into, &ddof, &PyArray_Type, &words))
    return NULL;
  const int dtype = gpr_supported_dtype(descr, "finish"), to = gpr_supported_dtype(into, "finish");
  if (!check_words(words, op, dtype, 2) || to == GPR_NO_DTYPE) return NULL;
  if (!gpr_is_op(asked)) return PyErr_Format(PyExc_ValueError, "no operator %d", asked);
  const int result = gpr_result_dtype(asked, to, NULL);
  npy_intp count = PyArray_DIM(words, 0) * gpr_results(asked);
  PyArray_Descr *of = result == GPR_NO_DTYPE ? NULL : gpr_result_descr(result, into);
  if (!of) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "finish: not defined for dtype %R", into);
    return NULL;
  }
  PyArrayObject *results = (PyArrayObject *)PyArray_Empty(1, &count, of, 0);
  if (!results) return NULL;
  const gpr_status status =
      UNLOCKED(gpr_partials_finish(op, dtype, asked, to, ddof, PyArray_DATA(words),
                                   PyArray_DIM(words, 0), PyArray_DATA(results), &least));
  if (!status) return Py_BuildValue("(NL)", results, (long long)least);
  Py_DECREF(results);
  return gpr_raise(status);
}

/* --- in doubles ------------------------------------------------------------------------------- */

/* brief_doubles(op, dtype): of each output; 0 where there are none. */
static PyObject *brief_doubles(PyObject *module, PyObject *args) {
  int op;
  PyArray_Descr *descr;
  (void)module;
  if (!PyArg_ParseTuple(args, "iO!", &op, &PyArrayDescr_Type, &descr)) return NULL;
  const int dtype = gpr_supported_dtype(descr, "partials");
  if (!gpr_is_op(op) || dtype == GPR_NO_DTYPE) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "there are no such partials");
    return NULL;
  }
  return PyLong_FromLong(gpr_brief_doubles(op, dtype));
}

/* Where the doubles of each part are; how many outputs all of them have, or -1. */
static npy_intp places_of(PyObject *parts, int doubles, const double **place) {
  npy_intp outputs = -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++) {
    PyArrayObject *part = (PyArrayObject *)PyTuple_GET_ITEM(parts, i);
    if (!PyArray_Check(part) || PyArray_TYPE(part) != NPY_FLOAT64 || !PyArray_ISCARRAY_RO(part) ||
        PyArray_NDIM(part) != 2 || PyArray_DIM(part, 1) != doubles ||
        (i && PyArray_DIM(part, 0) != outputs))
      return -1;
    outputs = PyArray_DIM(part, 0);
    place[i] = PyArray_DATA(part);
  }
  return outputs;
}

/* brief_finish(op, dtype, an operator or enum gpr_brief_into, kind, ddof, parts[outputs, doubles of
 * each]): (results one after the other, or None where doubles do not hold them; the least number of
 * elements that counted). */
static PyObject *brief_finish(PyObject *module, PyObject *args) {
  int op, into;
  PyArray_Descr *descr;
  unsigned int kind;
  double ddof;
  PyObject *parts;
  int64_t least = 0;
  (void)module;
  if (!PyArg_ParseTuple(args, "iO!iIdO!", &op, &PyArrayDescr_Type, &descr, &into, &kind, &ddof,
                        &PyTuple_Type, &parts))
    return NULL;
  const int dtype = gpr_supported_dtype(descr, "finish");
  const int known = gpr_is_op(op) && into < GPR_OP_COUNT && dtype != GPR_NO_DTYPE;
  const int doubles = known ? gpr_brief_doubles(op, dtype) : 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(parts);
  const double **place = PyMem_Malloc((size_t)(count + 1) * sizeof *place);
  if (!place) return PyErr_NoMemory();
  PyArrayObject *results = NULL;
  gpr_status status = GPR_OK;
  const npy_intp outputs = doubles ? places_of(parts, doubles, place) : -1;
  const int each = into == GPR_INTO_WORDS ? gpr_partials_words(op, dtype) : doubles;
  npy_intp shape[2] = {outputs, each};
  if (outputs < 0)
    PyErr_SetString(PyExc_ValueError, "these are no partials in doubles");
  else if (into < 0)
    results = (PyArrayObject *)PyArray_SimpleNew(2, shape,
                                                 into == GPR_INTO_WORDS ? NPY_INT64 : NPY_FLOAT64);
  else {
    PyArray_Descr *of = gpr_result_descr(gpr_result_dtype(into, dtype, NULL), descr);
    results = of ? (PyArrayObject *)PyArray_Empty(1, shape, of, 0) : NULL;
  }
  if (results)
    status = UNLOCKED(gpr_brief_finish(op, dtype, into, kind, ddof, place, count, outputs,
                                       PyArray_DATA(results), &least));
  PyMem_Free(place);
  const int is_held = !results || status || into != GPR_INTO_BRIEF ||
                      gpr_brief_is_held(PyArray_DATA(results), outputs, doubles);
  if (results && !status && is_held) return Py_BuildValue("(NL)", results, (long long)least);
  if (!results) return NULL;
  Py_DECREF(results);
  return status ? gpr_raise(status) : Py_BuildValue("(OL)", Py_None, (long long)least);
}

PyMethodDef gpr_partials_methods[] = {
    {"brief_doubles", brief_doubles, METH_VARARGS, NULL},
    {"brief_finish", brief_finish, METH_VARARGS, NULL},
    {"partials_rows", partials_rows, METH_NOARGS, NULL},
    {"partials_check", partials_check, METH_VARARGS, NULL},
    {"partials_merge", partials_merge, METH_VARARGS, NULL},
    {"partials_finish", partials_finish, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
