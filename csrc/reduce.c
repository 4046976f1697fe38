/* The way of the data: view → plan → backend → value. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"
#include "errors.h"
#include "cuda/gpu.h"

int gpr_op_index(const char *name) {
  for (int op = 0; op < GPR_OP_COUNT; op++)
    if (!(gpr_ops[op].flags & GPR_HIDDEN) &&
        (!strcmp(name, gpr_ops[op].name) || (*name && !strcmp(name, gpr_ops[op].ufunc))))
      return op;
  return -1;
}

int gpr_kernel_index(const char *name) {
  for (int k = 0; k < GPR_KERNEL_COUNT; k++)
    if (!strcmp(name, gpr_kernels[k].name)) return k;
  return GPR_NO_KERNEL;
}

static const gpr_row *row_of(int op, int dtype) {
  return &gpr_cpu_table_here()->row[op * GPR_DTYPE_COUNT + dtype];
}
static gpr_cast cast_of(int from, int to) {
  return gpr_cpu_table_here()->cast[from * GPR_DTYPE_COUNT + to];
}

int gpr_result_dtype(int op, int dtype, const gpr_options *options) {
  const int asked = options ? options->dtype : GPR_NO_DTYPE;
  const int result = row_of(op, asked == GPR_NO_DTYPE ? dtype : asked)->result;
  const int narrows = asked != GPR_NO_DTYPE && (gpr_ops[op].flags & GPR_TAKES_DTYPE);
  return narrows && result != GPR_NO_DTYPE ? asked : result;
}

/* What elements are converted to: nothing where the result is what was asked for anyway, as that of
 * logical operators is bool. */
static int folded_dtype(int op, int from, const gpr_options *options) {
  if (options->dtype == GPR_NO_DTYPE) return from;
  const int fits = row_of(op, from)->result == options->dtype;
  return fits && !(gpr_ops[op].flags & GPR_TAKES_DTYPE) ? from : options->dtype;
}

int gpr_results(int op) {
  int results = 1;
  for (int dtype = 0; dtype < GPR_DTYPE_COUNT; dtype++)
    if (row_of(op, dtype)->results > results) results = row_of(op, dtype)->results;
  return results;
}

const char *gpr_isa(void) { return gpr_cpu_table_here()->isa; }

gpr_options gpr_defaults(void) {
  return (gpr_options){.dtype = GPR_NO_DTYPE,
                       .device = GPR_DEVICE_AUTO,
                       .kernel = GPR_NO_KERNEL,
                       .axes = GPR_ALL_AXES,
                       .out_device = GPR_DEVICE_CPU};
}

gpr_view gpr_view_of(const void *data, int dtype, int64_t n) {
  gpr_view view = {.data = data, .dtype = dtype, .ndim = 1, .device = GPR_DEVICE_CPU};
  view.shape[0] = n;
  view.strides[0] = gpr_dtypes[dtype].bytes;
  return view;
}

/* --- what cannot be ----------------------------------------------------------------------------
 */

/* Below this the kernels' degrees of freedom stay the same. */
#define DDOF_LEAST (-0x1p62)

/* Where the elements are matrices: an array of shape (n, 2, 2). */
static gpr_status check_matrices(const char *name, const gpr_view *view) {
  char shape[128] = "";
  size_t used = 0;
  if (view->ndim == 3 && view->shape[1] == 2 && view->shape[2] == 2) return GPR_OK;
  for (int d = 0; d < view->ndim && used < sizeof shape; d++)
    used += (size_t)snprintf(shape + used, sizeof shape - used, d ? ", %lld" : "%lld",
                             (long long)view->shape[d]);
  return gpr_fail(GPR_BAD_VALUE,
                  "%s: the array has the shape (%s%s); one of shape (n, 2, 2) would do", name,
                  shape, view->ndim == 1 ? "," : "");
}

/* Whether some output has no element, or would have none if there were outputs, as NumPy asks. */
static int has_empty(const gpr_view *view, const gpr_options *options) {
  int empty = 0;
  for (int d = 0; d < view->ndim; d++)
    if (options->axes >> d & 1) empty |= !options->starts && view->shape[d] == 0;
  if (!options->starts || !gpr_outputs(view, options)) return empty;
  for (int64_t i = 0; i < options->segments; i++) empty |= options->stops[i] <= options->starts[i];
  return empty;
}

/* In NumPy's words, which name the ufunc; its ptp asks for the maximum first. */
static gpr_status check_identity(const gpr_op_info *o, const gpr_view *view,
                                 const gpr_options *options) {
  const char *ufunc = *o->ufunc ? o->ufunc : gpr_ops[GPR_OP_MAX].ufunc;
  const char *help = o->flags & GPR_TAKES_INITIAL ? "; initial= would give it one" : "";
  if (!(o->flags & GPR_NONEMPTY) || options->initial) return GPR_OK;
  if (options->where)
    return gpr_fail(GPR_BAD_VALUE,
                    "reduction operation '%s' does not have an identity, so to use a where mask "
                    "one has to specify 'initial'",
                    ufunc);
  if (!has_empty(view, options)) return GPR_OK;
  if (o->flags & GPR_POSITION)
    return gpr_fail(GPR_BAD_VALUE, "attempt to get %s of an empty sequence",
                    o->name + (o->flags & GPR_SKIPS_NAN ? strlen("nan") : 0));
  return gpr_fail(GPR_BAD_VALUE,
                  "zero-size array to reduction operation %s which has no identity%s", ufunc, help);
}

static gpr_status check_segments(const gpr_view *view, const gpr_options *options) {
  int64_t length = 0;
  int axes = 0;
  if (!options->starts) return GPR_OK;
  for (int d = 0; d < view->ndim; d++)
    if (options->axes >> d & 1) axes++, length = view->shape[d];
  if (axes != 1) return gpr_fail(GPR_BAD_VALUE, "segments are parts of one axis, not of %d", axes);
  for (int64_t i = 0; i < options->segments; i++)
    if (options->starts[i] < 0 || options->stops[i] > length)
      return gpr_fail(GPR_BAD_VALUE, "segment %lld, [%lld, %lld), is not within [0, %lld)",
                      (long long)i, (long long)options->starts[i], (long long)options->stops[i],
                      (long long)length);
  return GPR_OK;
}

static gpr_status check(int op, const gpr_view *view, const gpr_options *options) {
  const gpr_op_info *o = &gpr_ops[op];
  const char *from = gpr_dtypes[view->dtype].name;
  const int asked = options->dtype, dtype = folded_dtype(op, view->dtype, options);
  const int result = gpr_result_dtype(op, view->dtype, options);
  if ((o->flags & GPR_SPREAD) && options->ddof < DDOF_LEAST)
    return gpr_fail(GPR_BAD_VALUE, "%s: ddof %g is below -2^62", o->name, options->ddof);
  if (*o->ufunc && asked != GPR_NO_DTYPE && result != GPR_NO_DTYPE && result != asked)
    return gpr_fail(GPR_BAD_TYPE, "%s: dtype %s is not possible, the result is always %s", o->name,
                    gpr_dtypes[asked].name, gpr_dtypes[result].name);
  if (dtype != view->dtype && !cast_of(view->dtype, dtype))
    return gpr_fail(GPR_BAD_TYPE, "%s: no conversion from %s to %s", o->name, from,
                    gpr_dtypes[dtype].name);
  if (!row_of(op, dtype)->open)
    return gpr_fail(GPR_BAD_TYPE, "%s: not defined for dtype %s", o->name, gpr_dtypes[dtype].name);
  if (o->flags & GPR_MATRICES) return check_matrices(o->name, view);
  if (options->where && options->where->dtype != GPR_BOOL)
    return gpr_fail(GPR_BAD_TYPE, "%s: the mask is of dtype %s, not bool", o->name,
                    gpr_dtypes[options->where->dtype].name);
  const gpr_status status = check_segments(view, options);
  return status ? status : check_identity(o, view, options);
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

static void append(char *list, size_t bytes, const char *name) {
  const size_t used = strlen(list);
  snprintf(list + used, bytes - used, "%s%s", used ? ", " : "", name);
}

/* Whether the textbook kernel can take n elements of this dtype. */
static gpr_status check_kernel(const gpr_row *row, int64_t n, const gpr_options *options) {
  const gpr_kernel_info *k = &gpr_kernels[options->kernel];
  const char *name = gpr_ops[row->op].name;
  char list[256] = "";
  if (options->device == GPR_DEVICE_CPU)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s is a GPU's; device=\"cpu\" has none by a name",
                    name, k->name);
  if (options->kernel == GPR_KERNEL_DEFAULT) return GPR_OK;
  if (!(gpr_ops[row->op].flags & GPR_TAKES_KERNEL)) {
    for (int o = 0; o < GPR_OP_COUNT; o++)
      if (gpr_ops[o].flags & GPR_TAKES_KERNEL) append(list, sizeof list, gpr_ops[o].name);
    return gpr_fail(GPR_BAD_TYPE, "%s: kernel %s is made for %s", name, k->name, list);
  }
  if ((gpr_ops[row->op].flags & GPR_MATRICES) && !(k->flags & GPR_IN_ORDER))
    return gpr_fail(GPR_BAD_TYPE,
                    "%s: kernel %s does not keep the order, as this operator needs it", name,
                    k->name);
  if (!gpr_kernel_dtypes[row->dtype]) {
    for (int d = 0; d < GPR_DTYPE_COUNT; d++)
      if (gpr_kernel_dtypes[d]) append(list, sizeof list, gpr_dtypes[d].name);
    return gpr_fail(GPR_BAD_TYPE, "%s: kernel %s is made for %s, not for %s", name, k->name, list,
                    gpr_dtypes[row->dtype].name);
  }
  if (options->initial)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s takes no initial", name, k->name);
  if (k->limit && n > k->limit)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s takes at most %d elements, not %lld", name,
                    k->name, k->limit, (long long)n);
  return GPR_OK;
}

/* Of what check() passed. */
static gpr_plan plan_of(int op, const gpr_view *view, const gpr_options *options) {
  const int dtype = folded_dtype(op, view->dtype, options);
  const gpr_cast cast = dtype == view->dtype ? NULL : cast_of(view->dtype, dtype);
  return gpr_plan_make(view, row_of(op, dtype), cast, (gpr_limits){gpr_threads()});
}

/* A kernel that is asked for by name works on a device. */
static gpr_status choose_for_kernel(const gpr_plan *plan, const gpr_options *options, int *device) {
  const int wanted = options->device == GPR_DEVICE_AUTO && plan->device < 0 ? 0 : options->device;
  const gpr_status status = check_kernel(plan->row, plan->count, options);
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

static int skips(int op, int dtype) {
  const char kind = gpr_dtypes[dtype].kind;
  const int which = kind == 'm' || kind == 'M' ? GPR_SKIPS_NAT : GPR_SKIPS_NAN;
  return (gpr_ops[op].flags & which) && gpr_cpu_table_here()->skip[dtype];
}

/* One output of all elements, for the host. */
static int is_flat(int op, int dtype, const gpr_view *view, const gpr_options *options) {
  const uint64_t all = view->ndim < 64 ? GPR_AXIS(view->ndim) - 1 : GPR_ALL_AXES;
  const int there = options->out && options->out_device >= 0;
  return (options->axes & all) == all && !options->where && !options->starts && !there &&
         !skips(op, dtype);
}

/* Extremes that skip NaN skip it as initial too. */
static int skips_initial(int op, const gpr_value *initial) {
  uint8_t keep = 1;
  if (!(gpr_ops[op].flags & GPR_NONEMPTY) || !skips(op, initial->dtype)) return 0;
  gpr_cpu_table_here()->skip[initial->dtype](initial->bytes, 1, &keep);
  return !keep;
}

/* initial as a value of the row's result. */
static void finish_with(gpr_with *with, int op, const gpr_row *row, int dtype,
                        const gpr_options *options) {
  with->given = NULL;
  if (gpr_ops[op].flags & GPR_SPREAD) {
    const int nan = skips(op, dtype) || options->ddof != options->ddof;
    with->spread = (gpr_spread){options->ddof, options->means, nan};
    with->given = &with->spread;
  } else if (options->initial && !skips_initial(op, options->initial)) {
    with->initial = *options->initial;
    if (options->initial->dtype != row->result)
      cast_of(options->initial->dtype, row->result)(options->initial->bytes, with->initial.bytes,
                                                    1);
    with->given = with->initial.bytes;
  }
}

/* Where to work, and whether all elements go into one state there. */
static gpr_status settle(int op, const gpr_view *view, const gpr_options *options, int *device,
                         gpr_plan *flat, int *is_whole) {
  const int dtype = folded_dtype(op, view->dtype, options);
  *is_whole = is_flat(op, dtype, view, options);
  if (!*is_whole && options->kernel != GPR_NO_KERNEL)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s reduces whole arrays alone", gpr_ops[op].name,
                    gpr_kernels[options->kernel].name);
  if (*is_whole) *flat = plan_of(op, view, options);
  if (options->kernel != GPR_NO_KERNEL) return choose_for_kernel(flat, options, device);
  const gpr_status status = choose(view->device, options->device, device);
  if (!status && *device >= 0 && *is_whole) *is_whole = gpr_gpu_folds_whole(flat);
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

static gpr_status open_axes(int op, const gpr_view *view, const gpr_row *row, gpr_cast cast,
                            int device, const gpr_options *options, gpr_run **run) {
  gpr_axes axes;
  gpr_plan plan =
      gpr_plan_axes(view, row, cast, options, (gpr_limits){.lanes = gpr_threads()}, &axes);
  const int64_t values = axes.outputs * row->results;
  const int result = gpr_result_dtype(op, view->dtype, options);
  const int there = options->out && options->out_device >= 0;
  const int own = !there && (result != row->result || !options->out);
  const size_t bytes = own ? (size_t)values * (size_t)gpr_dtypes[row->result].bytes : 0;
  struct gpr_wide *wide = malloc(sizeof *wide + bytes);
  if (!wide) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for %lld results", (long long)values);
  wide->values = values;
  wide->own = own;
  finish_with(&wide->with, op, row, row->dtype, options);
  axes.with = wide->with.given;
  axes.skip = skips(op, row->dtype);
  axes.result = own ? wide->results : options->out;
  axes.result_dtype = result;
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

static gpr_status check_place(int device, const gpr_options *options) {
  if (!options->out || options->out_device < 0 || options->out_device == device) return GPR_OK;
  return gpr_fail(GPR_BAD_VALUE, "out lies on cuda:%d, and the array is not reduced there",
                  options->out_device);
}

gpr_status gpr_open(int op, const gpr_view *view, const gpr_options *options, gpr_run **run) {
  const gpr_options defaults = gpr_defaults();
  gpr_plan flat;
  int device, is_whole;
  if (!options) options = &defaults;
  *run = NULL;
  gpr_status status = check(op, view, options);
  if (status || (status = settle(op, view, options, &device, &flat, &is_whole)) ||
      (status = check_place(device, options)))
    return status;
  const int dtype = folded_dtype(op, view->dtype, options);
  const gpr_row *row = row_of(op, dtype);
  const gpr_cast cast = dtype == view->dtype ? NULL : cast_of(view->dtype, dtype);
  const int result = gpr_result_dtype(op, view->dtype, options);
  status = is_whole ? open_flat(&flat, device, options, run)
                    : open_axes(op, view, row, cast, device, options, run);
  if (status) return status;
  if (is_whole) {
    finish_with(&(*run)->with, op, row, dtype, options);
    (*run)->least = (*run)->total = flat.count;
    (*run)->wide = NULL;
  }
  (*run)->row = row;
  (*run)->op = op;
  (*run)->dtype = result;
  (*run)->narrow = result == row->result ? NULL : cast_of(row->result, result);
  (*run)->out = options->out;
  atomic_init(&(*run)->done, 0);
  return GPR_OK;
}

gpr_status gpr_step(gpr_run *run, int64_t nanoseconds) {
  const gpr_status status = run->backend->step(run, nanoseconds);
  if (!status) atomic_store_explicit(&run->done, run->total, memory_order_relaxed);
  return status;
}

int64_t gpr_done(const gpr_run *run, int64_t *total) {
  const int64_t done = atomic_load_explicit(&run->done, memory_order_relaxed);
  *total = run->total;
  return done < *total ? done : *total;
}

gpr_status gpr_time(gpr_run *run, int repeats, double *milliseconds) {
  if (run->backend->time && repeats > 0) return run->backend->time(run, repeats, milliseconds);
  return gpr_fail(GPR_BAD_VALUE, "only kernels for many outputs are timed, once and more");
}

/* Results of one or more values where they are wanted. */
static void deliver(gpr_run *run, const char *from, int64_t values, gpr_value *result) {
  char *to = run->out ? run->out : (char *)result->bytes;
  if (run->narrow)
    run->narrow(from, to, values);
  else if (to != from)
    memcpy(to, from, (size_t)values * (size_t)gpr_dtypes[run->dtype].bytes);
  if (result) result->dtype = run->dtype;
}

gpr_status gpr_finish(gpr_run *run, gpr_value *result) {
  gpr_value wide;
  const gpr_status status = run->backend->finish(run, run->with.given, wide.bytes);
  if (status) return status;
  if (!run->wide)
    deliver(run, (const char *)wide.bytes, run->row->results * run->row->scalars, result);
  else if (run->wide->own)
    deliver(run, run->wide->results, run->wide->values, result);
  const int flags = gpr_ops[run->op].flags;
  const gpr_with *with = run->wide ? &run->wide->with : &run->with;
  if (with->given == with->initial.bytes && run->least >= 0 && run->least < INT64_MAX) run->least++;
  if ((flags & GPR_POSITION) && (flags & GPR_SKIPS_NAN) && !run->least)
    return gpr_fail(GPR_BAD_VALUE, "All-NaN slice encountered");
  return GPR_OK;
}

int64_t gpr_least(const gpr_run *run) { return run->least; }

void gpr_close(gpr_run *run) {
  if (!run) return;
  struct gpr_wide *wide = run->wide;
  run->backend->close(run);
  free(wide);
}

gpr_status gpr_reduce(const char *op, const gpr_view *view, const gpr_options *options,
                      gpr_value *result) {
  gpr_run *run = NULL;
  const int index = gpr_op_index(op);
  if (index < 0) return gpr_fail(GPR_BAD_VALUE, "unknown operator %s", op);
  if (!result && !(options && options->out))
    return gpr_fail(GPR_BAD_VALUE, "%s: there is no place for the result", op);
  if (options && !options->out && gpr_outputs(view, options) != 1)
    return gpr_fail(GPR_BAD_VALUE, "%s: %lld outputs need options->out", op,
                    (long long)gpr_outputs(view, options));
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
  if (index < 0) return gpr_fail(GPR_BAD_VALUE, "unknown operator %s", op);
  if (options->kernel == GPR_NO_KERNEL)
    return gpr_fail(GPR_BAD_VALUE, "no kernel is named whose time is to be taken");
  if (repeats < 1) return gpr_fail(GPR_BAD_VALUE, "%d repeats: give 1 and up", repeats);
  gpr_status status = check(index, view, options);
  if (status) return status;
  const gpr_plan plan = plan_of(index, view, options);
  status = choose_for_kernel(&plan, options, &device);
  return status ? status
                : gpr_gpu_ladder_time(&plan, options->kernel, device, repeats, milliseconds);
}
