#include "fill.h"

#include <string.h>

#include "../pack.h"

/* Twelve threads fill as fast as the copy engine empties (53 of 54 GB/s) by so much at a time; a
 * piece takes it 150 µs. */
enum { FILLERS = 12, FILL_BYTES = 128 << 10 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void gpr_filling_open(gpr_filling *f, const gpr_plan *plan, char *ring, int bytes) {
  f->plan = plan;
  f->ring = ring;
  f->bytes = bytes;
  f->each = FILL_BYTES / bytes;
  f->most = PIECE_BYTES / bytes / f->each;
}

/* Elements [start, start + n) to the ring. Plain copies: with stores past the caches the copy
 * engine got 48 GB/s where these give it 53, of the 54 that it can take. */
static void fill(const gpr_filling *f, int64_t start, int64_t n, char *to) {
  enum { BLOCK = 1024 }; /* scalars */
  _Alignas(64) char scratch[BLOCK * 16];
  if (f->plan->direct) {
    memcpy(to, f->plan->data + start * f->bytes, (size_t)(n * f->bytes));
    return;
  }
  const int64_t block = BLOCK / f->plan->row->scalars;
  for (int64_t i = 0; i < n; i += block)
    gpr_pack(f->plan, f->plan->data, start + i, least(block, n - i), to + i * f->bytes, scratch);
}

static int64_t fillings_of(const gpr_filling *f, int64_t n) { return (n + f->each - 1) / f->each; }

void gpr_filling_piece(gpr_filling *f, int64_t start, int64_t n) {
  const int slot = (int)(f->pieces % SLOTS);
  f->start[slot] = start;
  f->count[slot] = n;
  atomic_store(&f->filled[slot], 0);
  atomic_store(&f->all, f->pieces++ * f->most + fillings_of(f, n));
}

void gpr_filling_end(gpr_filling *f) { atomic_store(&f->ended, 1); }

int gpr_filling_is_there(gpr_filling *f, int64_t piece) {
  const int slot = (int)(piece % SLOTS);
  return atomic_load(&f->filled[slot]) == fillings_of(f, f->count[slot]);
}

int gpr_filling_one(gpr_filling *f) {
  long long at = atomic_load(&f->next);
  do
    if (at >= atomic_load(&f->all)) return 0;
  while (!atomic_compare_exchange_weak(&f->next, &at, at + 1));
  const int slot = (int)(at / f->most % SLOTS);
  const int64_t from = at % f->most * f->each;
  fill(f, f->start[slot] + from, least(f->each, f->count[slot] - from),
       f->ring + (size_t)slot * PIECE_BYTES + from * f->bytes);
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

void gpr_filling_offer(gpr_filling *f, int64_t elements) {
  f->team = (gpr_team){
      .work = help,
      .argument = f,
      .helpers = (int)least(least(gpr_threads(), FILLERS) - 1, fillings_of(f, elements) - 1)};
  gpr_team_offer(&f->team);
}

/* What is opened and not filled yet is given up. */
void gpr_filling_close(gpr_filling *f) {
  atomic_store(&f->all, 0);
  atomic_store(&f->ended, 1);
  while (!gpr_team_wait(&f->team, 1000000000)) continue;
}
