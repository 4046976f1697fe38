/* What one thread keeps for COLUMNS outputs at a time while it folds elements of each. */
#ifndef GPR_CELLS_CUH
#define GPR_CELLS_CUH

#include "lanes.cuh"
#include "pair.cuh"

GPR_OPEN

/* --- one output ----------------------------------------------------------------------------------
 */

template <class F> struct Cell {
  typedef typename F::Element T;
  typename F::State state;
  __device__ __forceinline__ Cell() { F::open(state); }
  __device__ __forceinline__ void add(T x, int64_t index) { F::add(state, x, index); }
  __device__ __forceinline__ typename F::State done() { return state; }
};

/* Elements come in the order of their index: what does not beat the champion does not precede it.
 */
template <class T, bool GREATEST, class Index = int64_t> struct PositionCell {
  typedef Position<T, GREATEST> F;
  typedef typename F::R R;
  T champion;
  Index where;
  __device__ __forceinline__ PositionCell() : champion(R::value(R::lowest())), where(-1) {}
  __device__ __forceinline__ void add(T x, Index index) {
    if ((where < 0) | (R::beats(x, champion) & !settled())) champion = x, where = index;
  }
  __device__ __forceinline__ bool settled() const { /* by one comparison, not by keys */
    if constexpr (sizeof(T) >= 4 && Traits<T>::kind == KIND_FLOAT) return champion != champion;
    return R::poisoned(champion);
  }
  __device__ __forceinline__ T best() const { return champion; }
  __device__ __forceinline__ typename F::State done() {
    typename F::State s;
    F::open(s);
    if (where >= 0) F::add(s, champion, where);
    return s;
  }
};
/* Of halves by keys, of which a NaN's is the greatest: to compare the numbers takes twice as long.
 */
template <class T, bool GREATEST, class Index> struct HalfPositionCell {
  typedef Position<T, GREATEST> F;
  typedef typename F::R R;
  static constexpr int nan = 0x7fff;
  int key = -0x8000;
  Index where = -1;
  __device__ __forceinline__ void add(T x, Index index) {
    const int k = R::poisoned(x) ? nan : R::of(x);
    if ((where < 0) | (k > key)) key = k, where = index;
  }
  __device__ __forceinline__ T best() const { return R::value((typename R::Key)key); }
  __device__ __forceinline__ typename F::State done() {
    typename F::State s;
    F::open(s);
    if (where >= 0) F::add(s, best(), where);
    return s;
  }
};
template <bool GREATEST, class Index>
struct PositionCell<float16, GREATEST, Index> : HalfPositionCell<float16, GREATEST, Index> {};
template <bool GREATEST, class Index>
struct PositionCell<bfloat16, GREATEST, Index> : HalfPositionCell<bfloat16, GREATEST, Index> {};
template <class T, bool GREATEST> struct Cell<Position<T, GREATEST>> : PositionCell<T, GREATEST> {};
template <class T> struct Cell<Positions<T>> {
  typedef Positions<T> F;
  Cell<Position<T, false>> low;
  Cell<Position<T, true>> high;
  __device__ __forceinline__ void add(T x, int64_t index) {
    low.add(x, index);
    high.add(x, index);
  }
  __device__ __forceinline__ typename F::State done() { return {low.done(), high.done()}; }
};

/* --- several -------------------------------------------------------------------------------------
 */

enum { REST_BYTES = 128 };

/* An element, or a packet. */
template <int N, class T> __device__ __forceinline__ void load_piece(T *x, const T *from) {
  static_assert(N == 1 || N == Packet<T>::count, "");
  Packet<T> v;
  if constexpr (N == 1)
    v.element[0] = *from;
  else
    v.words = *(const uint4 *)from;
#pragma unroll
  for (int j = 0; j < N; j++) x[j] = v.element[j];
}
/* Calls each(x, n) for n elements at a time of those that rest() takes. Their loads do not wait for
 * each other: where the memory is busy, one takes a microsecond and more. */
template <int N, class T, class Each>
__device__ __forceinline__ void each_rest(const T *from, int64_t step, int pieces, Each each) {
  constexpr int fit = REST_BYTES / (N * (int)sizeof(T)), most = fit < 32 ? fit : 32;
#pragma unroll 1
  for (int first = 0; first < pieces; first += most) {
    T x[most * N];
    const int here = pieces - first < most ? pieces - first : most;
#pragma unroll
    for (int u = 0; u < most; u++)
      if (u < here) load_piece<N>(x + u * N, (const T *)((const char *)from + (first + u) * step));
    each(x, here * N);
  }
}

/* add() takes U elements of each output, of which u has this index + u·step; some() only those that
 * `valid` says, by bit u·COLUMNS + c. Both return which outputs' elements were not taken after all
 * and must go to rest(), which reads them again: `pieces` for each output, of N neighbours each and
 * step bytes apart; those of output c begin c elements behind `from`. It is seldom called, but a
 * block waits for each call: of 2^26 normal floats a dozen batches are missed. keep(), which comes
 * first, says where states in memory may lie: done() leaves them there. They are not in here:
 * what is indexed at run time would take all that lies in one variable with it out of the
 * registers. */
template <class F, int COLUMNS> struct Cells {
  typedef typename F::Element T;
  typedef typename F::State State;
  static constexpr bool certain = true; /* never misses */
  Cell<F> cell[COLUMNS];
  __device__ __forceinline__ void keep(State *) {}
  template <int U>
  __device__ __forceinline__ uint32_t add(const T (&x)[U * COLUMNS], int64_t index, int64_t step) {
#pragma unroll
    for (int i = 0; i < U * COLUMNS; i++) cell[i % COLUMNS].add(x[i], index + i / COLUMNS * step);
    return 0;
  }
  template <int U>
  __device__ __forceinline__ uint32_t some(T (&x)[U * COLUMNS], uint64_t valid, int64_t index,
                                           int64_t step) {
#pragma unroll
    for (int i = 0; i < U * COLUMNS; i++)
      if (valid >> i & 1) cell[i % COLUMNS].add(x[i], index + i / COLUMNS * step);
    return 0;
  }
  template <int N> __device__ __forceinline__ void rest(uint32_t, const void *, int64_t, int) {}
  __device__ __forceinline__ void done(int c, State &s) { s = cell[c].done(); }
  /* All of them, to where keep() was told. */
  __device__ __forceinline__ void done(State *states) {
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) states[c] = cell[c].done();
  }
};

/* --- exact sums ----------------------------------------------------------------------------------
 */

/* One batch of one part of the elements: into the pair, if nothing is lost. */
template <class T, int N, int EVERY, class R>
__device__ __forceinline__ bool take(Pair &pair, const R (&x)[N], int first) {
  Pair p = pair;
  bool lost = false;
  if constexpr (sizeof(R) == 4) {
    Batch<Format<T>::precision, N / EVERY> batch;
#pragma unroll
    for (int i = 0; i < N; i += EVERY) batch.add(x[first + i]);
    lost = !batch.fine();
    add(p, batch.sum, lost);
  } else {
#pragma unroll
    for (int i = 0; i < N; i += EVERY) add(p, x[first + i], lost);
  }
  if (!lost) pair = p;
  return !lost || pair.hi != pair.hi;
}

template <class T, int COLUMNS> struct Cells<PairSum<T>, COLUMNS> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef typename F::Real R;
  typedef typename RealOf<T>::type Stored;
  static constexpr bool certain = false;
  static constexpr int parts = F::parts, reals = COLUMNS * parts;
  Pair pair[reals];
  State *over;
  __device__ __forceinline__ Cells() {
#pragma unroll
    for (int i = 0; i < reals; i++) pair[i].hi = pair[i].lo = -0.0;
  }
  __device__ __forceinline__ void keep(State *states) {
    over = states;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) F::open(over[c]);
  }
  template <int N>
  __device__ __forceinline__ void rest(uint32_t missed, const void *from, int64_t step,
                                       int pieces) {
    Pair now[reals];
#pragma unroll
    for (int i = 0; i < reals; i++) now[i] = pair[i];
    add_rests<N>(over, now, missed, (const T *)from, step, pieces);
#pragma unroll
    for (int i = 0; i < reals; i++) pair[i] = now[i];
  }
  template <int N>
  static __device__ __noinline__ void add_rests(State *s, Pair *now, uint32_t missed, const T *from,
                                                int64_t step, int pieces) {
    for (; missed; missed &= missed - 1) {
      const int c = __ffs(missed) - 1;
      each_rest<N>(from + c, step, pieces, [&](const T *x, int n) {
#pragma unroll
        for (int p = 0; p < parts; p++)
          now[c * parts + p] = added(s[c], now[c * parts + p], x, n, p);
      });
    }
  }
  /* Fewer at a time are likelier to fit. */
  static __device__ __forceinline__ Pair added(State &s, Pair sum, const T *x, int n, int p) {
    constexpr int few = 4;
#pragma unroll 1
    for (int first = 0; first < n; first += few) {
      R v[few];
#pragma unroll
      for (int i = 0; i < few; i++) v[i] = first + i < n ? real(x[first + i], p) : (R)-0.0;
      if (take<Stored, few, 1>(sum, v, 0)) continue;
#pragma unroll 1
      for (int i = first; i < n && i < first + few; i++) {
        const R one[1] = {real(x[i], p)};
        if (take<Stored, 1, 1>(sum, one, 0)) continue;
        if (one[0] != one[0]) {
          sum.hi = one[0];
          return sum;
        }
        add_rest(&s.part[p], (double)one[0]);
      }
    }
    return sum;
  }
  static __device__ __forceinline__ R real(complex<R> x, int part) { return part ? x.im : x.re; }
  template <class Q> static __device__ __forceinline__ R real(Q x, int) { return wide(x); }

  template <int U>
  __device__ __forceinline__ uint32_t add(const T (&x)[U * COLUMNS], int64_t, int64_t) {
    R v[U * reals];
#pragma unroll
    for (int i = 0; i < U * reals; i++) v[i] = real(x[i / parts], i % parts);
    uint32_t missed = 0;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      bool fine = true;
      Pair before[parts];
#pragma unroll
      for (int p = 0; p < parts; p++) {
        before[p] = pair[c * parts + p];
        fine &= take<Stored, U * reals, reals>(pair[c * parts + p], v, c * parts + p);
      }
      if (parts > 1 && !fine) { /* all parts or none */
#pragma unroll
        for (int p = 0; p < parts; p++) pair[c * parts + p] = before[p];
      }
      missed |= fine ? 0u : 1u << c;
    }
    return missed;
  }
  template <int U>
  __device__ __forceinline__ uint32_t some(T (&x)[U * COLUMNS], uint64_t valid, int64_t index,
                                           int64_t step) {
#pragma unroll
    for (int i = 0; i < U * COLUMNS; i++)
      if (!(valid >> i & 1)) x[i] = minus_zero<T>();
    return add<U>(x, index, step);
  }

  /* c must be known to the compiler; the state is where keep() said. */
  __device__ __forceinline__ void done(int c, State &) {
#pragma unroll
    for (int p = 0; p < parts; p++) over[c].part[p].pair = pair[c * parts + p];
  }
  __device__ __forceinline__ void done(State *) {
#pragma unroll
    for (int i = 0; i < reals; i++) over[i / parts].part[i % parts].pair = pair[i];
  }
};

/* --- lanes that fold packets of one output -------------------------------------------------------
 */

template <class F> struct RowLane : Lane<F> {
  typedef typename F::Element T;
  static constexpr bool certain = true, neutral = false;
  __device__ __forceinline__ void keep(typename F::State *) {}
  template <int U>
  __device__ __forceinline__ bool take(const Packet<T> (&v)[U], int64_t index, int64_t step) {
    this->add(v, index, step);
    return true;
  }
  __device__ __forceinline__ void one(T x, int64_t index) { F::add(this->state, x, index); }
  template <int U> __device__ __forceinline__ void rest(const void *, int64_t) {}
  __device__ __forceinline__ void result(typename F::State &s) { s = this->done(); }
};
template <class T> struct RowLane<PairSum<T>> {
  typedef PairSum<T> F;
  static constexpr bool certain = false, neutral = true; /* -0.0 changes nothing */
  static constexpr int V = Packet<T>::count;
  Cells<F, 1> cells;
  __device__ __forceinline__ void keep(typename F::State *s) { cells.keep(s); }
  template <int U> __device__ __forceinline__ bool take(const Packet<T> (&v)[U], int64_t, int64_t) {
    /* Of halves, 32 elements at a time are a batch. */
    constexpr int most = sizeof(T) == 2 ? 32 : U * V, batches = U * V / most > 0 ? U * V / most : 1,
                  n = U * V / batches;
    Pair before[F::parts];
    bool fine = true;
#pragma unroll
    for (int p = 0; p < F::parts; p++) before[p] = cells.pair[p];
#pragma unroll
    for (int b = 0; b < batches; b++) {
      T x[n];
#pragma unroll
      for (int i = 0; i < n; i++) x[i] = v[(b * n + i) / V].element[(b * n + i) % V];
      fine &= !cells.template add<n>(x, 0, 0);
    }
    if (batches > 1 && !fine) {
#pragma unroll
      for (int p = 0; p < F::parts; p++) cells.pair[p] = before[p];
    }
    return fine;
  }
  __device__ __forceinline__ void one(T x, int64_t) {
    T only[1] = {x};
    if (cells.template add<1>(only, 0, 0)) {
      const T again = x;
      cells.template rest<1>(1, &again, 0, 1);
    }
  }
  /* U packets, step bytes apart. */
  template <int U> __device__ __forceinline__ void rest(const void *from, int64_t step) {
    cells.template rest<V>(1, from, step, U);
  }
  __device__ __forceinline__ void result(typename F::State &s) { cells.done(0, s); }
};

GPR_CLOSE
#endif
