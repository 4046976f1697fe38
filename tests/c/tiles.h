/* Any layout by kernels/gpu/tile.cuh and short rows by staged.cuh, as a device plans and launches
 * them, and rows whose elements lie apart or in short runs by a block each. */
#include "../../kernels/gpu/table.cpp"

extern "C" const gpr_ladder_table gpr_ladder_table_cuda = {};
static const gpr_shuffle_row no_shuffles[GPR_SHUFFLE_COUNT] = {};
static const gpr_segment_row no_segments[GPR_SEGMENT_KERNEL_COUNT] = {};
extern "C" const gpr_shuffle_table gpr_shuffle_table_cuda = {no_shuffles};
extern "C" const gpr_segment_table gpr_segment_table_cuda = {no_segments};

using namespace gpr;

enum { ROWS = 20, STAGED = 40 };
template <class F> static void rows_of(const gpr_axes_args &a) {
  static Slots<F> slots;
  constexpr int V = Packet<typename F::Element>::count;
  const int64_t o = blockIdx.x, tile = GPR_WARP * RowsShape<F>::loads * V;
  typename F::State s;
  Lane<F> lane;
  lane.keep(&s);
  const char *const base = a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept, o);
  for (int64_t t = warp_of(); t < a.tiles; t += AXES_THREADS / GPR_WARP)
    if (a.packets)
      fold_tile<F>(a, Packets<typename F::Element>(base, a.length), t * tile / V, 0, true, lane);
    else
      fold_apart<F>(base, a.dim[a.kept].stride, t * tile, a.length, lane);
  lane.result(s);
  merge_block<F>(s, slots);
  if (threadIdx.x == 0) FinishRow<F>::finish(a, o, s);
}
template <class F> static void tile_of(const gpr_axes_args &a) {
  tile<F, TileRun<F, typename F::Element>>(a);
}
static void tile_of(int fold, const gpr_axes_args &a) {
  switch (fold) {
    case 0: return tile_of<PairSum<float>>(a);
    case 1: return tile_of<PairSum<double>>(a);
    case 2: return tile_of<PairSum<complex<float>>>(a);
    case 3: return tile_of<Extremes<double>>(a);
    case 4: return tile_of<Position<float, true>>(a);
    case 5: return tile_of<PairMoments<float>>(a);
    case 6: return tile_of<PairMoments<double>>(a);
    case 7: return tile_of<PairSum<bfloat16>>(a);
    case ROWS: return rows_of<PairSum<float>>(a);
    case ROWS + 1: return rows_of<PairSum<complex<double>>>(a);
    case ROWS + 2: return rows_of<Extremes<complex<float>>>(a);
    case ROWS + 3: return rows_of<Extremes<complex<double>>>(a);
    case ROWS + 4: return rows_of<Extremes<int64_t>>(a);
    case ROWS + 5: return rows_of<Counted<PairSum<float>>>(a);
    case ROWS + 6: return rows_of<PairMoments<float>>(a);
    case STAGED: return staged<PairSum<float>>(a);
    case STAGED + 1: return staged<PairSum<double>>(a);
    case STAGED + 2: return staged<PairSum<complex<float>>>(a);
    case STAGED + 3: return staged<PairSum<bfloat16>>(a);
    case STAGED + 4: return staged<Extremes<float>>(a);
    case STAGED + 5: return staged<PairMoments<float>>(a);
    default: return;
  }
}
