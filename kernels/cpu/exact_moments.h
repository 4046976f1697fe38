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

/* The same of n contiguous reals of parts by turns, a batch of REALS at most at a time. */
template <class T> struct AdderOfMoments {
  typedef typename MomentsFold<T>::State State;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = MomentsFold<T>::parts, NARROW = sizeof(R) < sizeof(double) };
  State &state;
  AdderOfReals<PARTS, Part> sums;
  SquareAdder squares, rests;

  explicit AdderOfMoments(State &to) : state(to), sums(to.part) {
    squares.open();
    rests.open();
  }
  GPR_APART void add(const Part *x, int64_t n) {
    alignas(64) R batch[REALS];
    alignas(64) double wide_batch[REALS], square[REALS], rest[REALS];
    const int64_t rows = (n + LANES - 1) / LANES;
    sums.add(x, n);
    copy_wide(x, batch, n);
    for (int64_t j = n; j < rows * LANES; j++) batch[j] = 0;
    for (int64_t j = 0; j < rows * LANES; j++) wide_batch[j] = (double)batch[j];
    if (exact_squares(wide_batch, rows * LANES, square, rest)) {
      squares.add(square, (int)rows);
      if (!NARROW) rests.add(rest, (int)rows);
    } else {
      for (int64_t j = 0; j < n; j++) scatter_square(state.squares, wide_batch[j]);
    }
  }
  bool is_settled() const {
    return (state.part[0].special | state.part[PARTS - 1].special) & GPR_NAN;
  }
  void put(int lane, int kind, double value) {
    if (kind)
      deposit(state.squares, value);
    else
      scatter(state.part[lane % PARTS], value);
  }
  void flush() {
    sums.flush();
    squares.flush(state.squares);
    rests.flush(state.squares);
  }
};

template <class O, class T> struct Folder<O, MomentsFold<T>> {
  typedef typename MomentsFold<T>::State State;
  typedef AdderOfMoments<T> Far;

  static bool is_settled(State &s) { return Far(s).is_settled(); }
  static GPR_APART void fold(State &s, const T *x, int64_t n, int64_t) {
    Far far(s);
    add_near<true>(far, (const typename Far::Part *)(const void *)x, n * Far::PARTS);
  }
};

GPR_CLOSE
#endif
