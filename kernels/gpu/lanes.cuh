/* What one thread keeps while it folds, and how it takes packets: element by element in general,
 * four or two elements an instruction where the dtype is small. */
#pragma once

#include "../core/operators.h"
#include "packets.cuh"
#include "warp.cuh"

GPR_OPEN

/* take() is of U packets, of which packet u starts at index + u·step, and one() of an element;
 * result() is all of it. keep(), which comes first, says where a state may lie whose parts are
 * indexed at run time. neutral: -0.0 changes nothing. */
template <class F> struct AnyLane {
  typedef typename F::Element T;
  static constexpr bool neutral = false;
  typename F::State state;
  __device__ AnyLane() { F::open(state); }
  GPR_DEVICE void keep(typename F::State *) {}
  GPR_DEVICE void one(T x, int64_t index) { F::add(state, x, index); }
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t index, int64_t step) {
    GPR_EACH(u, U)
      GPR_EACH(j, Packet<T>::count) F::add(state, v[u].element[j], index + u * step + j);
  }
  __device__ void result(typename F::State &s) { s = state; }
};

template <class F> struct Lane : AnyLane<F> {};

template <class T> GPR_DEVICE uint32_t word(const Packet<T> &v, int i) {
  return i == 0 ? v.words.x : i == 1 ? v.words.y : i == 2 ? v.words.z : v.words.w;
}
template <class T, int U> GPR_DEVICE uint32_t word(const Packet<T> (&v)[U], int i) {
  return word(v[i / 4], i % 4);
}

/* Which word numbers of a type are added up in. */
template <class T> struct Word : Either<Traits<T>::kind == KIND_UINT, uint32_t, int32_t> {};

/* Bytes of w by the selector's nibbles; 8 + n repeats byte n's sign, which __byte_perm masks. */
GPR_DEVICE uint32_t permute(uint32_t w, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(result) : "r"(w), "r"(selector));
  return result;
}

/* The top bit of each byte that is not zero: adding 127 carries into it. */
GPR_DEVICE uint32_t true_bytes(uint32_t w) {
  return (((w & 0x7f7f7f7fu) + 0x7f7f7f7fu) | w) & 0x80808080u;
}
/* The four as bits. */
GPR_DEVICE uint32_t bits_of_bytes(uint32_t w) { return ((true_bytes(w) >> 7) * 0x10204080u) >> 28; }

/* -0.0, which changes no sum, in place of what `valid` does not say. */
template <class T, int N, class Bits> GPR_DEVICE void neutralise(T (&x)[N], Bits valid) {
  GPR_EACH(i, N)
    if (!(valid >> i & 1)) x[i] = minus_zero<T>();
}

/* --- counting --------------------------------------------------------------------------------- */

/* The top bit of each half that is not zero; of a floating-point number the sign does not count. */
template <bool SIGN> GPR_DEVICE uint32_t true_halves(uint32_t w) {
  const uint32_t carried = (w & 0x7fff7fffu) + 0x7fff7fffu;
  return (SIGN ? carried | w : carried) & 0x80008000u;
}
/* How many elements of a batch are true. */
template <class T, int U> GPR_DEVICE int batch_trues(const Packet<T> (&v)[U]) {
  int trues = 0;
  if constexpr (sizeof(T) == 1) {
    GPR_EACH(i, 4 * U) trues = dot4((int)(true_bytes(word(v, i)) >> 7), 0x01010101, trues);
  } else if constexpr (sizeof(T) == 2) {
    uint32_t both = 0; /* two counts */
    GPR_EACH(i, 4 * U) both += true_halves<Traits<T>::kind != KIND_FLOAT>(word(v, i)) >> 15;
    trues = (int)((both & 0xffff) + (both >> 16));
  } else {
    GPR_EACH(i, U * Packet<T>::count)
      trues += is_true(v[i / Packet<T>::count].element[i % Packet<T>::count]);
  }
  return trues;
}
template <class T, int WHAT> struct Lane<Counting<T, WHAT>> : AnyLane<Counting<T, WHAT>> {
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    const int trues = batch_trues(v);
    this->state.count += WHAT ? trues : U * Packet<T>::count - trues;
  }
};

/* --- integer sums ----------------------------------------------------------------------------- */

/* The sum of a batch, exact in 32 bits for elements of one and two bytes and in 64 for others. */
template <class T, int U> GPR_DEVICE int64_t batch_sum(const Packet<T> (&v)[U]) {
  typedef typename Word<T>::type W;
  typename Either<sizeof(T) == 4, int64_t, W>::type sum = 0;
  GPR_EACH(i, 4 * U) {
    const W w = (W)word(v, i);
    if constexpr (Traits<T>::kind == KIND_BOOL)
      sum = dot4((int)(true_bytes(word(v, i)) >> 7), 0x01010101, sum);
    else if constexpr (sizeof(T) == 1)
      sum = dot4(w, (W)0x01010101, sum);
    else if constexpr (sizeof(T) == 2)
      sum = dot2_low(w, (W)0x0101, sum);
    else
      sum += w;
  }
  return sum;
}
template <class T> struct Lane<IntegerSum<T>> : AnyLane<IntegerSum<T>> {
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    if constexpr (sizeof(T) <= 4)
      this->state.sum += (uint64_t)batch_sum(v);
    else
      AnyLane<IntegerSum<T>>::take(v, 0, 0);
  }
};

/* A thread's share of elements up to 32 bits never fills 64. */
template <class T, bool = sizeof(T) <= 4> struct LongSums : AnyLane<LongSum<T>> {};
template <class T> struct LongSums<T, true> : AnyLane<LongSum<T>> {
  typedef LongSum<T> F;
  int64_t sum = 0;
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    sum += batch_sum(v);
  }
  __device__ void result(typename F::State &s) {
    s = this->state;
    F::merge(s, typename F::State{(uint64_t)sum, sum >> 63});
  }
};
template <class T> struct Lane<LongSum<T>> : LongSums<T> {};

/* --- integer products ------------------------------------------------------------------------- */

/* An element in 32 bits; a signed byte by one permutation that repeats its sign. */
template <class T> GPR_DEVICE typename Word<T>::type in_word(const Packet<T> &v, int i) {
  if constexpr (Same<T, int8_t>::value)
    return (int32_t)permute(word(v, i / 4), 0x8880u + 0x1111u * (i % 4));
  else
    return v.element[i];
}

/* Four products of bytes, or two of 16 bits, fit 32 bits: one long multiplication for them. */
template <class T, bool = sizeof(T) <= 2> struct Products : AnyLane<IntegerProduct<T>> {};
template <class T> struct Products<T, true> : AnyLane<IntegerProduct<T>> {
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    constexpr int group = 4 / sizeof(T);
    GPR_EACH(u, U)
      GPR_UNROLLED(int j = 0; j < Packet<T>::count; j += group) {
        typename Word<T>::type product = 1;
        GPR_EACH(k, group) product *= in_word(v[u], j + k);
        this->state.product *= (uint64_t)product;
      }
  }
};
template <class T> struct Lane<IntegerProduct<T>> : Products<T> {};
template <> struct Lane<IntegerProduct<boolean>> : AnyLane<IntegerProduct<boolean>> {
  uint32_t all = 0x80808080u;
  template <int U> __device__ void take(const Packet<boolean> (&v)[U], int64_t, int64_t) {
    GPR_EACH(i, 4 * U) all &= true_bytes(word(v, i));
  }
  __device__ void result(IntegerProduct<boolean>::State &s) {
    s.product = state.product * (all == 0x80808080u);
  }
};

/* --- bitwise ---------------------------------------------------------------------------------- */

/* Words of any elements, taken apart at the end; booleans as their true bytes. */
template <class T, template <class> class Op>
struct Lane<Bitwise<T, Op>> : AnyLane<Bitwise<T, Op>> {
  typedef Bitwise<T, Op> F;
  typedef Op<uint32_t> Words;
  Packet<T> sum;
  __device__ Lane() { sum.words.x = sum.words.y = sum.words.z = sum.words.w = Words::identity(); }
  static __device__ uint32_t lift(uint32_t w) {
    return Traits<T>::kind == KIND_BOOL ? true_bytes(w) : w;
  }
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    GPR_EACH(u, U) {
      sum.words.x = Words::combine(sum.words.x, lift(v[u].words.x));
      sum.words.y = Words::combine(sum.words.y, lift(v[u].words.y));
      sum.words.z = Words::combine(sum.words.z, lift(v[u].words.z));
      sum.words.w = Words::combine(sum.words.w, lift(v[u].words.w));
    }
  }
  __device__ void result(typename F::State &s) {
    s = this->state;
    GPR_EACH(j, Packet<T>::count) F::add(s, sum.element[j], 0);
  }
};

GPR_CLOSE
