/* The C entry with arguments drawn at random: sound calls answer or refuse, and a call with one
 * thing wrong is refused with a message. Blocks are exactly as large as they have to be, so that a
 * sanitizer sees what goes beyond. Usage: fuzz SEED CALLS. */
#include "../../csrc/gpureduce.h"

#include <string.h>

#include "check.h"

static uint64_t state;

static uint64_t draw(uint64_t below) { /* SplitMix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (z ^ z >> 31) % below;
}

typedef struct call {
  int op, wrong;
  gpr_view view, where;
  gpr_options options;
  gpr_value initial;
  void *data, *mask, *out;
  int64_t starts[4], stops[4];
} call;

static void *block(size_t bytes) {
  unsigned char *p = malloc(bytes ? bytes : 1);
  CHECK(p);
  for (size_t i = 0; i < bytes; i++) p[i] = (unsigned char)draw(256);
  return p;
}

/* A block of n elements, seen in C order, backwards, broadcast along an axis, or with bytes
 * swapped. */
static void draw_view(call *c) {
  int64_t shape[GPR_DIMS_MAX], n = 1;
  const int ndim = (int)draw(5), dtype = (int)draw(GPR_DTYPE_COUNT);
  for (int d = 0; d < ndim; d++) n *= shape[d] = (int64_t)draw(draw(4) ? 7 : 1 + 40 * (ndim < 3));
  c->data = block((size_t)(n * gpr_dtype_size(dtype)));
  if (dtype == GPR_BOOL)
    for (int64_t i = 0; i < n; i++) ((char *)c->data)[i] &= 1;
  c->view = gpr_view_nd(c->data, dtype, ndim, shape);
  c->view.swapped = draw(8) == 0;
  for (int d = 0; d < ndim && n; d++) {
    const uint64_t how = draw(8);
    if (how == 0) c->view.strides[d] = 0;
    if (how != 1) continue;
    c->view.data = (const char *)c->view.data + (shape[d] - 1) * c->view.strides[d];
    c->view.strides[d] = -c->view.strides[d];
  }
}

static void draw_segments(call *c) {
  const int axis = (int)draw((uint64_t)c->view.ndim);
  c->options.axes = GPR_AXIS(axis);
  c->options.segments = (int64_t)draw(5);
  c->options.starts = c->starts;
  c->options.stops = c->stops;
  for (int i = 0; i < c->options.segments; i++) {
    c->starts[i] = (int64_t)draw((uint64_t)c->view.shape[axis] + 1);
    c->stops[i] = (int64_t)draw((uint64_t)c->view.shape[axis] + 1);
  }
}

static void draw_mask(call *c) {
  c->where = c->view;
  int64_t n = 1;
  for (int d = c->view.ndim - 1; d >= 0; d--) {
    c->where.strides[d] = n;
    n *= c->view.shape[d];
  }
  c->where.data = c->mask = block((size_t)n);
  for (int64_t i = 0; i < n; i++) ((char *)c->mask)[i] &= 1;
  c->where.dtype = GPR_BOOL;
  c->where.swapped = 0;
  c->options.where = &c->where;
}

static void draw_call(call *c) {
  int ops = 0;
  memset(c, 0, sizeof *c);
  while (gpr_op_name(ops)) ops++;
  c->op = (int)draw((uint64_t)ops);
  draw_view(c);
  c->options = gpr_defaults();
  if (draw(2)) c->options.axes = draw(UINT64_C(1) << c->view.ndim);
  if (draw(4) == 0) c->options.dtype = (int)draw(GPR_DTYPE_COUNT);
  if (draw(4) == 0) c->options.ddof = (double)draw(4);
  if (draw(4) == 0) draw_mask(c);
  if (draw(6) == 0 && c->view.ndim) draw_segments(c);
  if (draw(4) == 0) {
    c->initial.dtype = gpr_result_dtype(c->op, c->view.dtype, &c->options);
    memset(c->initial.bytes, 1, sizeof c->initial.bytes);
    if (c->initial.dtype != GPR_NO_DTYPE) c->options.initial = &c->initial;
  }
  const int64_t outputs = gpr_outputs(&c->view, &c->options);
  const int result = gpr_result_dtype(c->op, c->view.dtype, &c->options);
  const int scalars = strcmp(gpr_op_name(c->op), "matmul2x2") ? gpr_results(c->op) : 4;
  CHECK(outputs >= 0);
  if (outputs != 1 || draw(2))
    c->options.out = c->out = block((size_t)(outputs * scalars * gpr_dtype_size(result)));
}

/* One thing that no call may have. */
static void spoil(call *c) {
  static const int numbers[] = {-1000, -7, 999, INT32_MAX, INT32_MIN};
  const int number = numbers[draw(sizeof numbers / sizeof *numbers)];
  const int d = (int)draw((uint64_t)c->view.ndim + !c->view.ndim);
  c->wrong = 1 + (int)draw(14);
  if (c->wrong == 1) c->view.dtype = number;
  if (c->wrong == 2) c->view.ndim = number;
  if (c->wrong == 3) c->view.memory = number;
  if (c->wrong == 4) c->view.device = number;
  if (c->wrong == 5) c->view.ndim += !c->view.ndim, c->view.shape[d] = -1 - (int64_t)draw(1000);
  if (c->wrong == 6) c->view = gpr_view_nd(c->data, GPR_FLOAT64, 2, (int64_t[]){INT64_MAX / 2, 5});
  if (c->wrong == 7) c->view = gpr_view_of(NULL, c->view.dtype, 3);
  if (c->wrong == 8) memset(&c->options, 0, sizeof c->options);
  if (c->wrong == 9) c->options.dtype = number;
  if (c->wrong == 10) c->options.axes = GPR_AXIS(c->view.ndim) | 1;
  if (c->wrong == 11) c->options.kernel = number;
  if (c->wrong == 12) c->options.out_order = number;
  if (c->wrong == 13) c->options.segments = -1;
  if (c->wrong == 14) c->op = number;
}

static void perform(call *c) {
  gpr_value value;
  gpr_run *run = NULL;
  gpr_status status = gpr_open(c->op, &c->view, &c->options, &run);
  CHECK(!c->wrong || status == GPR_BAD_VALUE || status == GPR_BAD_TYPE);
  CHECK(!status == !!run && (!status || *gpr_error()));
  if (run && draw(8) == 0) CHECK(gpr_finish(run, &value) == GPR_BAD_VALUE); /* too early */
  while (run && (status = gpr_step(run, 1000000)) == GPR_MORE) {
  }
  if (run && !status) status = gpr_finish(run, &value);
  if (run && !status && !c->out) gpr_as_double(&value, 0), gpr_as_int64(&value, 1);
  if (run) CHECK(gpr_finish(run, &value) == GPR_BAD_VALUE); /* a second time */
  gpr_close(run);
}

static void nothing_at_all(void) {
  gpr_value value;
  gpr_run *run;
  const gpr_view zero = {0};
  const gpr_options none = {0};
  double milliseconds;
  CHECK(gpr_reduce(NULL, NULL, NULL, NULL) == GPR_BAD_VALUE);
  CHECK(gpr_reduce("sum", NULL, NULL, &value) == GPR_BAD_VALUE);
  CHECK(gpr_reduce("sum", &zero, NULL, &value) == GPR_BAD_VALUE); /* one bool at NULL */
  CHECK(gpr_reduce("sum", &zero, &none, &value) == GPR_BAD_VALUE);
  CHECK(gpr_open(0, &zero, NULL, NULL) == GPR_BAD_VALUE);
  CHECK(gpr_open(-1, NULL, NULL, &run) == GPR_BAD_VALUE && !run);
  CHECK(gpr_step(NULL, 1) && gpr_finish(NULL, NULL) && gpr_time(NULL, 1, NULL));
  CHECK(gpr_done(NULL, NULL) == 0 && gpr_least(NULL) == -1 && gpr_outputs(NULL, NULL) == -1);
  CHECK(gpr_op_index(NULL) == -1 && gpr_kernel_index(NULL) == GPR_NO_KERNEL);
  CHECK(gpr_op_name(-1) == NULL && gpr_dtype_name(99) == NULL && gpr_dtype_size(-5) == 0);
  CHECK(gpr_results(99) == 0 && gpr_result_dtype(0, 99, NULL) == GPR_NO_DTYPE);
  CHECK(gpr_kernel_time("sum", &zero, NULL, 1, &milliseconds) == GPR_BAD_VALUE);
  CHECK(gpr_as_double(NULL, 0) != 0 && gpr_as_int64(NULL, 7) == INT64_MIN);
  for (int status = -2; status < 9; status++) CHECK(*gpr_strerror(status));
  gpr_close(NULL);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  const uint64_t seed = strtoull(argv[1], NULL, 10), calls = strtoull(argv[2], NULL, 10);
  uint64_t done = 0;
  nothing_at_all();
  for (uint64_t i = 0; i < calls; i++) {
    call c;
    state = seed + i;
    draw_call(&c);
    if (draw(4) == 0) spoil(&c);
    perform(&c);
    done += !c.wrong;
    free(c.data);
    free(c.mask);
    free(c.out);
  }
  printf("%llu sound\n", (unsigned long long)done);
  return 0;
}
