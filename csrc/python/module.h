/* What the module is made of. */
#pragma once

#include <Python.h>

#include "../gpureduce.h"

/* Of call.c, lists.c, partials.c, timing.c, programs.c, operators.c, parts.c and warn.c. */
extern PyMethodDef gpr_call_methods[], gpr_list_methods[], gpr_partials_methods[],
    gpr_timing_methods[], gpr_program_methods[], gpr_operator_methods[], gpr_part_methods[],
    gpr_warn_methods[];

/* Raises what the status and gpr_error() say; NULL. */
PyObject *gpr_raise(gpr_status status);
/* The same, but None of GPR_OK. */
PyObject *gpr_nothing(gpr_status status);

/* What `work`, which needs no GIL, gives without it. */
#define UNLOCKED(work)                           \
  ({                                             \
    PyThreadState *state_ = PyEval_SaveThread(); \
    const __typeof__(work) done_ = (work);       \
    PyEval_RestoreThread(state_);                \
    done_;                                       \
  })

/* Lets the library ask what it needs to make kernels; once, when the module is made. */
void gpr_programs_open(void);
