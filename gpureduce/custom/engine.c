/* The one tree over the index, for any layout: compiled once for each operator, behind its state,
 * gpr_lift, gpr_combine, gpr_identity and gpr_finish, which vectorise in the loops here.
 *
 * A leaf's numbers come by streams, each with strides of its own. Either an output's leaves are
 * taken in blocks whose levels fold one after the other (index), or the neighbours of many outputs
 * go side by side, ROWS leaves at a time (across); nodes that wait for their right sibling stand on
 * a stack. A part of the index that begins at a multiple of a power of two and is no longer gives
 * one node. */
enum { DIMS = 64, LEVELS = 60 };

typedef struct gpr_call {
  const char *const *data;  /* each stream's first number */
  const int64_t *shape;     /* kept dimensions, then reduced ones, none of length 0 */
  const int64_t *strides;   /* of each stream, in bytes */
  const int32_t *swapped;   /* of each stream: whether its bytes are in the other order */
  char *const *out;         /* each result's number of the first output */
  const int64_t *steps;     /* of each result: bytes from one output to the next */
  const int64_t *places;    /* of each kept dimension: outputs from one to the next */
  const gpr_state *initial; /* or NULL: stands left of the whole tree */
  gpr_state *nodes;         /* parts × outputs, where the index is cut */
  int64_t kept, reduced;    /* dimensions */
  int64_t outputs, count;   /* products of their lengths */
  int64_t across;           /* outputs along the last kept dimension go side by side */
} gpr_call;

#if defined(__clang__)
#define GPR_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define GPR_APART _Pragma("GCC ivdep")
#endif

/* --- memory --------------------------------------------------------------------------------------
 */

#define GPR_COPY(type)                                                                     \
  for (int64_t k = 0; k < n; k++) memcpy((type *)to + k, from + k * stride, sizeof(type)); \
  break;

static void gpr_swap(char *to, int64_t n, int bytes) {
  for (int64_t k = 0; k < n; k++, to += bytes)
    for (int j = 0; j < bytes / 2; j++) {
      const char c = to[j];
      to[j] = to[bytes - 1 - j];
      to[bytes - 1 - j] = c;
    }
}

static void gpr_gather(char *to, const char *from, int64_t stride, int64_t n, int bytes, int swap) {
  if (stride == bytes) {
    memcpy(to, from, (size_t)(n * bytes));
  } else {
    switch (bytes) {
      case 1: GPR_COPY(uint8_t)
      case 2: GPR_COPY(uint16_t)
      case 4: GPR_COPY(uint32_t)
      default: GPR_COPY(uint64_t)
    }
  }
  if (swap) gpr_swap(to, n, bytes);
}

/* Whether n numbers may be read where they lie. */
GPR_OP int gpr_is_plain(const gpr_call *c, int s, const char *at, int64_t stride) {
  return stride == gpr_bytes[s] && !c->swapped[s] && (uintptr_t)at % (uintptr_t)gpr_bytes[s] == 0;
}

/* Where a place of some dimensions is, for each stream; of `dims` from `first` on. */
typedef struct gpr_cursor {
  int64_t at[DIMS];
  const char *place[STREAMS];
} gpr_cursor;

static void gpr_seek(const gpr_call *c, gpr_cursor *u, const char *const *base, int first, int dims,
                     int64_t place) {
  const int all = (int)(c->kept + c->reduced);
  for (int s = 0; s < STREAMS; s++) u->place[s] = base[s];
  for (int d = first + dims - 1; d >= first; d--) {
    u->at[d] = place % c->shape[d];
    place /= c->shape[d];
    for (int s = 0; s < STREAMS; s++) u->place[s] += u->at[d] * c->strides[s * all + d];
  }
}

/* The next place `by` further in the last dimension, which has as many. */
static void gpr_step(const gpr_call *c, gpr_cursor *u, int first, int dims, int64_t by) {
  const int all = (int)(c->kept + c->reduced);
  for (int d = first + dims - 1; d >= first; d--, by = 1) {
    u->at[d] += by;
    for (int s = 0; s < STREAMS; s++) u->place[s] += by * c->strides[s * all + d];
    if (u->at[d] < c->shape[d] || d == first) return;
    u->at[d] = 0;
    for (int s = 0; s < STREAMS; s++) u->place[s] -= c->shape[d] * c->strides[s * all + d];
  }
}

/* --- one output ----------------------------------------------------------------------------------
 */

/* The next n leaves: where they lie, or copied to the room. */
static void gpr_load(const gpr_call *c, gpr_cursor *u, int64_t n, uint64_t (*room)[BLOCK],
                     const char **at) {
  const int all = (int)(c->kept + c->reduced), last = all - 1;
  char *to[STREAMS];
  int64_t here = c->shape[last] - u->at[last];
  for (int s = 0; s < STREAMS; s++) {
    const int plain = here >= n && gpr_is_plain(c, s, u->place[s], c->strides[s * all + last]);
    at[s] = plain ? u->place[s] : (const char *)room[s];
    to[s] = plain ? NULL : (char *)room[s];
  }
  while (n) {
    here = c->shape[last] - u->at[last];
    if (here > n) here = n;
    for (int s = 0; s < STREAMS; s++)
      if (to[s]) {
        gpr_gather(to[s], u->place[s], c->strides[s * all + last], here, gpr_bytes[s],
                   c->swapped[s]);
        to[s] += here * gpr_bytes[s];
      }
    gpr_step(c, u, (int)c->kept, (int)c->reduced, here);
    n -= here;
  }
}

static void gpr_fold_leaves(gpr_run *restrict to, const gpr_places *at, int64_t pairs, int64_t i) {
  const gpr_places p = *at;
  GPR_APART
  for (int64_t k = 0; k < pairs; k++)
    gpr_run_set(
        to, k, gpr_combine(gpr_leaf(&p, 2 * k, i + 2 * k), gpr_leaf(&p, 2 * k + 1, i + 2 * k + 1)));
}
static void gpr_fold_pairs(gpr_run *restrict to, const gpr_run *restrict from, int64_t pairs) {
  GPR_APART
  for (int64_t k = 0; k < pairs; k++)
    gpr_run_set(to, k, gpr_combine(gpr_run_get(from, 2 * k), gpr_run_get(from, 2 * k + 1)));
}

/* The node of n leaves, level by level. */
static gpr_state gpr_fold_block(const gpr_places *p, int64_t n, int64_t i) {
  gpr_run v[2];
  int w = 0;
  if (n == 1) return gpr_leaf(p, 0, i);
  gpr_fold_leaves(&v[0], p, n / 2, i);
  if (n & 1) gpr_run_set(&v[0], n / 2, gpr_leaf(p, n - 1, i + n - 1));
  for (n -= n / 2; n > 1; n -= n / 2, w = !w) {
    gpr_fold_pairs(&v[!w], &v[w], n / 2);
    if (n & 1) gpr_run_set(&v[!w], n / 2, gpr_run_get(&v[w], n - 1));
  }
  return gpr_run_get(&v[w], 0);
}

static gpr_state gpr_fold_index(const gpr_call *c, const char *const *base, int64_t first,
                                int64_t stop) {
  uint64_t room[STREAMS][BLOCK];
  const char *at[STREAMS];
  gpr_state stack[LEVELS];
  gpr_places p;
  gpr_cursor u;
  int waiting = 0;
  gpr_seek(c, &u, base, (int)c->kept, (int)c->reduced, first);
  for (int64_t i = first, block = 0; i < stop; i += BLOCK, block++) {
    const int64_t n = stop - i < BLOCK ? stop - i : BLOCK;
    gpr_load(c, &u, n, room, at);
    gpr_place(&p, at);
    gpr_state value = gpr_fold_block(&p, n, i);
    for (int64_t place = block; place & 1; place >>= 1)
      value = gpr_combine(stack[--waiting], value);
    stack[waiting++] = value;
  }
  gpr_state value = stack[--waiting];
  while (waiting) value = gpr_combine(stack[--waiting], value);
  return value;
}

/* --- outputs side by side ------------------------------------------------------------------------
 */

/* The leaves of n outputs, ROWS of each. */
static void gpr_fold_rows(gpr_lanes *restrict to, const gpr_rows *rows, int64_t n, int64_t i) {
  const gpr_rows p = *rows;
  GPR_APART
  for (int64_t k = 0; k < n; k++) {
    gpr_lanes_set(to, k, gpr_leaves(&p, k, i));
  }
}
static void gpr_lift_row(gpr_lanes *restrict to, const gpr_places *row, int64_t n, int64_t i) {
  const gpr_places p = *row;
  GPR_APART
  for (int64_t k = 0; k < n; k++) gpr_lanes_set(to, k, gpr_leaf(&p, k, i));
}
/* to = left ∘ to */
static void gpr_join(gpr_lanes *restrict to, const gpr_lanes *restrict left, int64_t n) {
  GPR_APART
  for (int64_t k = 0; k < n; k++)
    gpr_lanes_set(to, k, gpr_combine(gpr_lanes_get(left, k), gpr_lanes_get(to, k)));
}

/* Fewer than ROWS leaves, as a counter counts. */
static void gpr_fold_few(gpr_lanes *to, const gpr_rows *rows, int count, int64_t n, int64_t i) {
  gpr_lanes stack[4];
  int waiting = 0;
  for (int r = 0; r < count; r++) {
    gpr_lift_row(to, &rows->row[r], n, i + r);
    for (int place = r; place & 1; place >>= 1) gpr_join(to, &stack[--waiting], n);
    if (r + 1 < count) stack[waiting++] = *to;
  }
  while (waiting) gpr_join(to, &stack[--waiting], n);
}

static void gpr_load_row(const gpr_call *c, const gpr_cursor *u, int64_t n, uint64_t (*room)[LANES],
                         gpr_places *p) {
  const int all = (int)(c->kept + c->reduced), lane = (int)c->kept - 1;
  const char *at[STREAMS];
  for (int s = 0; s < STREAMS; s++) {
    const int64_t stride = c->strides[s * all + lane];
    at[s] = u->place[s];
    if (gpr_is_plain(c, s, at[s], stride)) continue;
    gpr_gather((char *)room[s], at[s], stride, n, gpr_bytes[s], c->swapped[s]);
    at[s] = (const char *)room[s];
  }
  gpr_place(p, at);
}

static void gpr_fold_across(const gpr_call *c, const char *const *base, int64_t n, int64_t first,
                            int64_t stop, gpr_lanes *value) {
  uint64_t room[ROWS][STREAMS][LANES];
  gpr_lanes stack[LEVELS];
  gpr_rows rows;
  gpr_cursor u;
  int waiting = 0;
  gpr_seek(c, &u, base, (int)c->kept, (int)c->reduced, first);
  for (int64_t i = first, block = 0; i < stop; i += ROWS, block++) {
    const int count = stop - i < ROWS ? (int)(stop - i) : ROWS;
    for (int r = 0; r < count; r++) {
      gpr_load_row(c, &u, n, room[r], &rows.row[r]);
      gpr_step(c, &u, (int)c->kept, (int)c->reduced, 1);
    }
    if (count == ROWS)
      gpr_fold_rows(value, &rows, n, i);
    else
      gpr_fold_few(value, &rows, count, n, i);
    for (int64_t place = block; place & 1; place >>= 1) gpr_join(value, &stack[--waiting], n);
    if (i + ROWS < stop) stack[waiting++] = *value;
  }
  while (waiting) gpr_join(value, &stack[--waiting], n);
}

/* --- results -------------------------------------------------------------------------------------
 */

static void gpr_give(const gpr_call *c, gpr_state root, int64_t place) {
  char *to[RESULTS];
  if (c->initial) root = gpr_combine(*c->initial, root);
  for (int r = 0; r < RESULTS; r++) to[r] = c->out[r] + place * c->steps[r];
  gpr_finish_to(root, to);
}

/* Which output the o-th is, counted by the dimensions as they are ordered here. */
static int64_t gpr_place_of(const gpr_call *c, int64_t o) {
  int64_t place = 0;
  for (int d = (int)c->kept - 1; d >= 0; d--) {
    place += o % c->shape[d] * c->places[d];
    o /= c->shape[d];
  }
  return place;
}

static void gpr_store(const gpr_call *c, gpr_state value, int64_t part, int64_t o, int64_t place) {
  if (part < 0)
    gpr_give(c, value, place);
  else
    c->nodes[part * c->outputs + o] = value;
}

/* Outputs from o to end of the leaves from first to stop: to nodes, or whole ones (part < 0). */
static void gpr_fold_some(const gpr_call *c, int64_t o, int64_t end, int64_t first, int64_t stop,
                          int64_t part) {
  gpr_cursor u;
  gpr_lanes value;
  while (o < end) {
    const int64_t length = c->kept ? c->shape[c->kept - 1] : 1, rest = length - o % length;
    int64_t n = c->across ? LANES : 1;
    if (n > end - o) n = end - o;
    if (n > rest) n = rest;
    gpr_seek(c, &u, c->data, 0, (int)c->kept, o);
    const int64_t place = gpr_place_of(c, o), step = c->kept ? c->places[c->kept - 1] : 0;
    if (c->across) {
      gpr_fold_across(c, u.place, n, first, stop, &value);
      for (int64_t k = 0; k < n; k++)
        gpr_store(c, gpr_lanes_get(&value, k), part, o + k, place + k * step);
    } else {
      gpr_store(c, gpr_fold_index(c, u.place, first, stop), part, o, place);
    }
    o += n;
  }
}

__attribute__((visibility("default"))) void gpr_fold(const gpr_call *c, int64_t o, int64_t end,
                                                     int64_t first, int64_t stop, int64_t part) {
  if (first < stop) {
    gpr_fold_some(c, o, end, first, stop, part);
    return;
  }
  for (; o < end; o++) gpr_give(c, gpr_identity(), gpr_place_of(c, o));
}

/* The parts' nodes, to the root. */
__attribute__((visibility("default"))) void gpr_close(const gpr_call *c, int64_t o, int64_t end,
                                                      int64_t parts) {
  for (; o < end; o++) {
    gpr_state stack[LEVELS];
    int waiting = 0;
    for (int64_t part = 0; part < parts; part++) {
      gpr_state value = c->nodes[part * c->outputs + o];
      for (int64_t place = part; place & 1; place >>= 1)
        value = gpr_combine(stack[--waiting], value);
      stack[waiting++] = value;
    }
    gpr_state value = stack[--waiting];
    while (waiting) value = gpr_combine(stack[--waiting], value);
    gpr_give(c, value, gpr_place_of(c, o));
  }
}

/* Segments of the one reduced dimension from s to end; results of a segment lie `apart` outputs
 * behind those of the one before. */
__attribute__((visibility("default"))) void gpr_segments(const gpr_call *all, const int64_t *starts,
                                                         const int64_t *stops, int64_t s,
                                                         int64_t end, int64_t apart) {
  const char *data[STREAMS];
  char *out[RESULTS];
  int64_t shape[DIMS];
  gpr_call c = *all;
  const int dims = (int)(c.kept + c.reduced);
  memcpy(shape, all->shape, sizeof *shape * (size_t)dims);
  c.data = data, c.out = out, c.shape = shape;
  for (; s < end; s++) {
    const int64_t count = stops[s] > starts[s] ? stops[s] - starts[s] : 0;
    for (int n = 0; n < STREAMS; n++)
      data[n] = all->data[n] + (count ? starts[s] * all->strides[n * dims + c.kept] : 0);
    for (int r = 0; r < RESULTS; r++) out[r] = all->out[r] + s * apart * all->steps[r];
    shape[c.kept] = c.count = count;
    gpr_fold(&c, 0, c.outputs, 0, count, -1);
  }
}
