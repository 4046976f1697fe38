#include "checks.h"

#include <stdio.h>
#include <string.h>

#include "../kernels/abi/lists.h"
#include "errors.h"
#include "plan.h"

/* Below this the kernels' degrees of freedom stay the same. */
#define DDOF_LEAST (-0x1p62)

/* Where the elements are matrices: an array of shape (n, 2, 2). */
static gpr_status check_matrices(const char *name, const gpr_view *view,
                                 const gpr_options *options) {
  char shape[128] = "";
  size_t used = 0;
  if (options->where || options->starts || ~options->axes & (GPR_AXIS(3) - 1))
    return gpr_fail(GPR_BAD_VALUE, "%s: the whole array alone, without axes, mask and segments",
                    name);
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
  if (!options->starts || !gpr_count_outputs(view, options)) return empty;
  for (int64_t i = 0; i < options->segments; i++) empty |= options->stops[i] <= options->starts[i];
  return empty;
}

/* In NumPy's words, which name the ufunc; its ptp asks for the maximum first. */
static gpr_status check_identity(const gpr_op_info *o, const gpr_view *view,
                                 const gpr_options *options) {
  const char *ufunc = *o->ufunc ? o->ufunc : gpr_ops[GPR_OP_MAX].ufunc;
  const char *help = o->flags & GPR_TAKES_INITIAL ? "; an initial value would give it one" : "";
  const int begins = options->initial && o->flags & GPR_TAKES_INITIAL;
  if (!(o->flags & GPR_NONEMPTY) || begins || options->partials) return GPR_OK;
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

gpr_status gpr_check(const gpr_resolved *what, const gpr_view *view, const gpr_options *options) {
  const gpr_op_info *o = &gpr_ops[what->op];
  const int asked = options->dtype, result = what->result;
  if ((o->flags & GPR_SPREAD) && options->ddof < DDOF_LEAST)
    return gpr_fail(GPR_BAD_VALUE, "%s: ddof %g is below -2^62", o->name, options->ddof);
  if (*o->ufunc && !options->partials && asked != GPR_NO_DTYPE && result != GPR_NO_DTYPE &&
      result != asked)
    return gpr_fail(GPR_BAD_TYPE, "%s: dtype %s is not possible, the result is always %s", o->name,
                    gpr_dtypes[asked].name, gpr_dtypes[result].name);
  if (what->is_cast && !what->cast)
    return gpr_fail(GPR_BAD_TYPE, "%s: no conversion from %s to %s", o->name,
                    gpr_dtypes[view->dtype].name, gpr_dtypes[asked].name);
  if (!what->row->open)
    return gpr_fail(GPR_BAD_TYPE, "%s: not defined for dtype %s", o->name,
                    gpr_dtypes[what->is_cast ? asked : view->dtype].name);
  if (options->partials && !gpr_partials_words(what->op, what->row->dtype))
    return gpr_fail(GPR_BAD_TYPE, "%s: there are no partials of dtype %s", o->name,
                    gpr_dtypes[what->row->dtype].name);
  if (options->partials && options->initial)
    return gpr_fail(GPR_BAD_VALUE, "%s: initial takes part once, when partials are finished",
                    o->name);
  if (o->flags & GPR_MATRICES) return check_matrices(o->name, view, options);
  if (options->initial && what->row->result != options->initial->dtype &&
      !gpr_cast_of(options->initial->dtype, what->row->result))
    return gpr_fail(GPR_BAD_TYPE, "%s: initial of dtype %s is no %s", o->name,
                    gpr_dtypes[options->initial->dtype].name, gpr_dtypes[what->row->result].name);
  if (options->where && options->where->dtype != GPR_BOOL)
    return gpr_fail(GPR_BAD_TYPE, "%s: the mask is of dtype %s, not bool", o->name,
                    gpr_dtypes[options->where->dtype].name);
  const gpr_status status = check_segments(view, options);
  return status ? status : check_identity(o, view, options);
}

static void append(char *list, size_t bytes, const char *name) {
  const size_t used = strlen(list);
  snprintf(list + used, bytes - used, "%s%s", used ? ", " : "", name);
}

gpr_status gpr_check_kernel(const gpr_row *row, int64_t n, const gpr_options *options) {
  const int variant = options->kernel - GPR_KERNEL_COUNT;
  const gpr_kernel_info *k = &gpr_kernels[variant < 0 ? options->kernel : 0];
  const char *name = gpr_ops[row->op].name,
             *kernel = variant < 0 ? k->name : gpr_variants[variant].name;
  char list[256] = "";
  if (options->device == GPR_DEVICE_CPU)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s is a GPU's; device=\"cpu\" has none by a name",
                    name, kernel);
  if (variant >= 0 && (gpr_ops[row->op].flags & GPR_MATRICES))
    return gpr_fail(GPR_BAD_TYPE, "%s: kernel %s takes no matrices", name, kernel);
  if (variant >= 0 || options->kernel == GPR_KERNEL_DEFAULT) return GPR_OK;
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
