/* Which kernel takes which shape, and how it is cut: the host's. */
#pragma once

#include "trees_cut.h"

GPR_OPEN

struct AxesCut : TreesCut {
  bool narrow = false; /* whether it prefers_staged() */
  /* Rows of `least` bytes and more that lanes of a warp finish sooner than what is tried before;
   * with masks too: of seven random shapes with rows of 1 to 8 KB they took half to four fifths of
   * the time of packets of tiles. */
  bool prefers_brief(Size least) {
    const Size bytes = a.count * row.bytes;
    const bool are_uneven = row.uneven_bytes && bytes % row.uneven_bytes;
    /* Extremes of complex numbers and times have no rows where NaN is skipped. */
    const Size most =
        a.skip && !row.rows_skipping && !row.is_ordered ? 2 * row.brief_bytes : row.brief_bytes;
    return !wanted && is_native() && bytes <= most && !are_long_packets() &&
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
   * brief's time on an H200. So many strips a multiprocessor are enough: of 26 rows of 1 MB sums of
   * floats took 12.2 µs by brief and 9.1 so, of 50 the same. Where extremes and places skip
   * NaN, or of doubles under masks, COUNTED_ROWS are the most: of 17 rows of 1.5 MB the greatest
   * halves that are no NaN took 19 µs by brief and 24 so, of 40 rows of 1.3 MB of doubles under a
   * mask sums 20 and 24; but of 26 of 4 MB the greatest floats that are no NaN 38 and 30. */
  enum { STRIPS_ENOUGH = 384, STRIPS_OF_FEW = 160, FEW_ROWS = 16, COUNTED_ROWS = 20 };
  /* Columns side by side, or up to so many elements from one to the next: of every second one
   * sectors are read whole even so. Of 64 MiB in 12 rows sums of every second float took 34 µs on
   * an H200 by brief, and take 23, but maxima 18 and 22 to 24; of every fourth half 22 and 30. */
  enum { COLUMNS_APART = 4 };
  bool are_apart() const { return a.dim[a.kept - 1].stride != row.bytes; }
  bool are_close() const {
    const Size step = a.dim[a.kept - 1].stride;
    return !are_apart() ||
           (step % row.bytes == 0 && step > 0 && step <= COLUMNS_APART * row.bytes &&
            (a.count == 1 || reduced_stride() > step));
  }
  bool shallow() {
    if (!a.kept || a.reduced != 1 || a.count > FEW_MOST || !are_close() || narrow || !are_told() ||
        (are_brief_ones() && a.skip) || (!wanted && are_apart() && a.count > FEW_ROWS))
      return false;
    const Size width = a.dim[a.kept - 1].size, strip = row.strip_bytes / row.bytes;
    a.tiles = a.outputs / width * up(width, strip);
    const bool is_full = 2 * a.outputs >= a.tiles * strip;
    const Size enough = a.count <= FEW_ROWS ? STRIPS_OF_FEW : STRIPS_ENOUGH;
    if (!wanted && (!is_full || a.tiles < multiprocessors * enough)) return false;
    const bool alone = a.count == 1 && !a.has_initial;
    const bool all = !(a.where || a.skip) || (alone && are_single_sums());
    const bool skips = !all && row.skipping && only_skips(a);
    const bool whole = all && (alone || (a.count > 1 && a.count <= ROWS_OF_STRIPS)),
               several = whole || (skips && a.count == 2);
    gpr_program *const program = whole   ? row.strips
                                 : all   ? row.shallow
                                 : skips ? row.skipping
                                         : row.counted;
    const bool are_slow = program == row.counted && row.bytes != 4 &&
                          (a.where ? row.bytes == 8 : !row.zeros_are_nothing);
    if (!wanted && a.count > (are_slow ? (int)COUNTED_ROWS : row.strip_rows)) return false;
    return program &&
           take(program,
                up(a.tiles,
                   (Size)AXES_THREADS * (several ? strips_of((int)a.count, row.strip_bytes) : 1)),
                0);
  }

  bool is_spread() const { return a.op == GPR_OP_VAR || a.op == GPR_OP_STD; }
  /* Of 43 million single int32, variances took 245 µs as packed rows and 105 so. */
  bool are_strips_of_ones() {
    const bool all = a.count == 1 && !wanted && is_spread() && shallow();
    clear();
    return all;
  }

  bool are_packets() const { /* rows of whole aligned ones, any distance apart */
    return a.reduced == 1 && a.kept == 1 && reduced_stride() == row.bytes &&
           (places_of(1) | a.count * row.bytes) % 16 == 0;
  }
  bool are_long_packets() const { /* that rows() takes */
    return are_packets() && a.count * row.bytes >= row.packets_bytes && !a.where &&
           (!a.skip || row.rows_skipping);
  }
  bool begin_with_packet() const { return (uintptr_t)a.data % 16 == 0; }

  /* Rows one behind the other, whole ones in a packet, or of two packets or four. */
  bool packed() {
    const Size bytes = a.count * row.bytes;
    if (!row.packed || are_brief_ones() || !are_side_by_side() || !begin_with_packet() ||
        bytes > row.packed_bytes || bytes & (bytes - 1))
      return false;
    /* Lanes that share a row end quickly only without an initial value and without a division. */
    if (bytes > 16 && (a.has_initial || divides(a.op))) return false;
    return take(row.packed, up(a.outputs * bytes / 16 + 1, AXES_THREADS * PACKED_LOADS), 0);
  }

  /* Columns side by side of which a row has less than two sectors of 32 bytes: a thread's loads
   * would be of one each. From how many rows on they are staged is what sums and maxima of 7,705
   * random ones of up to 8 KB, 2 to 256 MB in all, took an H200 so and as columns of a few rows: 12
   * rows of 4 floats 46 and 61 µs. Where NaN does not count, 40 rows of 3 floats took 30 µs, with 1
   * % of it 41, and take 22. */
  enum { NARROW_ROW = 64, NARROW_BYTES = 4 << 20, NARROW_LEAST = 7, SECTOR = 32 };
  bool are_narrow() const {
    if (a.kept != 2 || a.reduced != 1 || a.dim[1].stride != row.bytes) return false;
    const Size bytes = a.dim[1].size * row.bytes;
    return bytes < NARROW_ROW && reduced_stride() == bytes && a.dim[0].stride == a.count * bytes;
  }
  bool prefers_staged() {
    if (wanted || !row.staged_skips || !are_narrow() || a.where) return false;
    const Size wide = a.dim[1].size * row.bytes, bytes = a.count * row.bytes;
    return a.count > NARROW_LEAST && a.count >= row.narrow * (wide - 8) &&
           bytes <= row.staged_most && a.outputs * bytes >= (Size)NARROW_BYTES &&
           !(wide > SECTOR && 4 * bytes >= row.staged_bytes && prefers_brief(0));
  }

  /* Rows one behind the other, with gaps, or of whole packets, or batches of narrow columns. Few of
   * them, which leave threads idle, have more lanes each: of 162 float16 the variance took 7.1 µs
   * on an H200, and takes 5.3. Of rows one behind the other and of batches a lane has more, since
   * most of a row's work is to bring its lanes' together and to finish it: sums of (488, 22, 75,
   * 14) floats along axis 2 took 19.6 µs by four lanes an output and 15.8 by two. But of 16 bits
   * these are more than FEW_MOST elements, a variance's bounds (moment_outputs.cuh) are for
   * STAGED_BYTES, and rows with a pitch may share banks so: places in 256 floats took 47 µs
   * and 52 (but in 600 62 and 45). Rows with gaps that begin a multiple of 32 bytes apart would,
   * too: every second of 128 halves took 76 µs so, and takes 29 by a pitch of an odd multiple of
   * `team` packets. */
  enum { LANE_BYTES = 16, FEW_BYTES = 256 };
  bool staged() {
    const Size bytes = a.count * row.bytes; /* of an output */
    const bool by_batches = narrow || (wanted && are_narrow());
    const bool gaps = have_gaps() && !by_batches && !are_packets();
    if (!row.staged || bytes > row.staged_most || are_brief_ones() ||
        (are_long_packets() && !wanted) ||
        !(by_batches || gaps || are_packets() ||
          (are_side_by_side() && (bytes % 16 || begin_with_packet()))))
      return false;
    a.neighbours = by_batches ? (int)a.dim[1].size : 1;
    a.length = gaps ? a.dim[0].stride / row.bytes : a.count * a.neighbours;
    a.apart = gaps ? (int)(reduced_stride() / row.bytes) : a.neighbours;
    a.team = 1;
    const Size batch = a.length * row.bytes, batches = a.outputs / a.neighbours;
    Size whole = 16; /* batches that end where a packet does: a tile has a multiple of them */
    while (whole > 1 && whole / 2 * batch % 16 == 0) whole /= 2;
    const bool by_packets = bytes % 16 == 0 && !by_batches, pitched = gaps || by_packets;
    const Size each =
        row.staged_skips && row.bytes >= 4 && !pitched ? (Size)FEW_BYTES : (Size)STAGED_BYTES;
    while (a.team * each < bytes) a.team *= 2;
    while (a.team < GPR_WARP && 2 * a.team * LANE_BYTES <= bytes &&
           2 * a.team * a.outputs <= (Size)multiprocessors * AXES_THREADS)
      a.team *= 2;
    if (gaps ? batch % 32 == 0 : by_packets) {
      const Size wide = (a.count - 1) * reduced_stride() + row.bytes;
      a.pitch = (int)up((Size)((uintptr_t)a.data % 16) + wide, 16);
      if (a.team < 8)
        while (a.pitch % (2 * a.team) != a.team) a.pitch++;
    }
    /* One round of all threads. */
    const Size teams = AXES_THREADS / a.team / a.neighbours / whole * whole;
    const Size multiple = teams > whole ? teams : whole;
    const Size fit = a.pitch ? row.staged_packets / a.pitch : (row.staged_packets - 1) * 16 / batch;
    a.rows =
        (int)(fit / whole * whole < multiple ? fit / whole * whole : fit / multiple * multiple);
    if (!a.rows) return false;
    /* Tiles are dealt evenly to blocks: those of 3328 of 1841248 rows are 5 % more than blocks. */
    const Size slots = (Size)multiprocessors * row.staged_blocks;
    const Size waves = up(up(batches, a.rows), slots);
    const Size fair = up(up(batches, waves * slots), multiple);
    if (a.rows > fair * multiple) a.rows = (int)(fair * multiple);
    a.tiles = up(batches, a.rows);
    return take(row.staged, a.tiles, 0);
  }

  /* Blocks of pieces of long segments lie among blocks of short ones, which wait for latency. */
  bool segments() {
    if (!row.segments || !a.piece_bytes || !a.outputs) return false;
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

  bool is_any() const { return a.count > 0 && a.outputs > 0; }
  bool is_forward() const { return is_numbered() && is_in_order() && !a.starts && is_any(); }
  /* In the order that lies there, whatever counts of it. */
  bool is_along() const { return is_native() && is_forward(); }
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
      case GPR_VARIANT_PACKED:
        return (is_easy() || are_single_sums()) && !are_strips_of_ones() && packed();
      case GPR_VARIANT_SHALLOW: return row.shallow && is_along() && shallow();
      case GPR_VARIANT_STAGED:
        return is_along() && !a.where && (!a.skip || row.staged_skips) &&
               (narrow || !prefers_brief(a.skip ? row.counted_bytes : row.staged_bytes)) &&
               staged();
      case GPR_VARIANT_COLUMNS:
        return is_along() && !a.where && has_columns() && columns(waves_of_brief());
      case GPR_VARIANT_ROWS: return is_forward() && !prefers_brief(0) && rows();
      case GPR_VARIANT_TILE_ROWS: return is_any() && !prefers_brief(0) && tile_rows();
      case GPR_VARIANT_BRIEF: return is_any() && brief();
      default: return tile();
    }
  }
  void clear() {
    a.per = a.segments ? a.outputs / a.segments : a.outputs;
    a.length = a.runs = a.tiles = a.groups = a.full = a.single = a.drawn = 0;
    a.split = a.team = a.rows = 1;
    a.pitch = a.crowd = a.queue = a.queue_apart = a.packets = 0;
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
