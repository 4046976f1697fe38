/* The CPU backend: threads take parts of the index until none is left. */
#include "cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu_axes.h"
#include "errors.h"
#include "pack.h"
#include "threads.h"

/* Between looks at the clock and at `stop`: 64 Ki elements are well below a millisecond. */
enum { STRETCH = 64 << 10 };
/* any(), and argmax of booleans, mostly end here, where an offer to the pool would double their
 * time. */
enum { FIRST_STRETCH = 4 << 10 };
/* More threads pay where the rest takes longer than this alone: one wakes up in 10 to 30 µs, and on
 * a busy machine comes later yet. From 64 to 90 µs (2 MiB) two were 0.9 to 1.05 times as fast as
 * one, from 110 to 170 µs (4 MiB) 0.9 to 1.4 times. */
enum { ALONE_NANOSECONDS = 100000 };
/* What is not direct is packed in blocks that stay in the first cache beside what they come from:
 * maxima of every second of 400000 int64 took 72 µs on Zen 4 by 32 KiB, and take 53. An exact fold
 * takes a microsecond to begin and to end, and each block widens a variance's bounds: big-endian
 * sums of 400000 doubles took 193 µs by 8 KiB, 168 by 32 and 154 by 128. But two of them and an
 * exact fold have to fit a thread's stack of 512 KiB. */
enum { BLOCK_BYTES = 8 << 10, LONG_BLOCK_BYTES = 32 << 10 };
/* Strands of what lies in another order are packed in tiles that stay in the second one. */
enum { STRANDS_BYTES = 128 << 10, STATES_BYTES = 64 << 10 };
/* But for runs of so many: the start of a fold does not show there. */
enum { RUN_BYTES = 4 << 10 };
/* Of a quick row's result: a partial of a sum of complex128 has the most. */
enum { QUICK_MOST = 1280 };

/* Intel's own prefetching stops at the end of a page: from DRAM, sums of float64 on a Xeon went
 * from 9.9 to 14 GB/s with this, extremes from 15 to 17. Zen 4's does not, and extremes went from
 * 26 to 19. Prefetching what is about to be loaded costs nothing that could be measured. */
ptrdiff_t gpr_prefetch_ahead = 0;
/* Nor does Zen's where rows of a power of two are read a few columns at a time: see
 * prefetch_later(). On a Xeon, sums of 512 rows of doubles took 1.4 ms without and 1.7 so. */
int gpr_prefetch_columns = 1;
__thread int gpr_is_far;

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t greatest_of(int64_t a, int64_t b) { return a > b ? a : b; }

static const gpr_cpu_table *best_table(void) {
#ifdef GPR_X86_LEVELS
  const char *wish = getenv("GPUREDUCE_ISA"); /* v4, v3 or plain: at most this */
  const int most = !wish ? 4 : wish[0] == 'v' ? atoi(wish + 1) : 1;
  __builtin_cpu_init();
  if (__builtin_cpu_is("intel")) gpr_prefetch_ahead = 4096, gpr_prefetch_columns = 0;
  if (most >= 4 && __builtin_cpu_supports("x86-64-v4")) return &gpr_cpu_table_v4;
  if (most >= 3 && __builtin_cpu_supports("x86-64-v3")) return &gpr_cpu_table_v3;
#endif
  return &gpr_cpu_table_plain;
}

const gpr_cpu_table *gpr_cpu_table_here(void) {
  static _Atomic(const gpr_cpu_table *) here;
  const gpr_cpu_table *table = atomic_load_explicit(&here, memory_order_relaxed);
  if (!table) atomic_store(&here, table = best_table());
  return table;
}

gpr_row gpr_quick_row(const gpr_row *row) {
  gpr_row quick = *row;
  quick.state_bytes = row->quick->state_bytes;
  quick.side = GPR_LINES;
  quick.open = row->quick->open;
  quick.fold = row->quick->fold;
  quick.merge = row->quick->merge;
  quick.many = row->quick->many;
  quick.fold_many = row->quick->fold_many;
  return quick;
}

/* What one thread is at: a part, how far it got, and the state it folds into. */
typedef struct lane {
  int64_t at, stop;
  char *state;
} lane;

typedef struct cpu_run {
  gpr_run base;
  gpr_plan plan;
  const gpr_quick *quick; /* what plan.row folds by, or NULL */
  gpr_row quick_row;
  atomic_llong next; /* the part that is to be taken next */
  atomic_int stop;
  int begun; /* the first stretches are done, and the team is offered if it pays */
  gpr_team team;
  int slots; /* states: one a lane, or one a part where parts must merge in order */
  size_t slot_bytes;
  char *states;
  lane caller;
  _Alignas(16) char result[QUICK_MOST]; /* of what is quick */
} cpu_run;

static char *slot(const cpu_run *run, int64_t i) {
  return run->states + (size_t)i * run->slot_bytes;
}

static int per_part(const gpr_plan *plan) { return plan->row->law == GPR_TREE; }

/* n times the same element; zero where it has to be read as often. */
static int fold_repeated(const gpr_plan *p, void *state, const char *from, int64_t n,
                         int64_t start) {
  _Alignas(16) char multiples[64 * 16];
  const gpr_masked one = {.data = from, .lines = 1, .n = n, .bytes = p->bytes};
  if (!gpr_repeats(p, n, p->strides[p->ndim - 1])) return 0;
  if (!p->row->repeat(&one, 1, multiples, NULL)) return 0;
  p->row->fold(state, multiples, GPR_MULTIPLES(n), start);
  return 1;
}

/* Elements in long runs that are as the row takes them, or that it brings together: where they
 * lie. */
static int fold_runs(const gpr_plan *p, void *state, int64_t start, int64_t n) {
  const int last = p->ndim - 1;
  const int64_t run = p->shape[last], along = p->strides[last];
  while (n > 0) {
    const int64_t at = start % run, m = n < run - at ? n : run - at;
    const char *from = p->data + at * along;
    int64_t number = start / run, rest = m;
    for (int d = last - 1; d >= 0; d--) {
      from += number % p->shape[d] * p->strides[d];
      number /= p->shape[d];
    }
    if (fold_repeated(p, state, from, m, start)) {
      rest = 0;
    } else if (p->cast || along != p->bytes) {
      const gpr_tile tile = {
          .data = from, .along = along, .outputs = 1, .n = m, .cast = p->cast, .bytes = p->bytes};
      p->row->fold_many(state, 0, &tile, start);
      rest = 0;
    }
    if (p->row->fold(state, from, rest, start)) return 1;
    start += m;
    n -= m;
  }
  return 0;
}

static int lies_in_runs(const gpr_plan *p) {
  const gpr_dtype_info *type = &gpr_dtypes[p->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes, last = p->ndim - 1;
  const int brings = p->row->side == GPR_LINES;
  int64_t odd = (int64_t)((uintptr_t)p->data % (uintptr_t)unit);
  for (int d = 0; d <= last; d++) odd |= p->strides[d] % unit;
  return !odd && !p->swap && p->row->scalars == 1 && p->shape[last] * p->bytes >= RUN_BYTES &&
         (brings || (!p->cast && p->strides[last] == p->bytes));
}

/* By blocks of the index. */
static int fold_blocks(const gpr_plan *p, void *state, int64_t start, int64_t n) {
  const int scalars = p->row->scalars;
  _Alignas(64) char packed[LONG_BLOCK_BYTES], scratch[LONG_BLOCK_BYTES];
  const int bytes = gpr_dtypes[p->row->dtype].bytes;
  const int most = p->row->law == GPR_EXACT ? LONG_BLOCK_BYTES : BLOCK_BYTES;
  const int64_t block = most / (scalars * (bytes > p->bytes ? bytes : p->bytes));
  for (int64_t i = 0; i < n; i += block) {
    const int64_t m = n - i < block ? n - i : block;
    gpr_pack(p, p->data, start + i, m, packed, scratch);
    if (p->row->fold(state, packed, m, start + i)) return 1;
  }
  return 0;
}

/* At most n strands from this one on, piece by piece; how many were folded. The first that is
 * settled is the last that is needed. */
__attribute__((noinline)) /* whose room others do without */
static int64_t
fold_strands(const gpr_plan *p, void *state, int64_t first, int64_t n, int *settled) {
  _Alignas(64) char packed[STRANDS_BYTES], scratch[STRANDS_BYTES], states[STATES_BYTES];
  const gpr_strands *s = &p->strands;
  const gpr_row *row = p->row;
  const int64_t bytes = gpr_dtypes[row->dtype].bytes, slot = (int64_t)(row->state_bytes + 15) & ~15;
  n = least_of(least_of(n, s->n), least_of(s->all - first % s->all, STATES_BYTES / slot));
  /* Not a power of two apart, where all would meet in one set of the cache. */
  const int64_t most = (STRANDS_BYTES / n - 64) / greatest_of(bytes, p->bytes);
  const int64_t start = first * s->length;
  for (int64_t l = 0; l < n; l++) row->open(states + l * slot);
  for (int64_t i = 0; i < s->length; i += most) {
    const int64_t m = least_of(most, s->length - i);
    gpr_pack_lines(p, (gpr_lines_at){n, s->step}, p->data, start + i, m, packed, scratch);
    for (int64_t l = 0; l < n; l++)
      if (row->fold(states + l * slot, packed + l * m * bytes, m, start + l * s->length + i))
        n = l + 1, *settled = 1;
  }
  for (int64_t l = 0; l < n; l++) row->merge(state, states + l * slot);
  return n;
}

int gpr_cpu_fold(const gpr_plan *p, void *state, int64_t start, int64_t n) {
  const int64_t strand = p->strands.length;
  int settled = 0;
  gpr_is_far = p->count > GPR_CACHE_BYTES / p->bytes;
  if (p->direct) return p->row->fold(state, p->data + start * p->row->scalars * p->bytes, n, start);
  if (lies_in_runs(p)) return fold_runs(p, state, start, n);
  for (int64_t m; n > 0 && !settled; start += m, n -= m)
    if (strand && start % strand == 0 && n >= 2 * strand) {
      m = strand * fold_strands(p, state, start / strand, n / strand, &settled);
    } else {
      m = strand ? least_of(n, strand - start % strand) : n;
      settled = fold_blocks(p, state, start, m);
    }
  return settled;
}

static int take_part(cpu_run *run, lane *l) {
  const gpr_plan *p = &run->plan;
  const int64_t part = gpr_take(&run->next, 1, p->parts, p->lanes == 1);
  if (part >= p->parts) return 0;
  l->at = part * p->part;
  l->stop = l->at + p->part < p->count ? l->at + p->part : p->count;
  if (per_part(p)) l->state = slot(run, part);
  return 1;
}

/* At most n elements more of the lane's part. */
static void advance(cpu_run *run, lane *l, int64_t n) {
  const gpr_plan *p = &run->plan;
  if (n > l->stop - l->at) n = l->stop - l->at;
  const int settled = gpr_cpu_fold(p, l->state, l->at, n);
  l->at += n;
  if (p->count > STRETCH) /* a small array is never asked for it */
    atomic_fetch_add_explicit(&run->base.done, n, memory_order_relaxed);
  if (!settled) return;
  l->at = l->stop; /* parts are taken in order: the ones before this are taken already */
  atomic_store_explicit(&run->next, p->parts, memory_order_relaxed);
}

/* Until no part is left (1), or the time is over or the run is closed (0). */
static int work(cpu_run *run, lane *l, int64_t until) {
  while (l->at < l->stop || take_part(run, l)) {
    if (atomic_load_explicit(&run->stop, memory_order_relaxed)) return 0;
    advance(run, l, greatest_of(STRETCH, run->plan.strands.n * run->plan.strands.length));
    if (until && gpr_now() > until) return 0;
  }
  return 1;
}

/* How long the rest takes alone, going by the next stretch of it; 0 where that ends it all. */
static int64_t time_left(cpu_run *run, lane *l) {
  if (!take_part(run, l)) return 0;
  advance(run, l, FIRST_STRETCH);
  const int64_t start = gpr_now(), from = l->at;
  advance(run, l, STRETCH);
  if (atomic_load(&run->next) >= run->plan.parts || l->at == from) return 0;
  return (int64_t)((double)(gpr_now() - start) * (double)(run->plan.count - l->at) /
                   (double)(l->at - from));
}

static void begin(cpu_run *run) {
  run->begun = 1;
  if (run->plan.lanes == 1 || time_left(run, &run->caller) < ALONE_NANOSECONDS) return;
  run->team.helpers = run->plan.lanes - 1;
  gpr_team_offer(&run->team);
}

static void help(void *argument, int number) {
  cpu_run *run = argument;
  lane l = {0, 0, per_part(&run->plan) ? NULL : slot(run, number)};
  work(run, &l, 0);
}

static void start(cpu_run *run) {
  atomic_store_explicit(&run->base.done, 0, memory_order_relaxed);
  atomic_store_explicit(&run->next, 0, memory_order_relaxed);
  run->begun = 0;
  run->team = (gpr_team){.work = help, .argument = run};
  for (int i = 0; i < run->slots; i++) run->plan.row->open(slot(run, i));
  run->caller = (lane){0, 0, run->states};
}

static void merge_slots(cpu_run *run) {
  for (int i = 1; i < run->slots; i++) run->plan.row->merge(run->states, slot(run, i));
}

/* Zero where the result is refused; then all is folded again by the row itself. */
static int finish_quickly(cpu_run *run) {
  const gpr_run *base = &run->base;
  const void *with = base->with.given;
  uint8_t refused = 1;
  int64_t decided = 0;
  merge_slots(run);
  if (with != &base->with.spread || !base->with.spread.means)
    run->quick->finish_many(run->states, 1, run->plan.count, NULL, with, run->result, &refused,
                            &decided);
  if (!refused) {
    run->base.decided = run->plan.cast ? -1 : decided;
    return 1;
  }
  run->quick = NULL;
  run->plan.row = base->row;
  start(run);
  return 0;
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  cpu_run *run = (cpu_run *)base;
  if (gpr_team_lost(&run->team)) start(run);
  /* A small array is done before the clock would be read twice. */
  const int64_t until = run->plan.count <= STRETCH ? 0 : gpr_now() + nanoseconds;
  if (!run->begun) begin(run);
  if (!work(run, &run->caller, until)) return GPR_MORE;
  if (!gpr_team_wait(&run->team, nanoseconds)) return GPR_MORE;
  return !run->quick || finish_quickly(run) ? GPR_OK : GPR_MORE;
}

static gpr_status finish(gpr_run *base, const void *initial, void *result) {
  cpu_run *run = (cpu_run *)base;
  if (run->quick) {
    memcpy(result, run->result,
           (size_t)(gpr_dtypes[run->plan.row->result].bytes * run->plan.row->results));
    return GPR_OK;
  }
  merge_slots(run);
  run->plan.row->finish(run->states, run->plan.count, initial, result);
  return GPR_OK;
}

static void close_run(gpr_run *base) {
  cpu_run *run = (cpu_run *)base;
  atomic_store_explicit(&run->stop, 1, memory_order_relaxed);
  while (!gpr_team_wait(&run->team, 1000000000)) continue;
}

static const gpr_backend cpu = {step, finish, close_run, NULL};

gpr_status gpr_cpu_open(const gpr_plan *plan, gpr_block *block, gpr_run **out) {
  const int slots = per_part(plan) && plan->parts > 0 ? (int)plan->parts : plan->lanes;
  const size_t slot_bytes = (plan->row->state_bytes + 63) & ~(size_t)63; /* a cache line apart */
  *out = NULL;
  if (plan->axes) return gpr_axes_open(plan, block, out);
  cpu_run *run = gpr_block_take(block, sizeof *run);
  char *states = gpr_block_take(block, (size_t)slots * slot_bytes);
  if (!run || !states)
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the states of %d threads", plan->lanes);
  memset(run, 0, offsetof(cpu_run, plan));
  run->base.backend = &cpu;
  gpr_plan_copy(&run->plan, plan);
  atomic_init(&run->stop, 0);
  run->slots = slots;
  run->slot_bytes = slot_bytes;
  run->states = states;
  run->quick = plan->row->quick;
  if (run->quick && plan->count > run->quick->most) run->quick = NULL;
  if (run->quick) {
    run->quick_row = gpr_quick_row(plan->row);
    run->plan.row = &run->quick_row;
  }
  start(run);
  *out = &run->base;
  return GPR_OK;
}
