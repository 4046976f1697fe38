#include "fill.h"

#include <string.h>

#include "../../kernels/abi/lists.h"
#include "../pack.h"

/* Twelve threads that only copy fill as fast as the copy engine empties (53 of 54 GB/s) by so much
 * at a time; a piece takes it 150 µs. */
enum { FILLERS = 12, FILL_BYTES = 128 << 10 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

enum { FILLINGS = PIECE_BYTES / FILL_BYTES }; /* of a piece */

void gpr_filling_open(gpr_filling *f, char *ring) { f->ring = ring; }

/* Elements [start, start + n) to the ring. Plain copies: with stores past the caches the copy
 * engine got 48 GB/s where these give it 53, of the 54 that it can take. */
static void fill(const gpr_plan *p, int64_t start, int64_t n, int bytes, char *to) {
  enum { BLOCK = 1024 }; /* scalars that are converted at a time */
  _Alignas(64) char scratch[BLOCK * 16];
  if (p->direct) {
    memcpy(to, p->data + start * bytes, (size_t)(n * bytes));
    return;
  }
  const int64_t block = p->cast ? BLOCK / p->row->scalars : n;
  for (int64_t i = 0; i < n; i += block)
    gpr_pack(p, p->data, start + i, least(block, n - i), to + i * bytes, scratch);
}

int64_t gpr_filling_piece(gpr_filling *f, const gpr_plan *plan, int64_t start, int64_t n,
                          int is_last) {
  const int slot = (int)(f->pieces % SLOTS);
  const int bytes = gpr_dtypes[plan->row->dtype].bytes * plan->row->scalars;
  const int64_t wanted = is_last ? (n * bytes + FILL_BYTES - 1) / FILL_BYTES : FILLINGS;
  f->slots[slot].plan = plan;
  f->slots[slot].start = start;
  f->slots[slot].n = n;
  f->slots[slot].wanted = wanted;
  f->slots[slot].bytes = bytes;
  atomic_store(&f->filled[slot], 0);
  atomic_store(&f->all, f->pieces * FILLINGS + wanted);
  if (is_last) gpr_filling_end(f);
  return f->pieces++;
}

void gpr_filling_end(gpr_filling *f) { atomic_store(&f->ended, 1); }

int gpr_filling_is_there(gpr_filling *f, int64_t piece) {
  const int slot = (int)(piece % SLOTS);
  return atomic_load(&f->filled[slot]) == f->slots[slot].wanted;
}

char *gpr_filling_place(const gpr_filling *f, int64_t piece) {
  return f->ring + (size_t)(piece % SLOTS) * PIECE_BYTES;
}

/* A piece that is short, and not the last, has fillings of nothing. */
int gpr_filling_one(gpr_filling *f) {
  long long at = atomic_load(&f->next);
  do
    if (at >= atomic_load(&f->all)) return 0;
  while (!atomic_compare_exchange_weak(&f->next, &at, at + 1));
  const int slot = (int)(at / FILLINGS % SLOTS), bytes = f->slots[slot].bytes;
  const int64_t each = FILL_BYTES / bytes, from = at % FILLINGS * each;
  const int64_t n = least(each, f->slots[slot].n - from);
  if (n > 0)
    fill(f->slots[slot].plan, f->slots[slot].start + from, n, bytes,
         gpr_filling_place(f, at / FILLINGS) + from * bytes);
  atomic_fetch_add(&f->filled[slot], 1);
  return 1;
}

static void help(void *argument, int lane) {
  gpr_filling *f = argument;
  int64_t since = 0;
  (void)lane;
  while (!atomic_load(&f->ended) || atomic_load(&f->next) < atomic_load(&f->all))
    if (gpr_filling_one(f))
      since = 0;
    else
      gpr_pause(&since);
}

void gpr_filling_offer(gpr_filling *f, const gpr_plan *plan) {
  const int64_t bytes = plan->count * gpr_dtypes[plan->row->dtype].bytes * plan->row->scalars;
  const int64_t fillings = (bytes + FILL_BYTES - 1) / FILL_BYTES;
  const int64_t most = plan->direct ? FILLERS : INT64_MAX;
  f->team = (gpr_team){.work = help,
                       .argument = f,
                       .helpers = (int)least(least(gpr_threads(), most) - 1, fillings - 1)};
  gpr_team_offer(&f->team);
}

/* What is opened and not filled yet is given up. */
void gpr_filling_close(gpr_filling *f) {
  atomic_store(&f->all, 0);
  atomic_store(&f->ended, 1);
  while (!gpr_team_wait(&f->team, 1000000000)) continue;
}
