/* The way of the data: view → plan → backend → value. */
#include <string.h>

#include "../kernels/abi/lists.h"
#include "checks.h"
#include "cpu.h"
#include "deal.h"
#include "errors.h"
#include "given.h"
#include "settle.h"
#include "cuda/gpu.h"

const char *gpr_isa(void) { return gpr_cpu_table_here()->isa; }

gpr_options gpr_defaults(void) {
  return (gpr_options){.size = sizeof(gpr_options),
                       .dtype = GPR_NO_DTYPE,
                       .device = GPR_DEVICE_AUTO,
                       .kernel = GPR_NO_KERNEL,
                       .axes = GPR_ALL_AXES,
                       .out_device = GPR_DEVICE_CPU};
}

/* --- the run ---------------------------------------------------------------------------------- */

/* What a run with axes keeps beside its backend's: results before they are narrowed, where they
 * are or where the caller wants a single one. */
struct gpr_wide {
  gpr_with with;
  int64_t values;
  int own; /* they are in `results` */
  _Alignas(16) char results[];
};

/* Extremes that skip NaN skip it as initial too. */
static int skips_initial(int op, const gpr_value *initial) {
  uint8_t keep = 1;
  if (!(gpr_ops[op].flags & GPR_NONEMPTY) || !gpr_skips(op, initial->dtype)) return 0;
  gpr_cpu_table_here()->skip[initial->dtype](initial->bytes, 1, &keep);
  return !keep;
}

/* initial as a value of the row's result. */
static void finish_with(gpr_with *with, const gpr_resolved *what, const gpr_options *options) {
  const int to = what->row->result;
  with->given = NULL;
  if (options->partials) {
    memcpy(with->kind, &options->partials, sizeof options->partials);
    with->given = with->kind;
  } else if (gpr_ops[what->op].flags & GPR_SPREAD) {
    const int nan = what->skips || options->ddof != options->ddof;
    with->spread = (gpr_spread){options->ddof, options->means, nan};
    with->given = &with->spread;
  } else if (options->initial && !skips_initial(what->op, options->initial)) {
    const int from = options->initial->dtype;
    with->initial = *options->initial;
    if (from != to) gpr_cast_of(from, to)(options->initial->bytes, with->initial.bytes, 1);
    with->given = with->initial.bytes;
  }
}

static gpr_status open_flat(const gpr_plan *plan, gpr_places places, const gpr_options *options,
                            gpr_block *block, gpr_run **run) {
  const int kernel = options->kernel, device = gpr_first_place(places);
  if (gpr_are_several(places)) return gpr_deal_open(plan, places, run);
  if (kernel != GPR_NO_KERNEL && kernel != GPR_KERNEL_DEFAULT)
    return gpr_gpu_ladder_open(plan, kernel, device, run);
  return device < 0 ? gpr_cpu_open(plan, block, run) : gpr_gpu_open(plan, device, run);
}

/* With segments the outputs differ in length. */
static int64_t total_of(const gpr_axes *axes, int64_t count) {
  int64_t all = 0;
  if (!axes->starts) return axes->outputs * count;
  for (int64_t i = 0; i < axes->segments; i++)
    if (axes->stops[i] > axes->starts[i]) all += axes->stops[i] - axes->starts[i];
  return axes->segments ? axes->outputs / axes->segments * all : 0;
}

/* What is asked of a plan's axes, but for where the results go. */
static void ask(gpr_axes *axes, gpr_with *with, const gpr_resolved *what,
                const gpr_options *options) {
  finish_with(with, what, options);
  axes->with = with->given;
  axes->skip = what->skips;
  axes->variant = gpr_variant_of(options);
}

static gpr_status open_axes(const gpr_resolved *what, const gpr_view *view, int device,
                            const gpr_options *options, gpr_block *block, gpr_run **run) {
  const gpr_row *row = what->row;
  gpr_axes axes;
  gpr_plan plan;
  gpr_plan_axes(&plan, view, row, what->cast, options, (gpr_limits){gpr_threads()}, &axes);
  const int64_t values = axes.outputs * row->results;
  const int there = gpr_is_there(options);
  const int own = !there && (what->result != row->result || !options->out);
  const size_t bytes = own ? (size_t)values * (size_t)gpr_dtypes[row->result].bytes : 0;
  struct gpr_wide *wide = gpr_block_take(block, sizeof *wide + bytes);
  if (!wide) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for %lld results", (long long)values);
  wide->values = values;
  wide->own = own;
  ask(&axes, &wide->with, what, options);
  axes.result = own ? wide->results : options->out;
  axes.result_dtype = what->result;
  axes.result_device = there ? options->out_device : GPR_DEVICE_CPU;
  const gpr_status status =
      device < 0 ? gpr_cpu_open(&plan, block, run) : gpr_gpu_axes_open(&plan, device, run);
  if (status) return status;
  (*run)->wide = wide;
  (*run)->total = total_of(&axes, plan.count);
  return GPR_OK;
}

/* What runs of several keep: each of them finishes its own. */
static struct gpr_wide dealt;

/* By several, each with outputs of its own; where that cannot be, by the CPU alone, or by the first
 * device. */
static gpr_status open_dealt(const gpr_resolved *what, const gpr_view *view, gpr_places places,
                             const gpr_options *options, gpr_block *block, gpr_run **run) {
  const gpr_status status = gpr_deal_axes_open(what, view, options, places, run);
  const int alone = places.cpu ? GPR_DEVICE_CPU : gpr_first_place(places);
  if (status || !*run) return status ? status : open_axes(what, view, alone, options, block, run);
  (*run)->wide = &dealt;
  (*run)->total = 1;
  for (int d = 0; d < view->ndim; d++) (*run)->total *= view->shape[d];
  return GPR_OK;
}

static gpr_status check_place(const gpr_resolved *what, int device, const gpr_view *view,
                              const gpr_options *options) {
  const int there = gpr_is_there(options);
  if (!there && gpr_lies(view) >= 0 && gpr_gpu_is_capturing(device, view->stream))
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: while a graph is captured the host cannot wait for a result; it stays on "
                    "the device where axes are named (axis=0, axis=(0, 1)), or with out= there",
                    gpr_ops[what->op].name);
  const int moved = !there && device >= 0 && !gpr_lies_in_order(view, options->axes);
  if (options->out_order && (moved || what->results > 1 || options->starts || options->means))
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: only one result where the work is done, without segments and means, has "
                    "the order of the array's memory",
                    gpr_ops[what->op].name);
  if (!there || options->out_device == device) return GPR_OK;
  return gpr_fail(GPR_BAD_VALUE, "out lies on cuda:%d, and the array is not reduced there",
                  options->out_device);
}

/* What can be told before the operator is looked up. */
static gpr_status check_given(int op, const gpr_view *view, const gpr_options *options) {
  if (!gpr_is_op(op))
    return gpr_fail(GPR_BAD_VALUE, "operator %d is none; gpr_op_index() gives them", op);
  const gpr_status status = gpr_check_view(gpr_ops[op].name, view);
  return status ? status : gpr_check_options(gpr_ops[op].name, view, options);
}

gpr_status gpr_choose(int op, const gpr_view *view, const gpr_options *options, int multiprocessors,
                      gpr_choice *choice) {
  gpr_axes axes;
  gpr_plan plan;
  gpr_with with;
  gpr_status status = check_given(op, view, options);
  if (status) return status;
  const gpr_resolved what = gpr_resolve(op, view->dtype, options);
  status = gpr_check(&what, view, options);
  if (status) return status;
  gpr_plan_axes(&plan, view, what.row, what.cast, options, (gpr_limits){1}, &axes);
  ask(&axes, &with, &what, options);
  return gpr_gpu_axes_choose(&plan, multiprocessors, choice);
}

static gpr_status check_out(int op, const gpr_view *view, const gpr_options *options) {
  const int64_t outputs = gpr_count_outputs(view, options);
  if (options->out || (outputs == 1 && !options->partials)) return GPR_OK;
  return gpr_fail(GPR_BAD_VALUE, "%s: %lld outputs need options->out, with room for them",
                  gpr_ops[op].name, (long long)outputs);
}

static gpr_status open_at(const gpr_resolved *what, const gpr_view *view,
                          const gpr_options *options, gpr_places places, const gpr_plan *flat,
                          gpr_block *block, gpr_run **run) {
  const int device = gpr_first_place(places);
  const gpr_status status = check_place(what, device, view, options);
  if (status) return status;
  if (flat) return open_flat(flat, places, options, block, run);
  if (gpr_are_several(places) || gpr_chose_devices(options, view, places))
    return open_dealt(what, view, places, options, block, run);
  return open_axes(what, view, device, options, block, run);
}

gpr_status gpr_open(int op, const gpr_view *view, const gpr_options *options, gpr_run **run) {
  gpr_options defaults;
  gpr_plan flat;
  gpr_places places;
  int is_whole;
  if (!options) defaults = gpr_defaults(), options = &defaults;
  if (!run) return gpr_fail(GPR_BAD_VALUE, "gpr_open: there is no place for the run");
  *run = NULL;
  const gpr_status given = check_given(op, view, options);
  if (given) return given;
  const gpr_resolved what = gpr_resolve(op, view->dtype, options);
  gpr_status status = gpr_check(&what, view, options);
  if (!status) status = check_out(op, view, options);
  if (!status) status = gpr_settle(&what, view, options, &places, &flat, &is_whole);
  if (status) return status;
  gpr_block *block = gpr_block_open();
  if (!block) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  const gpr_plan *whole = is_whole ? &flat : NULL;
  status = open_at(&what, view, options, places, whole, block, run);
  if (status && gpr_chose_devices(options, view, places)) {
    places = (gpr_places){0, 1};
    status = open_at(&what, view, options, places, whole, block, run);
  }
  if (status) {
    gpr_block_close(block);
    return status;
  }
  const int device = gpr_first_place(places);
  if (is_whole) {
    finish_with(&(*run)->with, &what, options);
    (*run)->least = (*run)->total = flat.count;
    (*run)->wide = NULL;
  }
  (*run)->block = block;
  (*run)->device = is_whole && gpr_is_there(options) ? device : GPR_DEVICE_CPU;
  (*run)->stream = view->stream;
  (*run)->row = what.row;
  (*run)->op = op;
  (*run)->dtype = what.result;
  (*run)->narrow = what.narrow;
  (*run)->partials = options->partials != 0;
  (*run)->out = options->out;
  (*run)->state = GPR_RUNNING;
  (*run)->finite = 0;
  (*run)->decided = -1;
  atomic_init(&(*run)->done, 0);
  return GPR_OK;
}

gpr_status gpr_step(gpr_run *run, int64_t nanoseconds) {
  if (!run) return gpr_fail(GPR_BAD_VALUE, "gpr_step: the run is NULL");
  if (run->state == GPR_READY) return GPR_OK;
  if (run->state != GPR_RUNNING)
    return gpr_fail(GPR_BAD_VALUE, "gpr_step: the run has failed or is finished; close it");
  const gpr_status status = run->backend->step(run, nanoseconds);
  if (status != GPR_MORE) run->state = status ? GPR_ENDED : GPR_READY;
  if (!status) atomic_store_explicit(&run->done, run->total, memory_order_relaxed);
  return status;
}

int64_t gpr_done(const gpr_run *run, int64_t *total) {
  const int64_t done = run ? atomic_load_explicit(&run->done, memory_order_relaxed) : 0;
  const int64_t all = run ? run->total : 0;
  if (total) *total = all;
  return done < all ? done : all;
}

gpr_status gpr_time(gpr_run *run, int repeats, double *milliseconds) {
  if (!run || !milliseconds || run->state != GPR_RUNNING)
    return gpr_fail(GPR_BAD_VALUE, "gpr_time: give a fresh run and a place for the times");
  if (run->backend->time && repeats > 0) return run->backend->time(run, repeats, milliseconds);
  return gpr_fail(GPR_BAD_VALUE, "only kernels for many outputs are timed, once and more");
}

/* Results of one or more values where they are wanted. */
static void deliver(gpr_run *run, const char *from, int64_t values, gpr_value *result) {
  char *to = run->out && run->device < 0 ? run->out : (char *)result->bytes;
  if (run->narrow)
    run->narrow(from, to, values);
  else if (to != from)
    memcpy(to, from, (size_t)values * (size_t)gpr_dtypes[run->dtype].bytes);
  if (result) result->dtype = run->dtype;
}

/* One output's, which may belong to the device. */
static gpr_status deliver_whole(gpr_run *run, const char *from, gpr_value *result) {
  const int64_t values = run->row->results * run->row->scalars;
  gpr_value brought;
  if (run->device >= 0) result = &brought;
  deliver(run, from, values, result);
  if (run->device < 0) return GPR_OK;
  return gpr_gpu_put(run->device, run->stream, run->out, brought.bytes,
                     (size_t)values * (size_t)gpr_dtypes[run->dtype].bytes);
}

gpr_status gpr_finish(gpr_run *run, gpr_value *result) {
  gpr_value wide;
  if (!run || run->state != GPR_READY)
    return gpr_fail(GPR_BAD_VALUE, "gpr_finish: once, after gpr_step() gave GPR_OK");
  if (!result && !run->out)
    return gpr_fail(GPR_BAD_VALUE, "gpr_finish: there is no place for the result");
  run->state = GPR_ENDED;
  const int by_itself = run->wide || run->narrow || !run->out || run->device >= 0;
  char *at = by_itself ? (char *)wide.bytes : run->out;
  gpr_status status = run->backend->finish(run, run->with.given, at);
  if (!status && !run->wide) status = deliver_whole(run, at, result);
  if (status) return status;
  if (run->wide && run->wide->own) deliver(run, run->wide->results, run->wide->values, result);
  const int flags = gpr_ops[run->op].flags;
  const gpr_with *with = run->wide ? &run->wide->with : &run->with;
  if (with->given == with->initial.bytes && run->least >= 0 && run->least < INT64_MAX) run->least++;
  if ((flags & GPR_POSITION) && (flags & GPR_SKIPS_NAN) && !run->least && !run->partials)
    return gpr_fail(GPR_BAD_VALUE, "All-NaN slice encountered");
  return GPR_OK;
}

int64_t gpr_least(const gpr_run *run) { return run ? run->least : -1; }

void gpr_close(gpr_run *run) {
  if (!run) return;
  gpr_block *block = run->block;
  run->backend->close(run);
  gpr_block_close(block);
}

static gpr_status unknown(const char *op) {
  return gpr_fail(GPR_BAD_VALUE, "unknown operator %.99s; gpr_op_name() gives them",
                  op ? op : "NULL");
}

gpr_status gpr_reduce(const char *op, const gpr_view *view, const gpr_options *options,
                      gpr_value *result) {
  gpr_run *run = NULL;
  const int index = gpr_op_index(op);
  if (index < 0) return unknown(op);
  if (!result && !(options && options->out))
    return gpr_fail(GPR_BAD_VALUE, "%s: there is no place for the result", op);
  gpr_status status = gpr_open(index, view, options, &run);
  if (status) goto fail;
  do status = gpr_step(run, INT64_C(1000000000));
  while (status == GPR_MORE);
  if (status) goto fail;
  status = gpr_finish(run, result);
fail:
  gpr_close(run);
  return status;
}

gpr_status gpr_kernel_time(const char *op, const gpr_view *view, const gpr_options *options,
                           int repeats, double *milliseconds) {
  const int index = gpr_op_index(op);
  gpr_places places;
  if (index < 0) return unknown(op);
  if (!options || !milliseconds)
    return gpr_fail(GPR_BAD_VALUE, "%s: give options with a kernel and a place for the times", op);
  const gpr_status given = check_given(index, view, options);
  if (given) return given;
  if (options->kernel == GPR_NO_KERNEL || gpr_variant_of(options))
    return gpr_fail(GPR_BAD_VALUE, "no textbook kernel is named whose time is to be taken");
  if (repeats < 1) return gpr_fail(GPR_BAD_VALUE, "%d repeats: give 1 and up", repeats);
  const gpr_resolved what = gpr_resolve(index, view->dtype, options);
  gpr_status status = gpr_check(&what, view, options);
  if (status) return status;
  gpr_plan plan;
  gpr_flat_plan(&plan, &what, view);
  status = gpr_settle_kernel(what.row, plan.count, gpr_lies(view), options, &places);
  return status ? status
                : gpr_gpu_ladder_time(&plan, options->kernel, gpr_first_place(places), repeats,
                                      milliseconds);
}
