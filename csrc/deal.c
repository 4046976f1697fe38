#include "deal.h"

#include <stdlib.h>
#include <string.h>

#include "../kernels/abi/rows.h"
#include "cpu.h"
#include "cuda/gpu.h"
#include "errors.h"
#include "threads.h"

/* The CPU's threads take so much at a time: at the end they wait no longer for each other than a
 * device's last pieces take. A tree's parts are as long as a device's pieces, with which they share
 * the places for states. */
enum { PART_BYTES = 1 << 20 };
/* Twelve threads fill the ring of one device as fast as it is emptied. */
enum { FILLERS = 12 };

typedef struct deal_run {
  gpr_run base;
  gpr_plan plan;
  gpr_deal deal;
  int64_t part;
  int devices;
  gpr_run *on[GPR_DEVICES_MAX];
  char is_over[GPR_DEVICES_MAX];
  int cpu;       /* threads fold, when there is nothing to fill */
  gpr_team team; /* while the calling thread looks after the devices */
  int lanes;     /* the team's and the caller's, each with a state */
  size_t slot_bytes;
  char *states;
  atomic_llong folded; /* by the CPU */
  atomic_int stop;
} deal_run;

static char *state_of(const deal_run *r, int lane) {
  return r->states + (size_t)lane * r->slot_bytes;
}

/* --- the CPU's threads ------------------------------------------------------------------------ */

static int fold_part(deal_run *r, int lane) {
  const gpr_row *row = r->plan.row;
  char *state = state_of(r, lane);
  int64_t start;
  const int64_t n = gpr_queue_back(&r->deal.queue, r->part, &start);
  if (!n) return 0;
  if (r->deal.nodes) {
    const int64_t piece = start / r->part;
    state = r->deal.nodes + (size_t)piece * r->deal.node_bytes;
    row->open(state);
    r->deal.is_there[piece] = 1;
  }
  if (gpr_cpu_fold(&r->plan, state, start, n))
    gpr_queue_cut(&r->deal.queue, row->ordered ? start : 0);
  atomic_fetch_add_explicit(&r->folded, n, memory_order_relaxed);
  return 1;
}

static int fill_any(deal_run *r, int lane) {
  for (int i = 0; i < r->devices; i++)
    if (gpr_gpu_fill(r->on[(lane + i) % r->devices])) return 1;
  return 0;
}

static void help(void *argument, int lane) {
  deal_run *r = argument;
  int64_t since = 0;
  while (!atomic_load(&r->stop))
    if (fill_any(r, lane) || (r->cpu && fold_part(r, lane)))
      since = 0;
    else
      gpr_pause(&since);
}

/* --- the run ---------------------------------------------------------------------------------- */

/* One whose kernel is being compiled still is not waited for when nothing is left for it. */
static gpr_status step_devices(deal_run *r, int *under_way) {
  gpr_status status = GPR_OK;
  int64_t done = atomic_load(&r->folded);
  *under_way = 0;
  for (int i = 0; i < r->devices; i++) {
    gpr_run *run = r->on[i];
    if (!r->is_over[i] && gpr_queue_is_empty(&r->deal.queue) && gpr_gpu_is_idle(run))
      r->is_over[i] = 1;
    if (!r->is_over[i]) {
      status = run->backend->step(run, 0);
      r->is_over[i] = status == GPR_OK;
      *under_way += status == GPR_MORE;
      if (status && status != GPR_MORE) return status;
    }
    done += atomic_load(&run->done);
  }
  atomic_store(&r->base.done, done);
  return GPR_OK;
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  deal_run *r = (deal_run *)base;
  const int64_t until = gpr_now() + nanoseconds;
  int under_way;
  if (gpr_team_lost(&r->team))
    return gpr_fail(GPR_DEVICE_ERROR, "the process was forked while devices were at work");
  do {
    const gpr_status status = step_devices(r, &under_way);
    if (status) return status;
  } while (under_way && gpr_now() < until);
  if (under_way) return GPR_MORE;
  atomic_store(&r->stop, 1);
  return gpr_team_wait(&r->team, nanoseconds) ? GPR_OK : GPR_MORE;
}

/* The tree's pieces from left to right, or all states in any order, into the first. */
static char *merge_all(deal_run *r) {
  const gpr_row *row = r->plan.row;
  if (r->deal.nodes) {
    const int64_t pieces = (r->plan.count + r->part - 1) / r->part;
    for (int64_t i = 1; i < pieces; i++)
      if (r->deal.is_there[i])
        row->merge(r->deal.nodes, r->deal.nodes + (size_t)i * r->deal.node_bytes);
    return r->deal.nodes;
  }
  for (int i = 1; i < r->lanes; i++) row->merge(r->states, state_of(r, i));
  for (int i = 0; i < r->devices; i++) row->merge(r->states, gpr_gpu_state(r->on[i]));
  return r->states;
}

static gpr_status finish(gpr_run *base, const void *with, void *result) {
  deal_run *r = (deal_run *)base;
  r->plan.row->finish(merge_all(r), r->plan.count, with, result);
  return GPR_OK;
}

/* Helpers fill the rings of runs that are there still. */
static void close_run(gpr_run *base) {
  deal_run *r = (deal_run *)base;
  atomic_store(&r->stop, 1);
  while (!gpr_team_wait(&r->team, 1000000000)) continue;
  for (int i = 0; i < r->devices; i++) r->on[i]->backend->close(r->on[i]);
  gpr_queue_close(&r->deal.queue);
  free(r->deal.nodes);
  free(r->deal.is_there);
  free(r->states);
  free(r);
}

static const gpr_backend deal = {step, finish, close_run, NULL};

static gpr_status make_states(deal_run *r) {
  const gpr_row *row = r->plan.row;
  const int64_t pieces = (r->plan.count + r->part - 1) / r->part;
  r->slot_bytes = (row->state_bytes + 63) & ~(size_t)63; /* a cache line apart */
  r->states = aligned_alloc(64, (size_t)r->lanes * r->slot_bytes);
  if (r->states && row->law == GPR_TREE) {
    r->deal.node_bytes = r->slot_bytes;
    r->deal.nodes = aligned_alloc(64, (size_t)(pieces + !pieces) * r->slot_bytes);
    r->deal.is_there = calloc((size_t)(pieces + !pieces), 1);
  }
  if (!r->states || (row->law == GPR_TREE && (!r->deal.nodes || !r->deal.is_there)))
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the states of %lld parts", (long long)pieces);
  for (int i = 0; i < r->lanes; i++) row->open(state_of(r, i));
  if (r->deal.nodes) row->open(r->deal.nodes);
  return GPR_OK;
}

/* What lies in pinned memory needs nobody who fills. */
static int helpers_for(const deal_run *r, int devices) {
  const int threads = gpr_threads(), fillers = FILLERS * devices;
  if (r->cpu) return threads - 1;
  if (r->plan.direct && gpr_gpu_pinned(r->plan.data)) return 0;
  return (threads < fillers ? threads : fillers) - 1;
}

static gpr_status start(deal_run *r, gpr_places places) {
  const gpr_row *row = r->plan.row;
  const int64_t piece = gpr_gpu_piece(&r->plan);
  r->part = row->law == GPR_TREE ? piece : PART_BYTES / (r->plan.bytes * row->scalars);
  r->lanes = helpers_for(r, __builtin_popcountll(places.devices)) + 1;
  gpr_status status = make_states(r);
  for (int d = 0; !status && d < GPR_DEVICES_MAX; d++) {
    if (!(places.devices >> d & 1)) continue;
    status = gpr_gpu_join(&r->plan, d, &r->deal, &r->on[r->devices]);
    r->devices += !status;
  }
  if (status) return status;
  r->team = (gpr_team){.work = help, .argument = r, .helpers = r->lanes - 1};
  gpr_team_offer(&r->team);
  return GPR_OK;
}

gpr_status gpr_deal_open(const gpr_plan *plan, gpr_places places, gpr_run **out) {
  *out = NULL;
  deal_run *r = calloc(1, sizeof *r);
  if (!r) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  r->base.backend = &deal;
  r->plan = *plan;
  r->cpu = places.cpu;
  gpr_queue_open(&r->deal.queue, plan->count);
  const gpr_status status = start(r, places);
  if (status)
    close_run(&r->base);
  else
    *out = &r->base;
  return status;
}
