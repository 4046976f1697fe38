/* Exact sums of numbers, and of their squares, by slices: of numbers below a power of two some bits
 * each, whose sums are exact in doubles, and so are those of their products. Idea: error-free
 * extraction (Rump, Ogita, Oishi, "Accurate floating-point summation", 2008), and products of what
 * it leaves (Ozaki and others, "Error-free transformations of matrix multiplication", 2012). */
#ifndef GPR_SLICES_H
#define GPR_SLICES_H

#include "sizes.h"
#include "step_blocks.h"

GPR_OPEN

/* A sum that knows what it loses. */
template <class D> struct TrackedSum : TwofoldSum<D> {
  template <bool NARROW> GPR_METHOD void add(const D x) { this->add_exactly(x); }
  GPR_METHOD void settle(double) {}
};
/* With sums of squares, as one or, of doubles, whose squares have twice as many bits, as two, of
 * which the second has what the first loses and what is far below it. */
template <int SQUARES> struct Tracked {
  template <class D> struct Moments : TrackedSum<D> {
    TwofoldSum<D> square[SQUARES];

    GPR_METHOD void open() {
      TwofoldSum<D>::open();
      for (int i = 0; i < SQUARES; i++) square[i].open();
    }
    GPR_METHOD void add_square(const D x) {
      Twofold<D> &sum = square[0].sum;
      const D high = sum.high + x, lost = rounding_error(sum.high, x, high);
      sum.high = high;
      add_below(lost);
    }
    GPR_METHOD void add_below(const D x) {
      Twofold<D> &sum = square[0].sum;
      const D low = sum.low + x;
      if constexpr (SQUARES == 1)
        square[0].errors += size_of(rounding_error(sum.low, x, low));
      else
        square[1].add_exactly(rounding_error(sum.low, x, low));
      sum.low = low;
    }
    template <bool NARROW> GPR_METHOD void add(const D x) {
      const D product = GPR_PRODUCT(x, x);
      this->add_exactly(x);
      add_square(product);
      if constexpr (!NARROW) {
        const Words low = (Words)(product < 0x1p-900) & (Words)(x != 0); /* whose rest underflows */
        square[1].add_exactly(product_rest(x, x, product));
        square[1].errors += (Doubles)(low & bits(1 - Doubles{}));
      }
    }
    GPR_METHOD void merge(const Moments &other) {
      TwofoldSum<D>::merge(other);
      add_square(other.square[0].sum.high);
      add_below(other.square[0].sum.low);
      square[0].errors += other.square[0].errors;
      if constexpr (SQUARES > 1) square[1].merge(other.square[1]);
    }
  };
};

/* a + b·c of an exact product. */
GPR_FN Doubles add_product(const Doubles a, const Doubles b, const Doubles c) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_fmadd_pd((__m512d)b, (__m512d)c, (__m512d)a);
#elif defined(__FMA__) && defined(__AVX2__)
  return (Doubles)_mm256_fmadd_pd((__m256d)b, (__m256d)c, (__m256d)a);
#else
  return a + GPR_PRODUCT(b, c);
#endif
}

/* Of BLOCK_ROWS numbers a lane. Squares: slices of 24 bits, whose products' sums have 53. */
template <int SLICES, bool SQUARES> struct Slices {
  enum { PRODUCTS = SQUARES ? SLICES * (SLICES + 1) / 2 : 1, BITS = SQUARES ? 24 : 45 };
  Doubles sum[SLICES], product[PRODUCTS];

  /* What a slice's sum starts from: its last bit counts what the slice counts. */
  static GPR_METHOD Doubles start(int slice, const Doubles above) {
    return 1.5 * power_of_two(52 + 1 - BITS * (slice + 1)) * above;
  }
  GPR_METHOD void open(const Doubles above) {
    for (int i = 0; i < SLICES; i++) sum[i] = start(i, above);
    for (int i = 0; i < PRODUCTS; i++) product[i] = Doubles{};
  }
  /* Bits of what no slice holds, beside the sign of a zero. Without loops, for which GCC 12 would
   * keep the sums in memory. */
  GPR_METHOD Words add(const Doubles x, Doubles &most) {
    most = greater_size(most, x);
    return add(x, LanesTo<SLICES>());
  }
  template <int... I> GPR_METHOD Words add(Doubles x, Lanes<I...>) {
    Doubles slice[SLICES];
    ((slice[I] = cut(sum[I], x), x = I < SLICES - 1 ? x - slice[I] : x), ...);
    if constexpr (SQUARES) (multiply<I>(slice, LanesTo<I + 1>()), ...);
    return bits(x) ^ bits(slice[SLICES - 1]);
  }
  static GPR_METHOD Doubles cut(Doubles &sum, const Doubles x) {
    const Doubles from = sum;
    sum += x;
    return SQUARES ? sum - from : minus(sum, from);
  }
  template <int I, int... J> GPR_METHOD void multiply(const Doubles *slice, Lanes<J...>) {
    ((product[I * (I + 1) / 2 + J] = add_product(product[I * (I + 1) / 2 + J], slice[I], slice[J])),
     ...);
  }
  /* zero: what a sum of zero is. */
  template <class K> GPR_METHOD void put(K &to, const Doubles above, const Doubles zero) const {
    for (int i = 0; i < SLICES; i++) {
      const Doubles one = sum[i] - start(i, above);
      to.add_exactly(choose((Words)(one == 0), zero, one));
    }
    if constexpr (SQUARES)
      for (int i = 0, p = 0; i < SLICES; i++)
        for (int j = 0; j <= i; j++, p++) {
          const Doubles one = i == j ? product[p] : 2.0 * product[p];
          if (i + j < 3)
            to.add_square(one);
          else if constexpr (SLICES > 2)
            to.square[1].add_exactly(one);
        }
  }
};

/* Rows of magnitudes below a power of two, which stays while they are; what slices do not hold goes
 * to sums that know what they lose. */
template <class K, class R, int SLICES, bool SQUARES> struct SlicedBlock {
  static constexpr double LEAST = 0x1p-440, MOST = 0x1p440;
  enum { MISSES = 2 }; /* after more, bins are quicker */
  typedef Slices<SLICES, SQUARES> S;
  S slices[2];
  Doubles above[2], zero[2];
  K part[2];
  bool has_part, has_above;
  int misses; /* one after the other */

  GPR_METHOD void open(bool is_first) {
    if (is_first) above[0] = above[1] = 1.0 - Doubles{}, has_above = false, misses = 0;
    has_part = false;
    for (int k = 0; k < 2; k++) {
      slices[k].open(above[k]);
      zero[k] = -Doubles{};
    }
  }
  /* The slices as they were if they do not hold the rows. */
  GPR_METHOD bool slice(const Piece<R> &rows, Doubles *most) {
    constexpr bool together = !SQUARES; /* more do not fit 16 registers */
    S a = slices[0], b = slices[1];
    Words lost = {};
    Doubles sizes[2] = {};
    const R *at = rows.x;
    for (int64_t row = 0; row < rows.n; row++, at += rows.stride) {
      if (rows.ahead) prefetch_later<STEP>(at, rows.ahead);
      lost |= a.add(load(at), sizes[0]);
      if (together) lost |= b.add(load(at + WIDTH), sizes[1]);
    }
    at = rows.x;
    for (int64_t row = 0; !together && row < rows.n; row++, at += rows.stride)
      lost |= b.add(load(at + WIDTH), sizes[1]);
    const Doubles all = a.sum[0] + b.sum[0];
    const Words below = (Words)(sizes[0] < above[0]) & (Words)(sizes[1] < above[1]);
    most[0] = sizes[0];
    most[1] = sizes[1];
    if (mask_of((Words)((lost << 1) != 0) | ~below | ~(Words)(all - all == 0))) return false;
    slices[0] = a;
    slices[1] = b;
    misses = 0;
    if (mask_of((Words)(sizes[0] == 0) | (Words)(sizes[1] == 0)))
      add_zeros(rows, sizes);
    else
      zero[0] = zero[1] = Doubles{};
    return true;
  }
  /* Of lanes that are all zeros. */
  GPR_APART void add_zeros(const Piece<R> &rows, const Doubles *most) {
    for (int k = 0; k < 2; k++) {
      Doubles sum = zero[k];
      for (int64_t row = 0; row < rows.n; row++)
        sum += load(rows.x + row * rows.stride + k * WIDTH);
      zero[k] = choose((Words)(most[k] == 0), sum, Doubles{});
    }
  }
  static GPR_APART void look_at(const Piece<R> &rows, Doubles *most) {
    most[0] = most[1] = Doubles{};
    for (int64_t row = 0; row < rows.n; row++)
      for (int k = 0; k < 2; k++)
        most[k] = greater_size(most[k], load(rows.x + row * rows.stride + k * WIDTH));
  }
  GPR_METHOD K *parts() {
    if (!has_part) part[0].open(), part[1].open();
    has_part = true;
    return part;
  }
  GPR_METHOD void put(K *to) const {
    for (int k = 0; k < 2; k++) slices[k].put(to[k], above[k], zero[k]);
  }
  /* A power of two for such rows, with room for others; whether it is another one. */
  bool look(const Doubles *most, Doubles *power) const {
    Words odd = {}, other = {};
    for (int k = 0; k < 2; k++) {
      const Words none = (Words)(most[k] == 0);
      odd |= ~(none | ((Words)(most[k] >= LEAST) & (Words)(most[k] <= MOST)));
      power[k] = choose(none, above[k], 4.0 * (Doubles)(bits(most[k]) & 0x7ffull << 52));
      other |= (Words)(power[k] != above[k]);
    }
    return mask_of(other) && !mask_of(odd);
  }
  GPR_APART bool add_again(const Piece<R> &rows, Doubles *most) {
    Doubles power[2];
    const bool is_other = look(most, power);
    parts();
    if (is_other) {
      put(part);
      above[0] = power[0];
      above[1] = power[1];
      open(false);
    }
    has_part = has_above = true;
    if (is_other && slice(rows, most)) return false;
    if (++misses <= MISSES) return add_rows<false>(part, rows);
    for (int k = 0; k < 2; k++) part[k].errors += __builtin_inf();
    return look_for_special(part, rows);
  }
  GPR_METHOD bool add(const Piece<R> &rows, bool) {
    Doubles most[2];
    if (misses > MISSES) return look_for_special(parts(), rows);
    if (!has_above) look_at(rows, most);
    return !(has_above && slice(rows, most)) && add_again(rows, most);
  }
  GPR_METHOD bool close(K *to, int64_t, bool, bool is_first) {
    if (is_first) to[0].open(), to[1].open();
    put(to);
    for (int k = 0; has_part && k < 2; k++) to[k].merge(part[k]);
    return false;
  }
};

template <>
struct StepBlock<TrackedSum<Doubles>, double> : SlicedBlock<TrackedSum<Doubles>, double, 2, false> {
};
template <int SQUARES> using TrackedMoments = typename Tracked<SQUARES>::template Moments<Doubles>;
template <>
struct StepBlock<TrackedMoments<1>, float> : SlicedBlock<TrackedMoments<1>, float, 2, true> {};
template <>
struct StepBlock<TrackedMoments<2>, double> : SlicedBlock<TrackedMoments<2>, double, 3, true> {};

GPR_CLOSE
#endif
