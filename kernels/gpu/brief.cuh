/* Short outputs of any layout, a thread each. */
#ifndef GPR_TILE_BRIEF_CUH
#define GPR_TILE_BRIEF_CUH

#include "tile_run.cuh"

GPR_OPEN

/* The first U elements of an output so short that a thread folds and finishes it without a state
 * in memory: those of the next output are under way meanwhile. */
template <class F, class RUN, int U> struct Brief {
  typename F::Element x[U];
  uint32_t counts; /* bits */
  KeptPlace place;
  __device__ __forceinline__ void open(const gpr_axes_args &a, const RUN &run, int64_t k) {
    place = kept_place(a, k);
    load(a, run, 0);
  }
  /* From the first one on. */
  __device__ __forceinline__ void load(const gpr_axes_args &a, const RUN &run, int first) {
    const char *data = a.data + place.data + first * run.stride;
    const int left = (int)a.count - first;
#pragma unroll
    for (int u = 0; u < U; u++)
      if (u < left) x[u] = run.load(data + u * run.stride);
    counts = left < U ? (1u << left) - 1 : (1u << U) - 1;
    if (!a.where) return;
    const char *where = a.where + place.where + first * run.where_stride;
#pragma unroll
    for (int u = 0; u < U; u++)
      if (u < left && !where[u * run.where_stride]) counts &= ~(1u << u);
  }
  __device__ __forceinline__ void skip_nan() {
#pragma unroll
    for (int u = 0; u < U; u++)
      if (is_nan_or_nat(x[u])) counts &= ~(1u << u);
  }
  /* False: it has to be folded again. */
  template <class Few>
  __device__ __forceinline__ bool finish(const gpr_axes_args &a, const RUN &run) {
    Few few;
    int n = 0;
#pragma unroll 1
    for (int first = 0;;) {
      if (a.skip) skip_nan();
      n += __popc(counts);
      if constexpr (LooksFirst<F>::value) {
#pragma unroll
        for (int u = 0; u < U; u++)
          if (counts >> u & 1) few.see(x[u]);
        if (!few.open()) return false;
      }
#pragma unroll
      for (int u = 0; u < U; u++)
        if (counts >> u & 1) few.add(x[u], F::ordered ? (first + u) * run.place : 0);
      first += U;
      if (LooksFirst<F>::value || first >= (int)a.count) break;
      load(a, run, first);
    }
    return n && few.finish(a, place.out, n);
  }
};
template <class F, class RUN>
__device__ __noinline__ void fold_brief_slowly(const gpr_axes_args *a, const char *data,
                                               const char *where, const BoxTable<F::ordered> *table,
                                               int64_t out) {
  typename F::State s;
  RUN run(*a, *table);
  run.data = data;
  run.where = where;
  run.index = 0;
  TileCell<F> cell;
  cell.keep(&s);
  const int64_t n = run.fold(cell, 0, 1, a->count, a->count);
  cell.done(0, s);
  if (a->least && n <= a->few) *a->least = n;
  finish_output<F>(a, out, &s, n);
}
/* So many outputs a thread whose loads are under way together. */
template <class T> GPR_FN GPR_CONSTEXPR int briefs_of(int elements) {
  return elements * (int)sizeof(T) <= 16 ? 4 : 2;
}
template <int U, class Few, class F, class RUN>
__device__ __forceinline__ void tile_brief(const gpr_axes_args &a,
                                           const BoxTable<F::ordered> &table) {
  constexpr int N = briefs_of<typename F::Element>(U);
  const int64_t step = (int64_t)gridDim.x * AXES_THREADS;
  int64_t k = (int64_t)blockIdx.x * AXES_THREADS + threadIdx.x;
  const RUN run(a, table);
#pragma unroll 1
  while (k < a.outputs) {
    Brief<F, RUN, U> brief[N];
#pragma unroll
    for (int i = 0; i < N; i++)
      if (k + i * step < a.outputs) brief[i].open(a, run, k + i * step);
#pragma unroll 1
    for (int i = 0; i < N && k < a.outputs; i++, k += step) {
      if (!brief[0].template finish<Few>(a, run))
        fold_brief_slowly<F, RUN>(&a, a.data + brief[0].place.data, a.where + brief[0].place.where,
                                  &table, brief[0].place.out);
#pragma unroll
      for (int j = 1; j < N; j++) brief[j - 1] = brief[j];
    }
  }
}
template <class F, class RUN>
__device__ __forceinline__ void tile_brief(const gpr_axes_args &a,
                                           const BoxTable<F::ordered> &table) {
  if (a.count <= 4) return tile_brief<4, Few<F>, F, RUN>(a, table);
  if constexpr (LooksFirst<F>::value)
    if (a.count > 8) return tile_brief<FEW_SHORT, Few<F>, F, RUN>(a, table);
  if constexpr (IsTall<F>::value)
    if (a.count > FEW_SHORT) return tile_brief<8, Tall<F>, F, RUN>(a, table);
  tile_brief<8, Few<F>, F, RUN>(a, table);
}

GPR_CLOSE
#endif
