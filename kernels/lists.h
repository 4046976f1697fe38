/* What the host may know of an operator or a dtype beside its rows: names and flags. */
#ifndef GPR_LISTS_H
#define GPR_LISTS_H

#include "dtypes.h"
#include "ops.h"

typedef struct gpr_op_info {
  const char *name, *ufunc, *alias;
  int flags; /* enum gpr_op_flag */
  const char *sentence;
} gpr_op_info;

typedef struct gpr_dtype_info {
  const char *name;
  char kind;
  int bytes;
} gpr_dtype_info;

extern const gpr_op_info gpr_ops[GPR_OP_COUNT];
extern const gpr_dtype_info gpr_dtypes[GPR_DTYPE_COUNT];

#endif
