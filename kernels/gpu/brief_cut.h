/* Which outputs are so short that a thread or some lanes of a warp finish them: brief.cuh's.
 *
 * 7 outputs of 144 elements took a warp of the tile's kernel 1,900 instructions on an H200: states
 * in memory, and the places of boxes and runs that these do not have. */
#pragma once

#include "tile_cut.h"

GPR_OPEN

struct BriefCut : TileCut {
  enum { COLUMN_LANES = 8 };
  /* Whether two neighbouring outputs lie in one word of 32 bits, of every element. */
  bool are_pairs() const {
    Size places = (Size)(uintptr_t)a.data | a.dim[a.kept - 1].size * row.bytes;
    for (int d = 0; d <= inner(); d++)
      if (d != a.kept - 1) places |= a.dim[d].stride;
    return row.brief_pairs && is_native() && !a.where && a.dim[a.kept - 1].stride == row.bytes &&
           places % 4 == 0;
  }
  /* Lanes by what lies closest together in memory, of one warp. */
  void set_brief_lanes(Size slots) {
    const Size width = a.kept ? a.dim[a.kept - 1].size : 1;
    a.across = a.neighbours = a.down = 1;
    if (kept_stride() >= magnitude(reduced_stride())) {
      for (int down = 2; down <= GPR_WARP; down *= 2)
        if (rows_time(down) < rows_time(a.down)) a.down = down;
      while (a.down < GPR_WARP && a.outputs * a.down < slots * AXES_THREADS / 4 &&
             8 * a.down <= a.count)
        a.down *= 2;
      /* Of rows of 20, 40 and 100 floats variances took 128, 135 and 64 µs by as many lanes as
       * read best, and 43, 54 and 41 by fewer. */
      while (a.down > 1 && a.count < row.brief_share * a.down &&
             a.outputs * a.down >= slots * AXES_THREADS)
        a.down /= 2;
      return;
    }
    if (width * row.bytes >= 32 || width >= a.outputs) {
      /* Outputs side by side. As long as all lanes are at work at once, more of them are sooner:
       * sums of 593 rows of 32182 floats took 29 µs on an H200 by two each and 39 by four, of 1222
       * of 13269 bfloat16 29 by two and 20 by four. */
      if (are_pairs()) a.groups = 2;
      while (a.down < COLUMN_LANES && 2 * a.outputs / a.groups * a.down <= slots * AXES_THREADS &&
             a.count >= 4 * row.brief_loads * a.down)
        a.down *= 2;
      return;
    }
    a.neighbours = (int)width;
    while (a.across < width) a.across *= 2;
    while (2 * a.across * a.down <= GPR_WARP && 2 * a.down * FEW_SHORT <= a.count) a.down *= 2;
  }
  /* So many elements a lane folds in a short time; of up to four times as many it is ready no later
   * than a tile: of 300 rows of 70001 bytes brief took 18 µs on an H200 and tiles 27. */
  Size each() const { return row.brief_each; }
  bool are_outputs_closer() const { return kept_stride() < magnitude(reduced_stride()); }
  Size brief_threads() const { return a.outputs / (a.neighbours * a.groups) * a.across * a.down; }
  /* FEW_COLUMNS or more, of three quarters of each() elements a lane or less, are always enough,
   * since blocks of tiles would share them: sums of 1000 rows of 300 floats took 9.1 µs on an H200
   * as tiles and 6.7 as brief ones (3000 rows of 300, which are refused, 9.4 and 14.0); and of sums
   * so are those of each(): of 4,000 random ones of 8 to 80 MB in rows of 4 to 256 KB those of 1448
   * to 2047 rows of floats took 0.7 to 0.97 of the time of tiles and columns, of up to 2895 1.0. So
   * are columns for half of all threads. Of variances, whose tiles are slow, a quarter of all
   * threads is enough, or a sixteenth for twice each() elements: of 5000 rows of 600 doubles, which
   * are refused, they took 32 and 65. Else there is work for a quarter of all threads, of rows of
   * up to four times each() elements a lane, of columns of each(), or an eighth for sums. slots are
   * the blocks that fit. */
  enum { FEW_COLUMNS = 128 };
  bool is_enough(Size slots) const {
    const Size threads = brief_threads(), all = slots * AXES_THREADS, most = each() * a.down;
    if (are_outputs_closer() && a.groups == 1 && a.outputs >= FEW_COLUMNS &&
        4 * a.count <= (row.joint ? 4 : 3) * most)
      return true;
    if (row.brief_spreads)
      return 4 * threads >= all || (a.count <= 2 * most && 16 * threads >= all);
    if (are_outputs_closer())
      return 2 * threads >= all || (a.count <= most && (row.joint ? 8 : 4) * threads >= all);
    return a.count <= 4 * most && 4 * threads >= all;
  }
  /* Its time over that of reading with all threads at work. Lanes down read shorter parts of rows:
   * on an H200, by one, two, four and eight, 1, 1.1, 1.25 and 1.4 times. Single columns of 16 bits
   * are read by half words, 1.4 times. */
  double brief_waves() const {
    const Size threads = brief_threads(),
               all = multiprocessors * (Size)row.brief_blocks * AXES_THREADS;
    double pace = row.bytes == 2 && a.groups == 1 ? 1.4 : 1;
    for (int lanes = a.down; lanes > 1; lanes /= 2) pace += 0.14;
    return pace * time_of(threads, all, 1, 0) * (double)all / (double)threads;
  }
  /* Variances are told by lanes where they are of the numbers' own mean. */
  bool are_told() const { return !row.brief_spreads || (!a.means && a.ddof < (double)a.count); }
  bool brief() {
    const Size slots = (Size)multiprocessors * row.brief_blocks;
    gpr_program *const program = of_elements(row.brief, row.convert_brief);
    if (!program || a.starts || a.count >> 30) return false; /* elements are counted in 32 bits */
    a.groups = 1;
    set_box();
    if (a.boxed > 1 || runs_of_box() != 1 || (row.is_ordered && a.dim[inner()].place < 0))
      return false;
    if (a.count > row.brief_alone) set_brief_lanes(slots);
    const Size most = row.brief_spreads ? row.brief_alone : (int)FEW_SHORT;
    const bool alone = a.across * a.down == 1 && a.count <= most;
    if (!alone && !are_told()) return false;
    if (a.count > FEW_SHORT && !is_enough(slots) && !wanted) return false;
    a.team = alone ? 0 : a.across * a.down;
    if (!a.team) a.groups = 1;
    const Size blocks =
        up(a.outputs / (a.neighbours * a.groups), !a.team ? AXES_THREADS : AXES_THREADS / a.team);
    return take(program, blocks < 16 * slots ? blocks : 16 * slots, 0);
  }
};

GPR_CLOSE
