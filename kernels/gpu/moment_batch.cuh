/* Σx and Σx² of a batch of numbers in doubles that nothing is rounded in.
 *
 * The greatest and the least exponent of the batch are read off its bits. The greatest one places
 * windows, doubles of 1.5·2^k to which the squares are added: what the first one does not hold is
 * the second one's, and so on. The least one tells whether the last window holds all that comes to
 * it, so that no addition needs a check of its own. */
#pragma once

#include "batch.cuh"

GPR_OPEN

/* --- windows ---------------------------------------------------------------------------------- */

/* COUNT of them for 2^h squares of numbers below 2^top. MORE of them, from the second on, are a bit
 * wider than the one before, since they take what two additions leave. */
template <int h, int COUNT, int MORE = 0> struct SquareWindows {
  static constexpr int squares = COUNT;
  double window[COUNT];
  int top;
  GPR_DEVICE double start_square(int level) const {
    return window_start(2 * top + h + 1 + level * (h - 52) + (level < MORE ? level : MORE));
  }
  GPR_DEVICE void open_squares(int place) {
    top = place;
    GPR_EACH(i, COUNT) window[i] = start_square(i);
  }
  /* What the first window leaves of x²: by fused operations that are exact, of a rest of 48 bits.
   */
  GPR_DEVICE double rest_of_square(double x) {
    const double t = fma(x, x, window[0]), q = t - window[0];
    window[0] = t;
    return fma(x, x, -q);
  }
  GPR_DEVICE double square(int level) const { return window[level] - start_square(level); }
};
/* And two for their sum. */
template <int h, int COUNT, int MORE = 0> struct BothWindows : SquareWindows<h, COUNT, MORE> {
  static constexpr int sums = 2;
  double x[2];
  GPR_DEVICE double start_x(int level) const {
    return window_start(this->top + h + 1 + level * (h - 52));
  }
  GPR_DEVICE void open(int place) {
    this->open_squares(place);
    GPR_EACH(i, 2) x[i] = start_x(i);
  }
  GPR_DEVICE void add_sum(double number) { x[1] += rest_of(x[0], number); }
  GPR_DEVICE double sum(int level) const { return x[level] - start_x(level); }
};

/* --- floats, and what fits them --------------------------------------------------------------- */

/* How far the exponents of a batch may lie apart: 2·PRECISION bits of each square, 2·spread, and
 * 2·HEADROOM in the windows' 103. A plain sum of x then is exact too. */
GPR_CONSTEXPR int spread_most(int precision, int headroom) { return 51 - precision - headroom; }
enum { NO_SPREAD = 1 << 20 }; /* of what is not finite, or lies too far up */

template <int PRECISION, int N> struct FloatBatch : FloatSizes, SquareWindows<log2_up(N), 2> {
  static constexpr int sums = 1, headroom = log2_up(N), spread = spread_most(PRECISION, headroom);
  static_assert(headroom < 12, "");
  double total;
  int apart; /* exponents lie so far apart: since open() */
  GPR_DEVICE FloatBatch() : total(0) {}
  /* Whether sums will be exact of what was seen, none of which was added yet. */
  GPR_DEVICE bool open() {
    const int high = (int)(bits(most) >> 23 & 0xff), low = (int)(least >> 24);
    apart = high == 255 ? (int)NO_SPREAD : high - (low ? low : 1);
    this->open_squares(high - 126);
    return apart <= spread;
  }
  GPR_DEVICE void add(float x) {
    const double d = x;
    total += d;
    this->window[1] += this->rest_of_square(d);
  }
  GPR_DEVICE double sum(int) const { return total; }
};

/* The same in a window more for the squares, and two for the sum, of floats whose exponents lie
 * further apart: lognormal ones with a sigma of 5. */
template <int PRECISION, int N> struct WideFloats : BothWindows<log2_up(N), 3> {
  static constexpr int spread = (155 - 3 * log2_up(N) - 2 * PRECISION) >> 1;
  GPR_DEVICE void add(double x) {
    this->add_sum(x);
    this->window[2] += rest_of(this->window[1], this->rest_of_square(x));
  }
};

/* --- doubles ---------------------------------------------------------------------------------- */

/* x² = p + e. p goes to windows 1 and 2, e to 2 and 3; x to two of its own. */
template <int N> struct DoubleBatch : BothWindows<log2_up(N), 3, 1> {
  /* Exponents as stored: e is exact of far less than half of the lower, p finite of the upper. */
  enum { LEAST = 600, MOST = 1500 };
  uint32_t most, least;
  int apart; /* as FloatBatch's */
  GPR_DEVICE DoubleBatch() : most(0), least(0xffffffffu) {}
  GPR_DEVICE void see(double x) {
    const uint32_t size = (uint32_t)(bits(x) >> 32) & 0x7fffffffu;
    const uint32_t key = (uint32_t)((2 * bits(x) - 1) >> 32);
    most = most < size ? size : most;
    least = least < key ? least : key;
  }
  /* Unless all of its payload is in the lower word: then it passes for infinite. */
  GPR_DEVICE bool is_nan() const { return most > 0x7ff00000u; }
  /* p's last bit is in window 2's 2^(2·top+2h-102), e's in window 3's 2^(2·top+3h-154). */
  GPR_DEVICE bool open() {
    const int found = (int)(most >> 20), low = (int)(least >> 21);
    const int high = found < LEAST ? (int)LEAST : found;
    BothWindows<log2_up(N), 3, 1>::open(high - 1022);
    apart = high <= MOST ? high - low : (int)NO_SPREAD;
    return apart <= (48 - 3 * log2_up(N)) >> 1;
  }
  GPR_DEVICE void add(double x) {
    this->add_sum(x);
    const double p = x * x, e = product_error(x, x, p);
    this->window[1] += rest_of(this->window[0], p);
    this->window[2] += rest_of(this->window[1], e);
  }
};

/* The same in a window more for the squares, each of which takes what both p and e leave of the one
 * before. e's last bit is in the last one's 2^(2·top+4h-204). */
template <int N> struct WideDoubles : BothWindows<log2_up(N), 4, 4> {
  static constexpr int spread = 49 - 2 * log2_up(N);
  GPR_DEVICE void add(double x) {
    double(&s)[4] = this->window;
    this->add_sum(x);
    const double p = x * x, e = product_error(x, x, p);
    const double left = rest_of(s[1], rest_of(s[0], p)), rest = rest_of(s[1], e);
    s[3] += rest_of(s[2], left);
    s[3] += rest_of(s[2], rest);
  }
};

/* By the type that elements are stored in. */
template <class T, int N> struct MomentBatch : FloatBatch<Format<T>::precision, N> {};
template <int N> struct MomentBatch<double, N> : DoubleBatch<N> {};
template <class T, int N> struct WideBatch : WideFloats<Format<T>::precision, N> {};
template <int N> struct WideBatch<double, N> : WideDoubles<N> {};

GPR_CLOSE
