/* Partials of sums by the quick way: where that loses nothing, two doubles are all that there is to
 * put into words. */
#ifndef GPR_SUM_WORDS_H
#define GPR_SUM_WORDS_H

#include "sums.h"

#include "../core/words.h"

GPR_OPEN

/* One of 2.5 million normal floats lies so far below its neighbours that what it adds to is refused
 * and folded again: one output in 76 of so many elements. */
static constexpr int64_t SURELY_HELD = 1 << 15;

GPR_FN void put_twofold(Exact &e, double high, double low) {
  const bool other = bits(high) != bits(-0.0) || low != 0;
  e.signs |= other ? GPR_MET | GPR_OTHER : GPR_MET;
  scatter(e, high);
  scatter(e, low);
}

template <class T> struct SumWords {
  typedef ExactFold<T> F;
  typedef typename F::State State;
  typedef Partial<Payload<F>, F> Words;
  typedef TwofoldSum<Doubles> K;
  struct Result {
    int64_t word[GPR_WORDS_OF_HEADER + Payload<F>::words];
  };
  typedef uint32_t Kind;
  static constexpr int64_t most = SURELY_HELD;

  static bool at_once(const gpr_tile *, const void *, Result *) { return false; }
  static void alone(const char *data, const gpr_tile *t, int64_t count, const Kind *kind,
                    Result *to) {
    State s;
    F::open(s);
    Alone<Sum<T>>::fold(s, data, t->along, t->n, 0);
    Words::store(&s, count, kind, to);
  }
  static GPR_APART uint64_t finish(K *part, double, const Doubles n, const Kind *kind,
                                   int64_t known, int64_t m, Result *to) {
    uint64_t refused = 0;
    for (int64_t o = known; o < m; o++) {
      const int lane = (int)o;
      State s;
      bool lost = false;
      F::open(s);
      for (int p = 0; p < F::parts; p++) {
        const double special = part[p].special[lane];
        lost |= special == 0 && part[p].errors[lane] != 0;
        if (special != 0)
          scatter(s.part[p], special);
        else if (!lost)
          put_twofold(s.part[p], part[p].sum.high[lane], part[p].sum.low[lane]);
      }
      refused |= (uint64_t)lost << o;
      if (!lost) Words::store(&s, (int64_t)n[lane], kind, to + o);
    }
    return refused;
  }
};
template <class T> struct FinishedWith<SumWords<T>> { typedef uint32_t type; };

GPR_CLOSE
#endif
