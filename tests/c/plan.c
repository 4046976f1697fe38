/* A plan names the same elements as its view: in the same order where order matters, each once. */
#include "../../csrc/plan.h"

#include <string.h>

#include "../../kernels/abi/lists.h"
#include "check.h"

enum { ROOM = 1 << 16 };
static double data[ROOM];

static const gpr_row unordered = {.law = GPR_FREE, .ordered = 0, .scalars = 1};
static const gpr_row ordered = {.law = GPR_FREE, .ordered = 1, .scalars = 1};
static const gpr_row tree = {.law = GPR_TREE, .ordered = 1, .scalars = 1};

/* Through copies, of which the rest is nothing. */
static gpr_plan plan_of(const gpr_view *view, const gpr_row *row, int lanes) {
  gpr_plan made, p;
  gpr_plan_make(&made, view, row, NULL, (gpr_limits){lanes});
  memset(&p, 0xff, sizeof p);
  gpr_plan_copy(&p, &made);
  return p;
}

static gpr_plan axes_of(const gpr_view *view, const gpr_row *row, const gpr_options *options,
                        gpr_axes *axes) {
  gpr_axes made;
  gpr_plan p;
  gpr_plan_axes(&p, view, row, NULL, options, (gpr_limits){1}, &made);
  CHECK(p.axes == &made);
  memset(axes, 0xff, sizeof *axes);
  gpr_axes_copy(axes, &made);
  p.axes = axes;
  return p;
}

static gpr_view view_of(int ndim, const int64_t *shape, const int64_t *strides, int64_t offset) {
  gpr_view view = gpr_view_of(data + offset, GPR_FLOAT64, 0);
  view.ndim = ndim;
  for (int d = 0; d < ndim; d++) {
    view.shape[d] = shape[d];
    view.strides[d] = strides[d] * (int64_t)sizeof *data;
  }
  return view;
}

/* The i-th element in C order. */
static int64_t place(const char *from, int ndim, const int64_t *shape, const int64_t *strides,
                     int64_t i) {
  for (int d = ndim - 1; d >= 0; d--) {
    from += i % shape[d] * strides[d];
    i /= shape[d];
  }
  return (const double *)from - data;
}

static int64_t elements(const gpr_view *view) {
  int64_t n = 1;
  for (int d = 0; d < view->ndim; d++) n *= view->shape[d];
  return n;
}

static void check_elements(const gpr_view *view) {
  static int seen[ROOM];
  const int64_t n = elements(view);
  gpr_plan p = plan_of(view, &ordered, 1);
  CHECK(p.count == n);
  for (int64_t i = 0; i < n; i++)
    CHECK(place(view->data, view->ndim, view->shape, view->strides, i) ==
          place(p.data, p.ndim, p.shape, p.strides, i));

  p = plan_of(view, &unordered, 1);
  CHECK(p.count == n);
  memset(seen, 0, sizeof seen);
  for (int64_t i = 0; i < n; i++) {
    seen[place(view->data, view->ndim, view->shape, view->strides, i)]++;
    seen[place(p.data, p.ndim, p.shape, p.strides, i)]--;
  }
  for (int i = 0; i < ROOM; i++) CHECK(seen[i] == 0);
  for (int d = 0; d < p.ndim && n; d++) {
    CHECK(p.strides[d] >= 0);
    CHECK(d == 0 || p.strides[d] <= p.strides[d - 1]);
  }
}

static void check_parts(const gpr_plan *p, int lanes) {
  CHECK(p->lanes >= 1 && p->lanes <= lanes);
  CHECK((p->parts == 0) == (p->count == 0));
  if (!p->parts) return;
  CHECK(p->part > 0);
  CHECK((p->parts - 1) * p->part < p->count && p->count <= p->parts * p->part);
  CHECK(p->lanes <= p->parts);
  if (p->row->law == GPR_TREE) CHECK(p->parts <= 64);
  if (p->parts > 1) CHECK((p->part & (p->part - 1)) == 0); /* so that they are nodes of the tree */
}

static void coalescing(void) {
  const int64_t cube[] = {4, 5, 6}, packed[] = {30, 6, 1}, fortran[] = {1, 4, 20};
  gpr_view view = view_of(3, cube, packed, 0);
  gpr_plan p = plan_of(&view, &ordered, 1);
  CHECK(p.ndim == 1 && p.shape[0] == 120 && p.direct);

  view = view_of(3, cube, fortran, 0);
  p = plan_of(&view, &ordered, 1);
  CHECK(p.ndim == 3 && !p.direct);
  p = plan_of(&view, &unordered, 1);
  CHECK(p.ndim == 1 && p.shape[0] == 120 && p.direct);

  const int64_t ones[] = {1, 7, 1, 3, 1}, odd[] = {99, 6, -5, 1, 1000};
  view = view_of(5, ones, odd, 0);
  p = plan_of(&view, &ordered, 1);
  CHECK(p.ndim == 2 && p.shape[0] == 7 && p.shape[1] == 3);

  view = view_of(0, NULL, NULL, 5);
  p = plan_of(&view, &ordered, 1);
  CHECK(p.ndim == 1 && p.count == 1 && p.direct && p.data == (const char *)(data + 5));
}

static void negative_strides(void) {
  const int64_t n[] = {10, 10}, back[] = {-10, -1};
  gpr_view view = view_of(2, n, back, 99);
  gpr_plan p = plan_of(&view, &ordered, 1);
  CHECK(p.ndim == 1 && p.shape[0] == 100 && p.strides[0] == -8 && !p.direct);
  p = plan_of(&view, &unordered, 1);
  CHECK(p.ndim == 1 && p.strides[0] == 8 && p.data == (const char *)data && p.direct);
}

static void broadcasting(void) {
  const int64_t shape[] = {3, 4, 5}, strides[] = {0, 1, 0}, none[] = {0, 0, 0};
  gpr_view view = view_of(3, shape, strides, 0);
  check_elements(&view);
  view = view_of(3, shape, none, 7);
  gpr_plan p = plan_of(&view, &ordered, 1);
  CHECK(p.ndim == 1 && p.shape[0] == 60 && p.strides[0] == 0 && !p.direct);
}

static void readiness(void) {
  gpr_view view = gpr_view_of(data, GPR_FLOAT64, 100);
  CHECK(plan_of(&view, &ordered, 1).direct);
  view.swapped = 1;
  CHECK(!plan_of(&view, &ordered, 1).direct && plan_of(&view, &ordered, 1).swap == 8);
  view.dtype = GPR_COMPLEX128;
  view.strides[0] = 16;
  CHECK(plan_of(&view, &ordered, 1).swap == 8);
  view = gpr_view_of((char *)data + 1, GPR_FLOAT64, 100);
  CHECK(!plan_of(&view, &ordered, 1).direct);
  view = gpr_view_of((char *)data + 8, GPR_COMPLEX128, 100); /* aligned as its parts are */
  CHECK(plan_of(&view, &ordered, 1).direct);
  view = gpr_view_of((char *)data + 1, GPR_INT8, 100);
  view.swapped = 1; /* a byte has no order */
  CHECK(plan_of(&view, &ordered, 1).direct);
}

static void emptiness(void) {
  const int64_t shape[] = {3, 0, 5}, strides[] = {5, 5, 1};
  gpr_view view = view_of(3, shape, strides, 0);
  const gpr_plan p = plan_of(&view, &unordered, 8);
  CHECK(p.count == 0 && p.parts == 0 && p.lanes == 1);
}

static void parts(void) {
  const gpr_row *rows[] = {&ordered, &unordered, &tree};
  const int64_t around[] = {
      0, 1, 1 << 16, 1 << 20, 123456789, INT64_C(1) << 40, INT64_C(1) << 58, INT64_C(1) << 60};
  for (int r = 0; r < 3; r++)
    for (int a = 0; a < (int)(sizeof around / sizeof *around); a++)
      for (int64_t n = around[a] - 2; n <= around[a] + 2; n++)
        for (int lanes = 1; lanes <= 256; lanes = lanes * 2 + 1) {
          if (n < 0) continue;
          const gpr_view view = gpr_view_of(data, GPR_FLOAT64, n);
          const gpr_plan p = plan_of(&view, rows[r], lanes);
          check_parts(&p, lanes);
          if (n < 1 << 16) CHECK(p.lanes == 1);
        }
}

static uint64_t state = 88172645463325252u;
static int64_t below(int64_t n) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (int64_t)(state % (uint64_t)n);
}

static void any_view(void) {
  for (int i = 0; i < 300; i++) {
    int64_t shape[6], strides[6];
    const int ndim = (int)below(7);
    for (int d = 0; d < ndim; d++) {
      shape[d] = 1 + below(4);
      strides[d] = below(2) ? below(81) - 40 : (below(2) ? 1 : -1) * (INT64_C(1) << below(6));
    }
    const gpr_view view = view_of(ndim, shape, strides, ROOM / 2);
    check_elements(&view);
  }
}

/* Output by output the elements that a plan with axes names, as the view has them. */
static void check_outputs(const gpr_view *view, const gpr_view *where, uint64_t reduced,
                          const gpr_row *row) {
  static int seen[ROOM];
  gpr_options options = {.dtype = GPR_NO_DTYPE, .axes = reduced, .where = where};
  gpr_axes axes;
  const gpr_plan p = axes_of(view, row, &options, &axes);
  CHECK(axes.reduced.n >= 1 && axes.outputs == gpr_count_outputs(view, &options));
  CHECK(p.count * axes.outputs == elements(view));
  gpr_view kept = {.ndim = 0}, rest = {.ndim = 0}; /* the view's own dimensions, taken apart */
  for (int d = 0; d < view->ndim; d++) {
    gpr_view *to = reduced >> d & 1 ? &rest : &kept;
    to->shape[to->ndim] = view->shape[d];
    to->strides[to->ndim++] = view->strides[d];
  }
  for (int64_t o = 0; o < axes.outputs; o++) {
    const int64_t base = place(view->data, kept.ndim, kept.shape, kept.strides, o);
    const int64_t first = place(p.data, axes.kept.n, axes.kept.shape, axes.kept.strides, o);
    const int64_t mask =
        place((const char *)axes.where, axes.kept.n, axes.kept.shape, axes.kept.where, o);
    for (int64_t i = 0; i < p.count; i++) {
      const int64_t want =
          place((const char *)(data + base), rest.ndim, rest.shape, rest.strides, i);
      const int64_t got = place((const char *)(data + first), p.ndim, p.shape, p.strides, i);
      const int64_t beside = place((const char *)(data + mask), axes.reduced.n, axes.reduced.shape,
                                   axes.reduced.where, i);
      CHECK(beside == got); /* the mask was laid as the data is */
      if (row->ordered) CHECK(got == want);
      seen[want]++, seen[got]--;
    }
    for (int i = 0; i < ROOM; i++) CHECK(seen[i] == 0);
  }
}

static void any_axes(void) {
  for (int i = 0; i < 300; i++) {
    int64_t shape[5], strides[5];
    const int ndim = (int)below(6);
    for (int d = 0; d < ndim; d++) {
      shape[d] = 1 + below(3);
      strides[d] = below(2) ? below(41) - 20 : (below(2) ? 1 : -1) * (INT64_C(1) << below(6));
    }
    const gpr_view view = view_of(ndim, shape, strides, ROOM / 2);
    check_outputs(&view, &view, (uint64_t)below(64), below(2) ? &ordered : &unordered);
  }
}

static void axes_that_join(void) {
  const int64_t cube[] = {4, 5, 6}, packed[] = {30, 6, 1};
  const gpr_view view = view_of(3, cube, packed, 0);
  gpr_options options = {.dtype = GPR_NO_DTYPE, .axes = GPR_AXIS(1) | GPR_AXIS(2)};
  gpr_axes axes;
  gpr_plan p = axes_of(&view, &ordered, &options, &axes);
  CHECK(p.direct && p.ndim == 1 && p.count == 30 && axes.kept.n == 1 && axes.outputs == 4);
  options.axes = GPR_AXIS(1);
  p = axes_of(&view, &unordered, &options, &axes);
  CHECK(!p.direct && p.count == 5 && axes.kept.n == 2 && axes.outputs == 24);
  options.axes = GPR_AXIS(0);
  p = axes_of(&view, &unordered, &options, &axes);
  CHECK(axes.kept.n == 1 && axes.kept.shape[0] == 30 && axes.kept.strides[0] == 8);
}

/* As NumPy lays its results. */
static void results_in_memory_order(void) {
  const int64_t shape[] = {6, 5, 4}, turned[] = {1, 6, 30};
  const gpr_view view = view_of(3, shape, turned, 0);
  gpr_options options = {.dtype = GPR_NO_DTYPE, .axes = GPR_AXIS(1)};
  gpr_axes axes;
  axes_of(&view, &unordered, &options, &axes);
  CHECK(axes.kept.n == 2 && axes.kept.place[0] == 4 && axes.kept.place[1] == 1);
  options.out_order = GPR_MEMORY_ORDER;
  axes_of(&view, &unordered, &options, &axes);
  CHECK(axes.kept.n == 2 && axes.kept.place[0] == 1 && axes.kept.place[1] == 6);
  options.axes = GPR_AXIS(0);
  axes_of(&view, &unordered, &options, &axes);
  CHECK(axes.kept.n == 2 && axes.kept.place[0] == 1 && axes.kept.place[1] == 5);
}

int main(void) {
  coalescing();
  negative_strides();
  broadcasting();
  readiness();
  emptiness();
  parts();
  any_view();
  any_axes();
  axes_that_join();
  results_in_memory_order();
  return 0;
}

/* The plan needs nothing else of the library, not even reduce.c. */
gpr_view gpr_view_of(const void *at, int dtype, int64_t n) {
  gpr_view view = {.data = at, .dtype = dtype, .ndim = 1, .device = GPR_DEVICE_CPU};
  view.shape[0] = n;
  view.strides[0] = gpr_dtypes[dtype].bytes;
  return view;
}
