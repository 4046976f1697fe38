/* A batch of numbers, which one thread adds to a sum by the quickest way that loses nothing. */
#pragma once

#include "../core/exact.h"
#include "../core/fold.h"
#include "pair.cuh"

GPR_OPEN

/* --- windows ---------------------------------------------------------------------------------- */

GPR_CONSTEXPR int log2_up(int n) {
  int h = 0;
  while (1 << h < n) h++;
  return h;
}
/* 1.5·2^k: sums of both signs up to 2^(k-1) stay in its binade, whose unit is 2^(k-52). */
GPR_FN double window_start(int k) {
  return from_bits((uint64_t)((uint32_t)(k + 1023) << 20 | 0x80000u) << 32);
}
/* --- a batch of floats ------------------------------------------------------------------------ */

/* As log2_up(). */
GPR_DEVICE int bits_below(int n) { return n > 1 ? GPR_WARP - __clz(n - 1) : 0; }
/* Twice the bits less one, which are greatest of zeros. */
GPR_DEVICE uint32_t size_key(float x) { return 2 * bits(x) - 1; }

/* How large and how small some floats are. */
struct FloatSizes {
  float most = 0;
  uint32_t least = 0xffffffffu; /* of the keys */
  GPR_DEVICE void see(float x) {
    const uint32_t key = size_key(x);
    most = larger_or_nan(most, x);
    least = least < key ? least : key;
  }
  GPR_DEVICE bool is_nan() const { return most != most; }
};
/* Plain additions in double, exact if the exponents lie close enough; N additions at most. */
template <int PRECISION, int N> struct Batch : FloatSizes {
  static constexpr int headroom = N <= 8 ? 3 : log2_up(N);
  static_assert(N <= 64, "");
  double sum = -0.0;
  GPR_DEVICE void add(float x) {
    see(x);
    sum += (double)x;
  }
  /* And those of another lane. */
  GPR_DEVICE void see_lane(int mask) {
    most = larger_or_nan(most, shuffle_xor(most, mask));
    least = gpr::least(least, shuffle_xor(least, mask));
  }
  GPR_DEVICE void join(int mask) {
    see_lane(mask);
    sum += shuffle_xor(sum, mask);
  }
  /* 2^top is above all of them. */
  GPR_DEVICE int top() const { return (int)(bits(most) >> 23 & 0xff) - 126; }
  /* Whether so many bits hold all: from the greatest one's first to the least one's last. */
  GPR_DEVICE bool has_bits(int count) const {
    const int high = (int)(bits(most) >> 23 & 0xff), low = (int)((least >> 1) >> 23);
    return high != 255 && high - (low ? low : 1) + PRECISION <= count;
  }
  /* Whether sum is exact, of so many times as many numbers as a power of two says. */
  GPR_DEVICE bool fine(int doubled = 0) const { return has_bits(53 - headroom - doubled); }
  /* The same of no more than n numbers. */
  GPR_DEVICE bool fine_of(int n) const { return has_bits(53 - bits_below(n)); }
  /* Whether there is an infinity or NaN. */
  GPR_DEVICE bool is_special() const { return most - most != 0; }
};

/* Of float16, which are multiples of 2^-24 below 2^16, any 2^13 are exact. */
template <int N> struct Batch<Format<float16>::precision, N> {
  double sum = -0.0;
  GPR_DEVICE void add(float x) { sum += (double)x; }
  GPR_DEVICE void join(int mask) { sum += shuffle_xor(sum, mask); }
  GPR_DEVICE bool fine(int = 0) const { return sum - sum == 0; }
  GPR_DEVICE bool fine_of(int) const { return fine(); }
  GPR_DEVICE bool is_nan() const { return sum != sum; }
  GPR_DEVICE bool is_special() const { return !is_finite(sum); }
};

/* --- bfloat16 two by two ---------------------------------------------------------------------- */

/* A multiprocessor has units for the conversion of one of two at the speed of memory; the other one
 * becomes a double that is 2^-896 of it by a shift and a mask, which leave the exponent its own
 * bias. A key is a magnitude less one below a top bit that zero has not. */
struct HalfPairs {
  enum { LESS = 1023 - 127 };
  double sum[2];
  uint32_t most = 0, least = 0x7fff7fffu;
  GPR_DEVICE HalfPairs(double low, double high) : sum{low, high} {}
  GPR_DEVICE void add(uint32_t pair) {
    const uint32_t key = (pair | 0x80008000u) - 0x00010001u;
    sum[0] += (double)__uint_as_float(pair << 16);
    sum[1] += __hiloint2double((int)pair >> 3 & (int)0x8fffe000, 0);
    most = __vmaxu2(most, key);
    least = __vmins2(least, key);
  }
  /* The greatest magnitude, and the least that is not zero, or zero. */
  GPR_DEVICE int most_of() const { return greatest(magnitude(most), magnitude(most >> 16)); }
  GPR_DEVICE int least_of() const {
    const uint32_t a = magnitude(least), b = magnitude(least >> 16);
    return (int)gpr::least(a - 1, b - 1) + 1;
  }
  static GPR_DEVICE int magnitude(uint32_t key) { return (int)(key & 0xffff) - 0x7fff; }
  template <int N> GPR_DEVICE auto batch() const {
    Batch<Format<bfloat16>::precision, N> all;
    all.sum = sum[0] + sum[1] * power_of_two(LESS);
    all.most = __uint_as_float((uint32_t)most_of() << 16);
    all.least = 2 * ((uint32_t)least_of() << 16) - 1;
    return all;
  }
};

/* --- to a sum --------------------------------------------------------------------------------- */

/* The compiler is apt to keep what is made of it for where it is seldom needed. */
GPR_DEVICE float copied(float x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+f"(x));
#endif
  return x;
}
GPR_DEVICE double copied(double x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+d"(x));
#endif
  return x;
}
/* Floats where a plain sum is not exact: in two windows of doubles, each of half of the bits that
 * their batch says they have. */
struct TwoWindows {
  double start[2], window[2];
  bool fit; /* whether they have no more */
  template <class B> GPR_DEVICE void open(const B &batch) {
    constexpr int h = B::headroom;
    start[0] = window[0] = window_start(batch.top() + h + 1);
    start[1] = window[1] = window_start(batch.top() + 2 * h + 1 - 52);
    fit = batch.has_bits(103 - 2 * h);
  }
  GPR_DEVICE void add(float x) { window[1] += rest_of(window[0], (double)x); }
  GPR_DEVICE double sum(int i) const { return window[i] - start[i]; }
};
/* Every EVERY-th of the numbers, or none. */
template <int EVERY, class Sum, int N, int PRECISION, int COUNT>
GPR_FN bool added_together(Sum &sum, const float (&x)[N], int first,
                           const Batch<PRECISION, COUNT> &batch) {
  TwoWindows windows;
  windows.open(batch);
  bool lost = !windows.fit;
  GPR_UNROLLED(int i = 0; i < N; i += EVERY) windows.add(copied(x[first + i]));
  add_to_all(sum, windows.sum(0), lost);
  add_to_all(sum, windows.sum(1), lost);
  return !lost;
}
template <int EVERY, class Sum, int N, int COUNT>
GPR_FN bool added_together(Sum &, const float (&)[N], int,
                           const Batch<Format<float16>::precision, COUNT> &) {
  return false; /* of infinities */
}
struct NoBatch {};
template <class X, class T, int N> struct BatchOf { typedef Batch<Format<T>::precision, N> type; };
template <class T, int N> struct BatchOf<double, T, N> { typedef NoBatch type; };
template <int EVERY, class Sum, int N>
GPR_FN bool added_together(Sum &sum, const double (&x)[N], int first, const NoBatch &) {
  bool lost = false;
  GPR_UNROLLED(int i = 0; i < N; i += EVERY) add_to_all(sum, x[first + i], lost);
  return !lost;
}
/* Floats by value, so that they, like a sum, stay in registers: by a reference 1927 rows of 52535
 * lognormal ones took 218 µs on an H200, and take 172. Doubles would need too many. */
template <class X, int N> struct Numbers { X x[N]; };
template <class X, int N> struct Passed { typedef const Numbers<X, N> &type; };
template <int N> struct Passed<float, N> { typedef const Numbers<float, N> type; };
/* One by one, and what is lost even so goes to `rest`. */
template <class X, int N, class Sum, class Rest>
__device__ __noinline__ Sum added_singly(Sum sum, typename Passed<X, N>::type each, Rest rest) {
  GPR_ROLLED(int i = 0; i < N && sum.hi == sum.hi; i++) {
    const X x = each.x[i];
    Sum p = sum;
    bool lost = false;
    add_to_all(p, x, lost);
    if (!lost)
      sum = p;
    else if (!are_finite(sum.hi, x))
      sum.hi += x;
    else
      add_rest(rest, x);
  }
  return sum;
}
/* Together, or one by one; if there are infinities, only those. */
template <class X, int N, class Sum, class B, class Rest>
__device__ __noinline__ Sum added(const Sum before, typename Passed<X, N>::type each, const B batch,
                                  Rest rest) {
  Sum sum = before;
  if constexpr (sizeof(X) == 4)
    if (batch.is_special()) {
      GPR_EACH(i, N)
        if (!is_finite(each.x[i])) sum.hi += each.x[i];
      return sum;
    }
  return added_together<1>(sum, each.x, 0, batch) ? sum : added_singly<X, N>(before, each, rest);
}

/* p is the sum and every EVERY-th of the numbers, of which T is the type in memory, if that is not
 * lost. Nothing but infinities matters to it any more after one, and nothing after a NaN. NEAR:
 * windows are inlined. */
template <class T, int N, int EVERY, bool NEAR, class Sum, class X, class B, class Rest>
GPR_DEVICE void settle(Sum &sum, const Sum &p, bool lost, const X (&x)[N], int first,
                       const B &batch, Rest rest) {
  if (!lost) {
    sum = p;
    return;
  }
  bool nan = false, special = false;
  if constexpr (sizeof(X) == 4)
    nan = batch.is_nan(), special = batch.is_special();
  else
    GPR_UNROLLED(int i = first; i < N; i += EVERY) nan |= x[i] != x[i], special |= !is_finite(x[i]);
  if (nan) {
    sum.hi = NAN;
  } else if (special || is_finite(sum.hi)) {
    /* Of 256 MiB of lognormal floats a whole array's kernel took 80.5 µs on an H200 by calls, and
     * takes 73.8. */
    constexpr bool is_near = NEAR && Same<T, float>::value;
    Sum q = sum;
    if (is_near && added_together<EVERY>(q, x, first, batch)) {
      sum = q;
      return;
    }
    constexpr int count = N / EVERY;
    Numbers<X, count> each; /* a copy, so that the others stay in registers */
    GPR_EACH(i, count) each.x[i] = copied(x[first + i * EVERY]);
    sum =
        is_near ? added_singly<X, count>(sum, each, rest) : added<X, count>(sum, each, batch, rest);
  }
}
template <class T, int N, int EVERY, bool NEAR, class Sum, class X, class B, class Rest>
GPR_DEVICE void take_batch(Sum &sum, const X (&x)[N], int first, const B &batch, Rest rest) {
  Sum p = sum;
  bool lost = !batch.fine();
  add(p, batch.sum, lost);
  settle<T, N, EVERY, NEAR>(sum, p, lost, x, first, batch, rest);
}
/* Every EVERY-th of the numbers to a sum in registers. */
template <class T, int N, int EVERY, bool NEAR = false, class Sum, class X, class Rest>
GPR_DEVICE void take(Sum &sum, const X (&x)[N], int first, Rest rest) {
  typename BatchOf<X, T, N / EVERY>::type batch;
  if constexpr (sizeof(X) == 4) {
    GPR_UNROLLED(int i = first; i < N; i += EVERY) batch.add(x[i]);
    take_batch<T, N, EVERY, NEAR>(sum, x, first, batch, rest);
  } else {
    Sum p = sum;
    bool lost = false;
    GPR_UNROLLED(int i = first; i < N; i += EVERY) add(p, x[i], lost);
    settle<T, N, EVERY, NEAR>(sum, p, lost, x, first, batch, rest);
  }
}
/* The same of N bfloat16, an even number. */
template <int N, bool NEAR, class Sum, class Rest>
GPR_DEVICE void take_pairs(Sum &sum, const bfloat16 (&x)[N], Rest rest) {
  HalfPairs pairs(-0.0, -0.0);
  float w[N];
  GPR_UNROLLED(int i = 0; i < N; i += 2) pairs.add((uint32_t)x[i + 1].bits << 16 | x[i].bits);
  GPR_EACH(i, N) w[i] = wide(x[i]);
  take_batch<bfloat16, N, 1, NEAR>(sum, w, 0, pairs.template batch<N>(), rest);
}

GPR_CLOSE
