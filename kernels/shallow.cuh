/* Outputs of a few elements each, as many as there are threads and more: columns of a few rows, and
 * rows of which a packet holds one or several. */
#ifndef GPR_SHALLOW_CUH
#define GPR_SHALLOW_CUH

#include "few.cuh"

GPR_OPEN

enum { SHALLOW_BLOCKS = 4, SHALLOW_LOADS = 4 };

/* Neighbouring results of one thread: of exact sums a packet of them, where it is aligned. */
template <class F, int V> struct FinishRow {
  static __device__ __forceinline__ void here(const gpr_axes_args &a, int64_t o, int left,
                                              Few<F> (&few)[V], int64_t n, const char *from,
                                              int64_t stride) {
#pragma unroll
    for (int e = 0; e < V; e++)
      if (e < left && !few[e].finish(a, o + e, n))
        slow_output<F>(&a, o + e, from + e * sizeof(typename F::Element), stride, n);
  }
};
template <class T, int V> struct FinishRow<PairSum<T>, V> {
  typedef PairSum<T> F;
  static __device__ __forceinline__ void here(const gpr_axes_args &a, int64_t o, int left,
                                              Few<F> (&few)[V], int64_t n, const char *from,
                                              int64_t stride) {
    Packet<T> result;
    uint32_t missed = 0;
#pragma unroll
    for (int e = 0; e < V; e++) missed |= few[e].value(a, n, &result.element[e]) ? 0u : 1u << e;
    T *out = (T *)a.out + o;
    if (left == V && (uintptr_t)out % 16 == 0) {
      *(uint4 *)out = result.words;
    } else {
#pragma unroll
      for (int e = 0; e < V; e++)
        if (e < left) out[e] = result.element[e];
    }
#pragma unroll 1
    for (int e = 0; missed && e < left; e++)
      if (missed >> e & 1) slow_output<F>(&a, o + e, from + e * sizeof(T), stride, n);
  }
};

/* Columns: rows of a.shape[kept - 1] elements that start at multiples of 16 bytes, of which there
 * are a.count, FEW_MOST at most, a.strides[kept] apart. */
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, SHALLOW_BLOCKS)
    shallow(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count;
  const int64_t width = a.shape[a.kept - 1], across = (width + V - 1) / V;
  const int64_t t = (int64_t)blockIdx.x * AXES_THREADS + threadIdx.x;
  const int64_t batch = across == a.tiles ? 0 : t / across, first = (t - batch * across) * V;
  if (t >= a.tiles) return;
  const int64_t stride = a.strides[a.kept];
  const char *base =
      a.data + offset_of(a.shape, a.strides, a.kept - 1, batch) + first * (int64_t)sizeof(T);
  const int left = width - first < V ? (int)(width - first) : V;
  Few<F> few[V];
  int r = 0;
#pragma unroll 1
  for (; left == V && r + SHALLOW_LOADS <= (int)a.count; r += SHALLOW_LOADS) {
    Packet<T> v[SHALLOW_LOADS];
#pragma unroll
    for (int u = 0; u < SHALLOW_LOADS; u++) v[u].words = load_once(base + (r + u) * stride);
#pragma unroll
    for (int i = 0; i < SHALLOW_LOADS * V; i++) few[i % V].add(v[i / V].element[i % V], r + i / V);
  }
#pragma unroll 1
  for (; r < (int)a.count; r++) {
    Packet<T> v;
    if (left == V) {
      v.words = load_once(base + r * stride);
    } else {
#pragma unroll
      for (int e = 0; e < V; e++)
        if (e < left) v.element[e] = ((const T *)(base + r * stride))[e];
    }
#pragma unroll
    for (int e = 0; e < V; e++)
      if (e < left) few[e].add(v.element[e], r);
  }
  FinishRow<F, V>::here(a, batch * width + first, left, few, a.count, base, stride);
}

/* Rows one behind the other, of a.count elements each: 16 bytes, or a power of two less. */
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, SHALLOW_BLOCKS)
    packed(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count;
  const int count = (int)a.count;
  const int64_t elements = a.outputs * count, packets = elements / V;
  const int64_t first = (int64_t)blockIdx.x * AXES_THREADS * SHALLOW_LOADS + threadIdx.x;
  Packet<T> v[SHALLOW_LOADS];
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++)
    if (first + u * AXES_THREADS < packets)
      v[u].words = load_once(a.data + (first + u * AXES_THREADS) * 16);
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++) {
    const int64_t p = first + u * AXES_THREADS;
    if (p > packets) break;
    const int left = p < packets ? V : (int)(elements - packets * V);
    int64_t o = p * V / count;
    int done = 0; /* elements of output o */
    Few<F> few;
#pragma unroll
    for (int e = 0; e < V; e++)
      if (e < left) {
        few.add(p < packets ? v[u].element[e] : ((const T *)a.data)[p * V + e], done);
        if (++done == count) {
          if (!few.finish(a, o, count))
            slow_output<F>(&a, o, a.data + o * count * sizeof(T), sizeof(T), count);
          few = Few<F>();
          done = 0;
          o++;
        }
      }
  }
}

GPR_CLOSE
#endif
