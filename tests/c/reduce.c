/* A C program that knows csrc/gpureduce.h alone: from numbers on stdin to reductions on stdout. */
#include "../../csrc/gpureduce.h"

#include <string.h>

#include "check.h"

static double reduce(const char *op, const gpr_view *view, const gpr_options *options) {
  gpr_value result;
  double x;
  if (gpr_reduce(op, view, options, &result) != GPR_OK) {
    fprintf(stderr, "%s\n", gpr_error());
    exit(1);
  }
  CHECK(result.dtype == GPR_FLOAT64);
  memcpy(&x, result.bytes, sizeof x);
  return x;
}

static void refuses(gpr_status want, const char *op, const gpr_view *view,
                    const gpr_options *options, const char *words) {
  gpr_value result;
  CHECK(gpr_reduce(op, view, options, &result) == want);
  CHECK(strstr(gpr_error(), words));
}

int main(void) {
  static double x[100000];
  int64_t n = 0;
  while (n < 100000 && scanf("%la", x + n) == 1) n++;
  const gpr_view view = gpr_view_of(x, GPR_FLOAT64, n), empty = gpr_view_of(NULL, GPR_FLOAT64, 0);
  const char *const ops[] = {"sum", "add", "mean", "prod", "min", "max", "ptp"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) printf("%a\n", reduce(ops[i], &view, NULL));

  gpr_options options = gpr_defaults();
  gpr_value initial = {.dtype = GPR_FLOAT64};
  memcpy(initial.bytes, &(double){1e300}, 8);
  options.initial = &initial;
  printf("%a\n", reduce("sum", &view, &options));

  options = gpr_defaults();
  options.dtype = GPR_INT64;
  gpr_value count;
  CHECK(gpr_reduce("sum", &view, &options, &count) == GPR_OK && count.dtype == GPR_INT64);

  refuses(GPR_BAD_VALUE, "max", &empty, NULL, "zero-size");
  refuses(GPR_BAD_VALUE, "nonsense", &view, NULL, "nonsense");
  refuses(GPR_BAD_TYPE, "bitwise_or", &view, NULL, "float64");
  options = gpr_defaults();
  options.device = gpr_device_count(); /* one more than there are */
  refuses(GPR_DEVICE_ERROR, "sum", &view, &options, "device");
  options = gpr_defaults();
  options.out_order = GPR_MEMORY_ORDER;
  refuses(GPR_BAD_VALUE, "minmax", &view, &options, "order");
  CHECK(gpr_op_index("sum") == gpr_op_index("add") && gpr_op_index("") == -1);

  gpr_run *run = NULL; /* opened and given up */
  gpr_set_threads(3);
  CHECK(gpr_threads() == 3);
  CHECK(gpr_open(gpr_op_index("sum"), &view, NULL, &run) == GPR_OK);
  gpr_close(run);
  gpr_close(NULL);

  static int8_t many[1 << 24]; /* as many steps as the clock allows */
  const gpr_view long_view = gpr_view_of(many, GPR_INT8, sizeof many);
  int64_t total = -1, done = 0, before = 0;
  gpr_status status;
  CHECK(gpr_open(gpr_op_index("sum"), &long_view, NULL, &run) == GPR_OK);
  CHECK(gpr_done(run, &total) == 0 && total == sizeof many);
  do {
    status = gpr_step(run, 1);
    CHECK((done = gpr_done(run, &total)) >= before && done <= total);
    before = done;
  } while (status == GPR_MORE);
  CHECK(status == GPR_OK && done == sizeof many);
  gpr_close(run);
  return 0;
}
