/* The device half of the table: operators × dtypes become programs, by the host's compiler. */
#include "../core/alike.h"
#include "select.h"
#include "flat.cuh"
#include "flat_exact.cuh"
#include "flat_tree.cuh"
#include "../abi/ladder_rows.h"
#include "lines.h"
#include "row_bytes.h"
#include "../core/operators.h"
#include "program_text.h"
#include "../abi/shuffles.h"
#include "small_exact.cuh"
#include "../abi/work_queue.h"

GPR_OPEN

namespace code {
#define GPR_FLAT_KIND(kind, text) GPR_PROGRAM_KIND(kind, "gpu/flat_kernels.cuh", nullptr, text)
#define GPR_AXES_KIND(kind, text) GPR_PROGRAM_KIND(kind, "gpu/axes_kernels.cuh", nullptr, text)
GPR_FLAT_KIND(FlatFree, "flat_free<F>");
GPR_FLAT_KIND(FlatExact, "flat_exact<F::Element>");
GPR_FLAT_KIND(SmallExact, "small_exact<F::Element>");
GPR_FLAT_KIND(FlatTree, "flat_tree<F>");
#define GPR_X(name, kernel, is_there) GPR_AXES_KIND(name, kernel);
GPR_AXES_PROGRAMS(GPR_X)
namespace trees {
GPR_TREE_PROGRAMS(GPR_X)
}
#undef GPR_X
#define GPR_X(name, kernel, are_there) GPR_AXES_KIND(name, kernel);
GPR_CONVERTING_PROGRAMS(GPR_X)
#undef GPR_X
#undef GPR_FLAT_KIND
#undef GPR_AXES_KIND
}  // namespace code

static gpr_program gather_program = {"gpu/gather.cuh", nullptr, nullptr,
                                     "gather",         nullptr, nullptr};
static gpr_program read_through = {"gpu/read_only.cuh", nullptr, nullptr,
                                   "read_only",         nullptr, nullptr};

/* --- whole arrays ----------------------------------------------------------------------------- */

template <class F> struct IsWhole { static constexpr bool value = true; };
template <class T> struct IsWhole<MomentsFold<T>> { static constexpr bool value = false; };
template <class T> struct IsWhole<IntegerMoments<T>> { static constexpr bool value = false; };
template <class T> struct IsWhole<Positions<T>> { static constexpr bool value = false; };
template <> struct IsWhole<void> { static constexpr bool value = false; };

/* By the fold's law: rows that share a fold share a kernel. */
template <class F> constexpr gpr_gpu_row gpu_row() {
  gpr_gpu_row row = {};
  if constexpr (!IsWhole<F>::value) {
    return row;
  } else if constexpr (F::law == GPR_FREE) {
    row.flat = &Program<F, code::FlatFree>::it;
    row.words = (sizeof(typename F::State) + 3) / 4;
    row.threads = FLAT_THREADS;
    row.tile = 16 * FLAT_TILE;
    row.blocks = FLAT_BLOCKS;
  } else if constexpr (F::law == GPR_EXACT) {
    typedef typename F::State State;
    typedef ExactShape<typename F::Element> Shape;
    static_assert(Shape::blocks * F::parts <= GPR_LINES_MOST, "");
    static_assert(sizeof(State) / 4 * 33 / 32 + 1 <= GPR_LINES_AT, "");
    row.flat = &Program<F, code::FlatExact>::it;
    row.words = sizeof(State) / 4;
    row.masks = (row.words + 31) / 32;
    row.threads = Shape::threads;
    row.tile = 16 * Shape::tile;
    row.blocks = Shape::blocks;
    row.lines = {F::parts, take_lines<State>};
    row.small = {&Program<F, code::SmallExact>::it, 16 * SmallShape<typename F::Element>::loads};
  } else {
    row.flat = &Program<F, code::FlatTree>::it;
    row.words = sizeof(TreeAnswer<typename F::Wide>) / 4;
    row.threads = FLAT_THREADS;
    row.tile = FLAT_THREADS * 16 * TREE_ROWS;
  }
  return row;
}

/* --- many outputs ----------------------------------------------------------------------------- */

template <class F, class KERNEL, bool IS_THERE> constexpr gpr_program *program_if() {
  if constexpr (IS_THERE)
    return &Program<F, KERNEL>::it;
  else
    return nullptr;
}

/* Whether a fold has kernels of its own for short outputs and for columns. Of a column's kernel a
 * thread has several states, and took 2 to 20 times as long as the tile's on an H200 where those
 * are large. Two positions in one pass are the longest kernels, and have rows and the tile. */
template <class F> struct Variants { static constexpr bool brief = true, columns = true; };
template <class T> struct Variants<PairMoments<T>> {
  static constexpr bool brief = true, columns = false;
};
template <class T> struct Variants<IntegerMoments<T>> : Variants<PairMoments<T>> {};
template <class T> struct Variants<Positions<T>> {
  static constexpr bool brief = false, columns = false;
};

/* Conversions that have a program of their own: what sums are mostly asked to be summed as, but for
 * integers, which are added up as such (SumAsDouble). The others take the way of any dtype. */
template <class F, class FROM> struct Converts { static constexpr bool value = false; };
template <> struct Converts<PairSum<float>, float16> { static constexpr bool value = true; };
template <> struct Converts<PairSum<float>, bfloat16> { static constexpr bool value = true; };
template <> struct Converts<PairSum<double>, float16> { static constexpr bool value = true; };
template <> struct Converts<PairSum<double>, bfloat16> { static constexpr bool value = true; };
template <> struct Converts<PairSum<double>, float> { static constexpr bool value = true; };
/* And along long rows: of all reals that are no wider, but for the integers that T holds. */
template <class F, class FROM> struct ConvertsRows { static constexpr bool value = false; };
template <class T, class FROM> struct ConvertsRows<PairSum<T>, FROM> {
  static constexpr int kind = Traits<FROM>::kind;
  static constexpr bool is_real = kind != KIND_COMPLEX && kind != KIND_TIME,
                        is_narrower = kind == KIND_FLOAT ? sizeof(FROM) < sizeof(T)
                                                         : sizeof(FROM) == sizeof(T),
                        value = Traits<T>::kind == KIND_FLOAT && sizeof(T) >= 4 && is_real &&
                                is_narrower;
};
template <class F, class FROM> constexpr void convert_programs(AxesRow &row, int from) {
#define GPR_X(name, kernel, are_there) \
  row.name[from] = program_if<Converted<F, FROM>, code::name, are_there<F, FROM>::value>();
  GPR_CONVERTING_PROGRAMS(GPR_X)
#undef GPR_X
}

template <class F> struct AxesKernels {
  static constexpr AxesRow row() {
    /* Of a packet of smaller elements they would be thousands of instructions. */
    constexpr bool few = !LooksFirst<F>::value && Variants<F>::brief;
    constexpr bool wide = sizeof(typename F::Element) >= 4 && few;
    constexpr bool has_strips = few || Begins<typename OfColumns<F>::few>::value;
    typedef RowBytes<F> B;
    AxesRow row = {};
    static_cast<AxesBytes &>(row) = {
        B::brief, B::staged,  B::counted, B::staged_most, B::rows,   B::warp_rows, B::tile_rows,
        B::run,   B::columns, B::alone,   B::uneven,      B::narrow, B::packets};
#define GPR_X(name, kernel, is_there) row.name = program_if<F, code::name, (is_there)>();
    GPR_AXES_PROGRAMS(GPR_X)
#undef GPR_X
#define GPR_X(id, name, kind, bytes, type) convert_programs<F, type>(row, GPR_##id);
    GPR_DTYPES(GPR_X)
#undef GPR_X
    row.bytes = (int)sizeof(typename F::Element);
    row.is_ordered = F::ordered;
    row.zeros_are_nothing = Lane<F>::neutral;
    row.brief_ones = Ones<F>::first;
    row.staged_skips = !LooksFirst<F>::value;
    row.brief_loads = BriefLanes<F>::loads;
    row.brief_each = BriefEach<F>::value;
    row.brief_pairs = can_be_pairs<F>();
    row.brief_pace = BriefPace<F>::value;
    row.tile_pace = TilePace<F>::value;
    row.brief_blocks = BriefShape<F>::blocks;
    row.brief_alone = LooksFirst<F>::value ? ByDifferences<F>::alone : 4;
    row.brief_share = LooksFirst<F>::value ? 32 : 1;
    row.brief_spreads = LooksFirst<F>::value;
    row.tile_blocks = TileShape<F>::blocks;
    row.tile_loads = TileShape<F>::loads;
    row.strip_rows = StripRows<F>::value;
    row.strip_bytes = StripShape<typename F::Element>::bytes;
    row.packed_bytes = PackedShape<F>::bytes;
    row.staged_packets = StagedShape<F>::packets;
    row.staged_blocks = StagedShape<F>::blocks;
    row.rows_blocks = RowsShape<F>::blocks;
    row.rows_loads = RowsShape<F>::loads;
    row.masked_loads = RowsShape<Masked<F>>::loads;
    row.rows_end_quickly = has_quick_ends<F>();
    row.ends = EndsOf<F>::value;
    row.columns_blocks = ColumnsShape<F>::blocks;
    row.columns_loads = ColumnsShape<F>::loads;
    row.columns_together = neighbours_of<F>();
    row.state = sizeof(typename Counted<F>::State);
    row.moved = MovedBytes<F>::value;
    row.pool = PoolBytes<F>::value;
    row.joint = Joint<F>::words;
    row.joint_steps = Joint<F>::steps;
    return row;
  }
};
template <class T, template <class> class Op> struct AxesKernels<TreeFold<T, Op>> {
  typedef TreeFold<T, Op> F;
  static constexpr AxesRow row() {
    AxesRow row = {};
#define GPR_X(name, kernel, is_there) row.name = program_if<F, code::trees::name, (is_there)>();
    GPR_TREE_PROGRAMS(GPR_X)
#undef GPR_X
    row.is_tree = 1;
    row.bytes = (int)sizeof(T);
    row.state = sizeof(Branch<typename F::Wide>);
    row.moved = sizeof(typename F::Wide);
    return row;
  }
};
template <> struct AxesKernels<void> {
  static constexpr AxesRow row() { return {}; }
};
/* Folds for which the device has others; all() goes by what it is not (Seen). */
template <class T> struct AxesKernels<ExactFold<T>> : AxesKernels<PairSum<T>> {};
template <class T> struct AxesKernels<MomentsFold<T>> : AxesKernels<PairMoments<T>> {};
template <class T> struct AxesKernels<Counting<T, 0>> : AxesKernels<Counting<T, 1>> {};
/* Products of matrices are never taken along an axis. */
template <class T, template <class> class Op>
struct AxesKernels<TreeFold<matrix<T>, Op>> : AxesKernels<void> {};

/* --- the tables ------------------------------------------------------------------------------- */

struct Tables {
  gpr_gpu_row whole[GPR_OP_COUNT * GPR_DTYPE_COUNT];
  AxesRow axes[GPR_OP_COUNT * GPR_DTYPE_COUNT];
};
template <template <class> class Op> constexpr void fill(Tables &tables, int op) {
  gpr_gpu_row *whole = tables.whole + op * GPR_DTYPE_COUNT;
  AxesRow *axes = tables.axes + op * GPR_DTYPE_COUNT;
#define GPR_X(id, name, kind, bytes, type)                                   \
  whole[GPR_##id] = gpu_row<typename AsKernels<Op, type>::Operator::Fold>(); \
  axes[GPR_##id] = AxesKernels<typename AsKernels<Op, type>::Operator::Fold>::row();
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
constexpr Tables make_tables() {
  Tables tables{};
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) fill<op>(tables, GPR_OP_##id);
  GPR_OPS(GPR_X)
#undef GPR_X
  return tables;
}
static constexpr Tables tables = make_tables();

/* The states of a block's partial result are 48 bytes at most; the tree's nodes, of 32 bytes at
 * most, are the most. */
static constexpr size_t scratch_bytes = SCRATCH_PARTIALS + TREE_NODES * sizeof(matrix<double>);
static_assert(scratch_bytes > SCRATCH_PARTIALS + GPR_GPU_BLOCKS_MAX * 48, "");

static int launch(int op, int dtype, int variant, int multiprocessors, gpr_axes_args *args,
                  gpr_axes_launch *out) {
  const AxesRow &row = tables.axes[op * GPR_DTYPE_COUNT + dtype];
  if (!row.tile) return 1;
  args->op = first_alike(op);
  args->to = dtype;
  return AxesCut{row, multiprocessors, *args, *out, variant}.select() ? 0 : 2;
}

/* --- all programs ----------------------------------------------------------------------------- */

struct ProgramList {
  gpr_program **to;
  int room, count;
  void add(gpr_program *program) {
    for (int i = 0; i < count && i < room; i++)
      if (to[i] == program) return;
    if (!program) return;
    if (count < room) to[count] = program;
    count++;
  }
};

GPR_CLOSE

extern "C" const gpr_gpu_table gpr_gpu_table_cuda = {gpr::tables.whole, &gpr::gather_program,
                                                     gpr::scratch_bytes, &gpr::read_through};
extern "C" const gpr_axes_table gpr_axes_table_cuda = {gpr::launch};

extern "C" int gpr_programs(gpr_program **to, int room) {
  gpr::ProgramList list = {to, room, 0};
  list.add(&gpr::gather_program);
  list.add(&gpr::read_through);
  for (const gpr_gpu_row &row : gpr::tables.whole) {
    list.add(row.flat);
    list.add(row.small.kernel);
  }
  for (const gpr::AxesRow &row : gpr::tables.axes) {
    const gpr::AxesPrograms &programs = row;
    gpr_program *kernels[sizeof programs / sizeof(gpr_program *)];
    memcpy(kernels, &programs, sizeof kernels);
    for (gpr_program *p : kernels) list.add(p);
  }
  for (int i = 0; i < gpr_ladder_table_cuda.rows; i++) {
    const gpr_ladder_row &row = gpr_ladder_table_cuda.row[i];
    list.add(row.lift);
    list.add(row.partials);
    for (const auto &kernel : row.kernel)
      for (gpr_program *p : kernel) list.add(p);
  }
  for (int i = 0; i < GPR_SHUFFLE_COUNT; i++)
    for (gpr_program *p : gpr_shuffle_table_cuda.row[i].kernel) list.add(p);
  for (int i = 0; i < GPR_SEGMENT_KERNEL_COUNT; i++)
    for (gpr_program *p : gpr_segment_table_cuda.row[i].kernel) list.add(p);
  return list.count;
}
