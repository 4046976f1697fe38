/* Partials in a few doubles an output, which stay inside of the library: of sums, means and
 * variances of real floats. */
#pragma once

#include "resolve.h"

/* What they are finished into, in place of an operator's results. */
enum gpr_brief_into { GPR_INTO_BRIEF = -1, GPR_INTO_WORDS = -2 };

/* Doubles of each output, of which the first is how many elements counted; 0: there are none. */
int gpr_brief_doubles(int op, int dtype);

/* Whether such doubles hold what was folded, of every output. */
int gpr_brief_is_held(const double *found, int64_t outputs, int doubles);

/* Lets a row that has them finish into them: gpr_options.brief. */
void gpr_brief_resolve(gpr_resolved *what);

/* Merges `count` of each of so many outputs, and finishes them as operator `into` does, or into
 * canonical words of this kind, or into such doubles again. least: the least that counted. */
gpr_status gpr_brief_finish(int op, int dtype, int into, uint32_t kind, double ddof,
                            const double *const *parts, int64_t count, int64_t outputs,
                            void *results, int64_t *least);
