/* Many outputs dealt: a slab is a range of one kept axis, at one place of those before it, so that
 * its results lie one behind the other. Each is a run of its own. */
#include <stdlib.h>
#include <string.h>

#include "../kernels/abi/lists.h"
#include "cuda/gpu.h"
#include "deal.h"
#include "errors.h"
#include "plan.h"
#include "queue.h"
#include "threads.h"

/* A slab's bytes: of many, so that all end together; so few that its start, of about 0.2 ms, does
 * not show beside its copy. */
enum { SLABS_PER_PLACE = 8, SLAB_LEAST = 8 << 20, SLAB_MOST = 256 << 20 };
/* Where a slab is no range of memory, the fewer there are the longer are its runs. */
enum { SCATTERED_PER_PLACE = 2 };

/* Runs of a device: the copies of the second begin where those of the first end. */
enum { RUNS = 2 };

typedef struct axes_deal {
  gpr_run base;
  int op;
  gpr_view view, where;
  gpr_options options;
  gpr_value initial;
  gpr_queue queue; /* of slabs */
  int axis;        /* that slabs are ranges of, so long */
  int64_t length, ranges;
  int64_t result_bytes; /* of an output */
  int devices;
  struct {
    int number;
    gpr_copies *copies;
    gpr_run *run[RUNS]; /* the older one first, which is stepped */
  } on[GPR_DEVICES_MAX];
  int cpu;
  gpr_team team; /* whose one thread has the CPU's slabs reduced */
  atomic_int stop;
  atomic_llong reduced; /* elements of the slabs that are done */
  pthread_mutex_t lock; /* of what follows */
  gpr_status failed;    /* the first failure of the CPU's */
  char why[512];
} axes_deal;

static int is_kept(const axes_deal *r, int d) { return !(r->options.axes >> d & 1); }

/* --- slabs ------------------------------------------------------------------------------------ */

static int64_t step_of(const gpr_view *view, int d) {
  return view->shape[d] < 2 ? 0 : gpr_magnitude(view->strides[d]);
}
/* Whether a reduced axis is the outermost in memory. */
static int is_scattered(const axes_deal *r) {
  int64_t kept = 0, reduced = 0;
  for (int d = 0; d < r->view.ndim; d++) {
    int64_t *most = is_kept(r, d) ? &kept : &reduced;
    if (step_of(&r->view, d) > *most) *most = step_of(&r->view, d);
  }
  return reduced > kept;
}

/* The first kept axis, whose places and those of the axes before it are enough slabs; how many. */
static int64_t choose_slabs(axes_deal *r, int places) {
  double each = gpr_bytes(&r->view), wanted = each / (SLABS_PER_PLACE * places);
  int64_t before = 1;
  if (wanted > SLAB_MOST) wanted = SLAB_MOST;
  if (is_scattered(r)) wanted = each / (SCATTERED_PER_PLACE * places);
  if (wanted < SLAB_LEAST) wanted = SLAB_LEAST;
  r->axis = -1;
  for (int d = 0; d < r->view.ndim && (r->axis < 0 || each > wanted); d++) {
    if (!is_kept(r, d)) continue;
    if (r->axis >= 0) before *= r->view.shape[r->axis];
    r->axis = d;
    each /= (double)r->view.shape[d];
  }
  if (r->axis < 0 || !(each > 0)) return 0;
  const int64_t all = r->view.shape[r->axis];
  r->length = each < wanted ? (int64_t)(wanted / each) : 1;
  if (r->length > all) r->length = all;
  r->ranges = (all - 1) / r->length + 1;
  return before * r->ranges;
}

/* The view, the mask and the results of a slab. */
static void cut_slab(const axes_deal *r, int64_t slab, gpr_view *view, gpr_view *where,
                     gpr_options *options) {
  const int64_t start = slab % r->ranges * r->length, left = r->view.shape[r->axis] - start;
  int64_t place = slab / r->ranges, offset = 0, where_offset = 0, output = start, step = 1;
  *view = r->view;
  *where = r->where;
  *options = r->options;
  view->shape[r->axis] = left < r->length ? left : r->length;
  offset = start * view->strides[r->axis];
  where_offset = start * where->strides[r->axis];
  for (int d = r->view.ndim - 1; d > r->axis; d--)
    if (is_kept(r, d)) output *= r->view.shape[d], step *= r->view.shape[d];
  step *= r->view.shape[r->axis];
  for (int d = r->axis - 1; d >= 0; d--) {
    if (!is_kept(r, d)) continue;
    const int64_t at = place % r->view.shape[d];
    place /= r->view.shape[d];
    view->shape[d] = 1;
    offset += at * view->strides[d];
    where_offset += at * where->strides[d];
    output += at * step;
    step *= r->view.shape[d];
  }
  view->data = (const char *)view->data + offset;
  if (options->where) {
    for (int d = 0; d < view->ndim; d++) where->shape[d] = view->shape[d];
    where->data = (const char *)where->data + where_offset;
    options->where = where;
  }
  options->out = (char *)options->out + output * r->result_bytes;
  if (options->means) options->means += output * (gpr_dtypes[r->view.dtype].kind == 'c' ? 2 : 1);
}

static gpr_status open_slab(axes_deal *r, int64_t slab, int device, gpr_run **run) {
  gpr_view view, where;
  gpr_options options;
  cut_slab(r, slab, &view, &where, &options);
  options.device = device;
  return gpr_open(r->op, &view, &options, run);
}

/* Its results are where they belong then. */
static gpr_status end_slab(axes_deal *r, gpr_run **run) {
  int64_t total;
  const gpr_status status = gpr_finish(*run, NULL);
  const int64_t least = gpr_least(*run);
  gpr_done(*run, &total);
  pthread_mutex_lock(&r->lock);
  if (least < r->base.least) r->base.least = least;
  pthread_mutex_unlock(&r->lock);
  atomic_fetch_add(&r->reduced, total);
  gpr_close(*run);
  *run = NULL;
  return status;
}

/* --- the CPU ---------------------------------------------------------------------------------- */

static gpr_status reduce_slab(axes_deal *r, int64_t slab) {
  gpr_run *run;
  gpr_status status = open_slab(r, slab, GPR_DEVICE_CPU, &run);
  if (status) return status;
  do status = gpr_step(run, 10 * 1000 * 1000);
  while (status == GPR_MORE && !atomic_load(&r->stop));
  if (!status) return end_slab(r, &run);
  gpr_close(run);
  return status == GPR_MORE ? GPR_OK : status;
}

static void help(void *argument, int lane) {
  axes_deal *r = argument;
  gpr_status status = GPR_OK;
  int64_t slab;
  (void)lane;
  while (!status && !atomic_load(&r->stop) && gpr_queue_back(&r->queue, 1, &slab))
    status = reduce_slab(r, slab);
  if (!status) return;
  pthread_mutex_lock(&r->lock);
  r->failed = status;
  strncpy(r->why, gpr_error(), sizeof r->why - 1);
  pthread_mutex_unlock(&r->lock);
}

static gpr_status failure(axes_deal *r) {
  pthread_mutex_lock(&r->lock);
  const gpr_status status = r->failed;
  pthread_mutex_unlock(&r->lock);
  return status ? gpr_fail(status, "%s", r->why) : GPR_OK;
}

/* --- the run ---------------------------------------------------------------------------------- */

static gpr_status begin_run(axes_deal *r, int i, gpr_run **run) {
  int64_t slab;
  gpr_status status = GPR_OK;
  if (!gpr_queue_front(&r->queue, 1, &slab)) return GPR_OK;
  if (!r->on[i].copies) status = gpr_copies_open(r->on[i].number, &r->on[i].copies);
  if (!status) status = open_slab(r, slab, r->on[i].number, run);
  return status ? status : gpr_gpu_axes_bring_by(*run, r->on[i].copies);
}

static gpr_status step_device(axes_deal *r, int i, int *under_way) {
  gpr_run **run = r->on[i].run;
  gpr_status status = GPR_OK;
  if (!run[0]) status = begin_run(r, i, &run[0]);
  if (status || !run[0]) return status;
  ++*under_way;
  if (!run[1] && gpr_gpu_axes_all_come(run[0])) status = begin_run(r, i, &run[1]);
  if (!status) status = gpr_step(run[0], 0);
  if (status) return status == GPR_MORE ? GPR_OK : status;
  status = end_slab(r, &run[0]);
  run[0] = run[1];
  run[1] = NULL;
  return status;
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  axes_deal *r = (axes_deal *)base;
  const int64_t until = gpr_now() + nanoseconds;
  int under_way;
  gpr_status status = failure(r);
  if (!status && gpr_team_lost(&r->team))
    return gpr_fail(GPR_DEVICE_ERROR, "the process was forked while devices were at work");
  do {
    under_way = 0;
    for (int i = 0; !status && i < r->devices; i++) status = step_device(r, i, &under_way);
    if (status) return status;
    atomic_store(&base->done, atomic_load(&r->reduced));
  } while (under_way && gpr_now() < until);
  if (under_way || !gpr_team_wait(&r->team, nanoseconds)) return GPR_MORE;
  return failure(r);
}

static gpr_status finish(gpr_run *base, const void *with, void *result) {
  (void)base, (void)with, (void)result;
  return GPR_OK;
}

static void close_run(gpr_run *base) {
  axes_deal *r = (axes_deal *)base;
  atomic_store(&r->stop, 1);
  while (!gpr_team_wait(&r->team, 1000000000)) continue;
  for (int i = 0; i < r->devices; i++) {
    gpr_copies_close(r->on[i].copies); /* into memory of the runs */
    for (int n = 0; n < RUNS; n++) gpr_close(r->on[i].run[n]);
  }
  gpr_queue_close(&r->queue);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

static const gpr_backend deal = {step, finish, close_run, NULL};

static void copy_options(axes_deal *r, const gpr_options *options) {
  r->options = *options;
  r->options.out_order = GPR_C_ORDER;
  if (options->where) r->where = *options->where;
  if (options->initial) {
    r->initial = *options->initial;
    r->options.initial = &r->initial;
  }
}

static int can_be_dealt(const gpr_view *view, const gpr_options *options) {
  return options->out && !options->starts && !options->partials &&
         (!options->out_order || gpr_lies_in_order(view, options->axes));
}

static axes_deal *make(const gpr_resolved *what, const gpr_view *view, const gpr_options *options,
                       gpr_places places) {
  axes_deal *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->base.backend = &deal;
  r->base.least = INT64_MAX;
  r->op = what->op;
  r->view = *view;
  copy_options(r, options);
  r->result_bytes = (int64_t)what->results * gpr_dtype_size(what->result);
  r->cpu = places.cpu;
  for (int d = 0; d < GPR_DEVICES_MAX; d++)
    if (places.devices >> d & 1) r->on[r->devices++].number = d;
  pthread_mutex_init(&r->lock, NULL);
  gpr_queue_open(&r->queue, choose_slabs(r, r->devices + r->cpu));
  return r;
}

gpr_status gpr_deal_axes_open(const gpr_resolved *what, const gpr_view *view,
                              const gpr_options *options, gpr_places places, gpr_run **out) {
  *out = NULL;
  if (!can_be_dealt(view, options)) return GPR_OK;
  axes_deal *r = make(what, view, options, places);
  if (!r) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  if (r->queue.back < 2) {
    close_run(&r->base);
    return GPR_OK;
  }
  r->team = (gpr_team){.work = help, .argument = r, .helpers = r->cpu};
  gpr_team_offer(&r->team);
  *out = &r->base;
  return GPR_OK;
}

int64_t gpr_deal_slabs(const gpr_resolved *what, const gpr_view *view, const gpr_options *options) {
  if (!can_be_dealt(view, options)) return 0;
  axes_deal *r = make(what, view, options, (gpr_places){1, 0});
  const int64_t slabs = r ? r->queue.back : 0;
  if (r) close_run(&r->base);
  return slabs > 1 ? slabs : 0;
}
