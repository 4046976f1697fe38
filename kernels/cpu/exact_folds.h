/* Exact sums of numbers and of their squares: by twofold sums where these lose nothing, and else by
 * bins. */
#pragma once

#include "bins.h"
#include "slices.h"
#include "twofold_fold.h"

#include "../core/variance.h"

GPR_OPEN

/* --- by bins -----------------------------------------------------------------------------------
 */

/* Below this the rest of a square would be below the last of all doubles, above it overflows. */
static constexpr double SQUARE_LEAST = 0x1p-450, SQUARE_MOST = 0x1p500;

/* Squares and their rests; false where they are not exact. */
GPR_CALL bool exact_squares(const double *x, int64_t n, double *square, double *rest) {
  Words out = {};
  for (int64_t i = 0; i < n; i += WIDTH) {
    const Doubles d = load(x + i), size = (Doubles)(bits(d) << 1 >> 1), p = GPR_PRODUCT(d, d);
    const Doubles r = product_rest(d, d, p);
    out |= (Words)(size < SQUARE_LEAST) & (Words)(size > 0);
    out |= ~(Words)(size <= SQUARE_MOST);
    memcpy(square + i, &p, sizeof p);
    memcpy(rest + i, &r, sizeof r);
  }
  return !mask_of(out);
}

/* A fold's elements, as far as they matter. */
template <class F> struct Bins {
  typedef typename F::Element T;
  typedef typename F::State State;
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  static constexpr bool SQUARES = !Same<F, ExactFold<T>>::value,
                        NARROW = sizeof(R) < sizeof(double);
  enum { PARTS = F::parts, MOST = ExponentBins::MOST, SOME = MOST / PARTS };
  State &state;
  ExponentBins bins[PARTS + SQUARES];
  Exact squared = {}; /* of squares and of what these leave over */

  explicit Bins(State &to) : state(to) {}
  /* Nothing that comes matters: NaN in each part of a sum, or in one of a variance. */
  static bool is_settled(const State &s) {
    const uint32_t first = s.part[0].special, last = s.part[PARTS - 1].special;
    return (SQUARES ? first | last : first & last) & GPR_NAN;
  }
  void add(const T *x, int64_t n) {
    for (int64_t i = 0; i < n && !is_settled(state); i += SOME)
      add_some(x + i, least(n - i, (int64_t)SOME));
  }
  /* Whether every element is -0.0 matters to the sign of a zero. */
  GPR_APART void add_some(const T *x, int64_t n) {
    R batch[MOST];
    alignas(GPR_VECTOR) double one[MOST];
    copy_wide((const Part *)(const void *)x, batch, n * PARTS);
    for (int p = 0; p < PARTS; p++) {
      uint64_t other = 0;
      for (int64_t i = 0; i < n; i++) {
        one[i] = (double)batch[i * PARTS + p];
        other |= bits(one[i]) ^ 1ull << 63;
      }
      state.part[p].signs |= other ? GPR_MET | GPR_OTHER : GPR_MET;
      if constexpr (SQUARES) add_squares(one, n);
      bins[p].add(state.part[p], one, n);
    }
  }
  GPR_APART void add_squares(double *x, int64_t n) {
    alignas(GPR_VECTOR) double square[MOST], rest[MOST];
    int64_t padded = n;
    while (padded % WIDTH) x[padded++] = 0;
    if (exact_squares(x, padded, square, rest)) {
      bins[PARTS].add(squared, square, n);
      if (!NARROW) bins[PARTS].add(squared, rest, n);
    } else {
      for (int64_t i = 0; i < n; i++) scatter_square(state.squares, x[i]);
    }
  }
  void flush() {
    for (int p = 0; p < PARTS; p++) bins[p].flush(state.part[p]);
    if constexpr (SQUARES) {
      bins[PARTS].flush(squared);
      carry(squared);
      for (int i = 0; i < GPR_DIGITS; i++)
        if (squared.digit[i]) deposit(state.squares, squared.digit[i], GPR_BOTTOM + 32 * i);
    }
  }
};

/* --- by twofold sums ---------------------------------------------------------------------------
 */

template <class T, int SQUARES> struct KindOf {
  typedef TwofoldFold<T, Tracked<SQUARES>::template Moments> type;
};
template <class T> struct KindOf<T, 0> { typedef TwofoldFold<T, TrackedSum> type; };

GPR_FN void deposit(Squares &s, double x) {
  int exponent;
  uint32_t special = 0;
  if (const int64_t m = mantissa(x, exponent, special)) deposit(s, m, exponent);
}
GPR_FN void put_twofold(Exact &e, double high, double low) {
  const bool other = bits(high) != bits(-0.0) || low != 0;
  e.signs |= other ? GPR_MET | GPR_OTHER : GPR_MET;
  scatter(e, high);
  scatter(e, low);
}

template <class F> struct ExactTiles {
  typedef typename F::Element T;
  typedef typename F::State State;
  static constexpr bool plain = sizeof(typename RealOf<T>::type) == sizeof(double);
  enum { SQUARES = Same<F, ExactFold<T>>::value ? 0 : plain ? 3 : 2 };
  /* Of contiguous numbers: more would lose something more often, which slices do by themselves. */
  enum { BLOCK = SQUARES > 0 || plain ? 32768 : 8192, SOME = 1024 };
  typedef typename KindOf<T, SQUARES>::type Fold;

  template <class S> static bool holds(const S &s, int lane) { return s.errors[lane] == 0; }
  /* An output of some vectors, unless these have lost of it, or met what is special. */
  template <class K> static bool take(State &s, const K *part, int lane) {
    bool held = true;
    for (int p = 0; p < F::parts; p++) {
      held &= part[p].special[lane] == 0 && holds(part[p], lane);
      if constexpr (SQUARES > 0)
        for (int i = 0; i < SQUARES; i++) held &= holds(part[p].square[i], lane);
    }
    for (int p = 0; held && p < F::parts; p++) {
      put_twofold(s.part[p], part[p].sum.high[lane], part[p].sum.low[lane]);
      if constexpr (SQUARES > 0)
        for (int i = 0; i < SQUARES; i++) {
          deposit(s.squares, part[p].square[i].sum.high[lane]);
          deposit(s.squares, part[p].square[i].sum.low[lane]);
        }
    }
    return held;
  }
  /* Bins of three reals take 192 KiB of a thread's stack, so that little is left to what comes. */
  static GPR_APART void again(State &s, const gpr_tile *t, const char *data) {
    enum { PIECE = (16 << 10) / sizeof(T) };
    T x[PIECE];
    Bins<F> bins(s);
    for (int64_t i = 0; i < t->n; i += PIECE) {
      const int64_t m = least(t->n - i, (int64_t)PIECE);
      bring_output(t, data, i, m, x);
      bins.add(x, m);
    }
    bins.flush();
  }
  /* Of the outputs that are left those that this holds; whether others are left. */
  template <class By>
  static bool fold_by(char *states, size_t slot, const gpr_tile *t, uint8_t *left) {
    bool any = false;
    const auto take_some = [&](int64_t first, int64_t known, int64_t m, void *part, int64_t) {
      for (int64_t o = first + known; o < first + m; o++)
        if (left[o])
          any |= left[o] =
              !take(state_at(states, slot, o), (typename By::K *)part, (int)(o - first));
    };
    By::Tiles::run(t, By::source, take_some);
    return any;
  }
  /* Floats that lie close together are sums of doubles; slices do without that. */
  static GPR_APART void fold_some(char *states, size_t slot, const gpr_tile *t) {
    uint8_t left[SOME];
    bool any = true;
    memset(left, 1, sizeof left);
    if constexpr (!LEAN && !plain && SQUARES == 0)
      any = fold_by<TwofoldFold<T, TwofoldSum>>(states, slot, t, left);
    if constexpr (!LEAN)
      if (any) any = fold_by<Fold>(states, slot, t, left);
    for (int64_t o = 0; any && o < t->outputs; o++)
      if (left[o]) again(state_at(states, slot, o), t, t->data + o * t->across);
  }
  static State &state_at(char *states, size_t slot, int64_t o) {
    return *(State *)(void *)(states + (size_t)o * slot);
  }
  /* Of long rows few together, so that few are folded twice. */
  static void fold_tile(void *states, size_t slot, const gpr_tile *t) {
    const int64_t most =
        t->along == (int64_t)sizeof(T) && t->n > SOME / 2 ? 4 * (int64_t)WIDTH : (int64_t)SOME;
    gpr_tile some = *t;
    for (int64_t o = 0; o < t->outputs; o += most) {
      some.data = t->data + o * t->across;
      some.outputs = least(t->outputs - o, most);
      fold_some((char *)states + (size_t)o * slot, slot, &some);
    }
  }
  static void fold(State &s, const T *x, int64_t n) {
    gpr_tile row{};
    row.along = sizeof(T);
    row.outputs = 1;
    for (int64_t i = 0; i < n && !Bins<F>::is_settled(s); i += BLOCK) {
      row.data = (const char *)(x + i);
      row.n = least(n - i, (int64_t)BLOCK);
      fold_tile(&s, 0, &row);
    }
  }
};
template <class F> struct ExactFolder {
  static bool is_settled(const typename F::State &s) { return Bins<F>::is_settled(s); }
  static void fold(typename F::State &s, const typename F::Element *x, int64_t n, int64_t) {
    ExactTiles<F>::fold(s, x, n);
  }
};
template <class O, class T> struct Folder<O, ExactFold<T>> : ExactFolder<ExactFold<T>> {};
template <class O, class T> struct Folder<O, MomentsFold<T>> : ExactFolder<MomentsFold<T>> {};

template <class F> struct ManyExact {
  enum { side = GPR_ANY_TILE };
  static constexpr decltype(gpr_row::many) run = nullptr;
  static void fold(void *states, size_t slot, const gpr_tile *t, int64_t) {
    ExactTiles<F>::fold_tile(states, slot, t);
  }
};
template <class O, class T> struct Many<O, ExactFold<T>> : ManyExact<ExactFold<T>> {};
template <class O, class T> struct Many<O, MomentsFold<T>> : ManyExact<MomentsFold<T>> {};

GPR_CLOSE
