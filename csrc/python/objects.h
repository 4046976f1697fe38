/* Python's modules, lists, tuples and exceptions, as several files need them. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* An attribute of a module, which is imported for it. */
PyObject *gpr_imported(const char *module, const char *name);

/* What a module's function gives for a tuple of arguments, which is taken over; NULL of NULL. */
PyObject *gpr_ask(const char *module, const char *function, PyObject *arguments);

/* To the end of a list, which becomes NULL with any exception. Takes the item over. */
void gpr_append(PyObject **list, PyObject *item);

/* Numbers, each multiplied by `scale`. */
PyObject *gpr_tuple_of(int n, const int64_t *numbers, int64_t scale);

/* Raises what a function of the package refuses, in words of PyErr_Format(); 0. */
int gpr_refuse(PyObject *type, const char *function, const char *format, ...);
