/* Which fold of the device stands for each operator's along axes: the host's. */
#ifndef GPR_AXES_FOLDS_H
#define GPR_AXES_FOLDS_H

#include "as_host.h"
#include "axes_kernels.cuh"

GPR_OPEN

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

/* The fold that the device uses for one of operators.h's along axes; void: none. */
template <class F> struct AxesFoldOf { typedef F Fold; };
template <class F> struct AxesFold : AxesFoldOf<F> {};
template <> struct AxesFold<void> : AxesFoldOf<void> {};
template <class T> struct AxesFold<ExactFold<T>> : AxesFoldOf<PairSum<T>> {};
template <class T>
struct AxesFold<IntegerSum<T>> : AxesFoldOf<IntegerSum<typename SameSum<T>::type>> {};
template <class T> struct AxesFold<LongSum<T>> : AxesFoldOf<LongSum<T>> {};
template <class T> struct AxesFold<TimeSum<T>> : AxesFoldOf<TimeSum<T>> {};
template <class T>
struct AxesFold<Extremes<T>> : AxesFoldOf<Extremes<typename SameTime<T>::type>> {};
template <class T, bool G>
struct AxesFold<Position<T, G>> : AxesFoldOf<Position<typename SameTime<T>::type, G>> {};
template <class T>
struct AxesFold<Positions<T>> : AxesFoldOf<Positions<typename SameTime<T>::type>> {};
template <class T, int WHAT> /* all() by what it is not: Seen */
struct AxesFold<Counting<T, WHAT>> : AxesFoldOf<Counting<typename SameTruth<T>::type, 1>> {};
template <class T>
struct AxesFold<IntegerProduct<T>> : AxesFoldOf<IntegerProduct<typename SameSum<T>::type>> {};
template <class T, template <class> class Op>
struct AxesFold<Bitwise<T, Op>> : AxesFoldOf<Bitwise<typename SameBits<T>::type, Op>> {};
template <class T> struct AxesFold<MomentsFold<T>> : AxesFoldOf<PairMoments<T>> {};
template <class T> struct AxesFold<IntegerMoments<T>> : AxesFoldOf<IntegerMoments<T>> {};
template <class T, template <class> class Op>
struct AxesFold<TreeFold<T, Op>> : AxesFoldOf<TreeFold<T, Op>> {};
template <class T, template <class> class Op> /* whose products are never taken along an axis */
struct AxesFold<TreeFold<matrix<T>, Op>> : AxesFoldOf<void> {};

GPR_CLOSE
#endif
