/* How trees are cut, which keep the order of the index: outputs a block, a thread or a warp. The
 * host's. */
#pragma once

#include "rows_cut.h"

GPR_OPEN

struct TreesCut : RowsCut {
  bool is_plain() const { return is_native() && !a.where && !a.starts; }
  /* For parts of so many elements. */
  bool has_tickets(Size share) const {
    return a.outputs * climb_tickets(up(a.count, share)) <= AXES_TICKETS;
  }
  /* Blocks, which go on to others' work, and nodes that they leave to each other. */
  bool take_tree(gpr_program *program, int threads, Size blocks, Size nodes) {
    take(program, blocks < (1 << 30) ? blocks : 1 << 30, (size_t)nodes);
    out.threads = threads;
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
  /* How many blocks share each of so many tiles of outputs. A step is as many elements as a leaf of
   * a thread has; `high` threads of a block fold a share of them each, a power of two of steps.
   * Half of the blocks that fit read as fast as all; they end apart (a sixteenth), and of several
   * the last one reads what the others leave. 1 where there are too few tickets. */
  int tree_parts(Size tiles, Size high, Size steps) const {
    Size most = 1024;
    while (tiles * climb_tickets(most, CLIMB_BLOCKS) > AXES_TICKETS) most /= 2;
    const Size resident = (Size)multiprocessors * TREE_BLOCKS;
    const auto parts = [=](Size share) { return up(steps, share * high); };
    const auto time = [=](Size share) {
      const Size bytes = (share < steps ? share : steps) * tree_leaves(row.bytes) * row.bytes;
      Size last = 0;
      for (Size many = parts(share); many > 1; many = up(many, CLIMB_BLOCKS))
        last += up(many < CLIMB_BLOCKS ? many : (Size)CLIMB_BLOCKS, high) * (Size)row.state +
                TREE_THREAD_BESIDE;
      return time_of(tiles * parts(share), resident, (double)bytes, TREE_THREAD_BESIDE) +
             (double)bytes / 16 + (double)last;
    };
    Size least = 1;
    while (parts(least) > most) least *= 2;
    return (int)parts(best_share(least, steps, time));
  }
  /* From one line of at least so many elements to the next, or between the elements of one. */
  Size line_stride(Size least) const {
    int d = inner();
    for (Size length = a.dim[d].size; length < least && d > a.kept; length *= a.dim[d].size) d--;
    return a.dim[d].stride;
  }
  /* Outputs behind each other along the last kept dimension, or nearly so, of which a block takes
   * several, or a long one; as many as leave all blocks the same. */
  bool staged_trees() {
    const Size step = a.count > 1 ? reduced_stride() : row.bytes;
    const Size wide = (a.count - 1) * step + row.bytes;
    const Size batch = a.kept ? a.dim[a.kept - 1].size : 1;
    const Size bytes = batch > 1 ? a.dim[a.kept - 1].stride : wide, between = bytes - wide;
    const bool are_near = between >= 0 && between < SECTOR && bytes % row.bytes == 0;
    if (!is_plain() || a.reduced != 1 || a.count < 2 || !are_near) return false;
    if (step != row.bytes && step != 2 * row.bytes) return false;
    if (a.outputs < multiprocessors && bytes > 4096) return false;
    if (batch < a.outputs && batch * bytes < TREE_STAGED_BATCH) return false;
    const Size pitch = bytes / row.bytes;
    const Size fit = tree_team(a.count, pitch, row.bytes, tree_unit(row.bytes), (Size)row.moved);
    if (fit < (bytes > 4096 ? TREE_STAGED_LEAST : 1)) return false;
    const Size slots = (Size)multiprocessors * TREE_STAGED_BLOCKS;
    const Size fair = up(a.outputs, up(up(a.outputs, fit), slots) * slots), each = up(batch, fair);
    a.per = batch;
    a.team = (int)up(batch, each);
    a.pitch = (int)pitch, a.apart = (int)(step / row.bytes);
    a.tiles = a.outputs / batch * each;
    return take_tree(row.staged, TREE_STAGED_THREADS, a.tiles, 0);
  }
  /* Parts of so many leaves of each output, whose roots climb (climb.cuh). */
  bool take_parts(gpr_program *program, int threads, Size batches, Size share) {
    a.share = share;
    a.split = (int)up(a.count, share);
    return take_tree(program, threads, batches * a.split,
                     a.split > 1 ? a.outputs * climb_nodes(a.split) : 0);
  }
  /* Outputs that do not lie in the order of their index, in parts of which a block copies rows as
   * they lie. */
  bool gathered_trees() {
    if (!is_plain() || a.count < 1) return false;
    int closest = inner();
    for (int d = a.kept; d <= inner(); d++)
      if (a.dim[d].stride &&
          (!a.dim[closest].stride || magnitude(a.dim[d].stride) < magnitude(a.dim[closest].stride)))
        closest = d;
    const Size stage = tree_stage(tree_unit(row.bytes) * row.bytes, (int)row.moved) / row.bytes;
    Size share = TREE_PART_LEAST;
    while (2 * share <= stage && a.outputs * up(a.count, 2 * share) >= 4 * multiprocessors)
      share *= 2;
    Size inside = TREE_ROWS_LEAST; /* of that dimension, times so many rows */
    for (int d = closest + 1; d <= inner() && inside <= INT32_MAX; d++) inside *= a.dim[d].size;
    while (inside > share && 2 * share <= stage) share *= 2;
    if (closest < inner() && inside > share && trees_beside(closest, stage)) return true;
    const bool is_line = closest == inner() || inside > share;
    a.boxed = is_line ? 1 : inner() - closest;
    a.box = is_line ? a.dim[inner()].size : inside / TREE_ROWS_LEAST;
    a.across = 1;
    if (!is_line)
      a.across = TREE_GATHERED_THREADS / tree_along(a.box, row.bytes, TREE_GATHERED_THREADS);
    const Size most = row.bytes < 4 ? TREE_LINE_SMALL : TREE_LINE_BYTES;
    const bool is_packed =
        reduced_stride() == row.bytes && (a.reduced == 1 || a.box * row.bytes > most);
    if (is_packed || (is_line && a.box > INT32_MAX)) return false;
    while (!has_tickets(share))
      if ((share *= 2) > stage) return false;
    a.pitch = is_line ? bytes_of_pieces() : 0;
    a.packets = closest == inner() ? TREE_BY_LINES : TREE_BY_ROWS;
    return take_parts(row.gathered, TREE_GATHERED_THREADS, a.outputs, share);
  }
  /* Panels (tree_beside.cuh): parts of neighbouring rows, a row being what is numbered inside the
   * dimension whose elements lie closest; as many of them as have TREE_ROWS_BYTES side by side, or
   * fewer, whose parts are longer, where there would be too many parts. */
  bool trees_beside(int closest, Size stage) {
    enum { LEAST = 4 };
    a.box = 1;
    a.boxed = inner() - closest;
    for (int d = closest + 1; d <= inner(); d++) a.box *= a.dim[d].size;
    if (a.box > INT32_MAX / 2 || magnitude(a.dim[closest].stride) >= SECTOR) return false;
    const Size unit = tree_unit(row.bytes),
               room = (TREE_ROOM - stage * row.bytes) / (Size)row.moved;
    Size wide = TREE_ROWS_BYTES / row.bytes, share = 1;
    while (wide > a.dim[closest].size) wide /= 2;
    const auto fits = [&](Size share) {
      return wide * (share + 16 / row.bytes) <= stage && (wide | 1) * up(share, unit) <= room &&
             share < a.box;
    };
    while (fits(2 * share)) share *= 2;
    while (!has_tickets(share) && wide > LEAST)
      for (wide /= 2; fits(2 * share);) share *= 2;
    if (wide < LEAST || !has_tickets(share)) return false;
    a.across = (int)wide;
    a.packets = TREE_BY_PANELS;
    take_parts(row.gathered, TREE_GATHERED_THREADS, a.outputs, share);
    const Size panels = up(a.count / a.box, wide) * up(a.box, share);
    if (out.blocks > a.outputs * (panels + 1)) out.blocks = a.outputs * (panels + 1);
    return true;
  }
  /* As many bytes as all lines begin and end with a multiple of, up to 16. */
  int bytes_of_pieces() const {
    if (reduced_stride() != row.bytes) return row.bytes;
    const Size places = places_of(inner()) | a.dim[inner()].size * row.bytes | 16;
    return (int)(places & -places);
  }
  /* Few tall columns in narrow rows, or one, of which a block copies some rows. */
  bool narrow_trees() {
    const Size wide = reduced_stride();
    if (!is_plain() || a.reduced != 1 || wide <= row.bytes || wide > TREE_NARROW) return false;
    const gpr_axes_dim beside = a.kept ? a.dim[a.kept - 1] : gpr_axes_dim();
    const bool are_several = beside.stride > 0 && beside.stride < wide;
    const Size columns = are_several ? beside.size : 1;
    if (are_several && (columns - 1) * beside.stride + row.bytes > wide) return false;
    for (int d = 0; d < a.kept - are_several; d++)
      if (magnitude(a.dim[d].stride) < wide) return false;
    const Size unit = tree_unit(row.bytes), stage = tree_stage(unit * row.bytes, (int)row.moved);
    const Size each = unit * wide, nodes = columns * (Size)row.moved;
    const Size stage_units = stage / each, node_units = (TREE_ROOM - stage) / nodes;
    const Size most = unit * (stage_units < node_units ? stage_units : node_units);
    const Size batches = a.outputs / columns;
    Size share = unit * TREE_NARROW_UNITS;
    if (share > most || a.count < share) return false;
    while (2 * share <= most && batches * up(a.count, 2 * share) >= 4 * multiprocessors) share *= 2;
    while (!has_tickets(share))
      if ((share *= 2) > most) return false;
    a.neighbours = (int)columns;
    a.step = wide, a.where_step = are_several ? beside.stride : 0;
    a.packets = TREE_BY_COLUMNS;
    return take_parts(row.gathered, TREE_GATHERED_THREADS, batches, share);
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
    if (!is_plain() || a.count < 1 || a.outputs > INT32_MAX) return false;
    if (a.count > tree_leaves(row.bytes) ? !are_lines() : a.reduced > TREE_FEW_DIMS) return false;
    int leaves = 2;
    while (leaves < a.count && leaves < tree_leaves(row.bytes)) leaves *= 2;
    const Size single = up(a.outputs, TREE_FEW_THREADS);
    const Size full = up(single, tree_few(leaves * row.bytes));
    const Size fair = (Size)multiprocessors * TREE_FEW_BLOCKS;
    const Size blocks = full > fair ? full : single < fair ? single : fair;
    return take_tree(row.shallow, TREE_FEW_THREADS, blocks, 0);
  }
  /* Long outputs of whole packets side by side (flat_tree.cuh). */
  bool trees_by_chunks() {
    const Size groups = up(a.count * row.bytes, TREE_GROUP);
    if (!is_plain() || a.skip || a.reduced != 1 || reduced_stride() != row.bytes ||
        places_of(a.kept) % 16 || groups < TREE_GROUPS_LEAST)
      return false;
    const Size warps = FLAT_THREADS / GPR_WARP, all = up(a.outputs * groups, warps);
    const Size most = (Size)multiprocessors * TREE_CHUNK_BLOCKS, blocks = all < most ? all : most;
    int each;
    const Size chunks = chunks_of(a.outputs, groups, blocks * warps, each);
    const Size nodes = chunks > 1 ? a.outputs * climb_nodes(chunks) : 0;
    return a.outputs * climb_tickets(chunks) <= AXES_TICKETS &&
           take_tree(row.rows, FLAT_THREADS, blocks, nodes);
  }
  /* A warp's parts, with what begins and ends them. */
  bool trees_by_warps(Size group) {
    Size share = best_share(group, a.count, [=](Size elements) {
      const Size parts = a.outputs * up(a.count, elements);
      const Size bytes = (elements < a.count ? elements : a.count) * row.bytes;
      const Size waves = up(parts, (Size)multiprocessors * TREE_WARPS);
      return (double)waves * (double)(bytes + TREE_PART_BESIDE);
    });
    while (!has_tickets(share)) share *= 2;
    return take_parts(is_native() ? row.tile_rows : row.any_rows, GPR_WARP, a.outputs, share);
  }
  /* Trees keep the order of the index: threads across outputs where those lie closer together, or
   * down short ones, and else warps. Few short ones are gathered all the same: to work their places
   * out one after the other, products of 50 lines of 9 floats took a thread 48 µs on an H200, of
   * one output or of 1000, which take 7 and 13; of 5000 outputs of 10 lines 26 and 35. */
  bool trees() {
    if (trees_by_chunks() || trees_of_few() || staged_trees() || narrow_trees()) return true;
    const Size length = GPR_WARP * tree_packet(row.bytes); /* of a warp's row */
    const bool across = a.outputs > 1 && kept_stride() < magnitude(line_stride(length));
    const bool is_long = a.count >= TREE_WARPS_LEAST;
    const bool are_few = a.outputs <= (Size)multiprocessors * TREE_STAGED_BLOCKS;
    if (!across && (is_long || are_few) && gathered_trees()) return true;
    if (!across && is_long) return trees_by_warps(length * tree_rows(row.bytes));
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
    return take_tree(is_native() ? row.tile : row.any, TREE_THREADS, a.tiles * a.split,
                     a.split > 1 ? a.tiles * climb_nodes(a.split, CLIMB_BLOCKS) * wide : 0);
  }
};

GPR_CLOSE
