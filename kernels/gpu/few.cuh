/* A few elements of one output, folded and finished by one thread without a state in memory. */
#pragma once

#include "outputs.cuh"

GPR_OPEN

enum { FEW_MOST = 64, FEW_SHORT = 16 }; /* elements */

template <class F> struct FewCells {
  Cells<F, 1> cells;
  GPR_DEVICE void add(typename F::Element x, int64_t index) {
    const typename F::Element only[1] = {x};
    cells.template add<1>(only, index, 0);
  }
  GPR_DEVICE void result(typename F::State &s) { cells.done(&s); }
};
/* Indices of few elements are small. */
template <class T, bool GREATEST> struct FewCells<Position<T, GREATEST>> {
  PositionCell<T, GREATEST, int> cell;
  GPR_DEVICE void add(T x, int64_t index) { cell.add(x, (int)index); }
  GPR_DEVICE void result(typename Position<T, GREATEST>::State &s) { s = cell.done(); }
};

/* What finish() sees of a few elements' state. */
template <class F> struct FewValue {
  typedef typename F::State Value;
  static GPR_DEVICE const Value &of(const Value &s) { return s; }
};
/* What all outputs of a thread are finished with. */
struct NothingShared {
  explicit GPR_DEVICE NothingShared(const gpr_axes_args &) {}
};
/* finish() writes the result of n elements; false: they have to be folded again. */
template <class F> struct Few : FewCells<F> {
  typedef typename F::State State;
  typedef typename FewValue<F>::Value Value;
  typedef NothingShared Shared;
  using FewCells<F>::result;
  GPR_DEVICE void result(Value &value, const Shared &) {
    State s;
    this->result(s);
    value = FewValue<F>::of(s);
  }
  /* The state; false as finish(). */
  GPR_DEVICE bool done(State &s) {
    this->result(s);
    return true;
  }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int64_t n) {
    Value value;
    result(value, Shared(a));
    return finish_value<F>(a, o, n, value);
  }
  /* Neighbours' parts of one output, finished by the thread that says so. */
  GPR_DEVICE bool finish_team(const gpr_axes_args &a, int64_t o, int64_t n, int team, bool mine) {
    State s;
    this->result(s);
    Move<F>::merge_lanes(s, team);
    if (mine) finish_here<F>(a, o, s, n);
    return true;
  }
};

/* Whether see() is called for all of them before open(), and that before the first add(), so that
 * staged rows have states in memory. */
template <class F> struct LooksFirst { static constexpr bool value = false; };

/* Whether Few takes packets as they are. */
template <class F> struct TakesPackets { static constexpr bool value = false; };

/* The same for one element and no initial value. */
template <class F> struct One : Few<F> {};
/* For two elements. */
template <class F> struct Two : Few<F> {};
/* By what the kernel of columns of a few rows (shallow.cuh) folds one, two, or more of them. */
template <class F> struct OfColumns {
  typedef One<F> one;
  typedef Two<F> two;
  typedef Few<F> few;
};
/* Whether begin() is called with an output's first element before all others. */
template <class X> struct Begins { static constexpr bool value = false; };
/* What looks again at elements that Few could not finish; whether there is such. */
template <class F> struct Again;
template <class F> struct HasAgain { static constexpr bool value = false; };
/* Whether that is nearly always enough, so that numbers that are far apart go by it alone; what
 * folds elements that are not looked at again. */
template <class F> struct IsWide { static constexpr bool value = false; };
template <class F> struct Single {
  typedef typename Either<IsWide<F>::value, Again<F>, Few<F>>::type type;
};

GPR_CLOSE
