/* Which fold of the device stands for each operator's along axes: the host's. */
#pragma once

#include "as_host.h"
#include "axes_kernels.cuh"

GPR_OPEN

/* The fold that the device uses for one of operators.h's along axes; void: none. */
template <class F> struct AxesFold { typedef F Fold; };
template <class T> struct AxesFold<ExactFold<T>> { typedef PairSum<T> Fold; };
template <class T> struct AxesFold<MomentsFold<T>> { typedef PairMoments<T> Fold; };
/* all() by what it is not: Seen. */
template <class T> struct AxesFold<Counting<T, 0>> { typedef Counting<T, 1> Fold; };
/* Products of matrices are never taken along an axis. */
template <class T, template <class> class Op> struct AxesFold<TreeFold<matrix<T>, Op>> {
  typedef void Fold;
};

GPR_CLOSE
