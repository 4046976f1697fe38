/* All kernels for many outputs, with the folds that have forms of their own in them: what a program
 * includes, so that each of them sees the same specialisations. */
#pragma once

#include "brief.cuh"
#include "column_differences.cuh"
#include "columns.cuh"
#include "moment_outputs.cuh"
#include "packed.cuh"
#include "../core/operators.h"
#include "rows.cuh"
#include "segments.cuh"
#include "shallow_counted.cuh"
#include "staged.cuh"
#include "tile.cuh"
#include "trees.cuh"
