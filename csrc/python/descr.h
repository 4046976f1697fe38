/* What sees Python and NumPy includes this first. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL gpr_numpy_api
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

/* Once, at import. */
void gpr_match_builtin_dtypes(void);

/* Ours, or GPR_NO_DTYPE. */
int gpr_dtype_of(PyArray_Descr *descr);

/* The same, with a TypeError. */
int gpr_supported_dtype(PyArray_Descr *descr, const char *function);

/* The same of the array that was made of what was given. */
int gpr_supported_array(PyArrayObject *array, PyObject *given, const char *function);

/* The descr of a result of this dtype, the caller's. descr is the array's, whose unit of time is
 * kept, or NULL. */
PyArray_Descr *gpr_result_descr(int dtype, PyArray_Descr *descr);
