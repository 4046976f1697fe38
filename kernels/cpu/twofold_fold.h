/* Twofold sums as folds of tiles, and the quick ways that rows have by them. */
#pragma once

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
template <class R> constexpr int64_t short_row_of(int parts) {
  constexpr bool floats = sizeof(R) == 4, wide = GPR_VECTOR == 64;
  if (parts == 2) return wide ? floats ? 200 : 320 : floats ? 100 : 120;
  return wide ? floats ? 320 : 200 : floats ? 144 : 160;
}

/* Of m outputs; n, where all have as many. */
GPR_FN Doubles counts_of(const int64_t *counts, int64_t n, int64_t m) {
  double each[WIDTH];
  if (!counts) return (double)n - Doubles{};
  for (int64_t o = 0; o < WIDTH; o++) each[o] = (double)(o < m ? counts[o] : 1);
  return load((const double *)each);
}

/* --- outputs of any kind, as numbers -------------------------------------------------------------
 */

/* An output's, of each part, and how many additions one of them went through at most. */
template <template <class> class Kind, int PARTS> struct TwofoldState {
  Kind<double> part[PARTS];
  double additions;

  static void open(void *state) {
    TwofoldState &s = *(TwofoldState *)state;
    for (int p = 0; p < PARTS; p++) s.part[p].open();
    s.additions = 0;
  }
  static void merge(void *state, const void *right) {
    TwofoldState &s = *(TwofoldState *)state;
    const TwofoldState &r = *(const TwofoldState *)right;
    for (int p = 0; p < PARTS; p++) s.part[p].merge(r.part[p]);
    s.additions = greatest(s.additions, r.additions) + 3;
  }
  bool is_settled() const {
    return part[0].special != part[0].special && part[PARTS - 1].special != part[PARTS - 1].special;
  }
};
/* Some states as vectors of each number, and back; the most additions. */
enum { NUMBERS_MOST = 32 };
static GPR_APART double read_states(const double *s, int64_t numbers, int64_t m, double *to) {
  double additions = 0;
  memset(to, 0, (size_t)numbers * WIDTH * sizeof *to);
  for (int64_t o = 0; o < m; o++, s += numbers + 1) {
    for (int64_t i = 0; i < numbers; i++) to[i * WIDTH + o] = s[i];
    additions = greatest(additions, s[numbers]);
  }
  return additions;
}
static GPR_APART void write_states(double *s, int64_t numbers, int64_t known, int64_t m,
                                   const double *from, double additions) {
  s += known * (numbers + 1);
  for (int64_t o = known; o < m; o++, s += numbers + 1) {
    for (int64_t i = 0; i < numbers; i++) s[i] = from[i * WIDTH + o];
    s[numbers] = greatest(s[numbers], additions) + 3;
  }
}
/* What is to be done with outputs from the first one on, m of which some are known: `part` is a
 * vector of each part's numbers. Compiled once for all that do something. */
struct Store {
  void (*take)(const void *job, int64_t first, int64_t known, int64_t m, void *part,
               int64_t additions);
  const void *job;
  template <class Job>
  Store(const Job &own)
      : take([](const void *job, int64_t first, int64_t known, int64_t m, void *part,
                int64_t additions) { (*(const Job *)job)(first, known, m, part, additions); }),
        job(&own) {}
  void operator()(int64_t first, int64_t known, int64_t m, void *part, int64_t additions) const {
    take(job, first, known, m, part, additions);
  }
};
/* They are added to states. */
template <class K> struct StatesOf {
  enum { NUMBERS = sizeof(K) / sizeof(Doubles) };
  double *states;
  int parts;
  void operator()(int64_t first, int64_t known, int64_t m, void *part, int64_t additions) const {
    const int64_t numbers = parts * NUMBERS;
    double *s = states + first * (numbers + 1);
    K sum[2];
    read_states(s, numbers, m, (double *)(void *)sum);
    for (int p = 0; p < parts; p++) sum[p].merge(((const K *)part)[p]);
    write_states(s, numbers, known, m, (const double *)(const void *)sum, (double)additions);
  }
};
/* What finishes a vector of outputs, and tells those that are not sure, and from DECIDED on those
 * that infinite elements decide; and one of them again. */
struct Finish {
  uint64_t (*some)(void *part, double additions, const Doubles n, const void *with, int64_t known,
                   int64_t m, void *to);
  void (*alone)(const char *data, const gpr_tile *t, int64_t count, const void *with, void *to);
  int64_t bytes; /* of a result */
};
struct Finished {
  const gpr_tile *t;
  const Finish &finish;
  const void *with;
  char *to;
  void operator()(int64_t first, int64_t known, int64_t m, void *part, int64_t additions) const {
    const Doubles n = counts_of(t->counts ? t->counts + first : nullptr, t->n, m);
    char *some = to + first * finish.bytes;
    const uint64_t told = finish.some(part, (double)additions, n, with, known, m, some),
                   own = (1ull << m) - (1ull << known);
    if (told >> DECIDED) t->infinite->decided += __builtin_popcountll(told >> DECIDED & own);
    for (uint64_t refused = told & own; refused; refused &= refused - 1) {
      const int64_t o = __builtin_ctzll(refused);
      const int64_t count = t->counts ? t->counts[first + o] : t->n;
      finish.alone(t->data + (first + o) * t->across, t, count, with, some + o * finish.bytes);
    }
  }
};
GPR_CALL int finish_states(const double *state, int64_t numbers, int64_t outputs, int64_t n,
                           const int64_t *counts, const Finish &finish, const void *with, char *to,
                           uint8_t *refused, int64_t *decided) {
  int any = 0;
  for (int64_t first = 0; first < outputs; first += WIDTH) {
    const int64_t m = least((int64_t)WIDTH, outputs - first);
    alignas(GPR_VECTOR) double part[NUMBERS_MOST * WIDTH];
    const double additions = read_states(state + first * (numbers + 1), numbers, m, part);
    const Doubles many = counts_of(counts ? counts + first : nullptr, n, m);
    const uint64_t out = finish.some(part, additions, many, with, 0, m, to + first * finish.bytes);
    if (decided) *decided += __builtin_popcountll(out >> DECIDED & ((1ull << m) - 1));
    for (int64_t o = 0; o < m; o++) any |= refused[first + o] = out >> o & 1;
  }
  return any;
}

/* --- tiles -------------------------------------------------------------------------------------
 */

/* Number i of real r of some vectors of them. */
template <class K> GPR_FN double &number_of(K *all, int64_t r, int i) {
  return ((double *)(void *)(all + r / WIDTH))[i * WIDTH + r % WIDTH];
}
/* Lanes to sums of as many reals, by turns. */
template <class K, class Sum>
static GPR_APART void add_lanes(K *lane, int64_t lanes, int64_t reals, Sum *sum) {
  Sum one;
  for (int64_t r = 0; r < lanes; r++) {
    for (int i = 0; i < (int)(sizeof one / sizeof(double)); i++)
      ((double *)&one)[i] = number_of(lane, r, i);
    sum[r % reals].merge(one);
  }
}
/* All lanes of an output each, as numbers, side by side. */
template <class K> static GPR_APART void merge_lanes(Doubles (*number)[WIDTH], int parts, K *lane) {
  for (int i = 0; i < (int)(sizeof *lane / sizeof(Doubles)); i++) {
    turn(number[i]);
    for (int l = 0; l < WIDTH; l++) ((Doubles *)(void *)(lane + l))[i] = number[i][l];
  }
  for (int half = WIDTH / 2; half > 1; half /= 2)
    for (int l = 0; l < half; l++) lane[l].merge(lane[l + half]);
  if (parts == 1) lane[0].merge(lane[1]);
}
/* Of elements of some reals, whichever they are. Kind: TwofoldSum or TwofoldMoments. */
template <class R, template <class> class Kind> struct TwofoldTiles {
  typedef typename Kind<Doubles>::Merged K;
  typedef typename Kind<double>::Merged Sum;
  typedef TwofoldColumns<R, Kind<Doubles>> Columns;
  enum { NUMBERS = sizeof(Sum) / sizeof(double) };

  /* Vectors of outputs of each part, of parts by turns. */
  static GPR_METHOD K *part_of(K *from, int parts, K *two) {
    if (parts == 1) return from;
    const Doubles *x = (const Doubles *)(const void *)from;
    Doubles *to = (Doubles *)(void *)two;
    for (int i = 0; i < NUMBERS; i++)
      part_lanes(x[i], x[NUMBERS + i], to[i], to[NUMBERS + i], LanesTo<WIDTH>());
    return two;
  }
  /* A contiguous matrix of few reals a row as one of more. */
  static GPR_APART void ribbon(const gpr_tile *t, Columns &c, int64_t wide, const Store &store) {
    const int64_t reals = t->outputs * c.parts, together = wide / reals, rows = t->n / together;
    const int64_t along = together * t->along;
    Sum sum[STEP];
    K all[2], two[2];
    for (int64_t r = 0; r < STEP; r++) sum[r].open();
    c.run({t->data, along, t->across, 0}, wide, rows, 0, wide / STEP);
    const int64_t additions = c.additions + 3 * together + PIECE_ROWS;
    add_lanes<K>(c.at, wide, reals, sum);
    c.run({t->data + rows * along, t->along, t->across, 0}, reals, t->n - rows * together, 0, 1);
    if (t->n > rows * together) add_lanes<K>(c.at, reals, reals, sum);
    for (int64_t r = 0; r < STEP; r++)
      for (int i = 0; i < NUMBERS; i++) number_of(all, r, i) = ((double *)(sum + r))[i];
    for (int64_t first = 0; first < t->outputs; first += WIDTH)
      store(first, (int64_t)0, least((int64_t)WIDTH, t->outputs - first),
            part_of(all + first / WIDTH * c.parts, c.parts, two), additions);
  }
  static GPR_APART void columns(const gpr_tile *t, Columns &c, const Store &store) {
    const Lines lines = {t->data, t->along, t->across, 0, t->places};
    const int64_t reals = t->outputs * c.parts, steps = (reals + STEP - 1) / STEP;
    K two[2];
    int64_t wide = reals;
    while (wide % STEP) wide += reals;
    if (reals < STEP && c.is_straight(lines) && t->along == t->outputs * t->across && !t->places &&
        t->n > 8 * (wide / reals))
      return ribbon(t, c, wide, store);
    for (int64_t first = 0; first < steps; first += Columns::STEPS) {
      const int64_t some = least(steps - first, (int64_t)Columns::STEPS);
      c.run(lines, reals, t->n, first, some);
      for (int64_t s = 0; s < some; s++)
        for (int64_t k = 0; k < 2; k += c.parts) {
          const int64_t at = (c.start_of(first + s) + k * WIDTH) / c.parts;
          const int64_t known = greatest((int64_t)0, (first + s) * STEP / c.parts - at);
          if (at >= t->outputs || known >= WIDTH) continue;
          store(at, known, least((int64_t)WIDTH, t->outputs - at),
                part_of(c.at + 2 * s + k, c.parts, two), c.additions);
        }
    }
  }
  static GPR_APART void short_rows(const gpr_tile *t, Columns &c, const Store &store) {
    for (int64_t first = 0; first < t->outputs; first += STEP / c.parts) {
      const int64_t left = t->outputs - first;
      c.run_turned(t, first);
      for (int64_t k = 0; k < 2 && k * WIDTH < left; k += c.parts)
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
      merge_lanes(number, c.parts, lane);
      store(first, (int64_t)0, m, lane, c.additions);
    }
  }
  static GPR_APART void run(const gpr_tile *t, const Source<R> &source, const Store &store) {
    const auto size = [](int64_t x) { return x < 0 ? -x : x; };
    const bool lines = !t->places && (t->outputs == 1 || size(t->along) <= size(t->across));
    Columns c;
    c.tile = t;
    c.parts = source.parts;
    c.source = source;
    if (!lines)
      columns(t, c, store);
    else if (t->n * c.parts > short_row_of<R>(c.parts) || t->outputs == 1)
      rows(t, c, store);
    else
      short_rows(t, c, store);
    if (c.infinite && t->infinite) t->infinite->met = 1;
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
  static constexpr Source<R> source = {plain, PARTS, sizeof(Part), bring_reals};
};
template <class T, template <class> class Kind> struct TwofoldFold : RealsOf<T> {
  typedef RealsOf<T> Reals;
  typedef TwofoldTiles<typename Reals::R, Kind> Tiles;
  typedef typename Tiles::K K;
  typedef TwofoldState<Kind, Reals::PARTS> State;
  enum { NUMBERS = sizeof(State) / sizeof(double) - 1 };
  static_assert((int)NUMBERS <= (int)NUMBERS_MOST, "");

  static void fold_many(void *states, size_t, const gpr_tile *t, int64_t) {
    Tiles::run(t, Reals::source, StatesOf<K>{(double *)states, Reals::PARTS});
  }
  static int fold(void *state, const void *data, int64_t n, int64_t) {
    gpr_tile row{};
    row.data = (const char *)data;
    row.along = sizeof(T);
    row.outputs = 1;
    row.n = n;
    if (n) fold_many(state, 0, &row, 0);
    return ((const State *)state)->is_settled();
  }
};

/* --- a row's quick way -------------------------------------------------------------------------
 */

/* One of a tile's outputs, as Q::alone does it. */
template <class Q, class T>
static GPR_APART void run_alone(const char *data, const gpr_tile *t, int64_t count,
                                const void *with, void *to) {
  T x[GPR_SHORT];
  bring_output(t, data, 0, t->n, x);
  Q::alone(x, t->n, count, (const typename Q::With *)with, (typename Q::Result *)to);
}
/* Q::finish as Finish's; Q::alone(elements, their number, how many count, with, to);
 * Q::at_once(tile, with, to): whether it needed no sums; Q::finish_all: what is left to do of all
 * results. */
template <class Q, class T, template <class> class Kind> struct QuickRow {
  typedef TwofoldFold<T, Kind> F;
  typedef typename F::State State;
  typedef typename Q::Result Result;

  static uint64_t finish_some(void *part, double additions, const Doubles n, const void *with,
                              int64_t known, int64_t m, void *to) {
    return Q::finish((typename F::K *)part, additions, n, (const typename Q::With *)with, known, m,
                     (Result *)to);
  }
  static constexpr Finish finish = {finish_some, run_alone<Q, T>, sizeof(Result)};

  static int run(const gpr_tile *t, const void *with, void *to) {
    if (t->cast || !Q::at_once(t, with, (Result *)to))
      F::Tiles::run(t, F::source, Finished{t, finish, with, (char *)to});
    Q::finish_all((Result *)to, t->outputs, t->n, t->counts);
    return 1;
  }
  static int finish_many(const void *states, int64_t outputs, int64_t n, const int64_t *counts,
                         const void *with, void *to, uint8_t *refused, int64_t *decided) {
    const int any = finish_states((const double *)states, F::NUMBERS, outputs, n, counts, finish,
                                  with, (char *)to, refused, decided);
    Q::finish_all((Result *)to, outputs, n, counts);
    return any;
  }
  static constexpr gpr_quick quick = {Q::most,      sizeof(State), State::open, F::fold,
                                      State::merge, F::fold_many,  run,         finish_many};
};
template <class Row> constexpr const gpr_quick *quick_of() {
  if constexpr (LEAN)
    return nullptr;
  else
    return &Row::quick;
}

GPR_CLOSE
