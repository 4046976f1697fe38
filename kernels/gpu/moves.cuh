/* States that are copied and merged: by lanes of a warp, and from memory. */
#pragma once

#include "axes_results.cuh"
#include "pair_sum.cuh"
#include "warp_sums.cuh"

GPR_OPEN

/* Of a state, what moves as a rule. */
template <class F> struct MovedBytes { static constexpr size_t value = sizeof(typename F::State); };
template <class T> struct MovedBytes<PairSum<T>> {
  typedef RealSum<typename PairSum<T>::Real> Real;
  static constexpr size_t value = PairSum<T>::parts * (sizeof(typename Real::Sum) + 8);
};

template <class S> GPR_DEVICE const S *after(const S *from, int64_t bytes) {
  return (const S *)((const char *)from + bytes);
}

/* States that are on their way from memory together; whether fewer are too. */
template <class F> struct MergedAtOnce {
  static constexpr int value = sizeof(typename F::State) <= 32 ? 8 : 1;
  static constexpr bool fewer = false;
};
template <class F> struct Move {
  typedef typename F::State State;
  static GPR_DEVICE void assign(State &to, const State &from) { to = from; }
  /* Every `step`-th of each `lanes` neighbours of a warp, powers of two; all have the result. */
  static GPR_DEVICE void merge_lanes(State &s, int lanes, int step = 1) {
    GPR_ROLLED(int mask = lanes / 2; mask >= step; mask /= 2) {
      const State other = shuffle_xor(s, mask);
      F::merge(s, other);
    }
  }
  /* `count` states, so many bytes apart: several are on their way at a time, where they fit. */
  static GPR_DEVICE void merge_all(State &s, const State *from, int64_t count, int64_t bytes) {
    constexpr int N = MergedAtOnce<F>::value;
    constexpr bool fewer = MergedAtOnce<F>::fewer;
    State part[N];
    int64_t i = 0;
    GPR_ROLLED(; i + (fewer ? 1 : N) <= count; i += N) {
      GPR_EACH(u, N)
        if (!fewer || i + u < count) part[u] = *after(from, (i + u) * bytes);
      GPR_EACH(u, N)
        if (!fewer || i + u < count) F::merge(s, part[u]);
    }
    GPR_ROLLED(; i < count; i++) F::merge(s, *after(from, i * bytes));
  }
};

/* Only what a thread could not hold makes a state a used one, and zeros keep their signs. */
template <class S> __device__ __noinline__ void merge_slowly(S *s, int lanes, int step) {
  GPR_ROLLED(int mask = lanes / 2; mask >= step; mask /= 2) {
    S other;
    const bool rests = __any_sync(GPR_ALL, s->used);
    if (rests && !s->used) clear_rest(*s);
    const int bytes = rests ? sizeof other : offsetof(S, rest);
    uint32_t *to = (uint32_t *)&other, *from = (uint32_t *)s;
#pragma unroll 4
    for (int i = 0; i < bytes / 4; i++) to[i] = __shfl_xor_sync(GPR_ALL, from[i], mask);
    merge(*s, other);
  }
}

/* Three levels as terms; whether they hold all. */
template <int N> GPR_DEVICE bool take_levels(Pair &sum, const double (&x)[N]) {
  bool lost = false;
  sum.hi = x[0] + x[1];
  sum.lo = add_checked(rounding_error(x[0], x[1], sum.hi), x[2], lost);
  return !lost;
}
template <int N> GPR_DEVICE bool take_levels(Triple &sum, const double (&x)[N]) {
  sum.hi = x[0] + x[1];
  const double low = rounding_error(x[0], x[1], sum.hi);
  sum.lo = low + x[2];
  sum.tail = rounding_error(low, x[2], sum.lo);
  return true;
}
template <class T> struct StateTerms<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename RealSum<typename F::Real>::Sum Sum;
  typedef typename F::State State;
  static constexpr int sums = F::parts, terms = sizeof(Sum) / sizeof(double), levels = 3;
  static constexpr bool signs = true, counts = false, few = sizeof(Sum) == sizeof(Pair);
  static __device__ constexpr int terms_of(int) { return terms; }
  static __device__ constexpr int levels_of(int) { return levels; }
  struct Some {
    Sum sum[sums];
  };
  static GPR_DEVICE void get(const Pair &sum, double (&x)[2]) { x[0] = sum.hi, x[1] = sum.lo; }
  static GPR_DEVICE void get(const Triple &sum, double (&x)[3]) {
    x[0] = sum.hi, x[1] = sum.lo, x[2] = sum.tail;
  }
  static GPR_DEVICE bool get(const State &s, double (&x)[sums][terms]) {
    bool used = false;
    GPR_EACH(q, sums) {
      get(s.part[q].sum, x[q]);
      used |= s.part[q].used != 0;
    }
    return !used;
  }
  template <int Q> static GPR_DEVICE double &first(Some &some) { return some.sum[Q].hi; }
  template <int Q> static GPR_DEVICE bool take(Some &some, const double (&level)[levels]) {
    return take_levels(some.sum[Q], level);
  }
  static GPR_DEVICE void put(State &s, const Some &some) {
    GPR_EACH(q, sums) s.part[q].sum = some.sum[q];
  }
};

template <class T> struct Move<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef RealSum<typename F::Real> Real;
  static GPR_DEVICE void assign(State &to, const State &from) { F::assign(to, from); }
  /* The pairs of one part of N states, or of `count`: false if they do not fit. */
  enum { N = 8 };
  static GPR_DEVICE bool merge_pairs(State &s, const State *from, int64_t count, int64_t bytes,
                                     int p) {
    typename Real::Sum next[N], sum = s.part[p].sum;
    bool lost = s.part[p].used;
    GPR_EACH(u, N) {
      clear(next[u]);
      if (u >= count) continue;
      const Real &real = after(from, u * bytes)->part[p];
      next[u] = real.sum;
      lost |= real.used;
    }
    GPR_EACH(u, N)
      if (u < count) sum = merged(sum, next[u], lost);
    if (!lost) s.part[p].sum = sum;
    return !lost;
  }
  static GPR_DEVICE void merge_all(State &s, const State *from, int64_t count, int64_t bytes) {
    GPR_ROLLED(int p = 0; p < F::parts; p++) {
      int64_t i = 0;
#pragma unroll 1
      while (i < count && merge_pairs(s, after(from, i * bytes), count - i, bytes, p)) i += N;
      GPR_ROLLED(; i < count; i++) merge(s.part[p], after(from, i * bytes)->part[p]);
    }
  }
  static GPR_DEVICE void merge_lanes(State &s, int lanes, int step = 1) {
    if (lanes == GPR_WARP && step == 1 && merged_by_warp<F>(s)) return;
    typename Real::Sum sum[F::parts], other[F::parts];
    bool lost[F::parts];
    GPR_EACH(p, F::parts) {
      sum[p] = s.part[p].sum, lost[p] = s.part[p].used;
      other[p] = shuffle_xor(sum[p], lanes / 2);
    }
    GPR_ROLLED(int mask = lanes / 2; mask >= step; mask /= 2)
      GPR_EACH(p, F::parts) {
        sum[p] = merged(sum[p], other[p], lost[p]);
        other[p] = shuffle_xor(sum[p], mask / 2); /* the next one's, while this one is checked */
      }
    GPR_EACH(p, F::parts)
      if (__any_sync(GPR_ALL, lost[p]))
        merge_slowly(&s.part[p], lanes, step);
      else
        s.part[p].sum = sum[p];
  }
};

GPR_CLOSE
