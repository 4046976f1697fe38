/* A user's operator along the one tree, for any number of arrays of any layout. The operator is
 * text: csrc has it from Python. */
#ifndef GPR_OPERATOR_CUH
#define GPR_OPERATOR_CUH

#include "operator_leaves.cuh"
#include "tree_blocks.cuh"
#include "tree_few.cuh"
#include "tree_staged.cuh"
#include "tree_warps.cuh"

GPR_OPEN

/* at: how far the place lies from the first one of each result. */
template <class OP>
__device__ __noinline__ void finish_place(const gpr_operator_args &a, const int64_t (&at)[OP::OUTS],
                                          const typename OP::State *root) {
  typename OP::State value = *root;
  if (a.has_initial) {
    typename OP::State left;
    memcpy(&left, a.initial, sizeof left);
    OP::combine_apart(&left, &value, &value);
  }
  OP::finish(value, (a.far ? a.far : a.near) + OP::STREAMS, at);
}

template <class OP>
__device__ __noinline__ void finish_operator(const gpr_operator_args &a, int64_t o,
                                             const typename OP::State &root) {
  const int dims = (int)(a.kept + a.reduced), width = dims + 1;
  const int64_t *numbers = a.far ? a.far : a.near, *shape = numbers + OP::STREAMS + OP::RESULTS;
  const int64_t *steps = shape + dims + OP::ARRAYS * dims;
  const int64_t segment = a.starts ? quotient_of(o, a.per) : 0;
  int64_t at[OP::OUTS];
  o -= segment * a.per;
#pragma unroll
  for (int r = 0; r < OP::OUTS; r++) at[r] = segment * steps[r * width + dims];
#pragma unroll 1
  for (int d = (int)a.kept - 1; d >= 0; d--) {
    const int64_t over = d ? quotient_of(o, shape[d]) : 0, here = o - over * shape[d];
#pragma unroll
    for (int r = 0; r < OP::OUTS; r++) at[r] += here * steps[r * width + d];
    o = over;
  }
  finish_place<OP>(a, at, &root);
}

template <class OP>
__global__ void __launch_bounds__(OP::THREADS, OP::BLOCKS)
    operate_by_threads(const __grid_constant__ gpr_operator_args a) {
  fold_by_threads<OP, Operands<OP>>(
      a, {a.team, a.rows, a.tiles, a.split, a.scratch, (char *)a.scratch + a.nodes},
      [&](int64_t o, const typename OP::State &root) { finish_operator<OP>(a, o, root); });
}

template <class OP>
__global__ void __launch_bounds__(GPR_WARP, OP::WARPS)
    operate_by_warps(const __grid_constant__ gpr_operator_args a) {
  fold_by_warps<OP, Operands<OP>>(
      a, {a.split, a.scratch, (char *)a.scratch + a.nodes},
      [&](int64_t o, const typename OP::State &root) { finish_operator<OP>(a, o, root); });
}

/* Of N elements at most, which lie as they should. */
template <class OP, int N>
__global__ void __launch_bounds__(TREE_FEW_THREADS, OP::BLOCKS *OP::THREADS / TREE_FEW_THREADS)
    operate_few(const __grid_constant__ gpr_operator_args a) {
  typedef Operands<OP> X;
  fold_few<OP, N>(X(a), (uint32_t)a.outputs,
                  [&](const FewPlace<X> &place, const typename OP::State &root) {
                    finish_place<OP>(a, place.out, &root);
                  });
}

/* Rows behind each other, of one array. */
template <class OP>
__global__ void __launch_bounds__(OP::STAGED_THREADS)
    operate_staged(const __grid_constant__ gpr_operator_args a) {
  __shared__ StageRoom<OP> room;
  fold_staged<OP, Operands<OP>>(
      a, a.team, a.tiles, (int)a.count, 1, room,
      [&](int64_t o, const typename OP::State &root) { finish_operator<OP>(a, o, root); });
}

GPR_CLOSE
#endif
