/* One element from one dtype to another, as NumPy's unsafe casting does. Where C leaves a float
 * that does not fit an integer undefined, the answer here is what x86 gives, on every machine. */
#pragma once

#include "types.h"

GPR_OPEN

GPR_FN int64_t to_int64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
GPR_FN uint64_t to_uint64(double x) {
  return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)to_int64(x);
}

/* Rounding to odd on the way keeps what a second rounding needs to know. */
GPR_FN float to_odd(double x) {
  const float f = (float)x;
  const double back = f;
  if (back == x || x != x) return f;
  uint32_t b = bits(f);
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) b--;
  return from_bits(b | 1);
}

/* Of an int64_t, uint64_t or double. */
template <class To, class W> GPR_FN To make(W x) {
  constexpr Kind kind = Traits<To>::kind;
  constexpr bool of_real = Traits<W>::kind == KIND_FLOAT;
  if constexpr (kind == KIND_BOOL)
    return To{x != 0};
  else if constexpr (kind == KIND_COMPLEX)
    return To{(typename RealOf<To>::type)x, 0};
  else if constexpr (kind == KIND_FLOAT && sizeof(To) >= sizeof(float))
    return (To)x;
  else if constexpr (kind == KIND_FLOAT && of_real)
    return narrow(to_odd(x), To());
  else if constexpr (kind == KIND_FLOAT)
    return narrow((float)x, To());
  else if constexpr (of_real && kind == KIND_UINT && sizeof(To) == 8)
    return to_uint64(x);
  else if constexpr (of_real)
    return (To)to_int64(x);
  else
    return (To)x;
}

template <class W> GPR_FN W widest(W x) { return x; }
GPR_FN double widest(float x) { return x; }
template <class To, class From> GPR_FN To convert(From x) { return make<To>(widest(wide(x))); }

/* Complex to real keeps the real part; to boolean looks at both. */
template <class To, class R> GPR_FN To convert(complex<R> x) {
  if constexpr (Traits<To>::kind == KIND_BOOL)
    return To{is_true(x)};
  else if constexpr (Traits<To>::kind == KIND_COMPLEX)
    return To{(typename RealOf<To>::type)x.re, (typename RealOf<To>::type)x.im};
  else
    return convert<To>(x.re);
}

GPR_CLOSE
