/* NumPy's dtypes and ours. */
#define NO_IMPORT_ARRAY
#include "descr.h"

#include "../../kernels/abi/lists.h"
#include "objects.h"

/* NumPy's type numbers below NPY_NTYPES_LEGACY, as ours; filled in once at import. */
static int builtin_dtype[NPY_NTYPES_LEGACY];

void gpr_match_builtin_dtypes(void) {
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
int gpr_dtype_of(PyArray_Descr *descr) {
  const int num = descr->type_num;
  if (num >= 0 && num < NPY_NTYPES_LEGACY) return builtin_dtype[num];
  const char *name = strrchr(descr->typeobj->tp_name, '.');
  name = name ? name + 1 : descr->typeobj->tp_name;
  for (int d = 0; d < GPR_DTYPE_COUNT; d++)
    if (gpr_dtypes[d].kind == 'V' && !strcmp(gpr_dtypes[d].name, name)) return d;
  return GPR_NO_DTYPE;
}

#define WHAT_IS_SUPPORTED                                                                        \
  "booleans, integers, floats up to 64 bits, complex numbers and times are (gpureduce.dtypes() " \
  "lists them)"

int gpr_supported_dtype(PyArray_Descr *descr, const char *function) {
  const int dtype = gpr_dtype_of(descr);
  if (dtype == GPR_NO_DTYPE)
    gpr_refuse(PyExc_TypeError, function, "%R is not supported; " WHAT_IS_SUPPORTED,
               (PyObject *)descr);
  return dtype;
}

int gpr_supported_array(PyArrayObject *array, PyObject *given, const char *function) {
  PyArray_Descr *descr = PyArray_DESCR(array);
  if (PyArray_Check(given) || gpr_dtype_of(descr) != GPR_NO_DTYPE)
    return gpr_supported_dtype(descr, function);
  gpr_refuse(PyExc_TypeError, function,
             "a %.200s, of which NumPy makes %R, is not supported; " WHAT_IS_SUPPORTED,
             Py_TYPE(given)->tp_name, (PyObject *)descr);
  return GPR_NO_DTYPE;
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

PyArray_Descr *gpr_result_descr(int dtype, PyArray_Descr *descr) {
  const gpr_dtype_info *type = &gpr_dtypes[dtype];
  if (descr && gpr_dtype_of(descr) == dtype)
    return PyArray_ISNBO(descr->byteorder) ? (PyArray_Descr *)Py_NewRef(descr)
                                           : PyArray_DescrNewByteorder(descr, NPY_NATIVE);
  if (descr && type->kind == 'm' && descr->kind == 'M') return as_timedelta(descr);
  for (int num = 0; num < NPY_NTYPES_LEGACY; num++)
    if (builtin_dtype[num] == dtype) return PyArray_DescrFromType(num);
  return (PyArray_Descr *)gpr_ask("gpureduce.bfloat", type->name, PyTuple_New(0));
}
