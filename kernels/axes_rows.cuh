/* The folds that have kernels for many outputs, in families: each translation unit makes one. */
#ifndef GPR_AXES_ROWS_CUH
#define GPR_AXES_ROWS_CUH

#include "axes_launch.cuh"
#include "moment_outputs.cuh"

GPR_OPEN

enum AxesFamily {
  AXES_SUMS,
  AXES_EXTREMES,
  AXES_POSITIONS,
  AXES_WORDS,
  AXES_MOMENTS,
  AXES_FAMILIES
};

/* The fold that the device uses for one of ops.cuh's, and its family; void: none. */
template <class F> struct AxesFold {
  typedef F Fold;
  static constexpr int family = AXES_WORDS;
};
template <class F, int FAMILY> struct AxesFoldOf {
  typedef F Fold;
  static constexpr int family = FAMILY;
};
template <> struct AxesFold<void> : AxesFoldOf<void, AXES_WORDS> {};
template <class T> struct AxesFold<ExactFold<T>> : AxesFoldOf<PairSum<T>, AXES_SUMS> {};
template <class T> struct AxesFold<IntegerSum<T>> : AxesFoldOf<IntegerSum<T>, AXES_SUMS> {};
template <class T> struct AxesFold<LongSum<T>> : AxesFoldOf<LongSum<T>, AXES_SUMS> {};
template <class T> struct AxesFold<TimeSum<T>> : AxesFoldOf<TimeSum<T>, AXES_SUMS> {};
template <class T> struct AxesFold<Extremes<T>> : AxesFoldOf<Extremes<T>, AXES_EXTREMES> {};
template <class T, bool G>
struct AxesFold<Position<T, G>> : AxesFoldOf<Position<T, G>, AXES_POSITIONS> {};
template <class T> struct AxesFold<Positions<T>> : AxesFoldOf<Positions<T>, AXES_POSITIONS> {};
template <class T> struct AxesFold<MomentsFold<T>> : AxesFoldOf<PairMoments<T>, AXES_MOMENTS> {};
template <class T>
struct AxesFold<IntegerMoments<T>> : AxesFoldOf<IntegerMoments<T>, AXES_MOMENTS> {};
template <class T, template <class> class Op>
struct AxesFold<TreeFold<T, Op>> : AxesFoldOf<void, AXES_WORDS> {};

struct AxesRows {
  AxesRow row[GPR_OP_COUNT * GPR_DTYPE_COUNT];
};
template <int FAMILY, class F> AxesRow axes_row() {
  typedef typename AxesFold<F>::Fold Fold;
  if constexpr (AxesFold<F>::family == FAMILY && !Same<Fold, void>::value)
    return AxesKernels<Fold>::row();
  else
    return {};
}
template <int FAMILY, template <class> class Op> void fill(AxesRow *row) {
#define GPR_X(id, name, kind, bytes, type) \
  row[GPR_##id] = axes_row<FAMILY, typename Op<type>::Fold>();
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
template <int FAMILY> AxesRows make_axes_rows() {
  AxesRows rows{};
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) \
  fill<FAMILY, op>(rows.row + GPR_OP_##id * GPR_DTYPE_COUNT);
  GPR_OPS(GPR_X)
#undef GPR_X
  return rows;
}

GPR_CLOSE
#endif
