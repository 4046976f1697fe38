/* Short outputs of any layout: a thread each, or a few lanes of a warp. */
#pragma once

#include "brief_lanes.cuh"
#include "tile_run.cuh"

GPR_OPEN

/* A quicker way to finish `most` elements in registers, or fewer; threads have up to `alone`. */
template <class F> struct ByDifferences {
  static constexpr int most = 0, alone = FEW_SHORT;
  explicit GPR_DEVICE ByDifferences(const gpr_axes_args &) {}
};
/* The numbers of one output in registers, of which n counted. */
template <class F, int U>
__device__ __noinline__ bool finish_again(const gpr_axes_args *a, int64_t o,
                                          const Numbers<typename F::Element, U> each, int n) {
  Again<F> again;
  GPR_EACH(u, U) again.add(each.x[u], 0);
  return again.finish(*a, o, n);
}
/* An output of U elements at most, which a thread folds and finishes without a state in memory:
 * those of several outputs are under way together. */
template <class F, class LOAD, int U> struct Brief {
  typedef typename F::Element T;
  T x[U];
  uint32_t counts; /* bits */
  int64_t out;
  GPR_DEVICE void open(const gpr_axes_args &a, const TileRun<F, LOAD> &run, int64_t k) {
    const KeptPlace place = kept_place(a, k);
    const char *data = a.data + place.data, *where = a.where + place.where;
    const int n = (int)a.count;
    const int64_t step = told_now(run.stride);
    out = place.out;
    GPR_EACH(u, U) x[u] = u < n ? run.load(data + u * step) : T();
    counts = ~0u >> (32 - n);
    if (!a.where) return;
    const int64_t next = told_now(run.where_stride);
    counts &= ~gone_of<U>(n, [&](int u) { return where[u * next]; });
  }
  /* False: it has to be folded again. */
  GPR_DEVICE bool finish(const gpr_axes_args &a, const TileRun<F, LOAD> &run,
                         const ByDifferences<F> &differences) {
    if (a.skip) counts = less_missing(x, counts);
    const int n = __popc(counts);
    if (!n) tell_least(a, n);
    if constexpr (U <= ByDifferences<F>::most)
      return differences.finish(a, out, x, counts);
    else
      return fold_few(a, run, n);
  }
  template <class X> GPR_DEVICE void add_to(X &few, const TileRun<F, LOAD> &run) const {
    GPR_EACH(u, U)
      if (counts >> u & 1) few.add(x[u], F::ordered ? u * run.place : 0);
  }
  GPR_DEVICE bool fold_few(const gpr_axes_args &a, const TileRun<F, LOAD> &run, int n) {
    Few<F> few;
    if constexpr (LooksFirst<F>::value) {
      GPR_EACH(u, U)
        if (counts >> u & 1) few.see(x[u]);
      if (!few.open()) return false;
    }
    add_to(few, run);
    if (few.finish(a, out, n)) return true;
    /* Of more, normal ones took an eighth longer. */
    if constexpr (IsWide<F>::value && U <= 4) {
      Again<F> again;
      add_to(again, run);
      return again.finish(a, out, n);
    } else if constexpr (IsWide<F>::value) {
      Numbers<T, U> each;
      GPR_EACH(u, U) each.x[u] = counts >> u & 1 ? x[u] : minus_zero<T>();
      return finish_again<F, U>(&a, out, each, n);
    }
    return false;
  }
};

/* So many outputs a thread whose loads are under way together; of more the registers spilled, of
 * which small elements have one each: every second of 8 rows of 2^23 bfloat16 took 129 µs on an
 * H200 by four for their sums, and 75 by two, of 16 rows of 2^22 66 by one and 53 by two, of bytes
 * 84 by four and 37 by one. */
template <class F> GPR_FN GPR_CONSTEXPR int briefs_of(int elements) {
  const int size = (int)sizeof(typename F::Element), bytes = elements * (size < 4 ? 4 : size);
  return ByDifferences<F>::most ? 2 : bytes <= 16 ? 4 : bytes <= 32 || size == 2 ? 2 : 1;
}
template <int U, class F, class LOAD> GPR_DEVICE void fold_alone(const gpr_axes_args &a) {
  constexpr int N = briefs_of<F>(U);
  const int64_t step = (int64_t)gridDim.x * AXES_THREADS;
  int64_t k = block_of(a) * AXES_THREADS + threadIdx.x;
  const TileRun<F, LOAD> run(a);
  const ByDifferences<F> differences(a);
#pragma unroll 1
  while (k < a.outputs) {
    Brief<F, LOAD, U> brief[N];
    GPR_EACH(i, N)
      if (k + i * step < a.outputs) brief[i].open(a, run, k + i * step);
    GPR_ROLLED(int i = 0; i < N && k < a.outputs; i++, k += step) {
      if (!brief[0].finish(a, run, differences)) fold_again<F, LOAD>(&a, k);
      GPR_UNROLLED(int j = 1; j < N; j++) brief[j - 1] = brief[j];
    }
  }
}

/* Outputs of one element each: whether they are brief before they are packed or staged, and which
 * of them go by One. */
template <class F> struct Ones {
  static constexpr bool first = false;
  static GPR_DEVICE bool suit(const gpr_axes_args &a) { return !a.where && !a.has_initial; }
};
/* A thread would else wait for each of them. */
template <class F, class LOAD> GPR_DEVICE void fold_ones(const gpr_axes_args &a) {
  typedef typename F::Element T;
  constexpr int N = 4;
  const int64_t step = (int64_t)gridDim.x * AXES_THREADS;
  const TileRun<F, LOAD> run(a);
  GPR_ROLLED(int64_t k = block_of(a) * AXES_THREADS + threadIdx.x; k < a.outputs; k += N * step) {
    T x[N];
    int64_t out[N];
    GPR_EACH(i, N) {
      if (k + i * step >= a.outputs) continue;
      const KeptPlace place = kept_place(a, k + i * step);
      x[i] = run.load(a.data + place.data);
      out[i] = place.out;
    }
    uint32_t missed = 0;
    GPR_EACH(i, N) {
      if (k + i * step >= a.outputs) continue;
      One<F> one;
      bool is_nothing = a.skip && is_nan_or_nat(x[i]);
      if constexpr (IsSum<F>::value)
        if (is_nothing) {
          tell_least(a, 0);
          x[i] = sum_of_nothing<T>(divides(a.op));
          is_nothing = false;
        }
      one.add(x[i], 0);
      if (is_nothing || !one.finish(a, out[i], 1)) missed |= 1u << i;
    }
    GPR_ROLLED(; missed; missed &= missed - 1)
      fold_again<F, LOAD>(&a, k + (__ffs(missed) - 1) * step);
  }
}

/* --- a few lanes to each output --------------------------------------------------------------- */

/* Two neighbouring outputs of small elements to a lane, which reads both at once: of one each, a
 * warp has too little under way. 64 MB of bfloat16 in 100 rows took 40 µs on an H200, and 30 so. */
template <class F> GPR_FN GPR_CONSTEXPR bool can_be_pairs() {
  return sizeof(typename F::Element) == 2 && !LooksFirst<F>::value;
}

/* What a lane has of WIDE outputs: `left` elements of each from r on, `down` apart. */
template <class F, class LOAD = typename F::Element, int WIDE = 1> struct BriefShare {
  typedef typename F::Element T;
  const gpr_axes_args &a;
  const TileRun<F, LOAD> &run;
  const char *data, *where; /* the output's first element; of several the lane's next ones */
  int r, left, down;

  /* The next U, or as many as there are; a bit for each that there is. */
  template <int U> GPR_DEVICE uint32_t load(T (&x)[1][U]) const {
    const char *from = data + r * run.stride;
    const int64_t step = told_now(down * run.stride);
    if (left >= U) {
      GPR_EACH(u, U) x[0][u] = run.load(from + u * step);
      return ~0u >> (32 - U);
    }
    /* What is left as it was would be kept for the next round. */
    GPR_EACH(u, U) x[0][u] = u < left ? run.load(from + u * step) : T();
    return (1u << left) - 1;
  }
  template <int U> GPR_DEVICE uint32_t load(T (&x)[2][U]) const {
    const int64_t step = told_now(down * run.stride);
    GPR_EACH(u, U) {
      union {
        uint32_t word;
        T element[2];
      } both;
      both.word = u < left ? *(const uint32_t *)(data + u * step) : 0;
      GPR_EACH(e, 2) x[e][u] = both.element[e];
    }
    return left >= U ? ~0u >> (32 - U) : (1u << left) - 1;
  }
  /* To n how many of them counted. */
  template <int U, class Lanes> GPR_DEVICE void fold(Lanes (&lanes)[WIDE], int (&n)[WIDE]) {
    T x[WIDE][U];
    uint32_t there = load(x);
    if (WIDE == 1 && a.where) {
      const char *from = where + r * run.where_stride;
      const int64_t step = told_now(down * run.where_stride);
      there &= ~gone_of<U>(left, [&](int u) { return from[u * step]; });
    }
    GPR_EACH(e, WIDE) {
      const uint32_t valid = a.skip ? less_missing(x[e], there) : there;
      lanes[e].add(x[e], valid, r, down);
      n[e] += __popc(valid);
    }
    r += U * down;
    left -= U;
    if (WIDE > 1) data += U * down * run.stride;
  }
  template <class Lanes> GPR_DEVICE void fold_all(Lanes (&lanes)[WIDE], int (&n)[WIDE]) {
    enum { FEW = 4 }; /* a round of all loads takes as long for one element as for all */
#pragma unroll 1
    while (left > FEW) fold<BriefLanes<F>::loads>(lanes, n);
    if (left > 0) fold<FEW>(lanes, n);
  }
};

/* What a team's lanes have of an output, which lies at `out`, comes together, of whole warps;
 * whether the one that writes has told it. */
template <class Lanes>
GPR_DEVICE bool finish_lanes(const gpr_axes_args &a, Lanes &lanes, int64_t out, int n, bool lost,
                             bool writes) {
  const int team = a.across * a.down;
  GPR_ROLLED(int mask = team / 2; mask >= a.across; mask /= 2) n += shuffle_xor(n, mask);
  if (writes) tell_least(a, n);
  return lanes.finish(a, out, n, team, lost, writes) || !writes;
}
template <class Lanes, class F, class LOAD, int WIDE>
GPR_DEVICE void fold_share(const typename Lanes::Shared &shared, BriefShare<F, LOAD, WIDE> mine,
                           int64_t out, bool writes, bool (&told)[WIDE]) {
  const gpr_axes_args &a = mine.a;
  bool lost[2] = {};
  int n[WIDE] = {};
  if constexpr (WIDE == 1) {
    Lanes lanes[1] = {{shared, mine.run.place, lost}};
    lanes->begin(mine);
    mine.fold_all(lanes, n);
    told[0] = finish_lanes(a, *lanes, out, *n, *lost, writes);
  } else {
    Lanes lanes[2] = {{shared, mine.run.place, lost}, {shared, mine.run.place, lost + 1}};
    mine.fold_all(lanes, n);
    GPR_EACH(e, 2)
      told[e] = finish_lanes(a, lanes[e], out + e * a.dim[a.kept - 1].place, n[e], lost[e], writes);
  }
}
/* Of a warp's lanes `across` neighbours take neighbouring outputs, and `down` of those the elements
 * of each; of several outputs each there are none across. */
template <class F, class LOAD, int WIDE> GPR_DEVICE void fold_by_lanes(const gpr_axes_args &a) {
  const int across = WIDE > 1 ? 0 : log2_of(a.across), neighbours = WIDE > 1 ? 1 : a.neighbours,
            down = log2_of(a.down), id = threadIdx.x & ((1 << (across + down)) - 1),
            near = id & ((1 << across) - 1), y = id >> across,
            teams = AXES_THREADS >> (across + down);
  const int share = ((int)a.count - y + a.down - 1) >> down;
  const int64_t groups = (neighbours == 1 ? a.outputs : quotient_of(a.outputs, neighbours)) / WIDE;
  const typename BriefLanes<F>::Shared shared(a);
  const TileRun<F, LOAD> run(a);
  GPR_ROLLED(int64_t first = block_of(a) * teams; first < groups;
             first += (int64_t)gridDim.x * teams) {
    const int64_t group = first + (threadIdx.x >> (across + down)),
                  k = (group * neighbours + near) * WIDE;
    const bool exists = group < groups && near < neighbours;
    const KeptPlace place = kept_place(a, exists ? k : 0);
    const char *const data = a.data + place.data + (WIDE > 1 ? y * run.stride : 0);
    const BriefShare<F, LOAD, WIDE> mine = {
        a, run, data, a.where + place.where, y, exists ? share : 0, a.down};
    const bool writes = exists && y == 0;
    bool told[WIDE];
    fold_share<BriefLanes<F>>(shared, mine, place.out, writes, told);
    if constexpr (HasTies<F>::value)
      if (__any_sync(GPR_ALL, !told[0]))
        fold_share<TiedLanes<F>>(shared, mine, place.out, writes && !told[0], told);
    if constexpr (!BriefLanes<F>::are_sure)
      GPR_EACH(e, WIDE)
        if (__any_sync(GPR_ALL, !told[e])) fold_again_together<F, LOAD>(&a, k + e, !told[e]);
  }
}

/* With four blocks, and so 64 registers, more was spilled: by extremes of floats twice as much. Of
 * complex numbers three did: of 128 MB of doubles in 100 rows their sums took 57 µs on an H200 and
 * take 50, in rows of 100 65 and 51; of floats in 100 rows 59 and 37. */
template <class F> struct BriefShape { static constexpr int blocks = 3; };
template <class T> struct BriefShape<PairSum<complex<T>>> { static constexpr int blocks = 2; };
/* LOAD: as Load's. */
template <class F, class LOAD = typename F::Element>
__global__ void __launch_bounds__(AXES_THREADS, BriefShape<F>::blocks)
    brief(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  if constexpr (Same<LOAD, T>::value && can_be_pairs<F>())
    if (a.team && a.groups == 2) return fold_by_lanes<F, T, 2>(a);
  if (a.team) return fold_by_lanes<F, LOAD, 1>(a);
  if (a.count == 1 && Ones<F>::suit(a)) return fold_ones<F, LOAD>(a);
  if (a.count <= 4) return fold_alone<4, F, LOAD>(a);
  if (a.count <= 8) return fold_alone<8, F, LOAD>(a);
  if constexpr (ByDifferences<F>::alone > 8) fold_alone<FEW_SHORT, F, LOAD>(a);
}

GPR_CLOSE
