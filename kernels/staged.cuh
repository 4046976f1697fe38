/* Short rows of the fast axis, one behind the other: a block copies many of them into shared memory
 * as packets and gives each a few neighbouring threads. */
#ifndef GPR_STAGED_CUH
#define GPR_STAGED_CUH

#include "outputs.cuh"

GPR_OPEN

/* 128 bytes a thread; blocks enough to load and to fold at once. */
enum { STAGED_BYTES = 128, STAGED_PACKETS = 2304 };

template <class F> struct StagedShape { static constexpr int blocks = 4; };

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

/* Elements id, id + team, … of a staged row, or packets of them, in the order of their index. */
template <class F> struct StagedRow {
  typedef typename F::Element T;
  typedef typename F::State State;
  static constexpr int V = Packet<T>::count;

  static __device__ __forceinline__ void fold(const uint4 *packet, int count, int id, int team,
                                              State &s) {
    Cells<F, 1> cells;
    for (int p = id; p < count; p += team) {
      Packet<T> v;
      v.words = packet[p];
      cells.template add<V>(v.element, (int64_t)p * V, 1);
    }
    cells.done(0, s);
  }
  static __device__ __forceinline__ void fold(const T *element, int count, int id, int team,
                                              State &s) {
    Cells<F, 1> cells;
    for (int i = id; i < count; i += team) {
      const T only[1] = {element[i]};
      cells.template add<1>(only, i, 0);
    }
    cells.done(0, s);
  }
};

/* Exact sums of a few numbers: plain sums that are checked, as cells.cuh's batches. */
template <class T> struct StagedRow<PairSum<T>> {
  typedef PairSum<T> F;
  typedef typename F::State State;
  typedef typename F::Real R;
  typedef typename RealOf<T>::type Stored;
  static constexpr int V = Packet<T>::count, parts = F::parts;
  struct Sum {
    Batch<Format<Stored>::precision, 64> batch[parts];
    Pair pair[parts];
    bool lost[parts];
    __device__ __forceinline__ Sum() {
#pragma unroll
      for (int p = 0; p < parts; p++) {
        pair[p].hi = pair[p].lo = -0.0;
        lost[p] = false;
      }
    }
    __device__ __forceinline__ void add(T x) {
#pragma unroll
      for (int p = 0; p < parts; p++) {
        const R r = Cells<F, 1>::real(x, p);
        if constexpr (sizeof(R) == 4)
          batch[p].add(r);
        else
          gpr::add(pair[p], r, lost[p]);
      }
    }
    __device__ __forceinline__ bool done(State &s) {
      bool all = true;
#pragma unroll
      for (int p = 0; p < parts; p++) {
        open(s.part[p]);
        if constexpr (sizeof(R) == 4) {
          s.part[p].pair.hi = batch[p].sum;
          lost[p] = !batch[p].fine();
        } else {
          s.part[p].pair = pair[p];
        }
        if (lost[p]) open(s.part[p]);
        all &= !lost[p];
      }
      return all;
    }
  };
  /* At most 64 elements a thread: 128 bytes. */
  static __device__ __forceinline__ void fold(const uint4 *packet, int count, int id, int team,
                                              State &s) {
    Sum sum;
    for (int p = id; p < count; p += team) {
      Packet<T> v;
      v.words = packet[p];
#pragma unroll
      for (int j = 0; j < V; j++) sum.add(v.element[j]);
    }
    if (sum.done(s)) return;
    open_all(s);
    for (int p = id; p < count; p += team)
      for (int j = 0; j < V; j++) rest(s, ((const T *)(packet + p))[j]);
  }
  static __device__ __forceinline__ void fold(const T *element, int count, int id, int team,
                                              State &s) {
    Sum sum;
    for (int i = id; i < count; i += team) sum.add(element[i]);
    if (sum.done(s)) return;
    open_all(s);
    for (int i = id; i < count; i += team) rest(s, element[i]);
  }
  static __device__ __forceinline__ void open_all(State &s) {
    for (int p = 0; p < parts; p++) open(s.part[p]);
  }
  static __device__ __noinline__ void rest(State &s, T x) {
    for (int p = 0; p < parts; p++) {
      use(s.part[p]);
      add_double(s.part[p].rest, (double)Cells<F, 1>::real(x, p), s.part[p].special);
    }
  }
};

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, StagedShape<F>::blocks)
    staged(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  typedef typename F::State State;
  constexpr int V = Packet<T>::count;
  __shared__ uint4 stage[STAGED_PACKETS];
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
      State s;
      const int mine = row < here ? row : here - 1;
      if (pitch)
        StagedRow<F>::fold(stage + mine * pitch, row_packets, id, team, s);
      else
        StagedRow<F>::fold((const T *)stage + mine * length, length, id, team, s);
      if (team > 1) Move<F>::merge_lanes(s, team);
      if (id == 0 && row < here) Finish<F>::here(a, first + row, s, length);
    }
  }
}

GPR_CLOSE
#endif
