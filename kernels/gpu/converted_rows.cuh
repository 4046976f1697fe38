/* What a lane keeps of rows whose elements are converted before they are summed. */
#pragma once

#include "converted_cells.cuh"

GPR_OPEN

/* F of elements as they lie. */
template <class F, class FROM> struct Reads : F { typedef FROM Element; };
/* The fold whose states a lane has. */
template <class F> struct StatesOf { typedef F Fold; };
template <class F, class FROM> struct StatesOf<Reads<F, FROM>> { typedef F Fold; };

/* Floats, and integers that the sum's type rounds. */
template <class F, class FROM> struct ConvertedLane : CellsLane<ConvertedCells<F, FROM>, FROM, 32> {
  GPR_DEVICE void one(FROM x, int64_t) {
    const FROM only[1] = {x};
    this->cells.add(only, 0, 0);
  }
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
