/* Results that are known to lie between two doubles: certain where both round to one. */
#ifndef GPR_BOUNDS_H
#define GPR_BOUNDS_H

#include "exact_lanes.h"

#include "../core/convert.h"

GPR_OPEN

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
template <class H> GPR_FN void round_lanes(const Doubles x, H *to) {
  double lane[WIDTH];
  memcpy(lane, &x, sizeof x);
  for (int l = 0; l < WIDTH; l++) to[l] = convert<H>(lane[l]);
}
#if defined(__F16C__) && defined(__AVX2__)
GPR_FN void round_lanes(const Doubles x, float16 *to) {
  alignas(GPR_VECTOR) float odd[8] = {};
  double lane[WIDTH];
  memcpy(lane, &x, sizeof x);
  for (int l = 0; l < WIDTH; l++) odd[l] = to_odd(lane[l]);
  const __m128i half = _mm256_cvtps_ph(_mm256_load_ps(odd), 0);
  memcpy(to, &half, WIDTH * sizeof *to);
}
#endif

/* To low and high rounded, of which the result is high; a bit a lane where they differ, if only in
 * the sign of a zero, or are NaN. */
template <class Part>
GPR_FN uint64_t round_bounds(const Doubles low, const Doubles high, Part *to) {
  const uint64_t opposite = mask_of((Words)((bits(low) ^ bits(high)) >> 63 != 0));
  Part other[WIDTH];
  round_lanes(low, other);
  round_lanes(high, to);
  if constexpr (sizeof(Part) >= sizeof(float)) {
    return opposite | mask_of(~(Words)(load((const Part *)other) == load((const Part *)to)));
  } else {
    uint64_t differ = opposite;
    for (int l = 0; l < WIDTH; l++) differ |= (uint64_t) !(wide(other[l]) == wide(to[l])) << l;
    return differ;
  }
}

GPR_CLOSE
#endif
