/* Elements in any step, as columns of a tile. */
#ifndef GPR_TILES_H
#define GPR_TILES_H

#include "exact_lanes.h"

GPR_OPEN

/* Calls take(i, the i-th of n elements' address). Later compilers than GCC 12 would gather them by
 * one instruction, which takes ten times as long on Intel's processors since it was made safe. */
template <class Take> GPR_FN void walk(const char *at, int64_t step, int64_t n, const Take &take) {
  GPR_UNROLL(8)
  for (int64_t i = 0; i < n; i++, at += step) {
    asm("" : "+r"(at));
    take(i, at);
  }
}

/* Of at least two bytes. */
template <int BYTES> struct Signed { typedef int16_t type; };
template <> struct Signed<4> { typedef int32_t type; };
template <> struct Signed<8> { typedef int64_t type; };
template <> struct Signed<16> { typedef int64_t type; };
template <int BYTES> struct Unsigned { typedef uint64_t type; };
template <> struct Unsigned<1> { typedef uint8_t type; };
template <> struct Unsigned<2> { typedef uint16_t type; };
template <> struct Unsigned<4> { typedef uint32_t type; };

GPR_CLOSE
#endif
