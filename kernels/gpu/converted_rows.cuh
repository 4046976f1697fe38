/* What a lane keeps of rows whose elements are converted before they are summed. */
#pragma once

#include "left_out.cuh"

GPR_OPEN

/* F of elements as they lie. */
template <class F, class FROM> struct Reads : F { typedef FROM Element; };
/* The fold whose states a lane has. */
template <class F> struct StatesOf { typedef F Fold; };
template <class F, class FROM> struct StatesOf<Reads<F, FROM>> { typedef F Fold; };
template <class F, class FROM> struct RowsShape<Reads<F, FROM>> : RowsShape<F> {};

/* Floats, and integers that the sum's type rounds. */
template <class F, class FROM> struct ConvertedLane {
  typedef typename F::Element T;
  static constexpr bool neutral = true, is_float = Traits<FROM>::kind == KIND_FLOAT;
  static constexpr int V = Packet<FROM>::count, MOST = 32;
  Cells<F, 1> cells;
  GPR_DEVICE void keep(typename F::State *s) { cells.keep(s); }
  template <int N> GPR_DEVICE void add(const FROM (&x)[N]) {
    if constexpr (Same<FROM, bfloat16>::value && N % 2 == 0) {
      take_pairs<N, true>(cells.sum[0], x, cells.rest(0));
    } else if constexpr (is_float) {
      float w[N];
      GPR_EACH(i, N) w[i] = wide(x[i]);
      gpr::take<FROM, N, 1, true>(cells.sum[0], w, 0, cells.rest(0));
    } else {
      T w[N];
      GPR_EACH(i, N) w[i] = convert<T>(x[i]);
      cells.template add<N>(w, 0, 0);
    }
  }
  template <int U> GPR_DEVICE void take(const Packet<FROM> (&v)[U], int64_t, int64_t) {
    constexpr int batches = U * V > MOST ? U * V / MOST : 1, n = U * V / batches;
    GPR_EACH(b, batches) {
      FROM x[n];
      GPR_EACH(i, n) x[i] = v[(b * n + i) / V].element[(b * n + i) % V];
      add(x);
    }
  }
  GPR_DEVICE void one(FROM x, int64_t) {
    const FROM only[1] = {x};
    add(only);
  }
  GPR_DEVICE void result(typename F::State &s) { cells.done(&s); }
};
/* Integers that it holds are added up as such. */
template <class F, class FROM> struct IntegersLane : Lane<LongSum<FROM>> {
  typedef Lane<LongSum<FROM>> Base;
  static constexpr bool neutral = true;
  GPR_DEVICE void keep(typename F::State *) {}
  GPR_DEVICE void result(typename F::State &s) {
    typename LongSum<FROM>::State sum;
    Base::result(sum);
    F::open(s);
    add_one(s.part[0], (double)(uint32_t)sum.low);
    add_one(s.part[0], (double)(sum.low >> 32) * 0x1p32);
    add_one(s.part[0], (double)sum.high * 0x1p64);
  }
};
template <class R, class FROM> struct HoldsAll {
  static constexpr bool value = Traits<FROM>::kind != KIND_FLOAT && 2 * sizeof(FROM) <= sizeof(R);
};
template <class T, class FROM>
struct Lane<Reads<PairSum<T>, FROM>>
    : Either<HoldsAll<T, FROM>::value, IntegersLane<PairSum<T>, FROM>,
             ConvertedLane<PairSum<T>, FROM>>::type {};

GPR_CLOSE
