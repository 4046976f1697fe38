/* A user's operator along the one tree, for any number of arrays of any layout. The operator is
 * text: csrc has it from Python. */
#pragma once

#include "operator_leaves.cuh"
#include "tree_blocks.cuh"
#include "tree_few.cuh"
#include "tree_staged.cuh"
#include "tree_warps.cuh"

GPR_OPEN

/* Of N elements at most, which lie as they should. */
template <class OP, int N>
__global__ void __launch_bounds__(TREE_FEW_THREADS, OP::BLOCKS *OP::THREADS / TREE_FEW_THREADS)
    operate_few(const __grid_constant__ gpr_operator_args a) {
  fold_few<OP, N>(Operands<OP>(a), (uint32_t)a.outputs);
}

GPR_CLOSE
