/* Many outputs: counts, products of integers, bits. */
#include "axes_rows.cuh"

GPR_OPEN

const AxesRow *axes_words(int row) {
  static const AxesRows rows = make_axes_rows<AXES_WORDS>();
  return rows.row + row;
}

GPR_CLOSE
