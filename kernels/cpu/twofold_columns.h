/* Columns and rows of real and complex numbers as lanes of twofold sums. */
#ifndef GPR_TWOFOLD_COLUMNS_H
#define GPR_TWOFOLD_COLUMNS_H

#include "many.h"
#include "twofold.h"

GPR_OPEN

/* Numbers are added up by blocks of rows, and then these, so that few roundings add up; some rows
 * of a panel of columns at a time, which the hardware can follow. */
enum { PANEL = 256, BLOCK_ROWS = 64, WOVEN_ROWS = 8 };

template <class K, class R>
GPR_APART void look_for_special(K *to, const R *x, int64_t stride, int64_t rows) {
  for (int k = 0; k < 2; k++, x += WIDTH) {
    Doubles special = {};
    for (int64_t row = 0; row < rows; row++) {
      const Doubles d = load(x + row * stride);
      special += (Doubles)(bits(d) & (Words)(d - d != 0));
    }
    to[k].special += special;
    to[k].set_aside((Words)(to[k].sum.high - to[k].sum.high != 0));
  }
}
/* Rows of STEP reals. EXACTLY: by sums that know what they lose. */
template <bool EXACTLY, class K, class R>
GPR_FN void add_rows(K *to, const R *x, int64_t stride, int64_t rows, int64_t ahead) {
  constexpr bool narrow = sizeof(R) < sizeof(double);
  K a = to[0], b = to[1];
  for (int64_t row = 0; row < rows; row++) {
    const R *at = x + row * stride;
    prefetch_later<STEP>(at, ahead);
    if constexpr (EXACTLY) {
      a.add_exactly(load(at));
      b.add_exactly(load(at + WIDTH));
    } else {
      a.template add<narrow>(load(at));
      b.template add<narrow>(load(at + WIDTH));
    }
  }
  to[0] = a;
  to[1] = b;
  const Doubles all = a.sum.high + b.sum.high;
  if (mask_of((Words)(all - all != 0))) look_for_special(to, x, stride, rows);
}

/* Rows of floats by plain sums of doubles: exact where their exponents are close, else off by
 * rows²·u·max|x| at most; what is not finite stays, for nothing overflows. */
GPR_FN void add_floats(TwofoldSum<Doubles> *to, const float *x, int64_t stride, int64_t rows,
                       int64_t ahead) {
  const uint32_t infinity = 0xff000000u;
  const uint32_t near = (uint32_t)(53 - 24 - (rows > WOVEN_ROWS ? 6 : 3)) << 24;
  Doubles sum[2] = {-Doubles{}, -Doubles{}};
  Words32 high = {}, low = ~Words32{}; /* magnitudes, shifted; zero is no low */
  for (int64_t row = 0; row < rows; row++) {
    const float *at = x + row * stride;
    prefetch_later<STEP>(at, ahead);
    Words32 size;
    memcpy(&size, at, sizeof size);
    size += size;
    high = high > size ? high : size;
    size -= 1;
    low = low < size ? low : size;
    sum[0] += load(at);
    sum[1] += load(at + WIDTH);
  }
  const Words32 most = high & infinity, fewest = (low + 1) & infinity;
  const Words32 far = (Words32)((most - fewest > near) & (most > fewest));
  if (mask_of(far | (Words32)(most == infinity))) {
    float size[STEP];
    high = high >> 1 & far;
    memcpy(size, &high, sizeof size);
    for (int k = 0; k < 2; k++) {
      const Words odd = (Words)(sum[k] - sum[k] != 0);
      to[k].special += (Doubles)(odd & bits(sum[k]));
      sum[k] = (Doubles)(~odd & bits(sum[k]));
      to[k].errors += (Doubles)(~odd & bits((double)rows * load((const float *)size + k * WIDTH)));
    }
  }
  for (int k = 0; k < 2; k++) to[k].template add<true>(sum[k]);
}

/* Reals in steps, of which the last may have some of the one before it again. */
template <class Part, class K> struct TwofoldColumns {
  typedef typename Traits<Part>::Wide R;
  static constexpr bool plain = sizeof(R) == sizeof(Part);
  enum { STEPS = PANEL / STEP };
  K at[2 * STEPS], block[2 * STEPS];
  R copy[BLOCK_ROWS * STEP];
  int64_t width, additions;
  bool exactly; /* few enough doubles for ties to be frequent */

  int64_t start_of(int64_t step) const {
    return greatest((int64_t)0, least(step * STEP, width - STEP));
  }
  /* Rows of STEP reals, which -0.0 fills up. */
  const R *ready(const Part *x, int64_t stride, int64_t columns, int64_t rows) {
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t j = columns; j < STEP; j++) copy[row * STEP + j] = -(R)0;
      copy_wide(x + row * stride, copy + row * STEP, columns);
    }
    return copy;
  }
  void add_ready(K *to, const R *x, int64_t stride, int64_t rows, int64_t ahead) {
    if constexpr (Same<K, TwofoldSum<Doubles>>::value && sizeof(R) < sizeof(double)) {
      return add_floats(to, x, stride, rows, ahead);
    } else if constexpr (Same<K, TwofoldSum<Doubles>>::value) {
      if (exactly) return add_rows<true>(to, x, stride, rows, ahead);
    }
    add_rows<false>(to, x, stride, rows, ahead);
  }
  void add_step(K *to, const Part *x, int64_t stride, int64_t rows, int64_t ahead) {
    if constexpr (plain)
      if (width >= STEP) return add_ready(to, x, stride, rows, ahead);
    add_ready(to, ready(x, stride, least(width, (int64_t)STEP), rows), STEP, rows, 0);
  }
  /* At least as many rows as each of its additions had. */
  void settle(K *to, int64_t rows) {
    if (!exactly) to->settle((double)(rows + 4));
  }
  /* Of some steps of a matrix of so many reals a row. */
  GPR_APART void run(const Part *x, int64_t stride, int64_t columns, int64_t rows, int64_t first,
                     int64_t steps) {
    const int64_t few = steps > 1 ? WOVEN_ROWS : BLOCK_ROWS;
    const int64_t ahead = gpr_prefetch_columns && rows > 2 * few ? few * stride : 0;
    width = columns;
    exactly = sizeof(R) == sizeof(double) && rows <= BLOCK_ROWS;
    for (int64_t row = 0; row < rows; row += BLOCK_ROWS) {
      const int64_t stop = least(rows, row + BLOCK_ROWS);
      K *to = row ? block : at;
      for (int64_t k = 0; k < 2 * steps; k++) to[k].open();
      for (int64_t i = row; i < stop; i += few)
        for (int64_t s = 0; s < steps; s++)
          add_step(to + 2 * s, x + i * stride + start_of(first + s), stride, least(few, stop - i),
                   ahead);
      for (int64_t k = 0; k < 2 * steps; k++) settle(to + k, stop - row);
      for (int64_t k = 0; row && k < 2 * steps; k++) at[k].merge(block[k]);
    }
    additions = BLOCK_ROWS + 2 * (rows / BLOCK_ROWS) + 4;
  }
  /* All lanes of a contiguous row in the first two. */
  GPR_APART void run_row(const Part *x, int64_t n) {
    const int64_t rows = n / STEP, rest = n - rows * STEP;
    const int64_t ahead = gpr_prefetch_ahead / (int64_t)sizeof *x;
    width = STEP;
    exactly = sizeof(R) == sizeof(double) && n <= BLOCK_ROWS;
    at[0].open();
    at[1].open();
    if (rest) add_ready(at, ready(x + rows * STEP, STEP, rest, 1), STEP, 1, 0);
    if (!rows) settle(at, 1), settle(at + 1, 1);
    for (int64_t row = 0; row < rows; row += BLOCK_ROWS) {
      const int64_t m = least(rows - row, (int64_t)BLOCK_ROWS);
      K *to = row ? block : at;
      if (row) to[0].open(), to[1].open();
      add_step(to, x + row * STEP, STEP, m, ahead);
      settle(to, m + 1);
      settle(to + 1, m + 1);
      if (row) at[0].merge(block[0]), at[1].merge(block[1]);
    }
    at[0].merge(at[1]);
    additions = BLOCK_ROWS + 2 * (rows / BLOCK_ROWS) + 4 + 2 * WIDTH;
  }
};

/* Kind: TwofoldSum or TwofoldMoments. */
template <class T, template <class> class Kind> struct TwofoldFold {
  typedef typename RealOf<T>::type Part;
  typedef Kind<Doubles> K;
  typedef TwofoldColumns<Part, K> Columns;
  enum { PARTS = Traits<T>::kind == KIND_COMPLEX ? 2 : 1 };
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
      for (int l = 0; l < STEP; l++)
        for (int i = 0; i < NUMBERS; i++)
          numbers(part + l % PARTS, l / PARTS)[i * WIDTH] = numbers(from, l)[i * WIDTH];
    }
  }
  /* A contiguous matrix of few reals a row as one of more. */
  static GPR_APART void ribbon(const gpr_tile *t, Columns &c, int64_t wide, const Store &store) {
    const Part *x = (const Part *)(const void *)t->data;
    const int64_t reals = t->outputs * PARTS, together = wide / reals, rows = t->n / together;
    Kind<double> sum[STEP], one;
    K all[2], part[PARTS];
    for (int64_t r = 0; r < STEP; r++) sum[r].open();
    const auto take = [&](int64_t lanes) {
      for (int64_t r = 0; r < lanes; r++) {
        for (int i = 0; i < NUMBERS; i++) ((double *)&one)[i] = numbers(c.at, r)[i * WIDTH];
        sum[r % reals].merge(one);
      }
    };
    c.run(x, wide, wide, rows, 0, wide / STEP);
    const int64_t additions = c.additions + 3 * together + BLOCK_ROWS;
    take(wide);
    c.run(x + rows * wide, reals, reals, t->n - rows * together, 0, 1);
    if (t->n > rows * together) take(reals);
    for (int64_t r = 0; r < STEP; r++)
      for (int i = 0; i < NUMBERS; i++) numbers(all, r)[i * WIDTH] = ((double *)(sum + r))[i];
    for (int64_t first = 0; first < t->outputs; first += WIDTH) {
      part_of(all + first / WIDTH * PARTS, part);
      store(first, (int64_t)0, least((int64_t)WIDTH, t->outputs - first), part, additions);
    }
  }
  static GPR_APART void columns(const gpr_tile *t, const Store &store) {
    const Part *x = (const Part *)(const void *)t->data;
    const int64_t reals = t->outputs * PARTS, stride = t->along / (int64_t)sizeof(Part);
    const int64_t steps = (reals + STEP - 1) / STEP;
    Columns c;
    K part[PARTS];
    int64_t wide = reals;
    while (wide % STEP) wide += reals;
    if (reals < STEP && stride == reals && t->n > 8 * (wide / reals))
      return ribbon(t, c, wide, store);
    for (int64_t first = 0; first < steps; first += Columns::STEPS) {
      const int64_t some = least(steps - first, (int64_t)Columns::STEPS);
      c.run(x, stride, reals, t->n, first, some);
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
  /* Lanes are merged side by side. */
  static GPR_APART void rows(const gpr_tile *t, const Store &store) {
    Columns c;
    K part[PARTS], lane[WIDTH];
    for (int64_t first = 0; first < t->outputs; first += WIDTH) {
      const int64_t m = least((int64_t)WIDTH, t->outputs - first);
      if (m < WIDTH) memset((void *)lane, 0, sizeof lane);
      for (int64_t o = 0; o < m; o++) {
        const char *at = t->data + (first + o) * t->across;
        c.run_row((const Part *)(const void *)at, t->n * PARTS);
        for (int l = 0; l < WIDTH; l++)
          for (int i = 0; i < NUMBERS; i++)
            numbers(lane + l, o)[i * WIDTH] = numbers(c.at, l)[i * WIDTH];
      }
      for (int p = 0; p < PARTS; p++) part[p] = lane[p];
      for (int l = PARTS; l < WIDTH; l++) part[l % PARTS].merge(lane[l]);
      store(first, (int64_t)0, m, part, c.additions);
    }
  }
  /* Calls take(first output, how many of these are known, how many there are, a vector of each
   * part, additions that a number went through) for all outputs of a tile. */
  template <class Take> static void each(const gpr_tile *t, const Take &take) {
    const Store store = {
        [](const void *job, int64_t first, int64_t known, int64_t m, K *part, int64_t additions) {
          (*(const Take *)job)(first, known, m, part, additions);
        },
        &take};
    const int64_t each = sizeof(T);
    if (t->outputs > 1 ? t->across == each : t->along != each)
      columns(t, store);
    else
      rows(t, store);
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
  static void fold_many(void *states, size_t, const gpr_tile *t, int64_t) {
    State *to = (State *)states;
    each(t, [&](int64_t first, int64_t known, int64_t m, K *part, int64_t additions) {
      for (int64_t o = known; o < m; o++) {
        State one;
        for (int p = 0; p < PARTS; p++)
          for (int i = 0; i < NUMBERS; i++)
            ((double *)(one.part + p))[i] = numbers(part + p, o)[i * WIDTH];
        one.additions = additions;
        merge(to + first + o, &one);
      }
    });
  }
  static int fold(void *state, const void *data, int64_t n, int64_t) {
    const State &s = *(const State *)state;
    const gpr_tile row = {(const char *)data, 0, sizeof(T), 1, n, nullptr, 0};
    if (n) fold_many(state, 0, &row, 0);
    return s.part[0].special != s.part[0].special &&
           s.part[PARTS - 1].special != s.part[PARTS - 1].special;
  }
};

/* --- a row's quick way -------------------------------------------------------------------------
 */

/* Q finishes a vector of outputs: Q::finish(part, additions, n of each, with, known, outputs, to)
 * tells those that are not sure, Q::at_once(tile, with, to) whether it needed no sums. */
template <class Q, class O, class T, template <class> class Kind> struct QuickRow {
  typedef TwofoldFold<T, Kind> F;
  typedef typename F::K K;
  typedef typename O::Result Result;
  typedef typename FinishedWith<O>::type With;

  static GPR_METHOD Doubles counts_of(const int64_t *counts, int64_t n, int64_t m) {
    double each[WIDTH];
    if (!counts) return (double)n - Doubles{};
    for (int64_t o = 0; o < WIDTH; o++) each[o] = (double)(o < m ? counts[o] : 1);
    return load((const double *)each);
  }
  static int run(const gpr_tile *t, const void *with, void *to) {
    return Q::at_once(t, with, (Result *)to) || run_sums(t, with, to);
  }
  static int run_sums(const gpr_tile *t, const void *with, void *to) {
    Result *result = (Result *)to;
    F::each(t, [&](int64_t first, int64_t known, int64_t m, K *part, int64_t additions) {
      const Doubles n = counts_of(t->counts ? t->counts + first : nullptr, t->n, m);
      uint64_t refused =
          Q::finish(part, (double)additions, n, (const With *)with, known, m, result + first);
      refused &= (1ull << m) - (1ull << known);
      for (; refused; refused &= refused - 1) {
        const int64_t o = first + __builtin_ctzll(refused);
        const int64_t count = t->counts ? t->counts[o] : t->n;
        Q::alone(t->data + o * t->across, t, count, (const With *)with, result + o);
      }
    });
    return 1;
  }
  static int finish_many(const void *states, int64_t outputs, int64_t n, const int64_t *counts,
                         const void *with, void *to, uint8_t *refused) {
    const typename F::State *state = (const typename F::State *)states;
    int any = 0;
    for (int64_t first = 0; first < outputs; first += WIDTH) {
      const int64_t m = least((int64_t)WIDTH, outputs - first);
      int64_t additions = 0;
      K part[F::PARTS];
      memset((void *)part, 0, sizeof part);
      for (int64_t o = 0; o < m; o++) {
        const auto &one = state[first + o];
        for (int p = 0; p < F::PARTS; p++)
          for (int i = 0; i < F::NUMBERS; i++)
            F::numbers(part + p, o)[i * WIDTH] = ((const double *)(one.part + p))[i];
        additions = greatest(additions, one.additions);
      }
      const Doubles many = counts_of(counts ? counts + first : nullptr, n, m);
      const uint64_t out =
          Q::finish(part, (double)additions, many, (const With *)with, 0, m, (Result *)to + first);
      for (int64_t o = 0; o < m; o++) any |= refused[first + o] = out >> o & 1;
    }
    return any;
  }
  static constexpr gpr_quick quick = {
      sizeof(typename F::State), F::open, F::fold, F::merge, F::fold_many, run, finish_many};
};

GPR_CLOSE
#endif
