#include "resolve.h"

#include <string.h>

#include "../kernels/abi/lists.h"
#include "brief.h"
#include "cpu.h"
#include "partials.h"

int gpr_op_index(const char *name) {
  if (!name) return -1;
  for (int op = 0; op < GPR_OP_COUNT; op++)
    if (!(gpr_ops[op].flags & GPR_HIDDEN) &&
        (!strcmp(name, gpr_ops[op].name) || (*name && !strcmp(name, gpr_ops[op].ufunc))))
      return op;
  return -1;
}

int gpr_kernel_index(const char *name) {
  if (!name) return GPR_NO_KERNEL;
  for (int k = 0; k < GPR_KERNEL_COUNT; k++)
    if (!strcmp(name, gpr_kernels[k].name)) return k;
  for (int v = GPR_ANY_VARIANT + 1; v < GPR_VARIANT_END; v++)
    if (!strcmp(name, gpr_variants[v].name)) return GPR_KERNEL_COUNT + v;
  return GPR_NO_KERNEL;
}

const gpr_row *gpr_row_of(int op, int dtype) {
  return &gpr_cpu_table_here()->row[op * GPR_DTYPE_COUNT + dtype];
}
gpr_cast gpr_cast_of(int from, int to) {
  return gpr_cpu_table_here()->cast[from * GPR_DTYPE_COUNT + to];
}

int gpr_skips(int op, int dtype) {
  const char kind = gpr_dtypes[dtype].kind;
  const int which = kind == 'm' || kind == 'M' ? GPR_SKIPS_NAT : GPR_SKIPS_NAN;
  return (gpr_ops[op].flags & which) && gpr_cpu_table_here()->skip[dtype];
}

int gpr_results(int op) {
  if (!gpr_is_op(op)) return 0;
  int results = 1;
  for (int dtype = 0; dtype < GPR_DTYPE_COUNT; dtype++)
    if (gpr_row_of(op, dtype)->results > results) results = gpr_row_of(op, dtype)->results;
  return results;
}

int gpr_result_dtype(int op, int dtype, const gpr_options *options) {
  const int asked = options ? options->dtype : GPR_NO_DTYPE;
  if (!gpr_is_op(op) || !gpr_is_dtype(dtype) || (asked != GPR_NO_DTYPE && !gpr_is_dtype(asked)))
    return GPR_NO_DTYPE;
  const int result = gpr_row_of(op, asked == GPR_NO_DTYPE ? dtype : asked)->result;
  const int narrows = asked != GPR_NO_DTYPE && (gpr_ops[op].flags & GPR_TAKES_DTYPE);
  return narrows && result != GPR_NO_DTYPE ? asked : result;
}

/* What elements are converted to: nothing where the result is what was asked for anyway, as that of
 * logical operators is bool, that of sums and products of integers, which wrap around, the widest
 * of their kind, and that of means and variances of those that doubles hold. */
static int folded_dtype(int op, int from, const gpr_options *options) {
  if (options->dtype == GPR_NO_DTYPE) return from;
  const int fits = gpr_row_of(op, from)->result == options->dtype;
  const int whole = strchr("iub", gpr_dtypes[from].kind) && !options->partials;
  const int held = whole && (options->dtype != GPR_FLOAT64 || gpr_dtypes[from].bytes <= 4);
  return fits && (held || !(gpr_ops[op].flags & GPR_TAKES_DTYPE)) ? from : options->dtype;
}

/* Sums and means of integers as floats that hold each of them are the integers' own, rounded to
 * such a float: the operator for that, or the one that is asked. */
static int rounding_op(int op, int from, const gpr_options *options) {
  static const struct {
    int op, dtype, rounding;
  } all[] = {{GPR_OP_SUM, GPR_FLOAT64, GPR_OP_SUM_AS_DOUBLE},
             {GPR_OP_NANSUM, GPR_FLOAT64, GPR_OP_SUM_AS_DOUBLE},
             {GPR_OP_SUM, GPR_FLOAT32, GPR_OP_SUM_AS_FLOAT},
             {GPR_OP_NANSUM, GPR_FLOAT32, GPR_OP_SUM_AS_FLOAT},
             {GPR_OP_MEAN, GPR_FLOAT32, GPR_OP_MEAN_AS_FLOAT},
             {GPR_OP_NANMEAN, GPR_FLOAT32, GPR_OP_MEAN_AS_FLOAT}};
  const int is_own = options->kernel >= 0 && options->kernel < GPR_KERNEL_COUNT;
  if (options->partials || options->initial || is_own) return op;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].op == op && all[i].dtype == options->dtype &&
        gpr_row_of(all[i].rounding, from)->open)
      return all[i].rounding;
  return op;
}

gpr_resolved gpr_resolve(int op, int dtype, const gpr_options *options) {
  const int rounding = rounding_op(op, dtype, options);
  const int folded = rounding == op ? folded_dtype(op, dtype, options) : dtype;
  const gpr_row *row = gpr_row_of(rounding, folded);
  gpr_resolved r = {.op = op,
                    .row = row,
                    .is_cast = folded != dtype,
                    .cast = folded == dtype ? NULL : gpr_cast_of(dtype, folded),
                    .result = gpr_result_dtype(op, dtype, options),
                    .results = row->open ? row->results : gpr_results(op),
                    .skips = gpr_skips(op, folded)};
  if (row->open && r.result != GPR_NO_DTYPE && r.result != row->result)
    r.narrow = gpr_cast_of(row->result, r.result);
  if (options->partials && options->brief && row->brief)
    gpr_brief_resolve(&r);
  else if (options->partials)
    gpr_partials_resolve(&r);
  return r;
}
