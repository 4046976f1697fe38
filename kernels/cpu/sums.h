/* Exact sums and means: quickly by twofold sums, and where these do not tell by exact ones. */
#ifndef GPR_SUMS_H
#define GPR_SUMS_H

#include "bounds.h"
#include "near_columns.h"
#include "twofold_columns.h"

GPR_OPEN

/* Zeros keep the sign that high has. */
GPR_FN Doubles plus(const Doubles high, const Doubles low) {
  return choose((Words)(low == 0), high, high + low);
}
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
    error = error * over * 2.0 + (Doubles)(~whole & bits(0x1p-100 * size_of(quotient)));
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

/* Sums that doubles hold, over n, to less than doubles. */
template <class Part> GPR_FN uint64_t divide_close(const Doubles sum, const Doubles n, Part *to) {
  const Doubles quotient = sum / n;
  const Words whole = (Words)(product_rest(quotient, n, sum) == 0);
  const Doubles beside = (Doubles)(~whole & bits(0x1p-51 * size_of(quotient)));
  return round_bounds(plus(quotient, -beside), plus(quotient, beside), to);
}

/* Columns of so few rows are finished as they come. */
enum { FEW_ROWS = 16 };
/* Sums of one or two, means of one: an addition of IEEE rounds the exact sum once, and has its
 * zeros. */
template <class R> static void add_few(const R *x, int64_t stride, int64_t n, int64_t rows, R *to) {
  const R *y = x + stride;
  if (rows == 1)
    for (int64_t j = 0; j < n; j++) to[j] = plain_nan(x[j]);
  else
    for (int64_t j = 0; j < n; j++) to[j] = plain_nan(x[j] + y[j]);
}
/* Means of two: half of a sum is rounded where the sum is, unless that overflows or is small; false
 * where one is. */
template <class R> static bool halve(const R *x, int64_t stride, int64_t n, R *to) {
  const R least = (R)(sizeof(R) == sizeof(float) ? 0x1p-100 : 0x1p-1000);
  const R most = (R)(sizeof(R) == sizeof(float) ? 0x1p126 : 0x1p1022);
  int any = 0;
  for (int64_t j = 0; j < n; j++) {
    const R sum = x[j] + x[stride + j], size = sum < 0 ? -sum : sum;
    to[j] = plain_nan(sum * (R)0.5);
    any |= (size < least) & (sum != 0);
    any |= size > most;
  }
  return !any;
}

template <class O, class T> struct QuickSum {
  typedef TwofoldSum<Doubles> K;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = ExactFold<T>::parts };
  static constexpr bool plain = sizeof(R) == sizeof(Part);

  static void finish_rounded(const T *sum, int64_t outputs, int64_t n, T *to) {
    for (int64_t o = 0; o < outputs; o++) {
      RoundedSum<T> value = {sum[o], O::divides ? (uint64_t)n : 1, true};
      O::finish(value, n, nullptr, to + o);
    }
  }
  /* STEP columns of so few rows that nothing need be kept of them; false where one is not sure. */
  static GPR_METHOD bool sum_few(const R *x, int64_t stride, int64_t rows, const Doubles n,
                                 Part *to) {
    K sum[2];
    sum[0].open();
    sum[1].open();
    if constexpr (sizeof(R) < sizeof(double)) {
      add_floats(sum, x, stride, rows, 0);
      for (int k = 0; k < 2; k++) sum[k].settle((double)(rows + 4));
    } else {
      add_rows<true>(sum, x, stride, rows, 0);
    }
    return !(round(sum[0], n, false, to) | round(sum[1], n, false, to + WIDTH));
  }
  /* Some of the last for a second time. */
  static GPR_APART void few(const gpr_tile *t, const R *x, int64_t stride, T *to) {
    enum { ACROSS = STEP / PARTS };
    const Doubles n = (double)t->n - Doubles{};
    for (int64_t next = 0; next < t->outputs; next += ACROSS) {
      const int64_t o = least(next, t->outputs - ACROSS);
      gpr_tile some = *t;
      some.data += o * t->across;
      some.outputs = ACROSS;
      if (sum_few(x + o * PARTS, stride, t->n, n, (Part *)(void *)(to + o)))
        finish_rounded(to + o, ACROSS, t->n, to + o);
      else
        QuickRow<QuickSum, O, T, TwofoldSum>::run_sums(&some, nullptr, to + o);
    }
  }
  static bool at_once(const gpr_tile *t, const void *with, T *to) {
    if constexpr (plain) {
      const R *x = (const R *)(const void *)t->data;
      const int64_t stride = t->along / (int64_t)sizeof(R), reals = t->outputs * PARTS;
      if (with || t->counts || t->n > FEW_ROWS || t->across != (int64_t)sizeof(T)) return false;
      if (t->n > 2) {
        if (t->outputs < STEP / PARTS) return false;
        few(t, x, stride, to);
        return true;
      }
      if (O::divides && t->n == 2 && !halve(x, stride, reals, (R *)(void *)to)) return false;
      if (!O::divides || t->n == 1) add_few(x, stride, reals, t->n, (R *)(void *)to);
      finish_rounded(to, t->outputs, t->n, to);
      return true;
    }
    return false;
  }
  static void alone(const char *data, const gpr_tile *t, int64_t count, const T *with, T *to) {
    Alone<O>::run(data, t->along, t->n, count, with, to);
  }
  /* Of one part: what is special decides, and of nothing there is one sum and no mean. */
  static GPR_METHOD uint64_t round(const K &s, const Doubles n, bool with, Part *to) {
    Words odd = bits(s.errors) | bits(s.special) | (Words)(n == 0);
    if (sizeof(Part) < sizeof(double)) odd |= bits(s.sum.low) << 1;
    if (!O::divides && !mask_of((Words)(odd != 0))) {
      round_lanes(plus(s.sum.high, s.sum.low), to);
      return 0;
    }
    if constexpr (O::divides && sizeof(Part) < sizeof(double))
      if (!mask_of((Words)(odd != 0))) return divide_close(s.sum.high, n, to);
    uint64_t refused = round_sums<Part, O::divides>(s, n, to);
    const uint64_t special = mask_of((Words)(s.special != 0));
    const uint64_t empty = with ? 0 : mask_of((Words)(n == 0));
    for (uint64_t left = special | empty; left; left &= left - 1) {
      const int l = __builtin_ctzll(left);
      const Part none = O::divides ? quiet_nan<Part>() : Format<Part>::make(0);
      to[l] = empty >> l & 1 ? none : convert<Part>(plain_nan((double)s.special[l]));
    }
    return refused & ~(special | empty);
  }
  static GPR_APART uint64_t finish(K *part, double, const Doubles n, const T *with, int64_t known,
                                   int64_t m, T *to) {
    Part rounded[PARTS][WIDTH];
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
    if (O::divides)
      for (int64_t o = known; o < m; o++) finish_rounded(sum + o, 1, (int64_t)n[o], to + o);
    else
      finish_rounded(sum + known, m - known, 1, to + known);
    return refused;
  }
};

template <class O, class T> struct Many<O, ExactFold<T>> : ManyExact<O> {};

GPR_CLOSE
#endif
