/* The contract of folds, and the words that all of kernels/ uses.
 *
 * fold         an element type, a state and what is done with it: open (the identity), add (lift an
 *              element and combine it), merge (combine with the state of the part to the right).
 *              Its `law` says which order may be used: FREE any, EXACT any (exact.h), TREE the one
 *              tree (tree.h).
 * operator     a fold and a finish, which turns a Value into the result; where it can be told,
 *              settled (no further element changes the result).
 * accumulator  what an engine folds into. An exact fold has many: a superaccumulator, doubles that
 *              carry their errors, integers that count units. They are an engine's own affair.
 * superaccumulator   an integer of fixed point, wide enough for every sum: certain, in any order.
 * bin          a counter of the mantissas of all numbers of one exponent (cpu/bins.h).
 * window       a double so large that its sum with a number keeps the upper bits of that alone,
 *              exactly (gpu/windows.cuh, cpu/extracted_block.h).
 * certificate  what such an accumulator knows at its end: that nothing was lost. Without it the
 *              elements are folded again into what is certain, the fallback.
 * TwoSum, TwoProd    an addition, a product and what it was rounded by (error_free.h); what keeps
 *              both parts is a double-double.
 * batched      many outputs at a time; segmented: of lengths that differ.
 * variance     of numbers; `spread` in names stands for it and for its root.
 *
 * Value        what finish() sees, and all that it sees, of whichever accumulator: so an operator
 *              is written once, and no engine knows one from another.
 *
 * Of a free fold the Value is the state itself. Of the others it is a view that is asked once:
 *
 *   exact sum  add(x): an initial value takes part as one more element.
 *              round<R>(n): the sum over n, rounded once; over 0 NaN.
 *   moments    spread<R, ROOT>(n, how): the variance, or its root, rounded once.
 *   tree       result(initial), which stands to the left of the root.
 *
 * A Value that cannot answer whatever may be asked has a `certified`, which it then clears: the
 * engine shows the fallback's to the operator instead. An operator says which question it will ask
 * (`divides`, `root`) so that an engine can choose the quick way, and for nothing else: what comes
 * of a wrong word is slow, or does not compile. Shown<F> makes the Value of a fold's own state; on
 * the CPU QuicklyShown<F> may stand before it, for what is likely to be enough. */
#pragma once

#include "../abi/rows.h"
#include "matrix.h"
#include "types.h"

GPR_OPEN

/* --- the dtype of a C++ type ------------------------------------------------------------------ */

template <class T> struct Id;
#define GPR_X(id, name, kind, bytes, type) \
  template <> struct Id<type> {            \
    enum { value = GPR_##id };             \
  };
GPR_DTYPES(GPR_X)
#undef GPR_X
template <class T> struct Id<matrix<T>> : Id<T> {};

template <class T> struct FreeFold {
  typedef T Element;
  static constexpr gpr_law law = GPR_FREE;
  static constexpr bool ordered = false;
};

/* --- Values ----------------------------------------------------------------------------------- */

template <class A, class B> struct Same { static constexpr bool value = false; };
template <class A> struct Same<A, A> { static constexpr bool value = true; };
template <bool, class A, class> struct Either { typedef A type; };
template <class A, class B> struct Either<false, A, B> { typedef B type; };

template <int BYTES> struct Unsigned { typedef uint64_t type; };
template <> struct Unsigned<1> { typedef uint8_t type; };
template <> struct Unsigned<2> { typedef uint16_t type; };
template <> struct Unsigned<4> { typedef uint32_t type; };

/* What finish() sees of a fold's own state. */
template <class F> struct Shown {
  typedef typename F::State State;
  static GPR_METHOD const State &of(const State &s) { return s; }
};

template <class V> GPR_FN auto certificate_of(const V &v, int) -> decltype((bool)v.certified) {
  return v.certified;
}
template <class V> GPR_FN bool certificate_of(const V &, long) { return true; }
template <class V> GPR_FN bool is_certified(const V &v) { return certificate_of(v, 0); }

/* All parts of a sum over n, each by v.part<its type>(which, n). */
template <class R> struct Parts {
  template <class V> static GPR_METHOD R round(V &v, uint64_t n) {
    return v.template part<R>(0, n);
  }
};
template <class R> struct Parts<complex<R>> {
  template <class V> static GPR_METHOD complex<R> round(V &v, uint64_t n) {
    const R re = v.template part<R>(0, n);
    return {re, v.template part<R>(1, n)};
  }
};

/* A sum over a number that an engine has rounded already, with the `initial` one or without. */
template <class T> struct RoundedSum {
  T value;
  uint64_t over;
  bool certified, initial;
  GPR_METHOD void add(T) {
    certified &= initial;
    initial = false;
  }
  template <class R> GPR_METHOD R round(uint64_t n = 1) {
    certified &= n == over && !initial && Same<R, T>::value;
    if constexpr (Same<R, T>::value)
      return value;
    else
      return quiet_nan<R>();
  }
};

GPR_CLOSE
