/* What decides a sum before it is rounded: what it is divided by, and what is not finite. */
#ifndef GPR_SETTLE_H
#define GPR_SETTLE_H

#include "bounds.h"
#include "carried.h"

#include "../core/operators.h"

GPR_OPEN

/* Sums of whole vectors of lanes, divided and rounded; a bit a lane of those that are not sure. Of
 * less than doubles the two neighbours of a quotient tell whether its own rounding matters. */
template <class Part>
GPR_CALL uint64_t divide_sums(const double *sum, const double *by, int64_t lanes, Part *to) {
  uint64_t missed = 0;
  for (int64_t l = 0; l < lanes; l += WIDTH) {
    const Doubles x = load(sum + l), n = load(by + l), q = x / n;
    const Words exact = (Words)(product_rest(q, n, x) == 0);
    const Doubles below = (Doubles)(bits(q) - (1 & ~exact)),
                  above = (Doubles)(bits(q) + (1 & ~exact));
    Part part[WIDTH];
    missed |= round_bounds(below, above, part) << l;
    memcpy(to + l, part, (size_t)least(lanes - l, (int64_t)WIDTH) * sizeof *part);
  }
  return missed & (lanes < 64 ? (1ull << lanes) - 1 : ~0ull);
}

/* What is not finite in a column decides its sum: NaN and infinities, added up alone. Clears the
 * bits of these columns. */
template <class R, class Part>
GPR_APART uint64_t settle_special(const R *x, int64_t stride, int64_t columns, int64_t rows,
                                  uint64_t missed, Part *to) {
  double sum[64] = {};
  int64_t j = 0;
  for (; j + WIDTH <= columns; j += WIDTH) {
    Doubles special = {};
    for (int64_t row = 0; row < rows; row++) {
      const Doubles d = load(x + row * stride + j);
      special += (Doubles)(bits(d) & (Words)(d - d != 0));
    }
    memcpy(sum + j, &special, sizeof special);
  }
  for (; j < columns; j++)
    for (int64_t row = 0; row < rows; row++) {
      const double d = x[row * stride + j];
      sum[j] += d - d == 0 ? 0 : d;
    }
  for (j = 0; j < columns; j++)
    if (sum[j] != 0 && missed >> j & 1) {
      to[j] = convert<Part>(plain_nan(sum[j]));
      missed &= ~(1ull << j);
    }
  return missed;
}

GPR_CLOSE
#endif
