/* Exact sums that many blocks share: digits in the scratch, to which all of them add.
 *
 * Sums that are integers may be added up in any order, and so by the memory's own adders: the last
 * block finds one number of each output, or few, instead of one of each block and output. */
#pragma once

#include "outputs.cuh"

GPR_OPEN

/* Of one real sum: a word for which digits there are and what else was met, and signed digits of 40
 * bits in 64, so that 2^23 deposits fit. 2^18 threads at most of a kernel share an output,
 * and each deposits at most three doubles and three words of its long integer in a digit. */
template <class R> struct Digits {
  enum { BITS = 40, OTHER = 60, SPECIAL = 61 }; /* bits of the first word */
  typedef typename RealSum<R>::Sum Sum;
  static constexpr int bottom = Long<R>::bottom, digits = sizeof(R) == 4 ? 11 : 57;
  static constexpr int words = 1 + digits;
  static_assert(digits <= OTHER && GPR_MINUS_INF < 1 << (64 - SPECIAL), "");
  unsigned long long *word; /* of this output: the next one is `step` words away */
  int step;

  GPR_DEVICE void add_magnitude(uint64_t m, int bit, bool negative, uint64_t &met) const {
    const uint64_t mask = (UINT64_C(1) << BITS) - 1;
    const int at = bit / BITS, shift = bit - at * BITS;
    const uint64_t digit[3] = {m << shift & mask, m >> (BITS - shift) & mask,
                               shift > 2 * BITS - 64 ? m >> (2 * BITS - shift) : 0};
    met |= UINT64_C(7) << at;
    GPR_EACH(i, 3)
      if (digit[i]) atomicAdd(word + (1 + at + i) * step, negative ? 0 - digit[i] : digit[i]);
  }
  /* met becomes what the first word must be told; of a sum of -0.0 the lower half is
   * any zero. */
  GPR_DEVICE void add(const Sum &p, uint64_t &met) const {
    if (bits(p.hi) != 1ull << 63) met |= UINT64_C(1) << OTHER;
    each_term(p, [&](double x) {
      int exponent;
      uint32_t special = 0;
      const int64_t m = mantissa(x, exponent, special);
      if (m) add_magnitude((uint64_t)(m < 0 ? -m : m), exponent - bottom, m < 0, met);
      met |= (uint64_t)special << SPECIAL;
    });
  }
  GPR_DEVICE void tell(uint64_t met) const {
    if (met) atomicOr(word, met);
  }
  /* What would be lost in a merge. */
  static __device__ __noinline__ void add_apart(unsigned long long *word, int step, const Sum p) {
    const Digits to = {word, step};
    uint64_t met = 0;
    to.add(p, met);
    to.tell(met);
  }
  /* All that a thread has. */
  static __device__ __noinline__ void add_state(unsigned long long *word, int step,
                                                const RealSum<R> *s) {
    const Digits to = {word, step};
    uint64_t met = 0;
    to.add(s->sum, met);
    if (s->used) {
      met |= UINT64_C(1) << OTHER | (uint64_t)s->special << SPECIAL;
      const bool negative = s->rest.word[Long<R>::words - 1] >> 63;
      uint64_t borrow = negative;
      GPR_ROLLED(int i = 0; i < Long<R>::words; i++) {
        const uint64_t m = (negative ? ~s->rest.word[i] : s->rest.word[i]) + borrow;
        borrow = borrow && !m;
        if (m) to.add_magnitude(m, 64 * i, negative, met);
      }
    }
    to.tell(met);
  }

  /* A digit to the pair, or to the long integer if it does not fit there. */
  static GPR_DEVICE void give(RealSum<R> &s, int64_t value, int at) {
    const int unit = bottom + BITS * at;
    const double high = (double)value, low = (double)(value - (int64_t)high);
    bool lost = unit < -1022 || unit > 900; /* of what products give exactly */
    Sum p = s.sum;
    if (!lost) {
      const double scale = from_bits((uint64_t)(unit + 1023) << 52);
      add_to_all(p, high * scale, lost);
      if (low != 0) add_to_all(p, low * scale, lost);
    }
    if (lost)
      give_rest(&s, value, BITS * at);
    else
      s.sum = p;
  }
  static __device__ __noinline__ void give_rest(RealSum<R> *s, int64_t value, int bit) {
    use(*s);
    add_at(s->rest, value, bit);
  }
  /* By one thread, when all have added. The words are zero again afterwards. */
  GPR_DEVICE void take(RealSum<R> &s) const {
    constexpr uint64_t all = (UINT64_C(1) << digits) - 1;
    constexpr int at_once = digits <= 12 ? digits : 8;
    uint64_t met = at_once < digits ? __ldcg(word) : all;
    const int least = __ffsll((long long)(met & all)) - 1;
    open(s);
    GPR_ROLLED(int top = 63 - __clzll((long long)(met & all)); least >= 0 && top >= least;
               top -= at_once) { /* from the top, where less is lost */
      int64_t value[at_once];
      GPR_EACH(u, at_once)
        value[u] = top - u >= least ? (int64_t)__ldcg(word + (1 + top - u) * step) : 0;
      if (at_once == digits) met = __ldcg(word);
      GPR_EACH(u, at_once)
        if (value[u]) {
          word[(1 + top - u) * step] = 0;
          give(s, value[u], top - u);
        }
    }
    *word = 0;
    const uint32_t special = (uint32_t)(met >> SPECIAL);
    if (special) {
      use(s);
      s.special = special;
    }
    if ((met >> OTHER & 1) && s.sum.hi == 0) s.sum.hi = 0;
  }
};

/* What a group of blocks shares: the words of each part of `columns` outputs. */
template <class F> struct Joint {
  static constexpr bool value = false;
  static constexpr int words = 0;
  static constexpr double steps = 0;
};
template <class T> struct Joint<PairSum<T>> {
  static constexpr bool value = true;
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef Digits<typename F::Real> D;
  typedef typename D::Sum Sum;
  static constexpr int parts = F::parts, words = parts * D::words; /* of an output */
  /* Of columns_split(), to add to an output's. Where all blocks did 2^20 to 2^23 of float16, of
   * bfloat16 and of float took 36 ps each on an H200, of double 114. */
  static constexpr double steps = parts * (sizeof(typename F::Real) == 4 ? 0.005 : 0.015);
  enum { APART = 2 }; /* pairs between rows, so that teams of four read from different banks */
  unsigned long long *word;
  int columns;
  GPR_DEVICE D of(int j, int part) const {
    return {word + (size_t)part * D::words * columns + j, columns};
  }

  /* By all threads of a block: V states of each, of adjacent columns, wide threads across and high
   * down; of the block's columns 0 … here exist, and column c is of output c % columns. */
  template <int V, int SLOTS>
  GPR_DEVICE void add(const State *states, int x, int y, int wide, int high, int here,
                      Slots<F, SLOTS> &slots) const {
    constexpr int pairs = V * parts;
    Sum sum[pairs], *slot = (Sum *)&slots;
    static_assert(sizeof slots >= AXES_THREADS * (pairs + APART) * sizeof *slot, "");
    bool lost = Quick<F, V>::take(states, sum);
    int row = y, rows = high;
    if (by_lanes(wide, high)) {
      merge_lanes(sum, wide,
                  [&](Sum &mine, const Sum &theirs) { mine = merged(mine, theirs, lost); });
      rows = AXES_THREADS / GPR_WARP;
      row = lane_of() < wide ? warp_of() : rows;
    }
    if (row < rows)
      GPR_EACH(i, pairs) slot[row * (wide * pairs + APART) + x * pairs + i] = sum[i];
    if (!__syncthreads_or(lost))
      add_slots(slot, wide * V, rows, here);
    else
      for (int i = 0; y < high && i < pairs; i++) {
        const int c = x * V + i / parts;
        const D to = of(c % columns, i % parts);
        if (c < here) D::add_state(to.word, to.step, &states[i / parts].part[i % parts]);
      }
  }
  /* Rows of `across` columns. A few lanes merge all that an output has of them, and neighbouring
   * ones add to neighbouring words: where each met a sector of its own, 256 blocks waited 4 µs
   * longer for each other on an H200, and 9 at some places of the scratch. */
  GPR_DEVICE void add_slots(const Sum *slot, int across, int rows, int here) const {
    const int cells = least(columns, across) * parts, groups = (across + columns - 1) / columns;
    const int entries = groups * rows;
    int team = 1;
    while (team < GPR_WARP && 2 * team <= entries && 2 * team * cells <= AXES_THREADS) team *= 2;
    const int lane = threadIdx.x % team;
    GPR_ROLLED(int first = 0; first < cells; first += AXES_THREADS / team) {
      const int cell = first + threadIdx.x / team, c = cell / parts;
      const bool exists = cell < cells && c < here;
      const D to = of(exists ? c : 0, cell % parts);
      Sum p;
      clear(p);
      for (int i = lane; exists && i < entries; i += team) {
        const int group = i / rows, r = i - group * rows, far = group * columns;
        if (c + far < here) take_in(to, p, slot[r * (across * parts + APART) + far * parts + cell]);
      }
      for (int mask = team / 2; mask; mask /= 2) {
        const Sum other = shuffle_xor(p, mask);
        if (lane < mask && exists) take_in(to, p, other);
      }
      if (!exists || lane) continue;
      uint64_t met = 0;
      to.add(p, met);
      to.tell(met);
    }
  }
  static GPR_DEVICE void take_in(const D &to, Sum &p, const Sum &other) {
    bool lost = false;
    const Sum both = merged(p, other, lost);
    if (lost)
      D::add_apart(to.word, to.step, other);
    else
      p = both;
  }

  /* By all threads of the last block: done(j, s) by one thread for each of `outputs`. s is where a
   * state is worked out. */
  template <class Done> GPR_DEVICE void take(int outputs, State &s, Done done) const {
    GPR_ROLLED(int j = threadIdx.x; j < outputs; j += AXES_THREADS) {
      GPR_ROLLED(int p = 0; p < parts; p++) of(j, p).take(s.part[p]);
      done(j, s);
    }
  }
};

GPR_CLOSE
