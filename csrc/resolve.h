/* An operator, for elements of one dtype and what is asked of them: worked out once a call. */
#pragma once

#include "../kernels/abi/ops.h"
#include "../kernels/abi/rows.h"
#include "gpureduce.h"

typedef struct gpr_resolved {
  int op;
  const gpr_row
      *row;        /* that folds; its `open` is NULL where the operator does not take the dtype */
  gpr_cast cast;   /* from the elements' dtype to the row's, or NULL */
  int is_cast;     /* whether elements are to be converted, if that can be done */
  int result;      /* the dtype of the result, or GPR_NO_DTYPE */
  gpr_cast narrow; /* to it, from that of the row's result; or NULL */
  int results;     /* values of each output */
  int skips;       /* NaN and NaT do not count */
} gpr_resolved;

static inline int gpr_is_op(int op) { return op >= 0 && op < GPR_OP_COUNT; }
static inline int gpr_is_dtype(int dtype) { return dtype >= 0 && dtype < GPR_DTYPE_COUNT; }

/* How the CPU folds elements of the dtype. */
const gpr_row *gpr_row_of(int op, int dtype);

gpr_resolved gpr_resolve(int op, int dtype, const gpr_options *options);

/* From elements of one dtype to another; NULL where there is none. */
gpr_cast gpr_cast_of(int from, int to);

/* Whether the operator passes over what is no number in the dtype. */
int gpr_skips(int op, int dtype);
