/* How the lanes of a warp come together that has folded several rows: all rows at a time.
 *
 * The end of a row of floats is hundreds of instructions that wait for each other. Sums of 38016
 * rows of 8 KB of floats took 96.6 µs on an H200 row by row and 93.4 so, of doubles 102.1 and 97.7;
 * of 16 KB 165 and 167. */
#ifndef GPR_ROW_ENDS_CUH
#define GPR_ROW_ENDS_CUH

#include "outputs.cuh"

GPR_OPEN

/* So many rows of a warp. */
template <class F> struct RowEnds { static constexpr int rows = 1; };

template <class T> struct RowEnds<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef typename RealSum<typename F::Real>::Sum Sum;
  struct Each {
    Sum part[F::parts];
  };
  static constexpr int rows = sizeof(Each) <= 32 ? 4 : 2, lanes = GPR_WARP / rows;
  Each of[rows][GPR_WARP];

  /* What a lane has of row r; false, of all lanes, if one has more than pairs. */
  __device__ __forceinline__ bool put(int r, const State &s) {
    bool more = false;
#pragma unroll
    for (int p = 0; p < F::parts; p++) {
      of[r][lane_of()].part[p] = s.part[p].sum;
      more |= s.part[p].used != 0;
    }
    return !__any_sync(GPR_ALL, more);
  }
  __device__ __forceinline__ void get(int r, State &s) const {
    F::open(s);
#pragma unroll
    for (int p = 0; p < F::parts; p++) s.part[p].sum = of[r][lane_of()].part[p];
  }
  /* The rows that `there` says, by bits: finish(r, s) by one lane of each. What pairs cannot hold
   * takes the way of a single row. */
  template <class Finish>
  __device__ __forceinline__ void come_together(uint32_t there, State &s, Finish finish) const {
    const int row = lane_of() / lanes, at = lane_of() % lanes;
    bool lost = false;
    __syncwarp();
    Each sum = of[row][at];
#pragma unroll 1
    for (int i = at + lanes; i < GPR_WARP; i += lanes) merge(sum, of[row][i], lost);
#pragma unroll 1
    for (int mask = lanes / 2; mask; mask /= 2) merge(sum, shuffle_xor(sum, mask), lost);
    const uint32_t left = rows_of(__ballot_sync(GPR_ALL, lost)) & there;
    if (at == 0 && (there & ~left) >> row & 1) {
      F::open(s);
#pragma unroll
      for (int p = 0; p < F::parts; p++) s.part[p].sum = sum.part[p];
      finish(row, s);
    }
#pragma unroll 1
    for (int r = 0; r < rows; r++) {
      if (!(left >> r & 1)) continue;
      get(r, s);
      Move<F>::merge_lanes(s, GPR_WARP);
      if (lane_of() == 0) finish(r, s);
    }
  }
  static __device__ __forceinline__ void merge(Each &mine, const Each &theirs, bool &lost) {
#pragma unroll
    for (int p = 0; p < F::parts; p++) mine.part[p] = merged(mine.part[p], theirs.part[p], lost);
  }
  /* A bit of each row of which a lane says so. */
  static __device__ __forceinline__ uint32_t rows_of(uint32_t ballot) {
    uint32_t all = 0;
#pragma unroll
    for (int r = 0; r < rows; r++) all |= (ballot >> r * lanes & ((1u << lanes) - 1) ? 1u : 0) << r;
    return all;
  }
};

GPR_CLOSE
#endif
