/* What lets one body be compiled for a device, by NVRTC, and by the host compiler. */
#pragma once

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GPR_CONSTEXPR constexpr __host__ __device__
#define GPR_FN static __host__ GPR_DEVICE
#define GPR_METHOD __host__ GPR_DEVICE
#define GPR_CALL static __host__ __device__ __noinline__
#define GPR_SHARED GPR_FN /* compiled once on the host */
#else
#define GPR_CONSTEXPR constexpr
#define GPR_FN static inline __attribute__((always_inline))
#define GPR_METHOD inline __attribute__((always_inline))
#define GPR_CALL static __attribute__((noinline, unused))
#define GPR_SHARED GPR_CALL
#define GPR_UNROLL(times) GPR_PRAGMA(GCC unroll times)
#define GPR_PRAGMA(text) _Pragma(#text)
#define GPR_APART __attribute__((noinline)) /* large and called from many places: compiled once */
#endif

#define GPR_DEVICE __device__ __forceinline__

/* A loop of a device's that is unrolled: what it indexes can be in registers. */
#define GPR_UNROLLED(...) _Pragma("unroll") for (__VA_ARGS__)
#define GPR_EACH(i, n) GPR_UNROLLED(int i = 0; i < (n); i++)
/* One that is not, however often it goes round: its code stands once. */
#ifdef __CUDACC__
#define GPR_ROLLED(...) _Pragma("unroll 1") for (__VA_ARGS__)
#else
#define GPR_ROLLED(...) for (__VA_ARGS__)
#endif

/* A product that must not be fused with the addition that follows. GCC 12 needs to be told beside
 * -ffp-contract=off: its vectoriser turns a·b ∓ c·d into vfmaddsub all the same. */
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && !defined(__CUDACC__)
#define GPR_PRODUCT(a, b) __builtin_assoc_barrier((a) * (b))
#else
#define GPR_PRODUCT(a, b) ((a) * (b))
#endif

/* The host half is compiled once for each instruction set, each in a namespace of its own: the
 * linker would else merge the instances of a template and run AVX-512 on a machine without. Device
 * code has one too, where the same names mean other things. */
#ifndef GPR_ISA
#ifdef __CUDACC__
#define GPR_ISA gpu
#else
#define GPR_ISA plain
#endif
#endif
#define GPR_OPEN  \
  namespace gpr { \
  inline namespace GPR_ISA {
#define GPR_CLOSE \
  }               \
  }
