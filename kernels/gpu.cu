/* The device half of the table: expands operators × dtypes into kernels. */
#include "flat.cuh"
#include "flat_exact.cuh"
#include "flat_tree.cuh"
#include "gather.cuh"
#include "ops.cuh"
#include "read_only.cuh"
#include "small_exact.cuh"

GPR_OPEN

/* By the fold's law: rows that share a fold share a kernel. */
template <class F, gpr_law LAW> struct GpuRow;
template <class F> struct GpuRow<F, GPR_FREE> {
  static constexpr gpr_gpu_row row = {flat_free<F>,
                                      (sizeof(typename F::State) + 3) / 4,
                                      0,
                                      FLAT_THREADS,
                                      16 * FLAT_TILE,
                                      FLAT_BLOCKS,
                                      {},
                                      {}};
};
template <class F> struct GpuRow<F, GPR_EXACT> {
  typedef typename F::Element T;
  typedef typename F::State State;
  static_assert(ExactShape<T>::blocks * F::parts <= GPR_LINES_MOST, "");
  static_assert(sizeof(State) / 4 * 33 / 32 + 1 <= GPR_LINES_AT, "");
  static constexpr gpr_gpu_row row = {flat_exact<T>,
                                      sizeof(State) / 4,
                                      (sizeof(State) / 4 + 31) / 32,
                                      ExactShape<T>::threads,
                                      16 * ExactShape<T>::tile,
                                      ExactShape<T>::blocks,
                                      {F::parts, take_lines<State>},
                                      {small_exact<T>, 16 * SmallShape<T>::loads}};
};
template <class F> struct GpuRow<F, GPR_TREE> {
  typedef TreeWarp<typename F::Element, F> W;
  static constexpr gpr_gpu_row row = {
      flat_tree<F>,
      sizeof(TreeAnswer<typename F::Wide>) / 4,
      0,
      FLAT_THREADS,
      (int)(FLAT_THREADS / GPR_WARP * W::chunk * sizeof(typename F::Element)),
      0,
      {},
      {}};
};
/* Folds that have no kernel over whole arrays. */
template <class T> struct GpuRow<MomentsFold<T>, GPR_EXACT> {
  static constexpr gpr_gpu_row row = {};
};
template <class T> struct GpuRow<Positions<T>, GPR_FREE> { static constexpr gpr_gpu_row row = {}; };
template <class T> struct GpuRow<IntegerMoments<T>, GPR_FREE> {
  static constexpr gpr_gpu_row row = {};
};
template <class F> constexpr gpr_gpu_row gpu_row() { return GpuRow<F, F::law>::row; }
template <> constexpr gpr_gpu_row gpu_row<void>() { return {}; }

struct GpuRows {
  gpr_gpu_row row[GPR_OP_COUNT * GPR_DTYPE_COUNT];
};
template <template <class> class Op> constexpr void fill(GpuRows &rows, int op) {
  gpr_gpu_row *row = rows.row + op * GPR_DTYPE_COUNT;
#define GPR_X(id, name, kind, bytes, type) row[GPR_##id] = gpu_row<typename Op<type>::Fold>();
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
constexpr GpuRows make_rows() {
  GpuRows rows{};
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) fill<op>(rows, GPR_OP_##id);
  GPR_OPS(GPR_X)
#undef GPR_X
  return rows;
}
static constexpr GpuRows rows = make_rows();

/* The states of a block's partial result are 48 bytes at most; the tree's nodes, of 32 bytes at
 * most, are the most. */
static constexpr size_t scratch_bytes = SCRATCH_PARTIALS + TREE_NODES * sizeof(matrix<double>);
static_assert(scratch_bytes > SCRATCH_PARTIALS + GPR_GPU_BLOCKS_MAX * 48, "");

GPR_CLOSE

extern "C" const gpr_gpu_table gpr_gpu_table_cuda = {gpr::rows.row, gpr::gather, gpr::scratch_bytes,
                                                     gpr::read_only};
