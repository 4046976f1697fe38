/* Sums of numbers and of their squares in twice the precision of a double, whatever their range,
 * and variances of them where that tells what the exact one rounds to. Idea: a sum that carries its
 * errors along (Ogita, Rump, Oishi, "Accurate sum and dot product", 2005), and a bound that says
 * whether they can matter (Ziv, 1991). */
#ifndef GPR_TWOFOLD_H
#define GPR_TWOFOLD_H

#include "carried.h"

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
    const Doubles sum = high + x;
    low += rounding_error(high, x, sum);
    high = sum;
  }
  GPR_METHOD void add(const Twofold &x) {
    add(x.high);
    low += x.low;
  }
};

GPR_FN Twofold square_of(const Twofold x) {
  const Doubles square = x.high * x.high;
  return {square, product_rest(x.high, x.high, square) + 2.0 * x.high * x.low};
}
GPR_FN Twofold times(const Twofold x, const Doubles n) {
  const Doubles product = n * x.high;
  return {product, product_rest(n, x.high, product) + n * x.low};
}
/* over: 1 / by.high, nearly. */
GPR_FN Twofold quotient_of(const Twofold x, const Twofold by, const Doubles over) {
  const Doubles high = x.high * over;
  const Doubles back = product_rest(high, by.high, x.high) + high * by.low;
  return {high, (x.low - back) * over};
}

/* Σx and Σx². */
struct TwofoldMoments {
  Twofold sum, squares;

  GPR_METHOD void open() { sum = squares = {Doubles{}, Doubles{}}; }
  /* NARROW: a square is a double. */
  template <bool NARROW> GPR_METHOD void add(const Doubles x) {
    const Doubles square = GPR_PRODUCT(x, x);
    sum.add(x);
    squares.add(square);
    if (!NARROW) squares.low += product_rest(x, x, square);
  }
  GPR_METHOD void merge(const TwofoldMoments &other) {
    sum.add(other.sum);
    squares.add(other.squares);
  }
};

/* Where a number goes through at most c additions, with u = 2^-53 and Q = Σx², the sums are off by
 * c²u²Σ|x| and 4c²u²Q at most, n·Σx² − (Σx)² by 20nc²u²Q after its few operations on low parts, and
 * what follows adds some u² of the quotient. Twice as much and more is allowed, for this is
 * computed in doubles too. */
static constexpr double TWOFOLD_ERROR = 0x1p-100, TWOFOLD_UNIT = 0x1p-100;
/* So far from the ends of the exponents that nothing underflows but what is below that error, and
 * nothing overflows. */
static constexpr double TWOFOLD_LEAST = 0x1p-900, TWOFOLD_MOST = 0x1p900;

/* The variances, or deviations, of n numbers in each lane, which lie between *low and *high; a bit
 * a lane of those for which that is not sure. part: of complex numbers two, whose squares add up.
 * NARROW: they are rounded once more. */
template <int PARTS, bool ROOT, bool NARROW>
GPR_CALL uint64_t bound_spreads(const TwofoldMoments *part, double additions, const Doubles n,
                                const Doubles ddof, Doubles *low, Doubles *high) {
  Twofold squares = part[0].squares;
  if (PARTS > 1) squares.add(part[PARTS - 1].squares);
  Twofold spread = times(squares, n);
  for (int p = 0; p < PARTS; p++) {
    const Twofold minus = square_of(part[p].sum);
    spread.add({-minus.high, -minus.low});
  }
  const Doubles rest = spread.low, freedom = n - ddof;
  spread.low = Doubles{};
  spread.add(rest);
  const Twofold by = times({freedom, Doubles{}}, n);
  const Doubles over = 1.0 / by.high;
  spread = quotient_of(spread, by, over);
  Doubles error = TWOFOLD_ERROR * n * additions * additions * squares.high * over;
  error += TWOFOLD_UNIT * spread.high;
  Words sure = (Words)((spread.high >= TWOFOLD_LEAST) & (squares.high <= TWOFOLD_MOST));
  sure &= (Words)((freedom > 0) & (rounding_error(n, -ddof, freedom) == 0));
  if (ROOT) {
    const Doubles root = root_of(spread.high), over_root = 1.0 / root;
    spread.low = (spread.low - product_rest(root, root, spread.high)) * (0.5 * over_root);
    spread.high = root;
    error = error * over_root + TWOFOLD_UNIT * root;
  }
  if (NARROW) error += 0x1p-51 * spread.high; /* past a tie, and not onto it */
  *low = spread.high + (spread.low - error);
  *high = spread.high + (spread.low + error);
  return mask_of(~sure);
}

GPR_CLOSE
#endif
