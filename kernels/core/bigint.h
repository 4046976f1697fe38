/* Plain digit arithmetic on integers of some thousand bits, for what is finished exactly and once:
 * schoolbook methods (Knuth, The Art of Computer Programming 2, 4.3.1). Written once for both
 * sides. */
#pragma once

#include "round.h"

GPR_OPEN

/* A variance of float64 is (n·Σx² − (Σx)²), of 2^2111 · 2^63 in units of 2^-2148, at most. */
enum { GPR_BIG_DIGITS = 148 };

/* The sum of digit[i]·2^(32·(at + i)) for i below count; neither end is zero. The digits lie in
 * memory of the caller's, enough of them. Counts of another type than digits: by that the compiler
 * knows that a digit's store leaves them as they are. */
struct Big {
  int16_t at, count;
  uint32_t *digit;
};

/* Once in a kernel, and short: the compiler would inline and unroll each call of every kernel. */
#ifdef __CUDACC__
#define GPR_DIGIT_FN GPR_CALL
#else
#define GPR_DIGIT_FN GPR_FN
#endif

GPR_DIGIT_FN void trim(Big &x) {
  int zeros = 0;
  while (x.count && !x.digit[x.count - 1]) x.count--;
  while (zeros < x.count && !x.digit[zeros]) zeros++;
  if (!zeros) return;
  x.count -= zeros;
  x.at += zeros;
  GPR_ROLLED(int i = 0; i < x.count; i++) x.digit[i] = x.digit[i + zeros];
}

GPR_DIGIT_FN void copy(Big &to, const Big &from) {
  to.at = from.at;
  to.count = from.count;
  GPR_ROLLED(int i = 0; i < from.count; i++) to.digit[i] = from.digit[i];
}

GPR_DIGIT_FN void big_of(Big &x, uint128 value) {
  x.at = 0;
  GPR_ROLLED(x.count = 0; value; value >>= 32) x.digit[x.count++] = (uint32_t)value;
  trim(x);
}

/* The magnitude of digits in 64-bit words that were added to without a carry; whether it was
 * negative. */
GPR_DIGIT_FN bool big_of(Big &x, const int64_t *word, int count) {
  int64_t over = 0;
  int low = 0;
  while (low < count && !word[low]) low++;
  while (count > low && !word[count - 1]) count--;
  x.at = low;
  x.count = 0;
  GPR_ROLLED(int i = low; i < count || (over && over != -1); i++) {
    over += i < count ? word[i] : 0;
    x.digit[x.count++] = (uint32_t)over;
    over >>= 32;
  }
  const bool negative = over < 0;
  uint64_t borrow = negative;
  GPR_ROLLED(int i = 0; negative && i < x.count; i++) {
    borrow += (uint32_t)~x.digit[i];
    x.digit[i] = (uint32_t)borrow;
    borrow >>= 32;
  }
  if (borrow) x.digit[x.count++] = 1; /* minus a power of 2^32 */
  trim(x);
  return negative;
}

GPR_DIGIT_FN void multiply(Big &to, const Big &a, const Big &b) {
  const int rows = b.count ? a.count : 0, columns = b.count;
  const uint32_t *left = a.digit, *right = b.digit;
  uint32_t *digit = to.digit;
  to.at = a.at + b.at;
  to.count = rows ? rows + columns : 0;
  GPR_ROLLED(int i = 0; i < columns; i++) digit[i] = 0;
  GPR_ROLLED(int i = 0; i < rows; i++) {
    uint64_t over = 0;
    GPR_ROLLED(int j = 0; j < columns; j++) {
      over += (uint64_t)left[i] * right[j] + digit[i + j];
      digit[i + j] = (uint32_t)over;
      over >>= 32;
    }
    digit[i + columns] = (uint32_t)over;
  }
  trim(to);
}

/* x += 2^(32·shift)·y, or -= of what is not larger. */
GPR_DIGIT_FN void add(Big &x, const Big &y, bool minus = false) {
  if (!y.count) return;
  if (!x.count) x.at = y.at;
  const int low = least(x.at, y.at), gap = x.at - low;
  const int high = greatest(x.at + x.count, y.at + y.count) + 1;
  GPR_ROLLED(int i = x.count - 1; gap && i >= 0; i--) x.digit[i + gap] = x.digit[i];
  GPR_ROLLED(int i = 0; i < gap; i++) x.digit[i] = 0;
  GPR_ROLLED(int i = x.count + gap; i < high - low; i++) x.digit[i] = 0;
  x.at = low;
  x.count = high - low;
  int64_t over = 0;
  GPR_ROLLED(int i = y.at - low; i < x.count && (over || i < y.at - low + y.count); i++) {
    const int j = i - (y.at - low);
    const int64_t d = j < y.count ? (int64_t)y.digit[j] : 0;
    over += (int64_t)x.digit[i] + (minus ? -d : d);
    x.digit[i] = (uint32_t)over;
    over >>= 32;
  }
  trim(x);
}

/* --- quotients -------------------------------------------------------------------------------- */

/* Shifts up until the first bit of the last digit is set; by how far. */
GPR_DIGIT_FN int normalise(Big &x) {
  int shift = 0;
  while (!(x.digit[x.count - 1] << shift >> 31)) shift++;
  GPR_ROLLED(int i = x.count - 1; shift && i >= 0; i--)
    x.digit[i] = x.digit[i] << shift | (i ? x.digit[i - 1] >> (32 - shift) : 0);
  return shift;
}

enum { GPR_DIVISOR_DIGITS = 8 };

/* rest (of one digit more than d, and less than d·2^32) becomes the remainder; the digit of the
 * quotient. d is normalised. */
GPR_DIGIT_FN uint32_t divide_step(uint32_t *rest, const Big &d) {
  const int k = d.count;
  const uint64_t top = (uint64_t)rest[k] << 32 | rest[k - 1];
  uint64_t q = top / d.digit[k - 1];
  if (q >> 32) q = 0xffffffffu;
  uint64_t product = 0;
  int64_t over = 0;
  GPR_ROLLED(int i = 0; i <= k; i++) {
    product += i < k ? q * d.digit[i] : 0;
    over += (int64_t)rest[i] - (int64_t)(product & 0xffffffffu);
    rest[i] = (uint32_t)over;
    over >>= 32;
    product >>= 32;
  }
  while (over < 0) { /* the estimate was one or two too large */
    uint64_t sum = 0;
    GPR_ROLLED(int i = 0; i <= k; i++) {
      sum += (uint64_t)rest[i] + (i < k ? d.digit[i] : 0);
      rest[i] = (uint32_t)sum;
      sum >>= 32;
    }
    over += (int64_t)sum;
    q--;
  }
  return (uint32_t)q;
}

/* The leading bits of x / d; d > 0 has at most GPR_DIVISOR_DIGITS digits, and is changed. */
GPR_DIGIT_FN Leading divide(const Big &x, Big &d) {
  Leading result = {0, 0, false};
  if (!x.count) return result;
  const int shift = normalise(d);
  uint32_t rest[GPR_DIVISOR_DIGITS + 1] = {};
  uint32_t lower = 0; /* the digit below result.bits, when these are full */
  int i = x.count;
  GPR_ROLLED(bool full = false; !full;) {
    GPR_ROLLED(int j = d.count; j > 0; j--) rest[j] = rest[j - 1];
    i--;
    rest[0] = i >= 0 ? x.digit[i] : 0;
    const uint32_t q = divide_step(rest, d);
    full = result.bits >> 96 != 0;
    if (full)
      lower = q;
    else
      result.bits = result.bits << 32 | q;
  }
  const int zeros = leading_zeros(result.bits);
  result.exponent = 32 * (x.at + i + 1 - d.at) + shift - zeros;
  if (zeros) result.bits = result.bits << zeros | lower >> (32 - zeros);
  result.sticky = zeros ? (lower << zeros) != 0 : lower != 0;
  GPR_ROLLED(int j = 0; j < d.count; j++) result.sticky |= rest[j] != 0;
  GPR_ROLLED(i--; i >= 0; i--) result.sticky |= x.digit[i] != 0;
  return result;
}

GPR_CLOSE
