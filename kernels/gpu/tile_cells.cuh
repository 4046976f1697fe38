/* What a thread keeps of an output of any layout: elements need not come in the order of their
 * index. */
#pragma once

#include "load.cuh"
#include "rows.cuh"

GPR_OPEN

/* Loads that a thread has under way; fewer where batches are long to compile. */
template <class F> struct TileShape {
  static constexpr int blocks = 3, loads = sizeof(typename F::Element) <= 4 ? 16 : 8;
};
template <> struct TileShape<PairSum<double>> { static constexpr int blocks = 2, loads = 8; };
template <class T> struct TileShape<PairSum<complex<T>>> {
  static constexpr int blocks = 2, loads = sizeof(T) == 4 ? 8 : 4;
};

/* Elements need not come in the order of their index. Run: those of a run that do. */
template <class F> struct TileCell : Cells<F, 1> {
  struct Run {};
};
template <class T, bool GREATEST> struct AnyOrderCell {
  typedef Position<T, GREATEST> F;
  typedef Rank<T, GREATEST> R;
  T best;
  typename R::Key key = R::lowest();
  bool spoiled = false;
  int64_t where = -1;
  /* Without a branch: 192 µs of 98 MB of bfloat16 went into those on an H200. */
  GPR_DEVICE void add(T x, int64_t index) {
    const typename R::Key k = R::of(x);
    const bool spoils = R::poisoned(x), earlier = index < where;
    const bool beats = R::worse(key, k), ties = !beats & !R::worse(k, key);
    const bool among = spoils ? !spoiled | earlier : !spoiled & (beats | (ties & earlier));
    if ((where < 0) | among) best = x, key = k, spoiled = spoils, where = index;
  }
  GPR_DEVICE void done(typename F::State &s) {
    F::open(s);
    if (where >= 0) F::add(s, best, where);
  }
};
template <class T, bool GREATEST> struct TileCell<Position<T, GREATEST>> {
  typedef PositionCell<T, GREATEST, int> Run;
  AnyOrderCell<T, GREATEST> cell;
  template <class IndexOf> GPR_DEVICE void take(const Run &run, IndexOf index_of) {
    if (run.where >= 0) cell.add(run.best(), index_of(run.where));
  }
  GPR_DEVICE void keep(typename Position<T, GREATEST>::State *) {}
  GPR_DEVICE void one(T x, int64_t index) { cell.add(x, index); }
  GPR_DEVICE void done(typename Position<T, GREATEST>::State *s) { cell.done(*s); }
};
template <class T> struct TileCell<Positions<T>> {
  struct Run {
    PositionCell<T, false, int> low;
    PositionCell<T, true, int> high;
    GPR_DEVICE void add(T x, int r) {
      low.add(x, r);
      high.add(x, r);
    }
  };
  AnyOrderCell<T, false> low;
  AnyOrderCell<T, true> high;
  template <class IndexOf> GPR_DEVICE void take(const Run &run, IndexOf index_of) {
    if (run.low.where >= 0) low.add(run.low.best(), index_of(run.low.where));
    if (run.high.where >= 0) high.add(run.high.best(), index_of(run.high.where));
  }
  GPR_DEVICE void keep(typename Positions<T>::State *) {}
  GPR_DEVICE void one(T x, int64_t index) {
    low.add(x, index);
    high.add(x, index);
  }
  GPR_DEVICE void done(typename Positions<T>::State *s) {
    low.done(s->low);
    high.done(s->high);
  }
};

GPR_CLOSE
