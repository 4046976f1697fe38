/* The textbook kernels' half of the table: the ladder, the shuffles and the sums of segments. */
#include "../gpu/as_host.h"
#include "kernels.cuh"
#include "../abi/ladder_rows.h"
#include "../gpu/program_text.h"
#include "../abi/shuffles.h"
#include "../abi/work_queue.h"

GPR_OPEN
namespace ladder {

/* --- the ladder: Op is the operator, M its monoid, B the threads of a block ------------------- */

/* An expression that does not ask for the threads of a block is one program for all of them. */
constexpr bool names_block(const char *text) {
  for (; *text; text++)
    if (text[0] == ' ' && text[1] == 'B' && text[2] == '>') return true;
  return false;
}
#define GPR_LADDER_DEFINES "using namespace ladder; typedef F Op; typedef Op::Monoid M;"
template <int B> struct Defines;
template <> struct Defines<0> { static constexpr auto text = GPR_LADDER_DEFINES; };
template <> struct Defines<128> {
  static constexpr auto text = GPR_LADDER_DEFINES " enum { B = 128 };";
};
template <> struct Defines<256> {
  static constexpr auto text = GPR_LADDER_DEFINES " enum { B = 256 };";
};
template <> struct Defines<512> {
  static constexpr auto text = GPR_LADDER_DEFINES " enum { B = 512 };";
};
template <> struct Defines<1024> {
  static constexpr auto text = GPR_LADDER_DEFINES " enum { B = 1024 };";
};

template <int KERNEL> struct Body;
#define GPR_X(id, name, chapter, flags, limit, least, most, unroll, grid, sentence, ...) \
  template <> struct Body<GPR_KERNEL_##id> { static constexpr auto text = #__VA_ARGS__; };
GPR_KERNELS(GPR_X)
#undef GPR_X

template <int KERNEL, int B> struct Rung {
  static constexpr const char *header = "textbook/kernels.cuh", *defines = Defines<B>::text,
                              *text = Body<KERNEL>::text;
};
GPR_PROGRAM_KIND(Lift, "textbook/kernels.cuh", GPR_LADDER_DEFINES, "lift<Op>");
GPR_PROGRAM_KIND(FoldPartials, "textbook/kernels.cuh", GPR_LADDER_DEFINES, "fold_partials<Op>");

template <class Op, int B> constexpr void fill(gpr_ladder_row &row, int block) {
#define GPR_X(id, name, chapter, flags, limit, least, most, unroll, grid, sentence, ...)         \
  if constexpr (GPR_KERNEL_##id != GPR_KERNEL_DEFAULT && (Op::commutes || (flags)&GPR_IN_ORDER)) \
    row.kernel[GPR_KERNEL_##id][block] =                                                         \
        &Program<Op, Rung<GPR_KERNEL_##id, names_block(#__VA_ARGS__) ? B : 0>>::it;
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
    row.lift = &Program<Op, Lift>::it;
    row.partials = &Program<Op, FoldPartials>::it;
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

/* --- the shuffles, for the dtypes that one instruction moves, or two -------------------------- */

template <int SHUFFLE> struct Shuffle;
#define GPR_X(id, name, values, kernel)                                                      \
  template <> struct Shuffle<GPR_SHUFFLE_##id> {                                             \
    static constexpr const char *header = "textbook/shuffles.cuh",                           \
                                *defines = "using namespace ladder;", *text = #kernel "<F>"; \
  };
GPR_SHUFFLES(GPR_X)
#undef GPR_X

struct Shuffles {
  gpr_shuffle_row row[GPR_SHUFFLE_COUNT];
};
constexpr Shuffles make_shuffles() {
  Shuffles all{};
#define GPR_X(id, name_, values_, kernel_)                                     \
  {                                                                            \
    gpr_shuffle_row &row = all.row[GPR_SHUFFLE_##id];                          \
    row.name = name_;                                                          \
    row.values = values_;                                                      \
    row.kernel[GPR_INT32] = &Program<int32_t, Shuffle<GPR_SHUFFLE_##id>>::it;  \
    row.kernel[GPR_INT64] = &Program<int64_t, Shuffle<GPR_SHUFFLE_##id>>::it;  \
    row.kernel[GPR_FLOAT32] = &Program<float, Shuffle<GPR_SHUFFLE_##id>>::it;  \
    row.kernel[GPR_FLOAT64] = &Program<double, Shuffle<GPR_SHUFFLE_##id>>::it; \
  }
  GPR_SHUFFLES(GPR_X)
#undef GPR_X
  return all;
}
static constexpr Shuffles shuffles = make_shuffles();

/* --- the sums of segments, for 32- and 64-bit integers ---------------------------------------- */

template <int KERNEL> struct Segments;
#define GPR_X(id, name, kernel)                                                              \
  template <> struct Segments<GPR_SEGMENTS_##id> {                                           \
    static constexpr const char *header = "textbook/work_queue.cuh",                         \
                                *defines = "using namespace ladder;", *text = #kernel "<F>"; \
  };
GPR_SEGMENT_KERNELS(GPR_X)
#undef GPR_X

struct SegmentKernels {
  gpr_segment_row row[GPR_SEGMENT_KERNEL_COUNT];
};
constexpr SegmentKernels make_segment_kernels() {
  SegmentKernels all{};
#define GPR_X(id, name_, kernel_)                                               \
  {                                                                             \
    gpr_segment_row &row = all.row[GPR_SEGMENTS_##id];                          \
    row.name = name_;                                                           \
    row.kernel[GPR_INT32] = &Program<int32_t, Segments<GPR_SEGMENTS_##id>>::it; \
    row.kernel[GPR_INT64] = &Program<int64_t, Segments<GPR_SEGMENTS_##id>>::it; \
  }
  GPR_SEGMENT_KERNELS(GPR_X)
#undef GPR_X
  return all;
}
static constexpr SegmentKernels segment_kernels = make_segment_kernels();

}  // namespace ladder
GPR_CLOSE

extern "C" const gpr_ladder_table gpr_ladder_table_cuda = {
    gpr::ladder::rows, sizeof gpr::ladder::rows / sizeof *gpr::ladder::rows};
extern "C" const gpr_shuffle_table gpr_shuffle_table_cuda = {gpr::ladder::shuffles.row};
extern "C" const gpr_segment_table gpr_segment_table_cuda = {gpr::ladder::segment_kernels.row};
