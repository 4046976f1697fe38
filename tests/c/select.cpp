/* The host's choice of kernels, which is a pure function: what holds of random layouts, and how
 * often what was to be seen came. */
#include "../../kernels/gpu/table.cpp"

gpr_dim3 blockIdx, gridDim; /* of the block that is asked */

extern "C" const gpr_ladder_table gpr_ladder_table_cuda = {};
static const gpr_shuffle_row no_shuffles[GPR_SHUFFLE_COUNT] = {};
static const gpr_segment_row no_segments[GPR_SEGMENT_KERNEL_COUNT] = {};
extern "C" const gpr_shuffle_table gpr_shuffle_table_cuda = {no_shuffles};
extern "C" const gpr_segment_table gpr_segment_table_cuda = {no_segments};

struct Random {
  uint64_t state;
  int64_t below(int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
  }
  int64_t size(int most) { return (int64_t)1 << below(most) | below((int64_t)1 << below(most)); }
};

static const struct {
  int op, dtype, bytes;
} ROWS[] = {
    {GPR_OP_SUM, GPR_FLOAT32, 4}, {GPR_OP_SUM, GPR_FLOAT64, 8},    {GPR_OP_SUM, GPR_COMPLEX128, 16},
    {GPR_OP_VAR, GPR_FLOAT32, 4}, {GPR_OP_SUM, GPR_FLOAT16, 2},    {GPR_OP_SUM, GPR_COMPLEX64, 8},
    {GPR_OP_MAX, GPR_INT16, 2},   {GPR_OP_ARGMAX, GPR_FLOAT32, 4}, {GPR_OP_ANY, GPR_INT8, 1},
    {GPR_OP_MEAN, GPR_INT16, 2},  {GPR_OP_PROD, GPR_FLOAT32, 4},   {GPR_OP_PROD, GPR_FLOAT16, 2}};

/* One to four dimensions in C order, some cut out of longer ones, repeated or turned round. */
static void draw(Random &random, int bytes, gpr_axes_args &a) {
  static char data[512];
  const int kept = (int)random.below(3), reduced = 1 + (int)random.below(2), all = kept + reduced;
  int64_t apart = bytes;
  a.data = (const char *)(((uintptr_t)data + 255) / 256 * 256) + bytes * random.below(3);
  a.outputs = a.count = 1;
  a.kept = kept, a.reduced = reduced, a.from_bytes = bytes;
  const int turn = (int)random.below(all); /* which dimension is the fastest */
  const bool up = random.below(2);         /* and whether the one behind it or before it is next */
  const int fastest = random.below(3) ? 20 : 5;
  for (int i = 0; i < all; i++) {
    const int d = (turn + (up ? i : all - i)) % all;
    a.dim[d].size = random.size(i ? 12 : fastest) % (1 << 22);
    a.dim[d].stride = random.below(12) ? apart : 0;
    if (!random.below(10)) a.dim[d].stride *= -1;
    apart *= a.dim[d].size + (random.below(3) ? 0 : random.below(20));
    (d < kept ? a.outputs : a.count) *= a.dim[d].size;
  }
  for (int d = 0; d < all; d++) {
    a.dim[d].place = 1;
    for (int e = d + 1; e < (d < kept ? kept : all); e++) a.dim[d].place *= a.dim[e].size;
  }
  a.skip = !random.below(3);
  a.has_initial = !random.below(4);
  a.ddof = (double)random.below(2);
  if (random.below(8)) return;
  a.where = data;
  for (int d = 0; d < all; d++) a.dim[d].where_stride = a.dim[d].stride / bytes;
}

/* So many packets does a run of the innermost dimension touch, at most. */
static int64_t packets_of_run(const gpr_axes_args &a) {
  const int inner = a.kept + a.reduced - 1;
  const int64_t bytes = a.dim[inner].size * a.from_bytes;
  int64_t places = (int64_t)(uintptr_t)a.data;
  for (int d = 0; d < inner; d++) places |= a.dim[d].stride;
  const bool apart = a.dim[inner].stride != a.from_bytes; /* of single elements */
  const int64_t first = places % 16 && !apart ? 16 - a.from_bytes : 0;
  return (first + bytes + 15) / 16;
}
/* Tickets, counters to draw by behind them, and what blocks leave for each other. */
static int broken_columns(const gpr::AxesRow &row, const gpr_axes_args &a,
                          const gpr_axes_launch &launch) {
  const int64_t crowds = a.crowd > 1 ? (a.split + a.crowd - 1) / a.crowd : 0;
  const int64_t width = a.dim[a.kept - 1].size, groups = a.tiles * (a.outputs / width);
  const int64_t used = groups * (1 + crowds), columns = (int64_t)a.team * 16 / row.bytes;
  const int64_t counters = groups * (gpr::AXES_THREADS / gpr::GPR_WARP) * a.queue_apart;
  if (launch.blocks != groups * a.split || a.team * a.rows > gpr::AXES_THREADS) return 11;
  if (used > gpr::AXES_TICKETS) return 12;
  if (a.queue && (a.queue < used || a.queue + counters > gpr::AXES_TICKETS)) return 13;
  const int64_t left = a.groups > 1 ? width : columns, last = left + row.columns_together - 1;
  const size_t states = (size_t)(launch.blocks * (last - last % row.columns_together)) * row.state;
  const size_t words = (size_t)(groups * left) * (row.joint + a.skip) * sizeof(uint64_t);
  if (!row.joint && a.split == 1) return 0;
  return launch.scratch < gpr::AXES_POOL + (row.joint ? words : states + row.pool) ? 14 : 0;
}
/* What the packets reach that blocks of columns read whole: not behind the last of their batch. */
static int read_too_far(const gpr::AxesRow &row, const gpr_axes_args &a, int64_t block) {
  const int v = 16 / row.bytes;
  const int64_t width = a.dim[a.kept - 1].size, stride = a.dim[a.kept].stride;
  blockIdx.x = (unsigned)block;
  gpr::ColumnsPlace at;
  at.set(a, v);
  const char *first = a.data + gpr::offset_of<&gpr_axes_dim::stride>(a.dim, a.kept - 1, at.batch);
  const char *end = first + (a.count - 1) * stride + width * row.bytes;
  const char *packets = at.base + (at.here + (at.columns + v - 1) / v * v) * row.bytes;
  const auto reach =
      [=](int64_t r) { /* of the words that a packet lies in */
                       return (const char *)(((uintptr_t)packets + (uintptr_t)(r * stride) + 3) /
                                             4 * 4);
      };
  return at.full > 0 && reach(at.full - 1) > end;
}
/* Two outputs of a lane are one word of 32 bits, of all their elements. */
static bool are_no_words(const gpr_axes_args &a) {
  uintptr_t places = (uintptr_t)a.data | (uintptr_t)(a.dim[a.kept - 1].size * 2);
  for (int d = 0; d < a.kept + a.reduced; d++)
    if (d != a.kept - 1) places |= (uintptr_t)a.dim[d].stride;
  return places % 4 || a.dim[a.kept - 1].stride != 2;
}
/* Whether some row has no block, or blocks that share rows no room for what they leave or draw. */
static bool are_rows_lost(const gpr::AxesRow &row, const gpr_axes_args &a,
                          const gpr_axes_launch &launch) {
  const int64_t warps = gpr::AXES_THREADS / gpr::GPR_WARP, single = a.single - a.full,
                shared = a.outputs - a.single, alone = (a.full + warps - 1) / warps;
  if (a.full < 0 || single < 0 || shared < 0 || (single + shared && a.full % warps)) return true;
  if (launch.blocks != alone + single + shared * a.split) return true;
  if (a.drawn < a.runs * a.tiles && (a.single || !a.queue)) return true;
  const size_t left = gpr::AXES_POOL + row.pool + (size_t)(shared * a.split) * row.state;
  return a.split > 1 && (shared > gpr::AXES_TICKETS || launch.scratch < left);
}
/* Whether parts that blocks copy as they lie leave elements out, or have too little room. */
static bool are_parts_lost(const gpr::AxesRow &row, const gpr_axes_args &a,
                           const gpr_axes_launch &launch) {
  const int unit = gpr::tree_unit(row.bytes) * row.bytes,
            stage = gpr::tree_stage(unit, (int)row.moved),
            of_unit =
                a.packets == gpr::TREE_BY_COLUMNS ? (int)a.step * gpr::tree_unit(row.bytes) : unit;
  const int64_t units = (a.share * row.bytes + unit - 1) / unit;
  const size_t nodes = (size_t)(a.outputs * gpr::climb_nodes(a.split)) * row.state;
  if (a.share * a.split < a.count || a.share & (a.share - 1)) return true;
  if (units * of_unit > stage || a.box > INT32_MAX) return true;
  if (units * a.neighbours * (int64_t)row.moved > gpr::TREE_ROOM - stage) return true;
  if (a.packets == gpr::TREE_BY_PANELS &&
      (a.across * (a.share + 16 / row.bytes) * row.bytes > stage || a.box > INT32_MAX / 2 ||
       (a.across | 1) * units * (int64_t)row.moved > gpr::TREE_ROOM - stage))
    return true;
  if (a.boxed < 1 || launch.threads % a.across) return true;
  if (a.packets == gpr::TREE_BY_LINES && a.boxed > 1) return true;
  return a.split > 1 && (a.outputs * gpr::climb_tickets(a.split) > gpr::AXES_TICKETS ||
                         launch.scratch < gpr::AXES_POOL + nodes);
}
/* Whether threads across outputs leave elements out, or their blocks have too few tickets or too
 * little room for their nodes and for those above them. */
static bool are_trees_lost(const gpr::AxesRow &row, const gpr_axes_args &a,
                           const gpr_axes_launch &launch) {
  if (launch.kernel == row.gathered) return are_parts_lost(row, a, launch);
  if (launch.kernel == row.staged && (a.per + a.team - 1) / a.team * (a.outputs / a.per) != a.tiles)
    return true;
  if (launch.kernel == row.staged)
    return ((a.team - 1) * (int64_t)a.pitch + (a.count - 1) * a.apart + 1) * row.bytes >
           gpr::tree_stage(gpr::tree_unit(row.bytes) * row.bytes, (int)row.moved);
  if (launch.kernel != row.tile && launch.kernel != row.any && launch.kernel != row.columns)
    return false;
  const int64_t wide = a.team > 0 ? a.team : -a.team;
  const int64_t above = gpr::climb_tickets(a.split, gpr::CLIMB_BLOCKS);
  const size_t nodes = (size_t)(a.tiles * (a.split + above) * wide) * row.state;
  if (a.tiles * wide < a.outputs) return true;
  if (a.split == 1) return false;
  if (2 * wide > gpr::TREE_THREADS) return true; /* fold_parts() has two threads for an output */
  return a.tiles * above > gpr::AXES_TICKETS || launch.scratch < gpr::AXES_POOL + nodes;
}
/* Of columns of a few rows by a kernel for other ones, or not all of them. */
static bool are_strips_lost(const gpr::AxesRow &row, const gpr_axes_args &a,
                            const gpr_axes_launch &launch) {
  const bool whole = launch.kernel == row.strips, skips = launch.kernel == row.skipping,
             alone = a.count == 1 && !a.has_initial;
  const bool several = whole || (skips && a.count == 2);
  const int64_t strips = several ? gpr::strips_of((int)a.count, row.strip_bytes) : 1;
  if (launch.blocks * gpr::AXES_THREADS * strips < a.tiles) return true;
  const bool few = alone || (a.count > 1 && a.count <= gpr::ROWS_OF_STRIPS);
  if (whole) return !few || (a.skip && !(alone && a.op == GPR_OP_SUM));
  if (skips) return !gpr::only_skips(a);
  if (launch.kernel == row.counted)
    return !(a.skip || a.where) || (row.skipping && gpr::only_skips(a));
  return a.skip || a.where || few;
}
/* What breaks a rule, or 0. */
static int broken(const gpr::AxesRow &row, const gpr_axes_args &a, const gpr_axes_launch &launch) {
  const bool are_masked = launch.kernel == row.rows_masked;
  const bool are_rows =
      are_masked || launch.kernel == row.rows || launch.kernel == row.rows_skipping;
  const bool are_tiles = launch.kernel == row.tile || launch.kernel == row.tile_rows;
  const bool are_columns = launch.kernel == row.columns || launch.kernel == row.columns_skipping;
  const int64_t crowds = a.crowd > 1 ? (a.split + a.crowd - 1) / a.crowd : 0;
  const int64_t v = 16 / row.bytes, loads = gpr::row_loads((int)v, row.bytes);
  if (launch.blocks < 1 || launch.threads < 1) return 1;
  if (a.split > 1 && launch.scratch == 0) return 2;
  if (row.is_tree) return are_trees_lost(row, a, launch) ? 20 : 0;
  if (a.crowd > 1 && a.split <= 2 * a.crowd) return 3;
  if (are_tiles && a.split > 1 && a.tiles * (1 + crowds) > gpr::AXES_TICKETS) return 4;
  if (are_tiles && (a.down % a.runners || a.share * a.runners * a.split < a.rounds)) return 5;
  if (launch.kernel == row.tile_rows &&
      a.run_rounds * (a.down / a.runners) * loads < packets_of_run(a))
    return 6;
  const int64_t of_tiles =
      a.tiles * gpr::GPR_WARP * (are_masked ? row.masked_loads : row.rows_loads);
  if (are_rows && of_tiles < packets_of_run(a) * (a.packets ? a.dim[a.kept].size : 1)) return 7;
  if (are_rows && are_masked != (a.where != nullptr)) return 8;
  if (are_rows && !are_masked && a.skip != (launch.kernel == row.rows_skipping)) return 8;
  if (are_columns && a.skip != (launch.kernel == row.columns_skipping)) return 10;
  const int64_t from = launch.blocks > 99 ? launch.blocks - 99 : 0;
  const bool is_told = are_columns && a.packets && a.reduced == 1; /* each of several runs asks */
  for (int64_t block = from; is_told && block < launch.blocks; block++)
    if (read_too_far(row, a, block)) return 15;
  if (launch.kernel == row.staged && !row.is_tree && !a.pitch &&
      a.rows * a.length * row.bytes > (row.staged_packets - 1) * 16)
    return 16;
  if (launch.kernel == row.staged && !row.is_tree && a.pitch &&
      (a.rows * a.pitch > row.staged_packets ||
       a.pitch * 16 <
           (int64_t)((uintptr_t)a.data % 16) + (a.count - 1) * a.apart * row.bytes + row.bytes))
    return 21;
  if (are_rows && are_rows_lost(row, a, launch)) return 18;
  if (launch.kernel == row.brief && a.groups == 2 && are_no_words(a)) return 19;
  const gpr_program *const of_few[] = {row.strips, row.shallow, row.skipping, row.counted};
  for (const gpr_program *kernel : of_few)
    if (launch.kernel == kernel && are_strips_lost(row, a, launch)) return 22;
  if (are_columns && (a.split > 1 || a.groups > 1)) return broken_columns(row, a, launch);
  return 0;
}

/* Whether packs and what looks at all programs have this one. */
static bool is_listed(const gpr_program *kernel) {
  enum { MOST = 1 << 14 };
  static gpr_program *all[MOST];
  static const int count = gpr_programs(all, MOST);
  for (int i = 0; i < count; i++)
    if (all[i] == kernel) return true;
  return false;
}

/* Seen of columns that were asked for: several rows as one, by one block and by many; rows that
 * begin anywhere in a packet; NaN left out, by many blocks; crowds. */
enum { GROUPS_ALONE, GROUPS_SHARED, ANYWHERE, SKIPPING, CROWDS, SEEN };
static int asked_for_columns(const gpr::AxesRow &row, int op, gpr_axes_args a, int64_t *seen) {
  gpr_axes_launch launch = {};
  if (gpr_axes_table_cuda.launch(op, a.from, GPR_VARIANT_COLUMNS, 132, &a, &launch)) return 0;
  seen[GROUPS_ALONE] += a.groups > 1 && a.split == 1;
  seen[GROUPS_SHARED] += a.groups > 1 && a.split > 1;
  seen[ANYWHERE] += a.packets == GPR_PACKETS_ANYWHERE;
  seen[SKIPPING] += a.skip && a.split > 1;
  seen[CROWDS] += a.crowd > 1;
  return broken(row, a, launch);
}

/* Seen of what was chosen: crowds of tiles and of columns, several runs of rows, rows that warps
 * left to blocks and that blocks left to several, batches of narrow columns, short outputs that
 * convert, two of a lane, of a tree more parts than one block folds, and columns of a few rows (no
 * mask is drawn). */
enum { TILES_CROWDS, COLUMNS_CROWDS, RUNS, LEFT, SINGLE, NARROW, CONVERTING, PAIRS, TREES };
enum { OF_STRIPS = TREES + 1, OF_SHALLOW, OF_SKIPPING, OF_COUNTED, CHOSEN };
static void see(const gpr::AxesRow &row, const gpr_axes_args &a, const gpr_axes_launch &launch,
                int64_t *seen) {
  const char *kernel = launch.kernel->kernel;
  seen[TILES_CROWDS] += a.crowd > 1 && !row.is_tree && kernel[0] == 't';
  seen[TREES] += row.is_tree && launch.kernel != row.staged && a.split > gpr::CLIMB_BLOCKS;
  seen[COLUMNS_CROWDS] += a.crowd > 1 && kernel[0] == 'c';
  seen[RUNS] += a.runs > 1 && kernel[0] == 'r';
  seen[LEFT] += a.full && a.full < a.outputs && kernel[0] == 'r';
  seen[SINGLE] += a.full < a.single && a.single < a.outputs && a.split > 1;
  seen[NARROW] += launch.kernel == row.staged && a.neighbours > 1;
  seen[CONVERTING] += launch.kernel == row.convert_brief[GPR_FLOAT32];
  seen[PAIRS] += a.groups == 2 && launch.kernel == row.brief;
  seen[OF_STRIPS] += launch.kernel == row.strips;
  seen[OF_SHALLOW] += launch.kernel == row.shallow && !row.is_tree;
  seen[OF_SKIPPING] += launch.kernel == row.skipping;
  seen[OF_COUNTED] += launch.kernel == row.counted;
}

/* How often what is to be seen came: CHOSEN counts and SEEN behind them; the result is the rule
 * that a layout broke, or 0. */
extern "C" __attribute__((visibility("default"))) int select_all(int layouts, int64_t *counts) {
  Random random = {42};
  for (int i = 0; i < layouts; i++) {
    const auto &row = ROWS[random.below(sizeof ROWS / sizeof *ROWS)];
    gpr_axes_args a = {};
    gpr_axes_launch launch = {};
    const bool converts = row.op == GPR_OP_SUM && row.dtype == GPR_FLOAT64 && !random.below(2);
    a.from = converts ? GPR_FLOAT32 : row.dtype;
    draw(random, converts ? 4 : row.bytes, a);
    const gpr::AxesRow &cut = gpr::tables.axes[row.op * GPR_DTYPE_COUNT + row.dtype];
    const int rule = converts ? 0 : asked_for_columns(cut, row.op, a, counts + CHOSEN);
    if (rule) return rule;
    if (gpr_axes_table_cuda.launch(row.op, row.dtype, GPR_ANY_VARIANT, 132, &a, &launch)) return 9;
    if (const int rule = broken(cut, a, launch)) return rule;
    if (!is_listed(launch.kernel)) return 17;
    see(cut, a, launch, counts);
  }
  return 0;
}
