/* The greatest of elements as the hardware compares them, of contiguous runs and of columns. The
 * least is the greatest of what is `flip`ped: of integers all bits, of those without a sign the
 * first one beside, of floats their sign. */
#pragma once

#include "panel.h"
#include "tiles.h"

GPR_OPEN

/* Columns of a block, and of small elements, so that a row of them is many lines of memory. */
static constexpr int64_t COLUMNS = 512;
template <class T>
static constexpr int64_t WIDE_COLUMNS = sizeof(T) < 4 ? 4096 / sizeof(T) : COLUMNS;

/* N: an integer with a sign, float or double. */
template <class N> struct Flipped {
  typedef typename Unsigned<sizeof(N)>::type Bits;
  typedef N V __attribute__((vector_size(GPR_VECTOR)));
  typedef Bits Numbers __attribute__((vector_size(GPR_VECTOR)));
  enum { WIDE = GPR_VECTOR / sizeof(N) };
  static constexpr bool real = Traits<N>::kind == KIND_FLOAT;
  static constexpr Bits sign = (Bits)((Bits)1 << (8 * sizeof(N) - 1));

  Bits flip;
  static GPR_METHOD N worst() {
    if constexpr (real)
      return -(N)__builtin_inf();
    else
      return Limits<N>::least;
  }
  GPR_METHOD N turn(N x) const { return copy_bits<N>((Bits)(copy_bits<Bits>(x) ^ flip)); }
  GPR_METHOD V load(const N *at) const {
    Numbers v;
    memcpy(&v, at, sizeof v);
    return (V)(v ^ flip);
  }
  static GPR_METHOD V better(const V a, const V b) { return b > a ? b : a; }
};

/* --- contiguous runs ---------------------------------------------------------------------------
 */

/* The greatest of a run, where the two zeros tie, and if that is asked for its first place. A NaN
 * spoils the run and is the end of it, and its place the first NaN's; a sum of the elements tells
 * it: that goes through every addition, and `inf - inf` costs a second look. What leaves NaN out
 * sees that it is never better, and what is NaN alone is spoiled. Rows of vectors overlap at both
 * ends, since no element counts twice, so that the loads between do not straddle cache lines. */
template <class N, bool PLACE> struct Peak : Flipped<N> {
  typedef Flipped<N> Own;
  typedef typename Own::V V;
  typedef typename Own::Bits Number; /* of a row, or of an element in one */
  typedef typename Own::Numbers Numbers;
  using Own::real;
  using Own::WIDE;
  enum { VECTORS = 8 };

  N value;
  bool skip, spoiled;
  int64_t place;

  template <class U, int BYTES> struct Vector {
    typedef U type __attribute__((vector_size(BYTES)));
  };
  /* The greatest of a vector, or the least. */
  template <class U, bool LEAST, int BYTES = GPR_VECTOR>
  static GPR_METHOD U across(typename Vector<U, BYTES>::type v) {
    const auto better = [](auto a, auto b) { return (LEAST ? b < a : b > a) ? b : a; };
    if constexpr (BYTES > 8) {
      typename Vector<U, BYTES / 2>::type half[2];
      memcpy(half, &v, sizeof v);
      return across<U, LEAST, BYTES / 2>(better(half[0], half[1]));
    } else {
      U one = v[0];
      for (int l = 1; l < BYTES / (int)sizeof(U); l++) one = better(one, (U)v[l]);
      return one;
    }
  }
  /* Of a row of vectors, lane by lane; they are loaded in their order, since in another one rows
   * from DRAM took 1.5 to 1.9 times as long on Zen 4. */
  GPR_METHOD void along(const N *x, V &best, V &sum) const {
    constexpr int CHAINS = 2;
    V top[CHAINS], all[CHAINS] = {};
    for (int c = 0; c < CHAINS; c++) top[c] = this->worst() - V{};
    for (int v = 0; v < VECTORS; v++) {
      const V e = this->load(x + v * WIDE);
      top[v % CHAINS] = this->better(top[v % CHAINS], e);
      if (real) all[v % CHAINS] += e;
      prefetch(x + v * WIDE);
    }
    best = this->better(top[0], top[CHAINS - 1]);
    sum = all[0] + all[CHAINS - 1];
  }
  template <class Is> int64_t first_that(const N *x, int64_t n, const Is &is) const {
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
      if (const int64_t lane = first_lane(is(this->load(x + i))); lane < WIDE) return i + lane;
    while (i < n && !is(this->turn(x[i]))) i++;
    return i;
  }
  /* Whether one of the n from place on is NaN, and then where. */
  GPR_APART bool meets_nan(const N *x, int64_t from, int64_t n) {
    const int64_t at = first_that(x + from, n, [](auto e) { return e != e; });
    spoiled = at < n;
    if (spoiled) place = from + at;
    return spoiled;
  }
  /* The best of a few vectors is looked for once more. */
  GPR_METHOD void run_few(const N *x, int64_t n) {
    const int64_t last = n - WIDE;
    V best = this->worst() - V{}, sum = {};
    for (int64_t i = 0;; i = least(i + WIDE, last)) {
      const V e = this->load(x + i);
      best = this->better(best, e);
      if (real) sum += e;
      if (i == last) break;
    }
    if constexpr (real)
      if (__builtin_expect(mask_of(sum != sum) != 0, 0))
        if (!skip && meets_nan(x, 0, n)) return;
    value = across<N, false>(best);
    if (PLACE) place = first_that(x, n, [this](auto e) { return e == value; });
  }
  /* NUMBERED: each lane keeps its best and the first row that had it, so that one row is searched
   * at last. Short runs are searched from their start: of rows of 64 doubles argmax took 30 ns each
   * on Zen 4 with numbers, and takes 21. */
  enum { SEARCHED = 3 }; /* rows of vectors */
  template <bool NUMBERED> GPR_APART void run_rows(const N *x, int64_t n) {
    constexpr int64_t ROW = VECTORS * WIDE;
    const int64_t last = n - ROW;
    const int64_t past = n < 4 * ROW ? 0 : (int64_t)((uintptr_t)x % GPR_VECTOR / sizeof(N));
    V best = this->worst() - V{};
    Numbers first = {}, number = {};
    for (int64_t i = 0;; number++) {
      V row, sum;
      along(x + i, row, sum);
      if constexpr (real)
        if (__builtin_expect(mask_of(sum != sum) != 0, 0))
          if (!skip && meets_nan(x, i, ROW)) return;
      if (NUMBERED) first = row > best ? number : first;
      best = this->better(best, row);
      if (i == last) break;
      i = least(i ? i + ROW : ROW - past, last);
    }
    value = across<N, false>(best);
    if (PLACE && !NUMBERED) place = first_that(x, n, [this](auto e) { return e == value; });
    if (NUMBERED) {
      const int64_t r = across<Number, true>(best == value ? first : ~Numbers{});
      place = least(r ? r * ROW - past : 0, last);
      Numbers lane, found = ~Numbers{};
      for (int l = 0; l < WIDE; l++) lane[l] = (Number)l;
      for (int v = VECTORS; v--;)
        found = this->load(x + place + v * WIDE) == value ? lane + (Number)(v * WIDE) : found;
      place += (int64_t)across<Number, true>(found);
    }
  }
  GPR_METHOD Peak(const N *x, int64_t n, Number flip, bool leave_out) /* n > 0 */
      : Own{flip}, skip(real && leave_out), spoiled(false), place(0) {
    if (PLACE && n > SEARCHED * VECTORS * WIDE) {
      run_rows<PLACE>(x, n);
    } else if (n >= VECTORS * WIDE) {
      run_rows<false>(x, n);
    } else if (n >= WIDE) {
      run_few(x, n);
    } else {
      V few = *x - V{};
      memcpy(&few, x, (size_t)n * sizeof *x);
      run_few((const N *)&few, WIDE);
    }
    if constexpr (real)
      if (skip && value == this->worst()) {
        place = first_that(x, n, [](auto e) { return e == e; });
        spoiled = place == n;
      }
  }
};
template <class N, bool PLACE>
static GPR_APART Peak<N, PLACE> peak_of(const N *x, int64_t n, typename Flipped<N>::Bits flip,
                                        bool skip) {
  return Peak<N, PLACE>(x, n, flip, skip);
}

/* What a greatest of zero is among these: -0.0 unless there is one of 0.0. NaN is of neither sign.
 */
template <class N>
static GPR_APART N zero_of(const N *x, int64_t n, typename Flipped<N>::Bits flip) {
  typedef Flipped<N> F;
  typename F::Bits signs = F::sign;
  for (int64_t i = 0; i < n; i++) {
    const auto b = (typename F::Bits)(copy_bits<typename F::Bits>(x[i]) ^ flip);
    signs &= x[i] == x[i] ? b : F::sign;
  }
  return copy_bits<N>(signs);
}

/* --- columns -----------------------------------------------------------------------------------
 */

/* The greatest of each column, where the two zeros tie, and its first row; of a value zeros have
 * their order. Columns are at least WIDE: the last vector overlaps the one before, which changes
 * nothing. */
template <class N, bool PLACE> struct Bests : Flipped<N> {
  typedef Flipped<N> Own;
  typedef typename Own::V V;
  typedef typename Own::Bits Bits;
  using Own::real;
  typedef typename Own::Numbers Numbers;
  using Own::WIDE;
  typedef typename Signed<sizeof(N)>::type Row; /* GPR_SHORT rows fit all of them */
  typedef Row Rows __attribute__((vector_size(GPR_VECTOR)));
  enum { TOGETHER = 4 }; /* rows between two looks at what was best */
  enum { LOOK = 64 };    /* rows between two looks at the sums; a multiple of TOGETHER */
  enum { FEW_ROWS = 8 }; /* which the hardware follows by itself */
  enum { AHEAD = 8 * TOGETHER };
  enum { MOST = PLACE ? COLUMNS : WIDE_COLUMNS<N> };
  N *best, own[MOST];          /* best: own, or where they are wanted */
  N sum[real ? (int)MOST : 1]; /* or without places what has all bits where one is NaN */
  Row row[PLACE ? COLUMNS : 1];
  Row special[real ? (int)MOST : 1]; /* the first row of NaN, or -1; of what leaves it out, 0 where
                                      there is nothing else */
  bool odd;                          /* one is not -1 */
  bool unsure, zero; /* one is NaN, or of what leaves it out a best the worst; a best is zero */

  GPR_APART void run(const Panel<N> &x, int64_t columns, Bits flip, bool skip, N *to = nullptr) {
    const int64_t rows = x.n;
    bool all_spoiled = false;
    best = to ? to : own;
    odd = unsure = zero = false;
    this->flip = flip;
    for (int64_t from = 0, stop; from < rows && !all_spoiled; from = stop) {
      int64_t i = from;
      stop = least(rows, from + LOOK);
      for (; i + TOGETHER < stop; i += TOGETHER) add<TOGETHER, false>(x, columns, i, skip);
      add_last(x, columns, i, stop - i, skip);
      if constexpr (real)
        if (!skip && unsure) all_spoiled = look_for_nan(x, columns, from, stop);
    }
    if (real && skip && unsure) meet_worst(x, columns);
    if constexpr (real && !PLACE)
      if (zero) order_zeros(x, columns);
  }
  template <int ROWS = TOGETHER>
  GPR_APART void add_last(const Panel<N> &x, int64_t columns, int64_t i, int64_t some, bool skip) {
    if constexpr (ROWS > 1)
      if (some < ROWS) return add_last<ROWS - 1>(x, columns, i, some, skip);
    add<ROWS, true>(x, columns, i, skip);
  }
  template <int ROWS, bool LOOKS>
  void add(const Panel<N> &x, int64_t columns, int64_t i, bool skip) {
    const int64_t first = i + least((int64_t)AHEAD, x.n);
    const bool far = x.n > FEW_ROWS && gpr_prefetch_columns && gpr_is_far;
    const Own turned = *this;
    const N *row_at[ROWS], *next[ROWS] = {};
    Numbers odd_lanes = {}, zeros = {};
    for (int64_t k = 0; k < ROWS; k++) row_at[k] = x[i + k];
    for (int64_t k = first; far && k < first + ROWS; k++) /* at the end those of the next strip */
      next[k - first] = k < x.n ? x[k] : x[k - x.n] + columns;
    for (int64_t j = 0;; j = least(j + WIDE, columns - WIDE)) {
      V b = this->worst() - V{}, s = {};
      Rows r = {};
      if (i) {
        memcpy(&b, best + j, sizeof b);
        if (real) memcpy(&s, sum + j, sizeof s);
        if (PLACE) memcpy(&r, row + j, sizeof r);
      }
      for (int64_t k = 0; k < ROWS; k++) {
        const V e = turned.load(row_at[k] + j);
        if (far) prefetch_later<WIDE>(next[k] + j, 0);
        if constexpr (PLACE) r = e > b ? (Row)(i + k) - Rows{} : r;
        b = this->better(b, e);
        if constexpr (real) s = PLACE ? s + e : (V)((Numbers)s | (Numbers)(e != e));
      }
      if (real && LOOKS) {
        const Numbers nan = PLACE ? (Numbers)(s != s) : (Numbers)s;
        odd_lanes |= skip ? (Numbers)(b == this->worst()) : nan;
        zeros |= (Numbers)(b == 0);
      }
      memcpy(best + j, &b, sizeof b);
      if (real) memcpy(sum + j, &s, sizeof s);
      if (PLACE) memcpy(row + j, &r, sizeof r);
      if (j == columns - WIDE) break;
    }
    if (real && LOOKS) unsure = mask_of(odd_lanes), zero = mask_of(zeros);
  }
  void mark(int64_t j, int64_t i) {
    if (!odd) memset(special, -1, sizeof special);
    odd = true;
    special[j] = (Row)i;
  }
  /* Calls take(strip, its first column) for all columns. */
  template <class Take> static GPR_METHOD void strips(int64_t columns, const Take &take) {
    for (int64_t j = 0;; j = least(j + WIDE, columns - WIDE)) {
      take(j);
      if (j == columns - WIDE) return;
    }
  }
  /* Whether each column has a NaN by now, of which a sum stays one; so may that of infinities. */
  bool look_for_nan(const Panel<N> &x, int64_t columns, int64_t from, int64_t stop) {
    Rows all = ~Rows{}, any = {};
    if (PLACE && !odd) memset(special, -1, sizeof special);
    strips(columns, [&](int64_t j) {
      Rows found;
      V s, e;
      memcpy(&s, sum + j, sizeof s);
      memcpy(&found, special + j, sizeof found);
      if constexpr (!PLACE) {
        found = ~(Rows)s;
      } else if (mask_of((s != s) & (found < 0))) {
        for (int64_t i = from; i < stop; i++) {
          memcpy(&e, x[i] + j, sizeof e);
          found = (e != e) & (found < 0) ? (Row)i - Rows{} : found;
        }
        s = found < 0 ? V{} : s;
        memcpy(sum + j, &s, sizeof s);
      }
      memcpy(special + j, &found, sizeof found);
      any |= found >= 0;
      all &= found >= 0;
    });
    odd |= mask_of(any) != 0;
    return mask_of(~all) == 0;
  }
  void meet_worst(const Panel<N> &x, int64_t columns) {
    for (int64_t j = 0; j < columns; j++) {
      if (best[j] != this->worst()) continue;
      int64_t i = 0;
      while (i < x.n && x[i][j] != x[i][j]) i++;
      if (PLACE) row[j] = (Row)i;
      if (i == x.n) mark(j, 0);
    }
  }
  void order_zeros(const Panel<N> &x, int64_t columns) {
    strips(columns, [&](int64_t j) {
      Numbers signs = Own::sign - Numbers{};
      V b, e;
      memcpy(&b, best + j, sizeof b);
      if (!mask_of(b == 0)) return;
      for (int64_t i = 0; i < x.n; i++) {
        memcpy(&e, x[i] + j, sizeof e);
        signs &= e == e ? (Numbers)e ^ this->flip : Own::sign - Numbers{};
      }
      b = b == 0 ? (V)signs : b;
      memcpy(best + j, &b, sizeof b);
    });
  }
  N value(int64_t j) const { return this->turn(best[j]); }
  bool is_special(int64_t j) const { return odd && special[j] >= 0; }
  int64_t place(int64_t j) const { return is_special(j) ? special[j] : row[j]; }
};

GPR_CLOSE
