/* How rows go to warps and blocks: rows.cuh's. */
#ifndef GPR_ROWS_CUT_H
#define GPR_ROWS_CUT_H

#include "columns_cut.h"

GPR_OPEN

struct RowsCut : ColumnsCut {
  /* Blocks that have as much under way as all: two, of more registers, have less. */
  double enough() const { return row.rows_blocks > 2 ? 0.5 : 0.75; }
  /* Rows of warps, of so many steps and ends each: in waves, or all warps at once, each with a few
   * rows one after the other. The last wave takes nearly as long as a whole one though it reads
   * less, and each has a start. 4096 rows of as many floats took 26.5 µs on an H200 in two waves,
   * and take 23.8. */
  static constexpr double START = 0.25; /* steps */
  struct Turns {
    Size apart; /* from one row of a warp to its next */
    double time;
  };
  Turns turns_of(Size rows, Size slots, double steps, double ends) const {
    const Size warps = AXES_THREADS / GPR_WARP, each = up(rows, slots);
    const Turns waves = {rows,
                         time_of(rows, slots, steps, ends, enough()) + START * (double)(each - 1)};
    if (each == 1) return waves;
    const Size blocks = up(up(rows, each), warps);
    /* Some multiprocessors have a block more than others. */
    const Size most = up(blocks, multiprocessors) * multiprocessors;
    const double busy = (double)((blocks + most) * warps) / 2 / (double)slots, least = enough();
    const double time = (double)each * (steps + ends) * (busy > least ? busy : least);
    return time < 0.98 * waves.time ? Turns{blocks * warps, time} : waves;
  }
  /* So many rows go to a warp each: all, or as many as fill all slots, where those that are left
   * are sooner done by a block each. */
  Size rows_by_warps(Size slots) {
    const Size warps = AXES_THREADS / GPR_WARP, all = slots * warps, whole = a.outputs / all * all,
               packets = up(a.count * row.bytes, 16);
    const double steps = (double)up(packets, (Size)GPR_WARP * row.rows_loads), ends = row.ends / 2;
    const double rest = time_of(a.outputs - whole, slots,
                                (double)up(packets, (Size)AXES_THREADS * row.rows_loads), row.ends);
    const Turns turns = turns_of(a.outputs, all, steps, ends);
    if (whole && (double)(whole / all) * (steps + ends) + rest < turns.time) return whole;
    a.apart = turns.apart;
    return a.outputs;
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
    a.apart = a.outputs;
    a.full = a.team == GPR_WARP ? rows_by_warps(slots) : 0;
    cut_rows(slots);
    const Size shared = a.split > 1 ? a.outputs - a.single : 0, parts = a.split * warps;
    if (shared && a.single == 0) set_queue(shared, shared * warps);
    set_drawn(true, a.runs * a.tiles / parts, parts);
    const Size alone = a.full < a.apart ? a.full : a.apart;
    return take(program, up(alone, warps) + a.single - a.full + (a.outputs - a.single) * a.split,
                (size_t)(shared * a.split));
  }
  /* Rows that are not a warp's are a block's, or several share each, or only each of those that are
   * left when all slots had theirs. Two blocks have enough under way for the memory, and are sooner
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
