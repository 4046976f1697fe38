/* What the threads of a block have of sums, brought together as a device does (warp_sums.cuh,
 * column_sums.cuh). */
#include "../../kernels/gpu/select.h"

using namespace gpr;

enum Way { WARP, BLOCK, BLOCK_OF_LEFT, COLUMNS, COLUMNS_OF_LEFT };
/* `in`: the terms of each thread's sums, or of the `entries` of each column, one row of columns
 * after the other; `out`: those that thread 0 has, or each of the first `width`, and how many
 * counted. */
struct SumsJob {
  int fold, way, width, height, entries;
  const double *in;
  double *out;
  int told;
};

template <class F> struct SumsOf {
  typedef Counted<F> C;
  typedef StateTerms<F> Terms;
  typedef typename C::State State;
  enum { THREADS = AXES_THREADS, NUMBERS = sizeof(typename Terms::Some) / sizeof(double) };

  static void read(State &s, const double *in) {
    typename Terms::Some some;
    memcpy((void *)&some, in, sizeof some);
    C::open(s);
    Terms::put(s.state, some);
    s.n = 1;
  }
  static void write(const State &s, double *out) {
    double x[Terms::sums][Terms::terms];
    Terms::get(s.state, x);
    for (int q = 0; q < Terms::sums; q++)
      for (int t = 0; t < Terms::terms_of(q); t++) *out++ = x[q][t];
    *out = (double)s.n;
  }
  static void run(SumsJob &job) {
    static Slots<C> slots;
    static State left[2 * THREADS];
    typedef BlockOfSums<C, THREADS / GPR_WARP> Block;
    const int id = (int)threadIdx.x, x = id % job.width,
              y = id / job.width < job.height ? id / job.width : THREADS;
    const bool of_left = job.way == BLOCK_OF_LEFT || job.way == COLUMNS_OF_LEFT;
    State s;
    if (of_left) {
      if (id == 0)
        for (int e = 0; e < job.entries * job.width; e++) read(left[e], job.in + e * NUMBERS);
      C::open(s);
      __syncthreads();
    } else {
      read(s, job.in + id * NUMBERS);
    }
    bool told;
    if (job.way == WARP)
      told = merged_by_warp<F>(s.state);
    else if (job.way == BLOCK || job.way == BLOCK_OF_LEFT)
      told = ((Block *)&slots)->merge(s, of_left ? left : nullptr, job.entries);
    else
      told = ((ColumnSums<C> *)&slots)
                 ->merge(s, x, y, job.width, job.height, true, of_left ? left + x : nullptr,
                         job.width * (int64_t)sizeof s, of_left ? job.entries : job.height);
    if (id < job.width) write(s, job.out + id * (NUMBERS + 1));
    if (id == 0) job.told = told;
  }
};
static void bring_together(SumsJob &job) {
  switch (job.fold) {
    case 0: return SumsOf<PairSum<float>>::run(job);
    case 1: return SumsOf<PairSum<double>>::run(job);
    case 2: return SumsOf<PairSum<complex<double>>>::run(job);
    case 3: return SumsOf<PairMoments<float>>::run(job);
    case 4: return SumsOf<PairMoments<double>>::run(job);
    default: return;
  }
}
