/* How states become results: the operator is found, finishes and is stored. */
#pragma once

#include "axes_places.cuh"
#include "cells.cuh"

GPR_OPEN

/* A result, and whether it is certain. */
template <class T> struct Told {
  T value;
  bool sure;
};

/* Of an output n elements counted. */
GPR_DEVICE void tell_least(const gpr_axes_args &a, int64_t n) {
  if (a.least && n <= a.few) *a.least = n;
}

/* The first `left` of N neighbours, in as few stores as there can be. */
template <class R, int N> GPR_DEVICE void store_row(R *to, const R (&from)[N], int left) {
  constexpr int bytes = N * (int)sizeof(R), word = bytes < 16 ? bytes : 16;
  typedef typename Store<word>::type Word;
  if (N > 1 && left == N && (uintptr_t)to % word == 0) {
    GPR_EACH(i, bytes / word) {
      Word w;
      memcpy(&w, from + i * (N * word / bytes), sizeof w);
      ((Word *)to)[i] = w;
    }
  } else {
    GPR_EACH(i, N)
      if (i < left) to[i] = from[i];
  }
}

/* The fold of core/ whose operators finish what F has folded. */
template <class F> struct StandsFor { typedef F Fold; };
template <class T> struct StandsFor<PairSum<T>> { typedef ExactFold<T> Fold; };

/* What finish() sees of an F's state of n elements. */
template <class F> struct View {
  typedef typename F::State Value;
  static GPR_DEVICE Value of(const gpr_axes_args &, Value &s, int64_t) { return s; }
};
template <class T> struct View<PairSum<T>> {
  typedef PairSumValue<T> Value;
  static GPR_DEVICE Value of(const gpr_axes_args &, typename PairSum<T>::State &s, int64_t n) {
    return {&s, n == 0};
  }
};

/* The same of n elements, for an operator of another fold: all() counts what is not true. */
template <class F, class FOLD> struct Seen {
  static constexpr bool value = Same<FOLD, typename StandsFor<F>::Fold>::value;
  template <class V> static GPR_DEVICE V &of(V &seen, int64_t) { return seen; }
};
template <class T> struct Seen<Counting<T, 1>, Counting<T, 0>> {
  static constexpr bool value = true;
  static GPR_DEVICE typename Counting<T, 0>::State of(const typename Counting<T, 1>::State &seen,
                                                      int64_t n) {
    return {n - seen.count};
  }
};

/* finish()'s `with` for output o; whether there is one. */
template <class F, class R> GPR_DEVICE bool given(const gpr_axes_args &a, int64_t, R &initial) {
  memcpy(&initial, a.initial, sizeof initial);
  return a.has_initial;
}
template <class F> GPR_DEVICE bool given(const gpr_axes_args &a, int64_t o, gpr_spread &how) {
  constexpr int parts = Traits<typename F::Element>::kind == KIND_COMPLEX ? 2 : 1;
  how.ddof = a.ddof;
  how.means = a.means ? a.means + o * parts : nullptr;
  how.nan = a.spread_nan;
  return true;
}

/* Finds the operator among those of the fold by its number. */
template <class F, class Finish> GPR_DEVICE void with_operator(int row, const Finish &finish) {
  typedef typename F::Element T;
  switch (row) {
#define GPR_X(id, name, ufunc, alias, flags, op, sentence)                                         \
  case GPR_OP_##id:                                                                                \
    if constexpr (first_alike(GPR_OP_##id) == GPR_OP_##id && Seen<F, typename op<T>::Fold>::value) \
      finish.template by<op<T>>();                                                                 \
    break;
    GPR_OPS(GPR_X)
#undef GPR_X
  }
}

/* How many elements a state is of that does not say it. */
template <class F> struct CountOf {
  static GPR_DEVICE int64_t of(const gpr_axes_args &a, const typename F::State &) {
    return a.count;
  }
};
/* How many elements Value e is of: as many as the others, or its own number. */
GPR_DEVICE int64_t number_of(int64_t n, int) { return n; }
template <class I, int N> GPR_DEVICE int64_t number_of(const I (&n)[N], int e) { return n[e]; }

/* Calls O::finish() for each of N neighbours' Values. */
template <class O, class F, class V, int N, class Numbers>
GPR_DEVICE void finish_each(const gpr_axes_args &a, int64_t o, V (&value)[N], const Numbers &n,
                            typename O::Result *result) {
  typename FinishedWith<O>::type with;
  const bool has = given<F>(a, o, with);
  GPR_EACH(e, N)
    O::finish(Seen<F, typename O::Fold>::of(value[e], number_of(n, e)), number_of(n, e),
              has ? &with : nullptr, result + e * Results<O>::value);
}

/* Of N Values the first `left` are of outputs that exist. */
template <class F, class V, int N, class Numbers> struct FinishValues {
  const gpr_axes_args &a;
  int64_t o;
  V (&value)[N];
  const Numbers &n;
  int left;
  template <class O> GPR_DEVICE void by() const {
    constexpr int results = Results<O>::value;
    typename O::Result result[N * results];
    finish_each<O, F>(a, o, value, n, result);
    store_row((typename O::Result *)a.out + o * results, result, left * results);
  }
};
template <class F, class V, int N, class Numbers>
GPR_DEVICE void finish_values(const gpr_axes_args &a, int64_t o, V (&value)[N], const Numbers &n,
                              int left) {
  with_operator<F>(a.op, FinishValues<F, V, N, Numbers>{a, o, value, n, left});
}

/* What is rounded already has but one type, and is stored once for all operators. */
template <class F, class T, int N, class Numbers> struct FinishRounded {
  const gpr_axes_args &a;
  int64_t o;
  RoundedSum<T> (&value)[N];
  const Numbers &n;
  T (&result)[N];
  template <class O> GPR_DEVICE void by() const {
    static_assert(Same<typename O::Result, T>::value, "");
    finish_each<O, F>(a, o, value, n, result);
  }
};
template <class F, class T, int N, class Numbers>
GPR_DEVICE void finish_values(const gpr_axes_args &a, int64_t o, RoundedSum<T> (&value)[N],
                              const Numbers &n, int left) {
  T result[N];
  with_operator<F>(a.op, FinishRounded<F, T, N, Numbers>{a, o, value, n, result});
  if (N > 1 || is_certified(value[0])) store_row((T *)a.out + o, result, left);
}

/* One of n elements; whether the result is certain. */
template <class F, class V>
GPR_DEVICE bool finish_value(const gpr_axes_args &a, int64_t o, int64_t n, const V &of) {
  V value[1] = {of};
  finish_values<F>(a, o, value, n, 1);
  return is_certified(value[0]);
}
/* Inline where every thread finishes an output, else once a kernel. */
template <class F>
GPR_DEVICE void finish_here(const gpr_axes_args &a, int64_t o, typename F::State &state,
                            int64_t n) {
  finish_value<F>(a, o, n, View<F>::of(a, state, n));
}
template <class F>
__device__ __noinline__ void finish_output(const gpr_axes_args *a, int64_t o,
                                           typename F::State *state, int64_t n) {
  finish_here<F>(*a, o, *state, n);
}

GPR_CLOSE
