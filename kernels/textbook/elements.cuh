/* What the textbook kernels fold: monoids, and operators that lift elements into them.
 *
 * A monoid M has an identity and a combine. An operator Op lifts an element into its monoid and
 * finishes a value of n elements into the result. The texts write 0 for the identity, + for the
 * combine, and have no end of the array within a block. */
#pragma once

#include "../abi/ladder_rows.h"
#include "../core/matrix.h"
#include "../core/operators.h"
#include "../core/portable.h"
#include "../core/types.h"
#include "../gpu/warp.cuh"

GPR_OPEN
namespace ladder {

template <class M> using Value = decltype(M::identity());
template <class Op> using ValueOf = Value<typename Op::Monoid>;

/* x + -0.0 is x, for both zeros. */
template <class V> struct Plus {
  static GPR_METHOD V identity() { return (V)-0.0; }
  static GPR_METHOD V combine(V a, V b) { return a + b; }
};
template <class V> struct Lower {
  static GPR_METHOD V identity() { return Limits<V>::greatest; }
  static GPR_METHOD V combine(V a, V b) { return least(a, b); }
};
template <class V> struct Higher {
  static GPR_METHOD V identity() { return Limits<V>::least; }
  static GPR_METHOD V combine(V a, V b) { return greatest(a, b); }
};

/* Sums and products of integers wrap around in 64 bits; those of floats are plain. */
template <class W> struct Unsigned { typedef W type; };
template <> struct Unsigned<int64_t> { typedef uint64_t type; };
template <class T, template <class> class M> struct Arithmetic {
  typedef T Element;
  typedef typename Traits<T>::Wide Result;
  typedef typename Unsigned<Result>::type Wide;
  typedef M<Wide> Monoid;
  static constexpr bool commutes = true;
  static GPR_METHOD Wide lift(T x) { return (Wide)wide(x); }
  static GPR_METHOD Result finish(Wide v, int64_t) {
    if constexpr (Traits<T>::kind == KIND_FLOAT) return plain_nan(v);
    return (Result)v;
  }
};
template <class T> struct Sum : Arithmetic<T, Plus> {
  typedef Arithmetic<T, Plus> A;
  static GPR_METHOD typename A::Result finish(typename A::Wide v, int64_t n) {
    return n ? A::finish(v, n) : 0;
  }
};
template <class T> struct Prod : Arithmetic<T, Times> {};

/* Integers that sort as the elements do; a NaN is the one that nothing is better than. */
template <class T, template <class> class M> struct Extremum {
  typedef T Element;
  typedef T Result;
  typedef typename Order<T>::Key Key;
  typedef M<Key> Monoid;
  static constexpr bool commutes = true;
  static GPR_METHOD Key lift(T x) {
    const Key best = (Key)~Monoid::identity(); /* of a least and a greatest each is the other's */
    return x != x ? best : Order<T>::key(x);
  }
  static GPR_METHOD Result finish(Key v, int64_t) {
    return Order<T>::poisoned(v, v) ? Order<T>::poison() : Order<T>::value(v);
  }
};
template <class T> struct Min : Extremum<T, Lower> {};
template <class T> struct Max : Extremum<T, Higher> {};

/* Products of 2 × 2 matrices, for the kernels that keep the order. */
template <class T> struct Matmul {
  typedef matrix<T> Element;
  typedef matrix<T> Result;
  typedef MatrixTimes<matrix<T>> Monoid;
  static constexpr bool commutes = false;
  static GPR_METHOD matrix<T> lift(const matrix<T> &x) { return x; }
  static GPR_METHOD matrix<T> finish(const matrix<T> &v, int64_t) { return plain_nan(v); }
};

/* --- where kernels read and write ------------------------------------------------------------- */

/* The array as values; behind its end, the identity. */
template <class Op> struct Input {
  const typename Op::Element *data;
  int64_t n;
  __device__ explicit Input(const gpr_ladder_args &args)
      : data((const typename Op::Element *)args.data), n(args.n) {}
  __device__ ValueOf<Op> operator[](int64_t i) const {
    return i < n ? Op::lift(data[i]) : Op::Monoid::identity();
  }
};

/* The block's tile of the copy. */
template <class M> __device__ Value<M> *tile_of(const gpr_ladder_args &args, int unroll) {
  return (Value<M> *)args.copy + (int64_t)blockIdx.x * blockDim.x * unroll;
}

/* By thread 0: the block's partial result, or the result of all. */
template <class M> __device__ void leave(const gpr_ladder_args &args, const Value<M> &v) {
  if (threadIdx.x == 0) ((Value<M> *)args.partials)[blockIdx.x] = v;
}
template <class Op> __device__ void finish(const gpr_ladder_args &args, const ValueOf<Op> &v) {
  if (threadIdx.x == 0) *(typename Op::Result *)args.result = Op::finish(v, args.n);
}

/* Fills the copy that the kernels of the first two chapters work in: the texts overwrite their
 * input, and leave what does not fill a block to the reader. Here the copy is made up to whole
 * tiles with identities, and so those kernels need no word on the end of the array. */
template <class Op> __global__ void lift(gpr_ladder_args args) {
  const Input<Op> x(args);
  ValueOf<Op> *copy = (ValueOf<Op> *)args.copy;
  const int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < args.copied; i += step)
    copy[i] = x[i];
}

}  // namespace ladder
GPR_CLOSE
