/* From Python's arguments to the C API's. */
#pragma once

#include "descr.h"
#include "../resolve.h"

/* What Python gives; NULL and None are nothing, and so is NumPy's _NoValue. */
typedef struct gpr_given {
  PyObject *a, *axis, *dtype, *out, *keepdims, *initial, *where, *ddof, *mean, *device, *kernel;
  PyObject *progress;       /* a function of (elements done, of how many), called under way */
  PyObject *starts, *stops; /* of segments; without stops as NumPy's reduceat has them */
  int is_ufunc;             /* as a method of NumPy's ufunc, which does not warn */
  uint32_t partials;        /* their kind, where they are wanted in place of results */
  int brief;                /* in doubles */
} gpr_given;

/* A call: `options` and `view` are what gpr_open() wants and point into the call. */
typedef struct gpr_call {
  int op, is_ufunc;
  const char *name;
  gpr_options options;
  gpr_resolved what;     /* once the array, dtype and out are known */
  npy_intp count;        /* elements of the array */
  PyArray_Descr *of;     /* what the result's descr is made from, borrowed */
  PyObject *array;       /* what was given, borrowed */
  PyArrayObject *out[2]; /* borrowed; one for each result, or NULL */
  PyObject *device_out;  /* borrowed; out, where the array lies on a device, or NULL */
  void *out_stream;      /* which its library works on, if out_is_known */
  int found;             /* how the array was: GPR_ON_ITS_STREAM and its like */
  int out_is_known;
  int is_array;      /* out=...: an array, also of no dimension */
  int ndim;          /* of the result, as is `shape` */
  int segments_axis; /* of the result, whose first it is as the run gives it; else 0 */
  /* gpr_arguments_close()'s */
  PyObject *holder, *where_holder, *out_holder;
  PyArrayObject *starts, *stops, *means;
  PyArray_Descr *asked, *descr; /* descr: NumPy's of the array; NULL of a device array */
  gpr_value initial;
  /* filled in as far as they are used */
  gpr_view view, where;
  npy_intp shape[NPY_MAXDIMS];
} gpr_call;

/* Once, at import. */
int gpr_arguments_init(void);

/* 1, or 0 with an exception; in both cases the call is the caller's to close. */
int gpr_arguments_open(int op, const gpr_given *given, gpr_call *call);
void gpr_arguments_close(gpr_call *call);
