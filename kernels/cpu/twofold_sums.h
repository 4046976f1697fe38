/* Sums and means of any range in twice the precision of a double, where that tells what they round
 * to. */
#ifndef GPR_TWOFOLD_SUMS_H
#define GPR_TWOFOLD_SUMS_H

#include "bounds.h"
#include "twofold.h"

GPR_OPEN

struct TwofoldSum {
  Twofold sum;
  Doubles size; /* Σ|x| */

  GPR_METHOD void open() { sum = {Doubles{}, size = Doubles{}}; }
  GPR_METHOD void add(const Doubles x) {
    sum.add(x);
    size += (Doubles)(bits(x) << 1 >> 1);
  }
  /* Of at most so many additions a number, divided by n; a bit a lane of those that are not sure,
   * as zeros are not, which have a sign. By c additions a sum is off by c²u²Σ|x| with u = 2^-53;
   * four times as much is allowed. */
  template <class Part>
  GPR_METHOD uint64_t round(double additions, const Doubles n, Part *to) const {
    Twofold all = {sum.high, Doubles{}};
    all.add(sum.low);
    const Doubles over = 1.0 / n, error = additions * additions * 0x1p-104 * size * over;
    const Twofold q = quotient_of(all, {n, Doubles{}}, over);
    const Doubles far = (Doubles)(bits(q.high) << 1 >> 1);
    /* What is rounded once more must be past a tie, and not onto it. */
    const Doubles off = error + (sizeof(Part) < sizeof(double) ? 0x1p-51 : 0x1p-100) * far;
    const Words sure = (Words)((far >= TWOFOLD_LEAST) & (size <= TWOFOLD_MOST));
    return mask_of(~sure) | round_bounds(q.high + (q.low - off), q.high + (q.low + off), to);
  }
};

/* K vectors of columns: an addition waits for the last one of its vector. */
template <int K, class R>
GPR_FN void add_columns(TwofoldSum *to, const R *x, int64_t stride, int64_t rows) {
  TwofoldSum s[K];
  for (int k = 0; k < K; k++) s[k].open();
  for (int64_t row = 0; row < rows; row++, x += stride)
    for (int k = 0; k < K; k++) s[k].add(load(x + k * WIDTH));
  for (int k = 0; k < K; k++) to[k] = s[k];
}
/* Of at most a vector of columns. */
template <class R>
GPR_FN void add_few_columns(TwofoldSum &s, const R *x, int64_t stride, int64_t columns,
                            int64_t rows) {
  R tail[WIDTH] = {};
  s.open();
  for (int64_t row = 0; row < rows; row++) {
    memcpy(tail, x + row * stride, (size_t)columns * sizeof *x);
    s.add(load((const R *)tail));
  }
}

/* Of columns whose bits are set; the bits of those that are not sure. by: what each is divided by.
 */
template <class R, class Part>
GPR_APART uint64_t twofold_columns(const R *x, int64_t stride, int64_t columns, int64_t rows,
                                   uint64_t wanted, const double *by, Part *to) {
  TwofoldSum s[VECTORS];
  int first = VECTORS; /* of s that is not used yet */
  for (int64_t j = 0; j < columns; j += WIDTH, first++) {
    const int64_t m = least((int64_t)WIDTH, columns - j);
    double each[WIDTH];
    Part part[WIDTH];
    if (first == VECTORS && columns - j >= LANES) {
      add_columns<VECTORS>(s, x + j, stride, rows);
      first = 0;
    } else if (first == VECTORS) {
      first = VECTORS - 1;
      add_few_columns(s[first], x + j, stride, m, rows);
    }
    for (int l = 0; l < WIDTH; l++) each[l] = by[j + (l < m ? l : 0)];
    const uint64_t out = s[first].round((double)(rows + 4), load((const double *)each), part);
    for (int64_t l = 0; l < m; l++) {
      if (!(wanted >> (j + l) & 1) || out >> l & 1) continue;
      to[j + l] = part[l];
      wanted &= ~(1ull << (j + l));
    }
  }
  return wanted;
}

/* Of n reals, which are those of PARTS sums by turns; false where one is not sure. */
template <int PARTS, class R, class Part>
GPR_APART bool twofold_row(const R *x, int64_t n, double by, Part *to) {
  enum { ABREAST = VECTORS, ACROSS = LANES };
  R tail[ACROSS] = {};
  double high[ABREAST][WIDTH], low[ABREAST][WIDTH], size[ABREAST][WIDTH];
  Part part[WIDTH];
  TwofoldSum lane[ABREAST], all;
  const int64_t rows = n / ACROSS;
  memcpy(tail, x + rows * ACROSS, (size_t)(n - rows * ACROSS) * sizeof *x);
  add_columns<ABREAST>(lane, x, ACROSS, rows);
  for (int k = 0; k < ABREAST; k++) lane[k].add(load((const R *)tail + k * WIDTH));
  for (int k = 0; k < ABREAST; k++) {
    memcpy(high[k], &lane[k].sum.high, sizeof high[k]);
    memcpy(low[k], &lane[k].sum.low, sizeof low[k]);
    memcpy(size[k], &lane[k].size, sizeof size[k]);
  }
  all.open();
  for (int k = 0; k < ABREAST; k++)
    for (int l = 0; l < WIDTH; l += PARTS) {
      Doubles a = {}, b = {}, c = {};
      for (int p = 0; p < PARTS; p++)
        a[p] = high[k][l + p], b[p] = low[k][l + p], c[p] = size[k][l + p];
      all.sum.add(Twofold{a, b});
      all.size += c;
    }
  const uint64_t out = all.round((double)(rows + 4 + 3 * ACROSS), by - Doubles{}, part);
  memcpy(to, part, PARTS * sizeof *to);
  return !(out & ((1u << PARTS) - 1));
}

GPR_CLOSE
#endif
