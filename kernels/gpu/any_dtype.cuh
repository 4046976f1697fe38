/* Elements of dtypes, byte orders and addresses that are known at run time alone. */
#pragma once

#include "../core/convert.h"

GPR_OPEN

/* An element between load and store: one of the classes that convert.h goes through. */
struct Loose {
  enum { SIGNED, UNSIGNED, REAL, COMPLEX } kind;
  int64_t i;
  double re, im;
};

GPR_DEVICE Loose loose(int64_t x) { return {Loose::SIGNED, x, 0, 0}; }
GPR_DEVICE Loose loose(uint64_t x) { return {Loose::UNSIGNED, (int64_t)x, 0, 0}; }
GPR_DEVICE Loose loose(float x) { return {Loose::REAL, 0, x, 0}; }
GPR_DEVICE Loose loose(double x) { return {Loose::REAL, 0, x, 0}; }
template <class R> GPR_DEVICE Loose loose(complex<R> x) { return {Loose::COMPLEX, 0, x.re, x.im}; }
template <class To> GPR_DEVICE To settle(const Loose &x) {
  switch (x.kind) {
    case Loose::SIGNED: return convert<To>(x.i);
    case Loose::UNSIGNED: return convert<To>((uint64_t)x.i);
    case Loose::REAL: return convert<To>(x.re);
    default: return convert<To>(complex<double>{x.re, x.im});
  }
}

GPR_DEVICE void copy_element(char *to, const char *from, int bytes, int swap) {
  char value[16];
  for (int i = 0; i < 16; i++)
    if (i < bytes) value[i] = from[swap ? (i ^ (swap - 1)) : i]; /* units are powers of two */
  for (int i = 0; i < 16; i++)
    if (i < bytes) to[i] = value[i];
}

/* Whole words where everything is aligned, and nothing to be swapped. */
GPR_DEVICE bool copy_aligned(char *to, const char *from, int bytes) {
  if ((uintptr_t)from % bytes) return false;
  switch (bytes) {
    case 1: *to = *from; return true;
    case 2: *(uint16_t *)to = *(const uint16_t *)from; return true;
    case 4: *(uint32_t *)to = *(const uint32_t *)from; return true;
    case 8: *(uint2 *)to = *(const uint2 *)from; return true;
    default: *(uint4 *)to = *(const uint4 *)from; return true;
  }
}

__device__ inline void convert_element(char *to, const char *from, int from_dtype, int to_dtype) {
  Loose x = {};
  switch (from_dtype) {
#define GPR_X(id, name, letter, size, type) \
  case GPR_##id: {                          \
    type value;                             \
    memcpy(&value, from, sizeof value);     \
    x = loose(wide(value));                 \
    break;                                  \
  }
    GPR_DTYPES(GPR_X)
#undef GPR_X
  }
  switch (to_dtype) {
#define GPR_X(id, name, letter, size, type)          \
  case GPR_##id:                                     \
    if constexpr (Traits<type>::kind != KIND_TIME) { \
      const type value = settle<type>(x);            \
      memcpy(to, &value, sizeof value);              \
    }                                                \
    break;
    GPR_DTYPES(GPR_X)
#undef GPR_X
  }
}

static __device__ int dtype_bytes(int dtype) {
  switch (dtype) {
#define GPR_X(id, name, letter, size, type) \
  case GPR_##id: return size;
    GPR_DTYPES(GPR_X)
#undef GPR_X
  }
  return 0;
}

GPR_CLOSE
