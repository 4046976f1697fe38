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
template <class T, bool GREATEST> struct TileCell<Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  typedef Rank<T, GREATEST> R;
  typedef PositionCell<T, GREATEST, int> Run;
  T best;
  typename R::Key key = R::lowest();
  bool spoiled = false;
  int64_t where = -1;
  GPR_DEVICE void keep(typename F::State *) {}
  template <class IndexOf> GPR_DEVICE void take(const Run &run, IndexOf index_of) {
    if (run.where >= 0) one(run.best(), index_of(run.where));
  }
  /* Without a branch: 192 µs of 98 MB of bfloat16 went into those on an H200. */
  GPR_DEVICE void one(T x, int64_t index) {
    const typename R::Key k = R::of(x);
    const bool spoils = R::poisoned(x), earlier = index < where;
    const bool beats = R::worse(key, k), ties = !beats & !R::worse(k, key);
    const bool among = spoils ? !spoiled | earlier : !spoiled & (beats | (ties & earlier));
    if ((where < 0) | among) best = x, key = k, spoiled = spoils, where = index;
  }
  GPR_DEVICE void done(typename F::State *s) {
    F::open(*s);
    if (where >= 0) F::add(*s, best, where);
  }
};
template <class T> struct TileCell<Positions<T>> {
  TileCell<Position<T, false>> low;
  TileCell<Position<T, true>> high;
  struct Run {
    PositionCell<T, false, int> low;
    PositionCell<T, true, int> high;
    GPR_DEVICE void add(T x, int r) {
      low.add(x, r);
      high.add(x, r);
    }
  };
  template <class IndexOf> GPR_DEVICE void take(const Run &run, IndexOf index_of) {
    low.take(run.low, index_of);
    high.take(run.high, index_of);
  }
  GPR_DEVICE void keep(typename Positions<T>::State *) {}
  GPR_DEVICE void one(T x, int64_t index) {
    low.one(x, index);
    high.one(x, index);
  }
  GPR_DEVICE void done(typename Positions<T>::State *s) {
    low.done(&s->low);
    high.done(&s->high);
  }
};

GPR_CLOSE
