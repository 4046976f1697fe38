/* Sums of numbers and of their squares in twice the precision of a double, whatever their range.
 * Idea: a sum that carries its errors along (Ogita, Rump, Oishi, "Accurate sum and dot product",
 * 2005), and a bound that says whether they can matter (Ziv, 1991). */
#pragma once

#include "simd.h"

GPR_OPEN

/* TwoProd by one fused instruction, where there is one. */
GPR_FN Doubles product_rest(const Doubles a, const Doubles b, const Doubles product) {
#ifdef GPR_FUSED
  return GPR_FUSED(fmsub, a, b, product);
#else
  return product_error(a, b, product);
#endif
}

/* high + low, of which low is small. D: double, or a vector of them. */
template <class D> struct Twofold {
  D high, low;

  /* What the addition to high loses goes to low (Knuth), and is the result. */
  GPR_METHOD D add(const D x) {
    const D sum = high + x, lost = rounding_error(high, x, sum);
    low += lost;
    high = sum;
    return lost;
  }
  GPR_METHOD void add(const Twofold &x) {
    add(x.high);
    low += x.low;
  }
};

GPR_FN Twofold<Doubles> square_of(const Twofold<Doubles> x) {
  const Doubles square = x.high * x.high;
  return {square, product_rest(x.high, x.high, square) + 2.0 * x.high * x.low};
}
GPR_FN Twofold<Doubles> times(const Twofold<Doubles> x, const Doubles n) {
  const Doubles product = n * x.high;
  return {product, product_rest(n, x.high, product) + n * x.low};
}
/* over: 1 / by.high, nearly. */
GPR_FN Twofold<Doubles> quotient_of(const Twofold<Doubles> x, const Twofold<Doubles> by,
                                    const Doubles over) {
  const Doubles high = x.high * over;
  const Doubles back = product_rest(high, by.high, x.high) + high * by.low;
  return {high, (x.low - back) * over};
}

/* So far from the ends of the exponents that nothing underflows but what is below an error's bound,
 * and nothing overflows. */
static constexpr double TWOFOLD_LEAST = 0x1p-900, TWOFOLD_MOST = 0x1p900;

/* --- what engines add up -----------------------------------------------------------------------
 */

/* Σx. Of blocks of c additions, whose errors are all known, low is off by c·u·Σ|error| at most with
 * u = 2^-53: by nothing, where there was none. */
template <class D> struct TwofoldSum {
  typedef TwofoldSum Merged; /* as it is merged: what is derived from it may add otherwise */
  Twofold<D> sum;
  D errors;  /* of a block their sizes' sum, and when that is settled what low may be off by */
  D special; /* the sum of what was not finite */

  GPR_METHOD void open() {
    sum = {-D{}, D{}}; /* the sum of nothing but -0.0 is that */
    errors = special = D{};
  }
  GPR_METHOD void begin(const D x) {
    open();
    sum.high = x;
  }
  template <bool NARROW> GPR_METHOD void add(const D x) { errors += size_of(sum.add(x)); }
  GPR_METHOD void settle(double additions) { errors *= additions * 0x1p-52; }
  /* Of few numbers, whose sums tie: errors are what low itself loses, and settled. */
  GPR_METHOD void add_low(const D x) {
    const D low = sum.low + x;
    errors += size_of(rounding_error(sum.low, x, low));
    sum.low = low;
  }
  GPR_METHOD void add_exactly(const D x) {
    const D high = sum.high + x, lost = rounding_error(sum.high, x, high);
    sum.high = high;
    add_low(lost);
  }
  GPR_METHOD void merge(const TwofoldSum &other) {
    add_exactly(other.sum.high);
    add_low(other.sum.low);
    errors += other.errors;
    special += other.special;
  }
  /* Lanes that have overflown or met something special, which decides alone if it is there. */
  GPR_METHOD void set_aside(const Words odd) {
    sum.high = (Doubles)(bits(sum.high) & ~odd);
    sum.low = (Doubles)(bits(sum.low) & ~odd);
    errors = choose(odd, __builtin_inf() - Doubles{}, errors);
  }
};

/* Σx and Σx². */
template <class D> struct TwofoldMoments {
  typedef TwofoldMoments Merged;
  Twofold<D> sum, squares;
  D special;

  GPR_METHOD void open() { sum = squares = {D{}, special = D{}}; }
  /* NARROW: a square is a double. */
  template <bool NARROW> GPR_METHOD void add(const D x) {
    const D square = GPR_PRODUCT(x, x);
    sum.add(x);
    squares.add(square);
    if (!NARROW) squares.low += product_rest(x, x, square);
  }
  GPR_METHOD void merge(const TwofoldMoments &other) {
    sum.add(other.sum);
    squares.add(other.squares);
    special += other.special;
  }
  GPR_METHOD void set_aside(const Words odd) {
    sum.high = (Doubles)(bits(sum.high) & ~odd);
    sum.low = (Doubles)(bits(sum.low) & ~odd);
  }
};

GPR_CLOSE
