/* How any layout is cut for tile.cuh: lanes, the box, its runs and who shares them. */
#pragma once

#include "cut.h"

GPR_OPEN

struct TileCut : Cut {
  /* How many more of dimension d the box takes before one of its offsets leaves 31 bits. */
  static Size fit(Size n, Size stride, Size &room) {
    const Size step = magnitude(stride);
    if (step && (n - 1) > room / step) n = room / step + 1;
    return n;
  }
  Size take_of(int d, Size n, Size (&room)[3]) {
    n = fit(n, a.dim[d].stride, room[0]);
    n = fit(n, a.dim[d].where_stride, room[1]);
    n = fit(n, a.dim[d].place, room[2]);
    room[0] -= (n - 1) * magnitude(a.dim[d].stride);
    room[1] -= (n - 1) * magnitude(a.dim[d].where_stride);
    room[2] -= (n - 1) * magnitude(a.dim[d].place);
    return n;
  }
  /* The innermost reduced dimensions, as many as the table has places for. */
  void set_box() {
    Size room[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int d = inner();
    a.boxed = 1;
    a.box = a.chunk = a.dim[d].size;
    a.chunks = 1;
    if (a.reduced > 1 && 2 * a.box <= GPR_TILE_BOX && take_of(d, a.box, room) == a.box)
      while (d-- > a.kept) {
        const Size wanted =
            GPR_TILE_BOX / a.box < a.dim[d].size ? GPR_TILE_BOX / a.box : a.dim[d].size;
        Size chunk = take_of(d, wanted, room);
        if (chunk < 2) break;
        a.chunks = up(a.dim[d].size, chunk);
        a.chunk = up(a.dim[d].size, a.chunks);
        a.last_box = a.box * (a.dim[d].size - (a.chunks - 1) * a.chunk);
        a.box *= a.chunk;
        a.boxed++;
        if (a.chunks > 1) break;
      }
    if (a.boxed == 1) a.last_box = a.box;
  }
  Size runs_of_box() const {
    Size runs = a.chunks;
    for (int d = a.kept; d < a.kept + a.reduced - a.boxed; d++) runs *= a.dim[d].size;
    return runs;
  }

  /* Elements of an output lie closer to each other than outputs do: how long it takes with `down`
   * lanes an output. A request of a warp that touches more than four lines of the first cache waits
   * for it, not for the memory; lanes without an element idle; and lanes come together by halves.
   */
  double rows_time(Size down) const {
    const double bytes = (double)magnitude(reduced_stride() ? reduced_stride() : row.bytes);
    const double groups = 32.0 / (double)down, apart = (double)kept_stride();
    double lines = groups * (1 + (double)(down - 1) * bytes / 128);
    const double span = groups * apart / 128 + 1;
    if (span < lines) lines = span;
    const double ideal = row.bytes < 4 ? 1 : row.bytes / 4.0, each = lines / ideal / 4;
    const double idle = (double)(up(a.box, down) * down) / (double)a.box;
    double halves = 0;
    for (Size h = down; h > 1; h /= 2) halves += 1.5;
    return (each > 1 ? each : 1) * idle * (1 + halves * (double)down / (double)a.count);
  }
  /* Few outputs side by side, and many such groups: a group's lanes are in one warp, and come
   * together without a barrier. Where threads are enough each has so many elements, or all of them:
   * means of (2, 53813, 34, 2) floats along axes 0 and 2 took 100 µs on an H200 by 16 lanes an
   * output, and take 24, minima of (8, 12, 2649, 7, 2) doubles along 0 and 3 45 and 16. */
  enum { LANE_ELEMENTS = 32, ENOUGH_THREADS = 1024 }; /* threads: of a multiprocessor */
  void set_warps(Size width, Size count) {
    const Size groups = a.outputs / width, enough = (Size)multiprocessors * ENOUGH_THREADS;
    a.neighbours = (int)width;
    while (a.across < width) a.across *= 2;
    while (2 * a.across * a.down <= AXES_THREADS && 2 * a.down <= count &&
           (2 * a.down * LANE_ELEMENTS <= count || groups * a.across * a.down < enough) &&
           (2 * a.across * a.down <= 32 || groups * a.across * a.down < AXES_THREADS))
      a.down *= 2;
    a.beyond = AXES_THREADS / (a.across * a.down);
  }
  /* The part of what all lanes could load that they do. */
  double use_of(Size across, Size slots, Size count) const {
    const Size tiles = up(a.outputs, across), down = AXES_THREADS / across;
    const Size rounds = up(count, down * row.tile_loads), filled = slots / tiles * tiles;
    const Size loads = tiles * rounds * AXES_THREADS * row.tile_loads;
    return (double)(a.outputs * count) / (double)loads * (double)filled / (double)slots;
  }
  /* Outputs that blocks share: by the narrowest tiles that read whole sectors, so that more blocks
   * bring an output's parts together, of fewer each: of 73 columns of doubles, 48 MB in all, the
   * variance took 84 µs on an H200 as one tile and takes 46, the maxima of 16 MB 18.3 and 13.7. Two
   * sectors of wide rows, which begin anywhere in one: by one the maxima of 300 columns took a
   * sixth longer, but not states that take longer to merge than to read. */
  enum { LONG_STATE = 64, NARROWEST = 4, WIDEST = 64, NEIGHBOURS_MOST = 128 };
  Size narrow_tile(Size slots, Size count) const {
    const Size outputs = a.outputs;
    const bool one = outputs <= NEIGHBOURS_MOST || row.moved >= LONG_STATE;
    double best = 0;
    Size across = 0;
    if (a.starts || outputs < 2 || up(outputs, 32) >= slots) return 0;
    for (Size w = NARROWEST; w <= WIDEST; w *= 2) {
      const bool suits = w * row.bytes >= (one ? SECTOR : 2 * SECTOR) && up(outputs, w) <= slots;
      if (!suits || AXES_THREADS / w * row.tile_loads > count) continue;
      const double use = use_of(w, slots, count);
      if (use > 1.05 * best) best = use, across = w;
    }
    const bool alone = outputs <= NEIGHBOURS_MOST && use_of(outputs, slots, count) > 1.2 * best;
    return alone ? 0 : across;
  }
  /* All outputs are a block's neighbours, where that leaves fewer lanes without work than blocks of
   * 32 outputs do. */
  bool fit_a_block(Size count) {
    const Size outputs = a.outputs;
    const Size down = outputs && outputs <= NEIGHBOURS_MOST ? AXES_THREADS / outputs : 1;
    if (down < 2 || (outputs > 32 && down * up(outputs, 32) * 32 <= AXES_THREADS)) return false;
    a.across = a.neighbours = (int)outputs;
    if (runs_of_box() == 1)
      while (a.down < down && 2 * (a.down + 1) <= count) a.down++;
    else
      while (2 * a.down <= down && 2 * a.down <= count) a.down *= 2;
    return true;
  }
  void set_lanes(Size slots) {
    const Size outputs = a.outputs, count = a.starts ? INT32_MAX : a.count;
    const Size width = a.kept ? a.dim[a.kept - 1].size : 1;
    a.across = a.neighbours = a.down = a.beyond = 1;
    if (kept_stride() >= magnitude(reduced_stride())) { /* lanes down the elements first */
      for (int down = 2; down <= 32; down *= 2)
        if (rows_time(down) < rows_time(a.down)) a.down = down;
      /* More lanes than a run has elements are of no use. */
      const auto grows = [&](int down) {
        return outputs * a.down < slots * AXES_THREADS &&
               (a.dim[inner()].size >= down || outputs * a.down < AXES_THREADS);
      };
      while (a.down < 32 && 8 * a.down <= count && grows(2 * a.down)) a.down *= 2;
      if (a.down == 32 && count >= 4 * AXES_THREADS && grows(AXES_THREADS)) a.down = AXES_THREADS;
      a.beyond = AXES_THREADS / a.down;
      return;
    }
    const bool between = a.kept == 1 || magnitude(reduced_stride()) < a.dim[a.kept - 2].stride;
    if (width * row.bytes < 32 && between && width < outputs) return set_warps(width, count);
    if (const Size across = narrow_tile(slots, count)) {
      a.across = a.neighbours = (int)across;
      a.down = AXES_THREADS / (int)across;
      return;
    }
    if (fit_a_block(count)) return;
    double best = 1e300;
    for (int down = 1; down <= 8 && down * row.tile_loads <= count; down *= 2) {
      const Size rounds = up(count, (Size)down * row.tile_loads);
      const double time =
          time_of(up(outputs, AXES_THREADS / down), slots, (double)rounds, row.ends + (down > 1));
      if (time < best) best = time, a.down = down;
    }
    a.across = a.neighbours = AXES_THREADS / a.down;
  }
  /* Of a run's `units` a lane has `loads` under way at a time: lanes take other runs where fewer
   * have no work then. Eight neighbours read whole sectors. */
  void set_runners(Size units, Size loads) {
    const int least = a.across >= 8 ? 1 : 8;
    const Size runs = a.starts ? 1 : runs_of_box();
    const auto rounds = [=](int runners) { return up(units, a.down / runners * loads); };
    for (int more = 2; a.down / more >= least && more <= runs; more *= 2)
      if (20 * rounds(more) * a.runners < 19 * rounds(a.runners) * more) a.runners = more;
    a.run_rounds = rounds(a.runners);
    a.rounds = a.run_rounds * runs;
  }
  /* What blocks that share outputs leave each other takes the last one its reads, and a few loads
   * that wait for each other, about as long as four steps. Of many blocks the last of each crowd
   * merges what those left. Of a block's one output little is left but tickets, which are drawn one
   * after the other, so that blocks of one step pay: 524,288 floats' argmax took 13.2 µs on an H200
   * by blocks of two and 10.8 so, a mean of 32,768 doubles 10.8 and 8.8; of 10 outputs a block, and
   * of 32, they took a sixth longer. What a ticket costs, in steps, is reckoned from these. */
  enum { PARTING = 4 };
  static constexpr double TICKET = 0.008;
  void share_rounds(Size slots, Size step_bytes) {
    const Size wide = (Size)a.neighbours * a.beyond, rounds = up(a.rounds, a.runners);
    const Size least = wide > 1 ? 2 : 1;
    const double ticket = wide > 1 ? 0 : TICKET;
    const double left = ticket + 2 * (double)(wide * (Size)row.moved) / (double)step_bytes;
    a.tiles = up(a.outputs, wide);
    a.split = a.crowd = 1;
    if (a.tiles <= AXES_TICKETS) {
      const Split one = best_split(a.tiles, slots, rounds, least, row.ends, left, PARTING);
      const Split two = best_split(a.tiles, slots, rounds, least, row.ends, left / CROWD,
                                   2 * PARTING + CROWD * left);
      const bool crowds = wide > 1 && two.time < one.time && two.blocks > 2 * CROWD &&
                          a.tiles * (1 + up(two.blocks, CROWD)) <= AXES_TICKETS;
      a.split = (crowds ? two : one).blocks;
      if (crowds) a.crowd = CROWD;
    }
    a.share = up(a.rounds, (Size)a.split * a.runners);
    if (a.share) a.split = (int)up(a.rounds, a.share * a.runners);
  }
  bool take_tile(gpr_program *program, Size slots) {
    const Size blocks = a.tiles * a.split, most = 16 * slots;
    return take(program, blocks < most ? blocks : most,
                a.split > 1 ? (size_t)(blocks * a.neighbours * a.beyond) : 0);
  }
  /* Long rows whose elements, and their masks, lie side by side. */
  bool tile_rows() {
    const int d = inner();
    gpr_program *const program = of_elements(row.tile_rows, row.convert_rows);
    const Size least = a.count > a.dim[d].size ? row.run_bytes : row.tile_rows_bytes;
    if (!program || a.starts || a.dim[d].stride != a.from_bytes ||
        (a.where && a.dim[d].where_stride != 1) ||
        (!wanted && a.dim[d].size * a.from_bytes < least))
      return false;
    const Size slots = (Size)multiprocessors * row.tile_blocks;
    const int elements = 16 / a.from_bytes;
    a.box = a.chunk = a.last_box = a.dim[d].size;
    a.chunks = 1;
    const Size loads = row_loads(elements, row.bytes);
    set_extent();
    a.down = lanes_of_row(slots, up(a.count, elements), loads, 8);
    a.beyond = AXES_THREADS / a.down;
    set_runners(packets_of_run(), loads);
    share_rounds(slots, AXES_THREADS * loads * 16);
    return take_tile(program, slots);
  }
  bool tile() {
    gpr_program *program = of_elements(row.tile, row.convert);
    if (!program) program = row.any;
    const Size slots = (Size)multiprocessors * row.tile_blocks;
    const Size loads =
        program == row.any && row.tile_loads > ANY_LOADS ? (Size)ANY_LOADS : row.tile_loads;
    set_box();
    set_lanes(slots);
    set_runners(a.starts || !a.box ? 1 : a.box, loads);
    a.step = a.down / a.runners * a.dim[inner()].stride;
    a.where_step = a.down / a.runners * a.dim[inner()].where_stride;
    share_rounds(slots, AXES_THREADS * loads * row.bytes);
    return take_tile(program, slots);
  }
};

GPR_CLOSE
