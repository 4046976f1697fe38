/* The one list of shuffles: how the lanes of a warp hand each other values, without memory.
 *
 * X(id, name, values, kernel): values is how many a lane holds, kernel the template of
 * kernels/textbook/shuffles.cuh. */
#pragma once

#include <stdint.h>

#include "dtypes.h"
#include "program.h"

#define GPR_SHUFFLES(X)                                     \
  X(BROADCAST, "broadcast", 1, broadcast_lane)              \
  X(SHIFT_UP, "shift_up", 1, shift_up)                      \
  X(SHIFT_DOWN, "shift_down", 1, shift_down)                \
  X(WRAP, "wrap", 1, wrap)                                  \
  X(BUTTERFLY, "butterfly", 1, butterfly)                   \
  X(BUTTERFLY_ARRAY, "butterfly_array", 4, butterfly_array) \
  X(SWAP, "swap", 4, swap_across)

enum gpr_shuffle {
#define GPR_X(id, ...) GPR_SHUFFLE_##id,
  GPR_SHUFFLES(GPR_X)
#undef GPR_X
      GPR_SHUFFLE_COUNT
};

/* n values from data to out, each `width` lanes (2 to 32, a power of two) for themselves. A lane
 * whose source lies outside the array or its segment keeps its own value. */
enum { GPR_SHUFFLE_THREADS = 256 };
typedef struct gpr_shuffle_args {
  const void *data;
  void *out;
  int64_t n;
  int width;
  int by;   /* the lane, the distance or the mask: 0 to width - 1 */
  int i, j; /* which two of a lane's four values swap() exchanges */
} gpr_shuffle_args;

typedef struct gpr_shuffle_row {
  const char *name;
  int values;                           /* of a lane */
  gpr_program *kernel[GPR_DTYPE_COUNT]; /* takes a gpr_shuffle_args; NULL: not for this dtype */
} gpr_shuffle_row;

typedef struct gpr_shuffle_table {
  const gpr_shuffle_row *row; /* GPR_SHUFFLE_COUNT of them */
} gpr_shuffle_table;

GPR_C const gpr_shuffle_table gpr_shuffle_table_cuda;
