// The ceilings and the peer in C++: a kernel that only reads, and the toolkit's CUB. Built by
// benchmarks/gpu.py into a shared library and called through ctypes; each returns the median of
// `repeats` kernel times in milliseconds, by events.
#include <algorithm>
#include <cstdint>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

// Works that follow each other without waiting, so that no time of the host is between their
// events; the first is not counted.
template <class Work> static float median_time(int repeats, Work work) {
  std::vector<cudaEvent_t> ends(repeats + 1);
  std::vector<float> times(repeats);
  for (cudaEvent_t &end : ends) {
    cudaEventCreate(&end);
    work();
    cudaEventRecord(end);
  }
  cudaEventSynchronize(ends[repeats]);
  for (int i = 0; i < repeats; i++) cudaEventElapsedTime(&times[i], ends[i], ends[i + 1]);
  for (cudaEvent_t end : ends) cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return cudaGetLastError() == cudaSuccess ? times[repeats / 2] : -1;
}

// Every word is loaded and none is stored, but the compiler cannot know that.
static __global__ void __launch_bounds__(1024)
    read_only(const uint4 *data, int64_t n, uint32_t *out) {
  uint32_t all = 0;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    uint4 v[4];
    for (int k = 0; k < 4; k++) v[k] = __ldcs(data + i + k * step);
    for (int k = 0; k < 4; k++) all |= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  for (; i < n; i += step) all |= data[i].x;
  if (all == 0x9e3779b9u) *out = all;
}

// Another part of `all` bytes each time: of the part before, a cache may hold something.
extern "C" float read_limit(const char *data, int64_t all, int64_t bytes, int repeats) {
  uint32_t *out;
  cudaMalloc(&out, 4);
  float best = 1e30f;
  int64_t part = 0;
  for (int blocks : {132 * 8, 132 * 16, 132 * 32, 132 * 64})
    best = std::min(best, median_time(repeats, [&] {
                      const char *from = data + part++ % (all / bytes) * (bytes / 16 * 16);
                      read_only<<<blocks, 1024>>>((const uint4 *)from, bytes / 16, out);
                    }));
  cudaFree(out);
  return best;
}

struct Scratch {
  void *temp = nullptr;
  size_t bytes = 0;
  void *out = nullptr;
};

template <class Reduce> static float cub_time(int repeats, Reduce reduce) {
  Scratch s;
  cudaMalloc(&s.out, 64);
  reduce(s.temp, s.bytes, s.out);
  cudaMalloc(&s.temp, s.bytes);
  const float time = median_time(repeats, [&] { reduce(s.temp, s.bytes, s.out); });
  cudaFree(s.temp);
  cudaFree(s.out);
  return time;
}

// sum into the type that NumPy accumulates in, as an iterator that widens
template <class T, class A> struct Widen {
  __host__ __device__ A operator()(T x) const { return static_cast<A>(x); }
};
template <class T, class A> static float cub_sum(const void *data, int64_t n, int repeats) {
  return cub_time(repeats, [&](void *temp, size_t &bytes, void *out) {
    cub::DeviceReduce::TransformReduce(temp, bytes, (const T *)data, (A *)out, n,
                                       cuda::std::plus<>{}, Widen<T, A>{}, A{});
  });
}
template <class T> static float cub_plain_sum(const void *data, int64_t n, int repeats) {
  return cub_time(repeats, [&](void *temp, size_t &bytes, void *out) {
    cub::DeviceReduce::Sum(temp, bytes, (const T *)data, (T *)out, n);
  });
}
template <class T> static float cub_max(const void *data, int64_t n, int repeats) {
  return cub_time(repeats, [&](void *temp, size_t &bytes, void *out) {
    cub::DeviceReduce::Max(temp, bytes, (const T *)data, (T *)out, n);
  });
}

#define CUB(name, T, A)                                                       \
  extern "C" float cub_sum_##name(const void *data, int64_t n, int repeats) { \
    return cub_sum<T, A>(data, n, repeats);                                   \
  }                                                                           \
  extern "C" float cub_max_##name(const void *data, int64_t n, int repeats) { \
    return cub_max<T>(data, n, repeats);                                      \
  }
CUB(int8, int8_t, int64_t)
CUB(int16, int16_t, int64_t)
CUB(int32, int32_t, int64_t)
CUB(int64, int64_t, int64_t)
extern "C" float cub_sum_float32(const void *data, int64_t n, int repeats) {
  return cub_plain_sum<float>(data, n, repeats);
}
extern "C" float cub_sum_float64(const void *data, int64_t n, int repeats) {
  return cub_plain_sum<double>(data, n, repeats);
}
extern "C" float cub_max_float32(const void *data, int64_t n, int repeats) {
  return cub_max<float>(data, n, repeats);
}
extern "C" float cub_max_float64(const void *data, int64_t n, int repeats) {
  return cub_max<double>(data, n, repeats);
}

// CUB's own run-to-run and gpu-to-gpu reproducible sums, where this toolkit has them.
#if __has_include(<cuda/__execution/determinism.h>)
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/require.h>
template <class T> static float cub_gpu_to_gpu(const void *data, int64_t n, int repeats) {
  auto env = cuda::execution::require(cuda::execution::determinism::gpu_to_gpu);
  T *out;
  cudaMalloc(&out, sizeof(T));
  const float time = median_time(repeats, [&] {
    cub::DeviceReduce::Reduce((const T *)data, out, n, cuda::std::plus<>{}, T{}, env);
  });
  cudaFree(out);
  return time;
}
extern "C" float cub_gpu_to_gpu_float32(const void *data, int64_t n, int repeats) {
  return cub_gpu_to_gpu<float>(data, n, repeats);
}
extern "C" float cub_gpu_to_gpu_float64(const void *data, int64_t n, int repeats) {
  return cub_gpu_to_gpu<double>(data, n, repeats);
}
#endif
