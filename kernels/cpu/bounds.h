/* Results that are known to lie between two doubles: certain where both round to one. */
#pragma once

#include "twofold.h"

#include "../core/convert.h"

GPR_OPEN

/* Vectors rounded to elements. */
template <class H> GPR_FN void round_lanes(const Doubles x, H *to) {
  double lane[WIDTH];
  memcpy(lane, &x, sizeof x);
  for (int l = 0; l < WIDTH; l++) to[l] = convert<H>(lane[l]);
}
#if defined(__F16C__) && defined(__AVX2__)
/* Rounded to odd where a float ends, and then once more: a float's subnormals are nothing here. */
GPR_FN void round_lanes(const Doubles x, float16 *to) {
  const Words rest = bits(x) & ((1ull << 29) - 1), odd = (Words)(rest != 0) & 1ull << 29;
  alignas(GPR_VECTOR) float single[8] = {};
  round_lanes((Doubles)((bits(x) ^ rest) | odd), single);
  float16 half[8];
  narrow_eight(single, half);
  memcpy(to, half, WIDTH * sizeof *to);
}
#endif

/* To low and high rounded, of which the result is high; a bit a lane where they differ, if only in
 * the sign of a zero, or are NaN. */
template <class Part>
GPR_FN uint64_t round_bounds(const Doubles low, const Doubles high, Part *to) {
  Part other[WIDTH];
  round_lanes(low, other);
  round_lanes(high, to);
  const Words opposite = (Words)((bits(low) ^ bits(high)) >> 63 != 0);
  if constexpr (sizeof(Part) == sizeof(double))
    return mask_of(opposite | ~(Words)(load((const double *)other) == load((const double *)to)));
  else if constexpr (sizeof(Part) == sizeof(float)) {
    Floats a, b;
    memcpy(&a, other, sizeof a);
    memcpy(&b, to, sizeof b);
    return mask_of(opposite) | mask_of(~(a == b));
  } else { /* zeros differ by their signs in the one way as in the other */
    uint64_t differ = mask_of(opposite | (Words)(low != low) | (Words)(high != high));
    for (int l = 0; l < WIDTH; l++) differ |= (uint64_t)(other[l].bits != to[l].bits) << l;
    return differ;
  }
}

/* Zeros keep the sign that high has. */
GPR_FN Doubles plus(const Doubles high, const Doubles low) {
  return choose((Words)(low == 0), high, high + low);
}
/* Sums that are off by some amount, over n, to less than doubles. over: 1 / n. */
template <class Part>
GPR_FN uint64_t divide_close(const Doubles sum, const Doubles off, const Doubles n,
                             const Doubles over, Part *to) {
  const Doubles close = sum * over;
  const Words finite = (Words)(sum - sum == 0);
  const Doubles quotient = choose(finite, close - product_rest(close, n, sum) * over, sum);
  const Words whole = (Words)(product_rest(quotient, n, sum) == 0);
  Doubles beside = (Doubles)(~whole & bits(0x1p-51 * size_of(quotient)));
  beside = choose((Words)(off == 0), beside, 2.0 * off * over + 0x1p-51 * size_of(quotient));
  beside = (Doubles)(finite & bits(beside));
  return round_bounds(plus(quotient, -beside), plus(quotient, beside), to) & mask_of(finite);
}
/* Sums that are doubles over n, to less. A quotient that is no tie of two floats lies farther from
 * it than a double's last bit: with 25 bits of the tie, times n the difference is a multiple of
 * the sum's last bit. It may be rounded twice then. */
template <class Part> GPR_FN uint64_t divide_narrow(const Doubles sum, const Doubles n, Part *to) {
  if (mask_of((Words)(n > 0x1p26))) return divide_close(sum, Doubles{}, n, 1.0 / n, to);
  round_lanes(sum / n, to);
  return 0;
}
/* What lanes are divided by, and whether these are powers of two. */
struct Divisor {
  Doubles n, over;
  bool shifts;
  GPR_METHOD explicit Divisor(int64_t by) : Divisor((double)by - Doubles{}) {}
  GPR_METHOD explicit Divisor(const Doubles by)
      : n(by), over(1.0 / by), shifts(!mask_of((Words)(bits(by) << 12 != 0))) {}
};
/* high + low over n, where high is a multiple of low's last bit; a bit a lane of those that are not
 * sure. What is not finite is, and a tie: what is left over is divided without a rest then. */
GPR_FN uint64_t divide_exact(const Doubles high, const Doubles low, const Divisor &by, double *to) {
  const Doubles sum = high + low, rest = low - (sum - high);
  const Words near = (Words)(size_of(sum) < TWOFOLD_LEAST) & (Words)(sum != 0); /* to zero */
  if (by.shifts) {
    round_lanes(sum * by.over, to);
    return mask_of(near);
  }
  const Doubles quotient = sum / by.n, back = product_rest(quotient, by.n, sum);
  const Doubles left = rest - back, more = left * by.over;
  const Words whole = (Words)(left + back == rest) & (Words)(rest - left == back) &
                      (Words)(product_rest(more, by.n, left) == 0);
  const Doubles beside = (Doubles)(~whole & bits(more * 0x1p-50));
  const Words apart = (Words)(quotient + (more + beside) != quotient + (more - beside));
  const Words finite = (Words)(sum - sum == 0);
  round_lanes(choose(finite, quotient + more, sum), to);
  return mask_of((apart | near) & finite);
}

/* Where a number goes through at most c additions, with u = 2^-53 and Q = Σx², the sums are off by
 * c²u²Σ|x| and 4c²u²Q at most, n·Σx² − (Σx)² by 20nc²u²Q after its few operations on low parts, and
 * what follows adds some u² of the quotient. Twice as much and more is allowed, for this is
 * computed in doubles too. */
static constexpr double SPREAD_ERROR = 0x1p-100, SPREAD_UNIT = 0x1p-100;

/* The variances, or deviations, of n numbers in each lane, which lie between *low and *high; a bit
 * a lane of those for which that is not sure. part: of complex numbers two, whose squares add up.
 * NARROW: they are rounded once more. */
template <int PARTS, bool ROOT, bool NARROW>
GPR_CALL uint64_t bound_spreads(const TwofoldMoments<Doubles> *part, double additions,
                                const Doubles n, const Doubles ddof, Doubles *low, Doubles *high) {
  Twofold<Doubles> squares = part[0].squares;
  if (PARTS > 1) squares.add(part[PARTS - 1].squares);
  Twofold<Doubles> spread = times(squares, n);
  for (int p = 0; p < PARTS; p++) {
    const Twofold<Doubles> minus = square_of(part[p].sum);
    spread.add(Twofold<Doubles>{-minus.high, -minus.low});
  }
  const Doubles rest = spread.low, freedom = n - ddof;
  spread.low = Doubles{};
  spread.add(rest);
  const Twofold<Doubles> by = times({freedom, Doubles{}}, n);
  const Doubles over = 1.0 / by.high;
  spread = quotient_of(spread, by, over);
  Doubles error = SPREAD_ERROR * n * additions * additions * squares.high * over;
  error += SPREAD_UNIT * spread.high;
  Words sure = (Words)((spread.high >= TWOFOLD_LEAST) & (squares.high <= TWOFOLD_MOST));
  sure &= (Words)((freedom > 0) & (rounding_error(n, -ddof, freedom) == 0));
  if (ROOT) {
    const Doubles root = root_of(spread.high), over_root = 1.0 / root;
    spread.low = (spread.low - product_rest(root, root, spread.high)) * (0.5 * over_root);
    spread.high = root;
    error = error * over_root + SPREAD_UNIT * root;
  }
  if (NARROW) error += 0x1p-51 * spread.high; /* past a tie, and not onto it */
  *low = spread.high + (spread.low - error);
  *high = spread.high + (spread.low + error);
  return mask_of(~sure);
}

GPR_CLOSE
