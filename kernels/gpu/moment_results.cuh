/* Variances of exact sums and squares, as far as doubles tell them and by digits beyond. */
#pragma once

#include "axes_results.cuh"
#include "few.cuh"
#include "pair_moments.cuh"
#include "spread_output.cuh"

GPR_OPEN

template <class W, int P> GPR_DEVICE LongView view_of(const Levels<W, P> &s) {
  return {s.rest.word, Long<W>::words, Long<W>::bottom};
}
template <class W, int P> GPR_DEVICE Near near_of(const Levels<W, P> &s) {
  Near sum = near_of(s.pair[0].hi, s.pair[0].lo);
  GPR_UNROLLED(int i = 1; i < P; i++) sum = add(sum, near_of(s.pair[i].hi, s.pair[i].lo));
  if (s.used) sum = add(sum, near_of(s.rest.word, Long<W>::words, Long<W>::bottom));
  return sum;
}

/* What tells most results of floats and halves. S: a MomentState, or its pairs alone. */
template <class S> GPR_DEVICE Near plain_result(const S &s, int64_t n, double freedom, bool root) {
  constexpr int PARTS = S::parts;
  double squares = 0, size = 0, roots = 0;
  bool used = s.squares.used;
  GPR_EACH(i, s.squares.pairs) {
    squares += s.squares.pair[i].hi + s.squares.pair[i].lo;
    size += fabs(s.squares.pair[i].hi) + fabs(s.squares.pair[i].lo);
  }
  GPR_EACH(p, PARTS) {
    const double sum = s.sum[p].pair[0].hi + s.sum[p].pair[0].lo;
    used |= s.sum[p].used;
    roots += sum * sum;
  }
  if (used || !(freedom > 0)) return {0, 0, INFINITY};
  const double count = (double)n;
  return plain_spread(count * squares - roots, count * size + roots, count * freedom, root);
}

/* Where that leaves open what whole numbers have, above all what lies halfway between two floats:
 * no operation is rounded, or false. Of 2^21 rows of 8 whole halves variances took 181 µs on an
 * H200 where those were folded again, and take 127. */
template <class R, class S>
GPR_DEVICE bool whole_result(const S &s, int64_t n, double freedom, bool root, R *result) {
  constexpr int PARTS = S::parts;
  bool used = s.squares.used;
  const double count = (double)n, squares = s.squares.pair[0].hi, divisor = count * freedom;
  double spread = count * squares, rest = fabs(product_error(count, squares, spread)) +
                                          fabs(product_error(count, freedom, divisor)) +
                                          fabs(s.squares.pair[0].lo);
  GPR_UNROLLED(int i = 1; i < s.squares.pairs; i++)
    rest += fabs(s.squares.pair[i].hi) + fabs(s.squares.pair[i].lo);
  GPR_EACH(p, PARTS) {
    const double sum = s.sum[p].pair[0].hi, square = sum * sum, left = spread - square;
    rest += fabs(s.sum[p].pair[0].lo) + fabs(product_error(sum, sum, square)) +
            fabs(rounding_error(spread, -square, left));
    spread = left;
    used |= s.sum[p].used;
  }
  const double value = spread / divisor, told = root ? sqrt(value) : value;
  rest += fabs(product_error(value, divisor, spread));
  if (root) rest += fabs(product_error(told, told, value));
  round_once(told, result);
  return rest == 0 && !used;
}

/* The same of doubles. */
template <class S> GPR_DEVICE Near coarse_result(const S &s, int64_t n, double freedom, bool root) {
  constexpr int PARTS = S::parts;
  bool used = s.squares.used;
  Near sum[PARTS];
  GPR_EACH(p, PARTS) {
    sum[p] = coarse_sum(s.sum[p].pair);
    used |= s.sum[p].used;
  }
  if (used) return {0, 0, INFINITY};
  const double count = (double)n;
  const Near numerator = coarse_numerator<PARTS>(sum, coarse_sum(s.squares.pair), count);
  return coarse_spread(numerator, count, freedom, root);
}

/* Pairs' sum in N doubles, the smaller windows first; `alone` where no pair has a lo. */
template <int P, int N>
GPR_DEVICE bool gathered(const Pair (&pair)[P], bool alone, double (&sum)[N]) {
  if (alone) {
    double t[P];
    GPR_EACH(i, P) t[i] = pair[P - 1 - i].hi;
    return gathered(t, sum);
  }
  double t[2 * P];
  GPR_EACH(i, P) {
    t[P - 1 - i] = pair[i].lo;
    t[2 * P - 1 - i] = pair[i].hi;
  }
  return gathered(t, sum);
}
/* What coarse_result does not tell; false where this does not either. */
template <class S>
GPR_DEVICE bool exact_result(const S &s, int64_t n, double freedom, bool root, double *result) {
  constexpr int PARTS = S::parts;
  ExactMoments<PARTS> m;
  bool fine = gathered(s.squares.pair, S::alone, m.squares) && !s.squares.used;
  GPR_EACH(p, PARTS) fine = fine && gathered(s.sum[p].pair, S::alone, m.sum[p]) && !s.sum[p].used;
  return fine && exact_spread(m, (double)n, freedom, root, result);
}

/* A function for all types whose states are the same. */
template <class R, int PARTS>
__device__ __noinline__ Near near_result(const MomentState<R, PARTS> *s, int64_t n, double freedom,
                                         const double *means, bool root) {
  Near sum[PARTS];
  GPR_EACH(p, PARTS) sum[p] = near_of(s->sum[p]);
  const Near numerator = near_numerator<PARTS>(sum, near_of(s->squares), (double)n, means);
  return near_spread(numerator, (double)n, freedom, means, root);
}

/* Whether that tells the result. */
template <class R, class S>
GPR_DEVICE bool round_quickly(const S &s, int64_t n, double freedom, bool root, R *result) {
  if constexpr (S::is_double) {
    return round_near(coarse_result(s, n, freedom, root), result) ||
           exact_result(s, n, freedom, root, result);
  } else {
    return round_near(plain_result(s, n, freedom, root), result) ||
           whole_result(s, n, freedom, root, result);
  }
}

template <class T> struct PairMomentsValue {
  typedef PairMoments<T> F;
  typedef typename F::State State;
  State *s;
  void *scratch;
  template <class R>
  static __device__ __noinline__ R by_digits(State *s, int64_t n, const gpr_spread how, bool root,
                                             void *scratch) {
    SpreadQuestion q;
    for (int p = 0; p < F::parts; p++) {
      settle(s->sum[p]);
      q.sum[p] = view_of(s->sum[p]);
    }
    settle(s->squares);
    q.squares = view_of(s->squares);
    q.parts = F::parts;
    q.n = n;
    q.how = how;
    return round_digits<R>(q, scratch, root);
  }
  template <class R, bool ROOT> GPR_DEVICE R spread(int64_t n, const gpr_spread *how) const {
    const double *means = how->means;
    uint32_t special = 0;
    for (int p = 0; p < F::parts; p++)
      special |= is_nan(*s, p) ? (uint32_t)GPR_NAN : s->sum[p].special;
    const SpreadCase c = case_of_spread(special, n, means, F::parts);
    if (c != SPREAD_FINITE) return round_case<R>(c);
    if (is_alone(n, *how)) return Format<R>::make(0);
    const double freedom = plain_freedom(n, how->ddof);
    R result;
    if (!means && round_quickly(*s, n, freedom, ROOT, &result)) return result;
    if (round_near(near_result(s, n, freedom, means, ROOT), &result)) return result;
    return by_digits<R>(s, n, *how, ROOT, scratch);
  }
};
template <class T> struct StandsFor<PairMoments<T>> { typedef MomentsFold<T> Fold; };
template <class T> struct View<PairMoments<T>> {
  typedef PairMomentsValue<T> Value;
  static GPR_DEVICE Value of(const gpr_axes_args &a, typename PairMoments<T>::State &s, int64_t) {
    return {&s, a.scratch};
  }
};

/* As few.cuh's One: what is finite has no variance, and another's is NaN; what else is asked is
 * told of its state. */
template <class F> struct OneSpread {
  typedef OneSpread Value;
  typedef NothingShared Shared;
  bool finite = true;
  mutable bool certified = true;
  GPR_DEVICE void result(Value &value, const Shared &) const { value = *this; }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int64_t n) const {
    return finish_value<F>(a, o, n, *this);
  }
  template <class R, bool ROOT> GPR_DEVICE R spread(int64_t n, const gpr_spread *how) const {
    certified = is_alone(n, *how);
    return finite ? Format<R>::make(0) : round_case<R>(SPREAD_NAN);
  }
};

GPR_CLOSE
