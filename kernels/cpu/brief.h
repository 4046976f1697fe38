/* Brief partials: how many numbers there were, and pairs of doubles whose sums are the exact ones
 * of the numbers and of their squares. They stay inside of one library, and come from what engines
 * add up quickly; what no such pairs hold has words. */
#pragma once

#include "moments.h"

GPR_OPEN

/* One of 2.5 million normal floats lies so far below its neighbours that what it adds to is refused
 * and folded again: one output in 76 of so many elements. */
static constexpr int64_t SURELY_HELD = 1 << 15;

template <int PAIRS> struct BriefWords { double n, pair[2 * PAIRS]; };

GPR_FN Leading leading_of(const int64_t *digit, int digits, int bottom, bool &negative) {
  uint64_t word[GPR_SQUARES_DIGITS / 2];
  int64_t rest = 0;
  for (int i = 0; i < digits; i += 2) {
    const int64_t low = digit[i] + rest, high = digit[i + 1] + (low >> 32);
    word[i / 2] = (uint32_t)low | (uint64_t)high << 32;
    rest = high >> 32;
  }
  return leading_of(word, digits / 2, bottom, negative);
}
GPR_FN Leading leading_of(const Exact &e, bool &negative) {
  return leading_of(e.digit, GPR_DIGITS, GPR_BOTTOM, negative);
}
GPR_FN Leading leading_of(const Squares &s, bool &negative) {
  return leading_of(s.digit, GPR_SQUARES_DIGITS, GPR_SQUARES_BOTTOM, negative);
}
GPR_FN void deposit(Exact &e, double x) { scatter(e, x); }

/* Each the nearest to what the ones before leave; whether nothing is left at last. */
template <class A> static bool take_doubles(A &digits, int count, double *to) {
  bool negative;
  for (int i = 0; i < count; i++) {
    const Leading left = leading_of(digits, negative);
    to[i] = left.bits ? round_leading<double>(left, negative) : 0;
    if (to[i] - to[i] != 0) return false;
    deposit(digits, -to[i]);
  }
  return !leading_of(digits, negative).bits;
}

/* F: ExactFold<T>, whose Kind is TwofoldSum, or MomentsFold<T> with as many sums of squares. */
template <class F, template <class> class Kind> struct BriefOf {
  typedef typename F::Element T;
  static constexpr bool spreads = !Same<F, ExactFold<T>>::value;
  enum { PAIRS = (sizeof(Kind<double>) / sizeof(TwofoldSum<double>)), SQUARES = PAIRS - 1 };
  typedef typename Either<spreads, Var<T>, Sum<T>>::type Like;
  typedef BriefWords<PAIRS> Result;
  typedef typename F::State State;
  typedef Kind<Doubles> K;
  enum { DOUBLES = sizeof(Result) / sizeof(double) };

  /* --- from engines, whose refused outputs have a NaN in the last place
   * --------------------------------- */

  static void finish(const void *state, int64_t n, const void *, void *result) {
    State s = *(const State *)state;
    Result &to = *(Result *)result;
    double special;
    to = {(double)n, {}};
    if (round_special(s.part[0].special, &special)) {
      to.pair[0] = special;
      return;
    }
    bool held = take_doubles(s.part[0], 2, to.pair);
    if (!(s.part[0].signs & GPR_OTHER) && !spreads) to.pair[0] = -0.0;
    if constexpr (spreads) held &= take_doubles(s.squares, 2 * SQUARES, to.pair + 2);
    if (!held) to.pair[2 * PAIRS - 1] = quiet_nan<double>();
  }
  static GPR_METHOD bool put(const TwofoldSum<Doubles> &s, int lane, double *pair) {
    pair[0] = s.sum.high[lane];
    pair[1] = s.sum.low[lane];
    return s.errors[lane] == 0;
  }
  static const TwofoldSum<Doubles> &square_of(const K &k, int i) {
    if constexpr (spreads)
      return k.square[i];
    else
      return k;
  }
  struct Quickly {
    static constexpr int64_t most = SURELY_HELD;
    typedef typename BriefOf::Result Result;
    typedef Result With; /* which nobody looks at */

    static bool at_once(const gpr_tile *, const void *, Result *) { return false; }
    static void finish_all(Result *, int64_t, int64_t, const int64_t *) {}
    static void alone(const T *x, int64_t n, int64_t count, const With *, Result *to) {
      State s;
      F::open(s);
      Folder<Like>::fold(s, x, n, 0);
      BriefOf::finish(&s, count, nullptr, to);
    }
    static GPR_APART uint64_t finish(K *k, double, const Doubles n, const With *, int64_t known,
                                     int64_t m, Result *to) {
      uint64_t refused = 0;
      for (int64_t o = known; o < m; o++) {
        const int lane = (int)o;
        Result &r = to[o];
        r.n = n[lane];
        bool held = put(*k, lane, r.pair);
        for (int i = 0; i < SQUARES; i++) held &= put(square_of(*k, i), lane, r.pair + 2 + 2 * i);
        const double special = k->special[lane];
        if (special != 0) r = {n[lane], {special == special ? special : quiet_nan<double>()}};
        if (special == 0 && !held) refused |= 1ull << o;
      }
      return refused;
    }
  };

  /* --- and back ---------------------------------------------------------------------------------
   */

  static void add(void *state, const double *from) {
    State &s = *(State *)state;
    const Result &r = *(const Result *)(const void *)from;
    if (r.n == 0) return;
    put_twofold(s.part[0], r.pair[0], r.pair[1]);
    if constexpr (spreads)
      for (int i = 0; i < 2 * SQUARES; i++) deposit(s.squares, r.pair[2 + i]);
  }
  static void read(const double *pair, TwofoldSum<double> &to) {
    to.sum = {pair[0], pair[1]};
    to.errors = to.special = 0;
  }
  template <class S> static void read(const Result &r, S &to) {
    read(r.pair, to);
    if constexpr (spreads)
      for (int i = 0; i < SQUARES; i++) read(r.pair + 2 + 2 * i, to.square[i]);
  }
  static void read(const Result &r, TwofoldMoments<double> &to) {
    to.open();
    to.sum = {r.pair[0], r.pair[1]};
    for (int i = 1; i < PAIRS; i++)
      to.squares.add(Twofold<double>{r.pair[2 * i], r.pair[2 * i + 1]});
  }
  template <template <class> class To>
  static void load(void *states, const double *from, int64_t outputs, int more) {
    typename TwofoldFold<T, To>::State *s = (typename TwofoldFold<T, To>::State *)states;
    const Result *r = (const Result *)(const void *)from;
    for (int64_t o = 0; o < outputs; o++) {
      const double high = r[o].pair[0];
      To<double> part;
      read(r[o], part);
      if (high - high != 0) {
        part.open();
        part.special = high;
      }
      if (more) {
        s[o].part[0].merge(part);
        s[o].additions += 3;
      } else {
        s[o] = {{part}, 2 * PAIRS};
      }
    }
  }
};
/* Of the folds that have them. Own: of a row's own states. */
template <class B, template <class> class Kind, template <class> class Own> struct BriefTable {
  typedef QuickRow<typename B::Quickly, typename B::T, Kind> Quick;
  static constexpr gpr_brief brief = {
      B::DOUBLES,           B::finish, quick_of<Quick>(), B::add, B::template load<Kind>,
      B::template load<Own>};
  static constexpr const gpr_brief *row = &brief;
};
template <class F> struct BriefKind { static constexpr const gpr_brief *row = nullptr; };
template <class R>
struct BriefSums : BriefTable<BriefOf<ExactFold<R>, TwofoldSum>, TwofoldSum, TwofoldSum> {};
template <class R, template <class> class Kind>
struct BriefMoments : BriefTable<BriefOf<MomentsFold<R>, Kind>, Kind, TwofoldMoments> {};
template <> struct BriefKind<ExactFold<float>> : BriefSums<float> {};
template <> struct BriefKind<ExactFold<double>> : BriefSums<double> {};
template <> struct BriefKind<MomentsFold<float>> : BriefMoments<float, Tracked<2>::Moments> {};
template <> struct BriefKind<MomentsFold<double>> : BriefMoments<double, Tracked<3>::Moments> {};

GPR_CLOSE
