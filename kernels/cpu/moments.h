/* Variances of real and complex numbers: quickly by twofold sums, and where these do not tell by
 * exact ones. */
#ifndef GPR_MOMENTS_H
#define GPR_MOMENTS_H

#include "bounds.h"
#include "exact_folds.h"

GPR_OPEN

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

template <class O, class T> struct QuickSpread {
  typedef TwofoldMoments<Doubles> K;
  typedef typename O::Result Result;
  typedef gpr_spread With;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = MomentsFold<T>::parts };
  static constexpr bool plain = sizeof(R) == sizeof(Part);
  static constexpr int64_t most = INT64_MAX;
  /* So many numbers n, of so many bits between the highest and the lowest, that n times the sum of
   * their squared differences from the first has 126 bits. */
  enum { EXACTLY_MOST = 256, EXACTLY_BITS = 54 };
  enum { FEW = sizeof(R) == sizeof(float) ? 16 : 8 };

  static double ddof_of(const void *with) { return with ? ((const gpr_spread *)with)->ddof : 0; }
  /* The deviation of two is half of their difference, which ties more often than others. */
  static bool at_once(const gpr_tile *t, const void *with, Result *to) {
    if constexpr (plain)
      if (t->n == 1 && t->across == (int64_t)sizeof(T) && ddof_of(with) < 1) {
        const R *x = (const R *)(const void *)t->data;
        for (int64_t o = 0; o < t->outputs; o++) {
          R apart = x[o * PARTS] - x[o * PARTS];
          if (PARTS == 2) apart += x[o * PARTS + PARTS - 1] - x[o * PARTS + PARTS - 1];
          to[o] = plain_nan(apart);
        }
        for (int64_t o = 0; t->counts && o < t->outputs; o++)
          if (!t->counts[o]) to[o] = quiet_nan<R>();
        *t->infinite = 1;
        return true;
      }
    if constexpr (plain && PARTS == 1 && O::root) {
      const R *x = (const R *)(const void *)t->data, *y = x + t->along / (int64_t)sizeof(R);
      const R most = (R)(sizeof(R) == sizeof(float) ? 0x1p126 : 0x1p1022);
      int any = 0, is_odd = 0;
      const bool two = t->n == 2 && !t->counts && ddof_of(with) == 0;
      for (int64_t o = 0; two && o < t->outputs; o++) {
        const int64_t at = o * t->across / (int64_t)sizeof(R);
        const R apart = x[at] - y[at], size = apart < 0 ? -apart : apart;
        const R odd = (x[at] - x[at]) + (y[at] - y[at]); /* NaN where one is not finite */
        to[o] = plain_nan(size * (R)0.5 + odd);
        any |= ((size > most) & (odd == 0)) | ((size < 1 / most) & (size != 0));
        is_odd |= odd != 0;
      }
      *t->infinite |= is_odd;
      if (two) return !any;
    }
    if constexpr (plain && PARTS == 1)
      if (t->n <= FEW && t->across == (int64_t)sizeof(T) && t->outputs >= WIDTH && !t->counts)
        return of_few(t, (const gpr_spread *)with, to);
    return false;
  }
  /* Between what bounds the spreads of a vector of columns lie, by differences from the first row;
   * a bit for each lane that this does not tell. False: for what is not finite. Of floats by
   * doubles: with u = 2^-53 the differences are off by a part u of themselves, and n·Σd² − (Σd)² by
   * 3n + 10 such parts of n·Σd². */
  static GPR_METHOD bool differences(const float *x, int64_t stride, double n, double ddof,
                                     Doubles *low, Doubles *high, uint64_t *) {
    const Doubles first = load(x), over = 1.0 / (n * (n - ddof) - Doubles{});
    Doubles sum = {}, squares = {};
    for (int64_t i = 1; i < (int64_t)n; i++) {
      const Doubles apart = load(x + i * stride) - first;
      sum += apart;
      squares += apart * apart;
    }
    const Doubles most = n * squares, spread = most - sum * sum;
    const Doubles error = (4 * n + 32) * 0x1p-53 * most;
    *low = (spread - error) * over, *high = (spread + error) * over;
    if (O::root) *low = root_of(*low) * (1 - 0x1p-50), *high = root_of(*high) * (1 + 0x1p-50);
    return !mask_of((Words)(spread - spread != 0));
  }
  /* Of doubles by pairs of them, as Σx and Σx² are bounded; what does not differ needs no bound. */
  static GPR_METHOD bool differences(const double *x, int64_t stride, double n, double ddof,
                                     Doubles *low, Doubles *high, uint64_t *refused) {
    const Doubles first = load(x);
    Words differ = {};
    K part;
    part.open();
    for (int64_t i = 1; i < (int64_t)n; i++) {
      const Doubles next = load(x + i * stride), apart = next - first;
      const Doubles rest = rounding_error(next, -first, apart), square = GPR_PRODUCT(apart, apart);
      part.sum.add({apart, rest});
      part.squares.add({square, product_rest(apart, apart, square) + 2.0 * apart * rest});
      differ |= (Words)(apart != 0);
    }
    *refused = mask_of(differ) & bound_spreads<1, O::root, false>(&part, n, n - Doubles{},
                                                                  ddof - Doubles{}, low, high);
    *low = (Doubles)(bits(*low) & differ), *high = (Doubles)(bits(*high) & differ);
    return !mask_of((Words)(part.squares.high - part.squares.high != 0));
  }
  /* Columns of few finite numbers. Too many results that this does not tell are no case for it. */
  static GPR_APART bool of_few(const gpr_tile *t, const gpr_spread *with, Result *to) {
    const R *x = (const R *)(const void *)t->data;
    const int64_t stride = t->along / (int64_t)sizeof(R), last = t->outputs - WIDTH;
    const double n = (double)t->n, ddof = ddof_of(with);
    int64_t alone_left = 4 + t->outputs / 16;
    if (!(n - ddof > 0) || (with && with->means)) return false;
    for (int64_t o = 0;; o = least(o + WIDTH, last)) {
      Doubles low, high;
      uint64_t refused = 0;
      if (!differences(x + o, stride, n, ddof, &low, &high, &refused)) return false;
      for (uint64_t left = refused | round_bounds(low, high, to + o); left; left &= left - 1) {
        const int64_t at = o + __builtin_ctzll(left);
        if (!alone_left--) return false;
        alone(t->data + at * t->across, t, t->n, with, to + at);
      }
      if (o == last) return true;
    }
  }
  static bool are_alike(const char *data, const gpr_tile *t) {
    for (int64_t i = 1; i < t->n; i++)
      if (memcmp(data, data + i * t->along, sizeof(T))) return false;
    return true;
  }
  static int64_t in_units(double x, int unit) {
    int exponent;
    uint32_t special = 0;
    const int64_t m = mantissa(x, exponent, special);
    if (!m) return 0; /* whose exponent says nothing */
    return exponent >= unit ? m << (exponent - unit) : m >> (unit - exponent);
  }
  static double number(const char *at) {
    Part x;
    memcpy(&x, at, sizeof x);
    return (double)wide(x);
  }
  /* Of few numbers that are integers of some unit, which is found, the rational that 128 bits hold.
   * They tie often, and no bound tells a tie. */
  static bool in_integers(const char *data, const gpr_tile *t, const gpr_spread *with, Result *to) {
    const double ddof = ddof_of(with);
    int low = 1 << 20, high = -low;
    uint128 squares = 0;
    __int128 sum = 0;
    if (PARTS > 1 || t->n > EXACTLY_MOST || (with && with->means)) return false;
    if (!(ddof >= 0 && ddof < (double)t->n && ddof == (double)(int64_t)ddof)) return false;
    for (int64_t i = 0; i < t->n; i++) {
      const uint64_t b = bits(number(data + i * t->along));
      const int exponent = (int)(b >> 52 & 0x7ff);
      if (!(b << 1)) continue;
      if (exponent == 0 || exponent == 0x7ff) return false;
      low = least(low, exponent - 1075 + __builtin_ctzll(b | 1ull << 52));
      high = greatest(high, exponent - 1022);
    }
    if (high - low > EXACTLY_BITS) return false;
    const int64_t first = in_units(number(data), low);
    for (int64_t i = 0; i < t->n; i++) {
      const __int128 apart = in_units(number(data + i * t->along), low) - first;
      sum += apart;
      squares += (uint128)(apart * apart);
    }
    const Leading spread = over(leading_of(squares * (uint128)t->n - (uint128)(sum * sum), 2 * low),
                                (uint64_t)t->n * (uint64_t)(t->n - (int64_t)ddof));
    *to = round_leading<Result>(O::root ? root_of(spread) : spread);
    return true;
  }
  static void alone(const char *data, const gpr_tile *t, int64_t count, const gpr_spread *with,
                    Result *to) {
    if (count == t->n && count > ddof_of(with) && are_alike(data, t))
      *to = Format<Result>::make(0);
    else if (count != t->n || !in_integers(data, t, with, to))
      Alone<O>::run(data, t->along, t->n, count, with, to);
  }
  /* Of none NaN, of one zero; of what is special NaN. */
  static GPR_APART uint64_t finish(K *part, double additions, const Doubles n,
                                   const gpr_spread *with, int64_t known, int64_t m, Result *to) {
    Doubles bounds[2];
    Result rounded[WIDTH];
    const double ddof = ddof_of(with);
    uint64_t refused = bound_spreads<PARTS, O::root, (sizeof(Result) < sizeof(double))>(
        part, additions, n, ddof - Doubles{}, bounds, bounds + 1);
    refused |= round_bounds(bounds[0], bounds[1], rounded);
    uint64_t none = mask_of((Words)(n == 0));
    for (int p = 0; p < PARTS; p++) none |= mask_of((Words)(part[p].special != 0));
    const uint64_t one = ddof < 1 ? mask_of((Words)(n == 1)) & ~none : 0;
    for (uint64_t left = one | none; left; left &= left - 1) {
      const int l = __builtin_ctzll(left);
      rounded[l] = one >> l & 1 ? Format<Result>::make(0) : quiet_nan<Result>();
    }
    memcpy(to + known, rounded + known, (size_t)(m - known) * sizeof *to);
    return refused & ~(one | none);
  }
};

GPR_CLOSE
#endif
