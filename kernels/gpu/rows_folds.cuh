/* What rows fold: how much of it is under way, of what NaN and masks leave, and how it finishes. */
#pragma once

#include "axes_results.cuh"
#include "converted_rows.cuh"
#include "few.cuh"
#include "left_out.cuh"

GPR_OPEN

/* Blocks a multiprocessor, and packets a thread has under way. With four blocks an exact sum's
 * loads wait for registers, and with three some are spilled: with a run's packets found anew for
 * each tile as well, 128 MiB of lognormal floats took 42.5 µs on an H200, and take 35.8, 32 MiB of
 * bfloat16 17.5 and 15.7. Two positions of small elements would be thousands of instructions. */
template <class F> struct RowsShape { static constexpr int blocks = 4, loads = 8; };
template <class T> struct RowsShape<PairSum<T>> { static constexpr int blocks = 2, loads = 8; };
template <class T> struct RowsShape<Positions<T>> {
  static constexpr int blocks = 4, loads = sizeof(T) < 4 ? 2 : 4;
};
template <class F> struct RowsShape<Counted<F>> : RowsShape<F> {};
template <class F> struct RowsShape<WithoutNaN<F>> : RowsShape<F> {};
template <class F, class FROM> struct RowsShape<Reads<F, FROM>> : RowsShape<F> {};
template <class F> struct RowsShape<Masked<F>> : RowsShape<F> {
  static constexpr int blocks = RowsShape<F>::blocks,
                       loads = blocks > 2 ? 4 : RowsShape<F>::loads; /* for registers */
};

/* Where NaN is skipped: what rows fold then, if they do. */
template <class F> struct RowsSkip {
  static constexpr bool value = Lane<F>::neutral || HasNumbers<F>::value;
  typedef typename Either<HasNumbers<F>::value, WithoutNaN<F>, Counted<F>>::type Fold;
};
/* Which folds have rows under masks: those that take packets, but for variances. Of floats under a
 * mask those took 129 µs on an H200 as packets of tiles, and 290 so. */
template <class F> struct RowsMask {
  static constexpr bool value = ZeroIsNothing<F>::value && !LooksFirst<F>::value;
};
template <class T> struct RowsMask<Extremes<T>> {
  static constexpr bool value = Traits<T>::kind != KIND_COMPLEX;
};

/* A state of all elements, or of as many as its n says. */
template <class F> struct FinishRow {
  static GPR_DEVICE void finish(const gpr_axes_args &a, int64_t o, typename F::State &s) {
    finish_here<F>(a, o, s, CountOf<F>::of(a, s));
  }
};
template <class F> struct FinishRow<Counted<F>> {
  static GPR_DEVICE void finish(const gpr_axes_args &a, int64_t o, typename Counted<F>::State &s) {
    const int64_t n = a.count + s.n;
    tell_least(a, n);
    finish_here<F>(a, o, s.state, n);
  }
};
template <class F> struct FinishRow<Masked<F>> : FinishRow<Counted<F>> {};

GPR_CLOSE
