/* Sums of floats and of their squares whatever their range: an integer for each exponent. */
#ifndef GPR_BINS_H
#define GPR_BINS_H

#include "exact_lanes.h"

#include "../core/variance.h"

GPR_OPEN

struct Bins {
  enum { FIELDS = 255, MOST = 1 << 16 }; /* so many squares of 48 bits fit a word */
  struct Bin {
    int64_t sum;
    uint64_t square;
  } bin[FIELDS + 1];
  int64_t count;

  GPR_METHOD void open() { memset(this, 0, sizeof *this); }
  /* n <= MOST − count. What is not finite is in the last bin, and makes that not zero. */
  GPR_METHOD void add(const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      const uint32_t b = copy_bits<uint32_t>(x[i]), field = b >> 23 & FIELDS;
      const int64_t m = (b & 0x7fffff) | (uint32_t)(field != 0) << 23;
      const int64_t sign = (int32_t)b >> 31;
      bin[field].sum += (m ^ sign) - sign;
      bin[field].square += (uint64_t)(m * m);
    }
    count += n;
  }
  GPR_METHOD bool finite() const { return !bin[FIELDS].square; }
  GPR_METHOD void forget() { bin[FIELDS] = Bin{0, 0}; } /* of what is not finite */
  GPR_METHOD void flush(Exact &sum, Squares &squares) {
    for (int f = 0; f < FIELDS; f++) {
      const int unit = greatest(f, 1) - 150;
      if (!bin[f].square) continue;
      deposit(sum, bin[f].sum, unit);
      deposit(squares, (int64_t)(bin[f].square & 0xffffffffu), 2 * unit);
      deposit(squares, (int64_t)(bin[f].square >> 32), 2 * unit + 32);
    }
    open();
  }
};

GPR_CLOSE
#endif
