/* A few elements of one output, folded and finished by one thread without a state in memory. */
#ifndef GPR_FEW_CUH
#define GPR_FEW_CUH

#include "outputs.cuh"

GPR_OPEN

enum { FEW_MOST = 64, FEW_SHORT = 16 }; /* elements */

template <class F> struct FewCells {
  Cells<F, 1> cells;
  __device__ __forceinline__ void add(typename F::Element x, int64_t index) {
    const typename F::Element only[1] = {x};
    cells.template add<1>(only, index, 0);
  }
  __device__ __forceinline__ void result(typename F::State &s) { cells.done(0, s); }
};
/* Indices of few elements are small. */
template <class T, bool GREATEST> struct FewCells<Position<T, GREATEST>> {
  PositionCell<T, GREATEST, int> cell;
  __device__ __forceinline__ void add(T x, int64_t index) { cell.add(x, (int)index); }
  __device__ __forceinline__ void result(typename Position<T, GREATEST>::State &s) {
    s = cell.done();
  }
};

/* finish() writes the result of n elements; false: they have to be folded again, by SlowFew. */
template <class F> struct Few : FewCells<F> {
  typedef typename F::State State;
  /* The state; false as finish(). */
  __device__ __forceinline__ bool done(State &s) {
    this->result(s);
    return true;
  }
  __device__ __forceinline__ bool finish(const gpr_axes_args &a, int64_t o, int64_t n) {
    State s;
    done(s);
    Finish<F>::here(a, o, s, n);
    return true;
  }
  /* Neighbours' parts of one output, finished by the thread that says so. */
  __device__ __forceinline__ bool finish_team(const gpr_axes_args &a, int64_t o, int64_t n,
                                              int team, bool mine) {
    State s;
    done(s);
    Move<F>::merge_lanes(s, team);
    if (mine) Finish<F>::here(a, o, s, n);
    return true;
  }
};

/* The same for more than FEW_SHORT of them, where that makes a difference. */
template <class F> struct Tall : Few<F> {};
template <class F> struct IsTall { static constexpr bool value = false; };

/* Into any state, with certainty. */
template <class F> struct SlowFew {
  typedef typename F::Element T;
  typedef typename F::State State;
  static __device__ __forceinline__ void open(State &s) { F::open(s); }
  static __device__ __forceinline__ void add(State &s, T x, int64_t index) { F::add(s, x, index); }
  /* All of an output that lies in global memory. */
  static __device__ __forceinline__ void fold(State &s, const char *from, int64_t stride,
                                              int64_t count) {
    F::open(s);
#pragma unroll 1
    for (int64_t i = 0; i < count; i++) F::add(s, *(const T *)(from + i * stride), i);
  }
};

/* --- exact sums ---------------------------------------------------------------------------------
 */

/* A double that is exact, as the result of a sum of n elements or of their mean. */
template <class T> __device__ __forceinline__ void round_exact_double(double x, int64_t n, T *out) {
  if (n > 1) {
    const double quotient = x / (double)n, left = fma(-quotient, (double)n, x);
    uint64_t u = bits(quotient);
    if (left != 0) { /* to odd, so that the second rounding knows */
      if ((left > 0) != (quotient > 0)) u--;
      u |= 1;
    }
    x = from_bits(u);
  }
  narrow_once(x, out);
}
__device__ __forceinline__ bool is_mean(const gpr_axes_args &a) {
  return a.op == GPR_OP_MEAN || a.op == GPR_OP_NANMEAN;
}

/* Of floats plain additions in double, which are checked; of doubles pairs. */
template <class R, class Stored> struct FewReals {
  Batch<Format<Stored>::precision, FEW_MOST> batch;
  __device__ __forceinline__ void add(R x) { batch.add(x); }
  __device__ __forceinline__ bool fine() const { return batch.fine(); }
  __device__ __forceinline__ Pair pair() const { return {batch.sum, -0.0}; }
  __device__ __forceinline__ bool round(int64_t n, Stored *out) const {
    round_exact_double(batch.sum, n, out);
    return true;
  }
  /* A team's as one batch, if that is exact in all of the warp; all lanes have it. */
  __device__ __forceinline__ bool join(int team) {
    int doubled = 0;
#pragma unroll 1
    for (int mask = team / 2; mask; mask /= 2, doubled++) {
      batch.sum += shuffle_xor(batch.sum, mask);
      batch.most = larger(batch.most, shuffle_xor(batch.most, mask));
      batch.least = gpr::least(batch.least, shuffle_xor(batch.least, mask));
    }
    return __all_sync(GPR_ALL, batch.fine(doubled));
  }
};

/* The numbers that are far smaller than those before them have a sum of their own. Of 64 normal
 * numbers, one output in 10^5 would else be folded again, and its block then ends 20 us after the
 * others. */
template <class R, class Stored> struct FewApart {
  typedef Batch<Format<Stored>::precision, FEW_MOST> Sum;
  Sum great, small;
  __device__ __forceinline__ void add(R x) {
    const bool is_small = fabsf(x) < great.most * 0x1p-12f;
    small.add_below(is_small ? x : -0.0f);
    great.add(is_small ? -0.0f : x);
  }
  __device__ __forceinline__ bool fine() const {
    Sum below = small;
    below.most = great.most * 0x1p-12f;
    return great.fine() && below.fine();
  }
  __device__ __forceinline__ Pair pair() const {
    Pair sum = {great.sum, -0.0};
    bool lost = false; /* never: there are two numbers */
    gpr::add(sum, small.sum, lost);
    return sum;
  }
  __device__ __forceinline__ bool round(int64_t n, Stored *out) const {
    const Pair sum = pair();
    if (n > 1 && sum.lo != 0) return false;
    if (n > 1)
      round_exact_double(sum.hi, n, out);
    else
      round_pair(sum.hi, sum.lo, out);
    return true;
  }
};
template <class Stored> struct FewReals<double, Stored> {
  __device__ __forceinline__ bool join(int) { return false; }
  Pair sum = {-0.0, -0.0};
  bool lost = false;
  __device__ __forceinline__ void add(double x) { gpr::add(sum, x, lost); }
  __device__ __forceinline__ bool fine() const { return !lost; }
  __device__ __forceinline__ Pair pair() const { return sum; }
  __device__ __forceinline__ bool round(int64_t n, double *out) const {
    if (n > 1) return false;
    round_pair(sum.hi, sum.lo, out);
    return true;
  }
};
template <class Stored> struct FewApart<double, Stored> : FewReals<double, Stored> {};

template <class T, template <class, class> class Reals> struct FewSums {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef typename RealOf<T>::type Stored;
  Reals<typename F::Real, Stored> part[F::parts];
  __device__ __forceinline__ void add(T x, int64_t) {
#pragma unroll
    for (int p = 0; p < F::parts; p++) part[p].add(Cells<F, 1>::real(x, p));
  }
  __device__ __forceinline__ bool fine() const {
    bool all = true;
#pragma unroll
    for (int p = 0; p < F::parts; p++) all &= part[p].fine();
    return all;
  }
  __device__ __forceinline__ bool done(State &s) const {
#pragma unroll
    for (int p = 0; p < F::parts; p++) {
      open(s.part[p]);
      s.part[p].pair = part[p].pair();
    }
    return fine();
  }
  __device__ __forceinline__ bool value(const gpr_axes_args &a, int64_t n, T *out) const {
    bool all = fine() && !a.has_initial;
    const int64_t over = is_mean(a) ? n : 1;
#pragma unroll
    for (int p = 0; p < F::parts; p++) all = all && part[p].round(over, (Stored *)out + p);
    return all;
  }
  __device__ __forceinline__ bool finish(const gpr_axes_args &a, int64_t o, int64_t n) const {
    T result;
    if (!value(a, n, &result)) return false;
    ((T *)a.out)[o] = result;
    return true;
  }
  /* Plain sums: all of the warp, or nobody. */
  __device__ __forceinline__ bool finish_plainly(const gpr_axes_args &a, int64_t o, int64_t n,
                                                 int team, bool mine) const {
    T result;
    bool all = !a.has_initial && (!is_mean(a) || __all_sync(GPR_ALL, n > 0 || !mine));
#pragma unroll
    for (int p = 0; p < F::parts; p++) {
      auto sum = part[p];
      all = all && sum.join(team);
      all = all && sum.round(is_mean(a) ? n : 1, (Stored *)&result + p);
    }
    if (all && mine) ((T *)a.out)[o] = n ? result : T{};
    return all;
  }
  /* All of the warp, or nobody. */
  __device__ __forceinline__ bool finish_team(const gpr_axes_args &a, int64_t o, int64_t n,
                                              int team, bool mine) const {
    if (finish_plainly(a, o, n, team, mine)) return true;
    bool lost = !fine() || a.has_initial || is_mean(a);
    T result;
#pragma unroll
    for (int p = 0; p < F::parts; p++) {
      Pair sum = part[p].pair();
      if (n == 0) sum.hi = 0; /* a sum of nothing is +0.0 */
#pragma unroll 1
      for (int mask = team / 2; mask; mask /= 2) sum = merged(sum, shuffle_xor(sum, mask), lost);
      round_pair(sum.hi, sum.lo, (Stored *)&result + p);
    }
    if (__any_sync(GPR_ALL, lost)) return false;
    if (mine) ((T *)a.out)[o] = result;
    return true;
  }
};
template <class T> struct Few<PairSum<T>> : FewSums<T, FewReals> {};
template <class T> struct Tall<PairSum<T>> : FewSums<T, FewApart> {};
template <class T> struct IsTall<PairSum<T>> {
  static constexpr bool value = sizeof(typename PairSum<T>::Real) == 4;
};

template <class T> struct SlowFew<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  static __device__ __forceinline__ void open(State &s) { F::open(s); }
  static __device__ __noinline__ void add(State &s, T x, int64_t index) { F::add(s, x, index); }
  static __device__ __forceinline__ void fold(State &s, const char *from, int64_t stride,
                                              int64_t count) {
    Cells<F, 1> cells;
    cells.keep(&s);
    cells.template rest<1>(1, from, stride, (int)count);
    cells.done(0, s);
  }
};

template <class F>
__device__ __noinline__ void slow_output(const gpr_axes_args *a, int64_t o, const char *from,
                                         int64_t stride, int64_t count) {
  typename F::State s;
  SlowFew<F>::fold(s, from, stride, count);
  finish_output<F>(a, o, &s, count);
}

GPR_CLOSE
#endif
