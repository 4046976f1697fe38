/* How rows go to warps and blocks: rows.cuh's. */
#ifndef GPR_ROWS_CUT_H
#define GPR_ROWS_CUT_H

#include "columns_cut.h"

GPR_OPEN

struct RowsCut : ColumnsCut {
  /* Blocks that have as much under way as all: two, of more registers, have less. */
  double enough() const { return row.rows_blocks > 2 ? 0.5 : 0.75; }
  /* So many rows go to a warp each: all, or as many as fill all slots, where those that are left
   * are sooner done by a block each. */
  Size rows_by_warps(Size slots) const {
    const Size warps = AXES_THREADS / GPR_WARP, all = slots * warps, whole = a.outputs / all * all,
               packets = up(a.count * row.bytes, 16);
    const double steps = (double)up(packets, (Size)GPR_WARP * row.rows_loads), ends = row.ends / 2;
    const double rest = time_of(a.outputs - whole, slots,
                                (double)up(packets, (Size)AXES_THREADS * row.rows_loads), row.ends);
    const bool pays =
        (double)(whole / all) * (steps + ends) + rest < time_of(a.outputs, all, steps, ends);
    return whole && pays ? whole : a.outputs;
  }
  bool rows() {
    gpr_program *const program = a.skip ? row.rows_counted : row.rows;
    if (!program || !a.reduced || reduced_stride() != row.bytes) return false;
    a.length = a.shape[inner()];
    a.runs = a.count / a.length;
    const Size bytes = a.length * row.bytes, tile = (Size)GPR_WARP * row.rows_loads;
    const Size packets = packets_of_run();
    a.tiles = up(packets, tile);
    const bool is_full = row.rows_end_quickly && 4 * packets >= 3 * a.tiles * tile;
    if (bytes < row.rows_bytes || (bytes < 8192 && a.runs > 1 && !is_full)) return false;
    set_extent();
    const Size slots = (Size)multiprocessors * row.rows_blocks, warps = AXES_THREADS / GPR_WARP;
    a.team = lanes_of_row(slots, up(a.count * row.bytes, 16), row.rows_loads, GPR_WARP, enough());
    if (a.team == GPR_WARP && bytes < row.warp_rows_bytes && !wanted) return false;
    a.full = a.team == GPR_WARP ? rows_by_warps(slots) : 0;
    cut_rows(slots);
    const Size shared = a.split > 1 ? a.outputs - a.single : 0, parts = a.split * warps;
    if (shared && a.single == 0) set_queue(shared, shared * warps);
    set_drawn(true, a.runs * a.tiles / parts, parts);
    return take(program, up(a.full, warps) + a.single - a.full + (a.outputs - a.single) * a.split,
                (size_t)(shared * a.split));
  }
  /* Rows that are not a warp's are a block's, or several share each, or only each of those that are
   * left when all slots had theirs: 300 rows of 50003 doubles took 45 µs on an H200, and take 39,
   * 452 of 52397 floats 40 and 35. Two blocks have enough under way for the memory, and are sooner
   * together than more: 2^24 doubles took 39.3 µs on an H200 by three a multiprocessor and 38.1 by
   * two, floats 24.1 and 23.3. Of smaller elements they do not read fast enough. */
  void cut_rows(Size slots) {
    const Size warps = AXES_THREADS / GPR_WARP, least = 2;
    const Size steps = up(a.runs * a.tiles, least * warps) * least;
    const Size two = (Size)multiprocessors * 2, sharing = row.bytes < 4 ? slots : two;
    const auto shared = [=](Size rows) {
      return best_split(rows, rows > sharing ? slots : sharing, steps, least);
    };
    const Size rest = a.outputs - a.full, whole = rest / slots * slots;
    Split all = {1, 0}, left = {1, 0};
    if (rest && rest <= AXES_TICKETS) all = shared(rest);
    if (rest > whole) left = shared(rest - whole);
    all.time = time_of(rest * all.blocks, slots, (double)up(steps, all.blocks), 1, enough());
    left.time += (double)(whole / slots * (steps + 1));
    const bool pays = whole && left.time <= all.time;
    a.single = a.full + (pays ? whole : 0);
    a.split = pays ? left.blocks : all.blocks;
  }
};

GPR_CLOSE
#endif
