/* All kernels over whole arrays: what a program of one includes. */
#pragma once

#include "flat.cuh"
#include "flat_exact.cuh"
#include "flat_tree.cuh"
#include "../core/operators.h"
#include "small_exact.cuh"
