/* Variances of real and complex numbers: quickly by twofold sums, and where these do not tell by
 * exact ones. */
#pragma once

#include "exact_folds.h"
#include "few_spreads.h"

GPR_OPEN

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
   * their squares has 124 bits. */
  enum { EXACTLY_MOST = 256, EXACTLY_BITS = 54 };
  /* Rows of floats, of which a line of the cache is added up at a time, and of doubles. */
  enum { FEW = sizeof(R) == sizeof(float) ? (int)GPR_SHORT : 8 };
  enum { LINE_VECTORS = sizeof(R) == sizeof(float) ? 4 : 1 };

  static void finish_all(Result *, int64_t, int64_t, const int64_t *) {}
  static double ddof_of(const void *with) { return with ? ((const gpr_spread *)with)->ddof : 0; }
  /* The deviation of two is half of their difference, which ties more often than others. */
  static bool at_once(const gpr_tile *t, const void *with, Result *to) {
    if constexpr (plain)
      if (t->n == 1 && t->across == (int64_t)sizeof(T) && ddof_of(with) < 1) {
        const R *x = (const R *)(const void *)(t->data + place_of(t, 0));
        for (int64_t o = 0; o < t->outputs; o++) {
          R apart = x[o * PARTS] - x[o * PARTS];
          if (PARTS == 2) apart += x[o * PARTS + PARTS - 1] - x[o * PARTS + PARTS - 1];
          to[o] = plain_nan(apart);
        }
        for (int64_t o = 0; t->counts && o < t->outputs; o++)
          if (!t->counts[o]) to[o] = quiet_nan<R>();
        t->infinite->met = 1;
        return true;
      }
    if constexpr (plain && PARTS == 1 && O::root) {
      const R *x = (const R *)(const void *)(t->data + place_of(t, 0));
      const R *y = (const R *)(const void *)(t->data + (t->n == 2 ? place_of(t, 1) : 0));
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
      t->infinite->met |= is_odd;
      if (two) return !any;
    }
    if constexpr (plain && PARTS == 1)
      if (t->n <= FEW && t->across == (int64_t)sizeof(T) && t->outputs >= WIDTH && !t->counts &&
          !are_streams(t))
        return t->outputs >= (int64_t)LINE_VECTORS * WIDTH
                   ? of_few<LINE_VECTORS>(t, (const gpr_spread *)with, to)
                   : of_few<1>(t, (const gpr_spread *)with, to);
    return false;
  }
  /* Columns of few finite numbers, or of NaN, of the last and of the first some for a second time:
   * vectors are whole lines of the cache. Too many results that this does not tell are no case for
   * it. */
  template <int VECTORS>
  static GPR_APART bool of_few(const gpr_tile *t, const gpr_spread *with, Result *to) {
    enum { EACH = VECTORS * WIDTH };
    FewSpreads<R, O::root, VECTORS> some;
    some.rows = rows_of_tile<R>(t, 4 * EACH);
    some.ddof = ddof_of(with);
    const int64_t last = t->outputs - EACH, begin = VECTORS > 1 ? columns_before_line<R>(t) : 0;
    int64_t alone_left = 4 + t->outputs / 16;
    if (!((double)t->n - some.ddof > 0) || (with && with->means)) return false;
    if (some.ddof < 0) return false; /* without_loss() divides by less than 2^26 */
    for (int64_t o = 0;; o = least(o + (o || !begin ? (int64_t)EACH : begin), last)) {
      uint64_t refused;
      some.rows.x = (const R *)(const void *)t->data + o;
      uint64_t odd = some.bounds(&refused);
      if (odd && odd & ~columns_of_special<VECTORS>(some.rows, t->infinite)) return false;
      refused &= ~odd;
      for (int v = 0; v < VECTORS; v++) {
        R *at = to + o + v * WIDTH;
        uint64_t left = (refused >> v * WIDTH) | round_bounds(some.low[v], some.high[v], at);
        left &= ~(odd >> v * WIDTH);
        if (left) left = some.without_loss(v, left, at);
        for (; left; left &= left - 1, alone_left--) {
          const int64_t lane = o + v * WIDTH + __builtin_ctzll(left);
          if (!alone_left) return false;
          run_alone<QuickSpread, T>(t->data + lane * t->across, t, t->n, with, to + lane);
        }
      }
      for (; odd; odd &= odd - 1) to[o + __builtin_ctzll(odd)] = quiet_nan<Result>();
      if (o == last) return true;
    }
  }
  static int64_t in_units(double x, int unit) {
    int exponent;
    uint32_t special = 0;
    const int64_t m = mantissa(x, exponent, special);
    if (!m) return 0; /* whose exponent says nothing */
    return exponent >= unit ? m << (exponent - unit) : m >> (unit - exponent);
  }
  /* Of few numbers that are integers of some unit, which is found, the rational that 128 bits hold.
   * They tie often, and no bound tells a tie. What does not count is zero. */
  static bool in_integers(const Part *x, int64_t n, int64_t count, const gpr_spread *with,
                          Result *to) {
    const double ddof = ddof_of(with);
    int low = 1 << 20, high = -low;
    uint128 squares = 0;
    __int128 sum = 0;
    if (PARTS > 1 || n > EXACTLY_MOST || (with && with->means)) return false;
    if (!(ddof >= 0 && ddof < (double)count && ddof == (double)(int64_t)ddof)) return false;
    for (int64_t i = 0; i < n; i++) {
      const uint64_t b = bits((double)wide(x[i]));
      const int exponent = (int)(b >> 52 & 0x7ff);
      if (!(b << 1)) continue;
      if (exponent == 0 || exponent == 0x7ff) return false;
      low = least(low, exponent - 1075 + __builtin_ctzll(b | 1ull << 52));
      high = greatest(high, exponent - 1022);
    }
    if (high - low > EXACTLY_BITS) return false;
    for (int64_t i = 0; i < n; i++) {
      const __int128 units = in_units((double)wide(x[i]), low);
      sum += units;
      squares += (uint128)(units * units);
    }
    const uint64_t all = (uint64_t)count;
    const Leading spread = over(leading_of(squares * all - (uint128)(sum * sum), 2 * low),
                                all * (all - (uint64_t)ddof));
    *to = round_leading<Result>(O::root ? root_of(spread) : spread);
    return true;
  }
  static void alone(const T *x, int64_t n, int64_t count, const gpr_spread *with, Result *to) {
    const bool are_alike = n > 0 && !memcmp(x, x + 1, (size_t)(n - 1) * sizeof *x);
    if (are_alike && count == n && count > ddof_of(with))
      *to = Format<Result>::make(0);
    else if (!in_integers((const Part *)(const void *)x, n, count, with, to))
      reduce_alone<O>(x, n, count, with, to);
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
    const Doubles special = size_of(part[0].special) + size_of(part[PARTS - 1].special);
    const uint64_t none = mask_of((Words)(n == 0) | (Words)(special != 0));
    const uint64_t one = ddof < 1 ? mask_of((Words)(n == 1)) & ~none : 0;
    for (uint64_t left = one | none; left; left &= left - 1) {
      const int l = __builtin_ctzll(left);
      rounded[l] = one >> l & 1 ? Format<Result>::make(0) : quiet_nan<Result>();
    }
    memcpy(to + known, rounded + known, (size_t)(m - known) * sizeof *to);
    return (refused & ~(one | none)) | decided(special);
  }
};

GPR_CLOSE
