/* All textbook kernels: what a program of one includes. */
#pragma once

#include "1_in_place.cuh"
#include "2_unrolled.cuh"
#include "3_memories.cuh"
#include "4_one_block.cuh"
#include "5_one_warp.cuh"
#include "6_block_of_warps.cuh"
#include "7_many_blocks.cuh"
