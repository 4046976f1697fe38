/* The storage types of abi/dtypes.h, their conversions, and the order that min and max see. */
#pragma once

#include "../abi/dtypes.h"
#include "portable.h"

GPR_OPEN

struct boolean {
  uint8_t byte; /* any byte but 0 is true */
};
struct float16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};
struct datetime64 {
  int64_t ticks;
};
struct timedelta64 {
  int64_t ticks;
};
template <class T> struct complex { T re, im; };
template <class T> struct RealOf { typedef T type; };
template <class R> struct RealOf<complex<R>> { typedef R type; };

#define GPR_NAT INT64_MIN

template <class T> GPR_FN T least(T a, T b) { return b < a ? b : a; }
template <class T> GPR_FN T greatest(T a, T b) { return a < b ? b : a; }

/* --- bits ------------------------------------------------------------------------------------ */

template <class To, class From> GPR_FN To copy_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  memcpy(&to, &x, sizeof to);
  return to;
}
GPR_FN uint64_t bits(double x) { return copy_bits<uint64_t>(x); }
GPR_FN uint32_t bits(float x) { return copy_bits<uint32_t>(x); }
GPR_FN double from_bits(uint64_t b) { return copy_bits<double>(b); }
GPR_FN float from_bits(uint32_t b) { return copy_bits<float>(b); }

/* `drop` low bits rounded away to nearest even; a carry runs into the exponent, as it should. */
GPR_FN uint32_t round_bits(uint32_t b, int drop) {
  return (b + ((1u << (drop - 1)) - 1) + (b >> drop & 1)) >> drop;
}

/* --- floats: all that is known of one ----------------------------------------------------------
 *
 * precision: bits, the hidden one counted. smallest: log2 of the least subnormal. beyond: log2 of
 * what no finite number reaches. Key: an integer as wide, with a sign. One that is narrower than a
 * float says how it becomes one, exactly, and comes of one, rounded once. */

template <class T> struct Format;
template <> struct Format<float16> {
  enum { precision = 11, smallest = -24, beyond = 16 };
  typedef int16_t Key;
  static GPR_METHOD uint64_t infinity() { return 0x7c00; }
  static GPR_METHOD float16 make(uint64_t b) { return float16{(uint16_t)b}; }
  static GPR_METHOD float widen(float16 x) {
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
    return f;
#else
    const uint32_t sign = (uint32_t)(x.bits & 0x8000) << 16, rest = (x.bits & 0x7fffu) << 13;
    if (rest >= 0x7c00u << 13) return from_bits(sign | (0x70000000u + rest)); /* inf, NaN */
    /* The exponent's bias differs by 112; the product is exact, subnormals included. */
    return from_bits(sign | bits(from_bits(rest) * 0x1p112f));
#endif
  }
  static GPR_METHOD float16 narrow(float x) {
    const uint32_t b = bits(x), sign = b >> 16 & 0x8000, magnitude = b & 0x7fffffff;
    if (x != x) return float16{(uint16_t)(sign | 0x7e00)};
    if (magnitude >= 0x477ff000u) return float16{(uint16_t)(sign | 0x7c00)}; /* 65520 and up */
    if (magnitude >= 0x38800000u)                                            /* normal */
      return float16{(uint16_t)(sign | (round_bits(magnitude, 13) - (112u << 10)))};
    /* Subnormal: 0.5 has the unit 2^-24 in its last place, so the addition rounds there. */
    return float16{(uint16_t)(sign | (bits(from_bits(magnitude) + 0.5f) - bits(0.5f)))};
  }
};
template <> struct Format<bfloat16> {
  enum { precision = 8, smallest = -133, beyond = 128 };
  typedef int16_t Key;
  static GPR_METHOD uint64_t infinity() { return 0x7f80; }
  static GPR_METHOD bfloat16 make(uint64_t b) { return bfloat16{(uint16_t)b}; }
  static GPR_METHOD float widen(bfloat16 x) { return from_bits((uint32_t)x.bits << 16); }
  static GPR_METHOD bfloat16 narrow(float x) {
    const uint32_t b = bits(x);
    if (x != x) return bfloat16{(uint16_t)((b >> 16 & 0x8000) | 0x7fc0)};
    return bfloat16{(uint16_t)round_bits(b, 16)};
  }
};
template <> struct Format<float> {
  enum { precision = 24, smallest = -149, beyond = 128 };
  typedef int32_t Key;
  static GPR_METHOD uint64_t infinity() { return 0x7f800000; }
  static GPR_METHOD float make(uint64_t b) { return from_bits((uint32_t)b); }
};
template <> struct Format<double> {
  enum { precision = 53, smallest = -1074, beyond = 1024 };
  typedef int64_t Key;
  static GPR_METHOD uint64_t infinity() { return 0x7ff0000000000000ull; }
  static GPR_METHOD double make(uint64_t b) { return from_bits(b); }
};

template <class T> GPR_FN T minus_zero() {
  typedef typename RealOf<T>::type R;
  const R zero = Format<R>::make(1ull << (8 * sizeof(R) - 1));
  if constexpr (sizeof(T) > sizeof(R))
    return {zero, zero};
  else
    return zero;
}

/* The one NaN that results have: positive and quiet, no payload. */
template <class T> GPR_FN T quiet_nan() {
  return Format<T>::make(Format<T>::infinity() | 1ull << (Format<T>::precision - 2));
}

/* Of narrow floats alone. */
template <class T, class W = decltype(Format<T>::widen(T()))> GPR_FN W widen(T x) {
  return Format<T>::widen(x);
}
template <class T, class W = decltype(Format<T>::widen(T()))> GPR_FN T narrow(W x, T) {
  return Format<T>::narrow(x);
}
GPR_FN float narrow(float x, float) { return x; }
GPR_FN double narrow(double x, double) { return x; }
template <class R> GPR_FN complex<R> narrow(complex<R> x, complex<R>) { return x; }

/* --- what each storage type is computed in ---------------------------------------------------- */

enum Kind { KIND_BOOL, KIND_INT, KIND_UINT, KIND_FLOAT, KIND_COMPLEX, KIND_TIME };

template <Kind K, class W> struct traits_of {
  typedef W Wide; /* every value of T fits, and sums and products are taken in it */
  static constexpr Kind kind = K;
};
/* Floats that are computed in float have their Format alone. */
template <class T> struct Traits : traits_of<KIND_FLOAT, decltype(Format<T>::widen(T()))> {
  static_assert(sizeof(T) == sizeof(typename Format<T>::Key), "");
};
template <> struct Traits<boolean> : traits_of<KIND_BOOL, int64_t> {};
template <> struct Traits<int8_t> : traits_of<KIND_INT, int64_t> {};
template <> struct Traits<int16_t> : traits_of<KIND_INT, int64_t> {};
template <> struct Traits<int32_t> : traits_of<KIND_INT, int64_t> {};
template <> struct Traits<int64_t> : traits_of<KIND_INT, int64_t> {};
template <> struct Traits<uint8_t> : traits_of<KIND_UINT, uint64_t> {};
template <> struct Traits<uint16_t> : traits_of<KIND_UINT, uint64_t> {};
template <> struct Traits<uint32_t> : traits_of<KIND_UINT, uint64_t> {};
template <> struct Traits<uint64_t> : traits_of<KIND_UINT, uint64_t> {};
template <> struct Traits<float> : traits_of<KIND_FLOAT, float> {};
template <> struct Traits<double> : traits_of<KIND_FLOAT, double> {};
template <> struct Traits<complex<float>> : traits_of<KIND_COMPLEX, complex<float>> {};
template <> struct Traits<complex<double>> : traits_of<KIND_COMPLEX, complex<double>> {};
template <> struct Traits<datetime64> : traits_of<KIND_TIME, int64_t> {};
template <> struct Traits<timedelta64> : traits_of<KIND_TIME, int64_t> {};

template <class T> GPR_FN typename Traits<T>::Wide wide(T x) {
  if constexpr (Traits<T>::kind == KIND_BOOL)
    return x.byte != 0;
  else if constexpr (Traits<T>::kind == KIND_TIME)
    return x.ticks;
  else if constexpr (Traits<T>::kind == KIND_FLOAT && sizeof(T) < sizeof(float))
    return Format<T>::widen(x);
  else
    return x;
}

/* A number's real and imaginary part, or itself. */
template <class T> struct RealParts {
  typedef typename Traits<typename RealOf<T>::type>::Wide Real;
  static constexpr int parts = Traits<T>::kind == KIND_COMPLEX ? 2 : 1;
  static GPR_METHOD Real real(T x, int part) {
    if constexpr (parts == 2)
      return part ? x.im : x.re;
    else
      return wide(x);
  }
};

template <class T> GPR_FN bool is_true(T x) {
  if constexpr (Traits<T>::kind == KIND_FLOAT && sizeof(T) < sizeof(float))
    return (decltype(x.bits))(x.bits << 1) != 0;
  else
    return wide(x) != 0;
}
template <class T> GPR_FN bool is_true(complex<T> x) { return x.re != 0 || x.im != 0; }

/* --- order: every real type as an integer that sorts the same ---------------------------------
 *
 * -0.0 sorts below +0.0. NaNs lie beyond the infinities on both ends, so that the least and the
 * greatest key together tell whether there was one; so does NaT, the least key of all. */

template <class K> struct Limits { /* integers */
  static constexpr bool is_signed = (K)-1 < (K)1;
  static constexpr K greatest = (K)(~UINT64_C(0) >> (64 - 8 * sizeof(K) + is_signed));
  static constexpr K least = (K)~greatest;
};

template <class T, Kind K> struct OrderOf { /* integers */
  typedef T Key;
  static GPR_METHOD Key key(T x) { return x; }
  static GPR_METHOD T value(Key k) { return k; }
  static GPR_METHOD bool poisoned(Key, Key) { return false; }
  static GPR_METHOD T poison() { return 0; }
};
template <> struct OrderOf<boolean, KIND_BOOL> {
  typedef uint8_t Key;
  static GPR_METHOD Key key(boolean x) { return x.byte != 0; }
  static GPR_METHOD boolean value(Key k) { return boolean{k != 0}; }
  static GPR_METHOD bool poisoned(Key, Key) { return false; }
  static GPR_METHOD boolean poison() { return boolean{0}; }
};
template <class T> struct OrderOf<T, KIND_TIME> {
  typedef int64_t Key;
  static GPR_METHOD Key key(T x) { return x.ticks; }
  static GPR_METHOD T value(Key k) { return T{k}; }
  static GPR_METHOD bool poisoned(Key low, Key) { return low == GPR_NAT; }
  static GPR_METHOD T poison() { return T{GPR_NAT}; }
};
template <class T> struct OrderOf<T, KIND_FLOAT> {
  typedef typename Format<T>::Key Key;
  /* The bits below the sign, turned over where it is set. */
  static GPR_METHOD Key flip(Key k) {
    const Key sign = (Key)(k >> (8 * sizeof(Key) - 1));
    return (Key)(k ^ (sign & Limits<Key>::greatest));
  }
  static GPR_METHOD Key key(T x) { return flip(copy_bits<Key>(x)); }
  static GPR_METHOD T value(Key k) { return copy_bits<T>(flip(k)); }
  static GPR_METHOD bool poisoned(Key low, Key high) {
    const Key infinity = (Key)Format<T>::infinity();
    return high > infinity || low < (Key)~infinity;
  }
  static GPR_METHOD T poison() { return quiet_nan<T>(); }
};
template <class T> struct Order : OrderOf<T, Traits<T>::kind> {};

GPR_CLOSE
