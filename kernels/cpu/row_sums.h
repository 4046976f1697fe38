/* Sums of contiguous reals, a row at a time. */
#ifndef GPR_ROW_SUMS_H
#define GPR_ROW_SUMS_H

#include "columns.h"

GPR_OPEN

/* The sums of n contiguous reals, of which every PARTS-th belongs to one, which a double or two
 * hold, of doubles divided by `by`; false where that is not sure. */
template <int PARTS> GPR_FN bool row_sum(const float *x, int64_t n, uint32_t, double *to) {
  Plain p;
  p.open();
  p.add(x, LANES, n / LANES);
  if (n % LANES) {
    float rest[LANES] = {};
    memcpy(rest, x + n / LANES * LANES, (size_t)(n % LANES) * sizeof *x);
    p.add(rest, LANES, 1);
  }
  for (int v = 1; v < VECTORS / 2; v++) {
    p.high[0] = p.high[0] > p.high[v] ? p.high[0] : p.high[v];
    p.low[0] = p.low[0] < p.low[v] ? p.low[0] : p.low[v];
  }
  const uint32_t most = across<uint32_t>(p.high[0], greatest<uint32_t>);
  const uint32_t fewest = across<uint32_t>(p.low[0], least<uint32_t>);
  for (int v = 1; v < VECTORS; v++) p.sum[0] += p.sum[v];
  for (int part = 0; part < PARTS; part++) {
    to[part] = sum_across<double, PARTS>(p.sum[0], part);
    if (PARTS == 1 || to[part] != 0) continue;
    if (bits(x[part]) >> 31) return false; /* all may be -0.0 */
    to[part] = 0;
  }
  const int spread = (int)(most >> 24) - (int)((fewest + 1) >> 24);
  return most && most < 0xff000000u && spread <= 53 - 24 - 12; /* GPR_SHORT are 2^12 */
}
/* Once through, as Adder::add_close(), in a window by the first numbers. */
template <int PARTS> GPR_FN bool row_sum(const double *x, int64_t n, uint32_t by, double *to) {
  const int64_t full = n / LANES, rows = (n + LANES - 1) / LANES;
  const int top = top_of(x, (int)least(n, (int64_t)LANES)) + 2;
  if (top > GPR_TOP_MAX || top < GPR_TOP_MIN + 100) return false;
  const Window w = open_window(top);
  /* Beside the last numbers lies one that is caught, and counted. */
  enum { BESIDE = 50 - GPR_HEADROOM };
  double last[LANES];
  for (int l = 0; l < LANES; l++) last[l] = power_of_two(top - 1);
  memcpy(last, x + full * LANES, (size_t)(n - full * LANES) * sizeof *x);
  const Doubles start1 = w.start1 - Doubles{}, start2 = w.start2 - Doubles{};
  const Words lowest = (uint64_t)(top + 1023 - 32) << 52 | Words{};
  Words outside[VECTORS] = {}, count1 = {}, count2 = {};
  for (int64_t row = 0; row < rows;) {
    Doubles sum1[VECTORS], sum2[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum1[v] = start1, sum2[v] = start2;
    for (const int64_t stop = least(rows, row + GPR_BATCH); row < stop; row++) {
      const double *at = row < full ? x + row * LANES : last;
      for (int v = 0; v < VECTORS; v++) {
        const Doubles d = load(at + v * WIDTH);
        outside[v] |= bits(d) - lowest;
        sum2[v] += rest_of(sum1[v], d);
      }
    }
    for (int v = 0; v < VECTORS; v++) {
      count1 += bits(sum1[v]) - bits(start1);
      count2 += bits(sum2[v]) - bits(start2);
    }
  }
  for (int v = 1; v < VECTORS; v++) outside[0] |= outside[v];
  if (or_across(outside[0]) << 1 >> 58) return false;
  for (int part = 0; part < PARTS; part++) {
    Count c = {-((rows * LANES - n) / PARTS << BESIDE), 0, w.unit2, false};
    c.high += sum_across<int64_t, PARTS>(count1, part);
    c.low += sum_across<int64_t, PARTS>(count2, part);
    if (((__int128)c.high << LEVELS) + c.low == 0) return false;
    to[part] = round_count<double>(c, by);
  }
  return true;
}
GPR_CLOSE
#endif
