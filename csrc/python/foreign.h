/* Arrays of other libraries that lie on a device: DLPack and the CUDA array interface. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../gpureduce.h"

/* Once, before the others; 0 with an exception. */
int gpr_foreign_init(void);

/* An exception that says that the object is of another kind is cleared; 0 of Ctrl-C and others. */
int gpr_pass_over(void);

/* GPR_NOT_THERE: the object is none that lies on a CUDA device. Else the view describes it for as
 * long as *holder lives, which is the caller's; GPR_ON_ITS_STREAM: it is ready on the stream that
 * its library works on now. -1: an exception is set. */
enum { GPR_NOT_THERE, GPR_THERE, GPR_ON_ITS_STREAM };
int gpr_foreign_view(PyObject *object, const char *function, gpr_view *view, PyObject **holder);
