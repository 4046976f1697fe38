/* A status as an exception. */
#ifndef GPR_RAISE_H
#define GPR_RAISE_H

#include <Python.h>

#include "../gpureduce.h"

/* Raises what the status and gpr_error() say; NULL. module.c's. */
PyObject *gpr_raise(gpr_status status);

#endif
