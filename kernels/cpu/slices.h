/* Exact sums of numbers, and of their squares, by slices: of numbers below a power of two some bits
 * each, whose sums are exact in doubles, and so are those of their products. Idea: error-free
 * extraction (Rump, Ogita, Oishi, "Accurate floating-point summation", 2008), and products of what
 * it leaves (Ozaki and others, "Error-free transformations of matrix multiplication", 2012). */
#pragma once

#include "step_blocks.h"

GPR_OPEN

/* A sum that knows what it loses. */
template <class D> struct TrackedSum : TwofoldSum<D> {
  template <bool NARROW> GPR_METHOD void add(const D x) { this->add_exactly(x); }
};
GPR_FN bool is_zero(double x) { return x == 0; }
GPR_FN bool is_zero(Doubles x) { return !mask_of((Words)(x != 0)); }
/* With sums of squares, as pairs of which each has what the one before loses: those of doubles have
 * twice as many bits, and one pair more is for what lies far apart. */
template <int SQUARES> struct Tracked {
  template <class D> struct Moments : TrackedSum<D> {
    typedef Moments Merged;
    TwofoldSum<D> square[SQUARES];

    GPR_METHOD void open() {
      TwofoldSum<D>::open();
      for (int i = 0; i < SQUARES; i++) square[i].open();
    }
    /* To the numbers of the pairs from this one on. */
    template <int FROM> GPR_METHOD void add_square(const D x) {
      TwofoldSum<D> &pair = square[least(FROM / 2, SQUARES - 1)];
      if (FROM == 2 * SQUARES - 2 && is_zero(x)) return; /* mostly */
      if constexpr (FROM == 2 * SQUARES) {
        pair.errors += size_of(x);
      } else {
        D &to = FROM % 2 ? pair.sum.low : pair.sum.high;
        const D from = to;
        to = from + x;
        add_square<FROM + 1>(rounding_error(from, x, to));
      }
    }
    template <bool NARROW> GPR_METHOD void add(const D x) {
      const D product = GPR_PRODUCT(x, x);
      this->add_exactly(x);
      add_square<0>(product);
      if constexpr (!NARROW) {
        const Words low = (Words)(product < 0x1p-900) & (Words)(x != 0); /* whose rest underflows */
        add_square<2>(product_rest(x, x, product));
        square[SQUARES - 1].errors += (Doubles)(low & bits(1 - Doubles{}));
      }
    }
    GPR_APART void merge(const Moments &other) { /* seldom: of blocks and outputs */
      TwofoldSum<D>::merge(other);
      merge(other, LanesTo<SQUARES>());
    }
    template <int... I> GPR_METHOD void merge(const Moments &other, Lanes<I...>) {
      ((add_square<2 * I>(other.square[I].sum.high), add_square<2 * I + 1>(other.square[I].sum.low),
        square[I].errors += other.square[I].errors),
       ...);
    }
  };
};

/* Of PIECE_ROWS numbers a lane. Squares: slices of 24 bits, whose products' sums have 53. */
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
  /* The first of as many, or these back. */
  template <int N> GPR_METHOD void read(const Slices<N, SQUARES> &from) {
    for (int i = 0; i < least(N, SLICES); i++) sum[i] = from.sum[i];
    for (int i = 0; i < least((int)from.PRODUCTS, (int)PRODUCTS); i++) product[i] = from.product[i];
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
  /* Of the first `used`. zero: what a sum of zero is. */
  template <class K>
  GPR_METHOD void put(K &to, int used, const Doubles above, const Doubles zero) const {
    for (int i = 0; i < used; i++) {
      const Doubles one = sum[i] - start(i, above);
      to.add_exactly(choose((Words)(one == 0), zero, one));
    }
    if constexpr (SQUARES)
      for (int i = 0, p = 0; i < used; i++)
        for (int j = 0; j <= i; j++, p++) {
          const Doubles one = i == j ? product[p] : 2.0 * product[p];
          if (i + j < 3)
            to.template add_square<0>(one);
          else
            to.template add_square<2>(one);
        }
  }
};

/* Rows of magnitudes below a power of two, which stays while they are: by few slices, and where
 * these do not hold them by all. What all do not hold goes to sums that know what they lose. */
template <class K, class R, int FEW, int ALL, bool SQUARES> struct SlicedBlock {
  static constexpr double LEAST = 0x1p-430, MOST = 0x1p440;
  enum { ROWS = PIECE_ROWS, TOGETHER = 1 };
  enum { MISSES = 2 }; /* after more, bins are quicker */
  /* Above the greatest of a piece, for those that follow. */
  static constexpr double ROOM = 16;
  enum { STAY_MOST = 64 }; /* pieces, before few slices are tried again */
  typedef Slices<ALL, SQUARES> S;
  S slices[2];
  Doubles above[2], zero[2];
  K part[2];
  bool has_part, has_above;
  int used;       /* of the slices */
  int wide, stay; /* pieces that are to take all; how many after the next miss */
  int misses;     /* one after the other */

  GPR_METHOD void open(bool is_first, bool) {
    if (is_first) {
      above[0] = above[1] = 1.0 - Doubles{};
      has_above = false;
      wide = stay = misses = 0;
    }
    has_part = false;
    open_slices();
  }
  GPR_METHOD void open_slices() {
    used = FEW;
    for (int k = 0; k < 2; k++) {
      slices[k].open(above[k]);
      zero[k] = -Doubles{};
    }
  }
  /* The slices as they were if so many do not hold the rows. */
  template <int FIRST> GPR_METHOD bool slice(const Piece<R> &rows, Doubles *most) {
    constexpr bool together = !SQUARES; /* more do not fit 16 registers */
    Slices<FIRST, SQUARES> a, b;
    a.read(slices[0]);
    b.read(slices[1]);
    Words lost = {};
    Doubles sizes[2] = {};
    rows.each([&](const Doubles x, const Doubles y) GPR_INLINED {
      lost |= a.add(x, sizes[0]);
      if (together) lost |= b.add(y, sizes[1]);
    });
    if (!together)
      rows.each([&](Doubles, const Doubles y) GPR_INLINED { lost |= b.add(y, sizes[1]); });
    const Doubles all = a.sum[0] + b.sum[0];
    const Words below = (Words)(sizes[0] < above[0]) & (Words)(sizes[1] < above[1]);
    most[0] = sizes[0];
    most[1] = sizes[1];
    if (mask_of((Words)((lost << 1) != 0) | ~below | ~(Words)(all - all == 0))) return false;
    slices[0].read(a);
    slices[1].read(b);
    misses = 0;
    if (mask_of((Words)(sizes[0] == 0) | (Words)(sizes[1] == 0)))
      add_zeros(rows, sizes);
    else
      zero[0] = zero[1] = Doubles{};
    return true;
  }
  GPR_APART bool slice_all(const Piece<R> &rows, Doubles *most) {
    if (!slice<ALL>(rows, most)) return false;
    used = ALL;
    return true;
  }
  /* Of lanes that are all zeros. */
  GPR_APART void add_zeros(const Piece<R> &rows, const Doubles *most) {
    for (int k = 0; k < 2; k++) {
      Doubles sum = zero[k];
      rows.walk([&](const R *at, const R *) GPR_INLINED { sum += rows.get(at, k); });
      zero[k] = choose((Words)(most[k] == 0), sum, Doubles{});
    }
  }
  static GPR_APART void look_at(const Piece<R> &rows, Doubles *most) {
    most[0] = most[1] = Doubles{};
    rows.walk([&](const R *at, const R *) GPR_INLINED {
      for (int k = 0; k < 2; k++) most[k] = greater_size(most[k], rows.get(at, k));
    });
  }
  GPR_METHOD K *parts() {
    if (!has_part) part[0].open(), part[1].open();
    has_part = true;
    return part;
  }
  GPR_APART void put(K *to) const {
    for (int k = 0; k < 2; k++) slices[k].put(to[k], used, above[k], zero[k]);
  }
  /* A power of two for such rows, with room for others; whether it is another one. */
  bool look(const Doubles *most, Doubles *power, bool grows) const {
    Words odd = {}, other = {};
    for (int k = 0; k < 2; k++) {
      const Words none = (Words)(most[k] == 0);
      odd |= ~(none | ((Words)(most[k] >= LEAST) & (Words)(most[k] <= MOST)));
      power[k] = choose(none, above[k], ROOM * (Doubles)(bits(most[k]) & 0x7ffull << 52));
      if (grows) power[k] = choose((Words)(power[k] < above[k]), above[k], power[k]);
      other |= (Words)(power[k] != above[k]);
    }
    return mask_of(other) && !mask_of(odd);
  }
  /* What few slices, or all that were tried, do not hold. */
  GPR_APART bool add_again(const Piece<R> &rows, Doubles *most) {
    Doubles power[2];
    const bool fits = !mask_of(~((Words)(most[0] < above[0]) & (Words)(most[1] < above[1])));
    if (ALL > FEW && has_above && fits && !wide && slice_all(rows, most)) {
      wide = stay = least(2 * stay + 1, (int)STAY_MOST);
      return false;
    }
    const bool is_other = look(most, power, has_above && !fits);
    parts();
    if (is_other) {
      put(part);
      above[0] = power[0];
      above[1] = power[1];
      open_slices();
    }
    has_above = true;
    if (is_other && (slice<FEW>(rows, most) || (ALL > FEW && slice_all(rows, most)))) return false;
    if (++misses <= MISSES) return add_rows<false>(part, rows);
    for (int k = 0; k < 2; k++) part[k].errors += __builtin_inf();
    return look_for_special(part, rows);
  }
  GPR_APART bool add(const Piece<R> &rows, bool) {
    Doubles most[2];
    if (misses > MISSES) return look_for_special(parts(), rows);
    if (!has_above) {
      look_at(rows, most);
    } else if (wide) {
      wide--;
      if (slice_all(rows, most)) return false;
      wide++;
    } else if (slice<FEW>(rows, most)) {
      stay = 0;
      return false;
    }
    return add_again(rows, most);
  }
  GPR_APART bool close(K *to, int64_t, bool, bool is_first) {
    if (is_first) to[0].open(), to[1].open();
    put(to);
    for (int k = 0; has_part && k < 2; k++) to[k].merge(part[k]);
    return false;
  }
};

template <>
struct StepBlock<TrackedSum<Doubles>, double>
    : SlicedBlock<TrackedSum<Doubles>, double, 2, 2, false> {};
template <>
struct StepBlock<TrackedSum<Doubles>, float>
    : SlicedBlock<TrackedSum<Doubles>, float, 2, 2, false> {};
template <int SQUARES> using TrackedMoments = typename Tracked<SQUARES>::template Moments<Doubles>;
template <>
struct StepBlock<TrackedMoments<2>, float> : SlicedBlock<TrackedMoments<2>, float, 2, 3, true> {};
template <>
struct StepBlock<TrackedMoments<3>, double> : SlicedBlock<TrackedMoments<3>, double, 3, 4, true> {};

GPR_CLOSE
