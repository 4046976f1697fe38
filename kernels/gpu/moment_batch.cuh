/* Σx and Σx² of a batch of numbers in doubles that nothing is rounded in.
 *
 * The greatest and the least exponent of the batch are read off its bits. The greatest one places
 * windows, doubles of 1.5·2^k to which the squares are added: what the first one does not hold is
 * the second one's, and so on. The least one tells whether the last window holds all that comes to
 * it, so that no addition needs a check of its own. */
#pragma once

#include "batch.cuh"

GPR_OPEN

/* --- floats, and what fits them --------------------------------------------------------------- */

/* Two windows of squares, which fused operations add to as if they were exact: they are, of a rest
 * of 48 bits. For squares below 2^(2·top) and 2^HEADROOM of them. */
template <int HEADROOM> struct SquareWindows {
  double first, second;
  static GPR_METHOD int place(int top, int level) {
    return 2 * top + HEADROOM + 1 + level * (HEADROOM - 52);
  }
  static GPR_METHOD double start(int top, int level) { return window_start(place(top, level)); }
  GPR_METHOD void open(int top) {
    first = start(top, 0);
    second = start(top, 1);
  }
  GPR_METHOD void add(double x) {
    const double t = fma(x, x, first), q = t - first;
    second += fma(x, x, -q);
    first = t;
  }
};

/* How far the exponents of a batch may lie apart: 2·PRECISION bits of each square, 2·spread, and
 * 2·HEADROOM in the windows' 103. A plain sum of x then is exact too. */
GPR_CONSTEXPR int spread_most(int precision, int headroom) { return 51 - precision - headroom; }
enum { NO_SPREAD = 1 << 20 }; /* of what is not finite, or lies too far up */

template <int PRECISION, int N> struct FloatBatch : FloatSizes {
  static constexpr int sums = 1, squares = 2, headroom = log2_up(N),
                       spread = spread_most(PRECISION, headroom);
  static_assert(headroom < 12, "");
  SquareWindows<headroom> window;
  double total;
  int top, apart; /* 2^top is above all, exponents lie so far apart: since open() */
  GPR_DEVICE FloatBatch() : total(0) {}
  /* Whether sums will be exact of what was seen, none of which was added yet. */
  GPR_DEVICE bool open() {
    const int high = (int)(bits(most) >> 23 & 0xff), low = (int)(least >> 24);
    top = high - 126;
    apart = high == 255 ? (int)NO_SPREAD : high - (low ? low : 1);
    window.open(top);
    return apart <= spread;
  }
  GPR_DEVICE void add(float x) {
    const double d = x;
    total += d;
    window.add(d);
  }
  GPR_DEVICE double sum(int) const { return total; }
  GPR_DEVICE double square(int level) const {
    return (level ? window.second : window.first) - window.start(top, level);
  }
};

/* Two windows of sums of numbers below 2^top, and 2^h of them. */
template <int h> struct SumWindows {
  double x1, x2;
  int top;
  GPR_DEVICE double start_x(int level) const {
    return window_start(top + h + 1 + level * (h - 52));
  }
  GPR_DEVICE void open_sum(int place) {
    top = place;
    x1 = start_x(0);
    x2 = start_x(1);
  }
  GPR_DEVICE void add_sum(double x) { x2 += rest_of(x1, x); }
  GPR_DEVICE double sum(int level) const { return (level ? x2 : x1) - start_x(level); }
};

/* The same in a window more for the squares, and two for the sum, of floats whose exponents lie
 * further apart: lognormal ones with a sigma of 5. */
template <int PRECISION, int N> struct WideFloats : SumWindows<log2_up(N)> {
  static constexpr int sums = 2, squares = 3, h = log2_up(N);
  static constexpr int spread = (155 - 3 * h - 2 * PRECISION) >> 1;
  SquareWindows<h> window;
  double third;
  GPR_DEVICE double start_third() const { return window.start(this->top, 2); }
  GPR_DEVICE void open(int place) {
    this->open_sum(place);
    window.open(place);
    third = start_third();
  }
  GPR_DEVICE void add(double x) {
    this->add_sum(x);
    const double t = fma(x, x, window.first), q = t - window.first;
    window.first = t;
    third += rest_of(window.second, fma(x, x, -q));
  }
  GPR_DEVICE double square(int level) const {
    return level == 2 ? third - start_third()
                      : (level ? window.second : window.first) - window.start(this->top, level);
  }
};

/* --- doubles ---------------------------------------------------------------------------------- */

/* x² = p + e. p goes to windows 1 and 2, e to 2 and 3; x to two of its own. */
template <int N> struct DoubleBatch : SumWindows<log2_up(N)> {
  static constexpr int sums = 2, squares = 3, h = log2_up(N);
  /* Exponents as stored: e is exact of far less than half of the lower, p finite of the upper. */
  enum { LEAST = 600, MOST = 1500 };
  double s1, s2, s3;
  uint32_t most, least;
  int apart; /* as FloatBatch's */
  GPR_DEVICE DoubleBatch() : most(0), least(0xffffffffu) {}
  GPR_DEVICE void see(double x) {
    const uint32_t size = (uint32_t)(bits(x) >> 32) & 0x7fffffffu;
    const uint32_t key = (uint32_t)((2 * bits(x) - 1) >> 32);
    most = most < size ? size : most;
    least = least < key ? least : key;
  }
  GPR_DEVICE double start_square(int level) const {
    /* One bit more in the second, which takes of both p and e. */
    return window_start(2 * this->top + h + 1 + level * (h - 52) + (level > 0));
  }
  /* Unless all of its payload is in the lower word: then it passes for infinite. */
  GPR_DEVICE bool is_nan() const { return most > 0x7ff00000u; }
  /* p's last bit is in window 2's 2^(2·top+2h-102), e's in window 3's 2^(2·top+3h-154). */
  GPR_DEVICE bool open() {
    const int found = (int)(most >> 20), low = (int)(least >> 21);
    const int high = found < LEAST ? (int)LEAST : found;
    this->open_sum(high - 1022);
    s1 = start_square(0);
    s2 = start_square(1);
    s3 = start_square(2);
    apart = high <= MOST ? high - low : (int)NO_SPREAD;
    return apart <= (48 - 3 * h) >> 1;
  }
  GPR_DEVICE void add(double x) {
    this->add_sum(x);
    const double p = x * x, e = product_error(x, x, p);
    s2 += rest_of(s1, p);
    s3 += rest_of(s2, e);
  }
  GPR_DEVICE double square(int level) const {
    return (level == 0 ? s1 : level == 1 ? s2 : s3) - start_square(level);
  }
};

/* The same in a window more for the squares, each of which takes what both p and e leave of the one
 * before: a bit more for those. e's last bit is in the last one's 2^(2·top+4h-204). */
template <int N> struct WideDoubles : SumWindows<log2_up(N)> {
  static constexpr int sums = 2, squares = 4, h = log2_up(N), spread = 49 - 2 * h;
  double s[squares];
  GPR_DEVICE double start_square(int level) const {
    return window_start(2 * this->top + h + 1 + level * (h - 51));
  }
  GPR_DEVICE void open(int place) {
    this->open_sum(place);
    GPR_EACH(i, squares) s[i] = start_square(i);
  }
  GPR_DEVICE void add(double x) {
    this->add_sum(x);
    const double p = x * x, e = product_error(x, x, p);
    const double left = rest_of(s[1], rest_of(s[0], p)), rest = rest_of(s[1], e);
    s[3] += rest_of(s[2], left);
    s[3] += rest_of(s[2], rest);
  }
  GPR_DEVICE double square(int level) const { return s[level] - start_square(level); }
};

/* By the type that elements are stored in. */
template <class T, int N> struct MomentBatch : FloatBatch<Format<T>::precision, N> {};
template <int N> struct MomentBatch<double, N> : DoubleBatch<N> {};
template <class T, int N> struct WideBatch : WideFloats<Format<T>::precision, N> {};
template <int N> struct WideBatch<double, N> : WideDoubles<N> {};

GPR_CLOSE
