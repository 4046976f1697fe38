/* What a call gives back. */
#pragma once

#include "arguments.h"

/* Where the run writes: the result itself, or what has to be taken apart. */
PyArrayObject *gpr_result_array(gpr_call *call);

/* The caller's result from what the run gave: all of it, or without an array the value. */
PyObject *gpr_results_of(const gpr_call *call, PyArrayObject *all, const gpr_value *value);

/* The words of partials, along a last axis. */
PyObject *gpr_words_of(const gpr_call *call, PyArrayObject *all);

/* Where the run writes results that stay on the device: an array of the caller's library or, to be
 * handed on by DLPack, a gpureduce.DeviceArray. It begins as zeros; the array is the caller's. */
typedef struct gpr_room {
  PyObject *array;
  void *data;
  int library;
} gpr_room;
int gpr_room_open(gpr_call *call, gpr_room *room);

/* The caller's result, of what is on the array's stream now. */
PyObject *gpr_room_results(const gpr_call *call, const gpr_room *room);
