/* What a user's operator reads of its arrays: the leaves of an output. */
#pragma once

#include "../abi/operator.h"
#include "leaves.cuh"

GPR_OPEN

/* --- memory ----------------------------------------------------------------------------------- */

/* Of any byte order, at any address. */
template <class T> __device__ __noinline__ T load_odd(const char *from, bool swapped) {
  char bytes[sizeof(T)];
  T x;
  for (int i = 0; i < (int)sizeof(T); i++) bytes[swapped ? (int)sizeof(T) - 1 - i : i] = from[i];
  memcpy(&x, bytes, sizeof x);
  return x;
}

/* --- an output -------------------------------------------------------------------------------- */

template <class OP> struct Operands : LeafPlaces<Operands<OP>, gpr_operator_args, OP::ARRAYS> {
  typedef LeafPlaces<Operands<OP>, gpr_operator_args, OP::ARRAYS> Base;
  typedef typename OP::State A;
  enum { OUTS = OP::OUTS };
  using Base::a;
  using Base::Base;
  using Base::dims;

  /* Addresses are those of the arrays' first streams. */
  GPR_DEVICE int64_t data(int k) const { return number(OP::stream(k)); }
  /* Of all numbers, by their places: not through a pointer, since parameters are read faster. */
  GPR_DEVICE int64_t number(int i) const { return a.far ? a.far[i] : a.near[i]; }
  GPR_DEVICE int64_t length(int d) const { return number(OP::STREAMS + OP::RESULTS + d); }
  GPR_DEVICE int64_t stride(int k, int d) const { return length(dims() * (k + 1) + d); }
  GPR_DEVICE int64_t out_stride(int r, int d) const {
    return length(dims() * (OP::ARRAYS + 1) + r * (dims() + 1) + d);
  }

  /* Number m of a leaf of array k that lies there; its first stream is given. */
  GPR_DEVICE int64_t address(int stream, int m, int64_t at) const {
    return m ? at + (number(stream + m) - number(stream)) : at;
  }
  template <class T>
  GPR_DEVICE T leaf(int k, int stream, int m, const int64_t (&at)[OP::ARRAYS]) const {
    const char *from = (const char *)address(stream, m, at[k]);
    return a.odd >> k & 1 ? load_odd<T>(from, a.swapped >> k & 1) : __ldg((const T *)from);
  }
  /* Whether leaves are loaded as they lie, and by words. */
  GPR_DEVICE bool is_direct() const { return !a.odd; }
  GPR_DEVICE bool is_packed(int k) const { return a.packed >> k & 1; }
  GPR_DEVICE bool all_packed() const {
    return is_direct() && a.packed + 1 == (int64_t)1 << OP::ARRAYS;
  }

  static GPR_DEVICE void *nodes(const gpr_operator_args &a) { return (char *)a.scratch + a.nodes; }
  /* at: how far the place lies from the first one of each result. */
  static __device__ __noinline__ void finish_place(const gpr_operator_args &a,
                                                   const int64_t (&at)[OUTS], const A &root) {
    A value = root;
    if (a.has_initial) {
      A left;
      memcpy(&left, a.initial, sizeof left);
      OP::combine_apart(&left, &value, &value);
    }
    OP::finish(value, (a.far ? a.far : a.near) + OP::STREAMS, at);
  }
  static __device__ __noinline__ void finish(const gpr_operator_args &a, int64_t o, const A &root) {
    const Operands x(a);
    const int64_t segment = a.starts ? quotient_of(o, a.per) : 0;
    int64_t at[OUTS];
    o -= segment * a.per;
    GPR_EACH(r, OUTS) at[r] = segment * x.out_stride(r, x.dims());
    GPR_ROLLED(int d = x.kept() - 1; d >= 0; d--) {
      const int64_t over = d ? quotient_of(o, x.length(d)) : 0, here = o - over * x.length(d);
      GPR_EACH(r, OUTS) at[r] += here * x.out_stride(r, d);
      o = over;
    }
    finish_place(a, at, root);
  }
};

GPR_CLOSE
