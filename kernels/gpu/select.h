/* Which kernel takes which shape, and how it is cut: the host's. */
#ifndef GPR_SELECT_H
#define GPR_SELECT_H

#include "rows_cut.h"

GPR_OPEN

struct AxesCut : RowsCut {
  bool narrow = false; /* whether it prefers_staged() */
  /* Rows of `least` bytes and more that lanes of a warp finish sooner than what is tried before;
   * with masks too: of seven random shapes with rows of 1 to 8 KB they took half to four fifths of
   * the time of packets of tiles. */
  bool prefers_brief(Size least) {
    const Size bytes = a.count * row.bytes;
    const bool are_uneven = row.uneven_bytes && bytes % row.uneven_bytes;
    return !wanted && is_native() && bytes <= row.brief_bytes &&
           (bytes >= least || bytes <= row.alone_bytes || are_uneven) && suits_brief();
  }
  bool suits_brief() { return waves_of_brief() > 0; }
  /* 0: it is not brief. */
  double waves_of_brief() {
    const double waves = is_any() && brief() ? brief_waves() : 0;
    clear();
    return waves;
  }

  bool are_brief_ones() const { return row.brief_ones && a.count == 1 && !a.where && !wanted; }

  /* Columns of a few rows, enough of them for threads of all blocks, that fill half of their strips
   * or more: of 2 to 40 rows of 5 floats each, which fill five eighths, they took a third to all of
   * brief's time on an H200. So many strips a multiprocessor are enough: of 16 random shapes of up
   * to 16 rows of 0.4 to 1.1 MB they took 0.75 of it, of 20 of more rows 1.09. */
  enum { STRIPS_ENOUGH = 512, STRIPS_OF_FEW = 192, FEW_ROWS = 16 };
  bool shallow() {
    if (!a.kept || a.reduced != 1 || a.count > FEW_MOST || a.dim[a.kept - 1].stride != row.bytes ||
        are_brief_ones() || narrow || !are_told())
      return false;
    const Size width = a.dim[a.kept - 1].size, strip = row.strip_bytes / row.bytes;
    a.tiles = a.outputs / width * up(width, strip);
    const bool is_full = 2 * a.outputs >= a.tiles * strip;
    const Size enough = a.count <= FEW_ROWS ? STRIPS_OF_FEW : STRIPS_ENOUGH;
    if (!wanted && (!is_full || a.tiles < multiprocessors * enough)) return false;
    const bool alone = a.count == 1 && !a.has_initial;
    const bool all = !(a.where || a.skip) || (alone && are_single_sums());
    const bool skips = row.counted_skips && only_skips(a);
    const bool several = (all && alone) || ((all || skips) && a.count == 2);
    gpr_program *const program = !all                      ? row.counted
                                 : a.count == 2 && row.two ? row.two
                                                           : row.shallow;
    return program &&
           take(program, up(a.tiles, (Size)AXES_THREADS * (several ? FEW_STRIPS : 1)), 0);
  }

  bool are_side_by_side() const {
    if (a.reduced != 1 || a.kept > 1 || (a.count > 1 && reduced_stride() != row.bytes))
      return false;
    return a.kept == 0 || a.dim[0].size == 1 || a.dim[0].stride == a.count * row.bytes;
  }
  bool are_packets() const { /* rows of whole ones, wherever each begins */
    const Size places = (Size)(uintptr_t)a.data | a.count * row.bytes | a.dim[0].stride;
    return a.reduced == 1 && a.kept == 1 && reduced_stride() == row.bytes && places % 16 == 0;
  }
  bool begin_with_packet() const { return (uintptr_t)a.data % 16 == 0; }

  /* Rows one behind the other, whole ones in a packet, or of two packets or four. */
  bool packed() {
    const Size bytes = a.count * row.bytes;
    if (!row.packed || are_brief_ones() || !are_side_by_side() || !begin_with_packet() ||
        bytes > row.packed_bytes || bytes & (bytes - 1))
      return false;
    /* Lanes that share a row end quickly only if a sum is all that is asked for. */
    if (bytes > 16 && (a.has_initial || divides(a.op))) return false;
    return take(row.packed, up(a.outputs * bytes / 16 + 1, AXES_THREADS * SHALLOW_LOADS), 0);
  }

  /* Columns side by side of which a row has less than two sectors of 32 bytes: a thread's loads
   * would be of one each. Of 64 MiB of batches of 46 rows of 5 floats sums took 27 µs on an H200 as
   * staged ones and 48 as columns of a few rows, of 9 rows of 8 31 and 30, of 4 rows of 7 47
   * and 37; of 8 rows of 2 maxima took 8.4 and 12.7, of 3 35 and 39, of 4 rows of 2 6.1 and 5.8. */
  enum { NARROW_ROW = 64, NARROW_BYTES = 4 << 20, NARROW_LEAST = 7, NARROW_TALL = 16 };
  bool are_narrow() const {
    if (a.kept != 2 || a.reduced != 1 || a.dim[1].stride != row.bytes) return false;
    const Size bytes = a.dim[1].size * row.bytes;
    return bytes < NARROW_ROW && reduced_stride() == bytes && a.dim[0].stride == a.count * bytes;
  }
  bool prefers_staged() {
    if (wanted || !row.staged_skips || !are_narrow() || a.where) return false;
    if (a.skip && row.counted_bytes < row.staged_bytes) return false;
    const bool fills_strips = a.dim[1].size * row.bytes % row.strip_bytes == 0;
    return a.count > (fills_strips ? NARROW_TALL : NARROW_LEAST) &&
           a.count * row.bytes <= row.staged_most &&
           a.outputs * a.count * row.bytes >= (Size)NARROW_BYTES &&
           !(4 * a.count * row.bytes >= row.staged_bytes && prefers_brief(0));
  }

  /* Rows one behind the other, or of whole packets, or batches of narrow columns. Few of them,
   * which leave threads idle, have more lanes each: of 162 float16 the variance took 7.1 µs on an
   * H200, and takes 5.3. Of batches a lane has more: sums of (488, 22, 75, 14) floats along axis 2
   * took 19.6 µs by four lanes an output, and take 15.8 by two. But of 16 bits these are more than
   * FEW_MOST elements, and a variance's bounds (moment_outputs.cuh) are for STAGED_BYTES. */
  enum { LANE_BYTES = 16, BATCH_BYTES = 160 };
  bool staged() {
    const Size bytes = a.count * row.bytes; /* of an output */
    const bool by_batches = narrow || (wanted && are_narrow());
    if (!row.staged || bytes > row.staged_most || are_brief_ones() ||
        !(by_batches || are_packets() ||
          (are_side_by_side() && (bytes % 16 || begin_with_packet()))))
      return false;
    a.neighbours = by_batches ? (int)a.dim[1].size : 1;
    a.length = a.count * a.neighbours;
    a.team = 1;
    const Size batch = bytes * a.neighbours, batches = a.outputs / a.neighbours;
    Size whole = 16; /* batches that end where a packet does: a tile has a multiple of them */
    while (whole > 1 && whole / 2 * batch % 16 == 0) whole /= 2;
    const Size each =
        by_batches && row.staged_skips && row.bytes >= 4 ? (Size)BATCH_BYTES : (Size)STAGED_BYTES;
    while (a.team * each < bytes) a.team *= 2;
    while (a.team < GPR_WARP && 2 * a.team * LANE_BYTES <= bytes &&
           2 * a.team * a.outputs <= (Size)multiprocessors * AXES_THREADS)
      a.team *= 2;
    const int packets = (int)(bytes / 16);
    if (bytes % 16 == 0 && !by_batches) {
      a.pitch = packets;
      if (a.team < 8)
        while (a.pitch % (2 * a.team) != a.team) a.pitch++;
    }
    /* So many are a round of all threads. */
    const Size teams = AXES_THREADS / a.team / a.neighbours / whole * whole;
    const Size multiple = teams > whole ? teams : whole;
    const Size fit = a.pitch ? row.staged_packets / a.pitch : (row.staged_packets - 1) * 16 / batch;
    a.rows =
        (int)(fit / whole * whole < multiple ? fit / whole * whole : fit / multiple * multiple);
    if (!a.rows) return false;
    /* As many for each block: tiles of 3328 of 1841248 rows are 5 % more than blocks. */
    const Size slots = (Size)multiprocessors * row.staged_blocks;
    const Size waves = up(up(batches, a.rows), slots);
    const Size fair = up(up(batches, waves * slots), multiple);
    if (a.rows > fair * multiple) a.rows = (int)(fair * multiple);
    a.tiles = up(batches, a.rows);
    return take(row.staged, a.tiles, 0);
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
    out.tickets = 0;
    out.scratch = (size_t)up(pieces, 4) * 16 + (size_t)pieces * row.state;
    return true;
  }

  /* Of shares that are powers of two the one that takes the least time, or a smaller one: more
   * parts end more evenly. */
  template <class Time> static Size best_share(Size share, Size most, Time time) {
    Size best = share;
    for (Size next = 2 * share; next < 2 * most; next *= 2)
      if (time(next) < 0.98 * time(best)) best = next;
    return best;
  }
  /* How many parts are a group whose nodes fold by themselves first: a power of two, about as many
   * as there are groups; all parts where none of the `high` threads of the last block would have
   * more than TREE_NODES_FEW of them. Users' operators have such groups too
   * (gpureduce/custom/cut.py). Of 764047 rows of 31 floats products took 84 µs on an H200
   * where each had 373, and take 45. */
  static int tree_crowd(int parts, int high) {
    int crowd = 2;
    while (crowd * crowd < parts) crowd *= 2;
    return parts > TREE_NODES_FEW * high ? crowd : parts;
  }
  /* Of a tile: one, and one for each group if there are several. */
  static Size tree_tickets(int parts, int high) {
    const Size groups = up(parts, tree_crowd(parts, high));
    return groups > 1 ? groups + 1 : 1;
  }
  /* How many blocks share each of so many tiles of outputs. A step is as many elements as a leaf of
   * a thread has; `high` threads of a block fold a share of them each, a power of two of steps.
   * Half of the blocks that fit read as fast as all; they end apart (a sixteenth), and of several
   * the last one reads what the others leave. 1 where there are too few tickets. */
  int tree_parts(Size tiles, Size high, Size steps) const {
    Size most = 1024;
    while (most && tiles * tree_tickets((int)most, (int)high) > AXES_TICKETS) most /= 2;
    const Size resident = (Size)multiprocessors * TREE_BLOCKS;
    const auto parts = [=](Size share) { return up(steps, share * high); };
    const auto time = [=](Size share) {
      const Size bytes = (share < steps ? share : steps) * tree_leaves(row.bytes) * row.bytes;
      const int many = (int)parts(share), crowd = tree_crowd(many, (int)high);
      const Size groups = up(many, crowd),
                 left = up(crowd, high) + (groups > 1 ? up(groups, high) : 0);
      const double last =
          (double)(left * (Size)row.state + (groups > 1 ? 2 : 1) * TREE_THREAD_BESIDE);
      return time_of(tiles * many, resident, (double)bytes, TREE_THREAD_BESIDE) +
             (double)bytes / 16 + (many > 1 ? last : 0);
    };
    Size least = 1;
    if (!most) return 1;
    while (parts(least) > most) least *= 2;
    return (int)parts(best_share(least, steps, time));
  }
  /* From one line of at least so many elements to the next, or between the elements of one. */
  Size line_stride(Size least) const {
    int d = inner();
    for (Size length = a.dim[d].size; length < least && d > a.kept; length *= a.dim[d].size) d--;
    return a.dim[d].stride;
  }
  /* Outputs behind each other, of which several, or a long one, are a block's. */
  bool staged_trees() {
    const Size bytes = a.count * row.bytes;
    if (!is_native() || a.where || a.starts || a.count < 2 || !are_side_by_side()) return false;
    if (a.outputs < multiprocessors && bytes > 4096) return false;
    const Size fit = tree_team(a.count, row.bytes, tree_unit(row.bytes), (Size)row.moved);
    const Size fair = up(a.outputs, (Size)multiprocessors * TREE_STAGED_BLOCKS);
    if (fit < (bytes > 4096 ? TREE_STAGED_LEAST : 1)) return false;
    a.team = (int)(fit < fair ? fit : fair);
    a.tiles = up(a.outputs, a.team);
    take(row.staged, a.tiles < (1 << 30) ? a.tiles : 1 << 30, 0);
    out.threads = TREE_STAGED_THREADS;
    return true;
  }
  /* Outputs that do not lie in the order of their index, in parts of which a block copies rows as
   * they lie. */
  bool gathered_trees() {
    int closest = inner();
    for (int d = a.kept; d <= inner(); d++)
      if (magnitude(a.dim[d].stride) < magnitude(a.dim[closest].stride)) closest = d;
    const Size stage = tree_stage(tree_unit(row.bytes) * row.bytes, (int)row.moved) / row.bytes;
    Size share = TREE_PART_LEAST;
    while (2 * share <= stage && a.outputs * up(a.count, 2 * share) >= 4 * multiprocessors)
      share *= 2;
    Size inside = TREE_ROWS_LEAST; /* of that dimension, times so many rows */
    for (int d = closest + 1; d <= inner() && inside <= stage; d++) inside *= a.dim[d].size;
    while (inside > share && 2 * share <= stage) share *= 2;
    const bool is_line = closest == inner() || inside > share;
    a.boxed = is_line ? 1 : inner() - closest;
    a.box = is_line ? a.dim[inner()].size : inside / TREE_ROWS_LEAST;
    if (closest == inner())
      a.across = 0; /* in lines */
    else if (is_line)
      a.across = 1;
    else
      a.across = TREE_STAGED_THREADS / tree_along(a.box, row.bytes, TREE_STAGED_THREADS);
    const Size most = row.bytes < 4 ? TREE_LINE_SMALL : TREE_LINE_BYTES;
    const bool is_packed =
        reduced_stride() == row.bytes && (a.reduced == 1 || a.box * row.bytes > most);
    if (!is_native() || a.where || a.starts || is_packed || (is_line && a.box > INT32_MAX))
      return false;
    while (a.outputs * climb_tickets(up(a.count, share)) > AXES_TICKETS) {
      if (2 * share > stage) return false;
      share *= 2;
    }
    a.share = share;
    a.split = (int)up(a.count, share);
    const Size blocks = a.outputs * a.split;
    take(row.staged, blocks < (1 << 30) ? blocks : 1 << 30,
         a.split > 1 ? (size_t)(a.outputs * climb_nodes(a.split)) : 0);
    out.threads = TREE_STAGED_THREADS;
    return true;
  }
  /* Columns, two or more for each of all threads, or a half of short ones: of 10 rows of ten
   * million halves products took 767 µs on an H200 by several threads each, and 101 by one; of 1000
   * rows of 100000 118, and 266. */
  bool are_lines() const {
    const Size threads = (Size)multiprocessors * TREE_FEW_BLOCKS * TREE_FEW_THREADS;
    return a.reduced == 1 && kept_stride() < magnitude(reduced_stride()) &&
           a.count <= tree_leaves(row.bytes) << TREE_LINE_LEVELS &&
           a.outputs >= (a.count <= TREE_LINE ? threads / 2 : 2 * threads);
  }
  /* Outputs of few elements: of as few outputs a thread has one. */
  bool trees_of_few() {
    if (!is_native() || a.where || a.starts || a.count < 1 || a.outputs > INT32_MAX) return false;
    if (a.count > tree_leaves(row.bytes) ? !are_lines() : a.reduced > TREE_FEW_DIMS) return false;
    int leaves = 2;
    while (leaves < a.count && leaves < tree_leaves(row.bytes)) leaves *= 2;
    const Size single = up(a.outputs, TREE_FEW_THREADS);
    const Size full = up(single, tree_few(leaves * row.bytes));
    const Size fair = (Size)multiprocessors * TREE_FEW_BLOCKS;
    take(row.shallow, full > fair ? full : single < fair ? single : fair, 0);
    out.threads = TREE_FEW_THREADS;
    return true;
  }
  /* A warp's parts, with what begins and ends them. */
  bool trees_by_warps(Size group) {
    Size share = best_share(group, a.count, [=](Size elements) {
      const Size parts = a.outputs * up(a.count, elements);
      const Size bytes = (elements < a.count ? elements : a.count) * row.bytes;
      const Size waves = up(parts, (Size)multiprocessors * TREE_WARPS);
      return (double)waves * (double)(bytes + TREE_PART_BESIDE);
    });
    while (share < a.count && a.outputs * climb_tickets(up(a.count, share)) > AXES_TICKETS)
      share *= 2;
    a.split = (int)up(a.count, share);
    const Size blocks = a.outputs * a.split;
    take(is_native() ? row.tile_rows : row.any_rows, blocks < (1 << 30) ? blocks : 1 << 30,
         a.split > 1 ? (size_t)(a.outputs * climb_nodes(a.split)) : 0);
    out.threads = GPR_WARP;
    return true;
  }
  /* Trees keep the order of the index: threads across outputs where those lie closer together, or
   * down short ones, and else warps. */
  bool trees() {
    if (staged_trees() || trees_of_few()) return true;
    const Size length = GPR_WARP * tree_packet(row.bytes); /* of a warp's row */
    const bool across = a.outputs > 1 && kept_stride() < magnitude(line_stride(length));
    if (!across && a.count >= TREE_WARPS_LEAST)
      return gathered_trees() || trees_by_warps(length * tree_rows(row.bytes));
    const Size steps = a.count > 0 ? up(a.count, tree_leaves(row.bytes)) : 1;
    Size wide = across ? (Size)TREE_ACROSS : 1;
    while (across && wide >= 2 * a.outputs) wide /= 2;
    while (across && wide < TREE_THREADS && wide < a.outputs && TREE_THREADS / wide > steps)
      wide *= 2;
    /* As many threads as there are runs: of 263 float16, 9 of 16 had one. */
    if (!across && a.count) wide = TREE_THREADS / up(a.count, tree_run(row.bytes));
    if (wide < 1) wide = 1;
    a.team = (int)(across ? wide : -wide);
    a.rows = (int)(TREE_THREADS / wide);
    a.tiles = up(a.outputs, wide);
    a.split = across ? tree_parts(a.tiles, a.rows, steps) : 1;
    a.crowd = tree_crowd(a.split, a.rows);
    const Size blocks = a.tiles * a.split, groups = up(a.split, (Size)a.crowd);
    return take(is_native() ? row.tile : row.any, blocks < (1 << 30) ? blocks : 1 << 30,
                a.split > 1 ? (size_t)((a.tiles * (a.split + groups)) * wide) : 0) &&
           (out.threads = TREE_THREADS);
  }

  bool is_any() const { return a.count > 0 && a.outputs > 0; }
  bool is_along() const { /* in the order that lies there, whatever counts of it */
    return is_native() && is_numbered() && is_in_order() && !a.starts && is_any();
  }
  bool is_easy() const { return is_along() && !a.where && !a.skip; }
  /* One element each: a NaN that does not count leaves the sum of nothing. */
  bool are_single_sums() const {
    return a.op == GPR_OP_SUM && a.skip && a.count == 1 && !a.where && !a.starts && is_native() &&
           is_numbered() && is_any();
  }
  bool takes(int variant) {
    if (row.is_tree != (variant == GPR_VARIANT_TREES)) return false;
    switch (variant) {
      case GPR_VARIANT_TREES: return trees();
      case GPR_VARIANT_SEGMENTS: return is_native() && is_numbered() && segments();
      case GPR_VARIANT_PACKED: return (is_easy() || are_single_sums()) && packed();
      case GPR_VARIANT_SHALLOW: return row.shallow && is_along() && shallow();
      case GPR_VARIANT_STAGED:
        return is_along() && !a.where && (!a.skip || row.staged_skips) &&
               (narrow || !prefers_brief(a.skip ? row.counted_bytes : row.staged_bytes)) &&
               staged();
      case GPR_VARIANT_COLUMNS:
        return is_along() && !a.where && has_columns() && columns(waves_of_brief());
      case GPR_VARIANT_ROWS: return is_along() && !a.where && !prefers_brief(0) && rows();
      case GPR_VARIANT_TILE_ROWS: return is_any() && !prefers_brief(0) && tile_rows();
      case GPR_VARIANT_BRIEF: return is_any() && brief();
      default: return tile();
    }
  }
  void clear() {
    a.length = a.runs = a.tiles = a.groups = a.full = a.single = a.drawn = 0;
    a.share = 0;
    a.split = a.team = a.rows = 1;
    a.pitch = a.crowd = a.queue = a.queue_apart = a.phases = 0;
    a.across = a.neighbours = a.down = a.beyond = a.boxed = a.runners = 1;
  }
  /* The one that is wanted, or the first that takes the layout. */
  bool select() {
    clear();
    narrow = prefers_staged();
    for (int v = GPR_ANY_VARIANT + 1; v < GPR_VARIANT_END; v++) {
      clear();
      if ((wanted == GPR_ANY_VARIANT || v == wanted) && takes(v)) return true;
    }
    return false;
  }
};

GPR_CLOSE
#endif
