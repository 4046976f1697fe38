#include "tile.h"

#include <string.h>

#include "../kernels/abi/lists.h"
#include "cpu.h"
#include "pack.h"

/* --- boxes ------------------------------------------------------------------------------------ */

gpr_cut gpr_cut_dims(const gpr_dims *dims, int64_t most, int last) {
  gpr_cut c = {.dim = dims->n - 1, .inner = 1, .step = 1, .steps = 1, .most = 1, .boxes = 1};
  if (!dims->n) return c;
  const int first = last && last < dims->n ? dims->n - last : 0;
  for (; c.dim > first && c.inner * dims->shape[c.dim] <= most; c.dim--)
    c.inner *= dims->shape[c.dim];
  const int64_t shape = dims->shape[c.dim], fit = most / c.inner;
  c.step = fit < 1 ? 1 : fit < shape ? fit : shape;
  if (shape > 0) {
    c.steps = (shape - 1) / c.step + 1;
    c.step = (shape - 1) / c.steps + 1;
    c.steps = (shape - 1) / c.step + 1;
  } else {
    c.step = 1;
    c.steps = 0;
  }
  c.most = c.step * c.inner;
  c.boxes = c.steps;
  for (int d = 0; d < c.dim; d++) c.boxes *= dims->shape[d];
  return c;
}

gpr_box gpr_box_at(const gpr_dims *dims, const gpr_cut *cut, int64_t number) {
  gpr_box box = {0, 1, 1, 0, 0};
  if (!dims->n) return box;
  const int64_t at = number % cut->steps * cut->step, rest = dims->shape[cut->dim] - at;
  box.step = rest < cut->step ? rest : cut->step;
  box.n = box.step * cut->inner;
  box.first = at * cut->inner;
  box.data = at * dims->strides[cut->dim];
  box.where = at * dims->where[cut->dim];
  int64_t place = cut->inner * dims->shape[cut->dim];
  number /= cut->steps;
  for (int d = cut->dim - 1; d >= 0; d--) {
    const int64_t i = number % dims->shape[d];
    number /= dims->shape[d];
    box.first += i * place;
    box.data += i * dims->strides[d];
    box.where += i * dims->where[d];
    place *= dims->shape[d];
  }
  return box;
}

/* --- copies ----------------------------------------------------------------------------------- */

/* A loop so short that it is not worth a call. */
enum { SHORT_STEP = 16 };

/* One loop of a copy. */
typedef struct step {
  int64_t n, from, to;
} step;
typedef struct steps {
  int n;
  step at[GPR_DIMS_MAX + 1];
} steps;

static int64_t size_of(int64_t x) { return x < 0 ? -x : x; }

/* A box's loops, of which the last goes from one element to the next by `to` bytes. */
static void add_steps(steps *s, const gpr_dims *dims, const gpr_cut *cut, const gpr_box *box,
                      const int64_t *from, int64_t to) {
  for (int d = dims->n - 1; d >= cut->dim && d >= 0; d--) {
    const int64_t n = d == cut->dim ? box->step : dims->shape[d];
    if (n > 1) s->at[s->n++] = (step){n, from[d], to};
    to *= n;
  }
}

/* Long steps outside; neighbours that step evenly in one. */
static void settle(steps *s) {
  for (int i = 1; i < s->n; i++)
    for (int j = i; j > 0 && size_of(s->at[j - 1].from) < size_of(s->at[j].from); j--) {
      const step held = s->at[j];
      s->at[j] = s->at[j - 1];
      s->at[j - 1] = held;
    }
  int n = 0;
  for (int i = 0; i < s->n; i++) {
    const step t = s->at[i];
    if (n && s->at[n - 1].from == t.n * t.from && s->at[n - 1].to == t.n * t.to) {
      s->at[n - 1] = (step){s->at[n - 1].n * t.n, t.from, t.to};
    } else {
      s->at[n++] = t;
    }
  }
  s->n = n;
}

/* A run of few bytes is one word or two, of so many bytes. */
static int widen(steps *s, int bytes) {
  step *last = s->at + s->n - 1;
  const int64_t run = s->n ? last->n * bytes : 0;
  if (!run || last->from != bytes || last->to != bytes || run > 2 * GPR_WORD_BYTES) return bytes;
  const int word = gpr_word_of(run);
  *last = (step){2, run - word, run - word};
  s->n -= run == word;
  return word;
}

/* How much of a loop at a time: where it writes far apart, lines stay in the first cache until what
 * lies beside them comes. */
static int64_t some_of(const step *outer, const step *inner) {
  const int apart = outer->n > 1 && outer->to < inner->to;
  return apart && inner->n > 2 * SHORT_STEP ? SHORT_STEP : inner->n;
}
static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static void copy_two(step a, step b, const char *from, char *to, int bytes) {
  const gpr_copy copy = gpr_cpu_table_here()->copy;
  if (b.from == bytes && b.to == bytes) { /* whole lines: one by one they would meet in few sets */
    for (int64_t i = 0; i < a.n; i++)
      memcpy(to + i * a.to, from + i * a.from, (size_t)(b.n * bytes));
    return;
  }
  if (b.n < a.n && b.n < SHORT_STEP) { /* the other way round: few long loops */
    const step held = a;
    a = b;
    b = held;
  }
  const int64_t some = some_of(&a, &b);
  for (int64_t first = 0; first < b.n; first += some)
    for (int64_t i = 0; i < a.n; i++)
      copy(from + i * a.from + first * b.from, b.from, to + i * a.to + first * b.to, b.to,
           least_of(some, b.n - first), bytes);
}

static void copy(step *s, int n, const char *from, char *to, int bytes) {
  const step one = {1, 0, 0};
  if (n <= 2) {
    copy_two(n > 1 ? s[0] : one, n ? s[n - 1] : one, from, to, bytes);
    return;
  }
  step *next = s + 1;
  const int64_t all = next->n, some = some_of(s, next);
  for (int64_t first = 0; first < all; first += some) {
    next->n = least_of(some, all - first);
    for (int64_t i = 0; i < s->n; i++)
      copy(next, n - 1, from + i * s->from + first * next->from, to + i * s->to + first * next->to,
           bytes);
  }
  next->n = all;
}

/* The loops of both boxes' elements or, of so many bytes each, of their mask. */
static void find_steps(steps *s, const gpr_tiles *t, const gpr_box *kept, const gpr_box *reduced,
                       int mask, int bytes) {
  const gpr_dims *k = &t->plan->axes->kept, *r = &t->plan->axes->reduced;
  const int64_t across = t->side_by_side ? bytes : bytes * reduced->n;
  const int64_t along = t->side_by_side ? bytes * kept->n : bytes;
  s->n = 0;
  add_steps(s, r, &t->reduced, reduced, mask ? r->where : r->strides, along);
  add_steps(s, k, &t->kept, kept, mask ? k->where : k->strides, across);
  settle(s);
}

/* The elements one after the other, where they lie or at `to`; the loops are spent. */
static const void *gather(steps *s, const void *from, void *to, int bytes) {
  if (!s->n || (s->n == 1 && s->at[0].from == bytes && s->at[0].to == bytes)) return from;
  bytes = widen(s, bytes);
  copy(s->at, s->n, from, to, bytes);
  return to;
}

/* Whether they lie in lines of n, `*along` bytes apart, within which they are `each` bytes apart:
 * all in one loop, or a line in one and the lines in the other. */
static int lie_in_lines(const steps *s, int bytes, int64_t each, int64_t n, int64_t *along) {
  for (int i = 0; i < s->n && s->n <= 2; i++) {
    const step *line = s->at + i;
    if (line->from != each || line->to != bytes || (s->n == 2 && line->n != n)) continue;
    *along = s->n == 2 ? s->at[1 - i].from : n * each;
    return 1;
  }
  return 0;
}

/* --- tiles ------------------------------------------------------------------------------------ */

static size_t whole(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static size_t lines_of(size_t elements) {
  return elements < GPR_SHORT ? whole(elements) : GPR_SHORT;
}

size_t gpr_room_bytes(int64_t elements, int64_t outputs) {
  const size_t n = (size_t)elements;
  return 2 * whole(16 * n) + 2 * whole(n) + 8 * lines_of(n) + whole(8 * (size_t)outputs);
}

gpr_room gpr_room_in(char *memory, int64_t elements, int64_t outputs, int counted) {
  const size_t n = (size_t)elements;
  gpr_room room;
  room.raw = memory;
  room.ready = room.raw + whole(16 * n);
  room.keep = (uint8_t *)room.ready + whole(16 * n);
  room.tally = room.keep + whole(n);
  room.places = (int64_t *)(room.tally + whole(n));
  room.counts = room.places + lines_of(n);
  if (counted) memset(room.counts, 0, 8 * (size_t)outputs);
  return room;
}

/* NaN and NaT; without any all count, where they lie. */
static void leave_out(const gpr_tiles *t, gpr_tile *tile, gpr_room *room) {
  const int dtype = t->plan->row->dtype, bytes = gpr_dtypes[dtype].bytes;
  char *to = tile->data == room->raw ? room->ready : room->raw;
  if (!gpr_cpu_table_here()->leave_out[dtype](tile, to, t->identity, room->counts)) return;
  const int columns = tile->across == bytes;
  tile->data = to;
  tile->counts = room->counts;
  tile->across = columns ? bytes : bytes * tile->n;
  tile->along = columns ? bytes * tile->outputs : bytes;
}

/* The mask's lines, where they lie or together. */
static void find_mask(const gpr_tiles *t, const gpr_box *kept, const gpr_box *reduced,
                      gpr_masked *m, gpr_room *room) {
  steps s;
  m->keep = (const uint8_t *)t->plan->axes->where + kept->where + reduced->where;
  find_steps(&s, t, kept, reduced, 1, 1);
  m->whole = lie_in_lines(&s, 1, 0, m->n, &m->keep_step);
  if (m->whole || lie_in_lines(&s, 1, 1, m->n, &m->keep_step)) return;
  m->keep = gather(&s, m->keep, room->keep, 1);
  m->keep_step = m->n;
}

static int has_none(const gpr_masked *m) {
  const size_t others = m->whole ? 0 : (size_t)m->n - 1;
  return m->lines == 1 && !*m->keep && !memcmp(m->keep, m->keep + 1, others);
}

/* Shorter lines side by side are copied, whatever counts of them. */
enum { PLACED_BYTES = 512 };

/* By the mask, of elements in lines that lie `step` bytes apart. */
static void mask_out(const gpr_tiles *t, const gpr_box *kept, const gpr_box *reduced, int64_t step,
                     gpr_tile *tile, gpr_room *room) {
  const gpr_plan *p = t->plan;
  const gpr_axes *a = p->axes;
  const gpr_cpu_table *table = gpr_cpu_table_here();
  const int any_order = p->row->law != GPR_TREE && !p->row->ordered;
  const int by_place = any_order ? GPR_MAY_DROP : GPR_BY_PLACE;
  gpr_masked m = {.data = tile->data, .data_step = step, .bytes = gpr_dtypes[p->row->dtype].bytes};
  m.n = t->side_by_side ? kept->n : reduced->n;
  m.lines = t->side_by_side ? reduced->n : kept->n;
  if (a->skip) {
    const uint8_t *where = (const uint8_t *)a->where + kept->where + reduced->where;
    const size_t all = (size_t)(m.n * m.lines);
    steps s;
    find_steps(&s, t, kept, reduced, 1, 1);
    m.keep = memmove(room->keep, gather(&s, where, room->keep, 1), all);
    m.keep_step = m.n;
    table->skip[p->row->dtype](m.data, (int64_t)all, room->keep);
  } else {
    find_mask(t, kept, reduced, &m, room);
  }
  if (any_order && has_none(&m)) {
    tile->n = 0;
    tile->counts = room->counts;
    return;
  }
  char *to = tile->data == room->raw ? room->ready : room->raw;
  const int placed = t->side_by_side && m.n * m.bytes >= PLACED_BYTES;
  int64_t *places = placed ? room->places : NULL;
  const int64_t lines = table->mask(&m, t->side_by_side ? by_place : GPR_BY_LINE, t->identity, to,
                                    room->counts, room->tally, places);
  if (lines < 0) { /* all count */
    if (t->side_by_side)
      tile->along = step;
    else
      tile->across = step;
    return;
  }
  if (!places) tile->data = to;
  tile->places = places;
  tile->counts = room->counts;
  if (t->side_by_side) tile->n = lines;
}

static int is_repeated(const gpr_plan *p, const steps *s) {
  const step *last = s->at + s->n - 1;
  return s->n && last->to == p->bytes && gpr_repeats(p, last->n, last->from);
}

/* Lines of one element each, as broadcast weights are, by what comes to the same and is short; the
 * loops are spent. */
static int repeat(const gpr_tiles *t, const gpr_box *kept, const gpr_box *reduced, steps *s,
                  const char *x, gpr_tile *tile, gpr_room *room) {
  const gpr_plan *p = t->plan;
  gpr_masked m = {.data_step = p->bytes, .bytes = p->bytes, .n = s->at[--s->n].n};
  m.lines = kept->n * reduced->n / m.n;
  for (int i = 0; i < s->n; i++) s->at[i].to /= m.n;
  m.data = gather(s, x, room->raw, p->bytes);
  if (p->axes->where) find_mask(t, kept, reduced, &m, room);
  if (!p->row->repeat(&m, m.lines / kept->n, room->ready, room->counts)) return 0;
  tile->data = room->ready;
  tile->counts = p->axes->where ? room->counts : NULL;
  tile->repeated = 1;
  tile->n = m.lines / kept->n * GPR_MULTIPLES(m.n);
  tile->along = p->bytes;
  tile->across = tile->n * p->bytes;
  return 1;
}

/* Rows that lie in runs. */
static void place_runs(const gpr_tiles *t, gpr_tile *tile, gpr_room *room) {
  const int64_t run = t->reduced.inner, apart = t->plan->axes->reduced.strides[t->reduced.dim];
  for (int64_t i = 0, place = 0; i < tile->n; i += run, place += apart)
    for (int64_t j = 0; j < run; j++) room->places[i + j] = place + j * tile->along;
  tile->places = room->places;
  tile->along = apart / run;
}

gpr_tile gpr_tile_of(const gpr_tiles *t, const gpr_box *kept, const gpr_box *reduced,
                     gpr_room *room) {
  const gpr_plan *p = t->plan;
  const gpr_axes *a = p->axes;
  const char *x = p->data + kept->data + reduced->data;
  gpr_tile tile = {
      .outputs = kept->n, .n = reduced->n, .skip = a->skip && !t->masked ? &room->empty : NULL};
  if (t->direct) {
    tile.data = x;
    tile.across = a->kept.n ? a->kept.strides[a->kept.n - 1] : 0;
    tile.along = a->reduced.n ? a->reduced.strides[a->reduced.n - 1] : p->bytes;
    tile.cast = p->cast;
    tile.bytes = p->bytes;
    if (t->reduced.inner > 1) place_runs(t, &tile, room);
    if (t->masked) leave_out(t, &tile, room);
    return tile;
  }
  const int64_t n = kept->n * reduced->n;
  const int bytes = gpr_dtypes[p->row->dtype].bytes, unit = p->swap ? p->swap : 1;
  steps s;
  find_steps(&s, t, kept, reduced, 0, p->bytes);
  if (t->aligned && !a->skip && !t->side_by_side && is_repeated(p, &s)) {
    if (repeat(t, kept, reduced, &s, x, &tile, room)) return tile;
    find_steps(&s, t, kept, reduced, 0, p->bytes);
  }
  const int64_t line = t->side_by_side ? kept->n : reduced->n;
  int64_t step = line * bytes;
  const int as_it_lies = a->where && !a->skip && t->aligned && !p->swap && !p->cast;
  if (!as_it_lies || !lie_in_lines(&s, bytes, bytes, line, &step))
    x = gather(&s, x, room->raw, p->bytes);
  if (x != room->raw && (p->swap || !t->aligned)) x = memcpy(room->raw, x, (size_t)(n * p->bytes));
  if (p->swap) gpr_cpu_table_here()->swap(room->raw, n * p->bytes, unit);
  if (p->cast) {
    p->cast(x, room->ready, n);
    x = room->ready;
  }
  tile.data = x;
  tile.across = t->side_by_side ? bytes : bytes * reduced->n;
  tile.along = t->side_by_side ? bytes * kept->n : bytes;
  if (a->where)
    mask_out(t, kept, reduced, step, &tile, room);
  else if (t->masked)
    leave_out(t, &tile, room);
  return tile;
}
