/* Many outputs at a time: rows.h's `many` and `fold_many` for folds whose states are small. Columns
 * are added up side by side, whose lanes never meet; short rows are turned into columns first. */
#ifndef GPR_MANY_H
#define GPR_MANY_H

#include "few.h"
#include "folders.h"

GPR_OPEN

template <bool, class A, class> struct Either { typedef A type; };
template <class A, class B> struct Either<false, A, B> { typedef B type; };
/* Operators that differ in what they finish alone share what is compiled for their folds. */
template <class O, class F = typename O::Fold> struct FoldsAs { typedef O type; };
template <class O, class T> struct FoldsAs<O, ExactFold<T>> { typedef Sum<T> type; };
template <class O, class T> struct FoldsAs<O, MomentsFold<T>> { typedef Var<T> type; };
template <class O, class T> struct FoldsAs<O, IntegerMoments<T>> { typedef Var<T> type; };
template <class T, class F> struct FoldsAs<PeakToPeak<T>, F> { typedef MinMax<T> type; };
template <class T, class F> struct FoldsAs<LogicalXor<T>, F> { typedef CountNonzero<T> type; };

/* The Value of a state, which may have a quicker way to the same. */
template <class F> struct QuicklyShown : Shown<F> {};

/* What several outputs at a time leave over: one by itself. */
template <class O> struct Alone {
  typedef typename O::Fold F;
  typedef typename F::Element T;
  typedef typename F::State State;
  static void fold(State &s, const char *data, int64_t along, int64_t n, int64_t index) {
    T x[GPR_SHORT];
    memcpy(x, data, sizeof *x); /* n > 0, which the compiler cannot know */
    walk(data, along, n, [&](int64_t i, const char *at) { memcpy(x + i, at, sizeof *x); });
    Folder<O>::fold(s, x, n, index);
  }
  static void run(const char *data, int64_t along, int64_t n, int64_t count,
                  const typename FinishedWith<O>::type *with, typename O::Result *result) {
    State s;
    F::open(s);
    Alone<typename FoldsAs<O>::type>::fold(s, data, along, n, 0);
    finish_from<O>(s, count, with, result);
  }
};

/* Finishes what an engine has rounded, each where it lies: value_of(it, how many count) is the
 * operator's Value. */
template <class O, class R, class ValueOf>
static void finish_rounded(const gpr_tile *t, R *result, const typename FinishedWith<O>::type *with,
                           const ValueOf &value_of) {
  static_assert(Same<R, typename O::Result>::value, "");
  for (int64_t o = 0; o < t->outputs; o++) {
    const int64_t count = t->counts ? t->counts[o] : t->n;
    auto value = value_of(result[o], count);
    O::finish(value, count, with, result + o);
    if (!value.certified)
      Alone<O>::run(t->data + o * t->across, t->along, t->n, count, with, result + o);
  }
}

static constexpr int64_t TOGETHER_ROWS = 4;

/* Calls take(x of row i) for all rows of `columns`, four at a time or one. */
#define GPR_ROWS(one, four)                                                         \
  int64_t i = 0;                                                                    \
  for (; i + TOGETHER_ROWS <= rows; i += TOGETHER_ROWS) {                           \
    const T *a = x + i * stride, *b = a + stride, *c = b + stride, *d = c + stride; \
    for (int64_t j = 0; j < columns; j++) four;                                     \
  }                                                                                 \
  for (; i < rows; i++) {                                                           \
    const T *a = x + i * stride;                                                    \
    for (int64_t j = 0; j < columns; j++) one;                                      \
  }

/* --- what a fold keeps of each column ----------------------------------------------------------
 */

/* In states as they are. */
template <class F> struct Columns {
  typedef typename F::Element T;
  typename F::State state[COLUMNS];
  void open(int64_t columns) {
    for (int64_t j = 0; j < columns; j++) F::open(state[j]);
  }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t index) {
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) F::add(state[j], x[i * stride + j], index + i);
  }
  const typename F::State &get(int64_t j) const { return state[j]; }
};

/* A wide sum of each column, and a narrow one, which so many rows fit. */
template <class N, class T, class Value>
GPR_FN void add_narrow(uint64_t *sum, const T *x, int64_t stride, int64_t columns, int64_t rows,
                       int64_t most, const Value &value) {
  for (int64_t first = 0; first < rows; first += most, x += most * stride) {
    N part[COLUMNS];
    memset(part, 0, (size_t)columns * sizeof *part);
    const auto add = [&](int64_t rows) {
      GPR_ROWS(part[j] = (N)(part[j] + value(a[j])),
               part[j] = (N)(part[j] + (value(a[j]) + value(b[j])) + (value(c[j]) + value(d[j]))))
    };
    add(least(most, rows - first));
    for (int64_t j = 0; j < columns; j++) sum[j] += (uint64_t)(int64_t)part[j];
  }
}

template <class T> struct SumOfColumns {
  uint64_t sum[COLUMNS];
  void open(int64_t columns) { memset(sum, 0, (size_t)columns * sizeof *sum); }
  GPR_APART void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t) {
    typedef typename Signed<2 * sizeof(T)>::type N;
    const auto value = [](T e) { return (N)wide(e); };
    if (sizeof(T) <= 2 && rows > TOGETHER_ROWS)
      add_narrow<N>(sum, x, stride, columns, rows, sizeof(T) == 1 ? 128 : 32768, value);
    else
      add_wide(x, stride, columns, rows);
  }
  void add_wide(const T *x, int64_t stride, int64_t columns, int64_t rows) {
    const auto value = [](T e) { return (uint64_t)wide(e); };
    GPR_ROWS(sum[j] += value(a[j]),
             sum[j] += (value(a[j]) + value(b[j])) + (value(c[j]) + value(d[j])))
  }
};
template <class T> struct Columns<IntegerSum<T>> : SumOfColumns<T> {
  typename IntegerSum<T>::State get(int64_t j) const { return {this->sum[j]}; }
};
template <class T> struct Columns<LongSum<T>> : SumOfColumns<T> {
  /* Of 64-bit integers the upper halves are added up by themselves. */
  enum { whole = sizeof(T) < 8 };
  int64_t high[whole ? 1 : COLUMNS];
  void open(int64_t columns) {
    SumOfColumns<T>::open(columns);
    if (!whole) memset(high, 0, (size_t)columns * sizeof *high);
  }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t index) {
    if (whole) return SumOfColumns<T>::add(x, stride, columns, rows, index);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) {
        const auto w = wide(x[i * stride + j]);
        this->sum[j] += (uint64_t)w & 0xffffffffu;
        high[j] += (int64_t)(w >> 32);
      }
  }
  typename LongSum<T>::State get(int64_t j) const {
    const bool negative = Traits<T>::kind == KIND_INT && (int64_t)this->sum[j] < 0;
    if (whole) return {this->sum[j], negative ? -1 : 0};
    typename LongSum<T>::State s = {this->sum[j], 0};
    LongSum<T>::merge(s, {(uint64_t)high[j] << 32, high[j] >> 32});
    return s;
  }
};

/* What counts as true in words: some bit, or some bit beside the sign's. */
template <class W, bool SIGNED> struct Truth {
  enum { ROWS = sizeof(W) == 1 ? 252 : 32768 };
  uint64_t count[COLUMNS];
  void open(int64_t columns) { memset(count, 0, (size_t)columns * sizeof *count); }
  GPR_APART void add(const W *x, int64_t stride, int64_t columns, int64_t rows) {
    add_narrow<W>(count, x, stride, columns, rows, ROWS,
                  [](W e) { return (W)((W)(SIGNED ? e << 1 : e) != 0); });
  }
};
template <class T, int WHAT> struct Columns<Counting<T, WHAT>> {
  typedef typename Unsigned<sizeof(T)>::type W;
  Truth<W, Traits<T>::kind == KIND_FLOAT> truth;
  int64_t all;
  void open(int64_t columns) { truth.open(columns), all = 0; }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t) {
    truth.add((const W *)(const void *)x, stride, columns, rows);
    all += rows;
  }
  typename Counting<T, WHAT>::State get(int64_t j) const {
    const int64_t count = (int64_t)truth.count[j];
    return {WHAT ? count : all - count};
  }
};
template <class R, int WHAT> struct Columns<Counting<complex<R>, WHAT>> {
  uint64_t count[COLUMNS];
  void open(int64_t columns) { memset(count, 0, (size_t)columns * sizeof *count); }
  GPR_APART void add(const complex<R> *x, int64_t stride, int64_t columns, int64_t rows, int64_t) {
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) count[j] += is_true(x[i * stride + j]) == (bool)WHAT;
  }
  typename Counting<complex<R>, WHAT>::State get(int64_t j) const { return {(int64_t)count[j]}; }
};

/* The same of integers with and without a sign. */
template <class T, template <class> class Op> struct Columns<Bitwise<T, Op>> {
  typedef typename Unsigned<sizeof(T)>::type W;
  W word[COLUMNS];
  void open(int64_t columns) {
    for (int64_t j = 0; j < columns; j++) word[j] = Op<W>::identity();
  }
  static void fold(W *word, const W *x, int64_t stride, int64_t columns, int64_t rows) {
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) word[j] = Op<W>::combine(word[j], x[i * stride + j]);
  }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t) {
    if constexpr (Traits<T>::kind == KIND_BOOL)
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
          word[j] = Op<W>::combine(word[j], x[i * stride + j].byte != 0);
    else
      fold(word, (const W *)(const void *)x, stride, columns, rows);
  }
  typename Bitwise<T, Op>::State get(int64_t j) const { return {(typename Order<T>::Key)word[j]}; }
};

/* --- extremes ----------------------------------------------------------------------------------
 */

/* Elements as the hardware compares them: halves as floats. */
template <class T> struct Compared {
  typedef typename Native<T>::type type;
  enum { same = 1 };
};
template <> struct Compared<float16> {
  typedef float type;
  enum { same = 0 };
};
template <> struct Compared<bfloat16> : Compared<float16> {};
template <class T> constexpr bool is_compared() { return is_native<T>() || is_half<T>(); }

template <class T> GPR_FN T value_of(typename Compared<T>::type x) {
  if constexpr (Compared<T>::same)
    return copy_bits<T>(x);
  else
    return narrow(x, T());
}

/* The columns of Best, of elements that need not be as it takes them. */
template <class T, bool GREATEST, bool PLACE> struct BestColumns {
  typedef typename Compared<T>::type N;
  static constexpr int64_t ROWS = Compared<T>::same ? 0 : 64;
  Best<N, GREATEST, PLACE> best;
  alignas(64) N tile[ROWS * COLUMNS + 1];
  /* All rows at once, but for halves: how many of them. */
  static int64_t rows_of(int64_t rows) { return ROWS && rows > ROWS ? ROWS : rows; }
  void run(const T *x, int64_t stride, int64_t columns, int64_t rows, bool skip) {
    if constexpr (Compared<T>::same) {
      best.run((const N *)(const void *)x, stride, columns, rows, skip);
    } else {
      for (int64_t i = 0; i < rows; i++) widen_all(x + i * stride, tile + i * columns, columns);
      best.run(tile, columns, columns, rows, skip);
    }
  }
};
template <class F, class T>
GPR_APART void fold_one_by_one(typename F::State *to, const T *x, int64_t stride, int64_t columns,
                               int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) F::add(to[j], x[i * stride + j], i);
}
template <class T, bool GREATEST>
GPR_APART void fold_extreme(typename Extremes<T>::State *to, const T *x, int64_t stride,
                            int64_t columns, int64_t rows, bool skip) {
  typedef Extremes<T> F;
  typedef typename F::Key Key;
  const Key spoiled = F::O::key(F::O::poison());
  BestColumns<T, GREATEST, false> b;
  for (int64_t i = 0; i < rows; i += b.rows_of(rows)) {
    const int64_t m = least(b.rows_of(rows), rows - i);
    b.run(x + i * stride, stride, columns, m, skip);
    const auto take = [&](int64_t j) {
      const Key k = F::O::key(value_of<T>(b.best.value(j)));
      if (GREATEST)
        to[j].high = greatest(to[j].high, k);
      else
        to[j].low = least(to[j].low, k);
    };
    if (b.best.unmet)
      for (int64_t j = 0; j < columns; j++) {
        if (!b.best.is_empty(j)) take(j);
      }
    else
      for (int64_t j = 0; j < columns; j++) take(j);
    for (int64_t j = 0; b.best.spoiled && j < columns; j++)
      if (b.best.row_of_nan(j) >= 0) to[j].high = greatest(to[j].high, spoiled);
  }
}
template <class T, bool GREATEST>
GPR_APART void fold_position(typename Position<T, GREATEST>::State *to, const T *x, int64_t stride,
                             int64_t columns, int64_t rows, int64_t index, bool skip) {
  typedef Position<T, GREATEST> F;
  BestColumns<T, GREATEST, true> b;
  for (int64_t i = 0; i < rows; i += b.rows_of(rows)) {
    const int64_t m = least(b.rows_of(rows), rows - i);
    b.run(x + i * stride, stride, columns, m, skip);
    for (int64_t j = 0; j < columns; j++) {
      if (b.best.is_empty(j)) continue;
      const int64_t nan = b.best.row_of_nan(j);
      typename F::State one;
      one.index = index + i + (nan < 0 ? b.best.place(j) : nan);
      one.spoiled = nan >= 0;
      one.best = F::R::of(value_of<T>(b.best.value(j)));
      F::merge(to[j], one);
    }
  }
}

/* --- blocks ------------------------------------------------------------------------------------
 */

template <class F> struct FoldSkips {
  enum { value = 0 };
};
template <class T> struct FoldSkips<Extremes<T>> {
  enum { value = Traits<T>::kind == KIND_FLOAT };
  static bool empty(const typename Extremes<T>::State &s) {
    return s.low == Limits<typename Extremes<T>::Key>::greatest &&
           s.high == Limits<typename Extremes<T>::Key>::least;
  }
};
template <class T> struct FoldSkips<Extremes<complex<T>>> {
  enum { value = 0 };
};
template <class T, bool GREATEST> struct FoldSkips<Position<T, GREATEST>> {
  enum { value = category<T>() == INEXACT };
  static bool empty(const typename Position<T, GREATEST>::State &s) { return s.index < 0; }
};

/* Into the states of at most COLUMNS columns, whose rows lie side by side. */
template <class O, class F> struct Side {
  typedef typename F::Element T;
  static GPR_APART void fold(typename F::State *to, const T *x, int64_t stride, int64_t columns,
                             int64_t rows, int64_t index, bool) {
    Columns<F> c;
    c.open(columns);
    c.add(x, stride, columns, rows, index);
    for (int64_t j = 0; j < columns; j++) F::merge(to[j], c.get(j));
  }
};
template <class O, class T> struct Side<O, Extremes<T>> {
  typedef Extremes<T> F;
  static void fold(typename F::State *to, const T *x, int64_t stride, int64_t columns, int64_t rows,
                   int64_t, bool skip) {
    if constexpr (is_compared<T>()) {
      if (Asks<O>::low) fold_extreme<T, false>(to, x, stride, columns, rows, skip);
      if (Asks<O>::high) fold_extreme<T, true>(to, x, stride, columns, rows, skip);
    } else {
      fold_one_by_one<F>(to, x, stride, columns, rows);
    }
  }
};
template <class O, class T, bool GREATEST> struct Side<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  static void fold(typename F::State *to, const T *x, int64_t stride, int64_t columns, int64_t rows,
                   int64_t index, bool skip) {
    if constexpr (is_compared<T>()) {
      fold_position<T, GREATEST>(to, x, stride, columns, rows, index, skip);
    } else {
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
          const T e = x[i * stride + j];
          if (!skip || !F::R::poisoned(e)) F::add(to[j], e, index + i);
        }
    }
  }
};
template <class O, class T> struct Side<O, Positions<T>> {
  static void fold(typename Positions<T>::State *to, const T *x, int64_t stride, int64_t columns,
                   int64_t rows, int64_t index, bool) {
    typename Position<T, false>::State low[COLUMNS];
    typename Position<T, true>::State high[COLUMNS];
    for (int64_t j = 0; j < columns; j++) low[j] = to[j].low, high[j] = to[j].high;
    Side<ArgMin<T>, Position<T, false>>::fold(low, x, stride, columns, rows, index, false);
    Side<ArgMax<T>, Position<T, true>>::fold(high, x, stride, columns, rows, index, false);
    for (int64_t j = 0; j < columns; j++) to[j].low = low[j], to[j].high = high[j];
  }
};

/* A run of contiguous elements as columns, of which NaN does not count. */
static constexpr int64_t ABREAST_COLUMNS = 64, ABREAST_ROWS = 512;
template <class O, class T, class Take>
GPR_FN void abreast(const T *x, int64_t n, const Take &take) {
  for (int64_t i = 0; i < n;) {
    const int64_t columns = least(ABREAST_COLUMNS, n - i);
    const int64_t rows = least(ABREAST_ROWS, (n - i) / columns);
    take(x + i, columns, rows, i);
    i += rows * columns;
  }
}
template <class O, class F> struct Skipping;
/* The best of what is not NaN; the worst of all where there is none. A comparison leaves NaN out.
 */
template <bool GREATEST, class T> GPR_APART T best_but_nan(const T *x, int64_t n) {
  typedef T V __attribute__((vector_size(GPR_VECTOR)));
  enum { ABREAST = 8, WIDE = GPR_VECTOR / sizeof(T) };
  const T worst = Best<T, GREATEST, false>::worst();
  V best[ABREAST];
  T all = worst;
  for (int v = 0; v < ABREAST; v++) best[v] = worst - V{};
  int64_t i = 0;
  for (; i + ABREAST * WIDE <= n; i += ABREAST * WIDE)
    for (int v = 0; v < ABREAST; v++) {
      V e;
      memcpy(&e, x + i + v * WIDE, sizeof e);
      prefetch(x + i + v * WIDE);
      if constexpr (GREATEST)
        best[v] = e > best[v] ? e : best[v];
      else
        best[v] = e < best[v] ? e : best[v];
    }
  const auto take = [&](T e) { all = (GREATEST ? e > all : e < all) ? e : all; };
  for (; i < n; i++) take(x[i]);
  for (int v = 0; v < ABREAST; v++)
    for (int l = 0; l < WIDE; l++) take(best[v][l]);
  return all;
}
template <class O, class T> struct Skipping<O, Extremes<T>> {
  typedef Extremes<T> F;
  template <bool GREATEST> static void fold_one(typename F::State &s, const T *x, int64_t n) {
    const T best = best_but_nan<GREATEST>(x, n);
    int met = best != Best<T, GREATEST, false>::worst();
    int minus = 0, plus = 0; /* zeros */
    for (int64_t i = 0; !met && i < n; i++) met |= x[i] == x[i];
    for (int64_t i = 0; best == 0 && i < n; i++) {
      const int zero = x[i] == 0, sign = copy_bits<typename F::Key>(x[i]) < 0;
      minus |= zero & sign;
      plus |= zero & !sign;
    }
    if (!met) return;
    auto k = F::O::key(best);
    if (best == 0) k = (GREATEST ? !plus : minus) ? F::O::key(minus_zero<T>()) : 0;
    if (GREATEST)
      s.high = greatest(s.high, k);
    else
      s.low = least(s.low, k);
  }
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t index) {
    if constexpr (sizeof(T) >= 4) {
      if (Asks<O>::low) fold_one<false>(s, x, n);
      if (Asks<O>::high) fold_one<true>(s, x, n);
    } else {
      abreast<O>(x, n, [&](const T *at, int64_t columns, int64_t rows, int64_t) {
        typename F::State part[ABREAST_COLUMNS];
        for (int64_t j = 0; j < columns; j++) F::open(part[j]);
        Side<O, F>::fold(part, at, columns, columns, rows, index, true);
        for (int64_t j = 0; j < columns; j++) F::merge(s, part[j]);
      });
    }
  }
};
template <class O, class T, bool GREATEST> struct Skipping<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t index) {
    abreast<O>(x, n, [&](const T *at, int64_t columns, int64_t rows, int64_t first) {
      typename F::State part[ABREAST_COLUMNS];
      for (int64_t j = 0; j < columns; j++) F::open(part[j]);
      Side<O, F>::fold(part, at, columns, columns, rows, 0, true);
      for (int64_t j = 0; j < columns; j++) {
        if (part[j].index >= 0) part[j].index = index + first + part[j].index * columns + j;
        F::merge(s, part[j]);
      }
    });
  }
};

template <class O, class F> struct ManySides {
  enum { side = 1 };
  typedef typename F::State State;
  static constexpr decltype(gpr_row::many) run = nullptr;
  /* Of states that lie one after the other. */
  static void fold(void *states, size_t, const gpr_tile *t, int64_t index) {
    typedef typename F::Element T;
    for (int64_t o = 0; o < t->outputs; o += COLUMNS)
      Side<O, F>::fold((State *)states + o, (const T *)(const void *)t->data + o,
                       t->along / (int64_t)sizeof(T), least(COLUMNS, t->outputs - o), t->n, index,
                       t->skip);
  }
};

template <class O, class F = typename O::Fold> struct Many : ManySides<O, F> {};

/* The least or the greatest of a few rows at once: a state of one element. */
template <class O, class T> struct FewExtremes : ManySides<O, Extremes<T>> {
  typedef Extremes<T> F;
  static constexpr bool greatest = Asks<O>::high;
  static void best_of(const T *x, int64_t stride, int64_t columns, int64_t rows, T *best) {
    if (!best_few<greatest>(x, stride, columns, rows, best)) return;
    for (int64_t j = 0; j < columns; j++) {
      if (best[j] == best[j]) continue;
      T b = x[j];
      for (int64_t i = 1; i < rows; i++) {
        const T e = x[i * stride + j];
        b = b != b || e != e ? Order<T>::poison() : better_of<greatest>(b, e);
      }
      best[j] = b;
    }
  }
  static int run(const gpr_tile *t, const void *with, void *to) {
    const T *x = (const T *)(const void *)t->data;
    typename O::Result *result = (typename O::Result *)to;
    T best[COLUMNS];
    if (with || t->counts || t->skip || t->n > FEW_RIVALS) return 0;
    for (int64_t o = 0, m; o < t->outputs; o += m) {
      m = least(COLUMNS, t->outputs - o);
      best_of(x + o, t->along / (int64_t)sizeof(T), m, t->n, best);
      for (int64_t j = 0; j < m; j++) {
        const auto key = F::O::key(best[j]);
        finish_from<O>({key, key}, t->n, nullptr, result + o + j);
      }
    }
    return 1;
  }
};
template <class O, class T>
constexpr bool takes_few = is_native<T>() && Traits<T>::kind != KIND_BOOL &&Asks<O>::low
                                                 != Asks<O>::high &&Results<O>::value == 1;
template <class O, class T>
struct Many<O, Extremes<T>>
    : Either<takes_few<O, T>, FewExtremes<O, T>, ManySides<O, Extremes<T>>>::type {};

/* --- the tree ----------------------------------------------------------------------------------
 */

/* Columns whose aligned blocks of rows are folded level by level. */
template <class O, class T, template <class> class Op> struct Many<O, TreeFold<T, Op>> {
  enum { side = 1, ACROSS = 64, LEVELS_MOST = 13 }; /* GPR_SHORT rows */
  typedef TreeFold<T, Op> F;
  typedef typename F::Wide A;
  typedef typename F::Combine C;
  typedef typename FinishedWith<O>::type With;
  typedef A Row[ACROSS];

  /* 2^level rows, of which node[level] becomes the root. */
  static GPR_APART void fold_rows(Row *node, const T *x, int64_t stride, int64_t columns,
                                  int level) {
    if (!level)
      for (int64_t j = 0; j < columns; j++) node[0][j] = wide(x[j]);
    for (int64_t row = 0; row < 1ll << level >> 1; row++, x += 2 * stride) {
      Row value;
      int at = 1;
      for (int64_t j = 0; j < columns; j++) value[j] = C::combine(wide(x[j]), wide(x[stride + j]));
      for (int64_t place = row; place & 1; place >>= 1, at++)
        for (int64_t j = 0; j < columns; j++) value[j] = C::combine(node[at][j], value[j]);
      memcpy(node[at], value, sizeof value);
    }
  }
  /* Calls take(root of a block, level) for the blocks of rows [index, index + n), in their order.
   */
  template <class Take>
  static void blocks(const T *x, int64_t stride, int64_t columns, int64_t n, int64_t index,
                     const Take &take) {
    Row node[LEVELS_MOST];
    while (n > 0) {
      int level = LEVELS_MOST - 1;
      if (index) level = least(level, __builtin_ctzll((uint64_t)index));
      while (1ll << level > n) level--;
      fold_rows(node, x, stride, columns, level);
      take(node[level], level);
      x += stride << level;
      index += 1ll << level;
      n -= 1ll << level;
    }
  }
  template <class Take> static void pieces(const gpr_tile *t, const Take &take) {
    for (int64_t o = 0; o < t->outputs; o += ACROSS)
      take((const T *)(const void *)t->data + o, t->along / (int64_t)sizeof(T),
           least((int64_t)ACROSS, t->outputs - o), o);
  }
  static int run(const gpr_tile *t, const void *with, void *to) {
    pieces(t, [&](const T *x, int64_t stride, int64_t columns, int64_t o) {
      Row part[LEVELS_MOST];
      int parts = 0;
      blocks(x, stride, columns, t->n, 0,
             [&](const Row &root, int) { memcpy(part[parts++], root, sizeof root); });
      for (int i = parts - 2; i >= 0; i--)
        for (int64_t j = 0; j < columns; j++) part[i][j] = C::combine(part[i][j], part[i + 1][j]);
      for (int64_t j = 0; j < columns; j++) {
        TreeValue<F> value = {part[0][j]};
        O::finish(value, t->n, (const With *)with, (typename O::Result *)to + o + j);
      }
    });
    return 1;
  }
  static void fold(void *states, size_t, const gpr_tile *t, int64_t index) {
    pieces(t, [&](const T *x, int64_t stride, int64_t columns, int64_t o) {
      typename F::State *state = (typename F::State *)states + o;
      for (int64_t j = 0; j < columns; j++) F::start(state[j], index);
      blocks(x, stride, columns, t->n, index, [&](const Row &root, int level) {
        for (int64_t j = 0; j < columns; j++) push<C>(state[j], root[j], level);
      });
    });
  }
};
/* Matrices are folded in whole arrays alone. */
template <class O, class T, template <class> class Op> struct Many<O, TreeFold<matrix<T>, Op>> {
  enum { side = 0 };
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};

/* --- large states ------------------------------------------------------------------------------
 */

/* Each output by itself. */
template <class O, class F = typename O::Fold> struct ManyAlone {
  enum { side = 0 };
  static constexpr decltype(gpr_row::many) run = nullptr;
  static void fold(void *states, size_t slot, const gpr_tile *t, int64_t index) {
    for (int64_t o = 0; o < t->outputs; o++)
      Alone<O>::fold(*(typename F::State *)((char *)states + (size_t)o * slot),
                     t->data + o * t->across, t->along, t->n, index);
  }
};

GPR_CLOSE
#endif
