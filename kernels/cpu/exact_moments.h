/* Exact sums of numbers and of their squares. */
#ifndef GPR_EXACT_MOMENTS_H
#define GPR_EXACT_MOMENTS_H

#include "many.h"
#include "twofold.h"

GPR_OPEN

/* Of squares and of what these leave over: their doubles, and into the squares what they came to.
 */
struct SquareAdder {
  Exact exact;
  Adder<1, double> adder;
  int deposits;

  void open() {
    memset(&exact, 0, sizeof exact);
    deposits = -1;
  }
  void add(const double *x, int rows) {
    if (deposits < 0) adder.open(&exact, top_of(x, rows * LANES) + 2);
    deposits = 0;
    adder.add(x, rows);
  }
  void flush(Squares &squares) {
    if (deposits < 0) return;
    adder.flush();
    carry(exact);
    for (int i = 0; i < GPR_DIGITS; i++)
      if (exact.digit[i]) deposit(squares, exact.digit[i], GPR_BOTTOM + 32 * i);
  }
};

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

template <class O, class T> struct Folder<O, MomentsFold<T>> {
  typedef MomentsFold<T> F;
  typedef typename F::State State;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = F::parts, NARROW = sizeof(R) < sizeof(double) };

  static bool is_settled(const State &s) {
    return (s.part[0].special | s.part[PARTS - 1].special) & GPR_NAN;
  }
  static GPR_APART void fold(State &s, const T *x, int64_t n, int64_t) {
    alignas(64) R batch[REALS];
    alignas(64) double wide_batch[REALS], square[REALS], rest[REALS];
    Adder<PARTS, R> sums;
    SquareAdder squares, rests;
    const Part *r = (const Part *)(const void *)x;
    squares.open();
    rests.open();
    for (int64_t i = 0; i < n * PARTS && !is_settled(s); i += REALS) {
      const int64_t m = least(n * PARTS - i, REALS), rows = (m + LANES - 1) / LANES;
      copy_wide(r + i, batch, m);
      for (int64_t j = m; j < rows * LANES; j++) batch[j] = 0;
      if (!i) sums.open(s.part, least(top_of(batch, (int)(rows * LANES)) + 2, (int)GPR_TOP_MAX));
      sums.add(batch, (int)rows);
      for (int64_t j = 0; j < rows * LANES; j++) wide_batch[j] = (double)batch[j];
      if (exact_squares(wide_batch, rows * LANES, square, rest)) {
        squares.add(square, (int)rows);
        if (!NARROW) rests.add(rest, (int)rows);
      } else {
        for (int64_t j = 0; j < m; j++) scatter_square(s.squares, wide_batch[j]);
      }
    }
    if (n > 0) sums.flush();
    squares.flush(s.squares);
    rests.flush(s.squares);
  }
};

GPR_CLOSE
#endif
