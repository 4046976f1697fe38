/* Exact sums of lanes in two doubles each: blocks of rows whose exponents lie so close together
 * that nothing can be lost, and then as many blocks as lose nothing. What lies further apart is for
 * others: levels.h. */
#ifndef GPR_NEAR_H
#define GPR_NEAR_H

#include "twofold.h"

#include "../core/variance.h"

GPR_OPEN

/* Of a block. Its reals are as many as a batch's. */
enum { NEAR_ROWS = 64 };
static_assert(NEAR_ROWS * STEP == REALS, "");

/* The greater and the smaller magnitude; of NaN either. */
GPR_FN Doubles greater_size(const Doubles a, const Doubles b) {
#if defined(__AVX512DQ__) /* the unmasked one warns */
  return (Doubles)_mm512_maskz_range_pd(0xff, (__m512d)a, (__m512d)b, 11);
#elif defined(__AVX2__)
  return (Doubles)_mm256_max_pd((__m256d)a, (__m256d)size_of(b));
#else
  return choose((Words)(size_of(b) > a), size_of(b), a);
#endif
}
GPR_FN Doubles smaller_size(const Doubles a, const Doubles b) {
#if defined(__AVX512DQ__)
  return (Doubles)_mm512_maskz_range_pd(0xff, (__m512d)a, (__m512d)b, 10);
#elif defined(__AVX2__)
  return (Doubles)_mm256_min_pd((__m256d)a, (__m256d)size_of(b));
#else
  return choose((Words)(size_of(b) < a), size_of(b), a);
#endif
}

/* The magnitudes of a block's lanes. are_near(): whether those that are not zero have exponents'
 * fields `range` apart at most, and within bounds; x: the block. */
template <class R> struct Sizes;
template <> struct Sizes<float> {
  static constexpr uint32_t INFINITE = 0xff000000u;
  Words32 most = {}, least = ~Words32{}; /* shifted; less one, so that zero is not the least */
  GPR_METHOD void see(const float *at) {
    Words32 size;
    memcpy(&size, at, sizeof size);
    size += size;
    most = most > size ? most : size;
    size -= 1;
    least = least < size ? least : size;
  }
  GPR_METHOD bool are_near(int range, int, int, const float *, int64_t, int64_t) const {
    const Words32 high = most & INFINITE, low = (least + 1) & INFINITE;
    return !mask_of((Words32)((high - low > (uint32_t)range << 24) & (high > low)) |
                    (Words32)(high == INFINITE));
  }
  /* Lanes of such, or with an infinity; but none with NaN. */
  GPR_METHOD Words32 far_apart(int range) const {
    const Words32 apart = (most & INFINITE) - ((least + 1) & INFINITE);
    const Words32 far = (Words32)((apart > (uint32_t)range << 24) & (most > least));
    return (far | (Words32)(most == INFINITE)) & (Words32)(most <= INFINITE);
  }
};
template <> struct Sizes<double> {
  Doubles most[2] = {}, least[2] = {Doubles{} + __builtin_inf(), Doubles{} + __builtin_inf()};
  GPR_METHOD void see(const Doubles d, int k) {
    most[k] = greater_size(most[k], d);
    least[k] = smaller_size(least[k], d);
  }
  GPR_METHOD void see_but_zero(const Doubles d, int k) {
    const Words none = (Words)(d == 0) & bits(__builtin_inf() - Doubles{});
    most[k] = greater_size(most[k], d);
    least[k] = smaller_size(least[k], (Doubles)(bits(d) | none));
  }
  /* The least that is not zero, where one is. */
  GPR_APART static Doubles least_of(const double *x, int64_t stride, int64_t rows) {
    Doubles least = Doubles{} + __builtin_inf();
    for (int64_t row = 0; row < rows; row++) {
      const Doubles d = load(x + row * stride);
      least = smaller_size(least, choose((Words)(d == 0), Doubles{} + __builtin_inf(), d));
    }
    return least;
  }
  GPR_METHOD bool are_near(int range, int lowest, int highest, const double *x, int64_t stride,
                           int64_t rows) const {
    Counts far = {};
    for (int k = 0; k < 2; k++) {
      const bool zeros = mask_of((Words)(least[k] == 0));
      const Counts high = (Counts)most[k] >> 52;
      const Counts low = (Counts)(zeros ? least_of(x + k * WIDTH, stride, rows) : least[k]) >> 52;
      far |= (Counts)(most[k] != 0) & ((Counts)(high - low > range) | (Counts)(low < lowest));
      far |= (Counts)(high > highest);
    }
    return !mask_of(far);
  }
};

/* Sums of STEP lanes of reals and, if they are wanted, of their squares: kinds of sums, of which of
 * doubles the third is of what their squares are rounded by. */
template <class R, bool SQUARES> struct NearSums {
  static constexpr bool narrow = sizeof(R) < sizeof(double);
  enum { KINDS = SQUARES ? narrow ? 2 : 3 : 1 };
  Twofold<Doubles> sum[KINDS][2];
  void open() { memset((void *)sum, 0, sizeof sum); }
};

/* Of a block. */
template <class R, bool SQUARES> struct NearBlock : NearSums<R, SQUARES> {
  typedef NearSums<R, SQUARES> Sums;
  using Sums::narrow;
  /* With n = NEAR_ROWS numbers of p bits below 2^(e+1), a plain sum is exact where their exponents
   * are at most 53 - p - log2 n below e. What twofold sums lose is below n²·2^(e-52), and a
   * multiple of the last bit of the least; of squares both exponents count twice, and of doubles,
   * of which every product is two, the first is the nearer one. */
  enum { RANGE = narrow ? 23 : SQUARES ? 20 : 41 };
  enum { LOWEST = SQUARES ? 1023 - 450 : 0, HIGHEST = SQUARES ? 1023 + 500 : 2046 - 8 };
  Sizes<R> sizes;

  void open() {
    Sums::open();
    sizes = Sizes<R>();
  }
  GPR_METHOD void add(const R *x, int64_t stride, int64_t rows, int64_t ahead) {
    NearBlock b = *this;
    for (int64_t row = 0; row < rows; row++) {
      const R *at = x + row * stride;
      prefetch_later<STEP>(at, ahead);
      if constexpr (narrow) b.sizes.see(at);
      for (int k = 0; k < 2; k++) {
        const Doubles d = load(at + k * WIDTH);
        if constexpr (narrow) {
          b.sum[0][k].high += d;
        } else {
          b.sizes.see(d, k);
          b.sum[0][k].add(d);
        }
        if constexpr (SQUARES) {
          const Doubles square = GPR_PRODUCT(d, d);
          b.sum[1][k].add(square);
          if constexpr (!narrow) b.sum[2][k].add(product_rest(d, d, square));
        }
      }
    }
    *this = b;
  }
  /* Of these rows. */
  GPR_METHOD bool is_exact(const R *x, int64_t stride, int64_t rows) const {
    const Doubles all = this->sum[0][0].high + this->sum[0][1].high; /* NaN have no size */
    return !mask_of((Words)(all != all)) && sizes.are_near(RANGE, LOWEST, HIGHEST, x, stride, rows);
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
      lost |= (Words)(rounding_error(a.low, b.low, some) != 0);
      lost |= (Words)(rounding_error(some, error, low) != 0);
      both.sum[i / 2][i % 2] = {high, low};
    }
    if (mask_of(lost)) {
      flush(put);
      both = block;
    }
    (Sums &)*this = both;
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
      if (block.is_exact(at, STEP, rows)) {
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
