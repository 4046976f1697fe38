/* Outputs of a few elements each, as many as there are threads and more: columns of a few rows, and
 * rows of which a packet holds one or several. */
#ifndef GPR_SHALLOW_CUH
#define GPR_SHALLOW_CUH

#include "few.cuh"

GPR_OPEN

enum { SHALLOW_BLOCKS = 4, SHALLOW_LOADS = 4 };

/* Neighbouring results of one thread: of exact sums one store, where they are aligned. */
template <class F, int N> struct FinishRow {
  static __device__ __forceinline__ void here(const gpr_axes_args &a, int64_t o, int left,
                                              Few<F> (&few)[N], int64_t n, const char *from,
                                              int64_t across, int64_t along) {
#pragma unroll
    for (int e = 0; e < N; e++)
      if (e < left && !few[e].finish(a, o + e, n))
        slow_output<F>(&a, o + e, from + e * across, along, n);
  }
};
template <int BYTES> struct Store;
template <> struct Store<4> { typedef uint32_t type; };
template <> struct Store<8> { typedef uint2 type; };
template <> struct Store<16> { typedef uint4 type; };
template <class T, int N> struct FinishRow<PairSum<T>, N> {
  typedef PairSum<T> F;
  typedef typename Store<N * sizeof(T)>::type Word;
  static __device__ __forceinline__ void here(const gpr_axes_args &a, int64_t o, int left,
                                              Few<F> (&few)[N], int64_t n, const char *from,
                                              int64_t across, int64_t along) {
    alignas(16) T result[N];
    uint32_t missed = 0;
#pragma unroll
    for (int e = 0; e < N; e++) missed |= few[e].value(a, n, result + e) ? 0u : 1u << e;
    T *out = (T *)a.out + o;
    if (left == N && (uintptr_t)out % sizeof(Word) == 0) {
      Word word;
      memcpy(&word, result, sizeof word);
      *(Word *)out = word;
    } else {
#pragma unroll
      for (int e = 0; e < N; e++)
        if (e < left) out[e] = result[e];
    }
#pragma unroll 1
    for (int e = 0; missed && e < left; e++)
      if (missed >> e & 1) slow_output<F>(&a, o + e, from + e * across, along, n);
  }
};

/* Columns: rows of a.shape[kept - 1] elements that start at multiples of 16 bytes, of which there
 * are a.count, FEW_MOST at most, a.strides[kept] apart. */
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, SHALLOW_BLOCKS)
    shallow(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count;
  const int64_t width = a.shape[a.kept - 1], across = quotient_of(width + V - 1, V);
  const int64_t t = (int64_t)blockIdx.x * AXES_THREADS + threadIdx.x;
  const int64_t batch = across == a.tiles ? 0 : quotient_of(t, across),
                first = (t - batch * across) * V;
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
  FinishRow<F, V>::here(a, batch * width + first, left, few, a.count, base, sizeof(T), stride);
}

/* The rows in a packet of which there are `left`, from output o on. */
template <class F, int COUNT>
__device__ __forceinline__ void finish_packet(const gpr_axes_args &a,
                                              const Packet<typename F::Element> &v, int64_t o,
                                              int left) {
  typedef typename F::Element T;
  constexpr int N = Packet<T>::count / COUNT;
  Few<F> few[N];
#pragma unroll
  for (int e = 0; e < Packet<T>::count; e++) few[e / COUNT].add(v.element[e], e % COUNT);
  FinishRow<F, N>::here(a, o, left, few, COUNT, a.data + o * COUNT * (int64_t)sizeof(T),
                        COUNT * sizeof(T), sizeof(T));
}

/* Rows one behind the other, of COUNT elements each: a power of two of them, a packet at most. */
template <class F, int COUNT> __device__ __forceinline__ void fold_packed(const gpr_axes_args &a) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count, N = V / COUNT;
  const int64_t full = a.outputs / N;
  const int64_t first = (int64_t)blockIdx.x * AXES_THREADS * SHALLOW_LOADS + threadIdx.x;
  Packet<T> v[SHALLOW_LOADS];
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++)
    if (first + u * AXES_THREADS < full)
      v[u].words = load_once(a.data + (first + u * AXES_THREADS) * 16);
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++) {
    const int64_t p = first + u * AXES_THREADS;
    if (p < full) finish_packet<F, COUNT>(a, v[u], p * N, N);
  }
  for (int64_t o = full * N; blockIdx.x == 0 && threadIdx.x == 0 && o < a.outputs; o++)
    slow_output<F>(&a, o, a.data + o * COUNT * (int64_t)sizeof(T), sizeof(T), COUNT);
}
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, SHALLOW_BLOCKS)
    packed(const __grid_constant__ gpr_axes_args a) {
  constexpr int V = Packet<typename F::Element>::count;
  if (a.count == 1) return fold_packed<F, 1>(a);
  if constexpr (V >= 2)
    if (a.count == 2) return fold_packed<F, 2>(a);
  if constexpr (V >= 4)
    if (a.count == 4) return fold_packed<F, 4>(a);
}

GPR_CLOSE
#endif
