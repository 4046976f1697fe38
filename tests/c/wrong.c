/* Wrong calls of the C API: a line of each, "what is wrong | status | message". */
#include <stdio.h>

#include "gpureduce.h"

static void tell(const char *what, gpr_status status) {
  printf("%s | %s | %s\n", what, gpr_strerror(status), status ? gpr_error() : "");
}

static const double x[6] = {1, 2, 3, 4, 5, 6};
static const int64_t shape[] = {2, 3};
static double out[6];
static gpr_value value;

static void wrong_views(void) {
  const gpr_view view = gpr_view_nd(x, GPR_FLOAT64, 2, shape);
  gpr_view other = view;
  tell("the view is NULL", gpr_reduce("sum", NULL, NULL, &value));
  other.dtype = 999, tell("dtype 999", gpr_reduce("sum", &other, NULL, &value)), other = view;
  other.data = NULL, tell("data is NULL", gpr_reduce("sum", &other, NULL, &value)), other = view;
  other.ndim = 70, tell("ndim is 70", gpr_reduce("sum", &other, NULL, &value)), other = view;
  other.ndim = -1, tell("ndim is -1", gpr_reduce("sum", &other, NULL, &value)), other = view;
  other.shape[0] = -3, tell("shape[0] is -3", gpr_reduce("sum", &other, NULL, &value));
  other.shape[0] = INT64_MAX, tell("2^63 bytes", gpr_reduce("sum", &other, NULL, &value));
  other = view, other.device = 3;
  tell("host memory of device 3", gpr_reduce("sum", &other, NULL, &value));
  other = view, other.memory = 7, tell("memory is 7", gpr_reduce("sum", &other, NULL, &value));
  other = gpr_view_of(x, GPR_FLOAT64, 0);
  tell("no identity", gpr_reduce("max", &other, NULL, &value));
}

/* One member of the options each. */
#define WRONG(what, op, member, to)                      \
  do {                                                   \
    gpr_options options = gpr_defaults();                \
    options.member = to;                                 \
    tell(what, gpr_reduce(op, &view, &options, &value)); \
  } while (0)

static void wrong_options(void) {
  const gpr_view view = gpr_view_nd(x, GPR_FLOAT64, 2, shape), nothing = {.data = x};
  const gpr_view floats = view;
  gpr_options options = {0};
  tell("gpr_defaults()", gpr_reduce("sum", &view, &options, &value));
  WRONG("options->out", "sum", axes, GPR_AXIS(1));
  WRONG("options dtype 77", "sum", dtype, 77);
  WRONG("device -9", "sum", device, -9);
  WRONG("kernel -7", "sum", kernel, -7);
  WRONG("starts and stops", "sum", segments, 2);
  WRONG("-2 segments", "sum", segments, -2);
  WRONG("ddof -1e+30", "var", ddof, -1e30);
  WRONG("the mask has 0", "sum", where, &nothing);
  WRONG("the mask is of dtype float64", "sum", where, &floats);
  WRONG("out_order 9", "sum", out_order, 9);
  WRONG("need options->out", "sum", partials, gpr_partials_kind(0, GPR_FLOAT64));
  options = gpr_defaults(), options.axes = GPR_AXIS(2), options.out = out;
  tell("axes 0x4", gpr_reduce("sum", &view, &options, NULL));
}

static void wrong_partials(void) {
  const int sum = gpr_op_index("sum");
  const uint32_t kind = gpr_partials_kind(sum, GPR_FLOAT64);
  int64_t least, words[75] = {0};
  tell("words is NULL", gpr_partials_merge(sum, GPR_FLOAT64, kind, NULL, 1, 1, words));
  tell("-1 partials", gpr_partials_merge(sum, GPR_FLOAT64, kind, words, -1, 1, words));
  tell("no place for the results", gpr_partials_merge(sum, GPR_FLOAT64, kind, words, 1, 1, NULL));
  tell("words is NULL",
       gpr_partials_finish(sum, GPR_FLOAT64, sum, GPR_FLOAT64, 0, NULL, 1, out, &least));
  tell("no place for the results",
       gpr_partials_finish(sum, GPR_FLOAT64, sum, GPR_FLOAT64, 0, words, 1, out, NULL));
  tell("no operator 99", gpr_partials_merge(99, GPR_FLOAT64, kind, words, 1, 1, words));
  tell("no place for the answer", gpr_device_info(0, NULL));
  tell("no place for the answer", gpr_bandwidth_test(0, 16, NULL));
}

int main(void) {
  const gpr_view view = gpr_view_nd(x, GPR_FLOAT64, 2, shape);
  gpr_run *run = NULL;
  wrong_views();
  wrong_options();
  wrong_partials();
  tell("operator NULL", gpr_reduce(NULL, &view, NULL, &value));
  tell("operator plus", gpr_reduce("plus", &view, NULL, &value));
  tell("operator -5", gpr_open(-5, &view, NULL, &run));
  tell("place for the result", gpr_reduce("sum", &view, NULL, NULL));
  tell("not defined for dtype float64", gpr_reduce("bitwise_xor", &view, NULL, &value));
  tell("the run is NULL", gpr_step(NULL, 1));
  tell("gpr_finish", gpr_finish(NULL, &value));
  tell("a fresh run", gpr_time(NULL, 1, NULL));
  return gpr_outputs(NULL, NULL) != -1;
}
