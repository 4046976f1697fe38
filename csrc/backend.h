/* What reduces a plan: the CPU or a device. A run begins with its backend. */
#ifndef GPR_BACKEND_H
#define GPR_BACKEND_H

#include "plan.h"

typedef struct gpr_backend {
  gpr_status (*step)(gpr_run *run, int64_t nanoseconds);
  gpr_status (*finish)(gpr_run *run, const void *initial, void *result);
  void (*close)(gpr_run *run);
} gpr_backend;

struct gpr_run {
  const gpr_backend *backend;
  /* The rest is gpr_open()'s and gpr_finish()'s. */
  const gpr_row *row;
  gpr_cast narrow; /* from the row's result to the dtype asked for, or NULL */
  int dtype;       /* of the result */
  int has_initial;
  gpr_value initial;
};

#endif
