/* Sums of numbers of any range, in bins: what is certain where nothing quicker is. */
#pragma once

#include "simd.h"

GPR_OPEN

/* The least and the greatest exponent field of a double that is not zero; 2047 of what is not
 * finite. */
struct Fields {
  int least, greatest;
};
/* n is a multiple of WIDTH. */
static GPR_APART Fields fields_of(const double *x, int64_t n) {
  Words most = {}, fewest = ~Words{};
  for (int64_t i = 0; i < n; i += WIDTH) {
    const Words b = bits(load(x + i)) << 1, c = b | (Words)(b == 0);
    most = most > b ? most : b;
    fewest = fewest < c ? fewest : c;
  }
  uint64_t high = 0, low = ~0ull;
  for (int l = 0; l < WIDTH; l++) {
    high = greatest(high, (uint64_t)most[l]);
    low = least(low, (uint64_t)fewest[l]);
  }
  return {(int)least(low >> 53, high >> 53), (int)(high >> 53)};
}

/* A counter of mantissas for each sign and exponent, twice, so that neighbours of one exponent do
 * not wait for each other. Idea: Neal, "Fast exact summation using small and large
 * superaccumulators", 2015. */
struct ExponentBins {
  enum { FIELDS = 2048, COPIES = 2, MOST = 1024 }; /* numbers that are added at a time */
  uint64_t count[COPIES][2 * FIELDS];
  bool is_open = false;
  int lowest, highest;    /* of these fields there may be some */
  int zero_from, zero_to; /* of these counters are set at all, and those of zeros */

  void open() {
    is_open = true;
    zero_from = zero_to = FIELDS / 2;
    for (int c = 0; c < COPIES; c++) count[c][0] = count[c][FIELDS] = 0;
    forget();
  }
  void forget() { lowest = FIELDS, highest = -1; }
  void clear(int from, int to) {
    for (int c = 0; c < COPIES && from < to; c++)
      for (int sign = 0; sign < 2; sign++)
        memset(count[c] + sign * FIELDS + from, 0, (size_t)(to - from) * sizeof **count);
  }
  /* Of fields that are going to be put. */
  void reach(int least, int greatest) {
    lowest = gpr::least(lowest, least);
    highest = gpr::greatest(highest, greatest);
    if (zero_from == zero_to) zero_from = zero_to = least;
    clear(lowest, zero_from);
    clear(zero_to, highest + 1);
    zero_from = gpr::least(zero_from, lowest);
    zero_to = gpr::greatest(zero_to, highest + 1);
  }
  /* From the highest field down, as many in one sum as share a digit. */
  GPR_APART void drain(Exact &e) {
    __int128 sum = 0;
    for (int f = highest; f >= lowest; f--) {
      for (int c = 0; c < COPIES; c++) {
        sum += count[c][f];
        sum -= count[c][FIELDS + f];
        count[c][f] = count[c][FIELDS + f] = 0;
      }
      if (f > lowest && (f - 1) % 32) {
        sum *= 2;
      } else {
        if (sum) deposit_wide(e, sum, greatest(f, 1) - 1075);
        sum = 0;
      }
    }
    forget();
  }
  /* n at most MOST, a multiple of WIDTH, finite and of these fields. What reaches a counter's top
   * bit has not overflown yet: that takes twice MOST. */
  GPR_APART void add(Exact &e, const double *x, int64_t n, const Fields &fields) {
    const uint64_t hidden = UINT64_C(1) << 52;
    uint64_t value[MOST], any = 0;
    reach(fields.least, fields.greatest);
    for (int64_t i = 0; i < n; i += WIDTH) {
      const Words b = bits(load(x + i)),
                  v = (b & (hidden - 1)) | ((Words)(b << 1 >> 53 != 0) & hidden);
      memcpy(value + i, &v, sizeof v);
    }
    GPR_UNROLL(8)
    for (int64_t i = 0; i < n; i++) any |= count[i % COPIES][bits(x[i]) >> 52] += value[i];
    if (any >> 63) drain(e);
  }
  /* Any n; what is not finite goes to e by itself, and becomes zero. */
  GPR_APART void add(Exact &e, double *x, int64_t n) {
    const int64_t padded = (n + WIDTH - 1) / WIDTH * WIDTH;
    for (int64_t i = n; i < padded; i++) x[i] = 0;
    Fields fields = fields_of(x, padded);
    for (int64_t i = 0; fields.greatest == FIELDS - 1 && i < n; i++)
      if (x[i] - x[i] != 0) scatter(e, x[i]), x[i] = 0;
    if (fields.greatest == FIELDS - 1) fields = fields_of(x, padded);
    if (!is_open) open();
    add(e, x, padded, fields);
  }
  void flush(Exact &e) {
    if (is_open) drain(e);
  }
};

GPR_CLOSE
