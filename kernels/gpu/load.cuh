/* From memory to a fold's element: as it lies, converted from a dtype that the compiler knows, or
 * from any dtype and byte order at any address. */
#ifndef GPR_LOAD_CUH
#define GPR_LOAD_CUH

#include "../abi/axes.h"
#include "any_dtype.cuh"

GPR_OPEN

template <class FROM> struct Convert;
struct AnyDtype;

template <class T, class LOAD> struct Load { /* LOAD: the element itself */
  typedef T From;
  static_assert(sizeof(T) == sizeof(LOAD), "");
  static __device__ __forceinline__ T of(T from) { return from; }
  static __device__ __forceinline__ T get(const char *from, const gpr_axes_args &) {
    return *(const T *)from;
  }
};
template <class T, class FROM> struct Load<T, Convert<FROM>> {
  typedef FROM From;
  static __device__ __forceinline__ T of(FROM from) { return convert<T>(from); }
  static __device__ __forceinline__ T get(const char *from, const gpr_axes_args &) {
    return of(*(const FROM *)from);
  }
};
template <class T> struct Load<T, AnyDtype> {
  static __device__ __noinline__ T get(const char *from, const gpr_axes_args &a) {
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
template <class T> __device__ __forceinline__ bool is_nan_or_nat(T x) {
  if constexpr (Traits<T>::kind == KIND_COMPLEX)
    return x.re != x.re || x.im != x.im;
  else if constexpr (Traits<T>::kind == KIND_FLOAT)
    return wide(x) != wide(x);
  else if constexpr (Traits<T>::kind == KIND_TIME)
    return wide(x) == GPR_NAT;
  else
    return false;
}

GPR_CLOSE
#endif
