/* How rows go to warps and blocks: rows.cuh's. */
#pragma once

#include "columns_cut.h"

GPR_OPEN

struct RowsCut : ColumnsCut {
  /* Blocks that have as much under way as all: two, of more registers, have less. */
  double enough() const { return row.rows_blocks > 2 ? 0.5 : 0.75; }
  int loads() const { return a.where ? row.masked_loads : row.rows_loads; }
  /* So many rows go to a warp each: all, or as many as fill all slots, where those that are left
   * are sooner done by a block each. */
  Size rows_by_warps(Size slots) const {
    const Size warps = AXES_THREADS / GPR_WARP, all = slots * warps, whole = a.outputs / all * all,
               packets = up(a.count * a.from_bytes, 16);
    const double steps = (double)up(packets, (Size)GPR_WARP * loads()), ends = row.ends / 2;
    const double rest = time_of(a.outputs - whole, slots,
                                (double)up(packets, (Size)AXES_THREADS * loads()), row.ends);
    const bool pays =
        (double)(whole / all) * (steps + ends) + rest < time_of(a.outputs, all, steps, ends);
    return whole && pays ? whole : a.outputs;
  }
  /* Several runs: long ones by tiles of their own, those of fewer packets as one sequence, where
   * -0.0 is nothing. Of 50 MB in runs of 700 bytes, cut, sums of floats took 42 µs on an H200 as
   * tiles of packets, 46 as rows with tiles of their own, and take 25 so; of 1.8 KB 38, 27 and 28.
   * Fewer bytes of an output are too few for a warp: 8000 of 6 KB of doubles 22 and 29. */
  enum { LONG_RUN = 8192, SHORT_RUN = 3 * GPR_WARP, SHORTEST_RUN = 4, SHORT_RUNS_BYTES = 16 << 10 };
  enum { MASKED_BYTES = 1024 }; /* of rows under masks, which have no other packets */
  bool cut_runs(Size packets, bool apart) {
    if (a.runs == 1 || a.length * a.from_bytes >= LONG_RUN) return true;
    if (!is_native() && row.convert_rows[a.from]) return false;
    if (packets >= (apart ? 2 : 1) * SHORT_RUN)
      return row.rows_end_quickly || !(apart || row.tile_rows);
    if (!row.zeros_are_nothing || a.where || apart || a.reduced != 2 || packets < SHORTEST_RUN)
      return false;
    a.packets = (int)packets;
    a.tiles = up(a.runs * packets, (Size)GPR_WARP * loads());
    a.runs = 1;
    return true;
  }
  gpr_program *convert_program() const {
    return a.where || a.skip ? nullptr : of_elements(nullptr, row.convert_long);
  }
  bool rows() {
    gpr_program *const program = !is_native() ? convert_program()
                                 : a.where    ? row.rows_masked
                                 : a.skip     ? row.rows_skipping
                                              : row.rows;
    /* A mask that stands still along the row, or lies in another order, is read by tile. */
    if (!program || !a.reduced || (a.where && a.dim[inner()].where_stride != 1)) return false;
    /* By rows' lanes in no order, closer together than the outputs are. */
    const bool apart = reduced_stride() != a.from_bytes;
    if (apart && (row.is_ordered || a.where || magnitude(reduced_stride()) > kept_stride()))
      return false;
    a.length = a.dim[inner()].size;
    a.runs = a.count / a.length;
    const Size bytes = a.count * a.from_bytes, run = a.length * a.from_bytes;
    const Size packets = apart ? up(run, 16) : packets_of_run();
    a.tiles = up(packets, (Size)GPR_WARP * loads());
    if (bytes < (a.where ? (Size)MASKED_BYTES : row.rows_bytes) || !cut_runs(packets, apart))
      return false;
    set_extent();
    const Size slots = (Size)multiprocessors * row.rows_blocks, warps = AXES_THREADS / GPR_WARP;
    a.team = lanes_of_row(slots, up(bytes, 16), loads(), GPR_WARP, enough());
    const Size least = a.packets ? (Size)SHORT_RUNS_BYTES : row.warp_rows_bytes;
    if (a.team == GPR_WARP && !wanted && !a.where && (apart || bytes < least)) return false;
    a.full = a.team == GPR_WARP ? rows_by_warps(slots) : 0;
    a.rows = (int)(slots * warps);
    cut_rows(slots);
    const Size shared = a.split > 1 ? a.outputs - a.single : 0, parts = a.split * warps;
    if (shared && a.single == 0) set_queue(shared, shared * warps);
    set_drawn(true, a.runs * a.tiles / parts, parts);
    return take(program, up(a.full, warps) + a.single - a.full + (a.outputs - a.single) * a.split,
                (size_t)(shared * a.split));
  }
  /* Two blocks a multiprocessor have enough under way for the memory, and are sooner together than
   * more: 2^24 doubles took 39.3 µs on an H200 by three and 38.1 by two, floats 24.1 and 23.3. Of
   * smaller elements they do not read fast enough. */
  Size blocks_of_memory(Size slots) const {
    return a.from_bytes < 4 ? slots : (Size)multiprocessors * 2;
  }
  /* How many blocks share each of so many rows. All that fit are under way at once, so that a few
   * more end late: 40 rows of 3 million floats took 135 µs on an H200 by 13 blocks each, and 119 to
   * 123 by 6 to 9. Blocks that share a row come together in the time of a step and a half, and more
   * than one a multiprocessor of a step each bring more to the last of them than they save: the
   * variance of 2^20 doubles took 11.2 µs by 128 of two and 13.0 by 256. */
  static constexpr double STEPS_TOGETHER = 1.5;
  Split split_rows(Size rows, Size slots, Size steps) const {
    constexpr double crowded = 1.05; /* the time of more blocks than the memory asks for */
    const Size most = blocks_of_memory(slots);
    const double part = most == slots && rows > slots ? enough() : (double)most / (double)slots;
    Split best = {1, 1e300};
    for (Size split = 1; split <= steps && split <= SPLIT_MOST; split = next_split(steps, split)) {
      if (split > 1 && rows * split > multiprocessors && 2 * split > steps) break;
      const double time = time_of(rows * split, slots, (double)up(steps, split), 1, part) *
                              (rows * split > most ? crowded : 1) +
                          (split > 1 ? STEPS_TOGETHER * part : 0);
      if (time * 1.005 < best.time) best = {(int)split, time};
    }
    return best;
  }
  /* Rows that are not a warp's are a block's, or several share each, or only each of those that are
   * left when all slots had theirs: 300 rows of 50003 doubles took 45 µs on an H200, and take 39,
   * 452 of 52397 floats 40 and 35. */
  void cut_rows(Size slots) {
    const Size steps = up(a.runs * a.tiles, AXES_THREADS / GPR_WARP);
    const Size rest = a.outputs - a.full, whole = rest / slots * slots;
    Split all = {1, time_of(rest, slots, (double)steps, 1, enough())}, left = {1, 0};
    if (rest && rest <= AXES_TICKETS) all = split_rows(rest, slots, steps);
    if (rest > whole) left = split_rows(rest - whole, slots, steps);
    left.time += (double)(whole / slots * (steps + 1));
    const bool pays = whole && left.time <= all.time;
    a.single = a.full + (pays ? whole : 0);
    a.split = pays ? left.blocks : all.blocks;
  }
};

GPR_CLOSE
