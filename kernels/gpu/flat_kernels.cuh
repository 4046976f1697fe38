/* All kernels over whole arrays: what a program of one includes. */
#ifndef GPR_FLAT_KERNELS_CUH
#define GPR_FLAT_KERNELS_CUH

#include "flat.cuh"
#include "flat_exact.cuh"
#include "flat_tree.cuh"
#include "../core/operators.h"
#include "small_exact.cuh"

#endif
