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

/* By a warp, a lane each: the sums of the block's warps in the lowest one's unit, each digit summed
 * for itself. A sum has BITS bits; those that lie too far above are taken apart by far(). The
 * result is the flags of all. */
template <int BITS, class Far>
__device__ __forceinline__ uint32_t answer_line(const gpr_flat_args &args, int64_t line, LineSum s,
                                                Far far) {
  enum { APART = 126 - BITS };
  const uint32_t depth = warp_max(s.unit == UNOPENED ? 0 : (uint32_t)(-UNOPENED - s.unit));
  const int unit = depth ? -UNOPENED - (int)depth : (int)UNOPENED;
  const int above = s.unit == UNOPENED ? 0 : s.unit - unit;
  if (above > APART) {
    far(s);
    s.value = 0;
    s.flags |= GPR_LINE_MORE;
  }
  s.value <<= above & 31;
  s.flags = warp_or(s.flags);
  uint32_t word = (uint32_t)(unit - UNOPENED) << GPR_LINE_FLAGS | s.flags;
#pragma unroll
  for (int i = 0; i < GPR_LINE_DIGITS; i++) {
    const uint32_t digit = (uint32_t)(s.value >> GPR_LINE_BITS * i);
    const bool last = i == GPR_LINE_DIGITS - 1; /* with the sign */
    const uint32_t sum = warp_add(last ? digit : digit & ((1u << GPR_LINE_BITS) - 1));
    if (lane_of() == i) word = sum;
  }
  if (lane_of() <= GPR_LINE_DIGITS)
    answer_word(args, GPR_LINES_AT + (int)line * GPR_LINE_PITCH + lane_of(), word);
  return s.flags;
}

/* --- the host's side ----------------------------------------------------------------------------
 */

/* Lines of one part, added up in units of 2^unit: a digit takes 31 bits, and up to 2^12 of them. */
struct LinesSum {
  enum { NONE = INT32_MIN, BELOW = 4, APART = 16 };
  int64_t digit[GPR_LINE_DIGITS] = {};
  int unit = NONE;

  void flush(Exact &e) {
    for (int i = 0; i < GPR_LINE_DIGITS && unit != NONE; i++) {
      deposit(e, digit[i], unit + GPR_LINE_BITS * i);
      digit[i] = 0;
    }
    unit = NONE;
  }
  void add(Exact &e, const uint32_t *word, int at) {
    if (unit == NONE || at < unit || at > unit + APART) {
      flush(e);
      unit = at < GPR_BOTTOM + BELOW ? (int)GPR_BOTTOM : at - BELOW;
    }
    for (int i = 0; i < GPR_LINE_DIGITS; i++)
      digit[i] += (int64_t)(int32_t)word[i] * (INT64_C(1) << (at - unit));
  }
};

static inline bool read_line(const volatile uint64_t *line, uint32_t epoch, uint32_t *word) {
  for (int i = GPR_LINE_DIGITS; i >= 0; i--) {
    const uint64_t both = line[i];
    if (both >> 32 != epoch) return false;
    word[i] = (uint32_t)both;
  }
  return true;
}

/* As gpr_lines says in rows.h. */
template <class State>
static int take_lines(void *state, const gpr_answer *answer, uint64_t *awaited, int words,
                      uint32_t epoch, uint32_t *flags) {
  constexpr int parts = sizeof(State::part) / sizeof(Exact);
  Exact *part = ((State *)state)->part;
  const volatile uint64_t *line = (const volatile uint64_t *)(answer + GPR_LINES_AT);
  LinesSum sum[parts];
  uint32_t word[parts][GPR_LINE_DIGITS + 1];
  int left = 0;
  for (int w = 0; w < words; w++)
    for (uint64_t bits = awaited[w]; bits; bits &= bits - 1) {
      const int block = 64 * w + __builtin_ctzll(bits);
      bool here = true;
      for (int p = 0; p < parts; p++)
        here = here && read_line(line + (block * parts + p) * GPR_LINE_PITCH, epoch, word[p]);
      left += !here;
      if (!here) continue;
      awaited[w] ^= bits & -bits;
      for (int p = 0; p < parts; p++) {
        const uint32_t last = word[p][GPR_LINE_DIGITS];
        const int unit = (int)(last >> GPR_LINE_FLAGS) + UNOPENED;
        if (unit != UNOPENED) sum[p].add(part[p], word[p], unit);
        part[p].signs |= last & (GPR_MET | GPR_OTHER);
        *flags |= last;
      }
    }
  for (int p = 0; p < parts; p++) sum[p].flush(part[p]);
  return left;
}

GPR_CLOSE
#endif
