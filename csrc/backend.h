/* What reduces a plan: the CPU or a device. A run begins with its backend. */
#pragma once

#include <stdatomic.h>

#include "block.h"
#include "plan.h"

typedef struct gpr_backend {
  gpr_status (*step)(gpr_run *run, int64_t nanoseconds);
  /* The result of a plan without axes; of one with axes the rest of what goes to axes->result. */
  gpr_status (*finish)(gpr_run *run, const void *with, void *result);
  void (*close)(gpr_run *run);
  /* gpr_time(), or NULL. */
  gpr_status (*time)(gpr_run *run, int repeats, double *milliseconds);
} gpr_backend;

/* What finishing needs: an initial value or how to make a variance. */
typedef struct gpr_with {
  gpr_value initial;
  gpr_spread spread;
  _Alignas(4) char kind[4]; /* of partials */
  const void *given;        /* one of them, or NULL */
} gpr_with;

/* READY: all steps are done. ENDED: finished, or failed. */
enum { GPR_RUNNING, GPR_READY, GPR_ENDED };

struct gpr_run {
  const gpr_backend *backend;
  /* The rest is gpr_open()'s and gpr_finish()'s. */
  gpr_block *block; /* which the CPU's runs lie in */
  const gpr_row *row;
  int op, dtype; /* dtype: of the result */
  int state;
  gpr_cast narrow;   /* from the row's result to the dtype asked for, or NULL */
  int partials;      /* the results are words */
  int64_t least;     /* the least number of elements that counted in an output */
  int finite;        /* 1: the backend has seen that no element is infinite; 0: it cannot tell */
  int64_t decided;   /* gpr_infinities', or -1: it cannot tell */
  int64_t total;     /* the elements that are to be read, */
  atomic_llong done; /* and those that the backend has read, about */
  void *out;         /* of options, or NULL */
  int device;        /* that `out` is brought to at the end, in this stream's order; or -1 */
  void *stream;
  gpr_with with;         /* without axes */
  struct gpr_wide *wide; /* with axes, else NULL */
};
