#include "few.h"

#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"

/* More than GPR_SHORT take microseconds, where a run does not show. Those that lie apart, or have
 * NaN that do not count, are copied. */
enum { COPIED_BYTES = 32 << 10 };
/* Shorter ones, and complex ones, are turned into columns by cpu_cut.c, which pays for so many:
 * argmax of 16 rows of 15 doubles takes 0.9 us so and 1.05 there, of 32 rows 1.3 and 1.1. */
enum { FEW_ROWS = 16, LONG_ROW = 16 };

static int is_plain(const gpr_resolved *what, const gpr_view *view, const gpr_options *o) {
  return view->memory == GPR_HOST_MEMORY && !view->swapped && !o->where && !o->starts &&
         !o->means && !o->initial && !o->partials && o->out_device < 0 &&
         (o->device == GPR_DEVICE_AUTO || o->device == GPR_DEVICE_CPU) &&
         o->dtype == GPR_NO_DTYPE && o->kernel == GPR_NO_KERNEL && o->ddof >= 0 &&
         what->row->open && what->row->scalars == 1 && what->row->state_bytes <= GPR_STATE_MOST;
}

/* From the fastest axis on, going by the first and the last, where the order does not matter, of
 * the results as of the elements. */
static int is_turned(const gpr_row *row, const gpr_view *view, const gpr_options *o) {
  const int last = view->ndim - 1;
  const uint64_t all = last + 1 < GPR_DIMS_MAX ? GPR_AXIS(last + 1) - 1 : GPR_ALL_AXES;
  const int is_free = o->out_order == GPR_MEMORY_ORDER || (o->axes & all) == all;
  return is_free && !row->ordered && last > 0 && view->strides[0] < view->strides[last];
}

/* All elements where they lie: kept axes that are one, and reduced ones that are one. */
static int make_tile(const gpr_row *row, const gpr_view *view, const gpr_options *o,
                     gpr_tile *tile) {
  const int turned = is_turned(row, view, o);
  const gpr_dtype_info *type = &gpr_dtypes[view->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  *tile = (gpr_tile){.data = view->data, .outputs = 1, .n = 1};
  tile->across = tile->along = type->bytes;
  for (int i = 0; i < view->ndim; i++) {
    const int d = turned ? i : view->ndim - 1 - i, reduced = o->axes >> d & 1;
    int64_t *n = reduced ? &tile->n : &tile->outputs;
    int64_t *step = reduced ? &tile->along : &tile->across;
    if (view->shape[d] == 1) continue;
    if (*n == 1) *step = view->strides[d];
    if (view->strides[d] != *n * *step) return 0;
    *n *= view->shape[d];
  }
  const int64_t places = (int64_t)(uintptr_t)tile->data | tile->across | tile->along;
  return places % unit == 0;
}

/* By the quick row, and where that refuses the result by the row itself. */
static void fold(const gpr_row *row, const char *x, int64_t n, int64_t counted, const void *with,
                 void *result) {
  _Alignas(64) char state[GPR_STATE_MOST];
  gpr_infinities infinite = {0, 0};
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

/* Rows that leave out NaN by themselves. */
static int64_t fold_skipping(const gpr_row *row, const void *x, int64_t n, void *result) {
  _Alignas(64) char state[GPR_STATE_MOST];
  row->open(state);
  row->fold_skipping(state, x, n, 0);
  if (row->empty(state)) return 0;
  row->finish(state, n, NULL, result);
  return n;
}

/* One output; how many of its elements count, of which others become the identity. */
static int64_t reduce_one(const gpr_row *row, const gpr_tile *tile, int skips, const void *with,
                          void *result) {
  const gpr_cpu_table *table = gpr_cpu_table_here();
  const int64_t n = tile->n, bytes = gpr_dtypes[row->dtype].bytes;
  _Alignas(64) char packed[COPIED_BYTES], kept[COPIED_BYTES], identity[64];
  const char *x = tile->data;
  int64_t counted = 0;
  if ((skips || tile->along != bytes) && n * bytes > COPIED_BYTES) return 0;
  if (tile->along != bytes) {
    table->copy(x, tile->along, packed, (int)bytes, n, (int)bytes);
    x = packed;
  }
  if (skips && row->empty) return fold_skipping(row, x, n, result);
  const gpr_tile line = {.data = x, .across = n * bytes, .along = bytes, .outputs = 1, .n = n};
  row->identity(identity);
  if (skips && table->leave_out[row->dtype](&line, kept, identity, &counted))
    x = kept;
  else
    counted = n;
  if (counted) fold(row, x, n, counted, with, result);
  return counted;
}

/* Several at once, or rows one by one; 0 where others bring them together first. */
static int reduce_all(const gpr_row *row, const gpr_tile *tile, int skips, const void *with,
                      char *result) {
  const gpr_dtype_info *type = &gpr_dtypes[row->dtype];
  const int64_t bytes = type->bytes, all = tile->outputs * tile->n;
  const int few = type->kind == 'c' ? FEW_ROWS / 4 : FEW_ROWS;
  const int are_columns = tile->across == bytes && tile->along == tile->outputs * bytes;
  const int are_rows = tile->along == bytes && tile->across == tile->n * bytes;
  if (!are_columns && !are_rows) return 0;
  if (skips && gpr_cpu_table_here()->skip[row->dtype](tile->data, all, NULL)) return 0;
  if (row->quick) return row->quick->many(tile, with, result);
  if (are_columns || row->side != GPR_COLUMNS) return row->many && row->many(tile, with, result);
  if (with) return 0; /* variances of integers, which are finished many at a time */
  if (tile->outputs > few && (type->kind == 'c' || tile->n < LONG_ROW)) return 0;
  for (int64_t o = 0; o < tile->outputs; o++)
    fold(row, tile->data + o * tile->across, tile->n, tile->n, with,
         result + o * row->results * gpr_dtypes[row->result].bytes);
  return 1;
}

gpr_status gpr_reduce_few(const gpr_resolved *what, const gpr_view *view,
                          const gpr_options *options, gpr_value *result, int64_t *least) {
  const gpr_row *row = what->row;
  const int is_spread = gpr_ops[what->op].flags & GPR_SPREAD;
  const gpr_spread spread = {options->ddof, NULL, what->skips};
  const void *with = is_spread ? &spread : NULL;
  void *to = options->out ? options->out : result->bytes;
  gpr_infinities infinite = {0, 0};
  gpr_tile tile;
  if (!is_plain(what, view, options) || !make_tile(row, view, options, &tile)) return GPR_MORE;
  if (tile.n < 1 || tile.outputs < 1 || tile.n * tile.outputs > GPR_SHORT) return GPR_MORE;
  tile.infinite = &infinite;
  gpr_is_far = 0;
  if (tile.outputs == 1)
    *least = reduce_one(row, &tile, what->skips, with, to);
  else
    *least = reduce_all(row, &tile, what->skips, with, to) ? tile.n : 0;
  result->dtype = what->result;
  return *least ? GPR_OK : GPR_MORE; /* where nothing counts a run says so */
}
