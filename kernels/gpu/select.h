/* Which kernel takes which shape, and how it is cut: the host's. */
#ifndef GPR_SELECT_H
#define GPR_SELECT_H

#include "../abi/variants.h"
#include "as_host.h"
#include "axes_kernels.cuh"

GPR_OPEN

/* The kernels of one fold, and what their launch depends on. */
struct AxesRow {
  gpr_program *shallow, *tall, *packed, *staged, *rows, *columns, *segments; /* may be NULL */
  /* Of elements as they lie; of any dtype, order and address; trees' by warps. */
  gpr_program *tile, *any, *any_rows;
  gpr_program *convert[GPR_DTYPE_COUNT];                  /* of this dtype, where there is one */
  gpr_program *tile_rows, *convert_rows[GPR_DTYPE_COUNT]; /* the same by packets */
  int is_tree, is_ordered;
  int brief; /* so many elements need no state in memory */
  int bytes; /* of an element */
  int tile_blocks, tile_loads;
  int strip_bytes, packed_bytes, staged_packets, staged_blocks;
  int rows_blocks, rows_loads, columns_blocks, columns_loads;
  double ends;  /* of a block, in steps */
  size_t state; /* bytes, the number that counted with it */
  size_t moved; /* of those, what a block leaves to another one as a rule */
  size_t pool;
  size_t joint; /* words of an output that blocks add to; 0: they leave partial states */
};

typedef int64_t Size;
GPR_FN Size up(Size a, Size b) { return (a + b - 1) / b; }

/* How many blocks share an output, and how long all of it takes, in steps of one block. */
struct Split {
  int blocks;
  double time;
};

/* Parts of at least `least` steps of work, so that `blocks` times as many fill the slots well: the
 * last wave should not be nearly empty. A block's start and end take it `ends` steps; that there
 * are several parts takes `parting`, and a part more `each` for the block that comes last. */
inline Split best_split(Size blocks, Size slots, Size steps, Size least, double ends = 1,
                        double each = 0, double parting = 0) {
  Split best = {1, 1e300};
  const Size limit = steps / least > 1 ? steps / least : 1;
  for (Size split = 1; split <= limit && split <= 1024; split++) {
    const double waves = (double)up(blocks * split, slots);
    const double parts = split > 1 ? parting + (double)(split - 1) * each : 0;
    const double time = waves * ((double)up(steps, split) + ends) + parts;
    if (time * 1.005 < best.time) best = {(int)split, time};
  }
  return best;
}

struct AxesCut {
  const AxesRow &row;
  int multiprocessors;
  gpr_axes_args &a;
  gpr_axes_launch &out;
  int wanted; /* a variant that is asked for, whether it is good here or not; or GPR_ANY_VARIANT */

  int inner() const { return a.kept + a.reduced - 1; }
  /* Elements are the row's, at addresses that suit them. */
  bool is_native() const { return a.from == a.to && !a.swap && !a.unaligned; }
  gpr_program *loader() const {
    if (is_native()) return row.tile;
    return !a.swap && !a.unaligned && row.convert[a.from] ? row.convert[a.from] : row.any;
  }
  /* Results lie in the order of the kept dimensions. */
  bool is_numbered() const {
    Size place = 1;
    for (int d = a.kept - 1; d >= 0; d--) {
      if (a.place[d] != place) return false;
      place *= a.shape[d];
    }
    return true;
  }
  /* Elements come in the order of their index, where that matters. */
  bool is_in_order() const {
    Size place = 1;
    for (int d = inner(); row.is_ordered && d >= a.kept; d--) {
      if (a.place[d] != place) return false;
      place *= a.shape[d];
    }
    return true;
  }
  bool plain() const { return !a.where && !a.skip && !a.starts; }
  Size reduced_stride() const { return a.strides[inner()]; }

  bool take(gpr_program *kernel, Size blocks, size_t partials) {
    out.kernel = kernel;
    out.blocks = blocks;
    out.threads = AXES_THREADS;
    out.leaves_zero = 1;
    out.scratch = partials || row.pool ? AXES_POOL + row.pool + partials * row.state : 0;
    return true;
  }

  /* Columns of a few rows, enough of them for all threads. */
  bool shallow() {
    if (!row.shallow || !a.kept || a.reduced != 1 || a.count > FEW_MOST ||
        a.strides[a.kept - 1] != row.bytes)
      return false;
    const Size width = a.shape[a.kept - 1];
    a.tiles = a.outputs / width * up(width * row.bytes, row.strip_bytes);
    if (width * row.bytes < 1024 || a.tiles < (Size)multiprocessors * 1024) return false;
    if (a.count > FEW_SHORT && row.tall) return take(row.tall, up(a.tiles, AXES_THREADS), 0);
    return take(row.shallow, up(a.tiles, AXES_THREADS * (a.count == 2 ? 2 : 1)), 0);
  }

  bool follow_each_other() const {
    const Size bytes = a.count * row.bytes;
    if (a.reduced != 1 || a.kept > 1 || (a.count > 1 && reduced_stride() != row.bytes))
      return false;
    return (a.kept == 0 || a.shape[0] == 1 || a.strides[0] == bytes) && (uintptr_t)a.data % 16 == 0;
  }

  /* Rows one behind the other, whole ones in a packet, or of two packets or four. */
  bool packed() {
    const Size bytes = a.count * row.bytes;
    if (!row.packed || !follow_each_other() || bytes > row.packed_bytes || bytes & (bytes - 1))
      return false;
    /* Lanes that share a row end quickly only if a sum is all that is asked for. */
    if (bytes > 16 && (a.has_initial || divides(a.op))) return false;
    return take(row.packed, up(a.outputs * bytes / 16 + 1, AXES_THREADS * SHALLOW_LOADS), 0);
  }

  /* Rows one behind the other, of 4 KiB at most. */
  bool staged() {
    const Size bytes = a.count * row.bytes;
    if (!follow_each_other() || bytes > 4096) return false;
    a.length = a.count;
    a.team = 1;
    while (a.team * STAGED_BYTES < bytes) a.team *= 2;
    const int packets = (int)(bytes / 16);
    a.pitch = 0;
    if (bytes % 16 == 0) {
      a.pitch = packets;
      if (a.team < 8)
        while (a.pitch % (2 * a.team) != a.team) a.pitch++;
    }
    const int teams = AXES_THREADS / a.team, multiple = a.pitch || teams > 16 ? teams : 16;
    const Size fit = a.pitch ? row.staged_packets / a.pitch : (row.staged_packets - 1) * 16 / bytes;
    a.rows = (int)(fit < multiple ? (a.pitch ? fit : fit / 16 * 16) : fit / multiple * multiple);
    if (!a.rows) return false;
    /* No more than leave work for all blocks that there can be. */
    const Size fair = up(up(a.outputs, (Size)multiprocessors * row.staged_blocks), multiple);
    if (a.rows > fair * multiple) a.rows = (int)(fair * multiple);
    a.tiles = up(a.outputs, a.rows);
    return take(row.staged, a.tiles, 0);
  }

  /* How long it takes, in steps of which each keeps all slots busy; half of them would do that for
   * the memory. Each piece of work has `steps` and its ends. */
  static double time_of(Size work, Size slots, double steps, double ends) {
    const Size full = work / slots, left = work % slots;
    const double part = (double)left / (double)slots, busy = part > 0.5 ? part : 0.5;
    return (double)full * (steps + ends) + (left ? steps * busy + ends : 0);
  }
  /* So many lanes to each output, `least` of them or a block: fewer take longer, but more outputs
   * at a time. */
  int lanes_of_row(Size slots, Size packets, Size loads, int least) const {
    double best = 1e300;
    int team = AXES_THREADS;
    for (int lanes = AXES_THREADS; lanes >= least; lanes = lanes > 32 ? 32 : lanes / 2) {
      const double steps = (double)up(packets, lanes * loads);
      const double ends = lanes > 32 ? row.ends : row.ends * (lanes + 16) / 96;
      const double time = time_of(a.outputs, slots * (AXES_THREADS / lanes), steps, ends);
      if (time < best) best = time, team = lanes;
    }
    return team;
  }

  bool rows() {
    if (!a.reduced || reduced_stride() != row.bytes) return false;
    a.length = a.shape[inner()];
    a.runs = a.count / a.length;
    const Size bytes = a.length * row.bytes;
    if (bytes < 2048 || (bytes < 8192 && a.runs > 1)) return false;
    set_extent();
    const Size slots = (Size)multiprocessors * row.rows_blocks;
    a.split = 1;
    a.team = lanes_of_row(slots, up(a.count * row.bytes, 16), row.rows_loads, GPR_WARP);
    if (a.team == GPR_WARP) return take(row.rows, up(a.outputs, AXES_THREADS / GPR_WARP), 0);
    const Size steps = up(a.count * row.bytes, AXES_THREADS * row.rows_loads * 16);
    if (a.outputs <= AXES_TICKETS) a.split = best_split(a.outputs, slots, steps, 2).blocks;
    return take(row.rows, a.outputs * a.split, (size_t)(a.outputs * a.split));
  }

  /* A tile's thread begins and ends sooner: 5 µs where these take 5 to 20. */
  enum { COLUMNS_BYTES = 2 << 20 };
  bool columns() {
    if (!row.columns || !a.kept || !a.reduced || a.strides[a.kept - 1] != row.bytes) return false;
    if ((double)a.outputs * (double)a.count * row.bytes < COLUMNS_BYTES && !wanted) return false;
    const Size width = a.shape[a.kept - 1], bytes = width * row.bytes;
    const int v = 16 / row.bytes;
    if ((uintptr_t)a.data % 16) return false;
    if (a.count < 4 * v && !wanted) return false; /* a thread has v outputs to finish */
    for (int d = 0; d < a.kept - 1; d++)
      if (a.strides[d] % 16) return false;
    const Size batches = a.outputs / width;
    Size groups = 1;
    bool aligned = true;
    for (int d = 0; d < a.reduced; d++) aligned &= a.strides[a.kept + d] % 16 == 0;
    if (!aligned || bytes < 16) {
      /* Several rows to one of whole packets. */
      if (a.reduced != 1 || a.strides[a.kept] != bytes) return false;
      for (groups = 1; groups * width % v;) groups++;
      if (groups * width / v > AXES_THREADS || groups > a.count || batches > AXES_TICKETS)
        return false;
    }
    a.length = groups * width;
    const Size packets = up(a.length, v);
    Split best = {1, 1e300};
    if (groups > 1 || packets <= 32) {
      best = columns_split(packets, packets, batches, groups);
      a.team = (int)packets;
    } else {
      for (Size wide = 32; wide <= AXES_THREADS && wide < 2 * packets; wide *= 2) {
        const Split split = columns_split(wide, packets, batches, 1);
        if (split.time < best.time) best = split, a.team = (int)wide;
      }
    }
    a.rows = AXES_THREADS / a.team;
    a.tiles = up(packets, a.team);
    a.split = best.blocks;
    a.groups = groups;
    a.full = a.count / groups;
    const Size tickets = a.tiles * batches, blocks = tickets * a.split;
    /* Where a thread of the last block would have more than 1 KiB to read. */
    if (!row.joint && groups == 1 && a.split * a.team * v * (Size)row.state > AXES_THREADS * 1024 &&
        a.split > 2 * CROWD && tickets * (1 + up(a.split, CROWD)) <= AXES_TICKETS)
      a.crowd = CROWD;
    if (a.split > 1 && a.reduced == 1)
      set_queue(tickets * (1 + (a.crowd ? up(a.split, CROWD) : 0)),
                tickets * (AXES_THREADS / GPR_WARP));
    set_drawn();
    const bool shared = a.split > 1 || groups > 1;
    if (!shared || !row.joint)
      return take(row.columns, blocks, shared ? (size_t)(blocks * a.team * v) : 0);
    take(row.columns, blocks, 0);
    out.leaves_zero = 0;
    const Size cells = tickets * (groups > 1 ? width : a.team * v);
    out.scratch = AXES_POOL + (size_t)cells * row.joint * sizeof(uint64_t);
    return true;
  }
  /* Counters behind the tickets, if there is room, as far apart as there is: 8 of them 2 KiB apart
   * in place of 256 bytes took 2 µs off the 247 of 1 GiB on an H200. */
  void set_queue(Size used, Size counters) {
    const Size room = used < AXES_TICKETS ? (AXES_TICKETS - used) / counters : 0;
    if (room) a.queue = (int)used;
    a.queue_apart = (int)room;
  }
  /* Some multiprocessors are nearer to the memory: of 256 MiB in equal parts blocks had read theirs
   * after 56 to 66 µs on an H200, after 62 to 63 where a sixth of the turns was drawn. Each warp of
   * the blocks that share columns draws for itself. */
  enum { DRAWN_PART = 6 };
  void set_drawn() {
    const Size rows = (Size)a.rows * row.columns_loads * a.split, turns = a.full / rows;
    const bool draws = a.queue && a.team * a.rows == AXES_THREADS && turns >= DRAWN_PART;
    a.drawn = draws ? (turns - turns / DRAWN_PART) * rows : INT64_MAX;
  }
  /* Measured on an H200: a block's ends take one and a half of its steps, each of 32 KiB, and a
   * quarter for each time that its threads come together by halves; to read 8 states, one. */
  enum { CROWD = 16 };
  Split columns_split(Size wide, Size packets, Size batches, Size groups) const {
    const Size high = AXES_THREADS / wide, tiles = up(packets, wide) * batches;
    const Size steps = up(a.count / groups, high * row.columns_loads);
    double ends = 1.5;
    for (Size h = high; h > 1; h /= 2) ends += 0.25;
    const Size slots = (Size)multiprocessors * row.columns_blocks;
    if (tiles > AXES_TICKETS) return {1, (double)up(tiles, slots) * ((double)steps + ends)};
    const double states = (double)(wide * (16 / row.bytes)) / AXES_THREADS; /* a thread's */
    return best_split(tiles, slots, steps, 4, ends, states / 8);
  }

  /* The bytes from the first to the last element of all. */
  void set_extent() {
    a.low = a.high = a.data;
    for (int d = 0; d <= inner(); d++) {
      const Size reach = (a.shape[d] - 1) * a.strides[d];
      *(reach < 0 ? &a.low : &a.high) += reach;
    }
    a.high += a.from_bytes;
  }

  /* Blocks of pieces of long segments among blocks of short ones, which wait more than they read.
   */
  bool segments() {
    if (!row.segments || !a.piece_bytes || !a.outputs) return false;
    a.per = a.outputs / a.segments;
    const Size warps = AXES_THREADS / GPR_WARP, slots = (Size)multiprocessors * row.rows_blocks;
    a.rows = SEGMENTS_MOST;
    while (a.rows > 1 && a.outputs < slots * warps * a.rows) a.rows /= 2;
    const Size pieces = a.piece_count * a.per, blocks = pieces + up(a.outputs, warps * a.rows);
    if (blocks > INT32_MAX) return false;
    a.mix = (uint64_t)up(pieces << 32, blocks);
    set_extent();
    take(row.segments, blocks, 0);
    out.leaves_zero = 0;
    out.scratch = (size_t)up(pieces, 4) * 16 + (size_t)pieces * row.state;
    return true;
  }

  /* --- any layout: tile.cuh ----------------------------------------------------------------------
   */

  static Size magnitude(Size x) { return x < 0 ? -x : x; }
  Size kept_stride() const { return a.kept ? magnitude(a.strides[a.kept - 1]) : INT64_MAX; }

  /* How many more of dimension d the box takes before one of its offsets leaves 31 bits. */
  static Size fit(Size n, Size stride, Size &room) {
    const Size step = magnitude(stride);
    if (step && (n - 1) > room / step) n = room / step + 1;
    return n;
  }
  Size take_of(int d, Size n, Size (&room)[3]) {
    n = fit(n, a.strides[d], room[0]);
    n = fit(n, a.where_strides[d], room[1]);
    n = fit(n, a.place[d], room[2]);
    room[0] -= (n - 1) * magnitude(a.strides[d]);
    room[1] -= (n - 1) * magnitude(a.where_strides[d]);
    room[2] -= (n - 1) * magnitude(a.place[d]);
    return n;
  }
  /* The innermost reduced dimensions, as many as the table has places for. */
  void set_box() {
    Size room[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int d = inner();
    a.boxed = 1;
    a.box = a.chunk = a.shape[d];
    a.chunks = 1;
    if (a.reduced > 1 && 2 * a.box <= GPR_TILE_BOX && take_of(d, a.box, room) == a.box)
      while (d-- > a.kept) {
        const Size wanted = GPR_TILE_BOX / a.box < a.shape[d] ? GPR_TILE_BOX / a.box : a.shape[d];
        Size chunk = take_of(d, wanted, room);
        if (chunk < 2) break;
        a.chunks = up(a.shape[d], chunk);
        a.chunk = up(a.shape[d], a.chunks);
        a.last_box = a.box * (a.shape[d] - (a.chunks - 1) * a.chunk);
        a.box *= a.chunk;
        a.boxed++;
        if (a.chunks > 1) break;
      }
    if (a.boxed == 1) a.last_box = a.box;
  }
  Size runs_of_box() const {
    Size runs = a.chunks;
    for (int d = a.kept; d < a.kept + a.reduced - a.boxed; d++) runs *= a.shape[d];
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
  /* A thread takes all of an output, which is short, or not long and one of very many. */
  bool is_brief(Size slots) const {
    const bool many = a.outputs >= slots * AXES_THREADS && kept_stride() <= 4 * row.bytes;
    const Size most = many ? row.brief : (Size)FEW_SHORT;
    return row.brief && !a.starts && a.boxed == 1 && runs_of_box() == 1 && a.count > 0 &&
           a.count <= most && (a.place[inner()] >= 0 || !row.is_ordered);
  }
  void set_lanes(Size slots) {
    const Size outputs = a.outputs, count = a.starts ? INT32_MAX : a.count;
    const Size width = a.kept ? a.shape[a.kept - 1] : 1;
    a.across = a.down = a.beyond = 1;
    a.brief = is_brief(slots);
    if (a.brief) {
      a.beyond = AXES_THREADS;
      return;
    }
    if (kept_stride() >= magnitude(reduced_stride())) { /* lanes down the elements first */
      for (int down = 2; down <= 32; down *= 2)
        if (rows_time(down) < rows_time(a.down)) a.down = down;
      while (a.down < 32 && 8 * a.down <= count && outputs * a.down < slots * AXES_THREADS)
        a.down *= 2;
      if (a.down == 32 && count >= 4 * AXES_THREADS && outputs * 32 < slots * AXES_THREADS)
        a.down = AXES_THREADS;
      a.beyond = AXES_THREADS / a.down;
      return;
    }
    const bool between = a.kept == 1 || magnitude(reduced_stride()) < a.strides[a.kept - 2];
    if (width * row.bytes < 32 && between && width < outputs) {
      a.across = (int)width;
      while (a.across * a.down * 2 <= 64 && 2 * a.down <= count) a.down *= 2;
      a.beyond = AXES_THREADS / (a.across * a.down);
      return;
    }
    if (outputs < 32) {
      a.across = (int)outputs;
      while (2 * a.down * a.across <= AXES_THREADS && 2 * a.down <= count) a.down *= 2;
      return;
    }
    double best = 1e300;
    for (int down = 1; down <= 8 && down * row.tile_loads <= count; down *= 2) {
      const Size rounds = up(count, (Size)down * row.tile_loads);
      const double time =
          time_of(up(outputs, AXES_THREADS / down), slots, (double)rounds, row.ends + (down > 1));
      if (time < best) best = time, a.down = down;
    }
    a.across = AXES_THREADS / a.down;
  }
  /* Of a run's `units` a lane has `loads` under way at a time: lanes that one run has no work for
   * take others. Eight neighbours read whole sectors. */
  void set_runners(Size units, Size loads) {
    const int least = a.across >= 8 ? 1 : 8;
    const Size runs = a.starts ? 1 : runs_of_box();
    while (a.down / a.runners >= 2 * least && units < a.down / a.runners * loads &&
           2 * a.runners <= runs)
      a.runners *= 2;
    a.run_rounds = up(units, a.down / a.runners * loads);
    a.rounds = a.run_rounds * runs;
  }
  /* What blocks that share outputs leave each other takes the last one its reads, and a few loads
   * that wait for each other, about as long as four steps. */
  enum { PARTING = 4 };
  void share_rounds(Size slots, Size step_bytes) {
    const Size wide = (Size)a.across * a.beyond, rounds = up(a.rounds, a.runners);
    const double left = 2 * (double)(wide * (Size)row.moved) / (double)step_bytes;
    a.tiles = up(a.outputs, wide);
    a.split = 1;
    if (a.tiles <= AXES_TICKETS)
      a.split = best_split(a.tiles, slots, rounds, 2, row.ends, left, PARTING).blocks;
    a.share = up(a.rounds, (Size)a.split * a.runners);
    if (a.share) a.split = (int)up(a.rounds, a.share * a.runners);
  }
  bool take_tile(gpr_program *program, Size slots) {
    const Size blocks = a.tiles * a.split, most = 16 * slots;
    return take(program, blocks < most ? blocks : most,
                a.split > 1 ? (size_t)(blocks * a.across * a.beyond) : 0);
  }
  /* Long rows whose elements, and their masks, lie side by side. */
  bool tile_rows() {
    const int d = inner();
    gpr_program *program = is_native() ? row.tile_rows : nullptr;
    if (!is_native() && !a.swap && !a.unaligned) program = row.convert_rows[a.from];
    if (!program || a.starts || a.strides[d] != a.from_bytes ||
        (a.where && a.where_strides[d] != 1) || a.shape[d] * a.from_bytes < 1024)
      return false;
    const Size slots = (Size)multiprocessors * row.tile_blocks;
    const int elements = 16 / a.from_bytes;
    a.box = a.chunk = a.last_box = a.shape[d];
    a.chunks = 1;
    const Size loads = row_loads(elements, row.bytes);
    set_extent();
    a.down = lanes_of_row(slots, up(a.count, elements), loads, 8);
    a.beyond = AXES_THREADS / a.down;
    set_runners(a.box / elements + 2, loads);
    share_rounds(slots, AXES_THREADS * loads * 16);
    return take_tile(program, slots);
  }
  bool tile() {
    const Size slots = (Size)multiprocessors * row.tile_blocks;
    set_box();
    set_lanes(slots);
    set_runners(a.starts || !a.box ? 1 : a.box, row.tile_loads);
    share_rounds(slots, (Size)AXES_THREADS * row.tile_loads * row.bytes);
    return take_tile(loader(), slots);
  }

  /* Parts are powers of two of `least` elements each, so that not every number of them is of use.
   */
  int tree_parts(Size tiles, Size slots, Size units) const {
    const Size most = 1024 < AXES_TICKETS / tiles ? 1024 : AXES_TICKETS / tiles;
    Split best = {1, 1e300};
    for (Size share = 4; most; share *= 2) {
      const Size parts = up(units, share);
      if (parts > most) continue;
      const double time =
          (double)up(tiles * parts, slots) * ((double)share + 4) + (double)parts / 4;
      if (time < best.time) best = {(int)parts, time};
      if (parts == 1) break;
    }
    return best.blocks;
  }
  /* Trees keep the order of the index: threads across outputs where those lie closer together, or
   * down short ones, and else warps. */
  bool trees() {
    const bool across = a.outputs > 1 && kept_stride() < magnitude(reduced_stride());
    const bool by_warps = !across && a.count >= 512;
    const Size units = by_warps ? AXES_THREADS / 32 : AXES_THREADS;
    const Size run = tree_run(row.bytes, by_warps);
    const Size least = by_warps ? 32 * run : tree_leaves(row.bytes);
    const Size steps = a.count > 0 ? up(a.count, least) : 1,
               slots = (Size)multiprocessors * TREE_BLOCKS;
    Size wide = across ? 128 : 1;
    while (across && (wide >= 2 * a.outputs ||
                      (wide > 32 && 8 * (up(a.outputs, wide) * wide - a.outputs) > a.outputs)))
      wide /= 2;
    while (across && wide < units && wide < a.outputs && units / wide > steps) wide *= 2;
    while (by_warps && wide < units && a.outputs >= wide * slots * 8) wide *= 2;
    const Size runs = by_warps ? steps : up(a.count, run);
    while (!across && wide < units && units / wide / 2 >= runs) wide *= 2;
    a.team = (int)(across || by_warps ? wide : -wide);
    a.rows = (int)(units / wide);
    a.tiles = up(a.outputs, wide);
    a.split = tree_parts(a.tiles, slots, up(steps, a.rows));
    const Size blocks = a.tiles * a.split;
    gpr_program *const kernel =
        !is_native() ? (by_warps ? row.any_rows : row.any) : (by_warps ? row.tile_rows : row.tile);
    return take(kernel, blocks < (1 << 30) ? blocks : 1 << 30,
                a.split > 1 ? (size_t)((a.tiles * (a.split + 1)) * wide) : 0);
  }

  bool is_any() const { return a.count > 0 && a.outputs > 0; }
  bool is_easy() const {
    return row.staged && is_native() && is_numbered() && is_in_order() && plain() && is_any();
  }
  bool take(int variant) {
    if (row.is_tree != (variant == GPR_VARIANT_TREES)) return false;
    switch (variant) {
      case GPR_VARIANT_TREES: return trees();
      case GPR_VARIANT_SEGMENTS: return is_native() && is_numbered() && segments();
      case GPR_VARIANT_PACKED: return is_easy() && packed();
      case GPR_VARIANT_SHALLOW: return is_easy() && shallow();
      case GPR_VARIANT_STAGED: return is_easy() && staged();
      case GPR_VARIANT_COLUMNS: return is_easy() && columns();
      case GPR_VARIANT_ROWS: return is_easy() && rows();
      case GPR_VARIANT_TILE_ROWS: return is_any() && tile_rows();
      default: return tile();
    }
  }
  void clear() {
    a.length = a.runs = a.tiles = a.groups = a.full = a.drawn = 0;
    a.split = a.team = a.rows = 1;
    a.pitch = a.crowd = a.queue = a.queue_apart = 0;
    a.across = a.down = a.beyond = a.boxed = a.runners = 1;
    a.brief = 0;
  }
  /* The one that is wanted, or the first that takes the layout. */
  bool select() {
    for (int v = GPR_ANY_VARIANT + 1; v < GPR_VARIANT_END; v++) {
      clear();
      if ((wanted == GPR_ANY_VARIANT || v == wanted) && take(v)) return true;
    }
    return false;
  }
};

GPR_CLOSE
#endif
