/* Short rows of the fast axis, one behind the other, with some bytes between them, of every second
 * element, or of whole aligned packets any distance apart, and narrow columns of a few rows, one
 * batch of them behind the other: a block copies many of them into shared memory and gives each
 * output a few neighbouring threads. */
#pragma once

#include "tile_run.cuh"

GPR_OPEN

/* What a thread folds, but for some rows of few elements (select.h's FEW_BYTES). */
enum { STAGED_BYTES = 128 };

/* Blocks a multiprocessor, and packets of a tile. The sums' hold 512 rows of 64 bytes: 84 µs in
 * place of 91 for 256 MiB of them on an H200, where argmax lost 1 to 3 % of other rows. */
template <class F> struct StagedShape { static constexpr int blocks = 4, packets = 2304; };
template <class T> struct StagedShape<PairSum<T>> {
  static constexpr int blocks = 4, packets = 2560;
};

/* Each row is whole aligned packets. */
template <class T> GPR_DEVICE bool are_staged_packets(const gpr_axes_args &a) {
  return a.pitch && a.apart == 1 && a.count % Packet<T>::count == 0 && (uintptr_t)a.data % 16 == 0;
}
/* One output's elements, `apart` from each other. */
template <class T> struct StagedElements {
  const T *first;
  int apart;
  GPR_DEVICE T operator[](int i) const { return first[i * apart]; }
};

/* A lane's share of a staged row: elements id, id + team, …, or packets of them if it has some. */
template <class T> struct StagedShare {
  const uint4 *packet; /* or NULL */
  StagedElements<T> element;
  int count, id, team;
};

/* Elements in the order of their index: as many as a lane has bytes for. */
template <class F> struct StagedRow {
  typedef typename F::Element T;
  typedef typename F::State State;
  typedef StagedShare<T> Share;
  static constexpr int V = Packet<T>::count;

  enum { TOGETHER = 4 }; /* independent loads */
  /* How many of them did not count: NaN, of what skips it. */
  template <bool SKIP, class X> static GPR_DEVICE int fold_packets(X &few, const Share &in) {
    int gone = 0;
    GPR_ROLLED(int p = in.id; p < in.count / V; p += in.team) {
      Packet<T> v[1];
      v->words = in.packet[p];
      if constexpr (TakesPackets<F>::value)
        few.take(v);
      else
        GPR_EACH(j, V) gone += !add<SKIP>(few, v->element[j], p * V + j);
    }
    return gone;
  }
  template <bool SKIP, class X> static GPR_DEVICE int fold_elements(X &few, const Share &in) {
    const int team = in.team, step = team * in.element.apart;
    const T *from = in.element.first + in.id * in.element.apart;
    int gone = 0, i = in.id;
    GPR_ROLLED(; i + (TOGETHER - 1) * team < in.count;
               i += TOGETHER * team, from += TOGETHER * step) {
      T x[TOGETHER];
      GPR_EACH(u, TOGETHER) x[u] = from[u * step];
      GPR_EACH(u, TOGETHER) gone += !add<SKIP>(few, x[u], i + u * team);
    }
    GPR_ROLLED(; i < in.count; i += team, from += step) gone += !add<SKIP>(few, *from, i);
    return gone;
  }
  template <bool SKIP, class X> static GPR_DEVICE bool add(X &few, T x, int index) {
    const bool counts = !SKIP || !is_nan_or_nat(x);
    if (counts) few.add(x, index);
    return counts;
  }
  template <bool SKIP, class X> static GPR_DEVICE int fold_all(X &few, const Share &in) {
    return in.packet ? fold_packets<SKIP>(few, in) : fold_elements<SKIP>(few, in);
  }
  /* The same as a lane of its share: others of its team may have told theirs. */
  static __device__ __noinline__ void fold_slowly(State &s, const Share in) {
    const int each = in.packet ? V : 1;
    F::open(s);
    for (int i = in.id * each; i < in.count; i += in.team * each)
      for (int j = i; j < i + each; j++) F::add(s, in.element[j], j);
  }
  static GPR_DEVICE void fold(const Share &in, State &s) {
    Few<F> few;
    fold_all<false>(few, in);
    if (!few.done(s)) fold_slowly(s, in);
  }
  /* A row finished without states in memory; where lanes share rows the whole warp agrees. */
  template <bool SKIP>
  static GPR_DEVICE bool quick(const gpr_axes_args &a, int64_t o, const Share &in, bool here) {
    if (finished<SKIP, Few<F>>(a, o, in, here)) return true;
    if constexpr (HasAgain<F>::value) return again<SKIP>(&a, o, in, here);
    return false;
  }
  /* Not inlined: its registers would spill the common way's. */
  template <bool SKIP>
  static __device__ __noinline__ bool again(const gpr_axes_args *a, int64_t o, const Share in,
                                            bool here) {
    return finished<SKIP, Again<F>>(*a, o, in, here);
  }
  template <bool SKIP, class X>
  static GPR_DEVICE bool finished(const gpr_axes_args &a, int64_t o, const Share &in, bool here) {
    X few;
    int gone = fold_all<SKIP>(few, in);
    bool writes = here && in.id == 0, none = false;
    if constexpr (SKIP) {
      GPR_ROLLED(int mask = in.team / 2; mask; mask /= 2) gone += shuffle_xor(gone, mask);
      if (writes) tell_least(a, in.count - gone);
      none = here && gone == in.count;
      if (none && writes) fold_again<F>(&a, o); /* by itself: the warp's other rows are quick */
      writes &= !none;
    }
    if (in.team > 1) return few.finish_team(a, o, in.count - gone, in.team, writes);
    return !here || none || few.finish(a, o, in.count - gone);
  }
};

/* Rows or batches that come to shared memory together. Instructions for each of them count: of
 * 435408 rows of 455 floats sums took 33 instructions an element and 327 µs on an H200 (by a
 * profiler's clocks), and take 20 and 242. */
template <class T> struct StagedTile {
  static constexpr int V = Packet<T>::count;
  int width, pitch, length; /* width: columns of a batch, or 1; pitch 0: rows follow each other */
  int before, extent;       /* of the first packet; of a row, and what is before */
  int64_t beyond;           /* bytes from a row to the next */
  GPR_DEVICE explicit StagedTile(const gpr_axes_args &a)
      : width(a.neighbours),
        pitch(a.pitch),
        length((int)a.length),
        before((int)((uintptr_t)a.data % 16 / sizeof(T))),
        extent(before + ((int)a.count - 1) * a.apart + width),
        beyond(a.kept ? a.dim[0].stride : 0) {}
  GPR_DEVICE int row_packets() const { return (unsigned)(extent + V - 1) / V; }
  /* `rows` of them, the array's last ones or not. */
  GPR_DEVICE void copy(uint4 *stage, const char *data, int rows, bool is_last) const {
    const int each = row_packets();
    if (pitch && (pitch != each || beyond != 16 * each))
      return copy_apart(stage, data, rows, is_last);
    const int elements = (rows - 1) * length + extent, packets = (unsigned)elements / V;
    for (int p = threadIdx.x; p < packets; p += AXES_THREADS) copy_packet(stage + p, data + 16 * p);
    for (int i = packets * V + threadIdx.x; i < elements; i += AXES_THREADS)
      ((T *)stage)[i] = ((const T *)data)[i];
  }
  /* The array's last packet may not be there whole. */
  GPR_DEVICE void copy_apart(uint4 *stage, const char *data, int rows, bool is_last) const {
    const int each = row_packets(), left = is_last ? extent % V : 0,
              packets = rows * each - (left ? 1 : 0);
    const int down = AXES_THREADS / each, along = AXES_THREADS - down * each;
    int row = threadIdx.x / each, p = threadIdx.x - row * each;
    for (int at = threadIdx.x; at < packets; at += AXES_THREADS) {
      copy_packet(stage + row * pitch + p, data + row * beyond + 16 * p);
      row += down, p += along;
      if (p >= each) row++, p -= each;
    }
    if (threadIdx.x < left) {
      const int i = extent - left + threadIdx.x;
      ((T *)(stage + (rows - 1) * pitch))[i] = ((const T *)(data + (rows - 1) * beyond))[i];
    }
  }
  /* Output `row` of the tile. */
  GPR_DEVICE StagedElements<T> elements(const uint4 *stage, int row, int apart) const {
    const int above = width == 1 ? row : row / width;
    const T *const batch =
        pitch ? (const T *)(stage + row * pitch) : (const T *)stage + above * length;
    return {batch + before + (row - above * width), apart};
  }
};

template <class F, bool SKIP> GPR_DEVICE void fold_staged(const gpr_axes_args &a, uint4 *stage) {
  typedef typename F::Element T;
  typedef typename F::State State;
  typedef StagedTile<T> Tile;
  const Tile in(a);
  const int team = a.team, shift = log2_of(team), teams = AXES_THREADS >> shift,
            id = threadIdx.x & (team - 1), of_warp = warp_of() * (GPR_WARP >> shift);
  const bool by_packets = are_staged_packets<T>(a);
  const int64_t block = block_of(a);
  for (int64_t tile = block; tile < a.tiles; tile += gridDim.x) {
    const int64_t batch = tile * a.rows, first = batch * in.width;
    const int here = (int)least(a.outputs - first, (int64_t)a.rows * in.width);
    if (tile != block) __syncthreads();
    in.copy(stage, a.data + batch * in.beyond - in.before * (int)sizeof(T),
            in.width == 1 ? here : here / in.width, first + here == a.outputs);
    copies_done();
    /* By whole warps: lanes merge below. */
    GPR_ROLLED(int above = 0; above + of_warp < here; above += teams) {
      const int row = above + (threadIdx.x >> shift), mine = row < here ? row : here - 1;
      const StagedShare<T> share = {by_packets ? stage + mine * in.pitch : nullptr,
                                    in.elements(stage, mine, a.apart), (int)a.count, id, team};
      if constexpr (!LooksFirst<F>::value)
        if (StagedRow<F>::template quick<SKIP>(a, first + row, share, row < here)) continue;
      if constexpr (SKIP) {
        if (id == 0 && row < here) fold_again<F>(&a, first + row);
        continue;
      }
      State s;
      StagedRow<F>::fold(share, s);
      if (team > 1) Move<F>::merge_lanes(s, team);
      if (id == 0 && row < here) finish_here<F>(a, first + row, s, (int)a.count);
    }
  }
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, StagedShape<F>::blocks)
    staged(const __grid_constant__ gpr_axes_args a) {
  __shared__ uint4 stage[StagedShape<F>::packets];
  if constexpr (!LooksFirst<F>::value && may_be_nan<typename F::Element>())
    if (a.skip) return fold_staged<F, true>(a, stage);
  fold_staged<F, false>(a, stage);
}

GPR_CLOSE
