/* Short rows of the fast axis, one behind the other: a block copies many of them into shared memory
 * as packets and gives each a few neighbouring threads. */
#ifndef GPR_STAGED_CUH
#define GPR_STAGED_CUH

#include "few.cuh"

GPR_OPEN

/* 128 bytes a thread; blocks enough to load and to fold at once. */
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

/* Elements id, id + team, … of a staged row, or packets of them, in the order of their index: at
 * most FEW_MOST, in STAGED_BYTES. */
template <class F> struct StagedRow {
  typedef typename F::Element T;
  typedef typename F::State State;
  static constexpr bool few = true; /* most rows need no state in memory */
  static constexpr int V = Packet<T>::count;

  static __device__ __forceinline__ void fold(Few<F> &few, const uint4 *packet, int count, int id,
                                              int team) {
    for (int p = id; p < count; p += team) {
      Packet<T> v;
      v.words = packet[p];
#pragma unroll
      for (int j = 0; j < V; j++) few.add(v.element[j], (int64_t)p * V + j);
    }
  }
  static __device__ __forceinline__ void fold(Few<F> &few, const T *element, int count, int id,
                                              int team) {
    for (int i = id; i < count; i += team) few.add(element[i], i);
  }
  static __device__ __noinline__ void fold_slowly(State &s, const uint4 *packet, int count, int id,
                                                  int team) {
    SlowFew<F>::open(s);
    for (int p = id; p < count; p += team)
      for (int j = 0; j < V; j++)
        SlowFew<F>::add(s, ((const T *)(packet + p))[j], (int64_t)p * V + j);
  }
  static __device__ __noinline__ void fold_slowly(State &s, const T *element, int count, int id,
                                                  int team) {
    SlowFew<F>::open(s);
    for (int i = id; i < count; i += team) SlowFew<F>::add(s, element[i], i);
  }
  static __device__ __forceinline__ void fold(const uint4 *packet, int count, int id, int team,
                                              State &s) {
    Few<F> few;
    fold(few, packet, count, id, team);
    if (!few.done(s)) fold_slowly(s, packet, count, id, team);
  }
  static __device__ __forceinline__ void fold(const T *element, int count, int id, int team,
                                              State &s) {
    Few<F> few;
    fold(few, element, count, id, team);
    if (!few.done(s)) fold_slowly(s, element, count, id, team);
  }
  /* A row finished without states in memory; lanes that share rows say the same. */
  static __device__ __forceinline__ bool quick(const gpr_axes_args &a, int64_t o,
                                               const uint4 *packet, const T *element, int length,
                                               int team, bool here) {
    const int id = threadIdx.x % team;
    Few<F> few;
    if (a.pitch)
      fold(few, packet, length / V, id, team);
    else
      fold(few, element, length, id, team);
    if (team > 1) return few.finish_team(a, o, length, team, here && id == 0);
    return !here || few.finish(a, o, length);
  }
};

/* The longest output of a fold that has a way for few elements; 0: of one that has none. */
template <class F> struct BriefMost {
  static constexpr int value = LooksFirst<F>::value ? (int)FEW_SHORT
                               : StagedRow<F>::few  ? (int)FEW_MOST
                                                    : 0;
};

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, StagedShape<F>::blocks)
    staged(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  typedef typename F::State State;
  constexpr int V = Packet<T>::count;
  __shared__ uint4 stage[StagedShape<F>::packets];
  const int team = a.team, teams = AXES_THREADS / team, id = threadIdx.x % team;
  const int length = (int)a.length, pitch = a.pitch; /* pitch 0: rows are no whole packets */
  const int row_packets = length / V;
  for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    const int64_t first = tile * a.rows;
    const int here = (int)(a.outputs - first < a.rows ? a.outputs - first : a.rows);
    /* The tile starts at a multiple of 16 bytes; its end need not. */
    const char *data = a.data + first * length * (int64_t)sizeof(T);
    const int elements = here * length, packets = elements / V;
    if (tile != blockIdx.x) __syncthreads();
    if (pitch && pitch != row_packets) {
      for (int p = threadIdx.x; p < packets; p += AXES_THREADS) {
        const int row = p / row_packets;
        copy_packet(stage + p + row * (pitch - row_packets), data + 16 * p);
      }
    } else {
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
      const T *element = (const T *)stage + mine * length;
      if constexpr (StagedRow<F>::few)
        if (StagedRow<F>::quick(a, first + row, packet, element, length, team, row < here))
          continue;
      State s;
      if (pitch)
        StagedRow<F>::fold(packet, row_packets, id, team, s);
      else
        StagedRow<F>::fold(element, length, id, team, s);
      if (team > 1) Move<F>::merge_lanes(s, team);
      if (id == 0 && row < here) finish_here<F>(a, first + row, s, length);
    }
  }
}

GPR_CLOSE
#endif
