/* Variances of columns and rows of doubles in twice the precision of one, where that tells what the
 * exact one rounds to. Idea: a sum that carries its errors along (Ogita, Rump, Oishi, "Accurate sum
 * and dot product", 2005), and a bound that says whether they can matter (Ziv, 1991). */
#ifndef GPR_TWOFOLD_H
#define GPR_TWOFOLD_H

#include "columns.h"

GPR_OPEN

GPR_FN Doubles root_of(const Doubles x) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
#else
  Doubles root = x; /* gcc warns of what is filled lane by lane */
  for (int l = 0; l < WIDTH; l++) root[l] = __builtin_sqrt(x[l]);
  return root;
#endif
}

/* high + low, of which low is small. */
struct Twofold {
  Doubles high, low;

  /* What the addition to high loses goes to low (Knuth). */
  GPR_METHOD void add(const Doubles x) {
    const Doubles sum = high + x, of_x = sum - high;
    low += (high - (sum - of_x)) + (x - of_x);
    high = sum;
  }
};

/* (n·squares − sum²) / divisor. */
GPR_FN Twofold quotient_of(const Twofold sum, const Twofold squares, Doubles n, Doubles divisor) {
  const Doubles all = n * squares.high, minus = sum.high * sum.high;
  const Doubles all_low = product_rest(n, squares.high, all) + n * squares.low;
  const Doubles minus_low = product_rest(sum.high, sum.high, minus) + 2.0 * sum.high * sum.low;
  Twofold spread = {all, Doubles{}}, exact = {Doubles{}, Doubles{}};
  spread.add(-minus);
  exact.high = spread.high;
  exact.add(spread.low + (all_low - minus_low));
  const Doubles high = exact.high / divisor;
  return {high, (exact.low - product_rest(high, divisor, exact.high)) / divisor};
}
GPR_FN Twofold root_of(const Twofold x) {
  const Doubles root = root_of(x.high);
  return {root, (x.low - product_rest(root, root, x.high)) / (2.0 * root)};
}

/* Numbers are added up by blocks, and then these, so that few roundings of low parts add up. A row
 * has blocks of its own in each lane, which are fewer, and then merges the lanes. */
enum { TWOFOLD_BLOCK = 64 };
GPR_FN double roundings_of(int64_t n) {
  return (double)(least(n, (int64_t)TWOFOLD_BLOCK) + 2 * (n / TWOFOLD_BLOCK + 2));
}
/* With u = 2^-53, Q = Σx² and c of these roundings, the sums are off by c²u²Σ|x| and 4c²u²Q at
 * most, n·Σx² − (Σx)² by 20nc²u²Q after its few operations on low parts, and what follows adds some
 * u² of the quotient. Twice as much and more is allowed, for this is computed in doubles too. */
static constexpr double TWOFOLD_ERROR = 0x1p-100, TWOFOLD_UNIT = 0x1p-100;
/* So far from the ends of the exponents that nothing underflows but what is below that error, and
 * nothing overflows. */
static constexpr double TWOFOLD_LEAST = 0x1p-900, TWOFOLD_MOST = 0x1p900;

/* Σx and Σx². */
struct TwofoldMoments {
  Twofold sum, squares;

  GPR_METHOD void open() { sum = squares = {Doubles{}, Doubles{}}; }
  GPR_METHOD void add(const Doubles x) {
    const Doubles square = x * x;
    sum.add(x);
    squares.add(square);
    squares.low += product_rest(x, x, square);
  }
  GPR_METHOD void merge(const TwofoldMoments &other) {
    sum.add(other.sum.high);
    squares.add(other.squares.high);
    sum.low += other.sum.low;
    squares.low += other.squares.low;
  }
};

/* The variances, or deviations, of n doubles in each lane, 2 to GPR_SHORT, whose n·(n − ddof) is
 * `divisor`; a bit a lane of those that are not sure. */
template <bool ROOT>
GPR_FN uint64_t round_spreads(const TwofoldMoments &m, int64_t n, double divisor, double *to) {
  const Doubles count = (double)n - Doubles{}, by = divisor - Doubles{};
  const double roundings = roundings_of(n);
  Twofold spread = quotient_of(m.sum, m.squares, count, by);
  Doubles error = TWOFOLD_ERROR * count * roundings * roundings * m.squares.high / by;
  error += TWOFOLD_UNIT * spread.high;
  Words out = ~(Words)((spread.high >= TWOFOLD_LEAST) & (m.squares.high <= TWOFOLD_MOST));
  if (ROOT) {
    spread = root_of(spread);
    error = error / spread.high + TWOFOLD_UNIT * spread.high;
  }
  const Doubles low = spread.high + (spread.low - error);
  const Doubles high = spread.high + (spread.low + error);
  memcpy(to, &high, sizeof high);
  return mask_of(out | (Words)(low != high));
}

/* Two vectors at a time: for more, 16 registers do not do. */
struct Pair {
  enum { ABREAST = 2 };
  TwofoldMoments at[ABREAST];

  template <class Ahead>
  GPR_METHOD void add(const double *x, int64_t stride, int64_t first, int64_t n,
                      const Ahead &ahead) {
    for (int64_t i = first; i < least(n, first + TWOFOLD_BLOCK); i++) {
      prefetch_later<ABREAST * WIDTH>(x + i * stride, ahead(i));
      for (int k = 0; k < ABREAST; k++) at[k].add(load(x + i * stride + k * WIDTH));
    }
  }
  GPR_METHOD void open() {
    for (int k = 0; k < ABREAST; k++) at[k].open();
  }
  /* Of n times ABREAST vectors, `stride` doubles apart; ahead(i) is what prefetch_later() takes
   * beside the i-th. */
  template <class Ahead>
  GPR_METHOD void run(const double *x, int64_t stride, int64_t n, const Ahead &ahead) {
    open();
    add(x, stride, 0, n, ahead);
    for (int64_t first = TWOFOLD_BLOCK; first < n; first += TWOFOLD_BLOCK) {
      Pair block;
      block.open();
      block.add(x, stride, first, n, ahead);
      for (int k = 0; k < ABREAST; k++) at[k].merge(block.at[k]);
    }
  }
};

/* Of LANES columns. Its own function, for this is where products and sums may be fused. */
template <bool ROOT>
GPR_CALL uint64_t twofold_columns(const double *x, int64_t stride, int64_t n, double divisor,
                                  double *to) {
  enum { AHEAD = 16 }; /* rows: 2^22 doubles in 32 rows took 3.4 ms on Zen 3, and 5.2 without */
  uint64_t unsure = 0;
  for (int v = 0; v < VECTORS; v += Pair::ABREAST) {
    Pair pair;
    pair.run(x + v * WIDTH, stride, n, [&](int64_t row) {
      return row + AHEAD < n ? AHEAD * stride : (AHEAD - n) * stride + LANES;
    });
    for (int k = 0; k < Pair::ABREAST; k++) {
      const int first = (v + k) * WIDTH;
      unsure |= round_spreads<ROOT>(pair.at[k], n, divisor, to + first) << first;
    }
  }
  return unsure;
}

/* Of LANES rows at most, `stride` doubles apart. */
template <bool ROOT>
GPR_CALL uint64_t twofold_rows(const double *x, int64_t stride, int64_t rows, int64_t n,
                               double divisor, double *to) {
  enum { STEP = Pair::ABREAST * WIDTH };
  double part[WIDTH][4][LANES] = {}; /* of each row, by lanes */
  uint64_t unsure = 0;
  for (int64_t row = 0; row < rows; row++) {
    const double *at = x + row * stride;
    double rest[STEP] = {};
    memcpy(rest, at + n / STEP * STEP, (size_t)(n % STEP) * sizeof *rest);
    Pair pair;
    pair.run(at, STEP, n / STEP, [](int64_t) { return (int64_t)0; });
    for (int k = 0; k < Pair::ABREAST; k++) pair.at[k].add(load(rest + k * WIDTH));
    pair.at[0].merge(pair.at[1]);
    const TwofoldMoments &m = pair.at[0];
    for (int l = 0; l < WIDTH; l++) {
      part[l][0][row] = m.sum.high[l], part[l][1][row] = m.sum.low[l];
      part[l][2][row] = m.squares.high[l], part[l][3][row] = m.squares.low[l];
    }
  }
  for (int first = 0; first < rows; first += WIDTH) {
    TwofoldMoments all;
    all.open();
    for (int l = 0; l < WIDTH; l++)
      all.merge({{load(part[l][0] + first), load(part[l][1] + first)},
                 {load(part[l][2] + first), load(part[l][3] + first)}});
    unsure |= round_spreads<ROOT>(all, n, divisor, to + first) << first;
  }
  return unsure;
}

GPR_CLOSE
#endif
