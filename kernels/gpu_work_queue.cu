/* The sums of segments, for 32- and 64-bit integers. */
#include "ladder/work_queue.cuh"

GPR_OPEN

struct SegmentKernels {
  gpr_segment_row row[GPR_SEGMENT_KERNEL_COUNT];
};
constexpr SegmentKernels make_segment_kernels() {
  SegmentKernels all{};
#define GPR_X(id, name_, kernel_)                      \
  {                                                    \
    gpr_segment_row &row = all.row[GPR_SEGMENTS_##id]; \
    row.name = name_;                                  \
    row.kernel[GPR_INT32] = ladder::kernel_<int32_t>;  \
    row.kernel[GPR_INT64] = ladder::kernel_<int64_t>;  \
  }
  GPR_SEGMENT_KERNELS(GPR_X)
#undef GPR_X
  return all;
}
static constexpr SegmentKernels segment_kernels = make_segment_kernels();

GPR_CLOSE

extern "C" const gpr_segment_table gpr_segment_table_cuda = {gpr::segment_kernels.row};
