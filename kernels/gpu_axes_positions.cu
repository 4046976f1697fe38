/* Many outputs: their positions. */
#include "axes_rows.cuh"

GPR_OPEN

const AxesRow *axes_positions(int row) {
  static const AxesRows rows = make_axes_rows<AXES_POSITIONS>();
  return rows.row + row;
}

GPR_CLOSE
