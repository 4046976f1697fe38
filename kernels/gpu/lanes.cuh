/* What one thread keeps while it folds, and how it takes packets: element by element in general,
 * four or two elements an instruction where the dtype is small. */
#ifndef GPR_LANES_CUH
#define GPR_LANES_CUH

#include "../core/operators.h"
#include "packets.cuh"
#include "warp.cuh"

GPR_OPEN

/* state takes single elements too; add() takes U packets, of which packet u starts at index +
 * u·step; done() gives all of it. */
template <class F> struct Lane {
  typedef typename F::Element T;
  typename F::State state;
  __device__ Lane() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t index, int64_t step) {
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < Packet<T>::count; j++)
        F::add(state, v[u].element[j], index + u * step + j);
  }
  __device__ typename F::State done() { return state; }
};

template <class T> __device__ __forceinline__ uint32_t word(const Packet<T> &v, int i) {
  return i == 0 ? v.words.x : i == 1 ? v.words.y : i == 2 ? v.words.z : v.words.w;
}
template <class T, int U> __device__ __forceinline__ uint32_t word(const Packet<T> (&v)[U], int i) {
  return word(v[i / 4], i % 4);
}

/* Bytes of w by the selector's nibbles; 8 + n repeats the sign of byte n, which __byte_perm masks.
 */
__device__ __forceinline__ uint32_t permute(uint32_t w, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(result) : "r"(w), "r"(selector));
  return result;
}

/* The top bit of each byte that is not zero: adding 127 carries into it. */
__device__ __forceinline__ uint32_t true_bytes(uint32_t w) {
  return (((w & 0x7f7f7f7fu) + 0x7f7f7f7fu) | w) & 0x80808080u;
}

/* --- counting ----------------------------------------------------------------------------------
 */

template <class T, int WHAT> struct CountingBytes {
  typedef Counting<T, WHAT> F;
  typename F::State state;
  __device__ CountingBytes() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
    int trues = 0;
#pragma unroll
    for (int i = 0; i < 4 * U; i++)
      trues = dot4((int)(true_bytes(word(v, i)) >> 7), 0x01010101, trues);
    state.count += WHAT ? trues : 16 * U - trues;
  }
  __device__ typename F::State done() { return state; }
};
template <int WHAT> struct Lane<Counting<boolean, WHAT>> : CountingBytes<boolean, WHAT> {};
template <int WHAT> struct Lane<Counting<int8_t, WHAT>> : CountingBytes<int8_t, WHAT> {};
template <int WHAT> struct Lane<Counting<uint8_t, WHAT>> : CountingBytes<uint8_t, WHAT> {};

/* The top bit of each half that is not zero; of a floating-point number the sign does not count. */
template <bool SIGN> __device__ __forceinline__ uint32_t true_halves(uint32_t w) {
  const uint32_t carried = (w & 0x7fff7fffu) + 0x7fff7fffu;
  return (SIGN ? carried | w : carried) & 0x80008000u;
}
template <class T, int WHAT> struct CountingHalves {
  typedef Counting<T, WHAT> F;
  typename F::State state;
  __device__ CountingHalves() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
    uint32_t trues = 0; /* two counts */
#pragma unroll
    for (int i = 0; i < 4 * U; i++)
      trues += true_halves<Traits<T>::kind != KIND_FLOAT>(word(v, i)) >> 15;
    const int count = (int)((trues & 0xffff) + (trues >> 16));
    state.count += WHAT ? count : 8 * U - count;
  }
  __device__ typename F::State done() { return state; }
};
template <int WHAT> struct Lane<Counting<int16_t, WHAT>> : CountingHalves<int16_t, WHAT> {};
template <int WHAT> struct Lane<Counting<uint16_t, WHAT>> : CountingHalves<uint16_t, WHAT> {};
template <int WHAT> struct Lane<Counting<float16, WHAT>> : CountingHalves<float16, WHAT> {};
template <int WHAT> struct Lane<Counting<bfloat16, WHAT>> : CountingHalves<bfloat16, WHAT> {};

/* Any other type: 32-bit counts within a batch. */
template <class T, int WHAT> struct Lane<Counting<T, WHAT>> {
  typedef Counting<T, WHAT> F;
  typename F::State state;
  __device__ Lane() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
    int n = 0;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < Packet<T>::count; j++) n += is_true(v[u].element[j]) == (bool)WHAT;
    state.count += n;
  }
  __device__ typename F::State done() { return state; }
};

/* --- integer sums ------------------------------------------------------------------------------
 */

/* The sum of a batch, exact in 32 bits for elements of one and two bytes and in 64 for others. */
template <int U> __device__ __forceinline__ int64_t batch_sum(const Packet<int8_t> (&v)[U]) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4 * U; i++) sum = dot4((int)word(v, i), 0x01010101, sum);
  return sum;
}
template <int U> __device__ __forceinline__ int64_t batch_sum(const Packet<uint8_t> (&v)[U]) {
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < 4 * U; i++) sum = dot4(word(v, i), 0x01010101u, sum);
  return sum;
}
template <int U> __device__ __forceinline__ int64_t batch_sum(const Packet<boolean> (&v)[U]) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4 * U; i++) sum = dot4((int)(true_bytes(word(v, i)) >> 7), 0x01010101, sum);
  return sum;
}
template <int U> __device__ __forceinline__ int64_t batch_sum(const Packet<int16_t> (&v)[U]) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4 * U; i++) sum = dot2_low((int)word(v, i), 0x0101, sum);
  return sum;
}
template <int U> __device__ __forceinline__ int64_t batch_sum(const Packet<uint16_t> (&v)[U]) {
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < 4 * U; i++) sum = dot2_low(word(v, i), 0x0101u, sum);
  return sum;
}
template <int U> __device__ __forceinline__ int64_t batch_sum(const Packet<int32_t> (&v)[U]) {
  int64_t sum = 0;
#pragma unroll
  for (int i = 0; i < 4 * U; i++) sum += (int)word(v, i);
  return sum;
}
template <int U> __device__ __forceinline__ int64_t batch_sum(const Packet<uint32_t> (&v)[U]) {
  int64_t sum = 0;
#pragma unroll
  for (int i = 0; i < 4 * U; i++) sum += word(v, i);
  return sum;
}

template <class T> struct BatchSums {
  typedef IntegerSum<T> F;
  typename F::State state;
  __device__ BatchSums() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
    state.sum += (uint64_t)batch_sum(v);
  }
  __device__ typename F::State done() { return state; }
};
template <> struct Lane<IntegerSum<boolean>> : BatchSums<boolean> {};
template <> struct Lane<IntegerSum<int8_t>> : BatchSums<int8_t> {};
template <> struct Lane<IntegerSum<uint8_t>> : BatchSums<uint8_t> {};
template <> struct Lane<IntegerSum<int16_t>> : BatchSums<int16_t> {};
template <> struct Lane<IntegerSum<uint16_t>> : BatchSums<uint16_t> {};
template <> struct Lane<IntegerSum<int32_t>> : BatchSums<int32_t> {};
template <> struct Lane<IntegerSum<uint32_t>> : BatchSums<uint32_t> {};

/* A thread's share of elements up to 32 bits never fills 64. */
template <class T> struct LongSums {
  typedef LongSum<T> F;
  typename F::State state;
  int64_t sum;
  __device__ LongSums() : sum(0) { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
    sum += batch_sum(v);
  }
  __device__ typename F::State done() {
    F::merge(state, typename F::State{(uint64_t)sum, sum >> 63});
    return state;
  }
};
template <> struct Lane<LongSum<boolean>> : LongSums<boolean> {};
template <> struct Lane<LongSum<int8_t>> : LongSums<int8_t> {};
template <> struct Lane<LongSum<uint8_t>> : LongSums<uint8_t> {};
template <> struct Lane<LongSum<int16_t>> : LongSums<int16_t> {};
template <> struct Lane<LongSum<uint16_t>> : LongSums<uint16_t> {};
template <> struct Lane<LongSum<int32_t>> : LongSums<int32_t> {};
template <> struct Lane<LongSum<uint32_t>> : LongSums<uint32_t> {};

/* --- integer products --------------------------------------------------------------------------
 */

/* An element in 32 bits; a signed byte by one permutation that repeats its sign. */
template <class Half, class T> __device__ __forceinline__ Half half(const Packet<T> &v, int i) {
  return (Half)v.element[i];
}
template <>
__device__ __forceinline__ int32_t half<int32_t, int8_t>(const Packet<int8_t> &v, int i) {
  const uint32_t w = i < 4 ? v.words.x : i < 8 ? v.words.y : i < 12 ? v.words.z : v.words.w;
  return (int32_t)permute(w, 0x8880u + 0x1111u * (i % 4));
}

/* Four products of bytes, or two of 16 bits, fit 32 bits: one long multiplication for them. */
template <class T, class Half> struct NarrowProducts {
  typedef IntegerProduct<T> F;
  typename F::State state;
  __device__ NarrowProducts() { F::open(state); }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
    constexpr int group = 4 / sizeof(T);
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
      for (int j = 0; j < Packet<T>::count; j += group) {
        Half product = 1;
#pragma unroll
        for (int k = 0; k < group; k++) product *= half<Half>(v[u], j + k);
        state.product *= (uint64_t)product;
      }
  }
  __device__ typename F::State done() { return state; }
};
template <> struct Lane<IntegerProduct<int8_t>> : NarrowProducts<int8_t, int32_t> {};
template <> struct Lane<IntegerProduct<uint8_t>> : NarrowProducts<uint8_t, uint32_t> {};
template <> struct Lane<IntegerProduct<int16_t>> : NarrowProducts<int16_t, int32_t> {};
template <> struct Lane<IntegerProduct<uint16_t>> : NarrowProducts<uint16_t, uint32_t> {};
template <> struct Lane<IntegerProduct<boolean>> {
  typedef IntegerProduct<boolean> F;
  F::State state;
  uint32_t all;
  __device__ Lane() : all(0x80808080u) { F::open(state); }
  template <int U> __device__ void add(const Packet<boolean> (&v)[U], int64_t, int64_t) {
#pragma unroll
    for (int i = 0; i < 4 * U; i++) all &= true_bytes(word(v, i));
  }
  __device__ F::State done() {
    state.product *= all == 0x80808080u;
    return state;
  }
};

/* --- bitwise -----------------------------------------------------------------------------------
 */

/* Words of any elements, taken apart at the end; booleans as their true bytes. */
template <class T, template <class> class Op> struct Lane<Bitwise<T, Op>> {
  typedef Bitwise<T, Op> F;
  typedef Op<uint32_t> Words;
  typename F::State state;
  Packet<T> sum;
  __device__ Lane() {
    F::open(state);
    sum.words.x = sum.words.y = sum.words.z = sum.words.w = Words::identity();
  }
  static __device__ uint32_t lift(uint32_t w) {
    return Traits<T>::kind == KIND_BOOL ? true_bytes(w) : w;
  }
  template <int U> __device__ void add(const Packet<T> (&v)[U], int64_t, int64_t) {
#pragma unroll
    for (int u = 0; u < U; u++) {
      sum.words.x = Words::combine(sum.words.x, lift(v[u].words.x));
      sum.words.y = Words::combine(sum.words.y, lift(v[u].words.y));
      sum.words.z = Words::combine(sum.words.z, lift(v[u].words.z));
      sum.words.w = Words::combine(sum.words.w, lift(v[u].words.w));
    }
  }
  __device__ typename F::State done() {
#pragma unroll
    for (int j = 0; j < Packet<T>::count; j++) F::add(state, sum.element[j], 0);
    return state;
  }
};

GPR_CLOSE
#endif
