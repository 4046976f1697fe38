/* The words of device code, declared and no more: so the host's compiler reads the kernels' headers
 * for their types, sizes and names. Nothing that it compiles calls one of them. */
#pragma once

#include <math.h>
#include <stdint.h>

#define __global__ __attribute__((unused))
#define __device__ __attribute__((unused))
#define __host__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)

struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w);
extern struct gpr_dim3 { unsigned x, y, z; } threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads();
int __syncthreads_or(int);
void __syncwarp(uint32_t = ~0u);
void __threadfence();
uint32_t __ballot_sync(uint32_t, int);
uint32_t __activemask();
int __any_sync(uint32_t, int);
int __all_sync(uint32_t, int);
template <class T> T __shfl_sync(uint32_t, T, int, int = 32);
template <class T> T __shfl_xor_sync(uint32_t, T, int, int = 32);
template <class T> T __shfl_down_sync(uint32_t, T, int, int = 32);
template <class T> T __shfl_up_sync(uint32_t, T, int, int = 32);
template <class T> T __ldcs(const T *);
template <class T> T __ldcg(const T *);
template <class T> T __ldg(const T *);
template <class T, class U> T atomicAdd(T *, U);
template <class T, class U> T atomicOr(T *, U);
template <class T, class U> T atomicMax(T *, U);
template <class T, class U> T atomicExch(T *, U);
template <class T, class U, class V> T atomicCAS(T *, U, V);
int __ffs(int);
int __ffsll(long long);
int __popc(uint32_t);
int __clz(int);
int __clzll(long long);
uint64_t __umul64hi(uint64_t, uint64_t);
uint32_t __funnelshift_r(uint32_t, uint32_t, uint32_t);
int __double2hiint(double);
int __double2loint(double);
double __hiloint2double(int, int);
int __float_as_int(float);
float __uint_as_float(uint32_t);
int __float2int_rn(float);
template <class T> T min(T, T);
template <class T> T max(T, T);
uint32_t __vminu2(uint32_t, uint32_t);
uint32_t __vmaxu2(uint32_t, uint32_t);
uint32_t __vmins2(uint32_t, uint32_t);
uint32_t __vmaxs2(uint32_t, uint32_t);
uint32_t __viaddmin_u16x2(uint32_t, uint32_t, uint32_t);
uint32_t __viaddmax_s16x2(uint32_t, uint32_t, uint32_t);
