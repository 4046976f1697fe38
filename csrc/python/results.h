/* What a call gives back. */
#ifndef GPR_RESULTS_H
#define GPR_RESULTS_H

#include "arguments.h"

/* Where the run writes: the result itself, or what has to be taken apart. */
PyArrayObject *gpr_result_array(const gpr_call *call, int results);

/* The caller's result from what the run gave: all of it, or without an array the value. */
PyObject *gpr_results_of(const gpr_call *call, PyArrayObject *all, const gpr_value *value);

/* One of the results of an array on a device, of all that are there, as one of the caller's kind.
 */
PyObject *gpr_own_kind(const gpr_call *call, PyObject *all, int64_t outputs, int which);

/* The one, or both as a tuple. Takes them over. */
PyObject *gpr_pack_results(PyObject *const *result, int results);

/* NumPy's warnings, by the least number of elements that counted in an output; 0: an exception. */
int gpr_warn(const gpr_call *call, int64_t least);

#endif
