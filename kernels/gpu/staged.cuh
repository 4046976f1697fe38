/* Short rows of the fast axis, one behind the other, with some bytes between them or, of whole
 * packets, wherever each begins, or of every second element, and narrow columns of a few rows, one
 * batch of them behind the other: a block copies many of them into shared memory and gives each
 * output a few neighbouring threads. */
#ifndef GPR_STAGED_CUH
#define GPR_STAGED_CUH

#include "tile_run.cuh"

GPR_OPEN

/* What a thread folds, but for batches of wider elements (select.h's BATCH_BYTES). */
enum { STAGED_BYTES = 128 };

/* Blocks a multiprocessor, and packets of a tile. The sums' hold 512 rows of 64 bytes: 84 µs in
 * place of 91 for 256 MiB of them on an H200, where argmax lost 1 to 3 % of other rows. */
template <class F> struct StagedShape { static constexpr int blocks = 4, packets = 2304; };
template <class T> struct StagedShape<PairSum<T>> {
  static constexpr int blocks = 4, packets = 2560;
};

/* A packet from global to shared memory, past the registers. */
__device__ __forceinline__ void copy_packet(uint4 *to, const void *from) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
#else
  *to = load_once(from);
#endif
}
__device__ __forceinline__ void copies_done() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
}

/* Rows are whole packets, and not parts of some. */
template <class T> __device__ __forceinline__ bool are_staged_packets(const gpr_axes_args &a) {
  return a.pitch && a.apart == 1 && a.count % Packet<T>::count == 0 && (uintptr_t)a.data % 16 == 0;
}
/* An output's, so many from each other. */
template <class T> struct StagedElements {
  const T *first;
  int apart;
  __device__ __forceinline__ T operator[](int i) const { return first[i * apart]; }
};

/* Elements id, id + team, … of a staged row, or packets of them, in the order of their index: at
 * most FEW_MOST, in STAGED_BYTES. */
template <class F> struct StagedRow {
  typedef typename F::Element T;
  typedef typename F::State State;
  static constexpr bool few = true; /* most rows need no state in memory */
  static constexpr int V = Packet<T>::count;

  /* How many of them did not count: NaN, of what skips it. */
  template <bool SKIP, class X>
  static __device__ __forceinline__ int fold(X &few, const uint4 *packet, int count, int id,
                                             int team) {
    int gone = 0;
    for (int p = id; p < count; p += team) {
      Packet<T> v;
      v.words = packet[p];
#pragma unroll
      for (int j = 0; j < V; j++) gone += !add<SKIP>(few, v.element[j], p * V + j);
    }
    return gone;
  }
  template <bool SKIP, class X>
  static __device__ __forceinline__ int fold(X &few, StagedElements<T> element, int count, int id,
                                             int team) {
    int gone = 0;
    for (int i = id; i < count; i += team) gone += !add<SKIP>(few, element[i], i);
    return gone;
  }
  template <bool SKIP, class X> static __device__ __forceinline__ bool add(X &few, T x, int index) {
    const bool counts = !SKIP || !is_nan_or_nat(x);
    if (counts) few.add(x, index);
    return counts;
  }
  static __device__ __noinline__ void fold_slowly(State &s, const uint4 *packet, int count, int id,
                                                  int team) {
    SlowFew<F>::open(s);
    for (int p = id; p < count; p += team)
      for (int j = 0; j < V; j++)
        SlowFew<F>::add(s, ((const T *)(packet + p))[j], (int64_t)p * V + j);
  }
  static __device__ __noinline__ void fold_slowly(State &s, StagedElements<T> element, int count,
                                                  int id, int team) {
    SlowFew<F>::open(s);
    for (int i = id; i < count; i += team) SlowFew<F>::add(s, element[i], i);
  }
  static __device__ __forceinline__ void fold(const uint4 *packet, int count, int id, int team,
                                              State &s) {
    Few<F> few;
    fold<false>(few, packet, count, id, team);
    if (!few.done(s)) fold_slowly(s, packet, count, id, team);
  }
  static __device__ __forceinline__ void fold(StagedElements<T> element, int count, int id,
                                              int team, State &s) {
    Few<F> few;
    fold<false>(few, element, count, id, team);
    if (!few.done(s)) fold_slowly(s, element, count, id, team);
  }
  /* A row finished without states in memory; lanes that share rows say the same. */
  template <bool SKIP>
  static __device__ __forceinline__ bool quick(const gpr_axes_args &a, int64_t o,
                                               const uint4 *packet, StagedElements<T> element,
                                               bool here) {
    Few<F> few;
    if (finished<SKIP>(few, a, o, packet, element, here)) return true;
    if constexpr (HasAgain<F>::value) {
      Again<F> again;
      return finished<SKIP>(again, a, o, packet, element, here);
    }
    return false;
  }
  template <bool SKIP, class X>
  static __device__ __forceinline__ bool finished(X &few, const gpr_axes_args &a, int64_t o,
                                                  const uint4 *packet, StagedElements<T> element,
                                                  bool here) {
    const int length = (int)a.count, team = a.team, id = threadIdx.x % team;
    int gone = are_staged_packets<T>(a) ? fold<SKIP>(few, packet, length / V, id, team)
                                        : fold<SKIP>(few, element, length, id, team);
    bool writes = here && id == 0, none = false;
    if constexpr (SKIP) {
#pragma unroll 1
      for (int mask = team / 2; mask; mask /= 2) gone += shuffle_xor(gone, mask);
      if (writes) tell_least(a, length - gone);
      none = here && gone == length;
      if (none && writes) fold_again<F>(&a, o); /* by itself: the warp's other rows are quick */
      writes &= !none;
    }
    if (team > 1) return few.finish_team(a, o, length - gone, team, writes);
    return !here || none || few.finish(a, o, length - gone);
  }
};

/* The longest output of a fold that has a way for few elements; 0: of one that has none. */
template <class F> struct BriefMost {
  static constexpr int value = LooksFirst<F>::value ? (int)FEW_SHORT
                               : StagedRow<F>::few  ? (int)FEW_MOST
                                                    : 0;
};

template <class F, bool SKIP>
__device__ __forceinline__ void fold_staged(const gpr_axes_args &a, uint4 *stage) {
  typedef typename F::Element T;
  typedef typename F::State State;
  constexpr int V = Packet<T>::count;
  const int team = a.team, teams = AXES_THREADS / team, id = threadIdx.x % team;
  const int count = (int)a.count, width = a.neighbours; /* columns of a batch; 1: there are rows */
  const int length = (int)a.length, pitch = a.pitch;    /* pitch 0: rows follow each other */
  const int64_t apart = a.kept ? a.dim[0].stride : 0;   /* rows */
  const int before = (int)((uintptr_t)a.data % 16 / sizeof(T)); /* of each tile's first packet */
  const int extent = before + (count - 1) * a.apart + width;    /* of a row, and what is before */
  const int row_packets = (extent + V - 1) / V;
  const int64_t block = block_of(a);
  for (int64_t tile = block; tile < a.tiles; tile += gridDim.x) {
    const int64_t batch = tile * a.rows, first = batch * width;
    const int here = (int)least(a.outputs - first, (int64_t)a.rows * width);
    const char *data = a.data + batch * apart - before * (int)sizeof(T);
    if (tile != block) __syncthreads();
    if (pitch && (pitch != row_packets || apart != 16 * row_packets)) {
      /* The array's last packet may not be there whole. */
      const int left = first + here < a.outputs ? 0 : extent % V;
      const int packets = here * row_packets - (left ? 1 : 0);
      for (int p = threadIdx.x; p < packets; p += AXES_THREADS) {
        const int row = p / row_packets;
        copy_packet(stage + p + row * (pitch - row_packets),
                    data + 16 * p + row * (apart - 16 * row_packets));
      }
      if (threadIdx.x < left) {
        const int i = extent - left + threadIdx.x;
        ((T *)(stage + (here - 1) * pitch))[i] = ((const T *)(data + (here - 1) * apart))[i];
      }
    } else {
      const int elements = (here / width - 1) * length + extent, packets = elements / V;
      for (int p = threadIdx.x; p < packets; p += AXES_THREADS)
        copy_packet(stage + p, data + 16 * p);
      for (int i = packets * V + threadIdx.x; i < elements; i += AXES_THREADS)
        ((T *)stage)[i] = ((const T *)data)[i];
    }
    copies_done();
    for (int row = threadIdx.x / team; row < here + teams - 1; row += teams) {
      if (row - (int)(threadIdx.x / team) >= here) break; /* by whole blocks: lanes merge below */
      const int mine = row < here ? row : here - 1;
      const uint4 *packet = stage + mine * pitch;
      const int above = mine / width;
      const T *const batch_of = pitch ? (const T *)packet : (const T *)stage + above * length;
      const StagedElements<T> element = {batch_of + before + (mine - above * width), a.apart};
      if constexpr (StagedRow<F>::few) {
        if (StagedRow<F>::template quick<SKIP>(a, first + row, packet, element, row < here))
          continue;
      }
      if constexpr (SKIP) {
        if (id == 0 && row < here) fold_again<F>(&a, first + row);
        continue;
      }
      State s;
      if (are_staged_packets<T>(a))
        StagedRow<F>::fold(packet, row_packets, id, team, s);
      else
        StagedRow<F>::fold(element, count, id, team, s);
      if (team > 1) Move<F>::merge_lanes(s, team);
      if (id == 0 && row < here) finish_here<F>(a, first + row, s, count);
    }
  }
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, StagedShape<F>::blocks)
    staged(const __grid_constant__ gpr_axes_args a) {
  __shared__ uint4 stage[StagedShape<F>::packets];
  if constexpr (StagedRow<F>::few && may_be_nan<typename F::Element>())
    if (a.skip) return fold_staged<F, true>(a, stage);
  fold_staged<F, false>(a, stage);
}

GPR_CLOSE
#endif
