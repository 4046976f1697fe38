/* The table of the device half for many outputs. */
#include "axes_rows.cuh"

GPR_OPEN

const AxesRow *axes_sums(int row);
const AxesRow *axes_extremes(int row);
const AxesRow *axes_positions(int row);
const AxesRow *axes_words(int row);
const AxesRow *axes_trees(int row);
const AxesRow *axes_moments(int row);

static int launch(int op, int dtype, int multiprocessors, gpr_axes_args *args,
                  gpr_axes_launch *out) {
  const AxesRow *(*const family[])(int) = {axes_sums,  axes_extremes, axes_positions,
                                           axes_words, axes_trees,    axes_moments};
  for (int f = 0; f < AXES_FAMILIES; f++) {
    const AxesRow &row = *family[f](op * GPR_DTYPE_COUNT + dtype);
    if (!row.general) continue;
    args->op = op;
    AxesCut{row, multiprocessors, *args, *out}.cut();
    return 0;
  }
  return 1;
}

GPR_CLOSE

extern "C" const gpr_axes_table gpr_axes_table_cuda = {gpr::launch};
