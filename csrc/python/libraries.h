/* PyTorch and CuPy by their own calls, which cost less than protocols do: arrays are read on the
 * stream that the library works on, and made by its allocator. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../gpureduce.h"

enum { GPR_NO_LIBRARY, GPR_TORCH, GPR_CUPY, GPR_LIBRARIES };

/* Once, before the others; 0 with an exception. */
int gpr_libraries_init(void);

/* Whose array the object is. Libraries that are not imported have none. */
int gpr_library_of(PyObject *object);

/* 1: the array lies on a CUDA device, as the view says for as long as it lives. 0: ask it
 * otherwise. -1: an exception is set. */
int gpr_library_view(int library, PyObject *array, gpr_view *view);

/* A new array in C order on the device, and its address. The result is as of gpr_library_view(); 0
 * where the library has no such dtype or would put it elsewhere. */
int gpr_library_empty(int library, PyObject *like, int likes_dtype, int device, int dtype, int ndim,
                      const int64_t *shape, PyObject **array, void **data);

/* The array with its axes in another order. */
PyObject *gpr_library_permuted(int library, PyObject *array, int ndim, const int *axes);
