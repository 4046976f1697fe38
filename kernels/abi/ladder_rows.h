/* The table of the textbook kernels, as kernels/ gives it to the host. */
#pragma once

#include <stdint.h>

#include "ladder.h"
#include "program.h"

/* What every textbook kernel takes. */
typedef struct gpr_ladder_args {
  const void *data; /* device memory, aligned to its element */
  int64_t n;
  void *copy; /* `copied` values, of which the first n are the elements: for kernels in place */
  int64_t copied;
  void *partials;   /* a value for each block of the first launch */
  int64_t blocks;   /* of the first launch */
  uint32_t *ticket; /* 0 before the first launch */
  void *result;     /* of the result's dtype */
} gpr_ladder_args;

/* One operator on one dtype, of the few that the textbook kernels are made for. A value is what
 * their copies and partial results are of. */
typedef struct gpr_ladder_row {
  int op, dtype, value_bytes, result_bytes;
  gpr_program *lift, *partials; /* fills the copy; the second launch, by one block */
  /* for blocks of GPR_KERNEL_LEAST_BLOCK << i threads; NULL where the operator needs the order */
  gpr_program *kernel[GPR_KERNEL_COUNT][GPR_KERNEL_BLOCKS];
} gpr_ladder_row;

enum { GPR_LADDER_THREADS = 1024 }; /* a block that lifts, or folds partial results */

typedef struct gpr_ladder_table {
  const gpr_ladder_row *row;
  int rows;
} gpr_ladder_table;

GPR_C const gpr_ladder_table gpr_ladder_table_cuda;
