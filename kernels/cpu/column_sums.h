/* Sums, counts and bits of integers side by side. */
#ifndef GPR_COLUMN_SUMS_H
#define GPR_COLUMN_SUMS_H

#include "many.h"

GPR_OPEN

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

/* Narrow sums of each column. */
template <class N, class T, class Value>
GPR_FN void sum_narrow(N *part, const T *x, int64_t stride, int64_t columns, int64_t rows,
                       const Value &value) {
  memset(part, 0, (size_t)columns * sizeof *part);
  GPR_ROWS(part[j] = (N)(part[j] + value(a[j])),
           part[j] = (N)(part[j] + (value(a[j]) + value(b[j])) + (value(c[j]) + value(d[j]))))
}
/* A wide sum of each column, by narrow ones, which so many rows fit. */
template <class N, class T, class Value>
GPR_FN void add_narrow(uint64_t *sum, const T *x, int64_t stride, int64_t columns, int64_t rows,
                       int64_t most, const Value &value) {
  for (int64_t first = 0; first < rows; first += most, x += most * stride) {
    N part[COLUMNS];
    sum_narrow(part, x, stride, columns, least(most, rows - first), value);
    for (int64_t j = 0; j < columns; j++) sum[j] += (uint64_t)(int64_t)part[j];
  }
}

template <class T>
static GPR_APART void sum_columns(uint64_t *sum, const T *x, int64_t stride, int64_t columns,
                                  int64_t rows) {
  typedef typename Signed<2 * sizeof(T)>::type N;
  if (sizeof(T) <= 2 && rows > TOGETHER_ROWS)
    return add_narrow<N>(sum, x, stride, columns, rows, sizeof(T) == 1 ? 128 : 32768,
                         [](T e) { return (N)wide(e); });
  const auto value = [](T e) { return (uint64_t)wide(e); };
  GPR_ROWS(sum[j] += value(a[j]),
           sum[j] += (value(a[j]) + value(b[j])) + (value(c[j]) + value(d[j])))
}
template <class T> struct SumOfColumns {
  uint64_t sum[COLUMNS];
  void open(int64_t columns) { memset(sum, 0, (size_t)columns * sizeof *sum); }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t) {
    sum_columns(sum, x, stride, columns, rows);
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

template <class T>
static GPR_APART void multiply_columns(uint64_t *product, const T *x, int64_t stride,
                                       int64_t columns, int64_t rows) {
  const auto value = [](T e) { return (uint64_t)wide(e); };
  GPR_ROWS(product[j] *= value(a[j]),
           product[j] *= (value(a[j]) * value(b[j])) * (value(c[j]) * value(d[j])))
}
template <class T> struct Columns<IntegerProduct<T>> {
  uint64_t product[COLUMNS];
  void open(int64_t columns) {
    for (int64_t j = 0; j < columns; j++) product[j] = 1;
  }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t) {
    multiply_columns(product, x, stride, columns, rows);
  }
  typename IntegerProduct<T>::State get(int64_t j) const { return {product[j]}; }
};
/* Without an instruction for products of 64 bits GCC leaves each waiting for the one before; side
 * by side none does. */
template <class O, class T> struct Folder<O, IntegerProduct<T>> {
  static void fold(typename IntegerProduct<T>::State &s, const T *x, int64_t n, int64_t) {
    enum { ABREAST = 16, WORTH_IT = 4 * ABREAST };
    constexpr bool waits = sizeof(T) == 8 && GPR_VECTOR < 64;
    const int64_t rows = waits && n >= WORTH_IT ? n / ABREAST : 0;
    uint64_t all = s.product, product[ABREAST];
    for (int64_t j = 0; rows && j < ABREAST; j++) product[j] = 1;
    if (rows) multiply_columns(product, x, ABREAST, ABREAST, rows);
    for (int64_t j = 0; rows && j < ABREAST; j++) all *= product[j];
    GPR_UNROLL(4)
    for (int64_t i = rows * ABREAST; i < n; i++) all *= (uint64_t)wide(x[i]);
    s.product = all;
  }
};

/* What counts as true in words: some bit, or some bit beside the sign's. */
template <class W, bool SIGNED> struct Truth {
  enum { ROWS = sizeof(W) == 1 ? 252 : 32768 };
  static constexpr auto value = [](W e) { return (W)((W)(SIGNED ? e << 1 : e) != 0); };
  static GPR_APART void count_rows(W *part, const W *x, int64_t stride, int64_t columns,
                                   int64_t rows) {
    sum_narrow(part, x, stride, columns, rows, value);
  }
};
template <class R>
GPR_APART void count_true(uint64_t *count, const complex<R> *x, int64_t stride, int64_t columns,
                          int64_t rows) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) count[j] += is_true(x[i * stride + j]);
}
template <class T, int WHAT> struct Columns<Counting<T, WHAT>> {
  typedef typename Unsigned<sizeof(T)>::type W;
  typedef Truth<W, Traits<T>::kind == KIND_FLOAT> Truths;
  uint64_t count[COLUMNS];
  int64_t all;
  void open(int64_t columns) {
    memset(count, 0, (size_t)columns * sizeof *count);
    all = 0;
  }
  void add(const T *x, int64_t stride, int64_t columns, int64_t rows, int64_t) {
    all += rows;
    if constexpr (Traits<T>::kind == KIND_COMPLEX)
      count_true(count, x, stride, columns, rows);
    else
      for (int64_t i = 0, m; i < rows; i += m) {
        W part[COLUMNS];
        m = least(rows - i, (int64_t)Truths::ROWS);
        Truths::count_rows(part, (const W *)(const void *)(x + i * stride), stride, columns, m);
        for (int64_t j = 0; j < columns; j++) count[j] += part[j];
      }
  }
  typename Counting<T, WHAT>::State get(int64_t j) const {
    return {WHAT ? (int64_t)count[j] : all - (int64_t)count[j]};
  }
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

/* --- finished as they are ------------------------------------------------------------------------
 */

template <class O, class T> struct Direct<O, IntegerSum<T>> {
  enum { possible = 1 };
  static bool run(const T *x, int64_t stride, int64_t columns, int64_t rows, int *,
                  typename O::Result *to) {
    memset(to, 0, (size_t)columns * sizeof *to);
    sum_columns((uint64_t *)to, x, stride, columns, rows);
    return true;
  }
};

template <class O, class T> struct Direct<O, IntegerProduct<T>> {
  enum { possible = 1 };
  static bool run(const T *x, int64_t stride, int64_t columns, int64_t rows, int *,
                  typename O::Result *to) {
    for (int64_t j = 0; j < columns; j++) to[j] = 1;
    multiply_columns((uint64_t *)to, x, stride, columns, rows);
    return true;
  }
};

/* Means of integers whose sum is a double. */
template <class O, class T> struct Direct<O, LongSum<T>> {
  enum { possible = 1 };
  static bool run(const T *x, int64_t stride, int64_t columns, int64_t rows, int *, double *to) {
    Columns<LongSum<T>> c;
    uint64_t any = 0;
    for (int64_t i = 0; sizeof(T) == 8 && i < rows; i++)
      for (int64_t j = 0; j < columns; j++) {
        const uint64_t w = (uint64_t)wide(x[i * stride + j]);
        any |= Traits<T>::kind == KIND_INT ? w ^ (uint64_t)((int64_t)w >> 63) : w;
      }
    if (any >> 40) return false; /* of GPR_SHORT rows, 2^12 */
    c.SumOfColumns<T>::open(columns);
    c.SumOfColumns<T>::add(x, stride, columns, rows, 0);
    for (int64_t j = 0; j < columns; j++) to[j] = (double)(int64_t)c.sum[j] / (double)rows;
    return true;
  }
};

/* What `trues` of so many rows come to. */
template <class O> struct Verdict;
template <class T> struct Verdict<Any<T>> {
  template <class W> static boolean of(W trues, W) { return boolean{trues != 0}; }
};
template <class T> struct Verdict<All<T>> {
  template <class W> static boolean of(W trues, W rows) { return boolean{trues == rows}; }
};
template <class T> struct Verdict<LogicalXor<T>> {
  template <class W> static boolean of(W trues, W) { return boolean{(trues & 1) != 0}; }
};
template <class T> struct Verdict<CountNonzero<T>> {
  template <class W> static int64_t of(W trues, W) { return (int64_t)trues; }
};
template <class O, class T, int WHAT> struct Direct<O, Counting<T, WHAT>> {
  enum { possible = 1 };
  typedef Columns<Counting<T, WHAT>> C;
  static bool run(const T *x, int64_t stride, int64_t columns, int64_t rows, int *,
                  typename O::Result *to) {
    if constexpr (Traits<T>::kind == KIND_COMPLEX) {
      uint64_t count[COLUMNS] = {};
      count_true(count, x, stride, columns, rows);
      for (int64_t j = 0; j < columns; j++) to[j] = Verdict<O>::of(count[j], (uint64_t)rows);
    } else {
      typedef typename C::W W;
      W part[COLUMNS];
      if (rows > C::Truths::ROWS) return false;
      C::Truths::count_rows(part, (const W *)(const void *)x, stride, columns, rows);
      for (int64_t j = 0; j < columns; j++) to[j] = Verdict<O>::of(part[j], (W)rows);
    }
    return true;
  }
};

GPR_CLOSE
#endif
