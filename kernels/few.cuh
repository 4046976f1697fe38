/* A few elements of one output, folded and finished by one thread without a state in memory. */
#ifndef GPR_FEW_CUH
#define GPR_FEW_CUH

#include "outputs.cuh"

GPR_OPEN

enum { FEW_MOST = 64 }; /* elements */

/* finish() writes the result of n elements; false: they have to be folded again, by slow_few(). */
template <class F> struct Few {
  typedef typename F::Element T;
  typedef typename F::State State;
  Cells<F, 1> cells;
  __device__ __forceinline__ void add(T x, int64_t index) {
    const T only[1] = {x};
    cells.template add<1>(only, index, 0);
  }
  /* The state; false as finish(). */
  __device__ __forceinline__ bool done(State &s) {
    cells.done(0, s);
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

/* Into any state, with certainty. */
template <class F> struct SlowFew {
  static __device__ __forceinline__ void open(typename F::State &s) { F::open(s); }
  static __device__ __forceinline__ void add(typename F::State &s, typename F::Element x,
                                             int64_t index) {
    F::add(s, x, index);
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
};
template <class Stored> struct FewReals<double, Stored> {
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

template <class T> struct Few<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef typename RealOf<T>::type Stored;
  FewReals<typename F::Real, Stored> part[F::parts];
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
  /* All of the warp, or nobody. */
  __device__ __forceinline__ bool finish_team(const gpr_axes_args &a, int64_t o, int64_t n,
                                              int team, bool mine) const {
    bool lost = !fine() || a.has_initial || is_mean(a);
    T result;
#pragma unroll
    for (int p = 0; p < F::parts; p++) {
      Pair sum = part[p].pair();
#pragma unroll 1
      for (int mask = team / 2; mask; mask /= 2) sum = merged(sum, shuffle_xor(sum, mask), lost);
      round_pair(sum.hi, sum.lo, (Stored *)&result + p);
    }
    if (__any_sync(GPR_ALL, lost)) return false;
    if (mine) ((T *)a.out)[o] = result;
    return true;
  }
};

template <class T> struct SlowFew<PairSum<T>> {
  typedef PairSum<T> F;
  static __device__ __forceinline__ void open(typename F::State &s) { F::open(s); }
  static __device__ __noinline__ void add(typename F::State &s, T x, int64_t index) {
    F::add(s, x, index);
  }
};

/* Elements first, first + step, … below count, at from and stride bytes apart, once more. */
template <class F>
__device__ __noinline__ void slow_few(typename F::State &s, const char *from, int64_t stride,
                                      int64_t first, int64_t count, int64_t step) {
  SlowFew<F>::open(s);
#pragma unroll 1
  for (int64_t i = first; i < count; i += step)
    SlowFew<F>::add(s, *(const typename F::Element *)(from + i * stride), i);
}
template <class F>
__device__ __noinline__ void slow_output(const gpr_axes_args *a, int64_t o, const char *from,
                                         int64_t stride, int64_t count) {
  typename F::State s;
  slow_few<F>(s, from, stride, 0, count, 1);
  finish_output<F>(a, o, &s, count);
}

GPR_CLOSE
#endif
