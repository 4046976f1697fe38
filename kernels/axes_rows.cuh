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
  AXES_TREES,
  AXES_MOMENTS,
  AXES_FAMILIES
};

/* Types that an operator treats alike share its kernels. */
template <class T> struct SameBits { typedef T type; };
template <> struct SameBits<int8_t> { typedef uint8_t type; };
template <> struct SameBits<int16_t> { typedef uint16_t type; };
template <> struct SameBits<int32_t> { typedef uint32_t type; };
template <> struct SameBits<int64_t> { typedef uint64_t type; };
template <class T> struct SameTruth : SameBits<T> {};
template <> struct SameTruth<boolean> { typedef uint8_t type; };
template <> struct SameTruth<bfloat16> { typedef float16 type; };
template <> struct SameTruth<datetime64> { typedef uint64_t type; };
template <> struct SameTruth<timedelta64> { typedef uint64_t type; };
template <class T> struct SameSum { typedef T type; };
template <> struct SameSum<int64_t> { typedef uint64_t type; };
template <class T> struct SameTime { typedef T type; };
template <> struct SameTime<datetime64> { typedef timedelta64 type; };

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
template <class T>
struct AxesFold<IntegerSum<T>> : AxesFoldOf<IntegerSum<typename SameSum<T>::type>, AXES_SUMS> {};
template <class T> struct AxesFold<LongSum<T>> : AxesFoldOf<LongSum<T>, AXES_SUMS> {};
template <class T> struct AxesFold<TimeSum<T>> : AxesFoldOf<TimeSum<T>, AXES_SUMS> {};
template <class T>
struct AxesFold<Extremes<T>> : AxesFoldOf<Extremes<typename SameTime<T>::type>, AXES_EXTREMES> {};
template <class T, bool G>
struct AxesFold<Position<T, G>>
    : AxesFoldOf<Position<typename SameTime<T>::type, G>, AXES_POSITIONS> {};
template <class T>
struct AxesFold<Positions<T>> : AxesFoldOf<Positions<typename SameTime<T>::type>, AXES_POSITIONS> {
};
template <class T, int WHAT>
struct AxesFold<Counting<T, WHAT>>
    : AxesFoldOf<Counting<typename SameTruth<T>::type, WHAT>, AXES_WORDS> {};
template <class T>
struct AxesFold<IntegerProduct<T>>
    : AxesFoldOf<IntegerProduct<typename SameSum<T>::type>, AXES_WORDS> {};
template <class T, template <class> class Op>
struct AxesFold<Bitwise<T, Op>> : AxesFoldOf<Bitwise<typename SameBits<T>::type, Op>, AXES_WORDS> {
};
template <class T> struct AxesFold<MomentsFold<T>> : AxesFoldOf<PairMoments<T>, AXES_MOMENTS> {};
template <class T>
struct AxesFold<IntegerMoments<T>> : AxesFoldOf<IntegerMoments<T>, AXES_MOMENTS> {};
template <class T, template <class> class Op>
struct AxesFold<TreeFold<T, Op>> : AxesFoldOf<TreeFold<T, Op>, AXES_TREES> {};
template <class T, template <class> class Op> /* whose products are never taken along an axis */
struct AxesFold<TreeFold<matrix<T>, Op>> : AxesFoldOf<void, AXES_TREES> {};

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
