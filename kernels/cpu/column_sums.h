/* Sums, products, counts and bits of integers side by side. */
#pragma once

#include "many.h"

GPR_OPEN

/* Words that are combined. */
template <template <class> class Op, class T, class W = uint64_t> struct Combined {
  enum { most = WIDE_COLUMNS<T> };
  W word[most];
  static void open(W *all, int64_t columns) {
    for (int64_t j = 0; j < columns; j++) all[j] = Op<W>::identity();
  }
  static void add(W *all, const Panel<T> &x, int64_t columns) {
    combine_columns<Op>(all, x, columns);
  }
  void open(int64_t columns) { open(word, columns); }
  void add(const Panel<T> &x, int64_t columns, int64_t) { add(word, x, columns); }
};
template <class T> using SumOfColumns = Combined<Plus, T>;
template <class T> struct Columns<IntegerSum<T>> : SumOfColumns<T> {
  typename IntegerSum<T>::State get(int64_t j) const { return {this->word[j]}; }
};
template <class T> struct Columns<IntegerProduct<T>> : Combined<Times, T> {
  typename IntegerProduct<T>::State get(int64_t j) const { return {this->word[j]}; }
};
template <class T, template <class> class Op>
struct Columns<Bitwise<T, Op>> : Combined<Op, T, typename Order<T>::Key> {
  typename Bitwise<T, Op>::State get(int64_t j) const { return {this->word[j]}; }
};
template <class T> struct Columns<LongSum<T>> : SumOfColumns<T> {
  /* Of 64-bit integers the upper halves are added up by themselves. */
  enum { whole = sizeof(T) < 8 };
  int64_t high[whole ? 1 : WIDE_COLUMNS<T>];
  void open(int64_t columns) {
    SumOfColumns<T>::open(columns);
    if (!whole) memset(high, 0, (size_t)columns * sizeof *high);
  }
  void add(const Panel<T> &x, int64_t columns, int64_t index) {
    if (whole) return SumOfColumns<T>::add(x, columns, index);
    for (int64_t i = 0; i < x.n; i++) {
      const T *row = x[i];
      for (int64_t j = 0; j < columns; j++) {
        const auto w = wide(row[j]);
        this->word[j] += (uint64_t)w & 0xffffffffu;
        high[j] += (int64_t)(w >> 32);
      }
    }
  }
  typename LongSum<T>::State get(int64_t j) const {
    if (whole) return long_of<T>(this->word[j]);
    typename LongSum<T>::State s = {this->word[j], 0};
    LongSum<T>::merge(s, {(uint64_t)high[j] << 32, high[j] >> 32});
    return s;
  }
};

/* How many are true, in words as wide as a comparison, which so many rows fit. */
template <class T> struct Trues {
  typedef typename Unsigned<sizeof(typename RealOf<T>::type)>::type W;
  enum { ROWS = sizeof(W) == 1 ? 252 : 32768 };
  static GPR_APART void count(W *part, const Panel<T> &x, int64_t columns) {
    memset(part, 0, (size_t)columns * sizeof *part);
    combine_rows<Plus>(part, x, columns, [](T e) { return (W)is_true(e); });
  }
};
template <class T, int WHAT> struct Columns<Counting<T, WHAT>> {
  enum { most = WIDE_COLUMNS<T> };
  uint64_t count[most];
  int64_t all;
  void open(int64_t columns) {
    memset(count, 0, (size_t)columns * sizeof *count);
    all = 0;
  }
  void add(const Panel<T> &x, int64_t columns, int64_t) {
    all += x.n;
    typename Trues<T>::W part[WIDE_COLUMNS<T>];
    for (int64_t i = 0, m; i < x.n; i += m) {
      m = least(x.n - i, (int64_t)Trues<T>::ROWS);
      Trues<T>::count(part, x.part(i, m), columns);
      for (int64_t j = 0; j < columns; j++) count[j] += part[j];
    }
  }
  typename Counting<T, WHAT>::State get(int64_t j) const {
    return {WHAT ? (int64_t)count[j] : all - (int64_t)count[j]};
  }
};

/* --- finished as they are ------------------------------------------------------------------------
 */

template <class C, class T, class Result> struct DirectWords {
  enum { possible = 1 };
  static bool run(const Panel<T> &x, int64_t columns, int *, Result *to) {
    C::open((uint64_t *)to, columns);
    C::add((uint64_t *)to, x, columns);
    return true;
  }
};
template <class O, class T>
struct Direct<O, IntegerSum<T>> : DirectWords<SumOfColumns<T>, T, typename O::Result> {};
template <class O, class T>
struct Direct<O, IntegerProduct<T>> : DirectWords<Combined<Times, T>, T, typename O::Result> {};

/* The bits of an integer's size, less one of a negative one; and all that some have. */
template <class T> GPR_FN uint64_t size_bits(T x) {
  const uint64_t w = (uint64_t)wide(x);
  return Traits<T>::kind == KIND_INT ? w ^ (uint64_t)((int64_t)w >> 63) : w;
}
template <class T> GPR_FN uint64_t size_bits(const Panel<T> &x, int64_t columns) {
  uint64_t any = 0;
  for (int64_t i = 0; i < x.n; i++) {
    const T *row = x[i];
    for (int64_t j = 0; j < columns; j++) any |= size_bits(row[j]);
  }
  return any;
}

/* An integer of 2^51 at most, in either direction, as a double: AVX2 has no conversion of them. */
GPR_FN double of_integer(uint64_t x) {
  return copy_bits<double>(x + copy_bits<uint64_t>(0x1.8p52)) - 0x1.8p52;
}
/* Of integers whose sum is a double. */
template <class O, class T> struct Direct<O, LongSum<T>> {
  enum { possible = 1 };
  static bool run(const Panel<T> &x, int64_t columns, int *, typename O::Result *to) {
    Columns<LongSum<T>> c;
    enum { ROWS = 1 << 12 };
    if (x.n > ROWS) return false;
    if (sizeof(T) == 8 && size_bits(x, columns) >> 39) return false;
    c.SumOfColumns<T>::open(columns);
    c.SumOfColumns<T>::add(x, columns, 0);
    for (int64_t j = 0; j < columns; j++) to[j] = O::of(of_integer(c.word[j]), (double)x.n);
    return true;
  }
};

template <class O, class T, int WHAT> struct Direct<O, Counting<T, WHAT>> {
  enum { possible = 1 };
  static bool run(const Panel<T> &x, int64_t columns, int *, typename O::Result *to) {
    typedef typename Trues<T>::W W;
    W part[WIDE_COLUMNS<T>];
    const int64_t rows = x.n;
    if (rows > Trues<T>::ROWS) return false;
    Trues<T>::count(part, x, columns);
    for (int64_t j = 0; j < columns; j++) {
      const W n = part[j];
      const typename Counting<T, WHAT>::State s = {(int64_t)(WHAT ? n : (W)(rows - n))};
      O::finish(s, rows, nullptr, to + j);
    }
    return true;
  }
};

GPR_CLOSE
