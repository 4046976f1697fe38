/* From any layout, alignment, byte order and dtype to contiguous elements of the row's dtype. */
#include "pack.h"

#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

int gpr_word_of(int64_t run) {
  int word = 1;
  while (word < GPR_WORD_BYTES && 2 * word <= run) word *= 2;
  return word;
}

/* Where the first runs of an index lie, each of `run` elements side by side: those of whole inner
 * dimensions, and of dimension `dim` as many steps, of `inner` runs each, as there is room for. */
enum { PLACES_MOST = 512, LONG = 32 };
typedef struct places {
  int dim, even; /* even: a long dimension alone, all of it, without `at` */
  int64_t run, inner, n, at[PLACES_MOST];
} places;

static void find_places(const gpr_plan *p, int64_t elements, int64_t lines, places *to) {
  int d = p->ndim - 1;
  to->run = d > 0 && p->strides[d] == p->bytes ? p->shape[d--] : 1;
  const int64_t most = least_of(elements / to->run / 8 + 1, PLACES_MOST);
  const int64_t bytes = to->run * p->bytes;
  const int is_word = bytes <= GPR_WORD_BYTES && !(bytes & (bytes - 1));
  to->even = lines == 1 && is_word && p->shape[d] >= LONG;
  to->dim = d;
  to->inner = 1;
  to->n = to->even ? p->shape[d] : 1;
  to->at[0] = 0;
  for (; d >= 0 && 2 * to->n <= most && !to->even; d--) {
    const int64_t steps = least_of(most / to->n, p->shape[d]);
    to->dim = d;
    to->inner = to->n;
    for (int64_t i = to->n; i < steps * to->n; i++) to->at[i] = to->at[i - to->n] + p->strides[d];
    to->n *= steps;
  }
}

/* As gpr_pack_lines(), but as they lie. */
static void gather(const gpr_plan *p, gpr_lines_at lines, const char *data, int64_t start,
                   int64_t n, char *to) {
  const gpr_cpu_table *table = gpr_cpu_table_here();
  const int64_t apart = n * p->bytes;
  places s;
  find_places(p, n, lines.n, &s);
  const int64_t bytes = s.run * p->bytes;
  for (int64_t m; n > 0; start += m, n -= m, to += m * p->bytes) {
    const int64_t within = start % s.run, number = start / s.run, first = number % s.inner;
    int64_t at = number / s.inner, runs = least_of(n / s.run, s.n - first);
    const char *from = data + within * p->bytes;
    runs = least_of(runs, (p->shape[s.dim] - at % p->shape[s.dim]) * s.inner - first);
    for (int d = s.dim; d >= 0; at /= p->shape[d--]) from += at % p->shape[d] * p->strides[d];
    m = within || !runs ? least_of(n, s.run - within) : runs * s.run;
    if (m < runs * s.run || !runs)
      memcpy(to, from + s.at[first], (size_t)(m * p->bytes));
    else if (s.even)
      table->copy(from, p->strides[s.dim], to, bytes, runs, (int)bytes);
    else
      table->gather(from, s.at + first, runs, bytes, lines.n, lines.step, to, apart);
  }
}

static int lies_ready(const gpr_plan *p, const char *data) {
  const gpr_dtype_info *type = &gpr_dtypes[p->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  return !p->swap && p->ndim == 1 && p->strides[0] == p->bytes &&
         (uintptr_t)data % (uintptr_t)unit == 0;
}

void gpr_pack_lines(const gpr_plan *p, gpr_lines_at lines, const char *data, int64_t start,
                    int64_t n, void *to, void *scratch) {
  char *gathered = p->cast ? scratch : to;
  const int64_t all = n * lines.n;
  gather(p, lines, data, start, n, gathered);
  if (p->swap) gpr_cpu_table_here()->swap(gathered, all * p->bytes, p->swap);
  if (p->cast) p->cast(gathered, to, all);
}

void gpr_pack(const gpr_plan *p, const char *data, int64_t start, int64_t n, void *to,
              void *scratch) {
  const int scalars = p->row->scalars;
  if (p->cast && lies_ready(p, data))
    p->cast(data + start * scalars * p->bytes, to, n * scalars);
  else
    gpr_pack_lines(p, (gpr_lines_at){1, 0}, data, start * scalars, n * scalars, to, scratch);
}
