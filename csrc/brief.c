/* Partials in doubles: merged as states of quick rows and, where these refuse, as exact ones. */
#include "brief.h"

#include <pthread.h>

#include "../kernels/abi/lists.h"
#include "errors.h"
#include "partials.h"

/* Outputs at a time, whose states stay in the first cache. */
enum { SOME = 32, QUICK_MOST = 256 };

int gpr_brief_doubles(int op, int dtype) {
  const gpr_row *row = gpr_row_of(op, dtype);
  return row->brief ? row->brief->doubles : 0;
}

/* Of sums, and of variances. */
static gpr_row rows[2][GPR_DTYPE_COUNT];

static void make_rows(void) {
  for (int i = 0; i < 2 * GPR_DTYPE_COUNT; i++) {
    gpr_row *row = &rows[i / GPR_DTYPE_COUNT][i % GPR_DTYPE_COUNT];
    *row = *gpr_row_of(i < GPR_DTYPE_COUNT ? GPR_OP_SUM : GPR_OP_VAR, i % GPR_DTYPE_COUNT);
    if (!row->brief) continue;
    row->op = GPR_OP_SUM; /* with is no gpr_spread */
    row->result = GPR_FLOAT64;
    row->results = row->brief->doubles;
    row->finish = row->brief->finish;
    row->many = NULL;
    row->quick = row->brief->quick;
  }
}

int gpr_brief_is_held(const double *found, int64_t outputs, int doubles) {
  int held = 1;
  for (int64_t o = 1; o <= outputs; o++) held &= found[o * doubles - 1] == found[o * doubles - 1];
  return held;
}

void gpr_brief_resolve(gpr_resolved *what) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_rows);
  const int dtype = what->row->dtype; /* partials of a variance, if they are that row's */
  what->row = &rows[rows[1][dtype].brief == what->row->brief][dtype];
  what->result = what->row->result;
  what->results = what->row->results;
  what->narrow = NULL;
}

typedef struct merging {
  const gpr_row *row;
  void (*load)(void *states, const double *from, int64_t outputs, int more);
  const void *with;
  const double *const *parts;
  int64_t count;
  size_t result_bytes;
} merging;

/* Whether any is refused, and which. */
static int merge_quickly(const merging *m, int64_t first, int64_t n, const int64_t *counts,
                         char *results, uint8_t *refused) {
  _Alignas(64) char states[SOME * QUICK_MOST];
  if (!m->row->quick) return 1;
  for (int64_t i = 0; i < m->count; i++)
    m->load(states, m->parts[i] + first * m->row->brief->doubles, n, i > 0);
  return m->row->quick->finish_many(states, n, 0, counts, m->with, results, refused, NULL);
}

static void merge_exactly(const merging *m, int64_t o, int64_t n, char *result) {
  _Alignas(64) char state[GPR_STATE_MOST];
  const gpr_brief *brief = m->row->brief;
  m->row->open(state);
  for (int64_t i = 0; i < m->count; i++) brief->add(state, m->parts[i] + o * brief->doubles);
  m->row->finish(state, n, m->with, result);
}

static int64_t merge_some(const merging *m, int64_t first, int64_t n, char *results) {
  const int doubles = m->row->brief->doubles;
  uint8_t refused[SOME] = {0};
  int64_t counts[SOME], least = INT64_MAX;
  for (int64_t o = 0; o < n; o++) {
    counts[o] = 0;
    for (int64_t i = 0; i < m->count; i++) counts[o] += (int64_t)m->parts[i][(first + o) * doubles];
    if (counts[o] < least) least = counts[o];
  }
  if (merge_quickly(m, first, n, counts, results, refused))
    for (int64_t o = 0; o < n; o++)
      if (refused[o] || !m->row->quick)
        merge_exactly(m, first + o, counts[o], results + (size_t)o * m->result_bytes);
  return least;
}

gpr_status gpr_brief_finish(int op, int dtype, int into, uint32_t kind, double ddof,
                            const double *const *parts, int64_t count, int64_t outputs,
                            void *results, int64_t *least) {
  const int asked = into < 0 ? op : into;
  const gpr_spread spread = {ddof, NULL, gpr_skips(asked, dtype) || ddof != ddof};
  gpr_resolved what = {.op = op, .row = gpr_row_of(op, dtype)};
  if (!gpr_brief_doubles(op, dtype) || gpr_row_of(asked, dtype)->brief != what.row->brief ||
      count < 1)
    return gpr_fail(GPR_BAD_TYPE, "%s of %s: there are no such partials", gpr_ops[op].name,
                    gpr_dtypes[dtype].name);
  what.row = gpr_row_of(asked, dtype);
  if (into == GPR_INTO_WORDS) gpr_partials_resolve(&what);
  if (into == GPR_INTO_BRIEF) gpr_brief_resolve(&what);
  const void *with = gpr_ops[asked].flags & GPR_SPREAD ? &spread : NULL;
  const gpr_brief *brief = what.row->brief;
  const merging m = {
      .row = what.row,
      .load = into == GPR_INTO_BRIEF ? brief->load : brief->load_own,
      .with = into == GPR_INTO_WORDS ? (const void *)&kind : with,
      .parts = parts,
      .count = count,
      .result_bytes = (size_t)(gpr_dtypes[what.row->result].bytes * what.row->results)};
  *least = INT64_MAX;
  for (int64_t first = 0; first < outputs; first += SOME) {
    const int64_t n = outputs - first < SOME ? outputs - first : SOME;
    const int64_t some = merge_some(&m, first, n, (char *)results + (size_t)first * m.result_bytes);
    if (some < *least) *least = some;
  }
  return GPR_OK;
}
