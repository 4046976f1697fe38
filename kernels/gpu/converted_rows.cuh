/* What a lane keeps of rows whose elements are converted before they are summed. */
#pragma once

#include "converted_cells.cuh"

GPR_OPEN

/* F of elements as they lie. */
template <class F, class FROM> struct Reads : F { typedef FROM Element; };
/* The fold whose states a lane has. */
template <class F> struct StatesOf { typedef F Fold; };
template <class F, class FROM> struct StatesOf<Reads<F, FROM>> { typedef F Fold; };

template <class T, class FROM>
struct Lane<Reads<PairSum<T>, FROM>> : CellsLane<ConvertedCells<PairSum<T>, FROM>, FROM, 32> {
  GPR_DEVICE void one(FROM x, int64_t) {
    const FROM only[1] = {x};
    this->cells.add(only, 0, 0);
  }
};

GPR_CLOSE
