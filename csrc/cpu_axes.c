/* Many outputs on the CPU: threads take blocks of outputs, or parts of few, tile by tile. */
#define _DEFAULT_SOURCE
#include "cpu_axes.h"

#include <string.h>
#include <sys/mman.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"
#include "cpu_items.h"
#include "errors.h"

/* What a thread takes at a time. */
enum { GRAIN_BYTES = 64 << 10 };
/* More threads pay beyond this; see cpu.c. */
enum { SHARED_BYTES = 2 << 20 };
/* Of an output beside its elements, in elements. */
enum { OUTPUT_COST = 64 };
/* Of results that are exchanged at a time. */
enum { REVERSED_BYTES = 512 };

static size_t whole(size_t bytes) { return (bytes + 63) & ~(size_t)63; } /* lines */

/* The outputs of all items below this one. */
static int64_t outputs_below(const gpr_axes_run *run, int64_t item) {
  const int64_t block = item / run->shares.parts;
  return !run->shares.items || block >= run->shares.items / run->shares.parts
             ? run->axes.outputs
             : gpr_block_at(run, block).first;
}

/* madvise's MADV_POPULATE_WRITE: Linux has it from 5.14 on, glibc's headers from 2.35 on. */
enum { POPULATE_WRITE = 23 };

/* Has the results' memory made for the items below `stop` and a huge page ahead, each page by its
 * last bytes: Linux clears a huge page upwards where it is first used in its upper half, and
 * downwards, at half the speed, in its lower one. 32 MiB take 1.7 ms in place of 3.9 on Zen 4. */
static void make_pages(gpr_axes_run *run, int64_t stop) {
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

static int take_items(gpr_axes_run *run, gpr_lane *l) {
  l->item = gpr_take(&run->next, run->grain, run->shares.items, !run->team.helpers);
  if (l->item >= run->shares.items) return 0;
  l->stop = l->item + run->grain < run->shares.items ? l->item + run->grain : run->shares.items;
  make_pages(run, l->stop);
  return 1;
}

/* Until no item is left (1), or the time is over or the run is closed (0). */
static int work(gpr_axes_run *run, gpr_lane *l, int64_t until) {
  int64_t cost = 0, read = 0;
  while (l->item < l->stop || take_items(run, l)) {
    if (atomic_load_explicit(&run->stop, memory_order_relaxed)) return 0;
    const int64_t n = gpr_advance(run, l);
    read += n;
    cost += n + OUTPUT_COST;
    if (cost < GPR_STRETCH) continue;
    atomic_fetch_add_explicit(&run->base.done, read, memory_order_relaxed);
    cost = read = 0;
    if (until && gpr_now() > until) return 0;
  }
  if (l->infinite.met) atomic_store(&run->infinite, 1);
  atomic_fetch_add(&run->decided, l->infinite.decided);
  l->infinite.decided = 0;
  int64_t least = atomic_load(&run->least);
  while (l->least < least && !atomic_compare_exchange_weak(&run->least, &least, l->least)) continue;
  return 1;
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Of a tile that is made. */
static int64_t elements_of(const gpr_axes_run *run) {
  if (run->tiles.brought) return GPR_SHORT;
  if (run->tiles.direct && !run->tiles.masked) return 0;
  return run->tiles.kept.most * run->tiles.reduced.most;
}

static gpr_lane lane_of(gpr_axes_run *run, int number) {
  char *room = run->rooms + (size_t)number * run->lane_bytes;
  return (gpr_lane){
      .number = number,
      .least = INT64_MAX,
      .states = gpr_slots(run, number),
      .room = gpr_room_in(room, elements_of(run), gpr_outputs_of_block(run), run->tiles.masked)};
}

typedef struct caller_run {
  gpr_axes_run run;
  gpr_lane caller;
} caller_run;

static void help(void *argument, int number) {
  gpr_axes_run *run = argument;
  gpr_lane l = lane_of(run, number);
  work(run, &l, 0);
}

static void start(caller_run *c) {
  gpr_axes_run *run = &c->run;
  atomic_store_explicit(&run->base.done, 0, memory_order_relaxed);
  atomic_store_explicit(&run->next, 0, memory_order_relaxed);
  atomic_store_explicit(&run->least, INT64_MAX, memory_order_relaxed);
  atomic_store_explicit(&run->made, 0, memory_order_relaxed);
  atomic_store_explicit(&run->decided, 0, memory_order_relaxed);
  run->begun = 0;
  c->caller = lane_of(run, 0);
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  caller_run *c = (caller_run *)base;
  gpr_axes_run *run = &c->run;
  if (gpr_team_lost(&run->team)) start(c);
  /* Few are done before the clock would be read twice. */
  const int64_t until = run->is_small ? 0 : gpr_now() + nanoseconds;
  if (!run->begun) {
    run->begun = 1;
    if (run->team.helpers) gpr_team_offer(&run->team);
  }
  if (!work(run, &c->caller, until)) return GPR_MORE;
  return gpr_team_wait(&run->team, nanoseconds) ? GPR_OK : GPR_MORE;
}

/* --- what is read backwards ------------------------------------------------------------------- */

/* Memory forwards, if the results can be reversed. */
static void turn_forwards(gpr_axes_run *run) {
  const gpr_dims *kept = &run->axes.kept;
  const size_t bytes = run->result_bytes;
  if (run->axes.starts || gpr_has_means(run) || bytes > 16 || bytes & (bytes - 1)) return;
  for (int d = 0; d < kept->n; d++)
    if (kept->strides[d] < 0) run->turned |= (uint64_t)1 << d;
  gpr_dims_forwards(&run->axes.kept, &run->plan.data, &run->axes.where);
}

/* n slices of so many bytes, of elements of `unit` bytes, the other way round. */
static void reverse(char *at, int64_t n, int64_t bytes, int unit) {
  const gpr_copy copy = gpr_cpu_table_here()->copy;
  char first[REVERSED_BYTES], last[REVERSED_BYTES];
  for (int64_t m; bytes == unit && n > 1; at += m * bytes, n -= 2 * m) {
    m = n / 2 < REVERSED_BYTES / bytes ? n / 2 : REVERSED_BYTES / bytes;
    char *end = at + n * bytes;
    copy(at + (m - 1) * bytes, -bytes, first, bytes, m, unit);
    copy(end - bytes, -bytes, last, bytes, m, unit);
    memcpy(at, last, (size_t)(m * bytes));
    memcpy(end - m * bytes, first, (size_t)(m * bytes));
  }
  for (; n > 1; at += bytes, n -= 2)
    for (int64_t i = 0, m; i < bytes; i += m) {
      char *other = at + (n - 1) * bytes + i;
      m = bytes - i < REVERSED_BYTES ? bytes - i : REVERSED_BYTES;
      memcpy(first, at + i, (size_t)m);
      memcpy(at + i, other, (size_t)m);
      memcpy(other, first, (size_t)m);
    }
}

static void reverse_results(const gpr_axes_run *run) {
  const gpr_dims *kept = &run->axes.kept;
  const int64_t all = run->axes.outputs * (int64_t)run->result_bytes;
  int64_t bytes = (int64_t)run->result_bytes;
  for (int d = kept->n - 1; d >= 0; d--) {
    const int64_t line = bytes * kept->shape[d];
    for (int64_t at = 0; run->turned >> d & 1 && at < all; at += line)
      reverse((char *)run->axes.result + at, kept->shape[d], bytes, (int)run->result_bytes);
    bytes = line;
  }
}

static gpr_status finish(gpr_run *base, const void *with, void *result) {
  caller_run *c = (caller_run *)base;
  gpr_axes_run *run = &c->run;
  int64_t least = atomic_load(&run->least);
  (void)with, (void)result;
  const int64_t blocks = gpr_is_cut(run) ? run->shares.items / run->shares.parts : 0;
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t counted = gpr_merge_block(run, &c->caller, b);
    if (counted < least) least = counted;
  }
  reverse_results(run);
  base->least = least;
  base->finite = run->exact && !atomic_load(&run->infinite);
  if (run->exact && !run->plan.cast)
    base->decided = atomic_load(&run->decided) + c->caller.infinite.decided;
  return GPR_OK;
}

static void close_run(gpr_run *base) {
  gpr_axes_run *run = (gpr_axes_run *)base;
  atomic_store_explicit(&run->stop, 1, memory_order_relaxed);
  while (!gpr_team_wait(&run->team, 1000000000)) continue;
}

static const gpr_backend axes = {step, finish, close_run, NULL};

static gpr_status allocate(gpr_axes_run *run, gpr_block *block) {
  const int lanes = run->plan.lanes;
  const int64_t cut = gpr_is_cut(run) ? run->shares.items : 0, outputs = gpr_outputs_of_block(run);
  const size_t slots = (size_t)((lanes + cut) * outputs);
  run->lane_bytes = gpr_room_bytes(elements_of(run), outputs);
  run->lane_bytes = whole(run->lane_bytes);
  run->states = gpr_block_take(block, slots * run->slot_bytes);
  run->counted = gpr_block_take(block, (size_t)(cut * outputs) * sizeof *run->counted);
  run->refused = gpr_block_take(block, run->exact ? (size_t)(lanes * outputs) : 0);
  run->rooms = gpr_block_take(block, (size_t)lanes * run->lane_bytes);
  if (!run->states || !run->counted || !run->refused || !run->rooms)
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the states of %d threads", lanes);
  return GPR_OK;
}

gpr_status gpr_axes_open(const gpr_plan *plan, gpr_block *block, gpr_run **out) {
  *out = NULL;
  caller_run *c = gpr_block_take(block, sizeof *c);
  if (!c) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  gpr_axes_run *run = &c->run;
  memset(run, 0, offsetof(gpr_axes_run, plan));
  run->base.backend = &axes;
  gpr_plan_copy(&run->plan, plan);
  gpr_axes_copy(&run->axes, plan->axes);
  run->plan.axes = &run->axes;
  if (plan->row->quick && plan->count <= plan->row->quick->most && !gpr_has_means(run)) {
    run->exact = plan->row;
    run->quick_row = gpr_quick_row(plan->row);
    run->plan.row = &run->quick_row;
  }
  const gpr_row *row = run->plan.row;
  run->slot_bytes = row->side ? row->state_bytes : whole(row->state_bytes);
  run->result_bytes = (size_t)(gpr_dtypes[plan->row->result].bytes * plan->row->results);
  plan->row->identity(run->identity);
  if (!gpr_dims_are_numbered(&run->axes.kept)) { /* the result's order is the memory's */
    gpr_dims_sort(&run->axes.kept);
    gpr_dims_coalesce(&run->axes.kept);
  }
  turn_forwards(run);
  run->tiles.plan = &run->plan;
  run->tiles.identity = run->identity;
  run->shares = gpr_share_out(&run->tiles, run->slot_bytes);
  const int64_t bytes = run->tiles.kept.most * run->tiles.reduced.most * plan->bytes + 1;
  run->grain = gpr_is_cut(run) || bytes > GRAIN_BYTES ? 1 : GRAIN_BYTES / bytes;
  const double all = (double)plan->count * (double)run->axes.outputs * (double)plan->bytes;
  run->team = (gpr_team){.work = help, .argument = run};
  run->is_small = (double)(plan->count + OUTPUT_COST) * (double)run->axes.outputs < GPR_STRETCH;
  if (all > SHARED_BYTES) run->team.helpers = plan->lanes - 1;
  const gpr_status status = allocate(run, block);
  if (status) return status;
  start(c);
  *out = &run->base;
  return GPR_OK;
}
