/* Many outputs: products that fold along the tree. */
#include "axes_rows.cuh"

GPR_OPEN

const AxesRow *axes_trees(int row) {
  static const AxesRows rows = make_axes_rows<AXES_TREES>();
  return rows.row + row;
}

GPR_CLOSE
