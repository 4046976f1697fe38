/* How the work of many outputs is cut: what every kernel asks of a layout. The host's. */
#pragma once

#include "../abi/variants.h"
#include "as_host.h"
#include "axes_kernels.cuh"

GPR_OPEN

/* X(name, kernel, is_there): a program, or NULL where a fold F has none. */
#define GPR_AXES_PROGRAMS(X)                                                                  \
  X(strips, "strips<F>", has_strips) /* columns of up to ROWS_OF_STRIPS rows, and of more: */ \
  X(shallow, "shallow<F>", has_strips)                                                        \
  X(skipping, "shallow<F, true>", (few && CanOnlySkip<F>::value)) /* only_skips() NaN */      \
  X(counted, "counted<F>", few)                                                               \
  X(packed, "packed<F>", wide)                                                                \
  X(staged, "staged<F>", Variants<F>::brief)                                                  \
  X(rows, "rows<F>", true)                                                                    \
  X(rows_skipping, "rows<RowsSkip<F>::Fold>", RowsSkip<F>::value) /* NaN */                   \
  X(rows_masked, "rows<Masked<F>>", RowsMask<F>::value)                                       \
  X(columns, "columns<F>", Variants<F>::columns)                                              \
  X(columns_skipping, "columns<ColumnsSkip<F>::Fold, ColumnsSkip<F>::counts>",                \
    ColumnsSkip<F>::value)                                                                    \
  X(segments, "segments<F>", few)                                                             \
  X(tile, "tile<F, TileRun<F, F::Element>>", true)                                            \
  X(any, "tile<F, TileRun<F, AnyDtype>>", true) /* of any dtype, order and address */         \
  X(tile_rows, "tile<F, RowRun<F, F::Element>>", TilePackets<F>::value)                       \
  X(brief, "brief<F>", Variants<F>::brief)
/* X(name, kernel, are_there): the same of a dtype's elements, which are converted. */
#define GPR_CONVERTING_PROGRAMS(X)                                     \
  X(convert, "tile<F::Fold, TileRun<F::Fold, F::Load>>", Converts)     \
  X(convert_rows, "tile<F::Fold, RowRun<F::Fold, F::Load>>", Converts) \
  X(convert_brief, "brief<F::Fold, F::Load>", Converts)                \
  X(convert_long, "rows<Reads<F::Fold, F::From>>", ConvertsRows)
/* Trees': by threads, by warps, and what is special. */
#define GPR_TREE_PROGRAMS(X)                                                      \
  X(tile, "trees_by_threads<TreeOperator<F>, TreeElements<F>>", true)             \
  X(any, "trees_by_threads<TreeOperator<F>, TreeElements<F, AnyDtype>>", true)    \
  X(tile_rows, "trees_by_warps<TreeOperator<F>, TreeElements<F>>", true)          \
  X(any_rows, "trees_by_warps<TreeOperator<F>, TreeElements<F, AnyDtype>>", true) \
  X(rows, "trees_by_chunks<F>", true)                                             \
  X(staged, "trees_staged<TreeOperator<F>, TreeElements<F>>", true)               \
  X(gathered, "trees_gathered<F>", true) /* what does not lie in their order */   \
  X(shallow, "trees_of_few<F>", true)

struct AxesPrograms {
#define GPR_X(name, kernel, is_there) gpr_program *name;
  GPR_AXES_PROGRAMS(GPR_X)
#undef GPR_X
  gpr_program *any_rows, *gathered; /* of trees alone */
#define GPR_X(name, kernel, are_there) gpr_program *name[GPR_DTYPE_COUNT];
  GPR_CONVERTING_PROGRAMS(GPR_X)
#undef GPR_X
};
/* Bytes, by row_bytes.h's RowBytes. Of rows: the longest that are brief before anything else, and
 * the shortest of those that are so before they are staged, all or where NaN is skipped; the
 * longest that are staged; the shortest that blocks and that warps read as rows; the shortest
 * that are a tile's rows, alone and as one of several runs. */
struct AxesBytes {
  int brief_bytes, staged_bytes, counted_bytes, staged_most, rows_bytes, warp_rows_bytes;
  int tile_rows_bytes, run_bytes;
  int columns_bytes;             /* of the whole array, from which on there are columns */
  int alone_bytes, uneven_bytes; /* rows that are brief: short ones, or no multiples of those */
  int narrow; /* batches of narrow columns are staged from so many rows on, for each byte over 8 */
  int packets_bytes; /* rows of whole packets that are neither brief nor staged */
};
/* And what their launch depends on. */
struct AxesRow : AxesPrograms, AxesBytes {
  int is_tree, is_ordered;
  int zeros_are_nothing;         /* -0.0, to a lane */
  int brief_ones;                /* outputs of one element are neither packed nor staged */
  int staged_skips;              /* NaN; rows there need no state in memory */
  int brief_loads, brief_blocks; /* loads: of lanes that share an output */
  int brief_each;                /* elements that a lane folds in a short time */
  int brief_pairs;               /* a lane may have two outputs */
  int brief_alone;               /* up to so many elements are not split among lanes */
  int brief_share;               /* elements of a row that a lane has, at least */
  int brief_spreads;             /* lanes finish plain variances, without means and the like */
  double brief_pace, tile_pace;  /* of columns, beside their reading */
  int bytes;                     /* of an element */
  int tile_blocks, tile_loads;
  int strip_rows; /* that strips take */
  int strip_bytes, packed_bytes, staged_packets, staged_blocks;
  int rows_blocks, rows_loads, masked_loads, columns_blocks, columns_loads;
  int columns_together; /* of a packet's, what blocks leave for each other as one */
  int rows_end_quickly; /* in the middle of a packet */
  double ends;          /* a block's start and end, in steps */
  size_t state;         /* bytes, the number that counted with it */
  size_t moved;         /* of those, what a block leaves to another one as a rule */
  size_t pool;
  size_t joint;       /* words of an output that blocks add to; 0: they leave partial states */
  double joint_steps; /* that it takes to add to one */
};

typedef int64_t Size;
GPR_FN Size up(Size a, Size b) { return (a + b - 1) / b; }

enum { SPLIT_MOST = 1024 };
/* How many blocks share an output, and how long all of it takes, in steps of one block. */
struct Split {
  int blocks;
  double time;
};

/* A step's time beside that of full occupancy, where blocks wait for the memory: of few blocks it
 * is shorter. */
inline double pace_of(Size blocks, Size slots) {
  constexpr double all = 1.15, least = 0.6;
  const double pace = all * (double)blocks / (double)slots;
  return pace > all ? all : pace > least ? pace : least;
}

/* The next number of parts that leaves a part fewer steps: others would be no better. Of 80 MB all
 * numbers took 9.3 µs on an AMD EPYC, and these take 1.4. */
inline Size next_split(Size steps, Size split) {
  if (split * split < steps) return split + 1;
  const Size each = up(steps, split);
  return each > 1 ? up(steps, each - 1) : SPLIT_MOST + 1;
}

/* Parts of at least `least` steps of work, so that `blocks` times as many fill the slots well: the
 * last wave should not be nearly empty. A block's start and end take it `ends` steps; that there
 * are several parts takes `parting`, and a part more `each` for the block that comes last. */
inline Split best_split(Size blocks, Size slots, Size steps, Size least, double ends = 1,
                        double each = 0, double parting = 0, bool hurries = false) {
  Split best = {1, 1e300};
  const Size limit = steps / least > 1 ? steps / least : 1;
  for (Size split = 1; split <= limit && split <= SPLIT_MOST; split = next_split(steps, split)) {
    const double waves = (double)up(blocks * split, slots);
    const double parts = split > 1 ? parting + (double)(split - 1) * each : 0;
    const double pace = hurries ? pace_of(blocks * split, slots) : 1;
    const double time = waves * ((double)up(steps, split) * pace + ends) + parts;
    if (time * 1.005 < best.time) best = {(int)split, time};
  }
  return best;
}

struct Cut {
  enum { CROWD = 16 }; /* of so many blocks that share an output, the last one merges first */
  const AxesRow &row;
  int multiprocessors;
  gpr_axes_args &a;
  gpr_axes_launch &out;
  int wanted; /* a variant that is asked for, whether it is good here or not; or GPR_ANY_VARIANT */

  int inner() const { return a.kept + a.reduced - 1; }
  /* Elements are the row's, at addresses that suit them. */
  bool is_native() const { return a.from == a.to && !a.swap && !a.unaligned; }
  /* Or a program that converts them, if there is one. */
  gpr_program *of_elements(gpr_program *native,
                           gpr_program *const (&convert)[GPR_DTYPE_COUNT]) const {
    return is_native() ? native : a.swap || a.unaligned ? nullptr : convert[a.from];
  }
  /* Dimensions [first, stop) are numbered as they come. */
  bool are_numbered(int first, int stop) const {
    Size place = 1;
    for (int d = stop - 1; d >= first; d--) {
      if (a.dim[d].place != place) return false;
      place *= a.dim[d].size;
    }
    return true;
  }
  /* Results lie in the order of the kept dimensions. */
  bool is_numbered() const { return are_numbered(0, a.kept); }
  /* Elements come in the order of their index, where that matters. */
  bool is_in_order() const { return !row.is_ordered || are_numbered(a.kept, a.kept + a.reduced); }
  Size reduced_stride() const { return a.dim[inner()].stride; }
  /* Outputs and their elements are one piece of memory, an output behind the other. */
  bool are_side_by_side() const {
    if (a.reduced != 1 || a.kept > 1 || (a.count > 1 && reduced_stride() != row.bytes))
      return false;
    return a.kept == 0 || a.dim[0].size == 1 || a.dim[0].stride == a.count * row.bytes;
  }
  enum { SECTOR = 32 }; /* bytes, as memory is read */
  /* Rows of every second element, or with less than a sector between them: a block copies what lies
   * there, too. Of 64 MiB in rows of 48 halves sums of every second one took 132 µs on an H200 by
   * lanes of brief.cuh, and take 28, of rows of 46 with 2 between them 160 and 34. */
  bool have_gaps() const {
    if (a.reduced != 1 || a.kept != 1 || a.count < 2) return false;
    const Size step = reduced_stride(), wide = (a.count - 1) * step + row.bytes;
    const Size between = a.dim[0].stride - wide;
    return (step == row.bytes || step == 2 * row.bytes) && a.dim[0].stride % row.bytes == 0 &&
           between >= 0 && between < SECTOR && (step > row.bytes || between);
  }
  /* Where outputs begin, or the elements of dimensions before `stop`: the bits of all places. */
  Size places_of(int stop) const {
    Size places = (Size)(uintptr_t)a.data;
    for (int d = 0; d < stop; d++) places |= a.dim[d].stride;
    return places;
  }
  /* So many packets has a run of the innermost dimension, whose elements lie side by side. */
  Size packets_of_run() const {
    const Size n = a.dim[inner()].size, v = 16 / a.from_bytes;
    return places_of(inner()) % 16 ? (n + 2 * v - 2) / v : up(n, v);
  }

  bool take(gpr_program *kernel, Size blocks, size_t partials) {
    out.kernel = kernel;
    out.blocks = blocks;
    out.threads = AXES_THREADS;
    out.tickets = AXES_POOL;
    out.scratch = partials || row.pool ? AXES_POOL + row.pool + partials * row.state : 0;
    return true;
  }

  static Size magnitude(Size x) { return x < 0 ? -x : x; }
  Size kept_stride() const { return a.kept ? magnitude(a.dim[a.kept - 1].stride) : INT64_MAX; }
  /* How long it takes, in steps of which each keeps all slots busy; half of them would do that for
   * the memory, or another part. Each piece of work has `steps` and its ends. */
  static double time_of(Size work, Size slots, double steps, double ends, double enough = 0.5) {
    const Size full = work / slots, left = work % slots;
    const double part = (double)left / (double)slots, busy = part > enough ? part : enough;
    return (double)full * (steps + ends) + (left ? steps * busy + ends : 0);
  }
  /* So many lanes to each output, `least` of them or a block: fewer take longer, but more outputs
   * at a time. */
  int lanes_of_row(Size slots, Size packets, Size loads, int least, double enough = 0.5) const {
    double best = 1e300;
    int team = AXES_THREADS;
    for (int lanes = AXES_THREADS; lanes >= least; lanes = lanes > 32 ? 32 : lanes / 2) {
      const double steps = (double)up(packets, lanes * loads);
      const double ends = lanes > 32 ? row.ends : row.ends * (lanes + 16) / 96;
      const double time = time_of(a.outputs, slots * (AXES_THREADS / lanes), steps, ends, enough);
      if (time < best) best = time, team = lanes;
    }
    return team;
  }
  /* The bytes from the first to the last element of all. */
  void set_extent() {
    a.low = a.high = a.data;
    for (int d = 0; d <= inner(); d++) {
      const Size reach = (a.dim[d].size - 1) * a.dim[d].stride;
      *(reach < 0 ? &a.low : &a.high) += reach;
    }
    a.high += a.from_bytes;
  }
};

GPR_CLOSE
