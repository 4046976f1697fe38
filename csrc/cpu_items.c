/* What a thread does of many outputs: folds tiles into states, and finishes blocks of them. */
#include "cpu_items.h"

#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"

/* States so small are opened many at a time. */
enum { SMALL_STATE = 64 };
/* Elements that are brought together at a time, and first where a few may do. */
enum { PIECE = 2048, FEW = 32 };

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

int gpr_is_cut(const gpr_axes_run *run) { return run->shares.parts > 1; }
int64_t gpr_outputs_of_block(const gpr_axes_run *run) { return run->tiles.kept.most; }
char *gpr_slots(const gpr_axes_run *run, int64_t set) {
  return run->states + (size_t)(set * gpr_outputs_of_block(run)) * run->slot_bytes;
}

/* Of segments each takes all outputs of the kept dimensions. */
gpr_box gpr_block_at(const gpr_axes_run *run, int64_t number) {
  const gpr_axes *a = &run->axes;
  const int64_t blocks = run->tiles.kept.boxes;
  gpr_box block = gpr_box_at(&a->kept, &run->tiles.kept, number % blocks);
  if (a->starts) block.first += number / blocks * (a->outputs / a->segments);
  return block;
}
static char *result_at(const gpr_axes_run *run, int64_t o) {
  return (char *)run->axes.result + (size_t)o * run->result_bytes;
}

/* Small states are all of the same bytes. */
static void open_block(const gpr_axes_run *run, char *states, int64_t n) {
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

int gpr_has_means(const gpr_axes_run *run) {
  const void *with = run->axes.with;
  const int spread = gpr_ops[run->plan.row->op].flags & GPR_SPREAD;
  return with && spread && ((const gpr_spread *)with)->means;
}

static void finish_with_means(const gpr_axes_run *run, int64_t o, const void *state,
                              int64_t counted) {
  const gpr_row *row = run->plan.row;
  gpr_spread spread = *(const gpr_spread *)run->axes.with;
  spread.means += o * (gpr_dtypes[row->dtype].kind == 'c' ? 2 : 1);
  row->finish(state, counted, &spread, result_at(run, o));
}

/* The box that is next of an item, of what the output takes. */
typedef struct range {
  int64_t stop, n; /* boxes; elements of an output */
} range;
static range range_of(const gpr_axes_run *run, const gpr_box *block, int64_t part) {
  const gpr_axes *a = &run->axes;
  range r = {least_of((part + 1) * run->shares.part, run->tiles.reduced.boxes), run->plan.count};
  if (!a->starts) return r;
  const int64_t segment = block->first / (a->outputs / a->segments);
  const int64_t start = a->starts[segment], stop = a->stops[segment];
  r.n = stop > start ? stop - start : 0;
  r.stop = (r.n + run->tiles.reduced.most - 1) / run->tiles.reduced.most;
  return r;
}
static gpr_box box_of(const gpr_axes_run *run, const gpr_box *block, const range *r,
                      int64_t number) {
  const gpr_axes *a = &run->axes;
  const gpr_cut *cut = &run->tiles.reduced;
  if (!a->starts) return gpr_box_at(&a->reduced, cut, number);
  const int64_t at = number * cut->most;
  const int64_t from = a->starts[block->first / (a->outputs / a->segments)] + at;
  const int64_t n = least_of(cut->most, r->n - at);
  return (gpr_box){at, n, n, from * a->reduced.strides[0], from * a->reduced.where[0]};
}

/* One output again, by the row itself. */
static void fold_again(gpr_axes_run *run, const gpr_lane *l, const gpr_box *block, int64_t j,
                       int64_t counted) {
  const gpr_axes *a = &run->axes;
  const gpr_row *row = run->exact;
  _Alignas(64) char state[GPR_STATE_MOST];
  gpr_tiles tiles = run->tiles;
  gpr_room room = l->room;
  int64_t count = 0;
  tiles.kept = gpr_cut_dims(&a->kept, 1, 0);
  if (tiles.brought) { /* which the row itself does not */
    tiles.direct = 0;
    tiles.reduced = gpr_cut_dims(&a->reduced, GPR_SHORT, 0);
  }
  room.counts = &count;
  const int64_t o = block->first + j, each = a->starts ? a->outputs / a->segments : a->outputs;
  const gpr_box one = gpr_box_at(&a->kept, &tiles.kept, o % each);
  range r = range_of(run, block, 0);
  if (!a->starts) r.stop = tiles.reduced.boxes;
  row->open(state);
  for (int64_t i = 0; i < r.stop; i++) {
    const gpr_box box =
        tiles.brought ? gpr_box_at(&a->reduced, &tiles.reduced, i) : box_of(run, block, &r, i);
    const gpr_tile tile = gpr_tile_of(&tiles, &one, &box, &room);
    if (!tile.n) continue;
    if (tile.along == gpr_dtypes[row->dtype].bytes)
      row->fold(state, tile.data, tile.n, box.first);
    else
      row->fold_many(state, 0, &tile, box.first);
  }
  row->finish(state, counted, a->with, result_at(run, o));
}

/* Finishes a block that was folded quickly, and what is refused from its elements. */
static void finish_quickly(gpr_axes_run *run, gpr_lane *l, const gpr_box *block, const char *states,
                           const int64_t *counts, int64_t n) {
  const gpr_quick *quick = run->exact->quick;
  uint8_t *refused = run->refused + l->number * gpr_outputs_of_block(run);
  if (!quick->finish_many(states, block->n, n, counts, run->axes.with, result_at(run, block->first),
                          refused, &l->infinite.decided))
    return;
  for (int64_t j = 0; j < block->n; j++)
    if (refused[j]) fold_again(run, l, block, j, counts ? counts[j] : n);
}

/* Of a block's outputs, of each of which n elements were folded; the least number that counted. */
static int64_t finish_block(gpr_axes_run *run, gpr_lane *l, const gpr_box *block, char *states,
                            int64_t *counts, int64_t n) {
  const gpr_row *row = run->plan.row;
  const int skips = run->axes.skip && !run->tiles.masked, some = skips || run->tiles.masked;
  const int means = gpr_has_means(run);
  int64_t least = n;
  for (int64_t j = 0; some && j < block->n; j++) {
    char *state = states + (size_t)j * run->slot_bytes;
    if (skips) counts[j] = row->empty(state) ? 0 : n;
    if (!counts[j]) row->open(state);
    least = least_of(least, counts[j]);
  }
  if (run->exact) finish_quickly(run, l, block, states, some ? counts : NULL, n);
  for (int64_t j = 0; !run->exact && j < block->n; j++) {
    const char *state = states + (size_t)j * run->slot_bytes;
    const int64_t o = block->first + j, counted = some ? counts[j] : n;
    if (means)
      finish_with_means(run, o, state, counted);
    else
      row->finish(state, counted, run->axes.with, result_at(run, o));
  }
  return least;
}

/* The least number of a tile's elements that count. */
static int64_t least_count(const gpr_tile *tile) {
  int64_t least = tile->n;
  for (int64_t j = 0; tile->counts && j < tile->outputs; j++)
    least = least_of(least, tile->counts[j]);
  return least;
}

/* A block whose elements are one tile; 0 where its row has no way to take it at once. */
static int reduce_at_once(gpr_axes_run *run, gpr_lane *l, const gpr_tile *tile,
                          const gpr_box *block) {
  const gpr_row *row = run->plan.row;
  const int bytes = gpr_dtypes[row->dtype].bytes,
            fits = row->side != GPR_COLUMNS || tile->outputs == 1 || run->tiles.side_by_side ||
                   tile->along == bytes;
  gpr_tile all = *tile;
  if (tile->repeated || (run->tiles.brought && row->side != GPR_LINES)) return 0;
  if (!row->many || !fits || gpr_has_means(run) || !tile->n || tile->n > GPR_SHORT) return 0;
  const int64_t least = least_count(tile);
  if (least == tile->n) all.counts = NULL;
  l->room.empty = 0;
  if (!row->many(&all, run->axes.with, result_at(run, block->first))) return 0;
  l->least = l->room.empty ? 0 : least_of(l->least, least);
  if (tile->counts) memset(l->room.counts, 0, (size_t)tile->outputs * sizeof *tile->counts);
  return 1;
}

/* Elements of one output after the other, brought together in pieces that stay in the first cache.
 * Any row may be settled before its end. */
static int fold_pieces(gpr_axes_run *run, gpr_lane *l, const gpr_tile *tile, int64_t index) {
  const gpr_row *row = run->plan.row;
  int settled = 0;
  for (int64_t j = 0; j < tile->outputs; j++) {
    char *state = l->states + (size_t)j * run->slot_bytes;
    settled = 0;
    for (int64_t i = 0, m; i < tile->n && !settled; i += m) {
      const char *x = tile->data + j * tile->across + i * tile->along;
      m = least_of(tile->n - i, row->soon ? least_of(i ? 3 * i : FEW, PIECE) : PIECE);
      if (tile->along != tile->bytes) {
        gpr_cpu_table_here()->copy(x, tile->along, l->room.raw, tile->bytes, m, tile->bytes);
        x = l->room.raw;
      }
      if (tile->cast) {
        tile->cast(x, l->room.ready, m);
        x = l->room.ready;
      }
      settled = (tile->skip ? row->fold_skipping : row->fold)(state, x, m, index + i);
    }
  }
  return settled && tile->outputs == 1;
}

/* Nonzero where the result of the tile's only output is settled. */
static int fold_tile(gpr_axes_run *run, gpr_lane *l, const gpr_tile *tile, int64_t index) {
  const gpr_row *row = run->plan.row;
  const int64_t bytes = gpr_dtypes[row->dtype].bytes;
  if (run->tiles.brought && row->side != GPR_LINES) return fold_pieces(run, l, tile, index);
  if (run->tiles.brought) {
    row->fold_many(l->states, run->slot_bytes, tile, index);
    return tile->outputs == 1 && row->fold(l->states, NULL, 0, index);
  }
  if (tile->outputs == 1 && !tile->skip && tile->along == bytes) {
    l->infinite.met = 1; /* which is not asked here */
    return row->fold(l->states, tile->data, tile->n, index);
  }
  const int is_line = tile->outputs == 1 && (tile->n == 1 || tile->along == bytes);
  if (row->side == GPR_COLUMNS && (!run->tiles.side_by_side || is_line)) {
    for (int64_t j = 0; j < tile->outputs; j++)
      (tile->skip ? row->fold_skipping : row->fold)(l->states + (size_t)j * run->slot_bytes,
                                                    tile->data + j * tile->across, tile->n, index);
  } else {
    row->fold_many(l->states, run->slot_bytes, tile, index);
  }
  return 0;
}

int64_t gpr_advance(gpr_axes_run *run, gpr_lane *l) {
  const int64_t part = l->item % run->shares.parts;
  const gpr_box block = gpr_block_at(run, l->item / run->shares.parts);
  const range r = range_of(run, &block, part);
  int64_t *counts = l->room.counts, read = 0;
  gpr_is_far = run->tiles.far;
  if (!l->opened) l->box = part * run->shares.part;
  if (l->box < r.stop) {
    const gpr_box box = box_of(run, &block, &r, l->box);
    gpr_tile tile = gpr_tile_of(&run->tiles, &block, &box, &l->room);
    tile.infinite = &l->infinite;
    read = block.n * box.n;
    l->box++;
    if (!l->opened && r.stop == 1 && !gpr_is_cut(run) && reduce_at_once(run, l, &tile, &block))
      goto done;
    if (!l->opened) {
      if (gpr_is_cut(run)) l->states = gpr_slots(run, run->plan.lanes + l->item);
      open_block(run, l->states, block.n);
      l->opened = 1;
    }
    for (int64_t j = 0; run->tiles.masked && !tile.counts && j < block.n; j++) counts[j] += tile.n;
    const int settled = tile.n && fold_tile(run, l, &tile, box.first);
    const int counts_on = run->tiles.masked && run->base.partials; /* words have the number */
    if (settled && !counts_on) l->box = r.stop;
    if (l->box < r.stop) return read;
  } else if (!l->opened) {
    if (gpr_is_cut(run)) l->states = gpr_slots(run, run->plan.lanes + l->item);
    open_block(run, l->states, block.n);
  }
  if (gpr_is_cut(run) && run->tiles.masked)
    memcpy(run->counted + l->item * gpr_outputs_of_block(run), counts, (size_t)block.n * 8);
  if (!gpr_is_cut(run))
    l->least = least_of(l->least, finish_block(run, l, &block, l->states, counts, r.n));
  if (run->tiles.masked) memset(counts, 0, (size_t)block.n * 8);
done:
  l->item++;
  l->opened = 0;
  return read;
}

int64_t gpr_merge_block(gpr_axes_run *run, gpr_lane *l, int64_t number) {
  const gpr_row *row = run->plan.row;
  const gpr_box block = gpr_block_at(run, number);
  const int64_t first = number * run->shares.parts, outputs = gpr_outputs_of_block(run);
  char *states = gpr_slots(run, run->plan.lanes + first);
  int64_t *counted = run->counted + first * outputs;
  for (int64_t part = 1; part < run->shares.parts; part++)
    for (int64_t j = 0; j < block.n; j++) {
      row->merge(states + (size_t)j * run->slot_bytes,
                 gpr_slots(run, run->plan.lanes + first + part) + (size_t)j * run->slot_bytes);
      if (run->tiles.masked) counted[j] += counted[part * outputs + j];
    }
  return finish_block(run, l, &block, states, counted, run->plan.count);
}
