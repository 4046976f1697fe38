/* Variances of many outputs: columns.h's lanes for x, for x² and for what x² leaves over. */
#ifndef GPR_SPREAD_LANES_H
#define GPR_SPREAD_LANES_H

#include "twofold.h"

#include "../core/convert.h"
#include "../core/variance.h"

GPR_OPEN

/* Below this a square's last bits would be below the last of all doubles, above it overflows. */
enum { SQUARE_LEAST = -450, SQUARE_MOST = 500 };

/* Squares of at most GPR_BATCH rows of LANES columns, and their rests; lanes with a number so small
 * that these are not exact are marked as missed. Its own function, for this is where products and
 * sums may be fused. */
GPR_CALL void exact_squares(const double *x, int64_t stride, int64_t rows, double *square,
                            double *rest, Words *missed) {
  const Words least = ((uint64_t)(SQUARE_LEAST + 1023) << 53) - Words{};
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v++) {
      const Doubles d = load(x + row * stride + v * WIDTH), p = d * d;
      const Doubles r = product_rest(d, d, p);
      missed[v] |= (Words)((bits(d) << 1) - 1 < least - 1);
      memcpy(square + row * LANES + v * WIDTH, &p, sizeof p);
      memcpy(rest + row * LANES + v * WIDTH, &r, sizeof r);
    }
}
GPR_FN void exact_squares(const float *x, int64_t stride, int64_t rows, double *square, double *,
                          Words *) {
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v++) {
      const Doubles d = load(x + row * stride + v * WIDTH), p = d * d;
      memcpy(square + row * LANES + v * WIDTH, &p, sizeof p);
    }
}

/* What LANES columns, or LANES parts of one row, have counted. */
template <class R> struct SpreadLanes {
  static constexpr bool halves = sizeof(R) == sizeof(double); /* squares have a rest */
  static constexpr int BELOW = 52;                            /* so far is it below them */
  Lanes sum, square, rest;

  void open(const R *x, int64_t stride, int64_t rows, bool shared) {
    for (int l = 0; l < LANES; l++) sum.top[l] = INT32_MIN / 2;
    raise_tops(sum.top, x, stride, least(rows, (int64_t)GPR_BATCH));
    int highest = sum.top[0];
    for (int l = 1; l < LANES; l++) highest = greatest(highest, sum.top[l]);
    bool beyond[LANES];
    for (int l = 0; l < LANES; l++) {
      int &top = sum.top[l];
      if (shared) top = highest;
      if (rows > GPR_BATCH) top += 2; /* for what comes later */
      beyond[l] = top > SQUARE_MOST;
      top = least(greatest(top, (int)SQUARE_LEAST), (int)SQUARE_MOST);
      square.top[l] = 2 * top;
      rest.top[l] = 2 * top - BELOW;
    }
    open_lanes(sum);
    open_lanes(square);
    open_lanes(rest);
    for (int l = 0; l < LANES; l++) sum.missed[l / WIDTH][l % WIDTH] = beyond[l];
  }
  void add(const R *x, int64_t stride, int64_t rows) {
    double squares[GPR_BATCH * LANES], rests[GPR_BATCH * LANES];
    exact_squares(x, stride, rows, squares, rests, sum.missed);
    add_rows(sum, x, stride, rows);
    add_rows(square, squares, (int64_t)LANES, rows);
    if (halves) add_rows(rest, rests, (int64_t)LANES, rows);
  }
  void run(const R *x, int64_t stride, int64_t rows) {
    open(x, stride, rows, false);
    for (int64_t row = 0; row < rows; row += GPR_BATCH)
      add(x + row * stride, stride, least(rows - row, (int64_t)GPR_BATCH));
  }
  void run_row(const R *x, int64_t n) {
    R tail[LANES] = {};
    const int64_t rows = n / LANES;
    memcpy(tail, x + rows * LANES, (size_t)(n - rows * LANES) * sizeof *x);
    if (rows)
      open(x, LANES, rows, true);
    else
      open(tail, LANES, 1, true);
    for (int64_t row = 0; row < rows; row += GPR_BATCH)
      add(x + row * LANES, LANES, least(rows - row, (int64_t)GPR_BATCH));
    if (n > rows * LANES) add(tail, LANES, 1);
  }
};

/* Of one output: the sum in units of 2^(top − 93), the squares in 2^(2·top − 93), their rest. */
struct SpreadCount {
  __int128 sum, square, rest;
  int top;
  bool missed;
};
static constexpr int FINEST = 103 - 2 * GPR_HEADROOM; /* 93 */

template <class R> GPR_FN SpreadCount spread_of_lane(const SpreadLanes<R> &s, int lane) {
  const Count a = count_of(s.sum, lane), b = count_of(s.square, lane), c = count_of(s.rest, lane);
  SpreadCount r;
  r.sum = ((__int128)a.high << LEVELS) + a.low;
  r.square = ((__int128)b.high << LEVELS) + b.low;
  r.rest = ((__int128)c.high << LEVELS) + c.low;
  r.top = s.sum.top[lane];
  r.missed = a.missed || b.missed || c.missed;
  return r;
}
template <class R> GPR_FN SpreadCount spread_of_row(const SpreadLanes<R> &s) {
  SpreadCount sum = spread_of_lane(s, 0);
  for (int l = 1; l < LANES; l++) {
    const SpreadCount one = spread_of_lane(s, l);
    sum.sum += one.sum;
    sum.square += one.square;
    sum.rest += one.rest;
    sum.missed |= one.missed;
  }
  return sum;
}

GPR_FN void add_spread(Exact &sum, Squares &squares, const SpreadCount &c) {
  deposit_wide(sum, c.sum, c.top - FINEST);
  deposit_wide(squares, c.square, 2 * c.top - FINEST);
  deposit_wide(squares, c.rest, 2 * c.top - SpreadLanes<double>::BELOW - FINEST);
}

/* --- by doubles alone --------------------------------------------------------------------------
 */

/* Plain sums of x and x² in doubles, of LANES columns. */
GPR_FN void plain_moments(const float *x, int64_t stride, int64_t rows, double *sum,
                          double *square) {
  Doubles s[VECTORS] = {}, q[VECTORS] = {};
  for (int64_t row = 0; row < rows; row++)
    for (int v = 0; v < VECTORS; v++) {
      const Doubles d = load(x + row * stride + v * WIDTH);
      s[v] += d;
      q[v] += GPR_PRODUCT(d, d); /* exact: 48 bits */
    }
  memcpy(sum, s, sizeof s);
  memcpy(square, q, sizeof q);
}

/* Of one row. */
GPR_FN void row_moments(const float *x, int64_t n, double *sum, double *square) {
  float rest[LANES] = {};
  double s[LANES], q[LANES], s_rest[LANES], q_rest[LANES];
  memcpy(rest, x + n / LANES * LANES, (size_t)(n % LANES) * sizeof *x);
  plain_moments(x, LANES, n / LANES, s, q);
  plain_moments(rest, LANES, 1, s_rest, q_rest);
  for (int l = 0; l < LANES; l++) s[l] += s_rest[l], q[l] += q_rest[l];
  for (int l = 1; l < LANES; l++) s[0] += s[l], q[0] += q[l];
  *sum = s[0];
  *square = q[0];
}

/* The variance from such sums, if the errors that they may have do not change what it rounds to.
 * With u = 2^-53, sums of n terms are off by less than n·u·Σ|terms|, in (Σx)²/n that is 2n·u·Σx²,
 * and the few operations that follow add some u each. */
template <class T>
GPR_FN bool round_plain(double sum, double square, double n, double freedom, T *to) {
  const double spread = (square - sum * sum / n) / freedom;
  const double error = (4 * n + 16) * 0x1p-53 * square / freedom;
  const T low = convert<T>(spread - error), high = convert<T>(spread + error);
  *to = high;
  return memcmp(&low, &high, sizeof low) == 0 && spread - spread == 0;
}

/* --- 256 bits ----------------------------------------------------------------------------------
 */

struct Words256 {
  uint64_t word[4];
};

/* x += value·2^shift, of shifts below 128. */
GPR_FN void add_shifted(Words256 &x, __int128 value, int shift) {
  const int at = shift / 64, bit = shift % 64;
  const uint64_t low = (uint64_t)value;
  const int64_t high = (int64_t)(value >> 64), sign = high >> 63;
  uint64_t words[4] = {(uint64_t)sign, (uint64_t)sign, (uint64_t)sign, (uint64_t)sign};
  for (int i = 0; i < at; i++) words[i] = 0;
  words[at] = low << bit;
  words[at + 1] = (uint64_t)high << bit | (bit ? low >> (64 - bit) : 0);
  if (at + 2 < 4) words[at + 2] = (uint64_t)(bit ? high >> (64 - bit) : sign);
  uint128 over = 0;
  for (int i = 0; i < 4; i++) {
    over += (uint128)x.word[i] + words[i];
    x.word[i] = (uint64_t)over;
    over >>= 64;
  }
}
GPR_FN void subtract_square(Words256 &x, uint128 root) {
  const uint64_t low = (uint64_t)root, high = (uint64_t)(root >> 64);
  const uint128 middle = (uint128)low * high;
  const uint128 lowest = (uint128)low * low, highest = (uint128)high * high;
  uint128 over = lowest + (middle << 65);
  const uint64_t carry = over < lowest;
  const uint128 rest = highest + (middle >> 63) + carry;
  const uint64_t words[4] = {(uint64_t)over, (uint64_t)(over >> 64), (uint64_t)rest,
                             (uint64_t)(rest >> 64)};
  uint64_t borrow = 0;
  for (int i = 0; i < 4; i++) {
    const uint128 difference = (uint128)x.word[i] - words[i] - borrow;
    x.word[i] = (uint64_t)difference;
    borrow = (uint64_t)(difference >> 64) & 1;
  }
}

/* The variance of an output of n elements, GPR_SHORT at most, with n·(n − ddof) for the divisor. */
GPR_FN Leading spread_of_count(const SpreadCount &c, int64_t n, uint64_t divisor) {
  Words256 x = {{0, 0, 0, 0}};
  add_shifted(x, c.square * n, FINEST);
  add_shifted(x, c.rest * n, FINEST - SpreadLanes<double>::BELOW);
  subtract_square(x, c.sum < 0 ? -(uint128)c.sum : (uint128)c.sum);
  bool negative; /* never */
  return over(leading_of(x.word, 4, 2 * c.top - 2 * FINEST, negative), divisor);
}

GPR_CLOSE
#endif
