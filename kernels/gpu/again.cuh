/* A few numbers once more, where plain additions or pairs could not tell their sum: by more terms,
 * in registers. */
#pragma once

#include "few_sums.cuh"
#include "missing.cuh"

GPR_OPEN

/* Elements of one output, and what says which of them count. */
struct FewElements {
  const char *data, *where; /* where: or NULL */
  int64_t stride, where_stride, count;
};

/* Whether it wrote the result. */
template <class F>
__device__ __noinline__ bool tell_again(const gpr_axes_args *a, int64_t o, const FewElements in) {
  typedef typename F::Element T;
  enum { LOADS = 4 }; /* that do not wait for each other */
  Again<F> few;
  int64_t n = 0;
  GPR_ROLLED(int64_t i = 0; i < in.count; i += LOADS) {
    T x[LOADS];
    GPR_EACH(u, LOADS) {
      bool counts = i + u < in.count && !(in.where && !in.where[(i + u) * in.where_stride]);
      x[u] = counts ? *(const T *)(in.data + (i + u) * in.stride) : minus_zero<T>();
      if (a->skip && is_nan_or_nat(x[u])) x[u] = minus_zero<T>(), counts = false;
      n += counts;
    }
    GPR_EACH(u, LOADS) few.add(x[u], 0);
  }
  if (!n) return false;
  tell_least(*a, n);
  return few.finish(*a, o, n);
}

GPR_CLOSE
