/* Exact sums of numbers and of their squares. */
#ifndef GPR_EXACT_MOMENTS_H
#define GPR_EXACT_MOMENTS_H

#include "many.h"
#include "twofold.h"

#include "../core/variance.h"

GPR_OPEN

/* Below this the rest of a square would be below the last of all doubles, above it overflows. */
static constexpr double SQUARE_LEAST = 0x1p-450, SQUARE_MOST = 0x1p500;

/* Squares and their rests; false where they are not exact. */
GPR_CALL bool exact_squares(const double *x, int64_t n, double *square, double *rest) {
  Words out = {};
  for (int64_t i = 0; i < n; i += WIDTH) {
    const Doubles d = load(x + i), size = (Doubles)(bits(d) << 1 >> 1), p = GPR_PRODUCT(d, d);
    const Doubles r = product_rest(d, d, p);
    out |= (Words)(size < SQUARE_LEAST) & (Words)(size > 0);
    out |= ~(Words)(size <= SQUARE_MOST);
    memcpy(square + i, &p, sizeof p);
    memcpy(rest + i, &r, sizeof r);
  }
  return !mask_of(out);
}

/* As BinnedReals, with their squares. */
template <class T> struct BinnedMoments {
  typedef typename MomentsFold<T>::State State;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = MomentsFold<T>::parts, NARROW = sizeof(R) < sizeof(double) };
  State &state;
  BinnedReals<PARTS, Part> sums;
  Exact squared; /* of squares and of what these leave over */
  ExponentBins squares;

  explicit BinnedMoments(State &to) : state(to), sums(to.part) {
    memset(&squared, 0, sizeof squared);
  }
  GPR_APART void add(const Part *x, int64_t n) {
    R batch[REALS];
    alignas(GPR_VECTOR) double wide_batch[REALS], square[REALS], rest[REALS];
    sums.add(x, n);
    copy_wide(x, batch, n);
    for (int64_t j = 0; j < REALS; j++) wide_batch[j] = j < n ? (double)batch[j] : 0;
    if (exact_squares(wide_batch, (n + WIDTH - 1) / WIDTH * WIDTH, square, rest)) {
      squares.add(squared, square, n);
      if (!NARROW) squares.add(squared, rest, n);
    } else {
      for (int64_t j = 0; j < n; j++) scatter_square(state.squares, wide_batch[j]);
    }
  }
  static bool is_settled(const State &s) {
    return (s.part[0].special | s.part[PARTS - 1].special) & GPR_NAN;
  }
  bool is_settled() const { return is_settled(state); }
  void flush() {
    sums.flush();
    squares.flush(squared);
    carry(squared);
    for (int i = 0; i < GPR_DIGITS; i++)
      if (squared.digit[i]) deposit(state.squares, squared.digit[i], GPR_BOTTOM + 32 * i);
  }
};

template <class O, class T> struct Folder<O, MomentsFold<T>> {
  typedef typename MomentsFold<T>::State State;
  typedef BinnedMoments<T> Bins;

  static bool is_settled(const State &s) { return Bins::is_settled(s); }
  static GPR_APART void fold(State &s, const T *x, int64_t n, int64_t) {
    Bins bins(s);
    add_all(bins, (const typename Bins::Part *)(const void *)x, n * Bins::PARTS);
  }
};

GPR_CLOSE
#endif
