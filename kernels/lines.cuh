/* What a block leaves of an exact sum in the host's memory: a line for each part of its elements.
 *
 * Blocks that meet on the device do so by an atomic ticket after a fence and by another reading of
 * what all have written, 2 to 3 µs on an H200. The host adds up hundreds of lines in less, most of
 * them while other blocks still work. */
#ifndef GPR_LINES_CUH
#define GPR_LINES_CUH

#include "exact.cuh"
#include "last_block.cuh"
#include "warp.cuh"

GPR_OPEN

enum { LEVEL_BITS = 52 - GPR_HEADROOM }; /* from one level's unit to the next one's */
enum { UNOPENED = -0x10000 };            /* a window so low that anything moves it */
enum { BESIDE = 32 - GPR_LINE_EPOCH };   /* bits of the unit and the flags that a word brings */

/* One lane's counts of each warp, summed over the warp. */
__device__ __forceinline__ __int128 warp_units(int64_t units) {
  const uint32_t a = warp_add((uint32_t)units & 0xffffff);
  const uint32_t b = warp_add((uint32_t)(units >> 24) & 0xffffff);
  const uint32_t c = warp_add((uint32_t)(int32_t)(units >> 48));
  return ((__int128)(int32_t)c << 48) + (int64_t)(a + ((uint64_t)b << 24));
}

/* A sum of one part in units of 2^unit; UNOPENED: of zeros. */
struct LineSum {
  __int128 value;
  int unit;
  uint32_t flags;
};

/* A warp's sum that this shifts up has so many bits at most; those of 32 warps have five more. */
enum { SUM_BITS = 122 };
__device__ __forceinline__ bool fits_above(__int128 value, int above) {
  const __int128 beyond = value >> (SUM_BITS - (above & 31));
  return above < 32 && (beyond == 0 || beyond == -1);
}
/* Of all lanes, which hold what fits_above() says. */
__device__ __forceinline__ __int128 warp_sum(__int128 value) {
  enum { DIGIT = 27 };
  __int128 sum = (__int128)(int32_t)warp_add((uint32_t)(value >> 4 * DIGIT)) << 4 * DIGIT;
#pragma unroll
  for (int i = 0; i < 4; i++)
    sum += (__int128)warp_add((uint32_t)(value >> DIGIT * i) & ((1u << DIGIT) - 1)) << DIGIT * i;
  return sum;
}

/* By a warp, a lane each: the sums of the block's warps in the lowest one's unit. Those that lie
 * too far above are taken apart by far(). The result is the flags of all. */
template <class Far>
__device__ __forceinline__ uint32_t answer_line(const gpr_flat_args &args, int64_t line, LineSum s,
                                                Far far) {
  const uint32_t depth = warp_max(s.unit == UNOPENED ? 0 : (uint32_t)(-UNOPENED - s.unit));
  const int unit = depth ? -UNOPENED - (int)depth : (int)UNOPENED;
  const int above = s.unit == UNOPENED ? 0 : s.unit - unit;
  if (!fits_above(s.value, above)) {
    far(s);
    s.value = 0;
    s.flags |= GPR_LINE_MORE;
  }
  s.value = warp_sum(s.value << (above & 31));
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

/* --- the host's side ----------------------------------------------------------------------------
 */

/* A line as it was read. */
struct Line {
  __int128 value;
  uint32_t beside;
  int unit() const { return (int)(beside >> GPR_LINE_FLAGS) + UNOPENED; }
  bool read(const volatile uint64_t *line, uint32_t epoch) {
    unsigned __int128 all = 0;
    beside = 0;
    for (int i = GPR_LINE_WORDS - 1; i >= 0; i--) {
      const uint64_t both = line[i];
      if (both >> (32 + BESIDE) != (epoch & ((1u << GPR_LINE_EPOCH) - 1))) return false;
      all = all << 32 | (uint32_t)both;
      beside = beside << BESIDE | (uint32_t)(both >> 32 & ((1u << BESIDE) - 1));
    }
    value = (__int128)all;
    return true;
  }
};

/* Lines of one part, added up in units of 2^unit by digits of 32 bits, up to 2^12 of them. */
struct LinesSum {
  enum { NONE = INT32_MIN, BELOW = 4, APART = 16 };
  int64_t digit[GPR_LINE_WORDS] = {};
  int unit = NONE;

  void flush(Exact &e) {
    for (int i = 0; i < GPR_LINE_WORDS && unit != NONE; i++) {
      deposit(e, digit[i], unit + 32 * i);
      digit[i] = 0;
    }
    unit = NONE;
  }
  void add(Exact &e, __int128 value, int at) {
    if (unit == NONE || at < unit || at > unit + APART) {
      flush(e);
      unit = at < GPR_BOTTOM + BELOW ? (int)GPR_BOTTOM : at - BELOW;
    }
    for (int i = 0; i < GPR_LINE_WORDS; i++) {
      const bool last = i == GPR_LINE_WORDS - 1; /* with the sign */
      const uint32_t word = (uint32_t)(value >> 32 * i);
      digit[i] += (last ? (int64_t)(int32_t)word : (int64_t)word) * (INT64_C(1) << (at - unit));
    }
  }
};

/* As gpr_lines says in rows.h. */
template <class State>
static int take_lines(void *state, const gpr_answer *answer, uint64_t *awaited, int words,
                      uint32_t epoch, uint32_t *flags) {
  constexpr int parts = sizeof(State::part) / sizeof(Exact);
  Exact *part = ((State *)state)->part;
  const volatile uint64_t *line = (const volatile uint64_t *)(answer + GPR_LINES_AT);
  LinesSum sum[parts];
  Line read[parts];
  int left = 0;
  for (int w = 0; w < words; w++)
    for (uint64_t bits = awaited[w]; bits; bits &= bits - 1) {
      const int block = 64 * w + __builtin_ctzll(bits);
      bool here = true;
      for (int p = 0; p < parts; p++)
        here = here && read[p].read(line + (block * parts + p) * GPR_LINE_WORDS, epoch);
      left += !here;
      if (!here) continue;
      awaited[w] ^= bits & -bits;
      for (int p = 0; p < parts; p++) {
        const int unit = read[p].unit();
        if (unit != UNOPENED) sum[p].add(part[p], read[p].value, unit);
        part[p].signs |= read[p].beside & (GPR_MET | GPR_OTHER);
        *flags |= read[p].beside;
      }
    }
  for (int p = 0; p < parts; p++) sum[p].flush(part[p]);
  return left;
}

GPR_CLOSE
#endif
