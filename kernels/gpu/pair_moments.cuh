/* Σx and Σx² by one thread: pairs for each window of a batch, more terms for wider ranges, and long
 * integers for the rest. */
#pragma once

#include "moment_batch.cuh"
#include "pair_sum.cuh"

GPR_OPEN

/* --- pairs with a long integer ---------------------------------------------------------------- */

/* Units that are whole digits of 32 bits, the squares' twice as far down. */
template <class R> struct TermsOf;
template <class R> struct SquaresOf;
template <> struct LongBits<TermsOf<float>> { static constexpr int bottom = -160, words = 6; };
template <> struct LongBits<SquaresOf<float>> { static constexpr int bottom = -320, words = 11; };
template <> struct LongBits<TermsOf<double>> { static constexpr int bottom = -1088, words = 35; };
template <> struct LongBits<SquaresOf<double>> { static constexpr int bottom = -2176, words = 68; };

template <class W, int PAIRS> struct Levels {
  static constexpr int pairs = PAIRS;
  Pair pair[PAIRS];
  uint32_t special; /* infinities as an Exact's; NaN is in the first pair of a sum */
  uint32_t used;    /* rest is more than nothing */
  Long<W> rest;
};
template <class W, int P> GPR_DEVICE void open(Levels<W, P> &s) {
  GPR_EACH(i, P) s.pair[i] = {0, 0};
  s.special = s.used = 0;
}
template <class W, int P> GPR_DEVICE void assign(Levels<W, P> &to, const Levels<W, P> &from) {
  GPR_EACH(i, P) to.pair[i] = from.pair[i];
  assign_rest(to, from);
}
/* --- wide ranges ------------------------------------------------------------------------------ */

/* The first N doubles of all levels as one sum, of which each takes what those before it are
 * rounded by: 53 bits more of range than the one before. */
template <int N> struct Terms {
  static constexpr int count = N;
  double term[N];
  template <class W, int P> GPR_DEVICE void open(const Levels<W, P> &s) {
    static_assert(N <= 2 * P, "");
    GPR_EACH(i, N) term[i] = i % 2 ? s.pair[i / 2].lo : s.pair[i / 2].hi;
  }
  /* With what further levels have; false: they do not fit. */
  template <class W, int P> GPR_DEVICE bool open_all(const Levels<W, P> &s) {
    bool lost = false;
    open(s);
    if (N < 2 * P) pack();
    GPR_ROLLED(int i = N / 2; i < P; i++) {
      add(s.pair[i].hi, lost);
      add(s.pair[i].lo, lost);
    }
    return !lost;
  }
  template <class W, int P> GPR_DEVICE void give(Levels<W, P> &s) const {
    GPR_EACH(i, N) (i % 2 ? s.pair[i / 2].lo : s.pair[i / 2].hi) = term[i];
  }
  template <class W, int P> GPR_DEVICE void give_all(Levels<W, P> &s) const {
    give(s);
    GPR_UNROLLED(int i = N / 2; i < P; i++) s.pair[i] = {0, 0};
  }
  /* None overlaps the next one any more, and there is room in the last. */
  GPR_DEVICE void pack() {
    GPR_UNROLLED(int i = N - 2; i >= 0; i--) carry(i);
    GPR_EACH(i, N - 1) carry(i);
  }
  GPR_DEVICE void carry(int i) {
    const double t = term[i] + term[i + 1];
    term[i + 1] = rounding_error(term[i], term[i + 1], t);
    term[i] = t;
  }
  /* To those from FIRST on. */
  template <int FIRST = 0> GPR_DEVICE void add(double x, bool &lost) {
    GPR_UNROLLED(int i = FIRST; i < N - 1; i++) {
      const double t = term[i] + x;
      x = rounding_error(term[i], x, t);
      term[i] = t;
    }
    term[N - 1] = add_checked(term[N - 1], x, lost);
  }
};
/* As many as hold the squares of any usual range, as WideMoments has them: half of a complex
 * double's, which has a level for each window of both parts. */
enum { TERMS_MOST = 6 };
template <int P> using AllTerms = Terms<(2 * P < TERMS_MOST ? 2 * P : (int)TERMS_MOST)>;
/* All of the right one's, or none. */
template <int N> GPR_DEVICE bool merge(Terms<N> &s, const Terms<N> &right) {
  Terms<N> both = s;
  bool lost = false;
  both.pack();
  GPR_EACH(i, N) both.add(right.term[i], lost);
  if (!lost) s = both;
  return !lost;
}

/* What a level cannot hold goes to all of them as one sum, or to the next one, and from the last to
 * the long integer. */
template <class W, int P>
__device__ __noinline__ void add_in_turn(Levels<W, P> *s, int level, double x) {
  AllTerms<P> all;
  bool lost = !all.open_all(*s);
  all.pack();
  all.add(x, lost);
  if (!lost) return all.give_all(*s);
  GPR_ROLLED(; level < P && x != 0; level++) {
    const Pair p = s->pair[level];
    const double t = p.hi + x, error = rounding_error(p.hi, x, t);
    const double u = p.lo + error, left = rounding_error(p.lo, error, u);
    if (left != left) break; /* t overflowed */
    s->pair[level] = {t, u};
    x = left;
  }
  if (x != 0) add_rest(s, x);
}
template <class W, int P> GPR_DEVICE void add_to(Levels<W, P> &s, int level, double x) {
  Pair p = s.pair[level];
  bool lost = false;
  add(p, x, lost);
  if (lost)
    add_in_turn(&s, level, x);
  else
    s.pair[level] = p;
}
template <class W, int P> GPR_DEVICE void add_to(Levels<W, P> &s, int level, const Pair &x) {
  bool lost = false;
  const Pair p = merged(s.pair[level], x, lost);
  if (lost) {
    add_in_turn(&s, level, x.hi);
    add_in_turn(&s, level, x.lo);
  } else {
    s.pair[level] = p;
  }
}

/* --- merging ---------------------------------------------------------------------------------- */

template <class W, int P>
__device__ __noinline__ void merge_rests(Levels<W, P> *s, const Levels<W, P> *right) {
  use(*s);
  s->special |= right->special;
  add_long(s->rest.word, right->rest.word, Long<W>::words);
}
template <class W, int P>
__device__ __noinline__ void merge_terms(Levels<W, P> *s, const Levels<W, P> *right) {
  AllTerms<P> all, others;
  if (all.open_all(*s) && others.open_all(*right) && merge(all, others)) return all.give_all(*s);
  GPR_ROLLED(int i = 0; i < P; i++) {
    add_in_turn(s, i, right->pair[i].hi);
    add_in_turn(s, i, right->pair[i].lo);
  }
}
template <class W, int P> GPR_DEVICE void merge(Levels<W, P> &s, const Levels<W, P> &right) {
  Pair pair[P];
  bool lost = false;
  GPR_EACH(i, P) pair[i] = merged(s.pair[i], right.pair[i], lost);
  if (lost)
    merge_terms(&s, &right);
  else
    GPR_EACH(i, P) s.pair[i] = pair[i];
  if (right.used) merge_rests(&s, &right);
}
/* All of it in the long integer. */
template <class W, int P> GPR_DEVICE void settle(Levels<W, P> &s) {
  GPR_ROLLED(int i = 0; i < P; i++) {
    add_rest(&s, s.pair[i].hi);
    add_rest(&s, s.pair[i].lo);
    s.pair[i] = {0, 0};
  }
}

/* --- the state -------------------------------------------------------------------------------- */

/* Of complex numbers: sums of both parts, and one of the squares of both. */
template <class R, int PARTS> struct MomentState {
  static constexpr int parts = PARTS;
  static constexpr bool is_double = sizeof(R) == 8, alone = false;
  typedef MomentBatch<R, 1> Batch;
  Levels<TermsOf<R>, Batch::sums> sum[PARTS];
  Levels<SquaresOf<R>, Batch::squares * PARTS> squares;
};

/* Of any exponent. */
static __device__ __noinline__ void add_square(Long<SquaresOf<double>> *to, double x) {
  int exponent;
  uint32_t special = 0;
  const int64_t m = mantissa(x, exponent, special);
  const uint64_t size = (uint64_t)(m < 0 ? -m : m);
  const int bit = 2 * exponent - LongBits<SquaresOf<double>>::bottom;
  add_at(*to, size * size, bit);
  add_at(*to, __umul64hi(size, size), bit + 64);
}

/* x² of a float is a double; of a double it is two, unless it overflows or its end underflows. */
template <int P> GPR_DEVICE void add_square_of(Levels<SquaresOf<float>, P> &s, int part, double x) {
  add_to(s, part * MomentBatch<float, 1>::squares, x * x);
}
template <int P>
GPR_DEVICE void add_square_of(Levels<SquaresOf<double>, P> &s, int part, double x) {
  const double size = fabs(x), p = x * x;
  const int level = part * MomentBatch<double, 1>::squares;
  if (size >= 0x1p-450 && size <= 0x1p500) {
    add_to(s, level, p);
    add_to(s, level + 1, product_error(x, x, p));
  } else if (size > 0) {
    use(s);
    add_square(&s.rest, x);
  }
}

/* Where a NaN was met: nothing else matters to the part any more. */
template <class R, int PARTS> GPR_DEVICE void set_nan(MomentState<R, PARTS> &s, int part) {
  s.sum[part].pair[0].hi = NAN;
}
template <class S> GPR_DEVICE bool is_nan(const S &s, int part) {
  return s.sum[part].pair[0].hi != s.sum[part].pair[0].hi;
}

/* Any number. Not inlined: it stands where nothing else is alive. */
template <class R, int PARTS>
__device__ __noinline__ void add_alone(MomentState<R, PARTS> *s, int part, double x) {
  if (is_nan(*s, part)) return;
  if (x != x) {
    set_nan(*s, part);
  } else if (x - x == 0) {
    add_to(s->sum[part], 0, x);
    add_square_of(s->squares, part, x);
  } else {
    add_rest(&s->sum[part], x);
  }
}

/* Any number of a wide range: all that come, or none. Of 10^6 that are lognormal with a sigma of 5
 * the squares reach over 230 bits, which five terms of 53 hold. */
template <class R, int PARTS> struct WideMoments {
  static constexpr bool is_double = sizeof(R) == 8;
  Terms<is_double ? 3 : 2> sum[PARTS];
  Terms<is_double ? 6 : 4> squares;
  bool lost;
  GPR_DEVICE void open(const MomentState<R, PARTS> &s) {
    lost = false;
    squares.open(s.squares);
    squares.pack();
    GPR_EACH(p, PARTS) sum[p].open(s.sum[p]);
  }
  GPR_DEVICE void add(int part, double x) {
    const double square = x * x;
    sum[part].add(x, lost);
    squares.add(square, lost);
    if constexpr (is_double) {
      const double size = fabs(x);
      squares.template add<1>(product_error(x, x, square), lost);
      lost |= size > 0x1p500 || (size < 0x1p-450 && size > 0);
    }
  }
  /* A batch's sums, which are exact. */
  template <class Windows> GPR_DEVICE void take(int part, const Windows &windows) {
    GPR_EACH(i, Windows::sums) sum[part].add(windows.sum(i), lost);
    GPR_EACH(i, Windows::squares) squares.add(windows.square(i), lost);
  }
  GPR_DEVICE bool give(MomentState<R, PARTS> &s) const {
    if (lost) return false;
    squares.give(s.squares);
    GPR_EACH(p, PARTS) sum[p].give(s.sum[p]);
    return true;
  }
};

/* --- the fold --------------------------------------------------------------------------------- */

/* variance.h's MomentsFold in the states of this file. */
template <class T> struct PairMoments : FreeFold<T>, RealParts<T> {
  typedef typename RealParts<T>::Real Real;
  using RealParts<T>::parts, RealParts<T>::real;
  typedef MomentState<Real, parts> State;
  static GPR_DEVICE void open(State &s) {
    GPR_EACH(p, parts) gpr::open(s.sum[p]);
    gpr::open(s.squares);
  }
  static GPR_DEVICE void add(State &s, T x, int64_t = 0) {
    for (int p = 0; p < parts; p++) add_alone(&s, p, (double)real(x, p));
  }
  /* The slow way of n numbers that a batch's windows do not hold; by eights they mostly do. Not
   * inlined: it is seldom. */
  static __device__ __noinline__ void add_all(State *s, const T *x, int n) {
    WideMoments<Real, parts> wide;
    wide.open(*s);
    GPR_ROLLED(int i = 0; i < n; i += FEW_OF_BATCH)
      GPR_EACH(p, parts) add_few(wide, p, x + i, n - i);
    if (wide.give(*s)) return;
    GPR_ROLLED(int i = 0; i < n; i++) add(*s, x[i]);
  }
  enum { FEW_OF_BATCH = 8 };
  static GPR_DEVICE void add_few(WideMoments<Real, parts> &wide, int part, const T *x, int n) {
    typedef typename RealOf<T>::type Stored;
    MomentBatch<Stored, FEW_OF_BATCH> batch;
    WideBatch<Stored, FEW_OF_BATCH> windows;
    Real few[FEW_OF_BATCH];
    GPR_EACH(i, FEW_OF_BATCH) {
      few[i] = i < n ? real(x[i], part) : Real(0);
      batch.see(few[i]);
    }
    batch.open();
    if (batch.apart <= windows.spread) {
      windows.open(batch.top);
      GPR_EACH(i, FEW_OF_BATCH) windows.add((double)few[i]);
      wide.take(part, windows);
    } else {
      GPR_ROLLED(int i = 0; i < n && i < FEW_OF_BATCH; i++)
        wide.add(part, (double)real(x[i], part));
    }
  }
  static GPR_DEVICE void merge(State &s, const State &right) {
    for (int p = 0; p < parts; p++) gpr::merge(s.sum[p], right.sum[p]);
    gpr::merge(s.squares, right.squares);
  }
  static GPR_DEVICE void assign(State &to, const State &from) {
    for (int p = 0; p < parts; p++) gpr::assign(to.sum[p], from.sum[p]);
    gpr::assign(to.squares, from.squares);
  }
};

/* A batch of each part: see() of all, open(), and then add() of all. */
template <class T, int N> struct PartsOfBatch {
  typedef PairMoments<T> F;
  typedef MomentBatch<typename RealOf<T>::type, N> Batch;
  Batch part[F::parts];
  GPR_DEVICE void see(T x) {
    GPR_EACH(p, F::parts) part[p].see(F::real(x, p));
  }
  GPR_DEVICE bool open() {
    bool fine = true;
    GPR_EACH(p, F::parts) fine &= part[p].open();
    return fine;
  }
  GPR_DEVICE bool is_nan() const {
    bool nan = false;
    GPR_EACH(p, F::parts) nan |= part[p].is_nan();
    return nan;
  }
  GPR_DEVICE void add(T x) {
    GPR_EACH(p, F::parts) part[p].add(F::real(x, p));
  }
  /* The sums, which are exact. */
  template <class S> GPR_DEVICE void give(S &s) const {
    GPR_EACH(p, F::parts) {
      GPR_EACH(i, Batch::sums) s.sum[p].pair[i] = {part[p].sum(i), 0};
      GPR_EACH(i, Batch::squares) s.squares.pair[p * Batch::squares + i] = {part[p].square(i), 0};
    }
  }
};

GPR_CLOSE
