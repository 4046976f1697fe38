/* Many outputs on the CPU: threads take some outputs at a time, or parts of few. */
#define _DEFAULT_SOURCE
#include "cpu_axes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"
#include "errors.h"
#include "pack.h"
#include "threads.h"

/* What is not direct is packed in blocks that stay in the first cache. */
enum { BLOCK = 1024 };
/* Between looks at the clock and at `stop`. */
enum { STRETCH = 64 << 10 };
/* What a thread takes at a time. */
enum { GRAIN_BYTES = 64 << 10 };
/* Short outputs go by blocks: enough for vectors, and few enough to share out evenly. Those of one
 * element each took twice the time in blocks of 512. Side by side they are read by pieces of rows:
 * of 4 KiB each, sums of (4096, 1024) doubles took 0.8 ms on two threads of Zen 4, of 2 KiB 1.1; on
 * one thread 1.3 and 1.7. */
enum { BLOCK_OUTPUTS = 512, BLOCK_ELEMENTS = 256 << 10, BLOCKS_PER_LANE = 4, ROW_BYTES = 4096 };
/* Columns that keep states between their rows. 128 of them, a quarter of a page of each row, took
 * twice the time. */
enum { TALL_OUTPUTS = 512 };
/* More threads pay beyond this; see cpu.c. */
enum { SHARED_BYTES = 2 << 20 };

/* What one thread is at: items [item, stop), and how far it got in the first of them. */
typedef struct lane {
  int64_t item, stop, at, counted, least;
  int opened;
  char *state;
} lane;

typedef struct axes_run {
  gpr_run base;
  gpr_plan plan;
  gpr_axes axes;
  int64_t items, grain; /* an item is a part of an output, the outputs' parts side by side */
  int64_t block;        /* or, if not 0, of so many outputs along the last kept dimension */
  atomic_llong next, least, made; /* made: huge pages of the results */
  atomic_int stop;
  int begun;
  gpr_team team;
  size_t slot_bytes, result_bytes;
  char *states;                   /* one a lane, then, if outputs are cut, one an item */
  int64_t *counted;               /* one an item */
  _Alignas(16) char identity[16]; /* of the tree: an element that changes nothing */
} axes_run;

static char *slot(const axes_run *run, int64_t i) {
  return run->states + (size_t)i * run->slot_bytes;
}
static int is_block(const axes_run *run) { return run->block > 0; }
static int is_short(const axes_run *run) { return run->plan.count <= GPR_SHORT; }
static int is_cut(const axes_run *run) { return run->plan.parts > 1; }

/* How many states a lane or an item has. */
static int64_t states_of(const axes_run *run) {
  return is_block(run) && !is_short(run) ? run->block : 1;
}

/* --- elements ----------------------------------------------------------------------------------
 */

/* Where an output's elements are, and which of them are its own. */
typedef struct output {
  const char *data, *where;
  int64_t start, stop; /* of the reduced index */
} output;

static output output_at(const axes_run *run, int64_t o) {
  const gpr_axes *a = &run->axes;
  output out = {.data = run->plan.data, .where = a->where, .start = 0, .stop = run->plan.count};
  for (int d = a->kept.n - 1; d >= 0; d--) {
    const int64_t i = o % a->kept.shape[d];
    o /= a->kept.shape[d];
    out.data += i * a->kept.strides[d];
    if (out.where) out.where += i * a->kept.where[d];
  }
  if (a->starts) {
    out.start = a->starts[o];
    out.stop = a->stops[o] > out.start ? a->stops[o] : out.start;
  }
  return out;
}

/* Runs of an ordered row's elements that count keep their index. */
static int fold_runs(const gpr_row *row, void *state, const char *x, int bytes, const uint8_t *keep,
                     int64_t n, int64_t index) {
  for (int64_t i = 0, end; i < n; i = end) {
    for (; i < n && !keep[i]; i++) continue;
    for (end = i; end < n && keep[end]; end++) continue;
    if (end > i && row->fold(state, x + i * bytes, end - i, index + i)) return 1;
  }
  return 0;
}

/* A block of m elements of which some count. */
static int fold_kept(axes_run *run, lane *l, char *x, const uint8_t *keep, int64_t m,
                     int64_t index) {
  const gpr_row *row = run->plan.row;
  const int bytes = gpr_dtypes[row->dtype].bytes;
  int64_t kept = 0;
  for (int64_t i = 0; i < m; i++) kept += keep[i];
  l->counted += kept;
  if (row->law == GPR_TREE) {
    for (int64_t i = 0; i < m; i++)
      if (!keep[i]) memcpy(x + i * bytes, run->identity, (size_t)bytes);
    return row->fold(l->state, x, m, index);
  }
  if (row->ordered && kept < m) return fold_runs(row, l->state, x, bytes, keep, m, index);
  if (kept < m) gpr_squeeze(x, bytes, keep, m);
  return kept ? row->fold(l->state, x, kept, index) : 0;
}

/* Folds n elements from the output's i-th; nonzero when the result is settled. */
static int fold(axes_run *run, lane *l, const output *out, int64_t i, int64_t n) {
  const gpr_plan *p = &run->plan;
  const gpr_axes *a = &run->axes;
  const int masked = out->where || a->skip;
  const int64_t from = out->start + i;
  if (!masked) l->counted += n;
  if (!masked && p->direct) return p->row->fold(l->state, out->data + from * p->bytes, n, i);
  _Alignas(64) char packed[BLOCK * 16], scratch[BLOCK * 16];
  uint8_t keep[BLOCK];
  for (int64_t j = 0; j < n; j += BLOCK) {
    const int64_t m = n - j < BLOCK ? n - j : BLOCK;
    gpr_pack(p, out->data, from + j, m, packed, scratch);
    memset(keep, 1, (size_t)m);
    if (out->where) gpr_pack_mask(&a->reduced, out->where, from + j, m, keep);
    if (a->skip) gpr_cpu_table_here()->skip[p->row->dtype](packed, m, keep);
    if (masked ? fold_kept(run, l, packed, keep, m, i + j)
               : p->row->fold(l->state, packed, m, i + j))
      return 1;
  }
  return 0;
}

/* --- items -------------------------------------------------------------------------------------
 */

static void finish_output(axes_run *run, int64_t o, const void *state, int64_t counted) {
  const gpr_row *row = run->plan.row;
  const void *with = run->axes.with;
  gpr_spread spread;
  if (with && (gpr_ops[row->op].flags & GPR_SPREAD)) {
    const int parts = gpr_dtypes[row->dtype].kind == 'c' ? 2 : 1;
    spread = *(const gpr_spread *)with;
    if (spread.means) spread.means += o * parts;
    with = &spread;
  }
  row->finish(state, counted, with, (char *)run->axes.result + (size_t)o * run->result_bytes);
}

/* --- blocks of short outputs -------------------------------------------------------------------
 */

static int64_t length_across(const gpr_axes *a) {
  return a->kept.n ? a->kept.shape[a->kept.n - 1] : 1;
}
static int64_t blocks_across(const axes_run *run) {
  return (length_across(&run->axes) + run->block - 1) / run->block;
}

/* Steps that the row's own loops can take. */
static int steps_evenly(const gpr_plan *p) {
  const gpr_axes *a = p->axes;
  const gpr_dtype_info *type = &gpr_dtypes[p->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  int even = !p->cast && !p->swap && (uintptr_t)p->data % (uintptr_t)unit == 0;
  for (int d = 0; d < a->kept.n; d++) even = even && a->kept.strides[d] % unit == 0;
  return even && a->reduced.n == 1 && a->reduced.strides[0] % unit == 0;
}

/* How many outputs to take at a time; 0 where they go one by one. Long ones do unless they lie side
 * by side, where each alone would read a line of the cache for every element. */
static int64_t block_of(const gpr_plan *p) {
  const gpr_axes *a = p->axes;
  const int spread = gpr_ops[p->row->op].flags & GPR_SPREAD;
  const int side_by_side = a->kept.n && a->kept.strides[a->kept.n - 1] == p->bytes;
  if (!a->outputs || !p->count || a->where || a->skip || a->starts || !steps_evenly(p)) return 0;
  if (p->count > GPR_SHORT) {
    const int64_t across = length_across(a);
    if (!p->row->fold_many || !side_by_side) return 0;
    return across < TALL_OUTPUTS ? across : TALL_OUTPUTS;
  }
  if (!p->row->many) return 0;
  if (a->with && (!spread || ((const gpr_spread *)a->with)->means)) return 0;
  int64_t share = (a->outputs - 1) / (p->lanes > 1 ? BLOCKS_PER_LANE * p->lanes : 1) + 1;
  int64_t piece = ROW_BYTES / p->bytes, each = (a->outputs - 1) / p->lanes + 1;
  if (piece > each) piece = each;
  if (piece < BLOCK_OUTPUTS / 2) piece = BLOCK_OUTPUTS / 2;
  if (side_by_side && share < piece) share = piece;
  const int64_t fit = BLOCK_ELEMENTS / p->count;
  const int64_t most = fit > BLOCK_OUTPUTS ? fit : BLOCK_OUTPUTS;
  return ((share < most ? share : most) + 63) / 64 * 64;
}

/* Tall columns are cut into parts where there are few. */
static void cut_block(axes_run *run) {
  gpr_plan *p = &run->plan;
  const int64_t blocks = run->axes.outputs / length_across(&run->axes) * blocks_across(run);
  p->part = p->count;
  if (!is_short(run) && p->lanes > 1 && blocks < BLOCKS_PER_LANE * p->lanes) {
    const int64_t wanted = (BLOCKS_PER_LANE * p->lanes + blocks - 1) / blocks;
    p->part = (p->count / wanted / GPR_SHORT + 1) * GPR_SHORT;
  }
  p->parts = (p->count - 1) / p->part + 1;
  run->items = blocks * p->parts;
}

/* The outputs of a block. */
typedef struct block {
  output at;
  int64_t o, n, across;
} block;

static block block_at(const axes_run *run, int64_t b) {
  const gpr_axes *a = &run->axes;
  const int64_t length = length_across(a), blocks = blocks_across(run);
  const int64_t first = b % blocks * run->block;
  block it = {.o = b / blocks * length + first, .across = 0};
  it.at = output_at(run, it.o);
  it.n = length - first < run->block ? length - first : run->block;
  if (a->kept.n) it.across = a->kept.strides[a->kept.n - 1];
  return it;
}

static void finish_block(axes_run *run, const block *b, const char *states) {
  for (int64_t j = 0; j < b->n; j++)
    finish_output(run, b->o + j, states + (size_t)j * run->slot_bytes, run->plan.count);
}

static int64_t reduce_block(axes_run *run, lane *l) {
  const gpr_plan *p = &run->plan;
  const block b = block_at(run, l->item);
  char *result = (char *)run->axes.result + (size_t)b.o * run->result_bytes;
  p->row->many(b.at.data, b.across, run->axes.reduced.strides[0], b.n, p->count, run->axes.with,
               result);
  l->item++;
  return b.n * p->count;
}

/* Some rows more of a block of tall columns. */
static int64_t advance_block(axes_run *run, lane *l) {
  const gpr_plan *p = &run->plan;
  const int64_t along = run->axes.reduced.strides[0], part = l->item % p->parts;
  const int64_t stop = (part + 1) * p->part < p->count ? (part + 1) * p->part : p->count;
  const block b = block_at(run, l->item / p->parts);
  if (!l->opened) {
    if (is_cut(run)) l->state = slot(run, (p->lanes + l->item) * run->block);
    for (int64_t j = 0; j < b.n; j++) p->row->open(l->state + (size_t)j * run->slot_bytes);
    l->at = part * p->part;
    l->opened = 1;
  }
  const int64_t n = stop - l->at < GPR_SHORT ? stop - l->at : GPR_SHORT;
  p->row->fold_many(l->state, run->slot_bytes, b.at.data + l->at * along, b.across, along, b.n, n,
                    l->at);
  l->at += n;
  if (l->at < stop) return b.n * n;
  if (!is_cut(run)) finish_block(run, &b, l->state);
  l->item++;
  l->opened = 0;
  return b.n * n;
}

static void merge_block(axes_run *run, int64_t number) {
  const gpr_plan *p = &run->plan;
  const block b = block_at(run, number);
  char *first = slot(run, (p->lanes + number * p->parts) * run->block);
  for (int64_t part = 1; part < p->parts; part++)
    for (int64_t j = 0; j < b.n; j++)
      p->row->merge(first + (size_t)j * run->slot_bytes,
                    first + (size_t)(part * run->block + j) * run->slot_bytes);
  finish_block(run, &b, first);
}

/* At most n elements more of the lane's item; how many. */
static int64_t advance(axes_run *run, lane *l, int64_t n) {
  const gpr_plan *p = &run->plan;
  if (is_block(run)) return is_short(run) ? reduce_block(run, l) : advance_block(run, l);
  const int64_t o = l->item / p->parts, part = l->item % p->parts;
  const output out = output_at(run, o);
  const int64_t count = out.stop - out.start;
  const int64_t stop = is_cut(run) && (part + 1) * p->part < count ? (part + 1) * p->part : count;
  if (!l->opened) {
    if (is_cut(run)) l->state = slot(run, p->lanes + l->item);
    p->row->open(l->state);
    l->at = part * p->part;
    l->counted = 0;
    l->opened = 1;
  }
  if (n > stop - l->at) n = stop - l->at;
  if (n > 0 && fold(run, l, &out, l->at, n)) n = stop - l->at;
  l->at += n;
  if (l->at < stop) return n;
  if (is_cut(run))
    run->counted[l->item] = l->counted;
  else
    finish_output(run, o, l->state, l->counted);
  if (!is_cut(run) && l->counted < l->least) l->least = l->counted;
  l->item++;
  l->opened = 0;
  return n;
}

/* The outputs of all items below this one. */
static int64_t outputs_below(const axes_run *run, int64_t item) {
  const int64_t number = item / run->plan.parts;
  if (!is_block(run)) return number;
  const int64_t blocks = blocks_across(run);
  return number / blocks * length_across(&run->axes) + number % blocks * run->block;
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
    const int64_t n = advance(run, l, STRETCH);
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

static lane lane_of(axes_run *run, int number) {
  return (lane){.least = INT64_MAX, .state = slot(run, number * states_of(run))};
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
  axes_run *run = (axes_run *)base;
  const gpr_plan *p = &run->plan;
  int64_t least = atomic_load(&run->least);
  (void)with, (void)result;
  if (is_block(run)) {
    for (int64_t b = 0; is_cut(run) && b < run->items / p->parts; b++) merge_block(run, b);
    base->least = p->count;
    return GPR_OK;
  }
  for (int64_t o = 0; is_cut(run) && o < run->axes.outputs; o++) {
    const int64_t first = o * p->parts;
    for (int64_t i = first + 1; i < first + p->parts; i++) {
      p->row->merge(slot(run, p->lanes + first), slot(run, p->lanes + i));
      run->counted[first] += run->counted[i];
    }
    finish_output(run, o, slot(run, p->lanes + first), run->counted[first]);
    if (run->counted[first] < least) least = run->counted[first];
  }
  base->least = least;
  return GPR_OK;
}

static void close_run(gpr_run *base) {
  axes_run *run = (axes_run *)base;
  atomic_store(&run->stop, 1);
  while (!gpr_team_wait(&run->team, 1000000000)) continue;
  free(run->counted);
  free(run->states);
  free(run);
}

static const gpr_backend axes = {step, finish, close_run, NULL};

static gpr_status allocate(axes_run *run) {
  const gpr_plan *p = &run->plan;
  const int64_t cut = is_cut(run) ? run->items : 0;
  const size_t slots = (size_t)((p->lanes + cut) * states_of(run));
  run->slot_bytes = (p->row->state_bytes + 63) & ~(size_t)63; /* a cache line apart */
  run->states = aligned_alloc(64, slots * run->slot_bytes);
  run->counted = cut ? malloc((size_t)cut * sizeof *run->counted) : NULL;
  if (!run->states || (cut && !run->counted))
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the states of %d threads", p->lanes);
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
  run->items = run->axes.outputs * plan->parts;
  run->block = block_of(plan);
  if (is_block(run)) cut_block(run);
  const int64_t bytes = plan->count / plan->parts * plan->bytes + 1;
  run->result_bytes = (size_t)(gpr_dtypes[plan->row->result].bytes * plan->row->results);
  run->grain = is_block(run) || is_cut(run) || bytes > GRAIN_BYTES ? 1 : GRAIN_BYTES / bytes;
  const double all = (double)plan->count * (double)run->axes.outputs * (double)plan->bytes;
  run->team = (gpr_team){.work = help, .argument = run};
  if (all > SHARED_BYTES) run->team.helpers = plan->lanes - 1;
  const gpr_status status = allocate(run);
  if (status) {
    close_run(&run->base);
    return status;
  }
  if (plan->row->law == GPR_TREE) {
    plan->row->open(run->states);
    plan->row->finish(run->states, 0, NULL, run->identity);
  }
  start(c);
  *out = &run->base;
  return GPR_OK;
}
