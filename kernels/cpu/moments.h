/* Variances of real and complex numbers: quickly by twofold sums, and where these do not tell by
 * exact ones. */
#ifndef GPR_MOMENTS_H
#define GPR_MOMENTS_H

#include "bounds.h"
#include "exact_moments.h"
#include "twofold.h"

GPR_OPEN

/* --- twofold sums ------------------------------------------------------------------------------
 */

/* Of an output: what a fold keeps that need not be exact. */
template <int PARTS> struct TwofoldState {
  double part[PARTS][4]; /* as TwofoldMoments */
  int64_t additions;     /* that a number went through, at most */
  int64_t special;       /* NaN or an infinity was met */
};

/* Columns of reals, two vectors at a time: for more, 16 registers do not do. Numbers are added up
 * by blocks, and then these, so that few roundings add up. */
enum { ABREAST_VECTORS = 2, STEP = ABREAST_VECTORS * WIDTH, TWOFOLD_BLOCK = 64 };
template <class Part> struct TwofoldColumns {
  typedef typename Traits<Part>::Wide R;
  static constexpr bool narrow = sizeof(R) < sizeof(double), plain = sizeof(R) == sizeof(Part);
  TwofoldMoments at[ABREAST_VECTORS];
  uint64_t special; /* a bit a column */
  int64_t blocks;
  R copy[TWOFOLD_BLOCK * STEP];

  void open() {
    for (int k = 0; k < ABREAST_VECTORS; k++) at[k].open();
    special = 0;
    blocks = 0;
  }
  int64_t additions() const { return TWOFOLD_BLOCK + 2 * blocks + 4; }
  /* Rows of STEP reals, which zeros fill up. */
  const R *fill(const Part *x, int64_t stride, int64_t columns, int64_t rows) {
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t j = columns; j < STEP; j++) copy[row * STEP + j] = 0;
      copy_wide(x + row * stride, copy + row * STEP, columns);
    }
    return copy;
  }
  GPR_APART void look_for_special(const R *x, int64_t stride, int64_t rows) {
    for (int k = 0; k < ABREAST_VECTORS; k++) {
      Words odd = {};
      for (int64_t row = 0; row < rows; row++) {
        const Doubles d = load(x + row * stride + k * WIDTH);
        odd |= (Words)(d - d != 0);
      }
      special |= mask_of(odd) << (k * WIDTH);
    }
  }
  GPR_METHOD void add_block(const R *x, int64_t stride, int64_t rows, int64_t ahead) {
    TwofoldMoments block[ABREAST_VECTORS];
    uint64_t odd = 0;
    for (int k = 0; k < ABREAST_VECTORS; k++) block[k].open();
    for (int64_t row = 0; row < rows; row++) {
      prefetch_later<STEP>(x + row * stride, ahead);
      for (int k = 0; k < ABREAST_VECTORS; k++)
        block[k].template add<narrow>(load(x + row * stride + k * WIDTH));
    }
    for (int k = 0; k < ABREAST_VECTORS; k++) {
      const Doubles sum = block[k].sum.high;
      odd |= mask_of((Words)(sum - sum != 0));
      if (blocks)
        at[k].merge(block[k]);
      else
        at[k] = block[k];
    }
    blocks++;
    if (odd) look_for_special(x, stride, rows);
  }
  GPR_APART void add(const Part *x, int64_t stride, int64_t columns, int64_t rows, int64_t ahead) {
    for (int64_t row = 0; row < rows; row += TWOFOLD_BLOCK) {
      const int64_t m = least(rows - row, (int64_t)TWOFOLD_BLOCK);
      const Part *from = x + row * stride;
      if constexpr (plain)
        if (columns == STEP) {
          add_block(from, stride, m, ahead);
          continue;
        }
      add_block(fill(from, stride, columns, m), STEP, m, 0);
    }
  }
  void add_row(const Part *x, int64_t n) {
    const int64_t rows = n / STEP, rest = n - rows * STEP;
    add(x, STEP, STEP, rows, gpr_prefetch_ahead / (int64_t)sizeof *x);
    if (rest) add(x + rows * STEP, STEP, rest, 1, 0);
  }
};

/* Some outputs, lane by lane. */
template <int PARTS> struct Spreads {
  enum { MOST = STEP };
  double at[PARTS][4][MOST];
  uint64_t special; /* a bit an output */
  int64_t additions;

  GPR_METHOD TwofoldMoments moments(int part, int64_t first) const {
    const auto &a = at[part];
    return {{load(a[0] + first), load(a[1] + first)}, {load(a[2] + first), load(a[3] + first)}};
  }
  /* A vector of sums of reals, of which the first is this one. */
  GPR_METHOD void put(const TwofoldMoments &m, int first) {
    double lanes[4][WIDTH];
    memcpy(lanes, &m, sizeof lanes);
    for (int i = 0; i < 4; i++)
      if (PARTS == 1)
        memcpy(at[0][i] + first, lanes[i], sizeof lanes[i]);
      else
        for (int l = 0; l < WIDTH; l++) at[l % PARTS][i][(first + l) / PARTS] = lanes[i][l];
  }
  void put_special(uint64_t reals) {
    special = PARTS == 1 ? reals : 0;
    for (int l = 0; PARTS > 1 && reals >> l; l++) special |= (reals >> l & 1) << (l / PARTS);
  }
};

template <class T> struct TwofoldFold {
  typedef typename RealOf<T>::type Part;
  enum { PARTS = MomentsFold<T>::parts, OUTPUTS = STEP / PARTS };
  typedef Spreads<PARTS> Sums;
  typedef TwofoldState<PARTS> State;

  static void take(const TwofoldColumns<Part> &c, Sums &s) {
    for (int k = 0; k < ABREAST_VECTORS; k++) s.put(c.at[k], k * WIDTH);
    s.put_special(c.special);
    s.additions = c.additions();
  }
  /* At most OUTPUTS rows, whose lanes are merged side by side. */
  static void take_rows(const gpr_tile *t, int64_t first, int64_t outputs, Sums &s) {
    double lanes[WIDTH][4][STEP] = {};
    TwofoldColumns<Part> c;
    s.special = 0;
    for (int64_t o = 0; o < outputs; o++) {
      double own[4][WIDTH];
      c.open();
      c.add_row((const Part *)(const void *)(t->data + (first + o) * t->across), t->n * PARTS);
      c.at[0].merge(c.at[1]);
      memcpy(own, &c.at[0], sizeof own);
      for (int l = 0; l < WIDTH; l++)
        for (int i = 0; i < 4; i++) lanes[l][i][o] = own[i][l];
      s.special |= (uint64_t)(c.special != 0) << o;
      s.additions = c.additions() + 4 + 2 * WIDTH;
    }
    for (int64_t o = 0; o < outputs; o += WIDTH)
      for (int p = 0; p < PARTS; p++) {
        TwofoldMoments all;
        all.open();
        for (int l = p; l < WIDTH; l += PARTS) {
          const auto &a = lanes[l];
          all.merge({{load(a[0] + o), load(a[1] + o)}, {load(a[2] + o), load(a[3] + o)}});
        }
        for (int i = 0; i < 4; i++)
          memcpy(s.at[p][i] + o, (const double *)&all + i * WIDTH, sizeof(Doubles));
      }
  }
  /* Calls store(first output, outputs, Sums) for all outputs of a tile. */
  template <class Store> static void each(const gpr_tile *t, const Store &store) {
    enum { AHEAD = 16 }; /* rows: 2^22 doubles in 32 rows took 3.4 ms on Zen 3, and 5.2 without */
    const bool columns = t->across == (int64_t)sizeof(T) && t->outputs > 1;
    const int64_t stride = t->along / (int64_t)sizeof(Part);
    TwofoldColumns<Part> c;
    Sums s;
    for (int64_t o = 0; o < t->outputs; o += OUTPUTS) {
      const int64_t m = least((int64_t)OUTPUTS, t->outputs - o);
      if (columns) {
        const Part *x = (const Part *)(const void *)(t->data + o * t->across);
        c.open();
        c.add(x, stride, m * PARTS, t->n, t->n > AHEAD ? AHEAD * stride : 0);
        take(c, s);
      } else {
        take_rows(t, o, m, s);
      }
      store(o, m, s);
    }
  }

  /* --- states ----------------------------------------------------------------------------------
   */

  static void open(void *state) { memset(state, 0, sizeof(State)); }
  /* Scalars, as vectors would have it. */
  static void add(double *to, double high, double low) {
    const double sum = to[0] + high;
    to[1] += rounding_error(to[0], high, sum) + low;
    to[0] = sum;
  }
  static void merge(void *state, const void *right) {
    State &s = *(State *)state;
    const State &r = *(const State *)right;
    for (int p = 0; p < PARTS; p++) {
      add(s.part[p], r.part[p][0], r.part[p][1]);
      add(s.part[p] + 2, r.part[p][2], r.part[p][3]);
    }
    s.additions = greatest(s.additions, r.additions) + 3;
    s.special |= r.special;
  }
  static void fold_many(void *states, size_t, const gpr_tile *t, int64_t) {
    State *to = (State *)states;
    each(t, [&](int64_t first, int64_t m, const Sums &s) {
      for (int64_t o = 0; o < m; o++) {
        State one;
        for (int p = 0; p < PARTS; p++)
          for (int i = 0; i < 4; i++) one.part[p][i] = s.at[p][i][o];
        one.additions = s.additions;
        one.special = s.special >> o & 1;
        merge(to + first + o, &one);
      }
    });
  }
  static int fold(void *state, const void *data, int64_t n, int64_t) {
    const gpr_tile row = {(const char *)data, 0, sizeof(T), 1, n, nullptr, 0};
    if (n) fold_many(state, 0, &row, 0);
    return ((State *)state)->special != 0;
  }
};

/* --- variances ---------------------------------------------------------------------------------
 */

template <class O, class T> struct TwofoldSpread {
  typedef TwofoldFold<T> F;
  typedef typename F::Sums Sums;
  typedef typename O::Result Result;
  typedef typename F::Part Part;
  enum { PARTS = F::PARTS, OUTPUTS = F::OUTPUTS };

  /* Bits of the outputs that are not sure. */
  static uint64_t finish(const Sums &s, int64_t outputs, const double *n, double ddof, Result *to) {
    uint64_t refused = 0;
    for (int64_t o = 0; o < outputs; o += WIDTH) {
      TwofoldMoments part[PARTS];
      Doubles bounds[2];
      Result rounded[WIDTH];
      for (int p = 0; p < PARTS; p++) part[p] = s.moments(p, o);
      uint64_t out = bound_spreads<PARTS, O::root, (sizeof(Result) < sizeof(double))>(
          part, (double)s.additions, load(n + o), ddof - Doubles{}, bounds, bounds + 1);
      out |= round_bounds(bounds[0], bounds[1], rounded);
      memcpy(to + o, rounded, (size_t)least((int64_t)WIDTH, outputs - o) * sizeof *rounded);
      refused |= out << o;
    }
    for (uint64_t left = s.special; left; left &= left - 1) { /* NaN, if there are any at all */
      const int o = __builtin_ctzll(left);
      if (o < outputs) to[o] = quiet_nan<Result>();
      refused &= ~(1ull << o);
    }
    return refused & ((1ull << outputs) - 1);
  }
  /* Of one number zero, of what is not finite NaN. */
  static void finish_ones(const gpr_tile *t, Result *to) {
    for (int64_t o = 0; o < t->outputs; o++) {
      Part x[PARTS];
      memcpy(x, t->data + o * t->across, sizeof x);
      bool finite = true;
      for (int p = 0; p < PARTS; p++) finite &= wide(x[p]) - wide(x[p]) == 0;
      to[o] = finite ? Format<Result>::make(0) : quiet_nan<Result>();
    }
  }
  static double ddof_of(const void *with) { return with ? ((const gpr_spread *)with)->ddof : 0; }
  /* Calls take(output) for those whose bits are set. */
  template <class Take> static void each_bit(uint64_t bits, const Take &take) {
    for (; bits; bits &= bits - 1) take((int64_t)__builtin_ctzll(bits));
  }
  static int run(const gpr_tile *t, const void *with, void *to) {
    Result *result = (Result *)to;
    const double ddof = ddof_of(with);
    if (t->n == 1 && !t->counts && ddof < 1) {
      finish_ones(t, result);
      return 1;
    }
    double n[Sums::MOST];
    for (int64_t o = 0; o < Sums::MOST; o++) n[o] = (double)t->n;
    F::each(t, [&](int64_t first, int64_t m, const Sums &s) {
      if (t->counts)
        for (int64_t o = 0; o < m; o++) n[o] = (double)t->counts[first + o];
      each_bit(finish(s, m, n, ddof, result + first), [&](int64_t o) {
        Alone<O>::run(t->data + (first + o) * t->across, t->along, t->n, (int64_t)n[o],
                      (const gpr_spread *)with, result + first + o);
      });
    });
    return 1;
  }
  static int finish_many(const void *states, int64_t outputs, int64_t n, const int64_t *counts,
                         const void *with, void *to, uint8_t *refused) {
    const typename F::State *state = (const typename F::State *)states;
    int any = 0;
    memset(refused, 0, (size_t)outputs);
    for (int64_t first = 0; first < outputs; first += OUTPUTS) {
      const int64_t m = least((int64_t)OUTPUTS, outputs - first);
      Sums s = {};
      double many[Sums::MOST];
      for (int64_t o = 0; o < m; o++) {
        const auto &one = state[first + o];
        for (int p = 0; p < PARTS; p++)
          for (int i = 0; i < 4; i++) s.at[p][i][o] = one.part[p][i];
        s.special |= (uint64_t)(one.special != 0 && (!counts || counts[first + o])) << o;
        s.additions = greatest(s.additions, one.additions);
      }
      for (int64_t o = 0; o < Sums::MOST; o++) many[o] = (double)n;
      if (counts)
        for (int64_t o = 0; o < m; o++) many[o] = (double)counts[first + o];
      each_bit(finish(s, m, many, ddof_of(with), (Result *)to + first), [&](int64_t o) {
        refused[first + o] = 1;
        any = 1;
      });
    }
    return any;
  }
  static constexpr gpr_quick quick = {
      sizeof(typename F::State), F::open, F::fold, F::merge, F::fold_many, run, finish_many};
};

template <class O, class T> struct Many<O, MomentsFold<T>> : ManyAlone<O> {};

GPR_CLOSE
#endif
