/* Exact sums and means: quickly by twofold sums, and where these do not tell by exact ones. */
#pragma once

#include "bounds.h"
#include "few_rows.h"
#include "exact_folds.h"

GPR_OPEN

/* The sums of some lanes over n, rounded once; a bit a lane of those that are not sure. What lost
 * nothing is certain, ties and zeros too. */
template <class Part, bool DIVIDED>
GPR_CALL uint64_t round_sums(const TwofoldSum<Doubles> &s, const Doubles n, Part *to) {
  Doubles high = plus(s.sum.high, s.sum.low);
  Doubles low = rounding_error(s.sum.high, s.sum.low, high);
  Doubles error = 2.0 * s.errors;
  uint64_t refused = 0;
  if (DIVIDED) {
    const Doubles over = 1.0 / n, size = size_of(high), quotient = high * over;
    Doubles left = -product_rest(quotient, n, high);
    const Doubles sum = left + low, gone = rounding_error(left, low, sum);
    const Doubles more = sum / n, back = more * n;
    const Words whole =
        (Words)(gone == 0) & (Words)(back == sum) & (Words)(product_rest(more, n, back) == 0);
    /* What is less than all numbers is an error too, which tells ties apart. */
    const Words some = (Words)(error != 0);
    error = error * over * 2.0 + (Doubles)(some & bits(__DBL_MIN__ - Doubles{}));
    error += (Doubles)(~whole & bits(0x1p-100 * size_of(quotient)));
    high = plus(quotient, more);
    low = rounding_error(quotient, more, high);
    refused = mask_of((Words)((size < TWOFOLD_LEAST) | (size > TWOFOLD_MOST)) &
                      ~((Words)(size == 0) & whole));
  }
  /* What is rounded once more must be past a tie, and not onto it. */
  const Words inexact =
      sizeof(Part) < sizeof(double) ? (Words)(low != 0) | (Words)(error != 0) : (Words)(error != 0);
  const Doubles beside =
      sizeof(Part) < sizeof(double) ? 0x1p-51 * size_of(high) : 0x1p-51 * size_of(low);
  error += (Doubles)(inexact & bits(beside));
  return refused | round_bounds(plus(high, low - error), plus(high, low + error), to);
}

GPR_FN bool is_infinite(double x) { return x - x != 0 && x == x; }
/* Sums of one element each; whether one is infinite. */
template <class R> GPR_FN bool keep(const R *x, int64_t n, R *to) {
  typedef typename Unsigned<sizeof(R)>::type Bits;
  const Bits infinity = (Bits)(Format<R>::infinity() << 1), nan = copy_bits<Bits>(quiet_nan<R>());
  Bits any = 0;
  for (int64_t j = 0; j < n; j++) {
    const Bits own = copy_bits<Bits>(x[j]), size = (Bits)(own << 1);
    any |= size == infinity;
    to[j] = copy_bits<R>((Bits)(size > infinity ? nan : own));
  }
  return any;
}

/* DIVIDES: means. What its operator makes of these comes last. */
template <bool DIVIDES, class T> struct QuickSum {
  typedef TwofoldSum<Doubles> K;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  typedef T Result;
  typedef T With;
  enum { PARTS = ExactFold<T>::parts };
  static constexpr bool plain = sizeof(R) == sizeof(Part);
  static constexpr int64_t most = INT64_MAX;

  /* Mostly all: copies of a known size are moves, of vectors as they were stored, since a load
   * waits for two: sums of (3, 100000) floats took 117 us on a Xeon, and take 107. */
  template <int ALL> static GPR_METHOD void put(const T *sum, int64_t n, T *to) {
    enum { EACH = WIDTH / PARTS };
    if (n == ALL)
      for (int i = 0; i < ALL; i += EACH) memcpy((void *)(to + i), sum + i, EACH * sizeof *to);
    else
      memcpy((void *)to, sum, (size_t)n * sizeof *to);
  }
  /* The next tile is asked for if it is as small as that, or else what comes next in the rows: of
   * 64 × 16 rows of 8000 doubles, each next tile of 1 MB, it took 5.8 ms on Zen 3, and takes 2.9.
   */
  enum { NEXT_BYTES = 1 << 16 };
  /* Of the last columns some for a second time, and of the first, so that steps are whole lines: of
   * (16, 4096) doubles that began in a line 33 us on Zen 3, and 26 of those that began one. */
  static GPR_APART void few(const gpr_tile *t, T *to) {
    enum { STEPS = FewRows<R>::STEPS, EACH = STEP / PARTS };
    const bool lines = t->across != (int64_t)sizeof(T);
    const Divisor all(t->n);
    const bool counted = DIVIDES && t->counts;
    const R *x = (const R *)(const void *)t->data;
    const int64_t along = t->along / (int64_t)sizeof(R);
    const bool follow = along == t->outputs * PARTS && !t->places && t->n * t->along <= NEXT_BYTES;
    const int64_t ahead = !prefetches_columns<R>() || lines ? 0
                          : follow                          ? t->n * along
                                                            : STEPS * 4 * STEP;
    alignas(GPR_VECTOR) R room[FEW_ROWS * FewRows<R>::LANES];
    FewRows<R> rows;
    rows.rows = t->n;
    rows.stride = lines ? (int64_t)rows.LANES : along;
    rows.places = t->places;
    rows.ahead = ahead;
    const int64_t begin = lines ? 0 : columns_before_line<T>(t);
    for (int64_t next = 0, stop; next < t->outputs; next = stop) {
      int64_t first[STEPS];
      Part part[STEPS * STEP];
      uint64_t told = 0;
      stop = next + (next || !begin ? STEPS * EACH : begin);
      for (int s = 0; s < STEPS; s++) {
        first[s] = next + s * EACH;
        if (!lines) first[s] = least(first[s], t->outputs - EACH);
        rows.at[s] = x + first[s] * PARTS;
        if (lines) {
          const char *later = t->data + (first[s] + 2 * EACH) * t->across;
          rows.at[s] =
              turned<PARTS>(t->data + first[s] * t->across, t->across, t->outputs - first[s], t->n,
                            room + s * STEP, (int64_t)rows.LANES, later);
        }
      }
      if (rows.add()) t->infinite->met = 1;
      if (rows.exact || sizeof(R) < sizeof(double))
        for (int v = 0; v < rows.ALL; v++) {
          const Divisor by = counted ? divisor_of(t, first, v) : all;
          told |= rows.template round<DIVIDES>(v, by, part + v * WIDTH) << v * WIDTH;
        }
      else
        close(t, rows, first, part, told);
      for (int s = 0; s < STEPS && first[s] < t->outputs; s++)
        put_step(t, part + s * STEP, first[s], lines, to);
      if (told) alone_of(t, told, first, lines, next, stop, to);
    }
  }
  static GPR_APART void close(const gpr_tile *t, FewRows<R> &rows, const int64_t *first, Part *part,
                              uint64_t &told) {
    if constexpr (sizeof(R) == sizeof(double)) {
      K k[rows.ALL];
      rows.close(k);
      for (int v = 0; v < rows.ALL; v++) {
        const Divisor by = DIVIDES && t->counts ? divisor_of(t, first, v) : Divisor(t->n);
        told |= round(k[v], by.n, false, part + v * WIDTH) << v * WIDTH;
      }
    }
  }
  /* Of vector v of outputs that have one part. */
  static GPR_METHOD Divisor divisor_of(const gpr_tile *t, const int64_t *first, int v) {
    return Divisor(counts_of(t->counts + first[v / 2] + v % 2 * WIDTH, 0, WIDTH));
  }
  /* Of a step, whose parts come by turns, or in lines one after the other. */
  static GPR_METHOD void put_step(const gpr_tile *t, const Part *part, int64_t first, bool lines,
                                  T *to) {
    enum { EACH = STEP / PARTS };
    const int64_t m = least((int64_t)EACH, t->outputs - first);
    T both[EACH];
    if constexpr (PARTS == 2)
      for (int l = 0; lines && l < EACH; l++) both[l] = {part[l], part[EACH + l]};
    const T *sum = PARTS == 2 && lines ? both : (const T *)(const void *)part;
    put<EACH>(sum, m, to + first);
  }
  /* Those that are not sure; and counts those that infinite elements decide, of [from, stop). */
  static GPR_APART void alone_of(const gpr_tile *t, uint64_t told, const int64_t *first, bool lines,
                                 int64_t from, int64_t stop, T *to) {
    enum { EACH = STEP / PARTS };
    uint64_t own = 0;
    for (uint32_t left = (uint32_t)(told | told >> DECIDED); left; left &= left - 1) {
      const int bit = __builtin_ctz(left), lane = bit % STEP;
      const int64_t o = first[bit / STEP] + (PARTS == 1 ? lane
                                             : lines    ? lane % EACH
                                                        : lane / PARTS);
      if (o < t->outputs && told >> bit & 1)
        run_alone<QuickSum, T>(t->data + o * t->across, t, t->counts ? t->counts[o] : t->n, nullptr,
                               to + o);
      else if (o >= from && o < least(stop, t->outputs))
        own |= 1ull << (o - from);
    }
    t->infinite->decided += __builtin_popcountll(own);
  }
  /* Of two, if they are finite or one is NaN: an addition of IEEE rounds the exact sum once, and
   * has its zeros; half of it is exact, or what was below all rounding is rounded then. */
  static GPR_APART bool add(const gpr_tile *t, T *to) {
    const R *x = (const R *)(const void *)(t->data + place_of(t, 0));
    const R *y = (const R *)(const void *)(t->data + place_of(t, 1));
    R *result = (R *)(void *)to;
    int odd = 0;
    for (int64_t j = 0; j < t->outputs * PARTS; j++) {
      const R sum = x[j] + y[j];
      const bool nan = (x[j] != x[j]) | (y[j] != y[j]);
      odd |= (sum - sum != 0) & !nan;
      result[j] = nan ? quiet_nan<R>() : DIVIDES ? sum * (R)0.5 : sum;
    }
    return !odd;
  }
  /* More elements of a row do not stay in the first cache beside those that they are turned to: 100
   * doubles took 0.41 ns each on Zen 4 at once, and 0.34 by blocks; by AVX2 as long. */
  static constexpr int64_t FIT = sizeof(R) == 4 ? FEW_ROWS : GPR_VECTOR < 64 ? 96 : 64;
  static constexpr int64_t TURNED = short_row_of<R>(PARTS) / PARTS;
  static constexpr int64_t FEW_LINES = FIT < TURNED ? FIT : TURNED;
  static bool at_once(const gpr_tile *t, const void *with, T *to) {
    const bool lines = t->across != (int64_t)sizeof(T);
    if (with || t->n > (lines ? FEW_LINES : (int64_t)FEW_ROWS) || !t->n) return false;
    if (t->counts && DIVIDES && (lines || (t->n > 1 && PARTS > 1))) return false;
    if (!lines && are_streams(t)) return false;
    if (t->n == 1 && !lines) {
      const Part *x = (const Part *)(const void *)(t->data + place_of(t, 0));
      if (keep(x, t->outputs * PARTS, (Part *)(void *)to)) t->infinite->met = 1;
      for (int64_t o = 0; t->infinite->met && o < t->outputs; o++, x += PARTS)
        t->infinite->decided += is_infinite(wide(x[0])) | is_infinite(wide(x[PARTS - 1]));
      return put_none(t, to);
    }
    if constexpr (plain) {
      if (t->n == 2 && !lines && !(t->counts && DIVIDES) && add(t, to)) return put_none(t, to);
      if (lines ? t->places || t->along != (int64_t)sizeof(T) : t->outputs < STEP / PARTS)
        return false;
      few(t, to);
      return put_none(t, to);
    }
    return false;
  }
  /* The sum of what does not count is -0.0, and of nothing 0, which has no mean. */
  static bool put_none(const gpr_tile *t, T *to) {
    Part none[PARTS] = {};
    T nothing;
    for (int p = 0; DIVIDES && p < PARTS; p++) none[p] = quiet_nan<Part>();
    memcpy((void *)&nothing, none, sizeof nothing);
    for (int64_t o = 0; t->counts && o < t->outputs; o++)
      if (!t->counts[o]) to[o] = nothing;
    return true;
  }
  static void alone(const T *x, int64_t n, int64_t count, const T *with, T *to) {
    reduce_alone<typename Either<DIVIDES, Mean<T>, Sum<T>>::type>(x, n, count, with, to);
  }
  /* Of one part, as Finish's: of nothing there is one sum and no mean. */
  static GPR_METHOD uint64_t round(const K &s, const Doubles n, bool with, Part *to) {
    constexpr bool narrow = sizeof(Part) < sizeof(double);
    Words odd = bits(s.errors);
    uint64_t refused = 0;
    if (narrow) odd |= bits(s.sum.low) << 1;
    if (mask_of((Words)(odd != 0)) || (DIVIDES && !narrow))
      refused = round_sums<Part, DIVIDES>(s, n, to);
    else if constexpr (DIVIDES)
      refused = divide_narrow(s.sum.high, n, to);
    else
      round_lanes(plus(s.sum.high, s.sum.low), to);
    const uint64_t special = mask_of((Words)(s.special != 0));
    const uint64_t empty = with ? 0 : mask_of((Words)(n == 0));
    if (special | empty) {
      const Doubles none = DIVIDES ? quiet_nan<double>() - Doubles{} : Doubles{};
      const Doubles odd =
          choose((Words)(s.special != s.special), quiet_nan<double>() - Doubles{}, s.special);
      const Doubles all = choose((Words)(n == 0), none, odd);
      for (int l = 0; l < WIDTH; l++)
        to[l] = (special | empty) >> l & 1 ? convert<Part>((double)all[l]) : to[l];
    }
    return (refused & ~(special | empty)) | (special ? decided(s.special) : 0);
  }
  static GPR_APART uint64_t finish(K *part, double, const Doubles n, const T *with, int64_t known,
                                   int64_t m, T *to) {
    Part rounded[PARTS][WIDTH] = {};
    T both[WIDTH];
    const T *sum = both;
    uint64_t refused = 0;
    for (int p = 0; p < PARTS; p++) {
      if (with) {
        K first;
        Part initial[PARTS];
        memcpy(initial, with, sizeof initial);
        const double x = wide(initial[p]);
        first.open();
        (x - x == 0 ? first.sum.high : first.special) = x - Doubles{};
        part[p].merge(first);
      }
      refused |= round(part[p], n, with, rounded[p]);
    }
    if constexpr (PARTS == 1)
      sum = rounded[0];
    else
      for (int l = 0; l < WIDTH; l++) both[l] = {rounded[0][l], rounded[1][l]};
    put<WIDTH>(sum + known, m - known, to + known);
    return refused;
  }
};
template <class O, class T> struct QuickSumOf : QuickSum<O::divides, T> {
  static void finish_all(T *to, int64_t outputs, int64_t n, const int64_t *counts) {
    for (int64_t o = 0; o < outputs; o++) {
      const int64_t count = counts ? counts[o] : n;
      RoundedSum<T> value = {to[o], O::divides ? (uint64_t)count : 1, true, false};
      O::finish(value, count, nullptr, to + o);
    }
  }
};

GPR_CLOSE
