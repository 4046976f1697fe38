/* What one thread keeps for COLUMNS outputs at a time while it folds elements of each. */
#pragma once

#include "lanes_of_positions.cuh"
#include "pair_sum.cuh"

GPR_OPEN

/* --- one output ------------------------------------------------------------------------------- */

template <class F> struct Cell {
  typedef typename F::Element T;
  typename F::State state;
  GPR_DEVICE Cell() { F::open(state); }
  GPR_DEVICE void add(T x, int64_t index) { F::add(state, x, index); }
  GPR_DEVICE typename F::State done() { return state; }
};

/* Elements come in the order of their index: what does not beat the champion does not precede it.
 * Of halves by keys, of which a NaN's is the greatest: to compare numbers takes twice as long. */
template <class T, bool GREATEST, class Index = int64_t> struct PositionCell {
  typedef Position<T, GREATEST> F;
  typedef typename F::R R;
  static constexpr bool is_float = Traits<T>::kind == KIND_FLOAT,
                        by_keys = is_float && sizeof(T) < 4;
  static constexpr int nan = 0x7fff;
  typename Either<by_keys, int, T>::type champion;
  Index where = -1;
  GPR_DEVICE PositionCell() {
    if constexpr (by_keys)
      champion = -0x8000;
    else
      champion = R::value(R::lowest());
  }
  GPR_DEVICE void add(T x, Index index) {
    if constexpr (by_keys) {
      const int key = R::poisoned(x) ? nan : R::of(x);
      if ((where < 0) | (key > champion)) champion = key, where = index;
    } else {
      if ((where < 0) | (R::beats(x, champion) & !settled())) champion = x, where = index;
    }
  }
  GPR_DEVICE bool settled() const { /* by one comparison, not by keys */
    if constexpr (sizeof(T) >= 4 && is_float) return champion != champion;
    return R::poisoned(champion);
  }
  GPR_DEVICE T best() const {
    if constexpr (by_keys)
      return R::value((typename R::Key)champion);
    else
      return champion;
  }
  GPR_DEVICE typename F::State done() {
    typename F::State s;
    F::open(s);
    if (where >= 0) F::add(s, best(), where);
    return s;
  }
};
template <class T, bool GREATEST> struct Cell<Position<T, GREATEST>> : PositionCell<T, GREATEST> {};

/* --- several ---------------------------------------------------------------------------------- */

/* add() takes U elements of each output, of which u has this index + u·step; some() only those that
 * `valid` says, by bit u·COLUMNS + c. keep(), which comes first, says where states in memory may
 * lie: done() leaves them there. They are not in here: what is indexed at run time would take all
 * that lies in one variable with it out of the registers. */
template <class F, int COLUMNS> struct Cells {
  typedef typename F::Element T;
  typedef typename F::State State;
  static constexpr bool is_plain = true; /* needs no state in memory beside it */
  Cell<F> cell[COLUMNS];
  GPR_DEVICE void keep(State *) {}
  template <int U> GPR_DEVICE void add(const T (&x)[U * COLUMNS], int64_t index, int64_t step) {
    GPR_EACH(i, U * COLUMNS) cell[i % COLUMNS].add(x[i], index + i / COLUMNS * step);
  }
  template <int U>
  GPR_DEVICE void some(T (&x)[U * COLUMNS], uint64_t valid, int64_t index, int64_t step) {
    GPR_EACH(i, U * COLUMNS)
      if (valid >> i & 1) cell[i % COLUMNS].add(x[i], index + i / COLUMNS * step);
  }
  /* All of them, to where keep() was told. */
  GPR_DEVICE void done(State *states) {
    GPR_EACH(c, COLUMNS) states[c] = cell[c].done();
  }
};

/* --- exact sums ------------------------------------------------------------------------------- */

template <class T, int COLUMNS> struct Cells<PairSum<T>, COLUMNS> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef typename F::Real R;
  typedef typename RealOf<T>::type Stored;
  static constexpr bool is_plain = false;
  static constexpr int parts = F::parts, reals = COLUMNS * parts;
  typename RealSum<R>::Sum sum[reals];
  State *over;
  GPR_DEVICE Cells() {
    GPR_EACH(i, reals) clear(sum[i]);
  }
  GPR_DEVICE void keep(State *states) {
    over = states;
    GPR_EACH(c, COLUMNS) F::open(over[c]);
  }
  GPR_DEVICE RealSum<R> *rest(int i) { return &over[i / parts].part[i % parts]; }

  template <int U> GPR_DEVICE void add(const T (&x)[U * COLUMNS], int64_t, int64_t) {
    constexpr bool near = COLUMNS > 1;
    if constexpr (Same<T, bfloat16>::value && COLUMNS == 1 && U % 2 == 0) {
      take_pairs<U, near>(sum[0], x, rest(0));
    } else {
      R v[U * reals];
      GPR_EACH(i, U * reals) v[i] = F::real(x[i / parts], i % parts);
      GPR_EACH(i, reals) take<Stored, U * reals, reals, near>(sum[i], v, i, rest(i));
    }
  }
  template <int U>
  GPR_DEVICE void some(T (&x)[U * COLUMNS], uint64_t valid, int64_t index, int64_t step) {
    neutralise(x, valid);
    add<U>(x, index, step);
  }

  GPR_DEVICE void done(State *) {
    GPR_EACH(i, reals) rest(i)->sum = sum[i];
  }
};

/* All that float16 has are multiples of 2^-24 below 2^16: sums in double of 2^13 are exact. */
template <int COLUMNS> struct Cells<PairSum<float16>, COLUMNS> {
  typedef PairSum<float16> F;
  typedef typename F::State State;
  enum { TOGETHER = 1 << 13 };
  static constexpr bool is_plain = false;
  static constexpr int sums = COLUMNS > 1 ? COLUMNS : 2; /* of one output two: half the latency */
  double sum[sums];
  int count;
  State *over;
  GPR_DEVICE void open() {
    count = 0;
    GPR_EACH(i, sums) sum[i] = -0.0;
  }
  static __device__ __noinline__ void give(State *s, double x) { add_one(s->part[0], x); }
  GPR_DEVICE void keep(State *states) {
    over = states;
    open();
    GPR_EACH(c, COLUMNS) F::open(over[c]);
  }
  template <int U> GPR_DEVICE void add(const float16 (&x)[U * COLUMNS], int64_t, int64_t) {
    GPR_EACH(i, U * COLUMNS) sum[i % sums] += (double)wide(x[i]);
    count += U;
    if (count <= TOGETHER - U) return;
    done(over);
    open();
  }
  template <int U>
  GPR_DEVICE void some(float16 (&x)[U * COLUMNS], uint64_t valid, int64_t index, int64_t step) {
    neutralise(x, valid);
    add<U>(x, index, step);
  }
  GPR_DEVICE void done(State *) {
    GPR_EACH(c, COLUMNS) give(over + c, COLUMNS > 1 ? sum[c] : sum[0] + sum[1]);
  }
};

/* --- lanes that fold packets of one output ---------------------------------------------------- */

/* By CELLS, of so many elements of T at a time: -0.0 changes nothing. */
template <class CELLS, class T, int MOST> struct CellsLane {
  static constexpr bool neutral = true;
  static constexpr int V = Packet<T>::count;
  CELLS cells;
  template <class State> GPR_DEVICE void keep(State *s) { cells.keep(s); }
  template <int U> GPR_DEVICE void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    constexpr int batches = U * V > MOST ? U * V / MOST : 1, n = U * V / batches;
    GPR_EACH(b, batches) {
      T x[n];
      GPR_EACH(i, n) x[i] = v[(b * n + i) / V].element[(b * n + i) % V];
      cells.template add<n>(x, 0, 0);
    }
  }
  template <class State> GPR_DEVICE void result(State &s) { cells.done(&s); }
};
/* Of halves, 32 elements at a time are a batch. */
template <class T>
struct Lane<PairSum<T>> : CellsLane<Cells<PairSum<T>, 1>, T, sizeof(T) == 2 ? 32 : 1024> {
  GPR_DEVICE void one(T x, int64_t) {
    const T only[1] = {x};
    this->cells.template add<1>(only, 0, 0);
  }
};

GPR_CLOSE
