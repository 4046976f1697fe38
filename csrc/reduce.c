/* The way of the data: view → plan → backend → value. */
#include <stdlib.h>
#include <string.h>

#include "../kernels/abi/lists.h"
#include "checks.h"
#include "cpu.h"
#include "errors.h"
#include "given.h"
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

/* Where to work: arrays on a device there, arrays on the host where it was asked for. */
static gpr_status choose(int lies, int wanted, int *device) {
  *device = wanted >= 0 ? wanted : GPR_DEVICE_CPU;
  if (lies >= 0) {
    *device = lies;
    if (wanted != GPR_DEVICE_AUTO && wanted != lies)
      return gpr_fail(
          GPR_BAD_VALUE,
          "the array lies on cuda:%d, where it can be reduced; copy it to reduce it elsewhere",
          lies);
  }
  if (*device < 0) return GPR_OK;
  const int devices = gpr_device_count();
  if (!devices) return GPR_DEVICE_ERROR;
  if (*device >= devices)
    return gpr_fail(GPR_DEVICE_ERROR, "there is no device cuda:%d: there are %d, numbered from 0",
                    *device, devices);
  return GPR_OK;
}

static gpr_plan plan_of(const gpr_resolved *what, const gpr_view *view) {
  return gpr_plan_make(view, what->row, what->cast, (gpr_limits){gpr_threads()});
}

static int variant_of(const gpr_options *options) {
  return options->kernel > GPR_KERNEL_COUNT ? options->kernel - GPR_KERNEL_COUNT : GPR_ANY_VARIANT;
}

/* A kernel that is asked for by name works on a device. */
static int named_device(const gpr_options *options, int lies) {
  return options->device == GPR_DEVICE_AUTO && lies < 0 ? 0 : options->device;
}
static gpr_status choose_for_variant(const gpr_resolved *what, const gpr_view *view,
                                     const gpr_options *options, int *device) {
  const char *variant = gpr_variants[variant_of(options)].name;
  if (options->device == GPR_DEVICE_CPU)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s is a GPU's; device=\"cpu\" has none by a name",
                    gpr_ops[what->op].name, variant);
  if (gpr_ops[what->op].flags & GPR_MATRICES)
    return gpr_fail(GPR_BAD_TYPE, "%s: kernel %s takes no matrices", gpr_ops[what->op].name,
                    variant);
  return choose(gpr_lies(view), named_device(options, gpr_lies(view)), device);
}
static gpr_status choose_for_kernel(const gpr_plan *plan, const gpr_options *options, int *device) {
  const int wanted = named_device(options, plan->device);
  const gpr_status status = gpr_check_kernel(plan->row, plan->count, options);
  return status ? status : choose(plan->device, wanted, device);
}

/* --- the run -----------------------------------------------------------------------------------
 */

/* What a run with axes keeps beside its backend's: results before they are narrowed, where they
 * are or where the caller wants a single one. */
struct gpr_wide {
  gpr_with with;
  int64_t values;
  int own; /* they are in `results` */
  _Alignas(16) char results[];
};

static int is_there(const gpr_options *options) { return options->out && options->out_device >= 0; }

/* One output of all elements. */
static int is_flat(const gpr_resolved *what, const gpr_view *view, const gpr_options *options) {
  const uint64_t all = view->ndim < 64 ? GPR_AXIS(view->ndim) - 1 : GPR_ALL_AXES;
  return (options->axes & all) == all && !options->where && !options->starts && !what->skips;
}
/* Whether a result that is to be on the device is there sooner by the host, which the kernels for
 * whole arrays answer: they are up to a half faster than those for many outputs on an H200, trees
 * three times, and the way by the host takes 10 µs. */
static int pays_by_host(const gpr_plan *flat) {
  const double bytes = (double)flat->count * flat->bytes;
  return bytes >= (flat->row->law == GPR_TREE ? 0x1p22 : 0x1p25) &&
         !gpr_gpu_is_capturing(flat->device, flat->stream);
}

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
    if (from != to)
      gpr_cpu_table_here()->cast[from * GPR_DTYPE_COUNT + to](options->initial->bytes,
                                                              with->initial.bytes, 1);
    with->given = with->initial.bytes;
  }
}

/* Where to work, and whether all elements go into one state there. */
static gpr_status settle(const gpr_resolved *what, const gpr_view *view, const gpr_options *options,
                         int *device, gpr_plan *flat, int *is_whole) {
  *is_whole = is_flat(what, view, options) && !variant_of(options);
  if (variant_of(options)) return choose_for_variant(what, view, options, device);
  if (!*is_whole && options->kernel != GPR_NO_KERNEL)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s reduces whole arrays alone",
                    gpr_ops[what->op].name, gpr_kernels[options->kernel].name);
  if (*is_whole) *flat = plan_of(what, view);
  if (options->kernel != GPR_NO_KERNEL) return choose_for_kernel(flat, options, device);
  const gpr_status status = choose(gpr_lies(view), options->device, device);
  if (!status && *device >= 0 && options->partials)
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: partials are taken on the CPU; give a copy in the host's memory, and "
                    "device=\"cpu\"",
                    gpr_ops[what->op].name);
  if (!status && *device >= 0 && *is_whole)
    *is_whole = gpr_gpu_folds_whole(flat) && (!is_there(options) || pays_by_host(flat));
  return status;
}

static gpr_status open_flat(const gpr_plan *plan, int device, const gpr_options *options,
                            gpr_run **run) {
  const int kernel = options->kernel;
  if (kernel != GPR_NO_KERNEL && kernel != GPR_KERNEL_DEFAULT)
    return gpr_gpu_ladder_open(plan, kernel, device, run);
  return device < 0 ? gpr_cpu_open(plan, run) : gpr_gpu_open(plan, device, run);
}

/* With segments the outputs differ in length. */
static int64_t total_of(const gpr_axes *axes, int64_t count) {
  int64_t all = 0;
  if (!axes->starts) return axes->outputs * count;
  for (int64_t i = 0; i < axes->segments; i++)
    if (axes->stops[i] > axes->starts[i]) all += axes->stops[i] - axes->starts[i];
  return axes->segments ? axes->outputs / axes->segments * all : 0;
}

static gpr_status open_axes(const gpr_resolved *what, const gpr_view *view, int device,
                            const gpr_options *options, gpr_run **run) {
  const gpr_row *row = what->row;
  gpr_axes axes;
  gpr_plan plan = gpr_plan_axes(view, row, what->cast, options, (gpr_limits){gpr_threads()}, &axes);
  const int64_t values = axes.outputs * row->results;
  const int there = is_there(options);
  const int own = !there && (what->result != row->result || !options->out);
  const size_t bytes = own ? (size_t)values * (size_t)gpr_dtypes[row->result].bytes : 0;
  struct gpr_wide *wide = malloc(sizeof *wide + bytes);
  if (!wide) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for %lld results", (long long)values);
  wide->values = values;
  wide->own = own;
  finish_with(&wide->with, what, options);
  axes.with = wide->with.given;
  axes.skip = what->skips;
  axes.variant = variant_of(options);
  axes.result = own ? wide->results : options->out;
  axes.result_dtype = what->result;
  axes.result_device = there ? options->out_device : GPR_DEVICE_CPU;
  const gpr_status status =
      device < 0 ? gpr_cpu_open(&plan, run) : gpr_gpu_axes_open(&plan, device, run);
  if (status) {
    free(wide);
    return status;
  }
  (*run)->wide = wide;
  (*run)->total = total_of(&axes, plan.count);
  return GPR_OK;
}

static gpr_status check_place(const gpr_resolved *what, int device, const gpr_view *view,
                              const gpr_options *options) {
  const int there = is_there(options);
  if (!there && gpr_lies(view) >= 0 && gpr_gpu_is_capturing(device, view->stream))
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: while a graph is captured the host cannot wait for a result; it stays on "
                    "the device where axes are named (axis=0, axis=(0, 1)), or with out= there",
                    gpr_ops[what->op].name);
  if (options->out_order &&
      ((!there && device >= 0) || what->results > 1 || options->starts || options->means))
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
  if (op < 0 || op >= GPR_OP_COUNT)
    return gpr_fail(GPR_BAD_VALUE, "operator %d is none; gpr_op_index() gives them", op);
  const gpr_status status = gpr_check_view(gpr_ops[op].name, view);
  return status ? status : gpr_check_options(gpr_ops[op].name, view, options);
}

static gpr_status check_out(int op, const gpr_view *view, const gpr_options *options) {
  const int64_t outputs = gpr_count_outputs(view, options);
  if (options->out || outputs == 1) return GPR_OK;
  return gpr_fail(GPR_BAD_VALUE, "%s: %lld outputs need options->out, with room for them",
                  gpr_ops[op].name, (long long)outputs);
}

gpr_status gpr_open(int op, const gpr_view *view, const gpr_options *options, gpr_run **run) {
  const gpr_options defaults = gpr_defaults();
  gpr_plan flat;
  int device, is_whole;
  if (!options) options = &defaults;
  if (!run) return gpr_fail(GPR_BAD_VALUE, "gpr_open: there is no place for the run");
  *run = NULL;
  const gpr_status given = check_given(op, view, options);
  if (given) return given;
  const gpr_resolved what = gpr_resolve(op, view->dtype, options);
  gpr_status status = gpr_check(&what, view, options);
  if (!status) status = check_out(op, view, options);
  if (!status) status = settle(&what, view, options, &device, &flat, &is_whole);
  if (!status) status = check_place(&what, device, view, options);
  if (!status)
    status = is_whole ? open_flat(&flat, device, options, run)
                      : open_axes(&what, view, device, options, run);
  if (status) return status;
  if (is_whole) {
    finish_with(&(*run)->with, &what, options);
    (*run)->least = (*run)->total = flat.count;
    (*run)->wide = NULL;
  }
  (*run)->device = is_whole && is_there(options) ? device : GPR_DEVICE_CPU;
  (*run)->stream = view->stream;
  (*run)->row = what.row;
  (*run)->op = op;
  (*run)->dtype = what.result;
  (*run)->narrow = what.narrow;
  (*run)->partials = options->partials != 0;
  (*run)->out = options->out;
  (*run)->state = GPR_RUNNING;
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
  struct gpr_wide *wide = run->wide;
  run->backend->close(run);
  free(wide);
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
  int device;
  if (index < 0) return unknown(op);
  if (!options || !milliseconds)
    return gpr_fail(GPR_BAD_VALUE, "%s: give options with a kernel and a place for the times", op);
  const gpr_status given = check_given(index, view, options);
  if (given) return given;
  if (options->kernel == GPR_NO_KERNEL || variant_of(options))
    return gpr_fail(GPR_BAD_VALUE, "no textbook kernel is named whose time is to be taken");
  if (repeats < 1) return gpr_fail(GPR_BAD_VALUE, "%d repeats: give 1 and up", repeats);
  const gpr_resolved what = gpr_resolve(index, view->dtype, options);
  gpr_status status = gpr_check(&what, view, options);
  if (status) return status;
  const gpr_plan plan = plan_of(&what, view);
  status = choose_for_kernel(&plan, options, &device);
  return status ? status
                : gpr_gpu_ladder_time(&plan, options->kernel, device, repeats, milliseconds);
}
