/* The host's choice of kernels, which is a pure function: what holds of random layouts, and how
 * often what was to be seen came. */
#include "../../kernels/gpu/table.cpp"

extern "C" const gpr_ladder_table gpr_ladder_table_cuda = {};
extern "C" const gpr_shuffle_table gpr_shuffle_table_cuda = {};
extern "C" const gpr_segment_table gpr_segment_table_cuda = {};

struct Random {
  uint64_t state;
  int64_t below(int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
  }
  int64_t size(int most) { return (int64_t)1 << below(most) | below((int64_t)1 << below(most)); }
};

static const struct {
  int op, dtype, bytes;
} ROWS[] = {{GPR_OP_SUM, GPR_FLOAT32, 4},     {GPR_OP_SUM, GPR_FLOAT64, 8},
            {GPR_OP_SUM, GPR_COMPLEX128, 16}, {GPR_OP_VAR, GPR_FLOAT32, 4},
            {GPR_OP_MAX, GPR_INT16, 2},       {GPR_OP_ARGMAX, GPR_FLOAT32, 4}};

/* One to three dimensions in C order, some cut out of longer ones. */
static void draw(Random &random, int bytes, gpr_axes_args &a) {
  static char data[512];
  const int kept = (int)random.below(3), reduced = 1 + (int)random.below(2), all = kept + reduced;
  int64_t apart = bytes;
  a.data = (const char *)(((uintptr_t)data + 255) / 256 * 256) + bytes * random.below(3);
  a.outputs = a.count = 1;
  a.kept = kept, a.reduced = reduced, a.from_bytes = bytes;
  const int turn = (int)random.below(all); /* which dimension is the fastest */
  for (int i = 0; i < all; i++) {
    const int d = (turn + all - i) % all;
    a.shape[d] = random.size(i ? 12 : 20) % (1 << 22);
    a.strides[d] = apart;
    apart *= a.shape[d] + (random.below(3) ? 0 : random.below(20));
    (d < kept ? a.outputs : a.count) *= a.shape[d];
  }
  for (int d = 0; d < all; d++) {
    a.place[d] = 1;
    for (int e = d + 1; e < (d < kept ? kept : all); e++) a.place[d] *= a.shape[e];
  }
}

/* Of layouts that blocks share: what breaks a rule, or 0. */
static int broken(const gpr_axes_args &a, const gpr_axes_launch &launch) {
  const int64_t crowds = a.crowd > 1 ? (a.split + a.crowd - 1) / a.crowd : 0;
  if (launch.blocks < 1 || launch.threads < 1) return 1;
  if (a.split > 1 && launch.scratch == 0) return 2;
  if (a.crowd > 1 && a.split <= 2 * a.crowd) return 3;
  if (a.crowd > 1 && crowds > gpr::AXES_TICKETS) return 4;
  return 0;
}

/* How many layouts had crowds of tiles and of columns to counts[0] and [1], and had several runs
 * of rows to [2]; the result is the rule that one broke, or 0. */
extern "C" __attribute__((visibility("default"))) int select_all(int layouts, int64_t *counts) {
  Random random = {42};
  for (int i = 0; i < layouts; i++) {
    const auto &row = ROWS[random.below(sizeof ROWS / sizeof *ROWS)];
    gpr_axes_args a = {};
    gpr_axes_launch launch = {};
    a.from = row.dtype;
    draw(random, row.bytes, a);
    if (gpr_axes_table_cuda.launch(row.op, row.dtype, GPR_ANY_VARIANT, 132, &a, &launch)) return 9;
    if (const int rule = broken(a, launch)) return rule;
    const char *kernel = launch.kernel->kernel;
    counts[0] += a.crowd > 1 && kernel[0] == 't';
    counts[1] += a.crowd > 1 && kernel[0] == 'c';
    counts[2] += a.runs > 1 && kernel[0] == 'r';
  }
  return 0;
}
