/* Any layout by kernels/gpu/tile.cuh, as a device plans and launches it. */
#include "../../kernels/gpu/table.cpp"

extern "C" const gpr_ladder_table gpr_ladder_table_cuda = {};
static const gpr_shuffle_row no_shuffles[GPR_SHUFFLE_COUNT] = {};
static const gpr_segment_row no_segments[GPR_SEGMENT_KERNEL_COUNT] = {};
extern "C" const gpr_shuffle_table gpr_shuffle_table_cuda = {no_shuffles};
extern "C" const gpr_segment_table gpr_segment_table_cuda = {no_segments};

using namespace gpr;

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
    default: return;
  }
}
