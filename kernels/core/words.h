/* States of folds as int64 words: store() gives the canonical ones, load() takes those and, where
 * partials are additive, sums of them. What the words mean: docs/partials.md. */
#pragma once

#include "../abi/partials.h"
#include "operators.h"

GPR_OPEN

template <class T> struct BytesAs {
  enum { words = (sizeof(T) + 7) / 8 };
  static void store(T x, int64_t *w) {
    memset(w, 0, words * sizeof *w);
    memcpy(w, &x, sizeof x);
  }
  static T load(const int64_t *w) {
    T x;
    memcpy(&x, w, sizeof x);
    return x;
  }
};

/* Each payload: how many words, whether they add, and both ways. store() is not asked for a state
 * into which nothing went, whose words are zero. */
template <class F> struct Payload {
  enum { words = 0, additive = 0 };
};

/* --- digits ----------------------------------------------------------------------------------- */

/* Carries within w[0, n); the last digit keeps the sign. */
GPR_CALL void carry_words(int64_t *w, int n) {
  for (int i = 0; i + 1 < n; i++) {
    w[i + 1] += w[i] >> 32;
    w[i] &= 0xffffffff;
  }
}

/* Digits [LOW, HIGH] of a superaccumulator whose value ends below HIGH's sign. Nothing was ever
 * deposited below LOW, and what stands above HIGH is the sign, modulo 2^64 in units of HIGH. */
template <int COUNT, int LOW, int HIGH> struct Digits {
  enum { words = HIGH - LOW + 1 };
  static_assert(LOW >= 0 && HIGH < COUNT, "");
  static void store(const int64_t *digit, int64_t *w) {
    memcpy(w, digit + LOW, words * sizeof *w);
    if (HIGH + 1 < COUNT) w[words - 1] += (int64_t)((uint64_t)digit[HIGH + 1] << 32);
    carry_words(w, words);
  }
  static void load(const int64_t *w, int64_t *digit) {
    memset(digit, 0, COUNT * sizeof *digit);
    memcpy(digit + LOW, w, words * sizeof *w);
    carry_words(digit + LOW, words);
  }
};

/* 2^63 elements of it, and of the squares of both parts of a complex number. */
template <class R>
struct SumDigits : Digits<GPR_DIGITS, (Format<R>::smallest - GPR_BOTTOM) / 32,
                          (Format<R>::beyond + 63 - GPR_BOTTOM) / 32> {};
template <class R>
struct SquareDigits
    : Digits<GPR_SQUARES_DIGITS, (2 * Format<R>::smallest - GPR_SQUARES_BOTTOM) / 32,
             (2 * Format<R>::beyond + 64 - GPR_SQUARES_BOTTOM) / 32> {};

/* --- exact sums ------------------------------------------------------------------------------- */

enum { AT_PLUS_INF, AT_MINUS_INF, AT_NAN, AT_OTHER, AT_DIGITS };

GPR_FN uint32_t special_of(uint32_t special) {
  const uint32_t both = GPR_PLUS_INF | GPR_MINUS_INF;
  return (special & GPR_NAN) || (special & both) == both ? (uint32_t)GPR_NAN : special;
}

/* One accumulator. A NaN ends the work wherever it stands, so that of what was met beside it
 * nothing may show. */
template <class R> struct ExactWords {
  typedef SumDigits<R> D;
  enum { words = AT_DIGITS + D::words };
  static void store(const Exact &e, uint32_t special, int64_t *w) {
    memset(w, 0, words * sizeof *w);
    w[AT_PLUS_INF] = (special & GPR_PLUS_INF) != 0;
    w[AT_MINUS_INF] = (special & GPR_MINUS_INF) != 0;
    w[AT_NAN] = (special & GPR_NAN) != 0;
    if (special) return;
    w[AT_OTHER] = (e.signs & GPR_OTHER) != 0;
    D::store(e.digit, w + AT_DIGITS);
  }
  static void load(const int64_t *w, int64_t n, Exact &e) {
    e.special = (w[AT_PLUS_INF] ? GPR_PLUS_INF : 0) | (w[AT_MINUS_INF] ? GPR_MINUS_INF : 0) |
                (w[AT_NAN] ? GPR_NAN : 0);
    e.signs = (n ? GPR_MET : 0) | (w[AT_OTHER] ? GPR_OTHER : 0);
    e.pending = 1;
    e.unused = 0;
    D::load(w + AT_DIGITS, e.digit);
  }
};

template <class T> struct Payload<ExactFold<T>> {
  typedef ExactFold<T> F;
  typedef ExactWords<typename RealOf<T>::type> One;
  enum { words = F::parts * One::words, additive = 1 };
  static void store(const typename F::State &s, int64_t, int64_t *w) {
    for (int p = 0; p < F::parts; p++)
      One::store(s.part[p], special_of(s.part[p].special), w + p * One::words);
  }
  static void load(const int64_t *w, int64_t n, typename F::State &s) {
    for (int p = 0; p < F::parts; p++) One::load(w + p * One::words, n, s.part[p]);
  }
};

/* A NaN in either part of a complex number ends the work on both. Not all engines look for -0.0
 * here: that there is another number is told by the squares or, where these are zero, by words that
 * were loaded; nobody knowing, it is taken for so. */
enum { WORDS_TOLD = 1 };
template <class T> struct Payload<MomentsFold<T>> {
  typedef MomentsFold<T> F;
  typedef typename RealOf<T>::type R;
  typedef ExactWords<R> One;
  typedef SquareDigits<R> D;
  enum { words = F::parts * One::words + D::words, additive = 1 };
  static void store(const typename F::State &s, int64_t, int64_t *w) {
    uint32_t special[F::parts], any = 0;
    for (int p = 0; p < F::parts; p++) any |= special[p] = special_of(s.part[p].special);
    bool others = F::parts == 2 || s.part[0].unused != WORDS_TOLD;
    memset(w, 0, words * sizeof *w);
    if (any & GPR_NAN) any = GPR_NAN;
    if (!any) D::store(s.squares.digit, w + F::parts * One::words);
    for (int i = 0; i < D::words; i++) others |= w[F::parts * One::words + i] != 0;
    for (int p = 0; p < F::parts; p++) {
      const uint32_t met = any & GPR_NAN ? any : special[p];
      One::store(s.part[p], met, w + p * One::words);
      w[p * One::words + AT_OTHER] |= others && !met;
    }
  }
  static void load(const int64_t *w, int64_t n, typename F::State &s) {
    for (int p = 0; p < F::parts; p++) One::load(w + p * One::words, n, s.part[p]);
    s.part[0].unused = WORDS_TOLD;
    s.squares.pending = 1;
    D::load(w + F::parts * One::words, s.squares.digit);
  }
};

/* --- integers and counts ---------------------------------------------------------------------- */

/* What is one word of the state. */
template <class F, class W, W F::State::*WORD, int ADDITIVE> struct OneWord {
  enum { words = 1, additive = ADDITIVE };
  static void store(const typename F::State &s, int64_t, int64_t *w) { *w = (int64_t)(s.*WORD); }
  static void load(const int64_t *w, int64_t, typename F::State &s) { s.*WORD = (W)*w; }
};
template <class T>
struct Payload<IntegerSum<T>> : OneWord<IntegerSum<T>, uint64_t, &IntegerSum<T>::State::sum, 1> {};
template <class T>
struct Payload<IntegerProduct<T>>
    : OneWord<IntegerProduct<T>, uint64_t, &IntegerProduct<T>::State::product, 0> {};
template <class T, int WHAT>
struct Payload<Counting<T, WHAT>>
    : OneWord<Counting<T, WHAT>, int64_t, &Counting<T, WHAT>::State::count, 1> {};

/* PARTS 64-bit parts of an integer as twice as many digits; the last digit is signed. */
template <int PARTS> struct PartsAsDigits {
  enum { words = 2 * PARTS };
  static void store(const uint64_t *part, bool is_signed, int64_t *w) {
    for (int i = 0; i < words; i++) w[i] = (uint32_t)(part[i / 2] >> (32 * (i % 2)));
    if (is_signed) w[words - 1] = (int32_t)w[words - 1];
  }
  static void load(const int64_t *from, uint64_t *part) {
    int64_t w[words];
    memcpy(w, from, sizeof w);
    carry_words(w, words);
    for (int i = 0; i < PARTS; i++) part[i] = (uint32_t)w[2 * i] | (uint64_t)w[2 * i + 1] << 32;
  }
};

template <class T> struct Payload<LongSum<T>> {
  typedef typename LongSum<T>::State State;
  typedef PartsAsDigits<2> D;
  enum { words = D::words, additive = 1 };
  static void store(const State &s, int64_t, int64_t *w) {
    const uint64_t part[] = {s.low, (uint64_t)s.high};
    D::store(part, true, w);
  }
  static void load(const int64_t *w, int64_t, State &s) {
    uint64_t part[2];
    D::load(w, part);
    s.low = part[0];
    s.high = (int64_t)part[1];
  }
};
template <class T> struct Payload<IntegerMoments<T>> {
  typedef typename IntegerMoments<T>::State State;
  typedef Payload<LongSum<T>> Sum;
  typedef PartsAsDigits<3> Square;
  enum { words = (int)Sum::words + (int)Square::words, additive = 1 };
  static void store(const State &s, int64_t n, int64_t *w) {
    Sum::store(s, n, w);
    Square::store(s.square, false, w + Sum::words);
  }
  static void load(const int64_t *w, int64_t n, State &s) {
    Sum::load(w, n, s);
    Square::load(w + Sum::words, s.square);
  }
};

template <class T> struct Payload<TimeSum<T>> {
  typedef typename TimeSum<T>::State State;
  enum { words = 2, additive = 1 };
  static void store(const State &s, int64_t, int64_t *w) {
    w[0] = s.nat ? 0 : (int64_t)s.sum;
    w[1] = s.nat != 0;
  }
  static void load(const int64_t *w, int64_t, State &s) {
    s.sum = (uint64_t)w[0];
    s.nat = w[1] != 0;
  }
};

/* Of what is settled by the first one, whether there was one. */
template <class F> struct AnyPayload : Payload<F> {
  static void store(const typename F::State &s, int64_t, int64_t *w) { *w = s.count != 0; }
};

template <class T, template <class> class Op> struct Payload<Bitwise<T, Op>> {
  typedef typename Bitwise<T, Op>::State State;
  typedef BytesAs<T> Bytes;
  enum { words = Bytes::words, additive = 0 };
  static void store(const State &s, int64_t, int64_t *w) {
    Bytes::store(Order<T>::value(s.word), w);
  }
  static void load(const int64_t *w, int64_t, State &s) { s.word = Order<T>::key(Bytes::load(w)); }
};

/* --- extremes --------------------------------------------------------------------------------- */

/* As elements: what finish() would give of those that O has. */
template <class O, class T> struct ExtremePayload {
  typedef Extremes<T> F;
  typedef BytesAs<T> Bytes;
  enum { values = Results<O>::value, words = values * Bytes::words, additive = 0 };
  static void store(const typename F::State &s, int64_t n, int64_t *w) {
    T value[values];
    O::finish(s, n, 0, value);
    for (int i = 0; i < values; i++) Bytes::store(value[i], w + i * Bytes::words);
  }
  static void load(const int64_t *w, int64_t n, typename F::State &s) {
    F::open(s);
    for (int i = 0; n && i < values; i++) F::add(s, Bytes::load(w + i * Bytes::words), 0);
  }
};

template <class T, bool GREATEST> struct Payload<Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  typedef typename F::R R;
  typedef BytesAs<T> Bytes;
  enum { words = 2 + Bytes::words, additive = 0 };
  static void store(const typename F::State &s, int64_t, int64_t *w) {
    memset(w, 0, words * sizeof *w);
    w[0] = s.index;
    w[1] = s.spoiled != 0;
    if (!s.spoiled) Bytes::store(R::value(s.best), w + 2);
  }
  static void load(const int64_t *w, int64_t n, typename F::State &s) {
    F::open(s);
    if (!n) return;
    s.index = w[0];
    s.spoiled = w[1];
    if (!s.spoiled) s.best = R::of(Bytes::load(w + 2));
  }
};
template <class T> struct Payload<Positions<T>> {
  typedef Positions<T> F;
  typedef Payload<typename F::Low> Low;
  typedef Payload<typename F::High> High;
  enum { words = Low::words + High::words, additive = 0 };
  static void store(const typename F::State &s, int64_t n, int64_t *w) {
    Low::store(s.low, n, w);
    High::store(s.high, n, w + Low::words);
  }
  static void load(const int64_t *w, int64_t n, typename F::State &s) {
    Low::load(w, n, s.low);
    High::load(w + Low::words, n, s.high);
  }
};

/* --- from an operator to its payload ---------------------------------------------------------- */

/* Its like: what several operators share has one payload. */
template <class O, class F = typename O::Fold> struct PayloadOf { typedef Payload<F> type; };
template <class O> struct PayloadOf<O, void> { typedef Payload<void> type; };
template <class T> struct PayloadOf<Any<T>> { typedef AnyPayload<Counting<T, 1>> type; };
template <class T> struct PayloadOf<All<T>> { typedef AnyPayload<Counting<T, 0>> type; };
template <class T> struct PayloadOf<Min<T>> { typedef ExtremePayload<Min<T>, T> type; };
template <class T> struct PayloadOf<Max<T>> { typedef ExtremePayload<Max<T>, T> type; };
template <class T> struct PayloadOf<MinMax<T>> { typedef ExtremePayload<MinMax<T>, T> type; };
template <class T> struct PayloadOf<PeakToPeak<T>, Extremes<T>> {
  typedef ExtremePayload<MinMax<T>, T> type;
};

/* What another fold's state begins with. */
template <class F> struct Begins { typedef void Sum, Least; };
template <class T> struct Begins<MomentsFold<T>> : Begins<void> { typedef ExactFold<T> Sum; };
/* Not of complex numbers: their parts are one in NaN. */
template <class R> struct Begins<MomentsFold<complex<R>>> : Begins<void> {};
template <class T> struct Begins<LongSum<T>> : Begins<void> { typedef IntegerSum<T> Least; };
template <class T> struct Begins<IntegerMoments<T>> : Begins<LongSum<T>> {
  typedef LongSum<T> Sum;
};

/* The header, and whether there was an element where a fold counts none. */
template <class P, class F> struct Partial {
  typedef typename F::State State;
  static constexpr bool counts = P::additive;
  static void store(const void *state, int64_t n, const void *kind, void *words) {
    int64_t *w = (int64_t *)words;
    memset(w, 0, (GPR_WORDS_OF_HEADER + P::words) * sizeof *w);
    w[GPR_WORD_KINDS] = *(const uint32_t *)kind;
    w[GPR_WORD_MERGED] = 1;
    w[GPR_WORD_COUNT] = counts ? n : n != 0;
    if (n) P::store(*(const State *)state, n, w + GPR_WORDS_OF_HEADER);
  }
  static int64_t load(const int64_t *w, void *state) {
    State &s = *(State *)state;
    const int64_t n = w[GPR_WORD_COUNT];
    if (n)
      P::load(w + GPR_WORDS_OF_HEADER, n, s);
    else
      F::open(s);
    return n;
  }
};

GPR_CLOSE
