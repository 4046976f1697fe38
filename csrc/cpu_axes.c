/* Many outputs on the CPU: threads take blocks of outputs, or parts of few, tile by tile. */
#define _DEFAULT_SOURCE
#include "cpu_axes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"
#include "errors.h"
#include "threads.h"
#include "tile.h"

/* Between looks at the clock and at `stop`. */
enum { STRETCH = 64 << 10 };
/* What a thread takes at a time. */
enum { GRAIN_BYTES = 64 << 10 };
/* Tiles that have to be made stay in the second cache. */
enum { TILE_ELEMENTS = 8192, WHOLE_ELEMENTS = 32768 }; /* whole: of outputs that end there */
/* Short outputs go by blocks: enough for vectors, and few enough to share out evenly. Those of one
 * element each took twice the time in blocks of 512. Side by side they are read by pieces of rows:
 * of 4 KiB each, sums of (4096, 1024) doubles took 0.8 ms on two threads of Zen 4, of 2 KiB 1.1; on
 * one thread 1.3 and 1.7. */
enum { BLOCK_OUTPUTS = 512, BLOCK_ELEMENTS = 256 << 10, BLOCKS_PER_LANE = 4, ROW_BYTES = 4096 };
/* Columns that keep states between their rows. 128 of them, a quarter of a page of each row, took
 * twice the time. */
enum { TALL_OUTPUTS = 512, STATE_BYTES = 512 << 10 };
/* Shorter runs are brought together in a tile, rather than taken where they lie. */
enum { DIRECT_RUN = 256, DIRECT_OUTPUTS = 32 };
/* Rows of fewer elements are turned into columns. */
enum { LONG_ROW = 16 };
/* States so small are kept and finished many at a time; columns that a few are added up as. */
enum { SMALL_STATE = 64, WIDE_OUTPUTS = 512 };
/* More threads pay beyond this; see cpu.c. */
enum { SHARED_BYTES = 2 << 20 };

/* What one thread is at: items [item, stop), and in the first of them the box that is next. */
typedef struct lane {
  int number;
  int64_t item, stop, box, least;
  int opened;
  char *states, *wide;
  gpr_room room;
} lane;

typedef struct axes_run {
  gpr_run base;
  gpr_plan plan;
  const gpr_row *exact; /* where plan.row is a quick one, the row itself, else NULL */
  gpr_row quick_row;
  gpr_axes axes;
  gpr_tiles tiles;
  int64_t items, grain; /* an item is a part of a block of outputs, the parts side by side */
  int64_t parts, part;  /* of how many boxes */
  atomic_llong next, least, made; /* made: huge pages of the results */
  atomic_int stop;
  int begun;
  gpr_team team;
  size_t slot_bytes, result_bytes, lane_bytes;
  char *states;                   /* one set a lane, then, if blocks are cut, one an item */
  char *rooms;                    /* one a lane */
  int64_t *counted;               /* one an output of an item, if blocks are cut */
  uint8_t *refused;               /* one an output of a block for each lane */
  _Alignas(16) char identity[64]; /* of the row */
} axes_run;

static int is_cut(const axes_run *run) { return run->parts > 1; }
static int64_t outputs_of_block(const axes_run *run) { return run->tiles.kept.most; }
static char *slots(const axes_run *run, int64_t set) {
  return run->states + (size_t)(set * outputs_of_block(run)) * run->slot_bytes;
}

static size_t whole(size_t bytes) { return (bytes + 63) & ~(size_t)63; } /* lines */

/* --- how to cut --------------------------------------------------------------------------------
 */

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greatest_of(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t last_of(const gpr_dims *dims, const int64_t *values, int64_t none) {
  if (!dims->n) return none;
  return values[dims->n - 1] < 0 ? -values[dims->n - 1] : values[dims->n - 1];
}

/* Elements as kernels take them, but for where they lie. */
static int lies_ready(const gpr_plan *p, const gpr_tiles *t) {
  return !p->cast && !p->swap && t->aligned && !t->masked;
}

static int is_aligned(const gpr_plan *p) {
  const gpr_axes *a = p->axes;
  const gpr_dtype_info *type = &gpr_dtypes[p->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  int even = (uintptr_t)p->data % (uintptr_t)unit == 0;
  for (int d = 0; d < a->kept.n; d++) even = even && a->kept.strides[d] % unit == 0;
  for (int d = 0; d < a->reduced.n; d++) even = even && a->reduced.strides[d] % unit == 0;
  return even;
}

/* Where the last dimensions alone make tiles that are worth while. */
static int lies_in_tiles(const gpr_plan *p, const gpr_tiles *t) {
  const gpr_axes *a = p->axes;
  const int64_t across = last_of(&a->kept, a->kept.shape, 1);
  const int64_t along = last_of(&a->reduced, a->reduced.shape, 1);
  if (!lies_ready(p, t)) return 0;
  if (a->reduced.n > 1 && along < DIRECT_RUN) return 0;
  if (a->kept.n > 1 && across * along < DIRECT_RUN) return 0;
  const gpr_dims *inside = t->side_by_side ? &a->kept : &a->reduced;
  if (p->row->side && inside->n && inside->strides[inside->n - 1] != p->bytes) return 0;
  if (t->side_by_side) return a->kept.n <= 1 || across >= DIRECT_OUTPUTS || along >= GPR_SHORT;
  return p->count <= GPR_SHORT || a->reduced.strides[a->reduced.n - 1] == p->bytes;
}

/* How many outputs a block has. */
static int64_t outputs_for(const axes_run *run) {
  const gpr_plan *p = &run->plan;
  const gpr_axes *a = &run->axes;
  const gpr_tiles *t = &run->tiles;
  const int64_t states = greatest_of(STATE_BYTES / (int64_t)run->slot_bytes, 16);
  if (a->starts || (!t->side_by_side && p->count > GPR_SHORT)) return 1;
  int64_t share = (a->outputs - 1) / (p->lanes > 1 ? BLOCKS_PER_LANE * p->lanes : 1) + 1;
  int64_t most = t->direct ? BLOCK_ELEMENTS / p->count : TILE_ELEMENTS / p->count;
  if (t->side_by_side) {
    const int64_t each = (a->outputs - 1) / p->lanes + 1;
    int64_t piece = least_of(ROW_BYTES / p->bytes, each);
    piece = greatest_of(piece, BLOCK_OUTPUTS / 2);
    share = greatest_of(share, piece);
    if (p->count > GPR_SHORT) return least_of(states, TALL_OUTPUTS);
    most = greatest_of(most, t->direct ? BLOCK_OUTPUTS : BLOCK_OUTPUTS / 4);
    most = (least_of(share, most) + 63) / 64 * 64;
  } else {
    if (t->direct) most = greatest_of(most, BLOCK_OUTPUTS);
    most = greatest_of(least_of(share, most), 1);
  }
  return most;
}

static void cut(axes_run *run) {
  gpr_plan *p = &run->plan;
  const gpr_axes *a = &run->axes;
  gpr_tiles *t = &run->tiles;
  t->plan = p;
  t->identity = run->identity;
  t->aligned = is_aligned(p);
  t->masked = a->where || (a->skip && !p->row->empty);
  t->side_by_side = !a->starts && last_of(&a->reduced, a->reduced.strides, INT64_MAX) >
                                      last_of(&a->kept, a->kept.strides, INT64_MAX - 1);
  t->direct = lies_in_tiles(p, t);
  if (p->row->side && !t->side_by_side && p->count < LONG_ROW && a->kept.n && !a->starts) {
    t->side_by_side = 1; /* turned */
    t->direct = 0;
  }
  t->kept = gpr_cut_dims(&a->kept, p->count ? outputs_for(run) : 1, t->direct);
  int64_t most = TILE_ELEMENTS / greatest_of(t->kept.most, 1);
  if (p->count * t->kept.most <= WHOLE_ELEMENTS) most = greatest_of(most, p->count);
  if (t->direct) most = t->side_by_side || p->count <= GPR_SHORT ? GPR_SHORT : STRETCH;
  if (t->side_by_side) most = least_of(most, GPR_SHORT);
  if (p->row->law == GPR_TREE) /* aligned parts of the tree */
    while (most & (most - 1)) most &= most - 1;
  t->reduced = gpr_cut_dims(&a->reduced, greatest_of(least_of(most, STRETCH), 1), t->direct);
  run->parts = 1;
  const int64_t wanted = BLOCKS_PER_LANE * (int64_t)p->lanes, boxes = t->reduced.boxes;
  if (p->lanes > 1 && !a->starts && t->kept.boxes && t->kept.boxes < wanted)
    run->parts = least_of((wanted - 1) / t->kept.boxes + 1, greatest_of(boxes, 1));
  run->part = greatest_of((boxes + run->parts - 1) / run->parts, 1);
  run->parts = greatest_of((boxes + run->part - 1) / run->part, 1);
  run->items = t->kept.boxes * run->parts * (a->starts ? a->segments : 1);
}

/* --- items -------------------------------------------------------------------------------------
 */

/* Of segments each takes all outputs of the kept dimensions. */
static gpr_box block_at(const axes_run *run, int64_t number) {
  const gpr_axes *a = &run->axes;
  const int64_t blocks = run->tiles.kept.boxes;
  gpr_box block = gpr_box_at(&a->kept, &run->tiles.kept, number % blocks);
  if (a->starts) block.first += number / blocks * (a->outputs / a->segments);
  return block;
}
static char *result_at(const axes_run *run, int64_t o) {
  return (char *)run->axes.result + (size_t)o * run->result_bytes;
}

/* Small states are all of the same bytes. */
static void open_block(const axes_run *run, char *states, int64_t n) {
  const size_t each = run->slot_bytes, all = each * (size_t)n;
  if (each > SMALL_STATE) {
    for (int64_t j = 0; j < n; j++) run->plan.row->open(states + (size_t)j * each);
    return;
  }
  run->plan.row->open(states);
  for (size_t done = each, more; done < all; done += more) {
    more = done < all - done ? done : all - done;
    memcpy(states + done, states, more);
  }
}

static void finish_output(axes_run *run, int64_t o, void *state, int64_t counted) {
  const gpr_row *row = run->plan.row;
  const void *with = run->axes.with;
  gpr_spread spread;
  if (with && (gpr_ops[row->op].flags & GPR_SPREAD)) {
    const int parts = gpr_dtypes[row->dtype].kind == 'c' ? 2 : 1;
    spread = *(const gpr_spread *)with;
    if (spread.means) spread.means += o * parts;
    with = &spread;
  }
  row->finish(state, counted, with, result_at(run, o));
}

static int has_means(const axes_run *run) {
  const void *with = run->axes.with;
  const int spread = gpr_ops[run->plan.row->op].flags & GPR_SPREAD;
  return with && spread && ((const gpr_spread *)with)->means;
}

/* The box that is next of an item, of what the output takes. */
typedef struct range {
  int64_t stop, n; /* boxes; elements of an output */
} range;
static range range_of(const axes_run *run, const gpr_box *block, int64_t part) {
  const gpr_axes *a = &run->axes;
  range r = {least_of((part + 1) * run->part, run->tiles.reduced.boxes), run->plan.count};
  if (!a->starts) return r;
  const int64_t segment = block->first / (a->outputs / a->segments);
  const int64_t start = a->starts[segment], stop = a->stops[segment];
  r.n = stop > start ? stop - start : 0;
  r.stop = (r.n + run->tiles.reduced.most - 1) / run->tiles.reduced.most;
  return r;
}
static gpr_box box_of(const axes_run *run, const gpr_box *block, const range *r, int64_t number) {
  const gpr_axes *a = &run->axes;
  const gpr_cut *cut = &run->tiles.reduced;
  if (!a->starts) return gpr_box_at(&a->reduced, cut, number);
  const int64_t at = number * cut->most;
  const int64_t from = a->starts[block->first / (a->outputs / a->segments)] + at;
  const int64_t n = least_of(cut->most, r->n - at);
  return (gpr_box){at, n, n, from * a->reduced.strides[0], from * a->reduced.where[0]};
}

/* One output again, by the row itself. */
static void fold_again(axes_run *run, const lane *l, const gpr_box *block, int64_t j,
                       int64_t counted) {
  const gpr_axes *a = &run->axes;
  const gpr_row *row = run->exact;
  _Alignas(64) char state[GPR_STATE_MOST];
  gpr_tiles tiles = run->tiles;
  gpr_room room = l->room;
  int64_t count = 0;
  tiles.kept = gpr_cut_dims(&a->kept, 1, 0);
  room.counts = &count;
  const int64_t o = block->first + j, each = a->starts ? a->outputs / a->segments : a->outputs;
  const gpr_box one = gpr_box_at(&a->kept, &tiles.kept, o % each);
  range r = range_of(run, block, 0);
  if (!a->starts) r.stop = run->tiles.reduced.boxes;
  row->open(state);
  for (int64_t i = 0; i < r.stop; i++) {
    const gpr_box box = box_of(run, block, &r, i);
    const gpr_tile tile = gpr_tile_of(&tiles, &one, &box, &room);
    if (tile.along == gpr_dtypes[row->dtype].bytes)
      row->fold(state, tile.data, tile.n, box.first);
    else
      row->fold_many(state, 0, &tile, box.first);
  }
  row->finish(state, counted, a->with, result_at(run, o));
}

/* Finishes a block that was folded quickly, and what is refused from its elements. */
static void finish_quickly(axes_run *run, const lane *l, const gpr_box *block, const char *states,
                           const int64_t *counts, int64_t n) {
  const gpr_quick *quick = run->exact->quick;
  uint8_t *refused = run->refused + l->number * outputs_of_block(run);
  if (!quick->finish_many(states, block->n, n, counts, run->axes.with, result_at(run, block->first),
                          refused))
    return;
  for (int64_t j = 0; j < block->n; j++)
    if (refused[j]) fold_again(run, l, block, j, counts ? counts[j] : n);
}

/* Of a block's outputs, of each of which n elements were folded; the least number that counted. */
static int64_t finish_block(axes_run *run, const lane *l, const gpr_box *block, char *states,
                            int64_t *counts, int64_t n) {
  const gpr_row *row = run->plan.row;
  const int skips = run->axes.skip && !run->tiles.masked, some = skips || run->tiles.masked;
  int64_t least = n;
  for (int64_t j = 0; some && j < block->n; j++) {
    char *state = states + (size_t)j * run->slot_bytes;
    if (skips) counts[j] = row->empty(state) ? 0 : n;
    if (!counts[j]) row->open(state);
    least = least_of(least, counts[j]);
  }
  if (run->exact)
    finish_quickly(run, l, block, states, some ? counts : NULL, n);
  else if (row->finish_many && row->side && !has_means(run))
    row->finish_many(states, block->n, n, some ? counts : NULL, run->axes.with,
                     result_at(run, block->first));
  else
    for (int64_t j = 0; j < block->n; j++)
      finish_output(run, block->first + j, states + (size_t)j * run->slot_bytes,
                    some ? counts[j] : n);
  return least;
}

/* A block whose elements are one tile; 0 where its row has no way to take it at once. */
static int reduce_at_once(axes_run *run, lane *l, const gpr_tile *tile, const gpr_box *block) {
  const gpr_row *row = run->plan.row;
  const int fits = row->side != GPR_COLUMNS || tile->outputs == 1 ||
                   tile->across == gpr_dtypes[row->dtype].bytes;
  gpr_tile all = *tile;
  int64_t left_out = 0;
  if (!row->many || !fits || has_means(run) || tile->n > GPR_SHORT) return 0;
  for (int64_t j = 0; tile->counts && j < tile->outputs; j++) left_out += tile->n - tile->counts[j];
  if (!left_out) all.counts = NULL;
  if (!row->many(&all, run->axes.with, result_at(run, block->first))) return 0;
  l->least = least_of(l->least, tile->n);
  for (int64_t j = 0; tile->counts && j < tile->outputs; j++)
    l->least = least_of(l->least, tile->counts[j]);
  return 1;
}

/* What fold_wide() keeps. */
static size_t wide_bytes(const axes_run *run) {
  const int wide = run->slot_bytes <= SMALL_STATE && outputs_of_block(run) <= WIDE_OUTPUTS / 2;
  return wide ? WIDE_OUTPUTS * run->slot_bytes : 0;
}

/* A few columns whose rows lie one after the other are added up as more, of several rows. */
static void fold_wide(axes_run *run, const lane *l, const gpr_tile *tile, int64_t together) {
  const gpr_row *row = run->plan.row;
  const int64_t wide = together * tile->outputs, rows = tile->n / together;
  gpr_tile part = *tile;
  part.along *= together;
  part.outputs = wide;
  part.n = rows;
  open_block(run, l->wide, wide);
  row->fold_many(l->wide, run->slot_bytes, &part, 0);
  for (int64_t j = 0, to = 0; j < wide; j++) {
    row->merge(l->states + (size_t)to * run->slot_bytes, l->wide + (size_t)j * run->slot_bytes);
    to = to + 1 < tile->outputs ? to + 1 : 0;
  }
  part = *tile;
  part.data += rows * part.along * together;
  part.n = tile->n - rows * together;
  if (part.n) row->fold_many(l->states, run->slot_bytes, &part, 0);
}

/* Nonzero where the result of the tile's only output is settled. */
static int fold_tile(axes_run *run, lane *l, const gpr_tile *tile, int64_t index) {
  const gpr_row *row = run->plan.row;
  const int64_t bytes = gpr_dtypes[row->dtype].bytes;
  if (tile->outputs == 1 && !tile->skip && tile->along == bytes)
    return row->fold(l->states, tile->data, tile->n, index);
  if (row->side && tile->across == bytes && tile->outputs > 1) {
    const int64_t fit = WIDE_OUTPUTS / tile->outputs, few = tile->n / 4;
    const int64_t together = fit < few ? fit : few;
    if (wide_bytes(run) && !row->ordered && together > 1 && tile->along == tile->outputs * bytes &&
        !tile->skip)
      fold_wide(run, l, tile, together);
    else
      row->fold_many(l->states, run->slot_bytes, tile, index);
  } else if (row->side == GPR_COLUMNS) {
    for (int64_t j = 0; j < tile->outputs; j++)
      (tile->skip ? row->fold_skipping : row->fold)(l->states + (size_t)j * run->slot_bytes,
                                                    tile->data + j * tile->across, tile->n, index);
  } else {
    row->fold_many(l->states, run->slot_bytes, tile, index);
  }
  return 0;
}

/* One tile more of the lane's item; how many elements. */
static int64_t advance(axes_run *run, lane *l) {
  const int64_t part = l->item % run->parts;
  const gpr_box block = block_at(run, l->item / run->parts);
  const range r = range_of(run, &block, part);
  int64_t *counts = l->room.counts, read = 0;
  if (!l->opened) l->box = part * run->part;
  if (l->box < r.stop) {
    const gpr_box box = box_of(run, &block, &r, l->box);
    const gpr_tile tile = gpr_tile_of(&run->tiles, &block, &box, &l->room);
    read = tile.outputs * tile.n;
    l->box++;
    if (!l->opened && r.stop == 1 && !is_cut(run) && reduce_at_once(run, l, &tile, &block))
      goto done;
    if (!l->opened) {
      if (is_cut(run)) l->states = slots(run, run->plan.lanes + l->item);
      open_block(run, l->states, block.n);
      l->opened = 1;
    }
    if (fold_tile(run, l, &tile, box.first)) l->box = r.stop;
    if (l->box < r.stop) return read;
  } else if (!l->opened) {
    if (is_cut(run)) l->states = slots(run, run->plan.lanes + l->item);
    open_block(run, l->states, block.n);
  }
  if (is_cut(run))
    memcpy(run->counted + l->item * outputs_of_block(run), counts, (size_t)block.n * 8);
  else
    l->least = least_of(l->least, finish_block(run, l, &block, l->states, counts, r.n));
done:
  if (run->tiles.masked) memset(counts, 0, (size_t)block.n * 8);
  l->item++;
  l->opened = 0;
  return read;
}

static int64_t merge_block(axes_run *run, const lane *l, int64_t number) {
  const gpr_row *row = run->plan.row;
  const gpr_box block = block_at(run, number);
  const int64_t first = number * run->parts, outputs = outputs_of_block(run);
  char *states = slots(run, run->plan.lanes + first);
  int64_t *counted = run->counted + first * outputs;
  for (int64_t part = 1; part < run->parts; part++)
    for (int64_t j = 0; j < block.n; j++) {
      row->merge(states + (size_t)j * run->slot_bytes,
                 slots(run, run->plan.lanes + first + part) + (size_t)j * run->slot_bytes);
      counted[j] += counted[part * outputs + j];
    }
  return finish_block(run, l, &block, states, counted, run->plan.count);
}

/* The outputs of all items below this one. */
static int64_t outputs_below(const axes_run *run, int64_t item) {
  const int64_t block = item / run->parts;
  return !run->items || block >= run->items / run->parts ? run->axes.outputs
                                                         : block_at(run, block).first;
}

/* madvise's MADV_POPULATE_WRITE: Linux has it from 5.14 on, glibc's headers from 2.35 on. */
enum { POPULATE_WRITE = 23 };

/* Has the results' memory made for the items below `stop` and a huge page ahead, each page by its
 * last bytes: Linux clears a huge page upwards where it is first used in its upper half, and
 * downwards, at half the speed, in its lower one. 32 MiB take 1.7 ms in place of 3.9 on Zen 4. */
static void make_pages(axes_run *run, int64_t stop) {
  const uintptr_t huge = 2 << 20, small = 4 << 10, first = (uintptr_t)run->axes.result;
  const uintptr_t end = first + (uintptr_t)run->axes.outputs * run->result_bytes;
  if (end - first < 2 * huge) return; /* NumPy does not ask for huge pages */
  const uintptr_t needed = first + (uintptr_t)outputs_below(run, stop) * run->result_bytes;
  const int64_t wanted = (int64_t)(needed / huge - first / huge) + 2;
  while (atomic_load_explicit(&run->made, memory_order_relaxed) < wanted) {
    const uintptr_t page = first / huge + (uintptr_t)atomic_fetch_add(&run->made, 1);
    if (page * huge >= end) return;
    const uintptr_t above = (page + 1) * huge < end ? (page + 1) * huge : end;
    madvise((void *)((above - 1) / small * small), small, POPULATE_WRITE);
  }
}

static int take_items(axes_run *run, lane *l) {
  if (atomic_load(&run->next) >= run->items) return 0;
  l->item = atomic_fetch_add(&run->next, run->grain);
  if (l->item >= run->items) return 0;
  l->stop = l->item + run->grain < run->items ? l->item + run->grain : run->items;
  make_pages(run, l->stop);
  return 1;
}

/* Until no item is left (1), or the time is over or the run is closed (0). */
static int work(axes_run *run, lane *l, int64_t until) {
  const int64_t each = 64; /* what an output costs beside its elements */
  int64_t cost = 0, read = 0;
  while (l->item < l->stop || take_items(run, l)) {
    if (atomic_load_explicit(&run->stop, memory_order_relaxed)) return 0;
    const int64_t n = advance(run, l);
    read += n;
    cost += n + each;
    if (cost < STRETCH) continue;
    atomic_fetch_add_explicit(&run->base.done, read, memory_order_relaxed);
    cost = read = 0;
    if (until && gpr_now() > until) return 0;
  }
  int64_t least = atomic_load(&run->least);
  while (l->least < least && !atomic_compare_exchange_weak(&run->least, &least, l->least)) continue;
  return 1;
}

/* --- the run -----------------------------------------------------------------------------------
 */

/* Of a tile that is made. */
static int64_t elements_of(const axes_run *run) {
  return run->tiles.kept.most * run->tiles.reduced.most;
}

static lane lane_of(axes_run *run, int number) {
  char *room = run->rooms + (size_t)number * run->lane_bytes;
  return (lane){
      .number = number,
      .least = INT64_MAX,
      .states = slots(run, number),
      .wide = room + run->lane_bytes - whole(wide_bytes(run)),
      .room = gpr_room_in(room, run->tiles.direct ? 0 : elements_of(run), outputs_of_block(run))};
}

typedef struct caller_run {
  axes_run run;
  lane caller;
} caller_run;

static void help(void *argument, int number) {
  axes_run *run = argument;
  lane l = lane_of(run, number);
  work(run, &l, 0);
}

static void start(caller_run *c) {
  axes_run *run = &c->run;
  atomic_store(&run->base.done, 0);
  atomic_store(&run->next, 0);
  atomic_store(&run->least, INT64_MAX);
  atomic_store(&run->made, 0);
  run->begun = 0;
  c->caller = lane_of(run, 0);
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  caller_run *c = (caller_run *)base;
  axes_run *run = &c->run;
  if (gpr_team_lost(&run->team)) start(c);
  const int64_t until = gpr_now() + nanoseconds;
  if (!run->begun) {
    run->begun = 1;
    if (run->team.helpers) gpr_team_offer(&run->team);
  }
  if (!work(run, &c->caller, until)) return GPR_MORE;
  return gpr_team_wait(&run->team, nanoseconds) ? GPR_OK : GPR_MORE;
}

static gpr_status finish(gpr_run *base, const void *with, void *result) {
  caller_run *c = (caller_run *)base;
  axes_run *run = &c->run;
  int64_t least = atomic_load(&run->least);
  (void)with, (void)result;
  for (int64_t b = 0; is_cut(run) && b < run->items / run->parts; b++)
    least = least_of(least, merge_block(run, &c->caller, b));
  base->least = least;
  return GPR_OK;
}

static void close_run(gpr_run *base) {
  axes_run *run = (axes_run *)base;
  atomic_store(&run->stop, 1);
  while (!gpr_team_wait(&run->team, 1000000000)) continue;
  free(run->refused);
  free(run->counted);
  free(run->rooms);
  free(run->states);
  free(run);
}

static const gpr_backend axes = {step, finish, close_run, NULL};

static gpr_status allocate(axes_run *run) {
  const int lanes = run->plan.lanes;
  const int64_t cut = is_cut(run) ? run->items : 0, outputs = outputs_of_block(run);
  const size_t slots = (size_t)((lanes + cut) * outputs);
  run->lane_bytes = gpr_room_bytes(run->tiles.direct ? 0 : elements_of(run), outputs);
  run->lane_bytes += whole(wide_bytes(run));
  run->lane_bytes = whole(run->lane_bytes);
  run->states = aligned_alloc(64, whole(slots * run->slot_bytes));
  run->rooms = aligned_alloc(64, (size_t)lanes * run->lane_bytes);
  run->counted = cut ? malloc((size_t)(cut * outputs) * sizeof *run->counted) : NULL;
  run->refused = run->exact ? malloc((size_t)(lanes * outputs)) : NULL;
  if (!run->states || !run->rooms || (cut && !run->counted) || (run->exact && !run->refused))
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the states of %d threads", lanes);
  return GPR_OK;
}

gpr_status gpr_axes_open(const gpr_plan *plan, gpr_run **out) {
  *out = NULL;
  caller_run *c = calloc(1, sizeof *c);
  if (!c) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  axes_run *run = &c->run;
  run->base.backend = &axes;
  run->plan = *plan;
  run->axes = *plan->axes;
  run->plan.axes = &run->axes;
  if (plan->row->quick && !has_means(run)) {
    run->exact = plan->row;
    run->quick_row = gpr_quick_row(plan->row);
    run->plan.row = &run->quick_row;
  }
  const gpr_row *row = run->plan.row;
  run->slot_bytes = row->side ? row->state_bytes : whole(row->state_bytes);
  run->result_bytes = (size_t)(gpr_dtypes[plan->row->result].bytes * plan->row->results);
  plan->row->identity(run->identity);
  cut(run);
  const int64_t bytes = run->tiles.kept.most * run->tiles.reduced.most * plan->bytes + 1;
  run->grain = is_cut(run) || bytes > GRAIN_BYTES ? 1 : GRAIN_BYTES / bytes;
  const double all = (double)plan->count * (double)run->axes.outputs * (double)plan->bytes;
  run->team = (gpr_team){.work = help, .argument = run};
  if (all > SHARED_BYTES) run->team.helpers = plan->lanes - 1;
  const gpr_status status = allocate(run);
  if (status) {
    close_run(&run->base);
    return status;
  }
  start(c);
  *out = &run->base;
  return GPR_OK;
}
