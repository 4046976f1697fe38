/* From memory to a fold's element: as it lies, converted from a dtype that the compiler knows, or
 * from any dtype and byte order at any address. */
#pragma once

#include "../abi/axes.h"
#include "any_dtype.cuh"
#include "packets.cuh"

GPR_OPEN

/* An element at a multiple of its size, by one load: the compiler takes the parts of complex
 * numbers apart. Volatile, too: of loads in two branches it would else make one, and move either's
 * addresses to where that stands. */
template <class T> GPR_DEVICE T load_whole(const char *from) {
#ifdef __CUDA_ARCH__
  union {
    T x;
    uint16_t half;
    typename Store<(sizeof(T) < 4 ? 4 : (int)sizeof(T))>::type words;
  };
  if constexpr (sizeof(T) == 1)
    asm volatile("ld.global.u8 %0, [%1];" : "=h"(half) : "l"(from));
  else if constexpr (sizeof(T) == 2)
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(half) : "l"(from));
  else
    words = load_as(from, words);
  return x;
#else
  return *(const T *)from;
#endif
}

/* The same where it stands, or of real numbers where the compiler will. */
template <class T, bool HERE> GPR_DEVICE T load_one(const char *from) {
  if constexpr (HERE || Traits<T>::kind == KIND_COMPLEX) return load_whole<T>(from);
  return *(const T *)from;
}

template <class FROM> struct Convert;
/* A fold with such elements. */
template <class FOLD, class FROM> struct Converted {
  typedef FOLD Fold;
  typedef FROM From;
  typedef Convert<FROM> Load;
};
struct AnyDtype;

template <class T, class LOAD> struct Load { /* LOAD: the element itself */
  typedef T From;
  static_assert(sizeof(T) == sizeof(LOAD), "");
  static GPR_DEVICE T of(T from) { return from; }
  template <bool HERE = false> static GPR_DEVICE T get(const char *from, const gpr_axes_args &) {
    return load_one<T, HERE>(from);
  }
};
template <class T, class FROM> struct Load<T, Convert<FROM>> {
  typedef FROM From;
  static GPR_DEVICE T of(FROM from) { return convert<T>(from); }
  template <bool HERE = false> static GPR_DEVICE T get(const char *from, const gpr_axes_args &) {
    return of(load_one<FROM, HERE>(from));
  }
};
template <class T> struct Load<T, AnyDtype> {
  template <bool = false> static GPR_DEVICE T get(const char *from, const gpr_axes_args &a) {
    return converted(from, a);
  }
  static __device__ __noinline__ T converted(const char *from, const gpr_axes_args &a) {
    char native[16];
    T x;
    copy_element(native, from, a.from_bytes, a.swap);
    if (a.from == a.to)
      memcpy(&x, native, sizeof x);
    else
      convert_element((char *)&x, native, a.from, a.to);
    return x;
  }
};

template <class T> GPR_FN constexpr bool may_be_nan() { /* or not-a-time */
  return Traits<T>::kind == KIND_COMPLEX || Traits<T>::kind == KIND_FLOAT ||
         Traits<T>::kind == KIND_TIME;
}
template <class T> GPR_DEVICE bool is_nan_or_nat(T x) {
  if constexpr (Traits<T>::kind == KIND_COMPLEX)
    return x.re != x.re || x.im != x.im;
  else if constexpr (Traits<T>::kind == KIND_FLOAT)
    return wide(x) != wide(x);
  else if constexpr (Traits<T>::kind == KIND_TIME)
    return wide(x) == GPR_NAT;
  else
    return false;
}

/* Of elements that have a bit in `valid`, those that are no NaN and no NaT: mostly all. */
template <class T, int N> GPR_DEVICE uint32_t less_missing(const T (&x)[N], uint32_t valid) {
  bool any = false;
  GPR_EACH(i, N) any |= is_nan_or_nat(x[i]);
  GPR_UNROLLED(int i = 0; any && i < N; i++)
    if (is_nan_or_nat(x[i])) valid &= ~(1u << i);
  return valid;
}

/* The compiler is apt to work out all multiples of a loop's step before it, for which there are no
 * registers. */
GPR_DEVICE int64_t told_now(int64_t step) {
  asm volatile("" : "+l"(step));
  return step;
}

GPR_CLOSE
