/* What the host may know of an operator or a dtype beside its rows: names and flags. */
#pragma once

#include "dtypes.h"
#include "ladder.h"
#include "ops.h"
#include "variants.h"

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

typedef struct gpr_kernel_info {
  const char *name;
  int chapter; /* from 1 */
  int flags;   /* enum gpr_kernel_flag */
  int limit, least, most, unroll;
  int grid; /* enum gpr_kernel_grid */
  const char *sentence;
} gpr_kernel_info;

extern const gpr_op_info gpr_ops[GPR_OP_COUNT];
extern const gpr_dtype_info gpr_dtypes[GPR_DTYPE_COUNT];
extern const char *const gpr_chapters[];
extern const gpr_kernel_info gpr_kernels[GPR_KERNEL_COUNT];

typedef struct gpr_variant_info {
  const char *name, *sentence;
} gpr_variant_info;
extern const gpr_variant_info gpr_variants[GPR_VARIANT_END]; /* the first one is none */

/* Whether the textbook kernels are made for elements of this type. */
extern const unsigned char gpr_kernel_dtypes[GPR_DTYPE_COUNT];
