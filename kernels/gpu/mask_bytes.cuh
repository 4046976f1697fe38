/* Masks: a byte an element, which counts where its byte is not zero. */
#pragma once

#include "lanes.cuh"

GPR_OPEN

/* The N bytes of a mask from anywhere on, by the words that they lie in; what a word has beside
 * them is the allocation's. */
template <int N> struct MaskBytes {
  static constexpr int words = (N + 3) / 4;
  uint32_t w[words];
  GPR_DEVICE void load_aligned(const char *from) {
    const auto all = load_as(from, typename Store<(N < 4 ? 4 : N)>::type());
    memcpy(w, &all, sizeof all);
  }
  GPR_DEVICE void load_anywhere(const char *from) {
    if constexpr (N < 4) {
      w[0] = (uint8_t)from[0];
      if (N == 2) w[0] |= (uint32_t)(uint8_t)from[1] << 8;
      return;
    }
    const uint32_t by = (uint32_t)(uintptr_t)from & 3;
    const uint32_t *const word = (const uint32_t *)(from - by);
    uint32_t low = word[0];
    GPR_EACH(i, words) {
      const uint32_t high = by || i + 1 < words ? word[i + 1] : low;
      w[i] = __funnelshift_r(low, high, 8 * by);
      low = high;
    }
  }
  GPR_DEVICE void load(const char *from, bool aligned) {
    if (N >= 4 && aligned)
      load_aligned(from);
    else
      load_anywhere(from);
  }
  /* The top bit of each that is not zero, and no others. */
  GPR_DEVICE int find() {
    int n = 0;
    GPR_EACH(i, words) {
      w[i] = true_bytes(w[i]);
      n += __popc(w[i]);
    }
    return n;
  }
  /* All bits of those elements of word i of a packet that count, of BYTES each. */
  template <int BYTES> GPR_DEVICE uint32_t of_word(int i) const {
    const uint32_t of = w[i / BYTES % words];
    const int at = i * 4 / BYTES % 4;
    return permute(of, BYTES == 1   ? 0xba98
                       : BYTES == 2 ? 0x9988 + 0x1111 * at
                                    : 0x8888 + 0x1111 * at);
  }
  /* The same of two elements of a word, in 16 bits each. */
  template <int BYTES> GPR_DEVICE uint32_t of_pair(int i, int pair) const {
    return BYTES == 1 ? permute(w[i], pair ? 0xbbaa : 0x9988) : of_word<2>(i);
  }
  /* A bit for each that is not zero. */
  GPR_DEVICE uint32_t bits() const {
    uint32_t all = 0;
    GPR_EACH(i, words) all |= bits_of_bytes(w[i]) << 4 * i;
    return all;
  }
  GPR_DEVICE bool has(int e) const { return w[e / 4] >> (8 * (e % 4) + 7) & 1; }
};

GPR_CLOSE
