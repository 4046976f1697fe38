/* How many outputs on the CPU are cut into tiles, and these shared out. */
#include "cpu_cut.h"

#include "../kernels/abi/lists.h"
#include "cpu.h"
#include "pack.h"

/* Tiles that have to be made stay in the second cache. */
enum { TILE_ELEMENTS = 16384, WHOLE_ELEMENTS = 32768 }; /* whole: of outputs that end there */
/* Of columns under a mask many rows pay, as far as the second cache goes, since what is copied of
 * them moves up in a tile, and of what no cache holds a page of each: sums of (4096, 4096) doubles
 * that count in runs of 512 took 10.7 ms on an Intel Xeon by two pages, and take 8.3. */
enum { MASKED_BYTES = 1 << 20, MASKED_ELEMENTS = 256 << 10 };
enum { MASKED_ROWS = 256 };
/* Rows of so many elements go one by one under a mask: those that count as a whole, or not at all,
 * are not copied. Sums of (4096, 4096) doubles, of which half of the rows counts, took 7.7 ms along
 * them on Zen 4, and take 4.8; of floats that all count 3.5 and 5.9. */
enum { MASKED_ROW = 2048 };
/* Short outputs go by blocks: enough for vectors, and few enough to share out evenly. Those of one
 * element each took twice the time in blocks of 512. Side by side they are read by pieces of rows:
 * of 4 KiB each, sums of (4096, 1024) doubles took 0.8 ms on two threads of Zen 4, of 2 KiB 1.1; on
 * one thread 1.3 and 1.7. */
enum { BLOCK_OUTPUTS = 512, BLOCK_ELEMENTS = 256 << 10, BLOCKS_PER_LANE = 4, ROW_BYTES = 4096 };
/* Columns that keep states between their rows, of small elements more (ROW_BYTES). 128 of them, a
 * quarter of a page of each row, took twice the time. */
enum { TALL_OUTPUTS = 512, STATE_BYTES = 512 << 10 };
/* Shorter runs are brought together in a tile, rather than taken where they lie, but for those of
 * rows that kernels take as one (gpr_tile's run). So are ribbons of fewer bytes that are copied by
 * words: argmax of (64, 256, 2) doubles took 21 us so and 25 direct, of (32, 512, 2) 21 and 14, of
 * (42, 256, 3), which takes two words a row, 33 and 24. */
enum { DIRECT_RUN = 256, DIRECT_OUTPUTS = 32, RIBBON_BYTES = 6 << 10 };
/* The same of sums, by bytes: short rows are turned into columns, and the lanes of a long one take
 * some hundred instructions to come together. Every second of (200, 4, 100) doubles along axis 2
 * took 118 to 183 us on Zen 4 where they lie, and take 26 to 36; two sums of 80,000 floats in runs
 * of 260 took 357, and take 70, in runs of 1000 118 and 70, of 80,000 doubles in runs of 298 282
 * and 107. */
enum { DIRECT_BYTES = 8 << 10 };
/* So many rows of no more bytes are quicker one after the other: of 20 bytes that lie apart, argmax
 * of 65536 rows took 0.61 ms, and 0.24 brought together; of 7 doubles 0.34 and 0.37. */
enum { NARROW_BYTES = 32, NARROW_ROWS = 64 };
/* Of columns that lie apart, kernels take what lies between as well, of so many rows of so many
 * bytes and if all their lines are read anyway: the greatest of every second of (3774, 1496)
 * doubles took 3.5 ms on an Intel Xeon brought together, and takes 2.1, of every sixth 1.18
 * and 1.03; but argmax of every second of (30000, 20) floats took 0.29 ms, and takes 0.18 brought
 * together. */
enum { APART_ROWS = 32, APART_WIDTH = 256, LINE_BYTES = 64 };
/* Rows of fewer elements are turned into columns. */
enum { LONG_ROW = 16 };
/* Of shorter rows, or of fewer rows side by side, tiles are made: these have quicker ways. */
enum { BROUGHT_ROW = 256, BROUGHT_SOON = 64, BROUGHT_ROWS = 64 };

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greatest_of(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t last_of(const gpr_dims *dims, const int64_t *values, int64_t none) {
  if (!dims->n) return none;
  return values[dims->n - 1] < 0 ? -values[dims->n - 1] : values[dims->n - 1];
}

static int lies_apart(const gpr_dims *dims, int64_t bytes) {
  return dims->n && dims->strides[dims->n - 1] != bytes;
}

/* Elements as kernels take them, but for where they lie and for NaN, which is left out if there is
 * any. */
static int lies_ready(const gpr_plan *p, const gpr_tiles *t) {
  return !(p->cast && !t->brought) && !p->swap && t->aligned && !p->axes->where;
}
/* Whether kernels take rows side by side of several runs at a time. */
static int may_have_runs(const gpr_plan *p, const gpr_tiles *t) {
  const int64_t across = last_of(&p->axes->kept, p->axes->kept.shape, 1);
  return t->side_by_side && p->row->side == GPR_LINES && p->axes->reduced.n > 1 && !t->masked &&
         across >= DIRECT_OUTPUTS;
}
/* Of the tile that the last dimensions make. */
static int64_t rows_of(const gpr_plan *p, const gpr_tiles *t) {
  const gpr_dims *reduced = &p->axes->reduced;
  const int64_t along = last_of(reduced, reduced->shape, 1);
  return t->runs ? along * reduced->shape[reduced->n - 2] : along;
}
/* Whether a kernel may bring them together by itself. */
static int may_be_brought(const gpr_plan *p, const gpr_tiles *t) {
  const int64_t across = last_of(&p->axes->kept, p->axes->kept.shape, 1);
  const int64_t along = rows_of(p, t);
  if (t->masked || p->axes->starts) return 0;
  if (!t->side_by_side) return along > (p->row->soon ? BROUGHT_SOON : BROUGHT_ROW);
  return p->row->side == GPR_LINES && along > BROUGHT_ROWS && across >= DIRECT_OUTPUTS;
}

/* Steps are whole elements: of complex numbers that are fields of records some are not. */
static int is_aligned(const gpr_plan *p) {
  const gpr_axes *a = p->axes;
  const gpr_dtype_info *type = &gpr_dtypes[p->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  int even = (uintptr_t)p->data % (uintptr_t)unit == 0;
  for (int d = 0; d < a->kept.n; d++) even = even && a->kept.strides[d] % type->bytes == 0;
  for (int d = 0; d < a->reduced.n; d++) even = even && a->reduced.strides[d] % type->bytes == 0;
  return even;
}

/* Whether kernels take columns that lie apart with what lies between. */
static int lies_nearby(const gpr_plan *p, const gpr_tiles *t) {
  const gpr_dims *kept = &p->axes->kept;
  const int64_t step = kept->n ? kept->strides[kept->n - 1] : 0;
  return t->side_by_side && p->row->side == GPR_COLUMNS && p->count >= APART_ROWS &&
         step > p->bytes && step < LINE_BYTES && step <= p->row->apart * p->bytes &&
         step * kept->shape[kept->n - 1] >= APART_WIDTH;
}

/* Where the last dimensions alone make tiles that are worth while. */
static int lies_in_tiles(const gpr_plan *p, const gpr_tiles *t) {
  const gpr_axes *a = p->axes;
  const int64_t across = last_of(&a->kept, a->kept.shape, 1);
  const int64_t along = rows_of(p, t);
  if (!lies_ready(p, t)) return 0;
  if (!t->side_by_side && gpr_repeats(p, along, last_of(&a->reduced, a->reduced.strides, 1)))
    return 0;
  const int turns = p->row->side == GPR_LINES && !t->side_by_side;
  const int64_t least = turns ? DIRECT_BYTES / p->bytes : DIRECT_RUN;
  if (a->reduced.n - t->runs > 1 && along < least) return 0;
  if (a->kept.n > 1 && across * along < least) return 0;
  const gpr_dims *inside = t->side_by_side ? &a->kept : &a->reduced;
  const int apart = lies_apart(inside, p->bytes);
  if (p->row->side && apart && !t->brought && !lies_nearby(p, t)) return 0;
  if (t->masked && (!inside->n || inside->strides[inside->n - 1] != p->bytes)) return 0;
  if (t->side_by_side) { /* a ribbon: a few columns whose rows lie one after the other */
    const int64_t run = across * p->bytes, words = gpr_word_of(run) < run ? 2 : 1;
    const int follows = last_of(&a->reduced, a->reduced.strides, 0) == run;
    const int is_free = p->row->law == GPR_FREE;
    if (is_free && !follows && run <= NARROW_BYTES && along >= NARROW_ROWS) return 0;
    return a->kept.n <= 1 || across >= DIRECT_OUTPUTS || along >= GPR_SHORT ||
           (is_free && follows && words * run * along >= RIBBON_BYTES);
  }
  return p->count <= GPR_SHORT || !apart || t->brought;
}

static int64_t elements_of_tile(const gpr_plan *p, const gpr_tiles *t, int64_t outputs) {
  if (!p->axes->where || !t->side_by_side) return TILE_ELEMENTS;
  const int64_t fit = least_of(MASKED_BYTES / p->bytes, MASKED_ELEMENTS);
  return greatest_of(fit, MASKED_ROWS * outputs);
}

/* How many outputs a block has. */
static int64_t outputs_for(const gpr_plan *p, const gpr_tiles *t, size_t state_bytes) {
  const gpr_axes *a = p->axes;
  const int64_t states = greatest_of(STATE_BYTES / (int64_t)state_bytes, 16);
  const int lengthy = !t->side_by_side && p->count > GPR_SHORT, direct = t->direct && !t->masked;
  const int64_t step = last_of(&a->kept, a->kept.strides, 0);
  /* Outputs lie between the runs of each: as they come, else memory is read again and again. */
  const int woven = direct && a->reduced.n > 1 && step < a->reduced.strides[a->reduced.n - 2];
  const int alone =
      !direct || p->row->side != GPR_COLUMNS || p->count > GPR_STRETCH || step == p->bytes;
  if (a->starts || (lengthy && alone && !woven)) return 1;
  if (a->where && !t->side_by_side && p->count >= MASKED_ROW) return 1;
  int64_t share = (a->outputs - 1) / (p->lanes > 1 ? BLOCKS_PER_LANE * p->lanes : 1) + 1;
  int64_t most = direct ? BLOCK_ELEMENTS / p->count : elements_of_tile(p, t, 1) / p->count;
  if (t->side_by_side) {
    const int64_t each = (a->outputs - 1) / p->lanes + 1;
    int64_t piece = least_of(ROW_BYTES / p->bytes, each);
    piece = greatest_of(piece, BLOCK_OUTPUTS / 2);
    share = greatest_of(share, piece);
    if (p->count > GPR_SHORT) {
      const int64_t fair = p->lanes > 1 ? a->outputs / (2 * p->lanes) : a->outputs;
      const int64_t wide = direct && p->bytes < 4 ? least_of(ROW_BYTES / p->bytes, fair) : 0;
      return least_of(states, greatest_of(TALL_OUTPUTS, wide));
    }
    most = greatest_of(most, direct     ? greatest_of(BLOCK_OUTPUTS, piece)
                             : a->where ? t->far ? piece : BLOCK_OUTPUTS
                                        : BLOCK_OUTPUTS / 4);
    most = least_of(most, GPR_OUTPUTS_MOST);
    most = (least_of(share, most) + 63) / 64 * 64;
  } else {
    if (direct && !lengthy) most = greatest_of(most, BLOCK_OUTPUTS);
    if (lengthy && woven) most = least_of(states, BLOCK_OUTPUTS);
    /* States of doubles are of 2 KB: 16384 of them were memory that the system cleared at each
     * call. The products of 65536 rows of 16 doubles took 20 ms on Zen 3, and take 2.1. */
    if (p->row->law == GPR_TREE) most = least_of(most, BLOCK_OUTPUTS);
    most = greatest_of(least_of(share, most), 1);
  }
  return most;
}

gpr_shares gpr_share_out(gpr_tiles *t, size_t state_bytes) {
  const gpr_plan *p = t->plan;
  const gpr_axes *a = p->axes;
  gpr_shares s = {.parts = 1};
  t->aligned = is_aligned(p);
  t->far = p->count > GPR_CACHE_BYTES / p->bytes / greatest_of(a->outputs, 1);
  t->masked = a->where || (a->skip && !p->row->empty);
  t->side_by_side =
      !a->starts && (p->count == 1 || last_of(&a->reduced, a->reduced.strides, INT64_MAX) >
                                          last_of(&a->kept, a->kept.strides, INT64_MAX - 1));
  t->runs = may_have_runs(p, t);
  t->brought = may_be_brought(p, t);
  t->direct = lies_in_tiles(p, t);
  const gpr_dims *inside = t->side_by_side ? &a->kept : &a->reduced;
  t->runs &= t->direct;
  t->brought &= t->direct && (p->cast || lies_apart(inside, p->bytes));
  t->brought |= t->runs;
  const int turns = p->row->side == GPR_LINES && t->direct; /* by itself */
  if (p->row->side && !turns && !t->side_by_side && p->count < LONG_ROW && a->kept.n &&
      !a->starts) {
    t->side_by_side = 1; /* turned */
    t->direct = 0;
  }
  t->kept = gpr_cut_dims(&a->kept, p->count ? outputs_for(p, t, state_bytes) : 1, t->direct);
  int64_t most = elements_of_tile(p, t, t->kept.most) / greatest_of(t->kept.most, 1);
  if (p->count * t->kept.most <= WHOLE_ELEMENTS) most = greatest_of(most, p->count);
  if (t->direct && !t->masked)
    most = t->side_by_side || p->count <= GPR_SHORT ? GPR_SHORT : GPR_STRETCH;
  if (t->side_by_side) most = least_of(most, GPR_SHORT);
  if (p->row->law == GPR_TREE && most < p->count) /* aligned parts of the tree */
    while (most & (most - 1)) most &= most - 1;
  t->reduced =
      gpr_cut_dims(&a->reduced, greatest_of(least_of(most, GPR_STRETCH), 1), t->direct + t->runs);
  const int64_t wanted = BLOCKS_PER_LANE * (int64_t)p->lanes, boxes = t->reduced.boxes;
  if (p->lanes > 1 && !a->starts && t->kept.boxes && t->kept.boxes < wanted)
    s.parts = least_of((wanted - 1) / t->kept.boxes + 1, greatest_of(boxes, 1));
  s.part = greatest_of((boxes + s.parts - 1) / s.parts, 1);
  s.parts = greatest_of((boxes + s.part - 1) / s.part, 1);
  s.items = t->kept.boxes * s.parts * (a->starts ? a->segments : 1);
  return s;
}
