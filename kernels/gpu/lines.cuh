/* What a block leaves of an exact sum in the host's memory: a line for each part of its elements.
 *
 * Blocks that meet on the device do so by an atomic ticket after a fence and by another reading of
 * what all have written, 2 to 3 µs on an H200. The host adds up hundreds of lines in less, most of
 * them while other blocks still work. */
#pragma once

#include "../core/exact.h"
#include "last_block.cuh"
#include "warp.cuh"

GPR_OPEN

enum { LEVEL_BITS = 52 - GPR_HEADROOM }; /* from one level's unit to the next one's */
enum { UNOPENED = -0x10000 };            /* a window so low that anything moves it */
enum { BESIDE = 32 - GPR_LINE_EPOCH };   /* bits of the unit and the flags that a word brings */

/* A sum of one part in units of 2^unit; UNOPENED: of zeros. */
struct LineSum {
  __int128 value;
  int unit;
  uint32_t flags;
};

/* A warp's sum that this shifts up has so many bits at most; those of 32 warps have five more. */
enum { SUM_BITS = 122 };
GPR_DEVICE bool fits_above(__int128 value, int above, int most = SUM_BITS) {
  if (above > most) return false;
  const __int128 beyond = value >> (most - above);
  return beyond == 0 || beyond == -1;
}
/* A finite double too; false if it lies too far above or below. */
GPR_DEVICE bool add_to_line(LineSum &s, double x) {
  enum { BITS = SUM_BITS - 3 }; /* of each, a few of which are then added */
  int exponent;
  uint32_t special = 0;
  int64_t m = mantissa(x, exponent, special);
  if (!m) return true;
  for (; !(m & 1); m >>= 1) exponent++;
  const int unit = s.value == 0 || exponent < s.unit ? exponent : s.unit;
  const int above = s.value == 0 ? 0 : s.unit - unit;
  if (!fits_above(s.value, above, BITS) || !fits_above(m, exponent - unit, BITS)) return false;
  s.value = (s.value << above) + ((__int128)m << (exponent - unit));
  s.unit = unit;
  return true;
}
/* Of all lanes, which hold what fits_above() says. */
GPR_DEVICE __int128 warp_sum(__int128 value) {
  enum { DIGIT = 27 };
  __int128 sum = (__int128)(int32_t)warp_add((uint32_t)(value >> 4 * DIGIT)) << 4 * DIGIT;
  GPR_EACH(i, 4)
    sum += (__int128)warp_add((uint32_t)(value >> DIGIT * i) & ((1u << DIGIT) - 1)) << DIGIT * i;
  return sum;
}

/* A complex array that starts in the middle of a packet has its parts the other way round. */
template <int PARTS> GPR_DEVICE int64_t line_of(int64_t first, int part) {
  return (int64_t)blockIdx.x * PARTS + (PARTS == 2 ? part ^ (int)(first & 1) : part);
}

/* By a warp, a lane each: the sums of the block's warps in the lowest one's unit. Those that lie
 * too far above are taken apart by far(). The result is the flags of all. */
template <class Far>
GPR_DEVICE uint32_t answer_line(const gpr_flat_args &args, int64_t line, LineSum s, Far far) {
  const uint32_t depth = warp_max(s.unit == UNOPENED ? 0 : (uint32_t)(-UNOPENED - s.unit));
  const int unit = depth ? -UNOPENED - (int)depth : (int)UNOPENED;
  const int above = s.unit == UNOPENED ? 0 : s.unit - unit;
  if (!fits_above(s.value, above)) {
    far(s);
    s.value = 0;
    s.flags |= GPR_LINE_MORE;
  }
  s.value = warp_sum(s.value << above);
  s.flags = warp_or(s.flags);
  const uint32_t beside = (uint32_t)(unit - UNOPENED) << GPR_LINE_FLAGS | s.flags;
  const int i = lane_of();
  if (i < GPR_LINE_WORDS) {
    const uint32_t word = (uint32_t)(s.value >> 32 * i);
    const uint32_t upper = beside >> BESIDE * i & ((1u << BESIDE) - 1);
    const gpr_answer both = {word, args.epoch << BESIDE | upper};
    *(volatile uint64_t *)(args.answer + GPR_LINES_AT + line * GPR_LINE_WORDS + i) =
        copy_bits<uint64_t>(both);
  }
  return s.flags;
}

GPR_CLOSE
