/* Many outputs: variances and standard deviations. */
#include "axes_rows.cuh"

GPR_OPEN

const AxesRow *axes_moments(int row) {
  static const AxesRows rows = make_axes_rows<AXES_MOMENTS>();
  return rows.row + row;
}

GPR_CLOSE
