/* Variances of columns of few rows, by differences from the first: what they have in common, which
 * squares would lose, is gone then. */
#pragma once

#include "bounds.h"
#include "step_blocks.h"

GPR_OPEN

/* VECTORS of columns, from rows.x on. bounds(): between what the spreads lie, and bits of the lanes
 * that this does not tell; bits of those whose numbers are not all finite, or too large. */
template <class R, bool ROOT, int VECTORS> struct FewSpreads;

/* A bit for each column that has a NaN or an infinite element. Columns of both ends may be counted
 * twice among those that are decided. */
template <int VECTORS, class R>
GPR_APART uint64_t columns_of_special(const Piece<R> &rows, gpr_infinities *infinite) {
  Words nan[VECTORS] = {}, huge[VECTORS] = {};
  uint64_t lanes = 0;
  rows.walk([&](const R *at, const R *) GPR_INLINED {
    for (int v = 0; v < VECTORS; v++) {
      const Doubles d = load(at + v * WIDTH);
      nan[v] |= (Words)(d != d);
      huge[v] |= (Words)(size_of(d) == __builtin_inf());
    }
  });
  for (int v = 0; v < VECTORS; v++) {
    infinite->met |= mask_of(huge[v]) != 0;
    infinite->decided += __builtin_popcountll(mask_of(huge[v] & ~nan[v]));
    lanes |= mask_of(nan[v] | huge[v]) << v * WIDTH;
  }
  return lanes;
}

/* By doubles: with u = 2^-53 the differences of floats are off by a part u of themselves, and
 * n·Σd² − (Σd)² by 3n + 10 such parts of n·Σd². */
template <bool ROOT, int VECTORS> struct FewSpreads<float, ROOT, VECTORS> {
  Piece<float> rows;
  double ddof;
  Doubles low[VECTORS], high[VECTORS];

  GPR_METHOD uint64_t bounds(uint64_t *refused) {
    Doubles first[VECTORS], sum[VECTORS], squares[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
      first[v] = load(rows.row(0) + v * WIDTH);
      sum[v] = squares[v] = Doubles{};
    }
    rows.template walk<1>([&](const float *at, const float *next) GPR_INLINED {
      prefetch_later<VECTORS * WIDTH>(next);
      for (int v = 0; v < VECTORS; v++) {
        const Doubles apart = load(at + v * WIDTH) - first[v];
        sum[v] += apart;
        squares[v] += apart * apart;
      }
    });
    uint64_t odd = 0;
    for (int v = 0; v < VECTORS; v++) odd |= mask_of(bound(v, sum[v], squares[v])) << v * WIDTH;
    *refused = 0;
    return odd;
  }
  GPR_METHOD Words bound(int v, const Doubles sum, const Doubles squares) {
    const double n = (double)rows.n;
    const Doubles over = 1.0 / (n * (n - ddof) - Doubles{});
    const Doubles most = n * squares, spread = most - sum * sum;
    const Doubles error = (4 * n + 32) * 0x1p-53 * most;
    low[v] = (spread - error) * over, high[v] = (spread + error) * over;
    if (ROOT) low[v] = root_of(low[v]) * (1 - 0x1p-50), high[v] = root_of(high[v]) * (1 + 0x1p-50);
    return (Words)(spread - spread != 0);
  }
  /* Lanes of a vector that tie, as few bits do often, and those that are left. By doubles that lose
   * nothing, and one division: see divide_narrow(). */
  GPR_APART uint64_t without_loss(int v, uint64_t lanes, float *to) const {
    const double n = (double)rows.n;
    const Doubles first = load(rows.row(0) + v * WIDTH), count = n - Doubles{};
    Twofold<Doubles> sum = {}, squares = {};
    Words lost = {};
    float rounded[WIDTH];
    rows.template walk<1>([&](const float *at, const float *) GPR_INLINED {
      const Doubles next = load(at + v * WIDTH), apart = next - first;
      const Doubles square = GPR_PRODUCT(apart, apart);
      lost |= bits(rounding_error(next, -first, apart)) | bits(product_rest(apart, apart, square));
      sum.add(apart);
      squares.add(square);
      lost |= bits(sum.low) | bits(squares.low);
    });
    const Doubles most = count * squares.high, least = GPR_PRODUCT(sum.high, sum.high);
    const Doubles spread = most - least;
    lost |= bits(sum.low) | bits(squares.low) | bits(product_rest(count, squares.high, most)) |
            bits(product_rest(sum.high, sum.high, least)) |
            bits(rounding_error(most, -least, spread));
    round_lanes(spread / (n * (n - ddof)), rounded);
    const bool whole = !ROOT && ddof == (double)(int64_t)ddof;
    const uint64_t told = whole ? lanes & ~mask_of((Words)(lost << 1 != 0)) : 0;
    for (uint64_t left = told; left; left &= left - 1)
      to[__builtin_ctzll(left)] = rounded[__builtin_ctzll(left)];
    return lanes & ~told;
  }
};

/* By pairs of doubles, as Σx and Σx² are bounded; what does not differ needs no bound. */
template <bool ROOT> struct FewSpreads<double, ROOT, 1> {
  Piece<double> rows;
  double ddof;
  Doubles low[1], high[1];

  GPR_METHOD uint64_t bounds(uint64_t *refused) {
    const Doubles first = load(rows.row(0)), n = (double)rows.n - Doubles{};
    Words differ = {};
    TwofoldMoments<Doubles> part;
    part.open();
    rows.template walk<1>([&](const double *at, const double *) GPR_INLINED {
      const Doubles next = load(at), apart = next - first;
      const Doubles rest = rounding_error(next, -first, apart), square = GPR_PRODUCT(apart, apart);
      part.sum.add({apart, rest});
      part.squares.add({square, product_rest(apart, apart, square) + 2.0 * apart * rest});
      differ |= (Words)(apart != 0);
    });
    *refused = mask_of(differ) &
               bound_spreads<1, ROOT, false>(&part, (double)rows.n, n, ddof - Doubles{}, low, high);
    *low = (Doubles)(bits(*low) & differ), *high = (Doubles)(bits(*high) & differ);
    return mask_of((Words)(part.squares.high - part.squares.high != 0));
  }
  uint64_t without_loss(int, uint64_t lanes, double *) const { return lanes; }
};

GPR_CLOSE
