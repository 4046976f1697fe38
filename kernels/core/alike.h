/* Elements whose kernels do for others. */
#pragma once

#include "operators.h"

GPR_OPEN

/* What is true and what bits come to depends on the width, sums and products of 64 bits have the
 * same ones with a sign, and both times have one order. */
template <class T> struct Alike {
  static constexpr Kind kind = Traits<T>::kind;
  static constexpr bool whole = kind != KIND_FLOAT && kind != KIND_COMPLEX,
                        integer = whole && kind != KIND_BOOL && kind != KIND_TIME;
  typedef typename Unsigned<sizeof(T)>::type Bits;
  typedef typename Either<kind == KIND_FLOAT && sizeof(T) == 2, float16, T>::type Inexact;
  typedef typename Either<whole, Bits, Inexact>::type Truth;
  typedef typename Either<integer, Bits, T>::type Word;
  typedef typename Either<integer && sizeof(T) == 8, uint64_t, T>::type Total;
  typedef typename Either<kind == KIND_TIME, timedelta64, T>::type Ordered;
};
template <template <class> class Op, class T> struct KernelElement {
  typedef typename Alike<T>::Ordered type;
};
#define GPR_ALIKE(op, as) \
  template <class T> struct KernelElement<op, T> { typedef typename Alike<T>::as type; };
GPR_ALIKE(Any, Truth)
GPR_ALIKE(All, Truth)
GPR_ALIKE(LogicalXor, Truth)
GPR_ALIKE(CountNonzero, Truth)
GPR_ALIKE(BitwiseAnd, Word)
GPR_ALIKE(BitwiseOr, Word)
GPR_ALIKE(BitwiseXor, Word)
#undef GPR_ALIKE
template <class T> struct KernelElement<Sum, T> {
  typedef typename Either<Traits<T>::kind == KIND_TIME, T, typename Alike<T>::Total>::type type;
};
template <class T> struct KernelElement<Prod, T> : KernelElement<Sum, T> {};

template <class O, class F = typename O::Fold> struct ResultId {
  static constexpr int value = Id<typename O::Result>::value;
};
template <class O> struct ResultId<O, void> { static constexpr int value = GPR_NO_DTYPE; };

/* An operator as its kernels have it, where it takes the element. */
template <template <class> class Op, class T> struct AsKernels {
  static constexpr bool takes = ResultId<Op<T>>::value != GPR_NO_DTYPE;
  typedef Op<typename Either<takes, typename KernelElement<Op, T>::type, T>::type> Operator;
};

GPR_CLOSE
