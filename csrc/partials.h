/* Partials inside of the library: rows that finish into words. */
#ifndef GPR_CSRC_PARTIALS_H
#define GPR_CSRC_PARTIALS_H

#include "resolve.h"

/* Lets the row's finish write words in place of results, if the operator has partials. */
void gpr_partials_resolve(gpr_resolved *what);

#endif
