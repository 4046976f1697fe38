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

template <class To, Kind K> struct MakeOf { /* integers */
  static GPR_METHOD To from(int64_t x) { return (To)x; }
  static GPR_METHOD To from(uint64_t x) { return (To)x; }
  static GPR_METHOD To from(double x) { return (To)to_int64(x); }
};
template <class To> struct MakeOf<To, KIND_FLOAT> { /* narrow ones */
  static GPR_METHOD To from(int64_t x) { return narrow((float)x, To()); }
  static GPR_METHOD To from(uint64_t x) { return narrow((float)x, To()); }
  static GPR_METHOD To from(double x) { return narrow(to_odd(x), To()); }
};
template <class To> struct Make : MakeOf<To, Traits<To>::kind> {};
template <> struct Make<uint64_t> {
  static GPR_METHOD uint64_t from(int64_t x) { return (uint64_t)x; }
  static GPR_METHOD uint64_t from(uint64_t x) { return x; }
  static GPR_METHOD uint64_t from(double x) { return to_uint64(x); }
};
template <> struct Make<boolean> {
  template <class W> static GPR_METHOD boolean from(W x) { return boolean{x != 0}; }
};
template <> struct Make<double> {
  template <class W> static GPR_METHOD double from(W x) { return (double)x; }
};
template <> struct Make<float> {
  template <class W> static GPR_METHOD float from(W x) { return (float)x; }
};
template <class R> struct Make<complex<R>> {
  template <class W> static GPR_METHOD complex<R> from(W x) { return {Make<R>::from(x), 0}; }
};

template <class W> GPR_FN W widest(W x) { return x; }
GPR_FN double widest(float x) { return x; }
template <class To, class From> GPR_FN To convert(From x) {
  return Make<To>::from(widest(wide(x)));
}

/* Complex to real keeps the real part; to boolean looks at both. */
template <class To> struct FromComplex {
  template <class R> static GPR_METHOD To make(complex<R> x) { return convert<To>(x.re); }
};
template <> struct FromComplex<boolean> {
  template <class R> static GPR_METHOD boolean make(complex<R> x) { return boolean{is_true(x)}; }
};
template <class Q> struct FromComplex<complex<Q>> {
  template <class R> static GPR_METHOD complex<Q> make(complex<R> x) { return {(Q)x.re, (Q)x.im}; }
};
template <class To> GPR_FN To convert(complex<float> x) { return FromComplex<To>::make(x); }
template <class To> GPR_FN To convert(complex<double> x) { return FromComplex<To>::make(x); }

GPR_CLOSE
