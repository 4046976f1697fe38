/* Partials inside of the library: rows that finish into words. */
#pragma once

#include "resolve.h"

/* Lets the row's finish write words in place of results, if the operator has partials. */
void gpr_partials_resolve(gpr_resolved *what);
