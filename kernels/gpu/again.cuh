/* A few numbers once more, where plain additions could not tell their sum: by pairs in registers.
 */
#ifndef GPR_AGAIN_CUH
#define GPR_AGAIN_CUH

#include "few_sums.cuh"
#include "missing.cuh"

GPR_OPEN

template <class R, class Stored> struct PairReals {
  Pair sum;
  bool lost = false, nan = false;
  __device__ __forceinline__ PairReals() { clear(sum); }
  __device__ __forceinline__ void add(R x) {
    nan |= x != x;
    gpr::add(sum, (double)x, lost);
  }
  __device__ __forceinline__ bool fine(int = 0) const { return !lost | nan; }
  __device__ __forceinline__ Pair terms() const { return sum; }
};
/* In place of a Few, of folds that have a Wide one. */
template <class F> struct Paired : FewSums<typename F::Element, PairReals> {};

/* Elements of one output, and what says which of them count. */
struct FewElements {
  const char *data, *where; /* where: or NULL */
  int64_t stride, where_stride, count;
};

/* Whether it wrote the result. */
template <class F>
__device__ __noinline__ bool tell_by_pairs(const gpr_axes_args *a, int64_t o,
                                           const FewElements in) {
  typedef typename F::Element T;
  enum { LOADS = 4 }; /* that do not wait for each other */
  Pair sum[F::parts];
  bool lost = false;
  int64_t n = 0;
#pragma unroll
  for (int p = 0; p < F::parts; p++) clear(sum[p]);
#pragma unroll 1
  for (int64_t i = 0; i < in.count; i += LOADS) {
    T x[LOADS];
#pragma unroll
    for (int u = 0; u < LOADS; u++) {
      bool counts = i + u < in.count && !(in.where && !in.where[(i + u) * in.where_stride]);
      x[u] = counts ? *(const T *)(in.data + (i + u) * in.stride) : minus_zero<T>();
      if (a->skip && is_nan_or_nat(x[u])) x[u] = minus_zero<T>(), counts = false;
      n += counts;
    }
#pragma unroll
    for (int i = 0; i < LOADS * F::parts; i++)
      add_to_all(sum[i % F::parts], F::real(x[i / F::parts], i % F::parts), lost);
  }
  if (lost || !n) return false;
  RoundedSum<T> value[1] = {FewSums<T, FewReals>::rounded(*a, n, sum, true)};
  finish_values<F>(*a, o, value, n, 1);
  tell_least(*a, n);
  return value[0].certified;
}
template <class F>
__device__ __forceinline__ bool told_by_pairs(const gpr_axes_args &a, int64_t o,
                                              const FewElements &in) {
  if constexpr (HasWide<F>::value) return tell_by_pairs<F>(&a, o, in);
  return false;
}

GPR_CLOSE
#endif
