/* Partials by the C API alone: any cut, added as words and merged, gives the whole's results. */
#include "../../csrc/gpureduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { N = 5000, OUTPUTS = 4, WORDS_MOST = 256 };

static float data[N * OUTPUTS];

static void draw(void) {
  uint32_t state = 1;
  for (int i = 0; i < N * OUTPUTS; i++) {
    state = state * 1664525u + 1013904223u;
    data[i] = (float)(int32_t)state * (i % 7 ? 1.0f : 1e-12f) * (i % 11 ? 1.0f : 1e20f);
  }
}

/* Rows [start, stop) of (N, OUTPUTS) along axis 0. */
static gpr_view rows(int64_t start, int64_t stop) {
  gpr_view view = gpr_view_of(data + start * OUTPUTS, GPR_FLOAT32, stop - start);
  view.ndim = 2;
  view.shape[1] = OUTPUTS;
  view.strides[0] = OUTPUTS * sizeof *data;
  view.strides[1] = sizeof *data;
  return view;
}

static void take(const char *op, int64_t start, int64_t stop, int64_t *words) {
  const gpr_view view = rows(start, stop);
  gpr_options options = gpr_defaults();
  options.axes = GPR_AXIS(0);
  options.partials = gpr_partials_kind(gpr_op_index(op), GPR_FLOAT32);
  options.out = words;
  CHECK(gpr_reduce(op, &view, &options, NULL) == GPR_OK);
}

static void reduce(const char *op, float *results) {
  const gpr_view view = rows(0, N);
  gpr_options options = gpr_defaults();
  options.axes = GPR_AXIS(0);
  options.out = results;
  CHECK(gpr_reduce(op, &view, &options, NULL) == GPR_OK);
}

static void check_finished(const char *op, const char *asked, const int64_t *words) {
  float want[OUTPUTS], got[OUTPUTS];
  int64_t least = -1;
  reduce(asked, want);
  CHECK(gpr_partials_finish(gpr_op_index(op), GPR_FLOAT32, gpr_op_index(asked), GPR_FLOAT32, 0,
                            words, OUTPUTS, got, &least) == GPR_OK);
  CHECK(!memcmp(want, got, sizeof want));
}

static void check_op(const char *op, const char *asked) {
  static int64_t parts[3][OUTPUTS * WORDS_MOST], merged[OUTPUTS * WORDS_MOST];
  static int64_t together[3 * OUTPUTS * WORDS_MOST], whole[OUTPUTS * WORDS_MOST];
  const int id = gpr_op_index(op), count = gpr_partials_words(id, GPR_FLOAT32) * OUTPUTS;
  const int64_t cuts[] = {0, 1234, 1234, N};
  const uint32_t kind = gpr_partials_kind(id, GPR_FLOAT32);
  CHECK(count > 0 && count <= OUTPUTS * WORDS_MOST);
  CHECK(gpr_partials_answer(id, GPR_FLOAT32, gpr_op_index(asked)));
  for (int i = 0; i < 3; i++) {
    take(op, cuts[i], cuts[i + 1], parts[i]);
    memcpy(together + i * count, parts[i], (size_t)count * sizeof *together);
  }
  CHECK(parts[0][0] == kind && parts[0][1] == 1 && parts[0][2] != 0 && parts[1][2] == 0);
  CHECK(!gpr_partials_merge(id, GPR_FLOAT32, kind, together, 3, OUTPUTS, merged));
  check_finished(op, asked, merged);
  take(op, 0, N, whole);
  CHECK(!memcmp(whole, merged, (size_t)count * sizeof *whole));
  if (!gpr_partials_are_additive(id, GPR_FLOAT32)) return;
  for (int i = 0; i < count; i++) merged[i] = parts[0][i] + parts[1][i] + parts[2][i];
  CHECK(merged[0] == 3 * (int64_t)kind && merged[1] == 3);
  check_finished(op, asked, merged);
}

static void check_refusals(void) {
  const int sum = gpr_op_index("sum"), max = gpr_op_index("max"), prod = gpr_op_index("prod");
  int64_t words[WORDS_MOST] = {0}, least;
  gpr_value value = {.dtype = GPR_FLOAT32};
  const gpr_view view = rows(0, 1);
  gpr_options options = gpr_defaults();
  CHECK(gpr_partials_kind(sum, GPR_FLOAT64) == 0x5b3c1e1fu);
  CHECK(gpr_partials_op(gpr_op_index("mean"), GPR_FLOAT32) == sum);
  CHECK(!gpr_partials_words(prod, GPR_FLOAT32) && !gpr_partials_answer(sum, GPR_FLOAT32, max));
  CHECK(gpr_partials_merge(prod, GPR_FLOAT32, 1, words, 1, 1, words) == GPR_BAD_TYPE);
  for (int bad = -1; bad < 1000; bad += 1000) {
    CHECK(!gpr_partials_words(bad, GPR_FLOAT32) && !gpr_partials_words(sum, bad));
    CHECK(gpr_partials_op(bad, GPR_FLOAT32) == -1 && !gpr_partials_kind(sum, bad));
    CHECK(!gpr_partials_answer(sum, GPR_FLOAT32, bad) && !gpr_partials_are_additive(bad, bad));
    CHECK(gpr_partials_merge(bad, GPR_FLOAT32, 1, words, 1, 1, words) == GPR_BAD_VALUE);
    CHECK(gpr_partials_finish(sum, GPR_FLOAT32, bad, GPR_FLOAT32, 0, words, 1, words, &least) ==
          GPR_BAD_VALUE);
  }
  const uint32_t kind = gpr_partials_kind(sum, GPR_FLOAT32);
  const int each = gpr_partials_words(sum, GPR_FLOAT32);
  words[0] = words[1] = 1;
  CHECK(gpr_partials_check(kind, words, each, 1) == GPR_WORDS_FOREIGN);
  CHECK(gpr_partials_merge(sum, GPR_FLOAT32, kind, words, 1, 1, words) == GPR_BAD_VALUE);
  words[0] = kind;
  CHECK(gpr_partials_check(kind, words, each, 1) == GPR_WORDS_FINE);
  for (int i = 0; i < 2; i++) words[i] = (int64_t)__builtin_bswap64((uint64_t)words[i]);
  CHECK(gpr_partials_check(kind, words, each, 1) == GPR_WORDS_SWAPPED);
  words[1] = (INT64_C(1) << 31) + 1;
  words[0] = kind * words[1];
  CHECK(gpr_partials_check(kind, words, each, 1) == GPR_WORDS_TOO_MANY);
  memset(words, 0, sizeof words);
  CHECK(gpr_partials_finish(sum, GPR_FLOAT32, max, GPR_FLOAT32, 0, words, 1, words, &least) ==
        GPR_BAD_VALUE);
  CHECK(gpr_partials_finish(sum, GPR_FLOAT32, sum, GPR_INT32, 0, words, 1, words, &least) ==
        GPR_BAD_TYPE);
  options.partials = 1;
  options.out = words;
  CHECK(gpr_reduce("prod", &view, &options, NULL) == GPR_BAD_TYPE);
  options.initial = &value;
  CHECK(gpr_reduce("sum", &view, &options, NULL) == GPR_BAD_VALUE);
}

int main(void) {
  draw();
  check_op("sum", "mean");
  check_op("var", "std");
  check_op("var", "sum");
  check_op("max", "max");
  check_op("ptp", "min");
  check_refusals();
  return 0;
}
