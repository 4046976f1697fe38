#include "copies.h"

#include <stdlib.h>

#include "../../kernels/abi/lists.h"
#include "../errors.h"
#include "fill.h"

/* Rows that the copy engine takes from pinned memory: shorter ones, of each of which it reads a
 * part of what comes at a time over the link, threads gather; a pitch of so many bytes at most. */
enum { ROW_BYTES = 1 << 10, PITCH_MOST = INT32_MAX };

typedef struct source {
  gpr_plan plan;
  char *to;
  int bytes;     /* of an element in the row's dtype */
  int is_staged; /* else it lies in pinned memory, as it is wanted or in rows of so many elements:
                  */
  int64_t row;
  int64_t piece; /* elements */
  int64_t next;  /* that is to be taken */
} source;

typedef struct piece {
  const source *of;
  int64_t start, n;
  int64_t filling; /* its number among those that are staged */
  int is_last;     /* of its plan */
} piece;

struct gpr_copies {
  int device;
  workspace *space;
  gpr_filling filling;
  int is_offered;
  source sources[GPR_COPIES_MOST];
  int64_t added, opened, done; /* plans: given, of which all was taken, there */
  piece pieces[SLOTS];
  int64_t taken, launched, collected;
};

gpr_status gpr_copies_open(int device, gpr_copies **out) {
  gpr_copies *c = calloc(1, sizeof *c);
  *out = NULL;
  if (!c) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for copies");
  c->device = device;
  const gpr_status status = ON(device, gpr_workspace_take(device, &c->space));
  if (status)
    gpr_copies_close(c);
  else
    *out = c;
  return status;
}

/* The ring goes back when nothing is copied from it any more. */
static void let_go(gpr_copies *c) {
  CUcontext before;
  if (!c->space || gpr_cuda_enter(c->device, &before)) return;
  if (c->collected == c->launched || cu.StreamSynchronize(c->space->copies) == CUDA_SUCCESS)
    gpr_workspace_give(c->device, c->space);
  else
    gpr_workspace_free(c->space);
  gpr_cuda_leave(c->device, before);
}

void gpr_copies_close(gpr_copies *c) {
  if (!c) return;
  gpr_filling_close(&c->filling);
  let_go(c);
  free(c);
}

int gpr_copies_are_there(const gpr_copies *c, int64_t number) { return c->done > number; }

static gpr_status begin_staging(gpr_copies *c, const source *s) {
  const gpr_status status = gpr_workspace_ring(c->space, c->device, 1);
  if (status || c->is_offered) return status;
  c->is_offered = 1;
  gpr_filling_open(&c->filling, c->space->pinned);
  gpr_filling_offer(&c->filling, &s->plan);
  return GPR_OK;
}

/* Rows that the copy engine takes by itself, the elements of one; or 0. */
static int64_t row_of(const gpr_plan *p) {
  const int64_t scalars = p->ndim == 2 ? p->shape[1] : 0, bytes = scalars * p->bytes;
  const int is_row = p->ndim == 2 && !p->cast && !p->swap && p->strides[1] == p->bytes;
  if (!is_row || bytes < ROW_BYTES || p->strides[0] < bytes || p->strides[0] > PITCH_MOST) return 0;
  return scalars / p->row->scalars;
}

gpr_status gpr_copies_add(gpr_copies *c, const gpr_plan *plan, void *to, int64_t *number) {
  source *s = &c->sources[c->added % GPR_COPIES_MOST];
  s->plan = *plan;
  s->to = to;
  s->bytes = gpr_dtypes[plan->row->dtype].bytes * plan->row->scalars;
  s->piece = PIECE_BYTES / s->bytes;
  s->next = 0;
  s->row = plan->direct ? 0 : row_of(plan);
  s->is_staged = (!plan->direct && !s->row) || !gpr_gpu_pinned(plan->data);
  if (!s->is_staged && s->row) s->piece = s->row * (s->piece / s->row + !(s->piece / s->row));
  *number = c->added++;
  return s->is_staged ? begin_staging(c, s) : GPR_OK;
}

static void take(gpr_copies *c) {
  while (c->taken < c->collected + SLOTS && c->opened < c->added) {
    source *s = &c->sources[c->opened % GPR_COPIES_MOST];
    const int64_t left = s->plan.count - s->next, n = left < s->piece ? left : s->piece;
    piece *p = &c->pieces[c->taken++ % SLOTS];
    *p = (piece){.of = s, .start = s->next, .n = n, .is_last = n == left};
    s->next += n;
    c->opened += p->is_last;
    if (s->is_staged) p->filling = gpr_filling_piece(&c->filling, &s->plan, p->start, n, 0);
  }
}

static gpr_status copy_rows(const gpr_copies *c, const piece *p, char *to) {
  const source *s = p->of;
  const int64_t pitch = s->plan.strides[0], width = s->row * s->bytes, first = p->start / s->row;
  return gpr_cuda_copy_rows(to, width, s->plan.data + first * pitch, pitch, width, p->n / s->row,
                            c->device, c->space->copies);
}

static gpr_status copy(const gpr_copies *c, const piece *p) {
  const source *s = p->of;
  char *to = s->to + p->start * s->bytes;
  const char *from = s->plan.data + p->start * s->bytes;
  if (!p->n) return GPR_OK;
  if (!s->is_staged && s->row) return copy_rows(c, p, to);
  if (s->is_staged) from = gpr_filling_place(&c->filling, p->filling);
  return CU(c->device, MemcpyAsync, to, from, (size_t)(p->n * s->bytes), c->space->copies);
}

static gpr_status launch(gpr_copies *c, int slot) {
  const gpr_status status = copy(c, &c->pieces[slot]);
  if (status) return status;
  return CU(c->device, EventRecord, c->space->copied[slot], c->space->copies);
}

static gpr_status collect(gpr_copies *c, int *busy) {
  const int slot = (int)(c->collected % SLOTS);
  const CUresult result = cu.EventQuery(c->space->copied[slot]);
  if (result == CUDA_ERROR_NOT_READY) return GPR_OK;
  c->done += c->pieces[slot].is_last;
  c->collected++;
  *busy = 1;
  return check(result, "cuEventQuery", c->device);
}

gpr_status gpr_copies_step(gpr_copies *c, int *busy) {
  gpr_status status = GPR_OK;
  *busy = 0;
  if (c->collected < c->launched) status = collect(c, busy);
  take(c);
  if (!status && c->launched < c->taken) {
    const piece *p = &c->pieces[c->launched % SLOTS];
    if (!p->of->is_staged || gpr_filling_is_there(&c->filling, p->filling)) {
      status = launch(c, (int)(c->launched++ % SLOTS));
      *busy = 1;
    }
  }
  if (!*busy) *busy = gpr_filling_one(&c->filling);
  return status;
}
