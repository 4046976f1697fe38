/* Exact sums of lanes in two doubles each: blocks of rows whose exponents lie so close together
 * that nothing can be lost, and then as many blocks as lose nothing. What lies further apart is for
 * others: levels.h. */
#ifndef GPR_NEAR_H
#define GPR_NEAR_H

#include "sizes.h"
#include "twofold.h"

#include "../core/variance.h"

GPR_OPEN

/* Of a block. Its reals are as many as a batch's. */
enum { NEAR_ROWS = 64 };
static_assert(NEAR_ROWS * STEP == REALS, "");

/* Sums of STEP lanes of reals and, if they are wanted, of their squares: kinds of sums, of which of
 * doubles the third is of what their squares are rounded by. */
template <class R, bool SQUARES> struct NearSums {
  static constexpr bool narrow = sizeof(R) < sizeof(double);
  enum { KINDS = SQUARES ? narrow ? 2 : 3 : 1 };
  Twofold<Doubles> sum[KINDS][2];
  void open() { memset((void *)sum, 0, sizeof sum); }
  /* Vector by vector, where GCC would copy bytes. */
  GPR_METHOD void take(const NearSums &other) {
    for (int i = 0; i < 2 * KINDS; i++) sum[i / 2][i % 2] = other.sum[i / 2][i % 2];
  }
};

/* Of a block. With n = NEAR_ROWS numbers of p bits below 2^(e+1), a plain sum is exact where their
 * exponents are at most 53 - p - log2 n below e. What twofold sums of squares lose is below
 * n²·2^(2e-52), and a multiple of the last bit of the least's. */
template <class R, bool SQUARES> struct NearBlock : NearSums<R, SQUARES> {
  enum { RANGE = 23 };
  Sizes<R> sizes;

  void forget() {}
  void open() {
    NearSums<R, SQUARES>::open();
    sizes = Sizes<R>();
  }
  GPR_METHOD void add(const R *x, int64_t stride, int64_t rows, int64_t ahead) {
    NearBlock b = *this;
    for (int64_t row = 0; row < rows; row++) {
      const R *at = x + row * stride;
      prefetch_later<STEP>(at, ahead);
      b.sizes.see(at);
      for (int k = 0; k < 2; k++) {
        const Doubles d = load(at + k * WIDTH);
        b.sum[0][k].high += d;
        if constexpr (SQUARES) b.sum[1][k].add(GPR_PRODUCT(d, d));
      }
    }
    *this = b;
  }
  /* Whether the sums are exact. */
  GPR_METHOD bool close(const R *, int64_t, int64_t) {
    const Doubles all = this->sum[0][0].high + this->sum[0][1].high; /* NaN have no size */
    return !mask_of((Words)(all != all)) && sizes.are_near(RANGE);
  }
};

/* Of doubles, which lie below a lane's `top`. Each sum starts so high that it keeps one unit, and
 * what an addition loses takes three operations (Dekker). Of n = 64 such losses, half a unit at
 * most and multiples of the last bit of the least number, or of its square, the plain sum is exact
 * where the least is not below top / 2^RANGE. The top is that of the blocks before, so that numbers
 * are read once as long as they fit. */
static_assert(NEAR_ROWS == 64, "");
template <bool SQUARES> struct NearBlock<double, SQUARES> : NearSums<double, SQUARES> {
  typedef NearSums<double, SQUARES> Sums;
  enum { RANGE = SQUARES ? 21 : 41 };
  /* Rests of squares are not below the last of all doubles, nor do sums overflow. */
  static constexpr double LEAST = SQUARES ? 0x1p-429 : 0x1p-1021;
  static constexpr double MOST = SQUARES ? 0x1p500 : 0x1p1015;
  static constexpr double DOWN = 1 / (double)(INT64_C(1) << RANGE);
  Sizes<double> sizes;
  Doubles top[2];
  bool known; /* top, by the blocks before or by the first rows */
  bool zeros; /* there were some: the least is sought without them from then on */

  void forget() { known = zeros = false; }
  /* Sums of both signs stay within a half of a binade, those of squares within one. */
  GPR_METHOD Doubles start_of(int kind, int k) const {
    const Doubles t = top[k], square = t * t;
    return kind == 0 ? t * 0x1.8p7 : kind == 1 ? square * 0x1p6 : square * 0x1.8p-47;
  }
  GPR_METHOD void start() {
    for (int i = 0; i < 2 * Sums::KINDS; i++)
      this->sum[i / 2][i % 2] = {start_of(i / 2, i % 2), Doubles{}};
  }
  void open() {
    if (known) start();
    sizes = Sizes<double>();
  }
  GPR_APART void look(const double *x, int64_t stride, int64_t rows) {
    top[0] = top[1] = Doubles{};
    for (int64_t row = 0; row < rows; row++)
      for (int k = 0; k < 2; k++) sizes.see_but_zero(load(x + row * stride + k * WIDTH), k);
    known = true;
    move();
    start();
  }
  GPR_METHOD void add(const double *x, int64_t stride, int64_t rows, int64_t ahead) {
    enum { FIRST = 4 };
    if (!known) look(x, stride, least(rows, (int64_t)FIRST));
    return zeros ? add<true>(x, stride, rows, ahead) : add<false>(x, stride, rows, ahead);
  }
  template <bool ZEROS>
  GPR_METHOD void add(const double *x, int64_t stride, int64_t rows, int64_t ahead) {
    Sums b;
    Sizes<double> seen = sizes;
    b.take(*this);
    for (int64_t row = 0; row < rows; row++) {
      const double *at = x + row * stride;
      prefetch_later<STEP>(at, ahead);
      for (int k = 0; k < 2; k++) {
        const Doubles d = load(at + k * WIDTH);
        if (ZEROS)
          seen.see_but_zero(d, k);
        else
          seen.see(d, k);
        b.sum[0][k].add_below(d);
        if constexpr (SQUARES) {
          const Doubles square = GPR_PRODUCT(d, d);
          b.sum[1][k].add_below(square);
          b.sum[2][k].add_below(product_rest(d, d, square));
        }
      }
    }
    sizes = seen;
    this->take(b);
  }
  GPR_METHOD void leave_zeros_out(const double *x, int64_t stride, int64_t rows) {
    for (int k = 0; k < 2; k++)
      if (mask_of((Words)(sizes.least[k] == 0))) {
        zeros = true;
        sizes.least[k] = Sizes<double>::least_of(x + k * WIDTH, stride, rows);
      }
  }
  GPR_METHOD Words fits(int k, const Doubles t) const {
    return (Words)(sizes.most[k] < t) & (Words)(sizes.least[k] >= t * DOWN);
  }
  GPR_METHOD bool is_near() const { return !mask_of(~(fits(0, top[0]) & fits(1, top[1]))); }
  /* To the numbers of this block, with room above them where there is. */
  GPR_METHOD bool move() {
    for (int k = 0; k < 2; k++) {
      Doubles own = 2.0 * (Doubles)(bits(sizes.most[k]) & (UINT64_C(0x7ff) << 52));
      own = choose((Words)(own < LEAST), LEAST - Doubles{}, own);
      if (mask_of((Words)(own > MOST))) return false;
      const Doubles above = 4.0 * own;
      own = choose(fits(k, above) & (Words)(above <= MOST), above, own);
      top[k] = choose(fits(k, top[k]), top[k], own);
    }
    return is_near();
  }
  GPR_APART bool add_again(const double *x, int64_t stride, int64_t rows) {
    if (!move()) return false;
    start();
    add(x, stride, rows, 0);
    return true;
  }
  /* Whether the sums are exact, if need be after a second look at these rows. */
  GPR_METHOD bool close(const double *x, int64_t stride, int64_t rows) {
    leave_zeros_out(x, stride, rows);
    if (!is_near() && !add_again(x, stride, rows)) return false;
    for (int i = 0; i < 2 * Sums::KINDS; i++)
      this->sum[i / 2][i % 2].high -= start_of(i / 2, i % 2);
    const Doubles all = this->sum[0][0].high + this->sum[0][1].high; /* NaN have no size */
    return !mask_of((Words)(all != all));
  }
};

/* Of as many blocks as lose nothing; then what there is goes to put(lane, kind, a double). */
template <class R, bool SQUARES> struct NearLanes : NearSums<R, SQUARES> {
  typedef NearSums<R, SQUARES> Sums;
  using Sums::KINDS;

  template <class Put> void add(const Sums &block, const Put &put) {
    Sums both;
    Words lost = {};
    for (int i = 0; i < 2 * KINDS; i++) {
      const Twofold<Doubles> a = this->sum[i / 2][i % 2], b = block.sum[i / 2][i % 2];
      const Doubles high = a.high + b.high, error = rounding_error(a.high, b.high, high);
      const Doubles some = a.low + b.low, low = some + error;
      lost |= (Words)(some - a.low != b.low) | (Words)(some - b.low != a.low);
      lost |= (Words)(low - some != error) | (Words)(low - error != some);
      both.sum[i / 2][i % 2] = {high, low};
    }
    if (mask_of(lost)) {
      flush(put);
      return this->take(block);
    }
    this->take(both);
  }
  template <class Put> void flush(const Put &put) {
    double value[4 * WIDTH];
    for (int kind = 0; kind < KINDS; kind++) {
      memcpy(value, (const void *)this->sum[kind], sizeof value);
      for (int i = 0; i < 4 * WIDTH; i++)
        if (value[i] != 0) put(i / (2 * WIDTH) * WIDTH + i % WIDTH, kind, value[i]);
    }
    this->open();
  }
};

/* A double as it is: a sum of squares. */
GPR_FN void deposit(Squares &s, double x) {
  int exponent;
  uint32_t special = 0;
  if (const int64_t m = mantissa(x, exponent, special)) deposit(s, m, exponent);
}

/* n contiguous reals. Far takes those of a batch that lie far apart, and puts; after such ones more
 * go there at once. */
template <bool SQUARES, class Far, class Part>
static void add_near(Far &far, const Part *x, int64_t n) {
  typedef typename Traits<Part>::Wide R;
  enum { WAIT_MOST = 64 };
  const auto put = [&](int lane, int kind, double value) { far.put(lane, kind, value); };
  alignas(GPR_VECTOR) R batch[REALS];
  NearBlock<R, SQUARES> block;
  NearLanes<R, SQUARES> lanes;
  int64_t wait = 0, turn = 1;
  lanes.open();
  block.forget();
  for (int64_t i = 0; i < n && !far.is_settled(); i += REALS) {
    const int64_t m = least(n - i, REALS), rows = (m + STEP - 1) / STEP;
    const R *at = batch;
    if constexpr (sizeof(R) == sizeof(Part))
      if (m == REALS) at = x + i;
    if (wait-- <= 0) {
      if (at == batch) copy_wide(x + i, batch, m);
      for (int64_t j = m; j < rows * STEP; j++) batch[j] = 0;
      block.open();
      block.add(at, STEP, rows, gpr_prefetch_ahead / (int64_t)sizeof(R));
      if (block.close(at, STEP, rows)) {
        lanes.add(block, put);
        turn = 1;
        continue;
      }
      wait = turn;
      turn = least(2 * turn, (int64_t)WAIT_MOST);
    }
    far.add(x + i, m);
  }
  lanes.flush(put);
  far.flush();
}

GPR_CLOSE
#endif
