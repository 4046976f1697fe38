/* The best of contiguous complex numbers. */
#ifndef GPR_COMPLEX_PEAK_H
#define GPR_COMPLEX_PEAK_H

#include "folders.h"
#include "tiles.h"

GPR_OPEN

/* Of a block by the real part, then among those that have it by the imaginary one, where the two
 * zeros tie: vectors of parts by turns, of which half the lanes are asked. A NaN in either part
 * spoils the block, or is left out as in Peak. The last vector overlaps the one before. */
template <class R, bool GREATEST, bool SKIP> struct PairPeak {
  typedef Peak<R, GREATEST, false, SKIP> Reals;
  typedef typename Reals::V V;
  typedef typename Reals::Better Better;
  enum { WIDTH = Reals::WIDTH, ROWS = 8 };

  const R *x;
  int64_t n; /* reals, at least a vector of them */
  R re, im;
  bool spoiled;
  int64_t place; /* of the first NaN */

  template <int... L> static GPR_METHOD V partners(V v, Lanes<L...>) {
    return __builtin_shufflevector(v, v, (L ^ 1)...);
  }
  template <int... L> static GPR_METHOD V evens(V v, Lanes<L...>) {
    return __builtin_shufflevector(v, v, (L & ~1)...);
  }
  /* of the lanes of one parity */
  static R across(V v, int parity) {
    for (int l = 1 - parity; l < WIDTH; l += 2) v[l] = Reals::worst();
    return Reals::template across<Better, R>(v);
  }
  /* NaN in the place of what is not a number. */
  static GPR_METHOD V counted(V v) {
    const V other = partners(v, LanesTo<WIDTH>());
    return (v != v) | (other != other) ? Reals::worst() - V{} : v;
  }
  template <int N> static GPR_METHOD V along(const R *at, V &sum) {
    V best;
    if constexpr (SKIP) {
      V row[N];
      for (int v = 0; v < N; v++) row[v] = counted(Reals::load(at + v * WIDTH));
      for (int s = 1; s < N; s *= 2)
        for (int v = 0; v < N; v += 2 * s) row[v] = Better::of(row[v], row[v + s]);
      best = row[0];
    } else {
      Reals::template along<N>(at, best, sum);
    }
    return best;
  }
  /* The best real part; without a NaN that spoils it. */
  template <int N> void find_real() {
    constexpr int64_t ROW = N * WIDTH;
    V best = SKIP ? Reals::worst() - V{} : Reals::load(x), sum = {};
    for (int64_t i = 0;; i = least(i + ROW, n - ROW)) {
      best = Better::of(best, along<N>(x + i, sum));
      if (!SKIP && mask_of(sum != sum)) {
        const int64_t at = Reals::first_that(x + i, ROW, [](auto e) { return e != e; });
        spoiled = at < ROW;
        place = (i + at) / 2;
        if (spoiled) return;
      }
      if (i == n - ROW) break;
    }
    re = across(best, 0);
    if (SKIP && re == Reals::worst()) { /* or none at all */
      spoiled = true;
      for (int64_t i = 0; spoiled && i < n; i += 2) spoiled = x[i] != x[i] || x[i + 1] != x[i + 1];
    }
  }
  GPR_METHOD PairPeak(const complex<R> *from, int64_t numbers)
      : x(&from->re), n(2 * numbers), im(0), spoiled(false), place(0) {
    if (n >= ROWS * WIDTH)
      find_real<ROWS>();
    else
      find_real<1>();
  }
  /* The best imaginary part of those. */
  GPR_APART void find_imaginary() {
    V best = Reals::worst() - V{};
    for (int64_t i = 0;; i = least(i + WIDTH, n - WIDTH)) {
      const V v = Reals::load(x + i);
      best = Better::of(best, evens(v, LanesTo<WIDTH>()) == re ? v : Reals::worst() - V{});
      if (i == n - WIDTH) break;
    }
    im = across(best, 1);
  }
  /* The first that has both. */
  GPR_APART int64_t find() const {
    V wanted;
    for (int l = 0; l < WIDTH; l += 2) wanted[l] = re, wanted[l + 1] = im;
    for (int64_t i = 0;; i = least(i + WIDTH, n - WIDTH)) {
      uint64_t same = mask_of(Reals::load(x + i) == wanted);
      same &= same >> 1 & 0x5555;
      if (same || i == n - WIDTH) return (i + __builtin_ctzll(same)) / 2;
    }
  }
  /* Whether the two zeros have an order here. */
  bool has_order() const {
    int64_t any = 0;
    if (re != 0 && im != 0) return false;
    for (int64_t i = 0; i < n; i++) {
      typedef typename Signed<sizeof(R)>::type Bits;
      any |= copy_bits<Bits>(x[i]) == copy_bits<Bits>((R)-0.0);
    }
    return any;
  }
};

/* Numbers in blocks that stay in the first cache; take(a block, how many, from where on) until it
 * is true. Fewer than a vector are repeated. */
template <class R, class Take>
GPR_FN void pair_blocks(const complex<R> *x, int64_t n, const Take &take) {
  constexpr int64_t BLOCK = 16384 / sizeof *x, LEAST = GPR_VECTOR / sizeof *x;
  for (int64_t i = 0, m; i < n; i += m) {
    m = least(BLOCK, n - i);
    if (m >= LEAST) {
      if (take(x + i, m, i)) return;
      continue;
    }
    complex<R> few[LEAST];
    for (int64_t j = 0; j < LEAST; j++) few[j] = x[i + (j < m ? j : 0)];
    if (take(few, LEAST, i)) return;
  }
}

template <bool GREATEST, class R>
GPR_FN void put_best(typename Extremes<complex<R>>::State &s, complex<R> x) {
  typedef Extremes<complex<R>> F;
  const auto key = F::key(x);
  if (GREATEST ? F::less(s.high, key) : F::less(key, s.low)) (GREATEST ? s.high : s.low) = key;
}
template <class O, class R> struct Folder<O, Extremes<complex<R>>> {
  typedef Extremes<complex<R>> F;
  typedef typename F::State State;
  template <bool GREATEST, bool SKIP>
  static void fold_one(State &s, const complex<R> *x, int64_t n) {
    PairPeak<R, GREATEST, SKIP> peak(x, n);
    s.nan |= !SKIP && peak.spoiled;
    if (peak.spoiled) return;
    const auto ours = F::tied(F::O::key(peak.re)), best = F::tied((GREATEST ? s.high : s.low).re);
    if (GREATEST ? ours < best : best < ours) return;
    peak.find_imaginary();
    if (!peak.has_order()) return put_best<GREATEST, R>(s, {peak.re, peak.im});
    for (int64_t i = 0; i < n; i++)
      if (x[i].re == peak.re && x[i].im == peak.im) put_best<GREATEST>(s, x[i]);
  }
  template <bool SKIP = false> static void fold(State &s, const complex<R> *x, int64_t n, int64_t) {
    pair_blocks(x, n, [&](const complex<R> *at, int64_t m, int64_t) {
      if (Asks<O>::low) fold_one<false, SKIP>(s, at, m);
      if (Asks<O>::high && !s.nan) fold_one<true, SKIP>(s, at, m);
      return s.nan != 0;
    });
  }
};
template <class O, class R, bool GREATEST> struct Folder<O, Position<complex<R>, GREATEST>> {
  typedef Position<complex<R>, GREATEST> F;
  typedef typename F::State State;
  typedef typename F::R Order;
  template <bool SKIP = false>
  static void fold(State &s, const complex<R> *x, int64_t n, int64_t index) {
    if (s.spoiled && s.index < index) return;
    pair_blocks(x, n, [&](const complex<R> *at, int64_t m, int64_t i) {
      PairPeak<R, GREATEST, SKIP> peak(at, m);
      State one = {index + i + peak.place, !SKIP && peak.spoiled, Order::lowest()};
      if (SKIP && peak.spoiled) return false;
      if (!peak.spoiled) {
        const bool earlier = s.index >= 0 && s.index < index + i;
        if (earlier && Order::of({peak.re, 0}).re < s.best.re) return false;
        peak.find_imaginary();
        one.best = Order::of({peak.re, peak.im});
        if (earlier && !Order::worse(s.best, one.best)) return false;
        one.index = index + i + peak.find();
      }
      F::merge(s, one);
      return s.spoiled != 0;
    });
  }
};

GPR_CLOSE
#endif
