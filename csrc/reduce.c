/* The way of the data: view → plan → backend → value. */
#include <stdio.h>
#include <string.h>

#include "../kernels/lists.h"
#include "cpu.h"
#include "errors.h"
#include "gpu.h"

int gpr_op_index(const char *name) {
  for (int op = 0; op < GPR_OP_COUNT; op++)
    if (!strcmp(name, gpr_ops[op].name) || (*name && !strcmp(name, gpr_ops[op].ufunc))) return op;
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

const char *gpr_isa(void) { return gpr_cpu_table_here()->isa; }

gpr_options gpr_defaults(void) {
  return (gpr_options){
      .dtype = GPR_NO_DTYPE, .device = GPR_DEVICE_AUTO, .initial = NULL, .kernel = GPR_NO_KERNEL};
}

gpr_view gpr_view_of(const void *data, int dtype, int64_t n) {
  gpr_view view = {.data = data, .dtype = dtype, .ndim = 1, .device = GPR_DEVICE_CPU};
  view.shape[0] = n;
  view.strides[0] = gpr_dtypes[dtype].bytes;
  return view;
}

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

static gpr_status check(int op, const gpr_view *view, const gpr_options *options) {
  const gpr_op_info *o = &gpr_ops[op];
  const char *from = gpr_dtypes[view->dtype].name;
  const int asked = options->dtype, dtype = folded_dtype(op, view->dtype, options);
  const int result = gpr_result_dtype(op, view->dtype, options);
  if (*o->ufunc && asked != GPR_NO_DTYPE && result != GPR_NO_DTYPE && result != asked)
    return gpr_fail(GPR_BAD_TYPE, "%s: dtype %s is not possible, the result is always %s", o->name,
                    gpr_dtypes[asked].name, gpr_dtypes[result].name);
  if (dtype != view->dtype && !cast_of(view->dtype, dtype))
    return gpr_fail(GPR_BAD_TYPE, "%s: no conversion from %s to %s", o->name, from,
                    gpr_dtypes[dtype].name);
  if (!row_of(op, dtype)->open)
    return gpr_fail(GPR_BAD_TYPE, "%s: not defined for dtype %s", o->name, gpr_dtypes[dtype].name);
  if (o->flags & GPR_MATRICES) return check_matrices(o->name, view);
  if (!(o->flags & GPR_NONEMPTY) || options->initial) return GPR_OK;
  for (int d = 0; d < view->ndim; d++) {
    if (view->shape[d] != 0) continue;
    if (o->flags & GPR_POSITION)
      return gpr_fail(GPR_BAD_VALUE, "attempt to get %s of an empty sequence", o->name);
    /* NumPy's words, which name the ufunc; its ptp asks for the maximum first. */
    return gpr_fail(GPR_BAD_VALUE,
                    "zero-size array to reduction operation %s which has no identity%s",
                    *o->ufunc ? o->ufunc : gpr_ops[GPR_OP_MAX].ufunc,
                    o->flags & GPR_TAKES_INITIAL ? "; initial= would give it one" : "");
  }
  return GPR_OK;
}

/* Where to work: arrays on a device there, arrays on the host where it was asked for. */
static gpr_status choose(const gpr_view *view, int wanted, int *device) {
  *device = wanted >= 0 ? wanted : GPR_DEVICE_CPU;
  if (view->device >= 0) {
    *device = view->device;
    if (wanted != GPR_DEVICE_AUTO && wanted != view->device)
      return gpr_fail(
          GPR_BAD_VALUE,
          "the array lies on cuda:%d, where it can be reduced; copy it to reduce it elsewhere",
          view->device);
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
static gpr_status choose_for_kernel(const gpr_view *view, const gpr_options *options,
                                    const gpr_plan *plan, int *device) {
  const int wanted = options->device == GPR_DEVICE_AUTO && view->device < 0 ? 0 : options->device;
  const gpr_status status = check_kernel(plan->row, plan->count, options);
  return status ? status : choose(view, wanted, device);
}

gpr_status gpr_open(int op, const gpr_view *view, const gpr_options *options, gpr_run **run) {
  const gpr_options defaults = gpr_defaults();
  int device;
  if (!options) options = &defaults;
  *run = NULL;
  gpr_status status = check(op, view, options);
  if (status) return status;
  const gpr_plan plan = plan_of(op, view, options);
  status = options->kernel == GPR_NO_KERNEL ? choose(view, options->device, &device)
                                            : choose_for_kernel(view, options, &plan, &device);
  if (status) return status;
  if (options->kernel != GPR_NO_KERNEL && options->kernel != GPR_KERNEL_DEFAULT)
    status = gpr_gpu_ladder_open(&plan, options->kernel, device, run);
  else
    status = device < 0 ? gpr_cpu_open(&plan, run) : gpr_gpu_open(&plan, device, run);
  if (status) return status;

  const gpr_row *row = plan.row;
  const int dtype = row->dtype;
  (*run)->row = row;
  (*run)->dtype = gpr_result_dtype(op, view->dtype, options);
  const int narrows = (*run)->dtype != row->result;
  (*run)->narrow = narrows ? cast_of(row->result, dtype) : NULL;
  (*run)->has_initial = options->initial != NULL;
  if (options->initial && narrows)
    cast_of(dtype, row->result)(options->initial->bytes, (*run)->initial.bytes, 1);
  else if (options->initial)
    (*run)->initial = *options->initial;
  return GPR_OK;
}

gpr_status gpr_step(gpr_run *run, int64_t nanoseconds) {
  return run->backend->step(run, nanoseconds);
}

gpr_status gpr_finish(gpr_run *run, gpr_value *result) {
  gpr_value wide;
  const gpr_status status =
      run->backend->finish(run, run->has_initial ? run->initial.bytes : NULL, wide.bytes);
  if (status) return status;
  result->dtype = run->dtype;
  if (run->narrow)
    run->narrow(wide.bytes, result->bytes, 1);
  else
    memcpy(result->bytes, wide.bytes, sizeof wide.bytes);
  return GPR_OK;
}

void gpr_close(gpr_run *run) {
  if (run) run->backend->close(run);
}

gpr_status gpr_reduce(const char *op, const gpr_view *view, const gpr_options *options,
                      gpr_value *result) {
  gpr_run *run = NULL;
  const int index = gpr_op_index(op);
  if (index < 0) return gpr_fail(GPR_BAD_VALUE, "unknown operator %s", op);
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
  status = choose_for_kernel(view, options, &plan, &device);
  return status ? status
                : gpr_gpu_ladder_time(&plan, options->kernel, device, repeats, milliseconds);
}
