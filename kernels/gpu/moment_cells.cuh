/* What one thread keeps of Σx and Σx² of one output: cells.cuh's for moments. */
#pragma once

#include "bfloat_range.cuh"
#include "cells.cuh"
#include "pair_moments.cuh"

GPR_OPEN

/* --- a window for each batch ------------------------------------------------------------------ */

/* The sums of one part of one output, a pair for each window of squares; `end` is the last one's
 * and takes what further windows hold too. */
template <class R> struct MomentPairs {
  static constexpr int squares = MomentBatch<R, 1>::squares, last = squares - 1;
  typedef typename TermsOfSum<R>::type Sum;
  Sum sum, end;
  Pair square[last];
  GPR_DEVICE MomentPairs() {
    clear(sum);
    clear(end);
    GPR_EACH(i, last) square[i] = {0, 0};
  }
  template <class Batch> GPR_DEVICE void add(const Batch &b, bool &lost) {
    GPR_EACH(i, Batch::sums) add_to_all(sum, b.sum(i), lost);
    GPR_EACH(i, Batch::squares)
      if (i < last)
        gpr::add(square[i], b.square(i), lost);
      else
        add_to_all(end, b.square(i), lost);
  }
  /* A NaN is kept by the pair that meets it, and nothing else matters to it any more. */
  GPR_DEVICE bool is_nan() const { return sum.hi != sum.hi; }
  template <class State> GPR_DEVICE void give(State &s, int part) const {
    if (is_nan()) return set_nan(s, part);
    give(s.sum[part], 0, sum);
    GPR_EACH(i, last) add_to(s.squares, part * squares + i, square[i]);
    give(s.squares, part * squares + last, end);
  }
  template <class Levels> static GPR_DEVICE void give(Levels &s, int level, const Pair &p) {
    add_to(s, level, p);
  }
  template <class Levels> static GPR_DEVICE void give(Levels &s, int level, const Triple &p) {
    add_to(s, level, Pair{p.hi, p.lo});
    if (p.tail != 0) add_in_turn(&s, level, p.tail);
  }
};

template <class T> struct BatchCells {
  typedef PairMoments<T> F;
  typedef typename F::State State;
  typedef typename F::Real R;
  typedef typename RealOf<T>::type Stored;
  static constexpr int parts = F::parts;
  MomentPairs<R> pairs[parts];
  State *over; /* rarely touched: a state in here would take the pairs to local memory with it */
  GPR_DEVICE void open() {}
  /* What the windows of all parts hold; false: nothing was added. */
  template <class Windows> GPR_DEVICE bool end(const Windows (&windows)[parts]) {
    MomentPairs<R> next[parts];
    bool lost = false;
    GPR_EACH(p, parts) {
      next[p] = pairs[p];
      next[p].add(windows[p], lost);
    }
    GPR_EACH(p, parts)
      if (!lost) pairs[p] = next[p];
    return !lost;
  }
  template <class Batch, int U>
  GPR_DEVICE bool add_widely(const T (&x)[U], const Batch (&batch)[parts]) {
    WideBatch<Stored, U> wide[parts];
    GPR_EACH(p, parts) {
      if (batch[p].apart > wide[p].spread) return false;
      wide[p].open(batch[p].top);
      GPR_EACH(u, U) wide[p].add(copied(F::real(x[u], p)));
    }
    return end(wide);
  }
  template <int U> GPR_DEVICE bool take(const T (&x)[U]) {
    PartsOfBatch<T, U> batch;
    GPR_EACH(u, U) batch.see(x[u]);
    const bool lost = !batch.open(), nan = pairs[0].is_nan() | batch.is_nan();
    if (nan) pairs[0].sum.hi = NAN;
    /* All lanes go the wide way if one must: divergent ones would take the time of both. */
    if (__any_sync(__activemask(), lost)) return nan || add_widely(x, batch.part);
    GPR_EACH(u, U) batch.add(x[u]);
    return end(batch.part) | nan;
  }
  GPR_DEVICE void give() {
    GPR_EACH(p, parts) pairs[p].give(*over, p);
  }
};

/* --- one window for many batches -------------------------------------------------------------- */

/* float16 and bfloat16 have so few bits that a window serves 2^11 numbers. */
enum { HALF_HEADROOM = 11, HALVES_AT_ONCE = 1 << HALF_HEADROOM };
/* Wide windows; the ordinary way uses the first two for squares, and x[0] as a plain sum. */
template <class H> using HalfWindows = WideFloats<Format<H>::precision, HALVES_AT_ONCE>;

/* Where it lies. All squares of float16 are within the windows of the greatest one. */
template <class H> struct HalfPlace {
  static constexpr bool wide = false;
  int top = 16;
  template <int N> GPR_DEVICE void see(const H (&)[N]) {}
  GPR_DEVICE bool inside() const { return true; }
  GPR_DEVICE bool move() { return true; }
};
/* By wide windows, for good, after so many moves of ordinary ones or where one batch is too wide
 * for them: of numbers that are far apart those of some lane would always move. Infinities and NaN
 * become the window's, wherever it lies. */
template <> struct HalfPlace<bfloat16> {
  enum { MOVES = 4, NARROW = spread_most(8, HALF_HEADROOM) };
  BfloatRange range;
  bool wide = false;
  int top = -126, moves = 0;
  template <int N> GPR_DEVICE void see(const bfloat16 (&x)[N]) {
    range = BfloatRange();
    range.see(x);
  }
  GPR_DEVICE int spread() const { return wide ? HalfWindows<bfloat16>::spread : (int)NARROW; }
  GPR_DEVICE bool inside() const {
    return range.high() - 126 <= top && top + 126 - range.low() <= spread();
  }
  /* With room for what comes later: two above the greatest, or of wide ones as much as below the
   * least. */
  GPR_DEVICE bool move() {
    wide |= ++moves > MOVES || range.apart() > NARROW;
    const int left = spread() - range.apart();
    top = range.high() - 126 + (wide ? left / 2 : left < 2 ? left : 2);
    return left >= 0;
  }
};

/* What windows hold into the state. Infinities and NaN come here as such: the window is then one
 * itself. */
static __device__ __noinline__ void add_count(MomentState<float, 1> *s, double sum, double first,
                                              double second) {
  if (is_nan(*s, 0)) return;
  if (first - first == 0) {
    add_to(s->sum[0], 0, sum);
    add_to(s->squares, 0, first);
    add_to(s->squares, 1, second);
  } else {
    add_alone(s, 0, first);
  }
}
static __device__ __noinline__ void add_rests(MomentState<float, 1> *s, double sum, double third) {
  if (is_nan(*s, 0) || third - third != 0) return;
  add_to(s->sum[0], 0, sum);
  add_to(s->squares, 1, third);
}

template <class H> struct HalfCells {
  typedef PairMoments<H> F;
  typedef typename F::State State;
  HalfPlace<H> place;
  int count = 0;
  HalfWindows<H> windows;
  State *over;
  GPR_DEVICE HalfCells() { open(); }
  GPR_DEVICE void open() {
    count = 0;
    windows.open(place.top);
    if (!place.wide) windows.x[0] = 0;
  }
  GPR_DEVICE void give() {
    const double sum = place.wide ? windows.sum(0) : windows.x[0];
    add_count(over, sum, windows.square(0), windows.square(1));
    if (place.wide) add_rests(over, windows.sum(1), windows.square(2));
  }
  template <int U> GPR_DEVICE bool take(const H (&x)[U]) {
    bool fine = true;
    place.see(x);
    if (count + U > HALVES_AT_ONCE || !place.inside()) {
      give();
      if (!place.inside()) fine = place.move();
      open();
    }
    if (!fine) return false;
    count += U;
    if (place.wide) {
      GPR_EACH(i, U) windows.add(wide(x[i]));
    } else {
      GPR_EACH(i, U) {
        const double d = wide(x[i]);
        windows.x[0] += d;
        windows.window[1] += windows.rest_of_square(d);
      }
    }
    return true;
  }
};

/* --- both ------------------------------------------------------------------------------------- */

template <class T> struct MomentCells { typedef BatchCells<T> type; };
template <> struct MomentCells<float16> { typedef HalfCells<float16> type; };
template <> struct MomentCells<bfloat16> { typedef HalfCells<bfloat16> type; };

template <class T> struct Cells<PairMoments<T>, 1> : MomentCells<T>::type {
  typedef PairMoments<T> F;
  typedef typename F::State State;
  template <int U> GPR_DEVICE void add(const T (&x)[U], int64_t, int64_t) {
    if (this->take(x)) return;
    T each[U]; /* a copy, so that the others stay in registers */
    GPR_EACH(i, U) each[i] = x[i];
    F::add_all(this->over, each, U);
  }
  GPR_DEVICE void keep(State *over) {
    F::open(*over);
    this->over = over;
  }
  GPR_DEVICE void done(State *) { this->give(); }
};

template <class T> struct Lane<PairMoments<T>> : CellsLane<Cells<PairMoments<T>, 1>, T, 1024> {
  GPR_DEVICE void one(T x, int64_t) { PairMoments<T>::add(*this->cells.over, x); }
};

GPR_CLOSE
