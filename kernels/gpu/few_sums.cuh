/* Exact sums of a few elements. */
#pragma once

#include "few.cuh"

GPR_OPEN

/* A double that is exact, as the result of a sum or of a mean. */
template <class T> GPR_DEVICE void round_exact_double(double x, const Over &over, T *out) {
  if (over.n > 1) {
    const double quotient = x == 0 ? x : divided_by(x, over.d, over.reciprocal);
    x = to_odd(quotient, product_error(-quotient, over.d, -x));
  }
  round_once(x, out);
}
template <class T> __device__ __noinline__ Told<T> divided(const Triple sum, int64_t n) {
  Told<T> told;
  told.sure = divide_terms(sum, n, &told.value);
  return told;
}
/* The sum or the quotient, rounded; false if that takes more than this, or of nothing. */
template <class S, class T> GPR_DEVICE bool round_few(const S &sum, const Over &over, T *out) {
  const int64_t n = over.n;
  const bool finite = is_finite(sum.hi);
  if (n > 1 && sum.lo != 0 && finite && !can_divide(sum, n)) return false;
  if (!finite)
    *out = narrow_special<T>(sum.hi);
  else if (n > 1 && sum.lo != 0)
    round_quotient(sum, over, out);
  else if (n > 1)
    round_exact_double(sum.hi, over, out);
  else
    round_pair(sum.hi, sum.lo, out);
  return n > 0;
}
/* A double is rounded but once. */
template <class S> GPR_DEVICE bool round_few(const S &sum, const Over &over, double *out) {
  const int64_t n = over.n;
  const bool nothing = sum.hi == 0 && sum.lo == 0 && !has_tail(sum);
  if (!is_finite(sum.hi))
    *out = narrow_special<double>(sum.hi);
  else if (is_near_the_end(sum))
    return false;
  else if (n <= 1 || nothing)
    round_terms(sum, out);
  else if (can_divide(sum, n))
    round_quotient(sum, over, out);
  else if constexpr (Same<S, Pair>::value)
    return false;
  else {
    const Told<double> told = divided<double>(sum, n);
    *out = told.value;
    return told.sure;
  }
  return n > 0;
}

/* A sum in some terms, and whether they lost anything of it. */
template <class R, class S> struct Checked {
  typedef S Terms;
  Terms sum;
  bool lost = false, nan = false;
  GPR_DEVICE Checked() { clear(sum); }
  GPR_DEVICE void add(R x) {
    nan |= x != x;
    add_to_all(sum, (double)x, lost);
  }
  GPR_DEVICE bool join(int) { return false; }
  GPR_DEVICE bool fine(int = 0) const { return !lost | nan; }
  GPR_DEVICE Terms terms() const { return sum; }
};
/* Exponents of a few numbers of one scale, normally distributed ones for instance, lie no further
 * apart. */
enum { CLOSE = 23 };
/* Of floats plain additions in double, which are checked. */
template <class R, class Stored> struct FewReals {
  typedef Pair Terms;
  Batch<Format<Stored>::precision, FEW_MOST> batch;
  GPR_DEVICE void add(R x) { batch.add(x); }
  /* Whether it is the sum of what was added: n numbers, and neutral ones. */
  GPR_DEVICE bool fine(int n = FEW_MOST) const { return batch.fine_of(n) || batch.is_special(); }
  /* Whether those to come will be so, too, as far as these tell. */
  GPR_DEVICE bool is_close() const {
    return batch.has_bits(Format<Stored>::precision + CLOSE) || batch.is_special();
  }
  GPR_DEVICE Pair terms() const { return {batch.sum, -0.0}; }
  /* A team's as one batch, if that is exact in all of the warp; all lanes have it. */
  GPR_DEVICE bool join(int team) {
    int doubled = 0;
    GPR_ROLLED(int mask = team / 2; mask; mask /= 2, doubled++) batch.join(mask);
    return __all_sync(GPR_ALL, batch.fine(doubled));
  }
};
/* Floats as a pair: rounding errors are multiples of the least number's last bit, and n of them add
 * up to n²·2^-53 times the greatest number at most, so that numbers of so many bits tell that
 * nothing was lost. */
template <class R, class Stored> struct PairReals {
  typedef Pair Terms;
  Batch<Format<Stored>::precision, FEW_MOST> batch;
  double errors = 0;
  GPR_DEVICE void add_double(double x) {
    const double before = batch.sum;
    batch.sum = before + x;
    errors += rounding_error(before, x, batch.sum);
  }
  GPR_DEVICE void add(R x) {
    batch.see(x);
    add_double((double)x);
  }
  GPR_DEVICE bool fine(int n = FEW_MOST) const {
    return batch.has_bits(106 - 2 * bits_below(n)) || batch.is_special();
  }
  GPR_DEVICE Pair terms() const { return {batch.sum, errors}; }
  GPR_DEVICE bool join(int team) {
    GPR_ROLLED(int mask = team / 2; mask; mask /= 2) {
      errors += shuffle_xor(errors, mask);
      add_double(shuffle_xor(batch.sum, mask));
      batch.see_lane(mask);
    }
    return __all_sync(GPR_ALL, fine(FEW_MOST * team));
  }
};
/* Of doubles pairs, which hold them unless one is 2^-46 of the greatest: of 3 rows of
 * 10^7 sums took 124 µs on an H200 by three terms and 114 so, means 180 and 132. */
template <class Stored> struct FewReals<double, Stored> : Checked<double, Pair> {};

/* Two numbers are a pair as they are; of doubles infinities and what overflows are folded again. To
 * compare their sizes was most of what the integers' units did, which were 62 % busy on an H200,
 * those of doubles 8. */
template <class R, class Stored> struct TwoReals {
  typedef Pair Terms;
  double hi = -0.0, lo = 0;
  bool nan = false; /* of doubles */
  GPR_DEVICE void add(double x) {
    const double t = hi + x;
    if constexpr (sizeof(R) == 8) nan |= x != x;
    lo = rounding_error(hi, x, t);
    hi = t;
  }
  GPR_DEVICE bool join(int) { return false; }
  GPR_DEVICE bool fine(int = 0) const {
    return lo == lo || (sizeof(R) == 8 ? nan : !is_finite(hi));
  }
  GPR_DEVICE Pair terms() const { return {hi, lo}; }
};

/* What an operator asks of sums. */
struct Asked {
  bool mean, initial;
  GPR_DEVICE Over over(int64_t n) const { return mean ? Over(n) : Over(); }
};
/* Of outputs of n elements, or of n[e]. */
GPR_DEVICE Over over_all(Asked asked, int64_t n) { return asked.over(n); }
GPR_DEVICE const Over &over_one(Asked, int64_t, int, const Over &all) { return all; }
template <int N> GPR_DEVICE Over over_all(Asked, const int (&)[N]) { return Over(); }
template <int N> GPR_DEVICE Over over_one(Asked asked, const int (&n)[N], int e, const Over &) {
  return asked.over(n[e]);
}
/* finish(asked) by constants: where every output asked, sums of 2 floats each took 106
 * instructions, and take 52. A mean has no initial value. */
template <class Finish> GPR_DEVICE auto as_asked(const gpr_axes_args &a, const Finish &finish) {
  if (divides(a.op)) return finish(Asked{true, false});
  if (a.has_initial) return finish(Asked{false, true});
  return finish(Asked{false, false});
}

/* 0, and as a mean NaN. */
template <class T> GPR_DEVICE T sum_of_nothing(bool mean) {
  typedef typename RealOf<T>::type Stored;
  T sum = T();
  GPR_EACH(p, PairSum<T>::parts)
    if (mean) ((Stored *)&sum)[p] = quiet_nan<Stored>();
  return sum;
}

template <class T, template <class, class> class Reals> struct FewSums {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef typename RealOf<T>::type Stored;
  typedef Reals<typename F::Real, Stored> Part;
  typedef typename Part::Terms Sum;
  Part part[F::parts];
  GPR_DEVICE void add(T x, int64_t) {
    GPR_EACH(p, F::parts) part[p].add(F::real(x, p));
  }
  GPR_DEVICE bool fine(int n = FEW_MOST) const {
    bool all = true;
    GPR_EACH(p, F::parts) all &= part[p].fine(n);
    return all;
  }
  GPR_DEVICE bool is_close() const {
    bool all = true;
    GPR_EACH(p, F::parts) all &= part[p].is_close();
    return all;
  }
  GPR_DEVICE bool done(State &s) const {
    GPR_EACH(p, F::parts) {
      open(s.part[p]);
      assign(s.part[p].sum, part[p].terms());
      if (!is_finite(s.part[p].sum.hi)) s.part[p].sum.lo = 0;
    }
    return fine();
  }
  typedef RoundedSum<T> Value;
  /* Rounded as the operator says that it will ask. */
  template <class S>
  static GPR_DEVICE Value rounded(const gpr_axes_args &a, int64_t n, const S (&sum)[F::parts],
                                  bool certified) {
    const bool mean = divides(a.op);
    const Asked asked = {mean, !mean && a.has_initial};
    const Over over = asked.over(n);
    return or_nothing(n, asked, over, rounded(a, asked, over, sum, certified));
  }
  template <class S>
  static GPR_DEVICE Value rounded(const gpr_axes_args &a, Asked asked, const Over &over,
                                  const S (&sum)[F::parts], bool certified) {
    Value value = {T(), (uint64_t)over.n, certified, asked.initial};
    GPR_EACH(p, F::parts) {
      S all = sum[p];
      bool lost = false;
      if (asked.initial) add_to_all(all, wide(((const Stored *)a.initial)[p]), lost);
      value.certified &= round_few(all, over, (Stored *)&value.value + p) && !lost;
    }
    return value;
  }
  /* Of n elements. */
  GPR_DEVICE Value shown(const gpr_axes_args &a, Asked asked, const Over &over, int64_t n) const {
    Sum sum[F::parts];
    GPR_EACH(p, F::parts) sum[p] = part[p].terms();
    return or_nothing(n, asked, over, rounded(a, asked, over, sum, fine((int)n)));
  }
  /* The neutral -0.0 is no sum of nothing. Of 2 rows of 5 million doubles under a mask sums took
   * 190 µs on an H200 where such columns were folded again, and take 70. */
  static GPR_DEVICE Value or_nothing(int64_t n, Asked asked, const Over &over, const Value &found) {
    if (n > 0 || asked.initial) return found;
    return {sum_of_nothing<T>(asked.mean), (uint64_t)over.n, true, false};
  }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int64_t n) const {
    return as_asked(a, [&](Asked asked) {
      return finish_value<F>(a, o, n, shown(a, asked, asked.over(n), n));
    });
  }
  /* All of the warp or nobody: a team's as plain sums. */
  GPR_DEVICE bool join(int team, Sum (&sum)[F::parts]) const {
    bool all = true;
    GPR_EACH(p, F::parts) {
      auto mine = part[p];
      all = all && mine.join(team);
      sum[p] = mine.terms();
    }
    return all;
  }
  /* As pairs. */
  GPR_DEVICE bool merge(int team, Sum (&sum)[F::parts]) const {
    bool lost = !fine();
    if (__any_sync(GPR_ALL, lost)) return false;
    GPR_EACH(p, F::parts) {
      sum[p] = part[p].terms();
      GPR_ROLLED(int mask = team / 2; mask; mask /= 2)
        sum[p] = merged(sum[p], shuffle_xor(sum[p], mask), lost);
    }
    return !__any_sync(GPR_ALL, lost);
  }
  /* All of the warp, or nobody. */
  GPR_DEVICE bool finish_team(const gpr_axes_args &a, int64_t o, int64_t n, int team,
                              bool mine) const {
    Sum sum[F::parts];
    if (!join(team, sum) && !merge(team, sum)) return false;
    Value value[1] = {rounded(a, n, sum, true)};
    finish_values<F>(a, o, value, n, mine ? 1 : 0);
    return __all_sync(GPR_ALL, value[0].certified || !mine);
  }
};
template <class F> struct IsSum { static constexpr bool value = false; };
template <class T> struct IsSum<PairSum<T>> { static constexpr bool value = true; };
template <class T> struct Few<PairSum<T>> : FewSums<T, FewReals> {};
/* It is its own sum, and its mean. */
template <class T> struct One<PairSum<T>> {
  typedef RoundedSum<T> Value;
  T only;
  GPR_DEVICE void add(T x, int64_t) {
    typedef typename RealOf<T>::type Stored;
    only = x;
    GPR_EACH(p, PairSum<T>::parts)
      if (PairSum<T>::real(x, p) != PairSum<T>::real(x, p))
        ((Stored *)&only)[p] = quiet_nan<Stored>();
  }
  GPR_DEVICE Value shown(const gpr_axes_args &, Asked, const Over &, int64_t n) const {
    return {only, (uint64_t)n, true, false};
  }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int64_t n) const {
    finish_value<PairSum<T>>(a, o, n, Value{only, (uint64_t)n, true, false});
    return true;
  }
};
/* Finite float16, so few of them, always have an exact sum in a double. */
template <class T> struct HasAgain<PairSum<T>> {
  typedef typename RealOf<T>::type R;
  static constexpr bool value = !Same<R, float16>::value;
};
template <class T>
struct Two<PairSum<T>>
    : Either<HasAgain<PairSum<T>>::value, FewSums<T, TwoReals>, Few<PairSum<T>>>::type {};
template <class R, class Stored> struct AgainReals : PairReals<R, Stored> {};
template <class Stored>
struct AgainReals<double, Stored> : Checked<double, typename TermsOfSum<double>::type> {};
template <class T> struct Again<PairSum<T>> : FewSums<T, AgainReals> {};
template <class T> struct IsWide<PairSum<T>> {
  static constexpr bool value =
      HasAgain<PairSum<T>>::value && sizeof(typename PairSum<T>::Real) == 4;
};

GPR_CLOSE
