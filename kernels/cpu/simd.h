/* Vectors of lanes: all that asks for instructions by their names. */
#pragma once

#include "../abi/rows.h"
#include "../core/types.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Of a lambda that is called in a loop in more places than one. */
#define GPR_INLINED __attribute__((always_inline))

GPR_OPEN

#if defined(__AVX512F__)
enum { GPR_VECTOR = 64 };
#elif defined(__AVX2__)
enum { GPR_VECTOR = 32 };
#else
enum { GPR_VECTOR = 16 };
#endif
enum { WIDTH = GPR_VECTOR / 8 };
/* Of twofold sums two vectors at a time: for more, 16 registers do not do. */
enum { STEP = 2 * WIDTH };

typedef double Doubles __attribute__((vector_size(GPR_VECTOR)));
typedef uint64_t Words __attribute__((vector_size(GPR_VECTOR)));
typedef int64_t Counts __attribute__((vector_size(GPR_VECTOR)));
typedef float Floats __attribute__((vector_size(GPR_VECTOR / 2)));
typedef uint32_t Words32 __attribute__((vector_size(GPR_VECTOR)));

GPR_FN Words bits(Doubles x) { return (Words)x; }

/* By one instruction that rounds once, where there is one: fmadd, fmsub or fnmadd. */
#if defined(__AVX512F__)
#define GPR_FUSED(how, a, b, c) \
  (Doubles) _mm512_##how##_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#elif defined(__AVX2__) && defined(__FMA__)
#define GPR_FUSED(how, a, b, c) \
  (Doubles) _mm256_##how##_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#endif

/* a - b as one fused multiply-add, 1 times b exact: where additions and multiply-adds go to pipes
 * of their own (Zen 4), half of each took exact sums of float64 from 55 to 73 GB/s. The compiler
 * must not see that it is 1. */
GPR_FN Doubles minus(Doubles a, Doubles b) {
#ifdef GPR_FUSED
  Doubles one = 1.0 - Doubles{};
  asm("" : "+v"(one));
  return GPR_FUSED(fnmadd, one, b, a);
#else
  return a - b;
#endif
}
/* a + b·c of an exact product. */
GPR_FN Doubles add_product(Doubles a, Doubles b, Doubles c) {
#ifdef GPR_FUSED
  return GPR_FUSED(fmadd, b, c, a);
#else
  return a + GPR_PRODUCT(b, c);
#endif
}

GPR_CLOSE

#include "../core/exact.h" /* its templates want bits() and minus() of a vector */

GPR_OPEN

GPR_FN void prefetch(const void *x) { __builtin_prefetch((const char *)x + gpr_prefetch_ahead); }

GPR_FN Doubles load(const double *x) {
  Doubles v;
  memcpy(&v, x, sizeof v);
#ifdef __AVX512F__
  asm("" : "+v"(v)); /* once: GCC would load it again for each use, and Zen 4 loads one a cycle */
#endif
  return v;
}
/* Not by __builtin_convertvector: GCC 12's goes by halves and through memory. 2^22 floats in
 * columns of 64 took 2.0 ms with it on Zen 3, and 0.7 so. */
GPR_FN Doubles load(const float *x) {
#if defined(__AVX512F__) /* the unmasked one warns */
  return (Doubles)_mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(x));
#elif defined(__AVX2__)
  return (Doubles)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
  Floats v;
  memcpy(&v, x, sizeof v);
  return __builtin_convertvector(v, Doubles);
#endif
}

/* What comes some lanes later, into the second cache: the hardware does not follow so many rows,
 * and in the first one those of a power of two apart would push each other out. On Zen 4, 32 MiB of
 * doubles in 8 rows at a time by one thread: 17 to 20 GB/s without, 14 to 17 into the first, 23 to
 * 27 so. */
template <int REALS, class R> GPR_FN void prefetch_later(const R *at, int64_t ahead = 0) {
  const uintptr_t later = (uintptr_t)at + (uintptr_t)ahead * sizeof *at;
  for (uintptr_t byte = 0; byte < REALS * sizeof *at; byte += 64)
    __builtin_prefetch((const void *)(later + byte), 0, 2);
}

/* Whether folds of a few rows side by side do so, and those of panels, which hardware follows
 * better. On Zen 3 the greatest of (61, 23716) doubles, which the third cache holds, took 389 us
 * with it and 315 without, of (4000, 4000) floats, which it does not, 3.0 ms and 4.9. On a Xeon
 * sums of floats took 94 us in place of 145 of (60, 10494), 735 in place of 955 of (4096, 1024),
 * and 168 in place of 150 of (1000, 1000). */
template <class R> GPR_FN bool prefetches_columns() {
  return gpr_prefetch_columns || sizeof(R) == sizeof(float);
}
template <class R> GPR_FN bool prefetches_panels() {
  return prefetches_columns<R>() && (gpr_is_far || !gpr_prefetch_columns);
}

/* One bit a lane of a vector of 0 and -1. */
template <class V> GPR_FN uint64_t mask_of(V lanes) {
  uint64_t mask = 0;
#ifdef __AVX2__
  constexpr bool words = sizeof lanes[0] == 8;
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if constexpr (sizeof(V) == 64)
    return words ? _mm512_movepi64_mask((__m512i)lanes) : _mm512_movepi32_mask((__m512i)lanes);
#endif
#ifdef __AVX2__
  if constexpr (sizeof(V) == 32)
    return (uint32_t)(words ? _mm256_movemask_pd((__m256d)lanes)
                            : _mm256_movemask_ps((__m256)lanes));
  if constexpr (sizeof(V) == 16)
    return (uint32_t)(words ? _mm_movemask_pd((__m128d)lanes) : _mm_movemask_ps((__m128)lanes));
#endif
  for (unsigned l = 0; l < sizeof lanes / sizeof lanes[0]; l++)
    mask |= (uint64_t)(lanes[l] != 0) << l;
  return mask;
}

/* One bit a lane that is less than 0. */
GPR_FN uint64_t signs_of(Words lanes) {
#if defined(__AVX512DQ__) || (defined(__AVX2__) && !defined(__AVX512F__))
  return mask_of(lanes);
#else
  return mask_of((Words)((Counts)lanes < 0));
#endif
}

/* The first lane of 0 and -1 that is not 0, or how many there are. */
template <class V> GPR_FN int64_t first_lane(V lanes) {
  constexpr int64_t n = sizeof lanes / sizeof lanes[0];
#if defined(__AVX512BW__)
  const uint64_t found = _mm512_movepi8_mask((__m512i)lanes);
  return found ? __builtin_ctzll(found) / (int64_t)sizeof lanes[0] : n;
#elif defined(__AVX2__)
  const uint32_t found = (uint32_t)_mm256_movemask_epi8((__m256i)lanes);
  return found ? __builtin_ctz(found) / (int64_t)sizeof lanes[0] : n;
#else
  int64_t l = 0;
  while (l < n && !lanes[l]) l++;
  return l;
#endif
}

GPR_FN double size_of(double x) { return from_bits(bits(x) << 1 >> 1); }
GPR_FN Doubles size_of(Doubles x) { return (Doubles)(bits(x) << 1 >> 1); }
GPR_FN Doubles choose(Words which, Doubles a, Doubles b) {
  return (Doubles)((which & bits(a)) | (~which & bits(b)));
}

GPR_FN Doubles root_of(const Doubles x) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
#else
  Doubles root = x; /* gcc warns of what is filled lane by lane */
  for (int l = 0; l < WIDTH; l++) root[l] = __builtin_sqrt(x[l]);
  return root;
#endif
}

/* The greater magnitude, without NaN in b, but that a signalling one is NaN with AVX-512; and the
 * smaller one, of NaN either. */
GPR_FN Doubles greater_size(const Doubles a, const Doubles b) {
#if defined(__AVX512DQ__) /* the unmasked one warns */
  return (Doubles)_mm512_maskz_range_pd(0xff, (__m512d)a, (__m512d)b, 11);
#elif defined(__AVX2__)
  return (Doubles)_mm256_max_pd((__m256d)size_of(b), (__m256d)a);
#else
  return choose((Words)(size_of(b) > a), size_of(b), a);
#endif
}
GPR_FN Doubles smaller_size(const Doubles a, const Doubles b) {
#if defined(__AVX512DQ__)
  return (Doubles)_mm512_maskz_range_pd(0xff, (__m512d)a, (__m512d)b, 10);
#elif defined(__AVX2__)
  return (Doubles)_mm256_min_pd((__m256d)a, (__m256d)size_of(b));
#else
  return choose((Words)(size_of(b) < a), size_of(b), a);
#endif
}

/* The same, but a where b is zero. */
GPR_FN Doubles smaller_but_zero(const Doubles a, const Doubles b) {
#if defined(__AVX512DQ__)
  const __mmask8 is = _mm512_cmp_pd_mask((__m512d)b, (__m512d)Doubles{}, _CMP_NEQ_UQ);
  return (Doubles)_mm512_mask_range_pd((__m512d)a, is, (__m512d)a, (__m512d)b, 10);
#else
  const Words none = (Words)(b == 0) & bits(__builtin_inf() - Doubles{});
  return smaller_size(a, (Doubles)(bits(b) | none));
#endif
}

/* Vectors rounded to elements. */
GPR_FN void round_lanes(const Doubles x, double *to) { memcpy(to, &x, sizeof x); }
GPR_FN void round_lanes(const Doubles x, float *to) {
#if defined(__AVX512F__) /* the unmasked one warns */
  _mm256_storeu_ps(to, _mm512_maskz_cvtpd_ps(0xff, (__m512d)x));
#elif defined(__AVX2__)
  _mm_storeu_ps(to, _mm256_cvtpd_ps((__m256d)x));
#else
  for (int l = 0; l < WIDTH; l++) to[l] = (float)x[l];
#endif
}

/* A bit for each byte of a vector that is not zero. */
GPR_FN uint64_t kept_bits(const uint8_t *keep) {
#if defined(__AVX512BW__)
  const __m512i k = _mm512_loadu_si512(keep);
  return _mm512_test_epi8_mask(k, k);
#elif defined(__AVX2__)
  const __m256i k = _mm256_loadu_si256((const __m256i *)(const void *)keep);
  return (uint32_t)~_mm256_movemask_epi8(_mm256_cmpeq_epi8(k, __m256i{}));
#else
  uint64_t some = 0;
  for (int i = 0; i < GPR_VECTOR; i++) some |= (uint64_t)(keep[i] != 0) << i;
  return some;
#endif
}
/* A vector of those that count, and `other` for the rest, of which nothing is read where there are
 * instructions for that. */
template <class W, class V>
GPR_FN V load_kept(const char *x, const uint8_t *keep, uint64_t bits, const V other) {
  enum { EACH = sizeof(V) / sizeof(W) };
#if defined(__AVX512BW__)
  if constexpr (sizeof(W) == 8)
    return (V)_mm512_mask_loadu_epi64((__m512i)other, (__mmask8)bits, x);
  if constexpr (sizeof(W) == 4)
    return (V)_mm512_mask_loadu_epi32((__m512i)other, (__mmask16)bits, x);
#endif
  typedef uint8_t Kept __attribute__((vector_size(EACH)));
  Kept k;
  V v;
  memcpy(&k, keep, sizeof k);
  memcpy(&v, x, sizeof v);
  (void)bits;
  return other ^ ((v ^ other) & __builtin_convertvector(k != 0, V));
}

template <class H> GPR_FN void widen_all(const H *from, float *to, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = widen(from[i]);
}
GPR_FN void widen_all(const float16 *from, float *to, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8) {
    __m128i half;
    memcpy(&half, from + i, sizeof half);
    const __m256 single = _mm256_cvtph_ps(half);
    memcpy(to + i, &single, sizeof single);
  }
#endif
  for (; i < n; i++) to[i] = widen(from[i]);
}

#if defined(__F16C__) && defined(__AVX2__)
GPR_FN void narrow_eight(const float *from, float16 *to) {
  const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from), 0);
  memcpy(to, &half, sizeof half);
}
#endif

template <class H, class R> GPR_FN void copy_wide(const H *from, R *to, int64_t n) {
  if constexpr (sizeof *from == sizeof *to)
    memcpy(to, from, (size_t)n * sizeof *to);
  else
    widen_all(from, to, n);
}

GPR_CLOSE
