/* The shuffles, for the dtypes that one instruction moves, or two. */
#include "ladder/shuffles.cuh"

GPR_OPEN

struct Shuffles {
  gpr_shuffle_row row[GPR_SHUFFLE_COUNT];
};
constexpr Shuffles make_shuffles() {
  Shuffles all{};
#define GPR_X(id, name_, values_, kernel_)             \
  {                                                    \
    gpr_shuffle_row &row = all.row[GPR_SHUFFLE_##id];  \
    row.name = name_;                                  \
    row.values = values_;                              \
    row.kernel[GPR_INT32] = ladder::kernel_<int32_t>;  \
    row.kernel[GPR_INT64] = ladder::kernel_<int64_t>;  \
    row.kernel[GPR_FLOAT32] = ladder::kernel_<float>;  \
    row.kernel[GPR_FLOAT64] = ladder::kernel_<double>; \
  }
  GPR_SHUFFLES(GPR_X)
#undef GPR_X
  return all;
}
static constexpr Shuffles shuffles = make_shuffles();

GPR_CLOSE

extern "C" const gpr_shuffle_table gpr_shuffle_table_cuda = {gpr::shuffles.row};
