/* What the threads of a block have of sums of many outputs, added up at once: warp_sums.cuh's, of
 * threads that lie across and down. A thread's levels are numbers, whose sums are exact. The
 * variances of 65536 rows of 32 doubles, by 205 blocks of 8 threads down, took 42 µs on an H200 as
 * pairs that merge, and 32 so. */
#pragma once

#include "outputs.cuh"

GPR_OPEN

template <class F> struct ColumnSums {
  typedef LevelledSums<F, 2, AXES_THREADS> Sums;
  typedef StateTerms<F> Terms;
  typedef typename F::State State;
  typedef typename Sums::Numbers Numbers;
  static constexpr int sums = Sums::sums;
  uint32_t most[sums][AXES_THREADS];
  Numbers slot[1][AXES_THREADS / 2];

  /* Of column x those of the threads (x, 0 … height), or as many of the `entries` that lie so many
   * bytes apart, come to (x, 0); or false, and they are as they were. Threads that are not `mine`
   * have nothing. */
  __device__ __noinline__ bool merge(State &s, int x, int y, int width, int height, bool mine,
                                     const State *from, int64_t apart, int entries) {
    if (entries > 2 * height) return false;
    const bool inside = mine && y<height, two = entries> height;
    Sums all;
    Numbers sum[1] = {};
    __syncthreads();
    if (threadIdx.x < width)
      GPR_EACH(q, sums) most[q][threadIdx.x] = 0;
    all.template see_nothing<0>();
    all.template see_nothing<1>();
    if (inside && y < entries) all.template see<0>(from ? *after(from, y * apart) : s);
    if (inside && y + height < entries) all.template see<1>(*after(from, (y + height) * apart));
    __syncthreads();
    if (inside)
      GPR_EACH(q, sums) atomicMax(&most[q][x], all.most[q]);
    __syncthreads();
    if (inside) {
      GPR_EACH(q, sums) all.most[q] = most[q][x];
      all.number(two, sum[0]);
    }
    sum->n = all.n;
    merge_halves(sum, x, y, width, height, slot,
                 [](Numbers &mine, const Numbers &theirs) { mine.add(theirs); });
    typename Terms::Some some;
    const bool fits = !inside || y || all.take(some, sum[0]);
    if (__syncthreads_or(all.lost || !fits)) return false;
    if (inside && y == 0) {
      if (from) F::open(s);
      Terms::put(s, some);
      if constexpr (Terms::counts) s.n = sum->n;
    }
    return true;
  }
};

GPR_CLOSE
