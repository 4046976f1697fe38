/* From any layout, alignment, byte order and dtype to contiguous elements of the row's dtype. */
#include "pack.h"

#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"

/* A loop so short that it is not worth a call. */
enum { SHORT_RUN = 16 };

void gpr_swap_bytes(char *data, int64_t bytes, int unit) {
  for (int64_t i = 0; i < bytes; i += unit) {
    if (unit == 2) {
      uint16_t x;
      memcpy(&x, data + i, 2);
      x = __builtin_bswap16(x);
      memcpy(data + i, &x, 2);
    } else if (unit == 4) {
      uint32_t x;
      memcpy(&x, data + i, 4);
      x = __builtin_bswap32(x);
      memcpy(data + i, &x, 4);
    } else {
      uint64_t x;
      memcpy(&x, data + i, 8);
      x = __builtin_bswap64(x);
      memcpy(data + i, &x, 8);
    }
  }
}

int gpr_word_of(int64_t run) {
  int word = 1;
  while (word < GPR_WORD_BYTES && 2 * word <= run) word *= 2;
  return word;
}

/* Elements [start, start + n) in C order of these dimensions. */
static void gather(int ndim, const int64_t *shape, const int64_t *strides, int bytes,
                   const char *from, int64_t start, int64_t n, char *to) {
  const gpr_copy copy = gpr_cpu_table_here()->copy;
  const int last = ndim - 1;
  const int64_t line = shape[last] * bytes;
  const int dense = strides[last] == bytes, word = dense ? gpr_word_of(line) : bytes;
  const int is_short = dense ? line <= 2 * GPR_WORD_BYTES : shape[last] < SHORT_RUN;
  int64_t index[GPR_DIMS_MAX];
  for (int d = last; d >= 0; d--) {
    index[d] = start % shape[d];
    start /= shape[d];
    from += index[d] * strides[d];
  }
  while (n > 0) {
    int64_t rest = shape[last] - index[last], m = n < rest ? n : rest;
    int d = last;
    if (last && !index[last] && is_short && n >= 2 * shape[last]) {
      const int64_t rows = n / shape[last]; /* the other way round: few long loops */
      d = last - 1;
      rest = shape[d] - index[d];
      m = rows < rest ? rows : rest;
      for (int64_t i = 0; i < line; i += word) {
        const int64_t at = i + word > line ? line - word : i;
        copy(from + (dense ? at : i / bytes * strides[last]), strides[d], to + at, line, m, word);
      }
      to += m * line;
      n -= m * shape[last];
    } else {
      copy(from, strides[last], to, bytes, m, bytes);
      to += m * bytes;
      n -= m;
    }
    from += m * strides[d];
    index[d] += m;
    for (; d > 0 && index[d] == shape[d]; d--) {
      from += strides[d - 1] - shape[d] * strides[d];
      index[d] = 0;
      index[d - 1]++;
    }
  }
}

static int lies_ready(const gpr_plan *p, const char *data) {
  const gpr_dtype_info *type = &gpr_dtypes[p->dtype];
  const int unit = type->kind == 'c' ? type->bytes / 2 : type->bytes;
  return !p->swap && p->ndim == 1 && p->strides[0] == p->bytes &&
         (uintptr_t)data % (uintptr_t)unit == 0;
}

void gpr_pack(const gpr_plan *p, const char *data, int64_t start, int64_t n, void *to,
              void *scratch) {
  if (p->cast && lies_ready(p, data)) {
    p->cast(data + start * p->row->scalars * p->bytes, to, n * p->row->scalars);
    return;
  }
  char *gathered = p->cast ? scratch : to;
  const int64_t scalars = n * p->row->scalars;
  gather(p->ndim, p->shape, p->strides, p->bytes, data, start * p->row->scalars, scalars, gathered);
  if (p->swap) gpr_swap_bytes(gathered, scalars * p->bytes, p->swap);
  if (p->cast) p->cast(gathered, to, scalars);
}
