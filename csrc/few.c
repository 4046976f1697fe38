#include "few.h"

#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"

/* More than GPR_SHORT take microseconds, where a run does not show. Those with NaN that do not
 * count are copied. */
enum { COPIED_BYTES = 4 << 10 };

/* Elements in the order of the index, as the row takes them. */
static int lies_ready(const gpr_view *view, int unit) {
  int64_t stride = gpr_dtypes[view->dtype].bytes;
  for (int d = view->ndim - 1; d >= 0; d--) {
    if (view->shape[d] != 1 && view->strides[d] != stride) return 0;
    stride *= view->shape[d];
  }
  return (uintptr_t)view->data % (uintptr_t)unit == 0;
}

static int is_plain(const gpr_resolved *what, const gpr_view *view, const gpr_options *o) {
  const gpr_dtype_info *type = &gpr_dtypes[view->dtype];
  const uint64_t all = view->ndim < GPR_DIMS_MAX ? GPR_AXIS(view->ndim) - 1 : GPR_ALL_AXES;
  return view->memory == GPR_HOST_MEMORY && !view->swapped && (o->axes & all) == all && !o->where &&
         !o->starts && !o->means && !o->initial && !o->out && !o->partials &&
         (o->device == GPR_DEVICE_AUTO || o->device == GPR_DEVICE_CPU) &&
         o->dtype == GPR_NO_DTYPE && o->kernel == GPR_NO_KERNEL && o->ddof >= 0 &&
         what->row->open && what->row->scalars == 1 && what->row->state_bytes <= GPR_STATE_MOST &&
         lies_ready(view, type->kind == 'c' ? type->bytes / 2 : type->bytes);
}

/* By the quick row, and where that refuses the result by the row itself. */
static void fold(const gpr_row *row, const char *x, int64_t n, int64_t counted, const void *with,
                 void *result) {
  _Alignas(64) char state[GPR_STATE_MOST];
  int infinite;
  const gpr_tile tile = {.data = x,
                         .along = gpr_dtypes[row->dtype].bytes,
                         .outputs = 1,
                         .n = n,
                         .counts = counted < n ? &counted : NULL,
                         .infinite = &infinite};
  if (row->quick && row->quick->many(&tile, with, result)) return;
  row->open(state);
  row->fold(state, x, n, 0);
  row->finish(state, counted, with, result);
}

/* How many count of those that fit; the others become the identity in a copy. */
static int64_t fold_copy(const gpr_row *row, const char *x, int64_t n, const void *with,
                         void *result) {
  const gpr_cpu_table *table = gpr_cpu_table_here();
  const int bytes = gpr_dtypes[row->dtype].bytes;
  _Alignas(64) char copy[COPIED_BYTES], identity[64];
  uint8_t keep[COPIED_BYTES / 2];
  int64_t counted = 0;
  if (n * bytes > COPIED_BYTES) return 0;
  memcpy(copy, x, (size_t)(n * bytes));
  memset(keep, 1, (size_t)n);
  row->identity(identity);
  table->skip[row->dtype](copy, n, keep);
  table->blend(copy, bytes, keep, n, identity);
  table->count(keep, n, 1, 1, n, &counted);
  if (counted) fold(row, copy, n, counted, with, result);
  return counted;
}

/* Rows that leave out NaN by themselves. */
static int64_t fold_skipping(const gpr_row *row, const void *x, int64_t n, void *result) {
  _Alignas(64) char state[GPR_STATE_MOST];
  row->open(state);
  row->fold_skipping(state, x, n, 0);
  if (row->empty(state)) return 0;
  row->finish(state, n, NULL, result);
  return n;
}

gpr_status gpr_reduce_few(const gpr_resolved *what, const gpr_view *view,
                          const gpr_options *options, gpr_value *result, int64_t *least) {
  const gpr_row *row = what->row;
  const int is_spread = gpr_ops[what->op].flags & GPR_SPREAD;
  const gpr_spread spread = {options->ddof, NULL, what->skips};
  const void *with = is_spread ? &spread : NULL;
  int64_t n = 1;
  for (int d = 0; d < view->ndim; d++) n *= view->shape[d];
  if (n < 1 || n > GPR_SHORT || !is_plain(what, view, options)) return GPR_MORE;
  *least = n;
  if (what->skips && row->empty)
    *least = fold_skipping(row, view->data, n, result->bytes);
  else if (what->skips && gpr_cpu_table_here()->skip[row->dtype](view->data, n, NULL))
    *least = fold_copy(row, view->data, n, with, result->bytes);
  else
    fold(row, view->data, n, n, with, result->bytes);
  result->dtype = what->result;
  return *least ? GPR_OK : GPR_MORE; /* nothing counts: a run says so */
}
