/* Twofold sums as folds of tiles, and the quick ways that rows have by them. */
#ifndef GPR_TWOFOLD_FOLD_H
#define GPR_TWOFOLD_FOLD_H

#include "copies.h"
#include "twofold_columns.h"

GPR_OPEN

/* Beside other instruction sets the plain one, which no x86 machine of the last ten years runs, has
 * no quick ways. */
#if defined(GPR_X86_LEVELS) && !defined(__AVX2__)
static constexpr bool LEAN = true;
#else
static constexpr bool LEAN = false;
#endif
/* Rows of no more reals are turned into columns. A row of 200 doubles took 90 ns on Zen 4 by itself
 * and 70 turned, one of 400 floats 67 and 88, of 160 complex doubles 98 and 103, of 100 complex
 * floats 51 and 50; by AVX2 of 200 doubles 70 and 77, of 160 floats 40 and 43, of 60 complex
 * doubles 60 and 69. */
template <class R, int PARTS> static constexpr int64_t short_row_of() {
  constexpr bool floats = sizeof(R) == 4, wide = GPR_VECTOR == 64;
  if (PARTS == 2) return wide ? floats ? 200 : 320 : floats ? 100 : 120;
  return wide ? floats ? 320 : 200 : floats ? 144 : 160;
}
template <class R, int PARTS> static constexpr int64_t SHORT_ROW = short_row_of<R, PARTS>();

/* Of m outputs; n, where all have as many. */
GPR_FN Doubles counts_of(const int64_t *counts, int64_t n, int64_t m) {
  double each[WIDTH];
  if (!counts) return (double)n - Doubles{};
  for (int64_t o = 0; o < WIDTH; o++) each[o] = (double)(o < m ? counts[o] : 1);
  return load((const double *)each);
}
/* Of elements of PARTS reals, whichever they are. Kind: TwofoldSum or TwofoldMoments. */
template <class R, int PARTS, template <class> class Kind> struct TwofoldTiles {
  typedef Kind<Doubles> K;
  typedef TwofoldColumns<R, K> Columns;
  enum { NUMBERS = sizeof(Kind<double>) / sizeof(double) };
  struct State {
    Kind<double> part[PARTS];
    int64_t additions;
  };

  /* Of what is to be done with outputs: compiled once for all that do something. */
  struct Store {
    void (*take)(const void *, int64_t, int64_t, int64_t, K *, int64_t);
    const void *job;
    void operator()(int64_t first, int64_t known, int64_t m, K *part, int64_t additions) const {
      take(job, first, known, m, part, additions);
    }
  };

  /* Real r of some vectors of them: its numbers lie WIDTH apart. */
  static GPR_METHOD double *numbers(K *all, int64_t r) {
    return (double *)(void *)(all + r / WIDTH) + r % WIDTH;
  }
  /* Vectors of outputs of each part, of parts by turns. */
  static GPR_METHOD void part_of(K *from, K *part) {
    if constexpr (PARTS == 1) {
      *part = *from;
    } else {
      const Doubles *x = (const Doubles *)(const void *)from;
      Doubles *to = (Doubles *)(void *)part;
      for (int i = 0; i < NUMBERS; i++)
        part_lanes(x[i], x[NUMBERS + i], to[i], to[NUMBERS + i], LanesTo<WIDTH>());
    }
  }
  /* Some states as such vectors, and back. */
  static void read_states(const State *s, int64_t m, K *part) {
    memset((void *)part, 0, PARTS * sizeof *part);
    for (int64_t o = 0; o < m; o++)
      for (int p = 0; p < PARTS; p++)
        for (int i = 0; i < NUMBERS; i++)
          numbers(part + p, o)[i * WIDTH] = ((const double *)(s[o].part + p))[i];
  }
  static void write_states(State *s, int64_t known, int64_t m, K *part) {
    for (int64_t o = known; o < m; o++)
      for (int p = 0; p < PARTS; p++)
        for (int i = 0; i < NUMBERS; i++)
          ((double *)(s[o].part + p))[i] = numbers(part + p, o)[i * WIDTH];
  }
  /* A contiguous matrix of few reals a row as one of more. */
  static GPR_APART void ribbon(const gpr_tile *t, Columns &c, int64_t wide, const Store &store) {
    const int64_t reals = t->outputs * PARTS, together = wide / reals, rows = t->n / together;
    const int64_t along = together * t->along;
    Kind<double> sum[STEP], one;
    K all[2], part[PARTS];
    for (int64_t r = 0; r < STEP; r++) sum[r].open();
    const auto take = [&](int64_t lanes) {
      for (int64_t r = 0; r < lanes; r++) {
        for (int i = 0; i < NUMBERS; i++) ((double *)&one)[i] = numbers(c.at, r)[i * WIDTH];
        sum[r % reals].merge(one);
      }
    };
    c.run({t->data, along, t->across, 0}, wide, rows, 0, wide / STEP);
    const int64_t additions = c.additions + 3 * together + PIECE_ROWS;
    take(wide);
    c.run({t->data + rows * along, t->along, t->across, 0}, reals, t->n - rows * together, 0, 1);
    if (t->n > rows * together) take(reals);
    for (int64_t r = 0; r < STEP; r++)
      for (int i = 0; i < NUMBERS; i++) numbers(all, r)[i * WIDTH] = ((double *)(sum + r))[i];
    for (int64_t first = 0; first < t->outputs; first += WIDTH) {
      part_of(all + first / WIDTH * PARTS, part);
      store(first, (int64_t)0, least((int64_t)WIDTH, t->outputs - first), part, additions);
    }
  }
  static GPR_APART void columns(const gpr_tile *t, Columns &c, const Store &store) {
    const Lines lines = {t->data, t->along, t->across, 0};
    const int64_t reals = t->outputs * PARTS, steps = (reals + STEP - 1) / STEP;
    K part[PARTS];
    int64_t wide = reals;
    while (wide % STEP) wide += reals;
    if (reals < STEP && c.is_straight(lines) && t->along == t->outputs * t->across &&
        t->n > 8 * (wide / reals))
      return ribbon(t, c, wide, store);
    for (int64_t first = 0; first < steps; first += Columns::STEPS) {
      const int64_t some = least(steps - first, (int64_t)Columns::STEPS);
      c.run(lines, reals, t->n, first, some);
      for (int64_t s = 0; s < some; s++)
        for (int64_t k = 0; k < 2; k += PARTS) {
          const int64_t at = (c.start_of(first + s) + k * WIDTH) / PARTS;
          const int64_t known = greatest((int64_t)0, (first + s) * STEP / PARTS - at);
          if (at >= t->outputs || known >= WIDTH) continue;
          part_of(c.at + 2 * s + k, part);
          store(at, known, least((int64_t)WIDTH, t->outputs - at), part, c.additions);
        }
    }
  }
  static GPR_APART void short_rows(const gpr_tile *t, Columns &c, const Store &store) {
    for (int64_t first = 0; first < t->outputs; first += STEP / PARTS) {
      const int64_t left = t->outputs - first;
      c.run_turned(t, first);
      for (int64_t k = 0; k < 2 && k * WIDTH < left; k += PARTS)
        store(first + k * WIDTH, (int64_t)0, least((int64_t)WIDTH, left - k * WIDTH), c.at + k,
              c.additions);
    }
  }
  /* What follows in a row, or the next one, is asked for where that is quicker: without AVX-512, by
   * Intel's, and farther ahead in long rows that no cache holds. 2^22 doubles took 2.4 ms on Zen 3
   * without, 2.0 by 1 KiB ahead, 1.7 by 4 KiB. On Zen 4 6.4 million took 1.7 ms without, 1.9 by 4
   * KiB, 2.7 by 2 KiB and 1.25 by 12 KiB, 752 rows of 11433 2.7 and 2.4, 4125 of 2000 2.1 to 2.3
   * and 2.4 to 2.8; by AVX2 1.7 to 2.2 ms by 4 KiB and 1.3 to 1.5 by 12, 3.2 to 3.4 and 2.2 to 2.4,
   * 2.8 and 1.8 to 2.1. */
  static GPR_METHOD int64_t ahead(int64_t row) {
    constexpr int64_t NEAR = 4 << 10, FAR = 12 << 10, LONG = GPR_VECTOR < 64 ? FAR : 4 * FAR;
    if (gpr_is_far && !gpr_prefetch_ahead && row >= LONG) return FAR;
    return GPR_VECTOR < 64 ? NEAR : gpr_prefetch_ahead;
  }
  /* Lanes are merged side by side. */
  static GPR_APART void rows(const gpr_tile *t, Columns &c, const Store &store) {
    Doubles number[NUMBERS][WIDTH] = {};
    const int64_t row = t->n * t->along, most = ahead(row),
                  later = (row < most ? t->across : most) / c.source.bytes;
    K lane[WIDTH];
    for (int64_t first = 0; first < t->outputs; first += WIDTH) {
      const int64_t m = least((int64_t)WIDTH, t->outputs - first);
      for (int64_t o = 0; o < m; o++) {
        const char *at = t->data + (first + o) * t->across;
        c.run_row(at, t->along, t->n, later);
        for (int i = 0; i < NUMBERS; i++) number[i][o] = ((const Doubles *)(const void *)c.at)[i];
      }
      for (int i = 0; i < NUMBERS; i++) {
        turn(number[i]);
        for (int l = 0; l < WIDTH; l++) ((Doubles *)(void *)(lane + l))[i] = number[i][l];
      }
      for (int half = WIDTH / 2; half >= PARTS; half /= 2)
        for (int l = 0; l < half; l++) lane[l].merge(lane[l + half]);
      store(first, (int64_t)0, m, lane, c.additions);
    }
  }
  /* Calls take(first output, how many of these are known, how many there are, a vector of each
   * part, additions that a number went through) for all outputs of a tile. */
  template <class Take>
  static void each(const gpr_tile *t, const Source<R> &source, const Take &take) {
    const Store store = {
        [](const void *job, int64_t first, int64_t known, int64_t m, K *part, int64_t additions) {
          (*(const Take *)job)(first, known, m, part, additions);
        },
        &take};
    const auto size = [](int64_t x) { return x < 0 ? -x : x; };
    const bool lines = t->outputs == 1 || size(t->along) <= size(t->across);
    Columns c;
    c.tile = t;
    c.parts = PARTS;
    c.source = source;
    if (!lines)
      columns(t, c, store);
    else if (t->n * PARTS > SHORT_ROW<R, PARTS> || t->outputs == 1)
      rows(t, c, store);
    else
      short_rows(t, c, store);
    if (c.infinite && t->infinite) *t->infinite = 1;
  }

  static void open(void *state) {
    State &s = *(State *)state;
    for (int p = 0; p < PARTS; p++) s.part[p].open();
    s.additions = 0;
  }
  static void merge(void *state, const void *right) {
    State &s = *(State *)state;
    const State &r = *(const State *)right;
    for (int p = 0; p < PARTS; p++) s.part[p].merge(r.part[p]);
    s.additions = greatest(s.additions, r.additions) + 3;
  }
  static GPR_APART void fold_many(State *to, const gpr_tile *t, const Source<R> &source) {
    each(t, source, [&](int64_t first, int64_t known, int64_t m, K *part, int64_t additions) {
      K sum[PARTS];
      read_states(to + first, m, sum);
      for (int p = 0; p < PARTS; p++) sum[p].merge(part[p]);
      write_states(to + first, known, m, sum);
      for (int64_t o = first + known; o < first + m; o++)
        to[o].additions = greatest(to[o].additions, additions) + 3;
    });
  }
  static bool is_settled(const State &s) {
    return s.part[0].special != s.part[0].special &&
           s.part[PARTS - 1].special != s.part[PARTS - 1].special;
  }

  /* What finishes a vector of outputs, and tells those that are not sure; and one of them again. */
  struct Finish {
    uint64_t (*some)(K *part, double additions, const Doubles n, const void *with, int64_t known,
                     int64_t m, void *to);
    void (*alone)(const char *data, const gpr_tile *t, int64_t count, const void *with, void *to);
    int64_t bytes; /* of a result */
  };
  static GPR_APART void run(const gpr_tile *t, const Source<R> &source, const Finish &finish,
                            const void *with, char *to) {
    each(t, source, [&](int64_t first, int64_t known, int64_t m, K *part, int64_t additions) {
      const Doubles n = counts_of(t->counts ? t->counts + first : nullptr, t->n, m);
      char *some = to + first * finish.bytes;
      uint64_t refused = finish.some(part, (double)additions, n, with, known, m, some);
      refused &= (1ull << m) - (1ull << known);
      for (; refused; refused &= refused - 1) {
        const int64_t o = __builtin_ctzll(refused);
        const int64_t count = t->counts ? t->counts[first + o] : t->n;
        finish.alone(t->data + (first + o) * t->across, t, count, with, some + o * finish.bytes);
      }
    });
  }
  static GPR_APART int finish_many(const State *state, int64_t outputs, int64_t n,
                                   const int64_t *counts, const Finish &finish, const void *with,
                                   char *to, uint8_t *refused) {
    int any = 0;
    for (int64_t first = 0; first < outputs; first += WIDTH) {
      const int64_t m = least((int64_t)WIDTH, outputs - first);
      int64_t additions = 0;
      K part[PARTS];
      read_states(state + first, m, part);
      for (int64_t o = first; o < first + m; o++)
        additions = greatest(additions, state[o].additions);
      const Doubles many = counts_of(counts ? counts + first : nullptr, n, m);
      const uint64_t out =
          finish.some(part, (double)additions, many, with, 0, m, to + first * finish.bytes);
      for (int64_t o = 0; o < m; o++) any |= refused[first + o] = out >> o & 1;
    }
    return any;
  }
};

/* How elements of a type become reals. */
template <class T> struct RealsOf {
  typedef typename RealOf<T>::type Part;
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = sizeof(T) / sizeof(Part) };
  static constexpr bool plain = sizeof(R) == sizeof(Part);

  static void bring_reals(const gpr_tile *t, const char *from, int64_t step, int64_t n, R *to) {
    if constexpr (plain) {
      bring(t, from, step, n, (T *)(void *)to);
    } else if (!t->cast && step == (int64_t)sizeof(T)) {
      copy_wide((const Part *)(const void *)from, to, n);
    } else {
      enum { SOME = 512 };
      T some[SOME];
      for (int64_t i = 0; i < n; i += SOME) {
        const int64_t m = least(n - i, (int64_t)SOME);
        bring(t, from + i * step, step, m, some);
        copy_wide((const Part *)(const void *)some, to + i, m);
      }
    }
  }
  static constexpr Source<R> source = {plain, sizeof(Part), bring_reals};
};
template <class T, template <class> class Kind> struct TwofoldFold : RealsOf<T> {
  typedef RealsOf<T> Reals;
  typedef TwofoldTiles<typename Reals::R, Reals::PARTS, Kind> Tiles;
  typedef typename Tiles::State State;
  using Reals::source;

  static void fold_many(void *states, size_t, const gpr_tile *t, int64_t) {
    Tiles::fold_many((State *)states, t, source);
  }
  static int fold(void *state, const void *data, int64_t n, int64_t) {
    gpr_tile row{};
    row.data = (const char *)data;
    row.along = sizeof(T);
    row.outputs = 1;
    row.n = n;
    if (n) Tiles::fold_many((State *)state, &row, source);
    return Tiles::is_settled(*(const State *)state);
  }
};

/* --- a row's quick way -------------------------------------------------------------------------
 */

/* One of a tile's outputs, as Q::alone does it. */
template <class Q, class T>
static GPR_APART void run_alone(const char *data, const gpr_tile *t, int64_t count,
                                const void *with, void *to) {
  T x[GPR_SHORT];
  bring(t, data, t->along, t->n, x);
  Q::alone(x, t->n, count, (const typename Q::With *)with, (typename Q::Result *)to);
}
/* Q::finish as Tiles::Finish's; Q::alone(elements, their number, how many count, with, to);
 * Q::at_once(tile, with, to): whether it needed no sums; Q::finish_all: what is left to do of all
 * results. */
template <class Q, class T, template <class> class Kind> struct QuickRow {
  typedef TwofoldFold<T, Kind> F;
  typedef typename F::Tiles Tiles;
  typedef typename Q::Result Result;

  static uint64_t finish_some(typename Tiles::K *part, double additions, const Doubles n,
                              const void *with, int64_t known, int64_t m, void *to) {
    return Q::finish(part, additions, n, (const typename Q::With *)with, known, m, (Result *)to);
  }
  static constexpr typename Tiles::Finish finish = {finish_some, run_alone<Q, T>, sizeof(Result)};

  static int run(const gpr_tile *t, const void *with, void *to) {
    if (t->cast || !Q::at_once(t, with, (Result *)to))
      Tiles::run(t, F::source, finish, with, (char *)to);
    Q::finish_all((Result *)to, t->outputs, t->n, t->counts);
    return 1;
  }
  static int finish_many(const void *states, int64_t outputs, int64_t n, const int64_t *counts,
                         const void *with, void *to, uint8_t *refused) {
    const int any = Tiles::finish_many((const typename F::State *)states, outputs, n, counts,
                                       finish, with, (char *)to, refused);
    Q::finish_all((Result *)to, outputs, n, counts);
    return any;
  }
  static constexpr gpr_quick quick = {
      Q::most,    sizeof(typename F::State), Tiles::open, F::fold, Tiles::merge, F::fold_many, run,
      finish_many};
};
template <class Row> constexpr const gpr_quick *quick_of() {
  if constexpr (LEAN)
    return nullptr;
  else
    return &Row::quick;
}

GPR_CLOSE
#endif
