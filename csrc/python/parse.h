/* What the files that read arguments share. Each gives 1, or 0 with an exception. */
#pragma once

#include "../../kernels/abi/lists.h"
#include "arguments.h"

extern PyObject *gpr_no_value, *gpr_axis_error; /* NumPy's _NoValue and AxisError */
extern PyObject *gpr_auto;                      /* "auto", as Python keeps it */

static inline int gpr_is_given(const PyObject *object) {
  return object && object != Py_None && object != gpr_no_value;
}
static inline int gpr_is_inexact(int dtype) {
  const char kind = gpr_dtypes[dtype].kind;
  return kind == 'f' || kind == 'c' || kind == 'V';
}

/* Neither text nor bytes without meaning; bfloat16 is a type of the user's to NumPy. */
static inline int gpr_is_number(const PyArray_Descr *descr) {
  const int num = descr->type_num;
  return PyTypeNum_ISNUMBER(num) || PyTypeNum_ISBOOL(num) || PyTypeNum_ISUSERDEF(num) ||
         PyTypeNum_ISOBJECT(num);
}

/* device=: a name, or a list of names. */
int gpr_parse_device(PyObject *object, gpr_options *options);

/* NumPy's means and variances are Python's, and count the elements along the axes first. */
int gpr_counts_first(const gpr_call *call);
int gpr_parse_axis(PyObject *object, gpr_call *call);
int gpr_parse_keepdims(PyObject *object, const gpr_call *call, int *keepdims);
void gpr_shape_result(gpr_call *call, int keepdims);

/* The bounds of segments, which are checked once the axis is known. */
int gpr_parse_bounds(const gpr_given *given, gpr_call *call);
int gpr_parse_segments(const gpr_given *given, gpr_call *call);

int gpr_parse_out(PyObject *object, gpr_call *call);
/* Without dtype, NumPy's sums and products are taken in what both the array and out fit. */
int gpr_widen_for_out(PyObject *object, gpr_call *call);
/* NumPy's nanmean, nanvar and nanstd of inexact numbers. */
int gpr_check_inexact(PyObject *out, const gpr_call *call);
