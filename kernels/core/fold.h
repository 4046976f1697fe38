/* What a fold is.
 *
 * A fold is an element type's state and four functions: open (the identity), add (lift an element
 * and combine it), merge (combine with the state of the part to the right) and, where it can be
 * told, settled (no further element changes the result). An operator is a fold and a finish, which
 * turns the state into the result. `law` says which order may be used:
 * FREE any, EXACT any (kernels/core/exact.h), TREE the one tree (kernels/core/tree.h). */
#ifndef GPR_FOLD_H
#define GPR_FOLD_H

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

GPR_CLOSE
#endif
