/* Results of device arrays: they stay on the device, and go to the caller's library by DLPack. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../gpureduce.h"

/* Adds the type to the module; 0 on failure. */
int gpr_device_array_init(PyObject *module);

/* Room for `count` elements of a dtype, made on the device in the order of the stream: an array of
 * one dimension. NULL with an exception on failure. */
PyObject *gpr_device_array_new(int device, void *stream, int dtype, int64_t count);
void *gpr_device_array_data(PyObject *array);

/* Its elements are ready after what is on the stream now; 0 and a message on failure. */
int gpr_device_array_mark(PyObject *array, void *stream);

/* A view into its memory, `offset` elements from its start; strides count elements too. */
PyObject *gpr_device_array_view(PyObject *array, int64_t offset, int ndim, const int64_t *shape,
                                const int64_t *strides);
