/* Partials: a row that finishes into words, and words that come back as states. */
#include "partials.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/abi/lists.h"
#include "../kernels/abi/partials.h"
#include "errors.h"

enum { ROWS = GPR_OP_COUNT * GPR_DTYPE_COUNT };
/* Additions of digits below 2^32 that an int64 holds. */
#define GPR_MERGES_MOST (INT64_C(1) << 31)

static int is_row(int op, int dtype) { return gpr_is_op(op) && gpr_is_dtype(dtype); }
/* Without words where there are none. */
static const gpr_partial *partial_of(int op, int dtype) {
  static const gpr_partial none;
  return is_row(op, dtype) ? &gpr_partial_rows[op * GPR_DTYPE_COUNT + dtype] : &none;
}

/* --- rows ------------------------------------------------------------------------------------- */

static gpr_row rows[ROWS];

static void make_rows(void) {
  for (int i = 0; i < ROWS; i++) {
    const gpr_partial *partial = &gpr_partial_rows[i];
    gpr_row *row = &rows[i];
    *row = *gpr_row_of(i / GPR_DTYPE_COUNT, i % GPR_DTYPE_COUNT);
    if (!partial->words || !row->open) continue;
    if (gpr_ops[row->op].flags & GPR_SPREAD) row->op = GPR_OP_SUM; /* with is no gpr_spread */
    row->result = GPR_INT64;
    row->results = partial->words;
    row->finish = partial->store;
    row->many = NULL;
    row->quick = NULL;
  }
}

void gpr_partials_resolve(gpr_resolved *what) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const int dtype = what->row->dtype;
  if (!what->row->open || !gpr_partials_words(what->op, dtype)) return;
  pthread_once(&once, make_rows);
  what->row = &rows[what->op * GPR_DTYPE_COUNT + dtype];
  what->result = what->row->result;
  what->results = what->row->results;
  what->narrow = NULL;
}

/* --- what there is ---------------------------------------------------------------------------- */

int gpr_partials_words(int op, int dtype) { return partial_of(op, dtype)->words; }
int gpr_partials_are_additive(int op, int dtype) { return partial_of(op, dtype)->additive; }

static int are_alike(int op, int other, int dtype) {
  return partial_of(op, dtype)->load == partial_of(other, dtype)->load &&
         gpr_skips(op, dtype) == gpr_skips(other, dtype);
}

int gpr_partials_op(int op, int dtype) {
  int first = 0;
  if (!gpr_partials_words(op, dtype)) return -1;
  while (!are_alike(first, op, dtype)) first++;
  return first;
}

int gpr_partials_answer(int op, int dtype, int asked) {
  const gpr_partial *of = partial_of(op, dtype), *to = partial_of(asked, dtype);
  if (!of->load || !to->load || gpr_skips(op, dtype) != gpr_skips(asked, dtype)) return 0;
  return to->load == of->load || to->load == of->begins[0] || to->load == of->begins[1];
}

/* CRC-32 as of zlib and PNG: names that many things can make. */
static uint32_t digest(const char *text) {
  uint32_t crc = 0xffffffffu;
  for (; *text; text++) {
    crc ^= (unsigned char)*text;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

uint32_t gpr_partials_kind(int op, int dtype) {
  char text[128];
  if (!gpr_partials_words(op, dtype)) return 0;
  snprintf(text, sizeof text, "gpureduce partials 1: %s of %s",
           gpr_ops[gpr_partials_op(op, dtype)].name, gpr_dtypes[dtype].name);
  return digest(text);
}

/* --- words that come back --------------------------------------------------------------------- */

static char *states_of(size_t bytes, int count) {
  char *states = malloc(bytes * (size_t)count);
  if (!states) gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the states of partials");
  return states;
}

static gpr_status check(int op, int dtype) {
  if (gpr_partials_words(op, dtype)) return GPR_OK;
  if (!is_row(op, dtype))
    return gpr_fail(GPR_BAD_VALUE, "there is no operator %d or no dtype %d", op, dtype);
  return gpr_fail(GPR_BAD_TYPE, "%s: there are no partials of dtype %s", gpr_ops[op].name,
                  gpr_dtypes[dtype].name);
}

static gpr_status check_places(const char *function, const void *words, int64_t count,
                               int64_t outputs, const void *to) {
  int64_t all;
  if (count < 0 || outputs < 0 || __builtin_mul_overflow(count, outputs, &all))
    return gpr_fail(GPR_BAD_VALUE, "%s: %lld partials of %lld outputs", function, (long long)count,
                    (long long)outputs);
  if (all && !words) return gpr_fail(GPR_BAD_VALUE, "%s: words is NULL", function);
  if (outputs && !to)
    return gpr_fail(GPR_BAD_VALUE, "%s: there is no place for the results", function);
  return GPR_OK;
}

/* One output's words added up, if that is how they merge and no digit can overflow; 0 if not. */
static int add_words(const gpr_partial *partial, const int64_t *words, int64_t step, int64_t count,
                     int64_t *sum) {
  int64_t merged = 0;
  if (!partial->additive) return 0;
  memset(sum, 0, (size_t)partial->words * sizeof *sum);
  for (int64_t i = 0; i < count; i++, words += step) {
    if (words[GPR_WORD_MERGED] > GPR_MERGES_MOST - merged) return 0;
    merged += words[GPR_WORD_MERGED];
    for (int j = 0; j < partial->words; j++) sum[j] += words[j];
  }
  return 1;
}

/* One after the other, by their states. */
static int64_t merge_states(const gpr_partial *partial, const gpr_row *row, const int64_t *words,
                            int64_t step, int64_t count, char *all, char *next) {
  int64_t n = 0;
  row->open(all);
  for (int64_t i = 0; i < count; i++, words += step) {
    /* the first into `all`: it may bring more than states merge */
    const int64_t more = partial->load(words, n ? next : all);
    if (n && more) row->merge(all, next);
    n += more;
  }
  return n;
}

enum gpr_words gpr_partials_check(uint32_t kind, const int64_t *words, int words_of_each,
                                  int64_t outputs) {
  if (outputs > 0 && (!words || words_of_each <= GPR_WORD_COUNT)) return GPR_WORDS_FOREIGN;
  for (int64_t o = 0; o < outputs; o++, words += words_of_each) {
    const uint64_t kinds = (uint64_t)words[GPR_WORD_KINDS],
                   merged = (uint64_t)words[GPR_WORD_MERGED];
    const int is_fine =
        kinds == kind * merged && (int64_t)merged >= 0 && words[GPR_WORD_COUNT] >= 0;
    if (is_fine && merged <= GPR_MERGES_MOST) continue;
    if (is_fine) return GPR_WORDS_TOO_MANY;
    const int is_swapped = __builtin_bswap64(kinds) == kind * __builtin_bswap64(merged);
    return is_swapped ? GPR_WORDS_SWAPPED : GPR_WORDS_FOREIGN;
  }
  return GPR_WORDS_FINE;
}

gpr_status gpr_partials_merge(int op, int dtype, uint32_t kind, const int64_t *words, int64_t count,
                              int64_t outputs, int64_t *merged) {
  const gpr_partial *partial = partial_of(op, dtype);
  gpr_status status = check(op, dtype);
  if (!status) status = check_places("gpr_partials_merge", words, count, outputs, merged);
  if (status) return status;
  const gpr_row *row = gpr_row_of(op, dtype);
  if (gpr_partials_check(kind, words, partial->words, count * outputs))
    return gpr_fail(GPR_BAD_VALUE, "words are not those of partials of %s of %s", gpr_ops[op].name,
                    gpr_dtypes[dtype].name);
  const size_t bytes = (row->state_bytes + 15) & ~(size_t)15;
  char *all = states_of(bytes, 2);
  if (!all) return GPR_OUT_OF_MEMORY;
  char *next = all + bytes;
  for (int64_t o = 0; o < outputs; o++, words += partial->words, merged += partial->words) {
    const int64_t step = outputs * partial->words;
    const int64_t n = add_words(partial, words, step, count, merged)
                          ? partial->load(merged, all)
                          : merge_states(partial, row, words, step, count, all, next);
    partial->store(all, n, &kind, merged);
  }
  free(all);
  return GPR_OK;
}

static int is_real(int dtype) {
  return gpr_dtypes[dtype].kind == 'f' || gpr_dtypes[dtype].kind == 'V';
}
static int rounds_into(int dtype, int to) {
  return dtype == to || (is_real(dtype) && is_real(to)) ||
         (gpr_dtypes[dtype].kind == 'c' && gpr_dtypes[to].kind == 'c');
}

static gpr_status check_finish(int op, int dtype, int asked, int result_dtype) {
  const gpr_status status = check(op, dtype);
  if (status) return status;
  if (!is_row(asked, result_dtype))
    return gpr_fail(GPR_BAD_VALUE, "there is no operator %d or no dtype %d", asked, result_dtype);
  if (!gpr_partials_answer(op, dtype, asked))
    return gpr_fail(GPR_BAD_VALUE, "partials of %s of %s do not answer %s", gpr_ops[op].name,
                    gpr_dtypes[dtype].name, gpr_ops[asked].name);
  if (gpr_row_of(op, dtype)->law == GPR_EXACT ? rounds_into(dtype, result_dtype)
                                              : dtype == result_dtype)
    return GPR_OK;
  return gpr_fail(GPR_BAD_TYPE, "partials of %s of %s do not finish into %s", gpr_ops[op].name,
                  gpr_dtypes[dtype].name, gpr_dtypes[result_dtype].name);
}

gpr_status gpr_partials_finish(int op, int dtype, int asked, int result_dtype, double ddof,
                               const int64_t *words, int64_t outputs, void *results,
                               int64_t *least) {
  const gpr_partial *partial = partial_of(op, dtype);
  gpr_status status = check_finish(op, dtype, asked, result_dtype);
  if (!status)
    status = check_places("gpr_partials_finish", words, 1, outputs, least ? results : NULL);
  if (status) return status;
  const gpr_row *row = gpr_row_of(asked, result_dtype);
  const gpr_spread spread = {ddof, NULL, gpr_skips(asked, dtype) || ddof != ddof};
  const void *with = gpr_ops[asked].flags & GPR_SPREAD ? &spread : NULL;
  const int bytes = gpr_dtypes[row->result].bytes * row->results;
  char *state = states_of(gpr_row_of(op, dtype)->state_bytes, 1);
  if (!state) return GPR_OUT_OF_MEMORY;
  *least = INT64_MAX;
  for (int64_t o = 0; o < outputs; o++) {
    const int64_t n = partial->load(words + o * partial->words, state);
    row->finish(state, n, with, (char *)results + o * bytes);
    if (n < *least) *least = n;
  }
  free(state);
  return GPR_OK;
}
