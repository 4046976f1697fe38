/* Variances of integers in integers. */
#pragma once

#include "bounds.h"
#include "column_sums.h"

GPR_OPEN

/* The squares of 8 and 16 bits fit 32, those of 32 bits 64, which are added up by halves. */
template <class T, class Low> GPR_FN void add_square(T x, Low &low, uint64_t &high) {
  typedef typename Either<(sizeof(T) > 2), int64_t, int32_t>::type W;
  typedef typename Either<(sizeof(T) > 2), uint64_t, uint32_t>::type U;
  const U w = (U)(W)wide(x), square = w * w;
  low += (uint32_t)square;
  if (sizeof(T) > 2) high += (uint64_t)square >> 32;
}
template <class T>
GPR_FN typename IntegerMoments<T>::State moments_of(uint64_t sum, uint64_t low, uint64_t high) {
  const auto s = long_of<T>(sum);
  const uint128 square = ((uint128)high << 32) + low;
  return {s, {(uint64_t)square, (uint64_t)(square >> 64), 0}};
}
template <class T> struct Columns<IntegerMoments<T>> : SumOfColumns<T> {
  typedef typename IntegerMoments<T>::State State;
  enum { most = COLUMNS };
  uint64_t low[most], high[most]; /* of squares */
  State rest[sizeof(T) < 8 ? 1 : (int)most];
  void open(int64_t columns) {
    SumOfColumns<T>::open(columns);
    memset(low, 0, (size_t)columns * sizeof *low);
    memset(high, 0, (size_t)columns * sizeof *high);
    if (sizeof(T) == 8) memset(rest, 0, (size_t)columns * sizeof *rest);
  }
  GPR_APART void add(const Panel<T> &x, int64_t columns, int64_t index) {
    const bool is_small = sizeof(T) < 8 || size_bits(x, columns) >> 31 == 0;
    if (is_small) SumOfColumns<T>::add(x, columns, index);
    for (int64_t i = 0; i < x.n; i++) {
      const T *row = x[i];
      if (is_small)
        for (int64_t j = 0; j < columns; j++) add_square(row[j], low[j], high[j]);
      else
        for (int64_t j = 0; j < columns; j++) IntegerMoments<T>::add(rest[j], row[j], index);
    }
  }
  State get(int64_t j) const {
    State s = moments_of<T>(this->word[j], low[j], high[j]);
    if (sizeof(T) == 8) IntegerMoments<T>::merge(s, rest[j]);
    return s;
  }
};

/* Contiguous integers: within a stretch no sum of these widths overflows. */
template <class O, class T> struct Folder<O, IntegerMoments<T>> {
  typedef IntegerMoments<T> F;
  typedef typename F::State State;
  /* Of integers that 32 bits and a sign hold; squares of bytes are added up in 32 bits. */
  static State small(const T *x, int64_t n) {
    typename Either<(sizeof(T) > 1), uint64_t, uint32_t>::type low = 0;
    uint64_t sum = 0, high = 0;
    for (int64_t i = 0; i < n; i++) sum += (uint64_t)wide(x[i]);
    for (int64_t i = 0; i < n; i++) add_square(x[i], low, high);
    return moments_of<T>(sum, low, high);
  }
  static void fold(State &s, const T *x, int64_t n, int64_t index) {
    for (int64_t i = 0; i < n; i += NARROW) {
      const int64_t m = least(NARROW, n - i);
      if (sizeof(T) < 8 || size_bits(Panel<T>{x + i, m, 1}, m) >> 31 == 0)
        F::merge(s, small(x + i, m));
      else
        for (int64_t j = i; j < i + m; j++) F::add(s, x[j], index);
    }
  }
};

/* --- finished in doubles where these tell --------------------------------------------------------
 */

/* √(x / divisor) in twice the precision, if that tells what it rounds to. */
GPR_CALL bool root_of_quotient(uint128 x, uint64_t divisor, double *to) {
  if (x >> 100 || divisor >> 53) return false;
  const double d = (double)divisor, high = (double)x, low = (double)(__int128)(x - (uint128)high);
  const double q = high / d, back = q * d;
  const double more = ((high - back) - product_error(q, d, back) + low) / d;
  const double root = __builtin_sqrt(q), square = root * root;
  const double rest = ((q - square) - product_error(root, root, square) + more) / (2 * root);
  const double result = root + rest, error = rest - (result - root);
  const double size = from_bits((uint64_t)(bits(result) & 0x7ffull << 52));
  *to = result;
  const double half = bits(result) << 12 ? 0x1.000002p53 : 0x1.000002p54; /* of the next below */
  return (error < 0 ? -error : error) * half < size;
}
/* n·Σx² − (Σx)² over n·(n − ddof), where 128 bits hold the one and 64 the other. */
template <bool ROOT, class S>
GPR_CALL bool finish_small_spread(const S &s, int64_t n, const gpr_spread *how, double *to) {
  const double ddof = how ? how->ddof : 0, freedom = (double)n - ddof;
  const int64_t sign = (int64_t)s.low >> 63;
  if ((how && how->means) || !(freedom >= 1 && freedom <= 0x1p31) || n >> 31) return false;
  const uint64_t narrow = (uint64_t)1 << 26;
  if (s.square[0] < narrow && (uint64_t)n < narrow && freedom == (double)(int64_t)freedom &&
      !(s.square[1] | s.square[2])) { /* no product leaves a double, for |Σx| is at most Σx² */
    const double x = (double)(int64_t)((uint64_t)n * s.square[0] - s.low * s.low);
    const double by = (double)n * freedom, q = x / by, root = __builtin_sqrt(q);
    *to = ROOT ? root : q;
    if (!ROOT || x == 0) return true;
    if (product_error(root, root, root * root) == 0 && root * root == q && q * by == x &&
        product_error(q, by, x) == 0)
      return true;
  }
  if (freedom != (double)(int64_t)freedom || s.square[1] | s.square[2] || s.high != sign)
    return false;
  const uint64_t size = (s.low ^ (uint64_t)sign) - (uint64_t)sign;
  const uint128 spread = (uint128)(uint64_t)n * s.square[0] - (uint128)size * size;
  const uint64_t divisor = (uint64_t)n * (uint64_t)freedom;
  if (ROOT && spread) return root_of_quotient(spread, divisor, to);
  *to = quotient<double>((__int128)spread, divisor);
  return true;
}
/* Of any width. */
struct QuickMoments {
  typedef IntegerMoments<int64_t> F;
  F::State s;
  template <class R, bool ROOT> GPR_APART R spread(int64_t n, const gpr_spread *how) const {
    double quick;
    if (Same<R, double>::value && finish_small_spread<ROOT>(s, n, how, &quick)) return (R)quick;
    return IntegerMomentsValue<int64_t>{s}.template spread<R, ROOT>(n, how);
  }
};
template <class T> struct QuicklyShown<IntegerMoments<T>> {
  static QuickMoments of(const typename IntegerMoments<T>::State &s) {
    return {{{s.low, s.high}, {s.square[0], s.square[1], s.square[2]}}};
  }
};

/* Of few or small integers, all doubles: n·Σx² is below 2^53, and so is (Σx)². */
template <class T> struct ExactSums {
  double sum[COLUMNS], square[COLUMNS];

  /* Whether they are that: without a look at them, where all of their kind are. */
  static bool hold(const gpr_tile *t) {
    const int bits = 64 - leading_zeros((uint64_t)t->n), room = (53 - 2 * bits) / 2;
    uint64_t any = 0;
    if (room < 1 || sizeof(T) <= 2) return room >= (int)sizeof(T) * 8;
    const bool columns = t->across == (int64_t)sizeof(T);
    const int64_t lines = columns ? t->n : t->outputs, n = columns ? t->outputs : t->n;
    const Panel<T> rows = {(const T *)(const void *)t->data, t->across / (int64_t)sizeof(T), lines};
    const Panel<T> all = columns ? panel_of<T>(t) : rows;
    for (int64_t i = 0; i < lines && any >> room == 0; i++) any |= size_bits(all.part(i, 1), n);
    return any >> room == 0;
  }
  static double number(T x) { /* of 64 bits no instruction of AVX2 converts */
    if (sizeof(T) < 4) return (double)(int32_t)wide(x);
    return copy_bits<double>((uint64_t)wide(x) + bits(0x1.8p52)) - 0x1.8p52;
  }
  GPR_APART void add_columns(const Panel<T> &x, int64_t columns) {
    memset((void *)this, 0, sizeof *this);
    for (int64_t i = 0; i < x.n; i++) {
      const T *row = x[i];
      for (int64_t j = 0; j < columns; j++) {
        const double one = number(row[j]);
        sum[j] += one;
        square[j] += one * one;
      }
    }
  }
  GPR_APART void add_rows(const char *x, int64_t across, int64_t rows, int64_t n) {
    for (int64_t j = 0; j < rows; j++, x += across) {
      const auto s = Folder<Var<T>>::small((const T *)(const void *)x, n);
      sum[j] = (double)(int64_t)s.low;
      square[j] = (double)(int64_t)s.square[0];
    }
    for (int64_t j = rows; j % WIDTH; j++) sum[j] = square[j] = 0;
  }
};
/* A vector of results; a bit a lane of those that are not sure. */
template <bool ROOT>
GPR_FN uint64_t finish_exact(const Doubles sum, const Doubles square, double n, double freedom,
                             Doubles *to) {
  const Doubles x = n * square - sum * sum, by = n * freedom - Doubles{}, quotient = x / by;
  *to = quotient;
  if (!ROOT) return 0;
  const Doubles root = root_of(quotient), low = -product_rest(quotient, by, x) / by;
  const Doubles rest = (low - product_rest(root, root, quotient)) * (0.5 / root);
  const Doubles error = 0x1p-40 * size_of(rest) + 0x1p-100 * root, result = root + (rest - error);
  *to = choose((Words)(x == 0), x, result);
  return mask_of((Words)(result != root + (rest + error)) & (Words)(x != 0));
}
template <bool ROOT>
GPR_APART void finish_sums(const double *sum, const double *square, int64_t outputs, int64_t n,
                           const gpr_spread *how, double freedom, double *to) {
  for (int64_t j = 0; j < outputs; j += WIDTH) {
    Doubles result;
    uint64_t unsure =
        finish_exact<ROOT>(load(sum + j), load(square + j), (double)n, freedom, &result);
    memcpy(to + j, &result, (size_t)least((int64_t)WIDTH, outputs - j) * sizeof *to);
    for (int64_t o; unsure; unsure &= unsure - 1)
      if ((o = j + __builtin_ctzll(unsure)) < outputs) {
        const int64_t all = (int64_t)sum[o];
        const QuickMoments s = {{{(uint64_t)all, all >> 63}, {(uint64_t)square[o], 0, 0}}};
        to[o] = s.template spread<double, ROOT>(n, how);
      }
  }
}
/* What a moments' Value is asked, found before. */
template <bool ASKED> struct ToldSpread {
  double value;
  template <class R, bool ROOT> R spread(int64_t, const gpr_spread *) const {
    static_assert(Same<R, double>::value && ROOT == ASKED, "not what was found");
    return value;
  }
};
template <class O, class T> struct Many<O, IntegerMoments<T>> : ManySides<O, IntegerMoments<T>> {
  typedef typename O::Result Result;
  static_assert(Results<O>::value == 1, "");
  /* Of an operator that finishes with anything else there is no quicker way. */
  static int run(const gpr_tile *t, const void *with, void *to) {
    if constexpr (Same<typename FinishedWith<O>::type, gpr_spread>::value)
      return run_spread(t, (const gpr_spread *)with, to);
    else
      return 0;
  }
  static int run_spread(const gpr_tile *t, const gpr_spread *how, void *to) {
    const double freedom = (double)t->n - (how ? how->ddof : 0);
    Result *result = (Result *)to;
    const bool columns = t->across == (int64_t)sizeof(T);
    if (t->counts || (!columns && t->along != (int64_t)sizeof(T))) return 0;
    if (t->n == 1) { /* they are all the same */
      QuickMoments one{};
      O::finish(one, 1, how, result);
      for (int64_t o = 1; o < t->outputs; o++) result[o] = *result;
      return 1;
    }
    if (!(freedom >= 1 && freedom <= (double)t->n && freedom == (double)(int64_t)freedom) ||
        !ExactSums<T>::hold(t))
      return 0;
    ExactSums<T> s;
    double told[COLUMNS];
    for (int64_t o = 0, m; o < t->outputs; o += m) {
      m = strip_of(t->outputs - o, COLUMNS);
      if (columns)
        s.add_columns(panel_of<T>(t).across(o), m);
      else
        s.add_rows(t->data + o * t->across, t->across, m, t->n);
      finish_sums<O::root>(s.sum, s.square, m, t->n, how, freedom, told);
      for (int64_t j = 0; j < m; j++) {
        ToldSpread<O::root> spread = {told[j]};
        O::finish(spread, t->n, how, result + o + j);
      }
    }
    return 1;
  }
};

GPR_CLOSE
