/* Law 1: a sum of floating-point numbers as an integer.
 *
 * Every finite double is an integer multiple of 2^-1074. An Exact is such an integer, in 32-bit
 * digits held in 64-bit words so that additions need no carry and any order of them gives the same
 * words. What makes it fast are doubles that catch a batch of numbers without error and say so, or
 * are thrown away (cpu/twofold.h, gpu/windows.cuh, gpu/pair.cuh). Idea: error-free extraction
 * (Rump, Ogita, Oishi, "Accurate floating-point summation", 2008) into a long accumulator
 * (Kulisch). Written once for both sides; compile without contraction, without fast-math. */
#pragma once

#include "error_free.h"
#include "round.h"

GPR_OPEN

/* --- the long accumulator -------------------------------------------------------------------- */

enum { GPR_BOTTOM = -1074 }; /* the exponent of digit 0: the last bit of the smallest subnormal */
enum { GPR_DIGITS = 72 };    /* 2^1024 × 2^63 elements ends in digit 67 */

enum { GPR_MET = 1, GPR_OTHER = 2 }; /* an element; an element that is not -0.0 */

struct Exact {
  int64_t digit[GPR_DIGITS];
  uint32_t special; /* NaN, +inf and -inf met, as bits */
  uint32_t pending; /* deposits since the last carry: a word holds 2^31 of them */
  uint32_t signs;   /* GPR_MET, GPR_OTHER: a zero is -0.0 where all that was met is -0.0 */
  uint32_t unused;
};

/* The three digits that `value`·2^exponent adds to, the first at index `at`. */
struct Deposit {
  int at;
  int64_t low, middle, high;
};

/* bit: the exponent above that of digit 0. */
GPR_FN Deposit split_at(int64_t value, int bit) {
  const int shift = bit & 31;
  const uint64_t below = (uint64_t)value << shift;
  Deposit d;
  d.at = bit >> 5;
  d.low = (int64_t)(below & 0xffffffffu);
  d.middle = (int64_t)(below >> 32);
  d.high = (value >> 1) >> (63 - shift);
  return d;
}
GPR_FN Deposit split(int64_t value, int exponent) { return split_at(value, exponent - GPR_BOTTOM); }

/* Of an Exact, or of what has digits like it. */
template <class A> GPR_FN void carry(A &a) {
  for (int i = 0; i + 1 < (int)(sizeof a.digit / sizeof *a.digit); i++) {
    a.digit[i + 1] += a.digit[i] >> 32;
    a.digit[i] &= 0xffffffff;
  }
  a.pending = 1;
}
template <class A> GPR_FN void deposit_at(A &a, int64_t value, int bit) {
  const Deposit d = split_at(value, bit);
  a.digit[d.at] += d.low;
  a.digit[d.at + 1] += d.middle;
  a.digit[d.at + 2] += d.high;
  if (++a.pending >= 0x40000000u) carry(a);
}
GPR_FN void deposit(Exact &e, int64_t value, int exponent) {
  deposit_at(e, value, exponent - GPR_BOTTOM);
}

/* A sum of many, of 128 bits. */
template <class A> GPR_FN void deposit_wide(A &a, __int128 value, int exponent) {
  deposit(a, (int64_t)((uint64_t)value & (UINT64_MAX >> 2)), exponent);
  deposit(a, (int64_t)(value >> 62), exponent + 62);
}

/* A double as mantissa·2^exponent; 0 for what is not finite, which goes to `special`. */
GPR_FN int64_t mantissa(double x, int &exponent, uint32_t &special) {
  const uint64_t b = bits(x);
  const int field = (int)(b >> 52) & 0x7ff;
  int64_t m = (int64_t)(b & 0xfffffffffffffull);
  if (field == 0x7ff) {
    special |= m ? GPR_NAN : b >> 63 ? GPR_MINUS_INF : GPR_PLUS_INF;
    m = 0;
    exponent = 0;
    return 0;
  }
  if (field) m |= 1ll << 52;
  exponent = (field ? field : 1) - 1075;
  return b >> 63 ? -m : m;
}

/* The slow and certain road of one number: any exponent, any sign, NaN and infinities. */
GPR_FN void scatter(Exact &e, double x) {
  int exponent;
  const int64_t m = mantissa(x, exponent, e.special);
  if (m) deposit(e, m, exponent);
}

GPR_SHARED void merge(Exact &into, const Exact &from) {
  for (int i = 0; i < GPR_DIGITS; i++) into.digit[i] += from.digit[i];
  into.special |= from.special;
  into.signs |= from.signs;
  into.pending += from.pending;
  if (into.pending >= 0x40000000u) carry(into);
}

/* --- the window ------------------------------------------------------------------------------ */

/* HEADROOM = 5: a batch is 32 numbers a lane. Each doubling of the batch costs one of the 46 bits
 * that the first level keeps below 2^top, and two of the 93 that both keep. */
enum { GPR_HEADROOM = 5, GPR_BATCH = 1 << GPR_HEADROOM };
/* Beyond this a start is no normal double; such numbers take the slow road. */
enum { GPR_TOP_MAX = 1010 };

GPR_FN double power_of_two(int exponent) { return from_bits((uint64_t)(exponent + 1023) << 52); }

/* Adds x to the first level's sum; what that does not hold is the result. */
template <class D> GPR_FN D rest_of(D &sum, const D x) {
  const D t = sum + x;
  const D rest = minus(x, minus(t, sum)); /* exact while |x| is at most |sum| */
  sum = t;
  return rest;
}

/* Within one binade the bits of a double are its count of units plus a constant. A batch adds less
 * than 2^51 units, so an int64_t holds 2^12 batches. */
enum { GPR_BATCHES_MAX = 1 << 12 };

/* --- rounding: once, to nearest even --------------------------------------------------------- */

/* The sum divided by n, rounded once into T. n = 0 (an empty mean) is NaN. */
template <class T> GPR_CALL T round_exact(const Exact &e, uint64_t n) {
  T special;
  if (n == 0) return quiet_nan<T>();
  if (round_special(e.special, &special)) return special;
  uint64_t word[GPR_DIGITS / 2];
  int64_t rest = 0; /* of the digits below */
  for (int i = 0; i < GPR_DIGITS; i += 2) {
    const int64_t low = e.digit[i] + rest, high = e.digit[i + 1] + (low >> 32);
    word[i / 2] = (uint32_t)low | (uint64_t)high << 32;
    rest = high >> 32;
  }
  bool negative;
  const Leading sum = leading_of(word, GPR_DIGITS / 2, GPR_BOTTOM, negative);
  if (!sum.bits) return e.signs == GPR_MET ? minus_zero<T>() : Format<T>::make(0);
  return round_leading<T>(over(sum, n), negative);
}

GPR_CLOSE
