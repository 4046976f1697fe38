/* What the kernel of a user's operator takes (kernels/gpu/operator.cuh): nothing but words of eight
 * bytes, so that whoever plans the launch writes them one behind the other. */
#pragma once

#include <stdint.h>

enum { GPR_OPERATOR_STATE = 80, GPR_OPERATOR_NUMBERS = 336 }; /* words */

typedef struct gpr_operator_args {
  int64_t outputs, per, count; /* all of them; those of one segment; elements of an output */
  int64_t kept, reduced;       /* dimensions */
  int64_t team, rows;          /* units across outputs, below 0 the faster ones along the index */
  int64_t tiles, split;        /* of `team` outputs each; blocks that share one */
  int64_t odd;                 /* bit k: array k is in the other byte order or lies unaligned */
  int64_t swapped;             /* the first of these alone */
  int64_t packed;              /* bit k: leaves lie side by side along the last dimension */
  int64_t nodes;               /* bytes of the scratch before the nodes; tickets lie before */
  int64_t has_initial;
  void *scratch;
  const int64_t *starts, *stops; /* of segments, or NULL */
  const int64_t *far;            /* NULL, or where the numbers are that `near` has no room for */
  uint64_t initial[GPR_OPERATOR_STATE];
  /* Addresses of the streams and of the results' numbers; lengths of the dimensions; of each array
   * the bytes from one place of a dimension to the next; of each result the same, and from one
   * segment to the next. */
  int64_t near[GPR_OPERATOR_NUMBERS];
} gpr_operator_args;
