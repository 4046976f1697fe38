/* The best of columns side by side. */
#ifndef GPR_BEST_H
#define GPR_BEST_H

#include "tiles.h"

GPR_OPEN

/* Columns of a block. */
static constexpr int64_t COLUMNS = 512;

/* The first row of each column that has such an element, or -1. */
template <class T, class Row, class Is>
GPR_FN void look_for(const T *x, int64_t stride, int64_t columns, int64_t rows, Row *first,
                     const Is &is) {
  memset(first, -1, (size_t)columns * sizeof *first);
  for (int64_t i = rows - 1; i >= 0; i--)
    for (int64_t j = 0; j < columns; j++) first[j] = is(x[i * stride + j]) ? (Row)i : first[j];
}

/* The best of each column, where the two zeros tie, and its first row. A sum tells NaN, as for
 * whole arrays; then some rows are looked at again. */
template <class T, bool GREATEST, bool PLACE> struct Best {
  enum { TOGETHER = 4 }; /* rows between two looks at what was best */
  enum { LOOK = 64 };    /* rows between two looks at the sums; a multiple of TOGETHER */
  enum { FEW_ROWS = 8 }; /* which the hardware follows by itself */
  enum { AHEAD = 8 * TOGETHER, CHUNK = 256 / sizeof(T), WIDE = GPR_VECTOR / sizeof(T) };
  typedef typename Signed<sizeof(T)>::type Row; /* GPR_SHORT rows fit all of them */
  typedef typename Unsigned<sizeof(T)>::type Bits;
  static constexpr bool real = Traits<T>::kind == KIND_FLOAT;
  T best[COLUMNS], sum[COLUMNS];
  Row row[COLUMNS];                          /* -1: nothing was better than the worst of all */
  Row nan[real && PLACE ? COLUMNS : 1];      /* the first row of NaN, or -1 */
  uint64_t known[real ? COLUMNS / WIDE : 1]; /* a bit a column that has one */
  Row met[real ? COLUMNS : 1]; /* the first row of what is not NaN, or -1, if one is unmet */
  int64_t spoiled;             /* how many columns */
  bool unmet;

  static T worst() {
    if constexpr (real)
      return GREATEST ? -(T)__builtin_inf() : (T)__builtin_inf();
    else
      return GREATEST ? Limits<T>::least : Limits<T>::greatest;
  }
  /* skip: NaN is no rival. */
  GPR_APART void run(const T *x, int64_t stride, int64_t columns, int64_t rows, bool skip) {
    const bool leave_out = real && skip;
    for (int64_t j = 0; j < columns; j++) best[j] = leave_out ? worst() : x[j];
    if (real)
      for (int64_t j = 0; j < columns; j++) sum[j] = best[j];
    if (PLACE) memset(row, leave_out ? -1 : 0, (size_t)columns * sizeof *row);
    spoiled = 0;
    if (real) memset(known, 0, (size_t)((columns + WIDE - 1) / WIDE) * sizeof *known);
    if (real && PLACE) memset(nan, -1, (size_t)columns * sizeof *nan);
    unmet = false;
    bool all_spoiled = false;
    for (int64_t from = 0, stop; from < rows && !all_spoiled; from = stop) {
      const int64_t start = from || leave_out ? from : 1;
      stop = least(rows, start + LOOK);
      add_rows(x, stride, columns, start, stop, rows);
      if (!leave_out) all_spoiled = look_for_nan(x, stride, columns, from, stop);
    }
    if (real) settle(x, stride, columns, rows, leave_out);
  }
  void add_rows(const T *x, int64_t stride, int64_t columns, int64_t i, int64_t stop,
                int64_t rows) {
    for (; i + TOGETHER <= stop; i += TOGETHER) {
      const int64_t later = i - 1 + least((int64_t)AHEAD, rows);
      const int64_t next = later < rows ? 0 : columns - rows * stride; /* strip */
      for (int64_t j = 0; j < columns; j += CHUNK) {
        if (rows > FEW_ROWS && gpr_prefetch_columns)
          look_ahead(x + later * stride + next + j, stride);
        add<TOGETHER>(x + i * stride, stride, j, least(columns, j + CHUNK), (Row)i);
      }
    }
    if (i < stop && stop >= TOGETHER) { /* some for a second time, which changes nothing */
      i = stop - TOGETHER;
      add<TOGETHER>(x + i * stride, stride, 0, columns, (Row)i);
    } else {
      for (; i < stop; i++) add<1>(x + i * stride, stride, 0, columns, (Row)i);
    }
  }
  static void look_ahead(const T *x, int64_t stride) {
    for (int k = 0; k < TOGETHER; k++) prefetch_later<CHUNK>(x, k * stride);
  }
  template <int ROWS>
  void add(const T *__restrict x, int64_t stride, int64_t first, int64_t stop, Row i) {
    T *__restrict best_at = best, *__restrict sum_at = sum; /* T may be a char, which may be all */
    Row *__restrict row_at = row;
    const auto one = [&](int64_t j) {
      T b = best_at[j], s = real ? sum_at[j] : T{};
      Row r = PLACE ? row_at[j] : Row{};
      for (int k = 0; k < ROWS; k++) {
        const T e = x[k * stride + j];
        const bool better = GREATEST ? e > b : e < b;
        b = better ? e : b;
        if (PLACE) r = better ? (Row)(i + k) : r;
        if (real) s += e;
      }
      best_at[j] = b;
      if (PLACE) row_at[j] = r;
      if (real) sum_at[j] = s;
    };
    const auto vector = [&](int64_t j) {
      GPR_PRAGMA(GCC ivdep)
      for (int64_t l = 0; l < WIDE; l++) one(j + l);
    };
    int64_t j = first;
    for (; j + WIDE <= stop; j += WIDE) vector(j);
    if (j < stop && stop >= WIDE)
      vector(stop - WIDE); /* some for a second time, which changes nothing */
    else
      for (; j < stop; j++) one(j);
  }
  /* Whether each column has a NaN by now, of which the sum stays one. */
  bool look_for_nan(const T *x, int64_t stride, int64_t columns, int64_t from, int64_t stop) {
    int any = 0;
    for (int64_t j = 0; real && j < columns; j++) any |= sum[j] != sum[j];
    for (int64_t first = 0; any && first < columns; first += WIDE) {
      const int64_t n = least((int64_t)WIDE, columns - first);
      const uint64_t odd = nan_of(sum + first, n) & ~known[first / WIDE];
      if (odd || !PLACE) meet_nan(x + first, stride, n, first, odd, from, stop);
    }
    return spoiled == columns;
  }
  static uint64_t nan_of(const T *x, int64_t n) {
    typedef T V __attribute__((vector_size(GPR_VECTOR)));
    V v = {};
    if (n == WIDE)
      memcpy(&v, x, sizeof v);
    else
      memcpy(&v, x, (size_t)n * sizeof *x);
    return mask_of(v != v);
  }
  /* Of columns whose sums are odd, or if no place is asked for of all: without a branch. */
  void meet_nan(const T *x, int64_t stride, int64_t n, int64_t first, uint64_t odd, int64_t i,
                int64_t stop) {
    uint64_t met = 0;
    for (; i < stop && (!PLACE || met != odd); i++) {
      const uint64_t found = nan_of(x + i * stride, n);
      for (uint64_t f = found & odd & ~met; PLACE && f; f &= f - 1)
        nan[first + __builtin_ctzll(f)] = (Row)i;
      met |= PLACE ? found & odd : found;
    }
    spoiled += __builtin_popcountll(met & ~known[first / WIDE]);
    known[first / WIDE] |= met;
    for (odd &= ~met; odd; odd &= odd - 1) sum[first + __builtin_ctzll(odd)] = 0; /* infinities */
  }
  /* The worst of all, and the signs of zeros. */
  void settle(const T *x, int64_t stride, int64_t columns, int64_t rows, bool skip) {
    int zero = 0, worsts = 0;
    for (int64_t j = 0; j < columns; j++) {
      zero |= best[j] == 0;
      worsts |= best[j] == worst();
    }
    unmet = worsts && skip;
    if (unmet) {
      look_for(x, stride, columns, rows, met, [](T e) { return e == e; });
      for (int64_t j = 0; PLACE && j < columns; j++) row[j] = row[j] < 0 ? met[j] : row[j];
    }
    if (zero && !PLACE) look_at_signs(x, stride, columns, rows);
  }
  /* Of numbers at least zero the least is -0.0 if there is one, of others the greatest is 0.0. NaN
   * is of neither sign. */
  void look_at_signs(const T *x, int64_t stride, int64_t columns, int64_t rows) {
    if constexpr (real) {
      Bits signs[COLUMNS];
      memset(signs, GREATEST ? -1 : 0, (size_t)columns * sizeof *signs);
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
          const T e = x[i * stride + j];
          const Bits b = copy_bits<Bits>(e == e ? e : best[j]);
          signs[j] = GREATEST ? signs[j] & b : signs[j] | b;
        }
      const Bits sign = (Bits)1 << (8 * sizeof(Bits) - 1);
      for (int64_t j = 0; j < columns; j++)
        if (best[j] == 0) best[j] = copy_bits<T>((Bits)(signs[j] & sign));
    }
  }
  bool is_spoiled(int64_t j) const { return real && sum[j] != sum[j]; } /* without PLACE */
  int64_t row_of_nan(int64_t j) const { return real ? nan[j] : -1; }
  bool is_empty(int64_t j) const { return unmet && met[j] < 0; }
  T value(int64_t j) const { return best[j]; }
  int64_t place(int64_t j) const { return row[j]; }
};

GPR_CLOSE
#endif
