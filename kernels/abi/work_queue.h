/* Sums of ragged segments, by three ways to hand the segments to the blocks. */
#pragma once

#include <stdint.h>

#include "dtypes.h"
#include "program.h"

/* X(id, name, kernel of kernels/textbook/work_queue.cuh) */
#define GPR_SEGMENT_KERNELS(X)                        \
  X(FIXED_SEGMENTS, "fixed_segments", fixed_segments) \
  X(DEALT_SEGMENTS, "dealt_segments", dealt_segments) \
  X(WORK_QUEUE, "work_queue", work_queue)

enum gpr_segment_kernel {
#define GPR_X(id, ...) GPR_SEGMENTS_##id,
  GPR_SEGMENT_KERNELS(GPR_X)
#undef GPR_X
      GPR_SEGMENT_KERNEL_COUNT
};

/* Segment i is [offset[i], offset[i + 1]), the last one ends at n; where that is empty or backwards
 * it is the element at offset[i] alone, as NumPy's reduceat has it. 0 <= offset[i] < n. */
enum { GPR_SEGMENT_THREADS = 256 };
typedef struct gpr_segment_args {
  const void *data;
  const int64_t *offset;
  int64_t *sum; /* of each segment, modulo 2^64 */
  int64_t n, count;
  unsigned long long *next; /* the queue's counter: 0 before the launch */
} gpr_segment_args;

typedef struct gpr_segment_row {
  const char *name;
  gpr_program *kernel[GPR_DTYPE_COUNT]; /* takes a gpr_segment_args; NULL: not for this dtype */
} gpr_segment_row;

typedef struct gpr_segment_table {
  const gpr_segment_row *row; /* GPR_SEGMENT_KERNEL_COUNT of them */
} gpr_segment_table;

GPR_C const gpr_segment_table gpr_segment_table_cuda;
