/* Arrays of other libraries that lie on a device: DLPack and the CUDA array interface. */
#ifndef GPR_FOREIGN_H
#define GPR_FOREIGN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../gpureduce.h"

/* Once, before the others; 0 with an exception. */
int gpr_foreign_init(void);

/* 1: the object lies on a CUDA device, and the view describes it for as long as *holder lives,
 * which is the caller's. 0: it is no such object. -1: an exception is set. */
int gpr_foreign_view(PyObject *object, const char *function, gpr_view *view, PyObject **holder);

#endif
