/* The textbook kernels' half of the table: expands kernels × operators × dtypes. */
#include "ladder_rows.h"
#include "ladder/1_in_place.cuh"
#include "ladder/2_unrolled.cuh"
#include "ladder/3_memories.cuh"
#include "ladder/4_one_block.cuh"
#include "ladder/5_one_warp.cuh"
#include "ladder/6_block_of_warps.cuh"
#include "ladder/7_many_blocks.cuh"

GPR_OPEN
namespace ladder {

/* The kernels in place see values alone, and so int32 and int64 share those of sums. */
template <class Op, int B> constexpr void fill(gpr_ladder_row &row, int block) {
  typedef typename Op::Monoid M;
#define GPR_X(id, name, chapter, flags, limit, least, most, unroll, grid, sentence, ...) \
  if constexpr (Op::commutes || (flags)&GPR_IN_ORDER)                                    \
    row.kernel[GPR_KERNEL_##id][block] = __VA_ARGS__;
  GPR_KERNELS(GPR_X)
#undef GPR_X
}

template <class Op> constexpr gpr_ladder_row make_row(int op, int dtype) {
  gpr_ladder_row row{};
  row.op = op;
  row.dtype = dtype;
  row.value_bytes = sizeof(ValueOf<Op>);
  row.result_bytes = sizeof(typename Op::Result);
  if constexpr (Op::commutes) {
    row.lift = lift<Op>;
    row.partials = fold_partials<Op>;
  }
  fill<Op, 128>(row, 0);
  fill<Op, 256>(row, 1);
  fill<Op, 512>(row, 2);
  fill<Op, 1024>(row, 3);
  return row;
}

template <int D> struct Stored;
#define GPR_X(id, name, kind, bytes, type) \
  template <> struct Stored<GPR_##id> { typedef type is; };
GPR_DTYPES(GPR_X)
#undef GPR_X

#define GPR_X(dtype)                                                     \
  make_row<Sum<Stored<GPR_##dtype>::is>>(GPR_OP_SUM, GPR_##dtype),       \
      make_row<Prod<Stored<GPR_##dtype>::is>>(GPR_OP_PROD, GPR_##dtype), \
      make_row<Min<Stored<GPR_##dtype>::is>>(GPR_OP_MIN, GPR_##dtype),   \
      make_row<Max<Stored<GPR_##dtype>::is>>(GPR_OP_MAX, GPR_##dtype),
static constexpr gpr_ladder_row rows[] = {
    GPR_KERNEL_DTYPES(GPR_X)  //
    make_row<Matmul<int64_t>>(GPR_OP_MATMUL2X2, GPR_INT64),
    make_row<Matmul<double>>(GPR_OP_MATMUL2X2, GPR_FLOAT64),
};
#undef GPR_X

}  // namespace ladder
GPR_CLOSE

extern "C" const gpr_ladder_table gpr_ladder_table_cuda = {
    gpr::ladder::rows, sizeof gpr::ladder::rows / sizeof *gpr::ladder::rows};
