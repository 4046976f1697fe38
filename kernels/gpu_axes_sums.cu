/* Many outputs: sums and means. */
#include "axes_rows.cuh"

GPR_OPEN

const AxesRow *axes_sums(int row) {
  static const AxesRows rows = make_axes_rows<AXES_SUMS>();
  return rows.row + row;
}

GPR_CLOSE
