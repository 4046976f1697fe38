/* The host's side of lines.cuh: lines as they come, added up. */
#pragma once

#include "as_host.h"
#include "lines.cuh"

GPR_OPEN

/* A line as it was read. */
struct Line {
  __int128 value = 0;
  uint32_t beside = 0;
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
        part[p].special |=
            read[p].beside >> GPR_LINE_SPECIAL & (GPR_NAN | GPR_PLUS_INF | GPR_MINUS_INF);
        *flags |= read[p].beside;
      }
    }
  for (int p = 0; p < parts; p++) sum[p].flush(part[p]);
  return left;
}

GPR_CLOSE
