#pragma once

#include "plan.h"

/* Elements [start, start + n) of the plan, whose first is at `data`, contiguous, native and of the
 * row's dtype. `to` and `scratch` hold them in either dtype. */
void gpr_pack(const gpr_plan *plan, const char *data, int64_t start, int64_t n, void *to,
              void *scratch);

/* The same of each of some lines, which begin `step` bytes apart, one line after the other; start
 * and n are of scalars. */
typedef struct gpr_lines_at {
  int64_t n, step;
} gpr_lines_at;
void gpr_pack_lines(const gpr_plan *plan, gpr_lines_at lines, const char *data, int64_t start,
                    int64_t n, void *to, void *scratch);

/* A run of at most 2 * GPR_WORD_BYTES is two words of so many bytes, at its start and its end,
 * which may overlap. */
enum { GPR_WORD_BYTES = 32 };
int gpr_word_of(int64_t run);
