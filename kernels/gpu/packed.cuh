/* Rows of which a packet holds several or a few packets hold one. */
#pragma once

#include "shallow.cuh"

GPR_OPEN

enum { PACKED_BLOCKS = 4, PACKED_LOADS = 4 };

/* Rows one behind the other, of COUNT elements each: a power of two of them, a packet at most. NaN
 * is skipped in sums of one. */
template <class F, int COUNT> GPR_DEVICE void fold_packed(const gpr_axes_args &a) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count, N = V / COUNT;
  const int64_t full = a.outputs / N;
  const int64_t first = block_of(a) * AXES_THREADS * PACKED_LOADS + threadIdx.x;
  Packet<T> v[PACKED_LOADS];
  GPR_EACH(u, PACKED_LOADS)
    if (first + u * AXES_THREADS < full)
      v[u].words = load_once(a.data + (first + u * AXES_THREADS) * 16);
  uint32_t missed = 0;
  GPR_EACH(u, PACKED_LOADS) {
    const int64_t p = first + u * AXES_THREADS;
    if (p >= full) break;
    typename Either<COUNT == 2, Two<F>, typename Single<F>::type>::type few[N];
    if (COUNT == 1 && a.skip)
      GPR_EACH(e, V)
        if (is_nan_or_nat(v[u].element[e])) v[u].element[e] = a.has_initial ? neutral_of<T>() : T{};
    GPR_EACH(e, V) few[e / COUNT].add(v[u].element[e], e % COUNT);
    missed |= finish_few<F>(a, p * N, N, few, COUNT) << (u * N);
  }
  for (; missed; missed &= missed - 1) {
    const int i = __ffs(missed) - 1;
    fold_again<F>(&a, (first + i / N * AXES_THREADS) * N + i % N);
  }
  for (int64_t o = full * N; blockIdx.x == 0 && threadIdx.x == 0 && o < a.outputs; o++)
    fold_again<F>(&a, o);
}

/* The longest rows of neighbouring lanes, a packet each: of 64 bytes the extremes of 256 MiB take
 * 72 µs on an H200 and 82 as staged rows, of elements of 8 bytes 103 and 90; sums take 91 and 84,
 * and places 111 and 85. */
template <class F> struct PackedShape { static constexpr int bytes = 32; };
template <class T> struct PackedShape<Extremes<T>> {
  static constexpr int bytes = sizeof(T) < 8 ? 64 : 32;
};

/* A row of neighbouring lanes, a packet each, if X finishes those of all the warp. Of 2^20 rows of
 * 8 lognormal floats with a sigma of 5 sums took 58 µs on an H200 row by row, and take 27 by pairs.
 */
template <class F, class X, int TEAM>
GPR_DEVICE bool finish_packets(const gpr_axes_args &a, int64_t o, bool mine,
                               const Packet<typename F::Element> &v) {
  constexpr int V = Packet<typename F::Element>::count;
  const int id = threadIdx.x % TEAM;
  X few;
  GPR_EACH(e, V) few.add(v.element[e], id * V + e);
  return few.finish_team(a, o, a.count, TEAM, mine && id == 0);
}
/* Rows one behind the other, of TEAM packets each, one to a lane. */
template <class F, int TEAM> GPR_DEVICE void fold_lanes(const gpr_axes_args &a) {
  const int64_t first = block_of(a) * AXES_THREADS * PACKED_LOADS + threadIdx.x;
  Packet<typename F::Element> v[PACKED_LOADS];
  GPR_EACH(u, PACKED_LOADS) {
    const int64_t p = first + u * AXES_THREADS;
    v[u].words = make_uint4(0, 0, 0, 0);
    if (p / TEAM < a.outputs) v[u].words = load_once(a.data + p * 16);
  }
  uint32_t missed = 0;
  GPR_EACH(u, PACKED_LOADS) {
    const int64_t o = (first + u * AXES_THREADS) / TEAM;
    const bool mine = o < a.outputs;
    bool done = finish_packets<F, Few<F>, TEAM>(a, o, mine, v[u]);
    if constexpr (IsWide<F>::value)
      if (!done) done = finish_packets<F, Again<F>, TEAM>(a, o, mine, v[u]);
    if (!done && mine && threadIdx.x % TEAM == 0) missed |= 1u << u;
  }
  for (; missed; missed &= missed - 1)
    fold_again<F>(&a, (first + (__ffs(missed) - 1) * AXES_THREADS) / TEAM);
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, PACKED_BLOCKS)
    packed(const __grid_constant__ gpr_axes_args a) {
  constexpr int V = Packet<typename F::Element>::count;
  if constexpr (PackedShape<F>::bytes > 32)
    if (a.count > 2 * V) return fold_lanes<F, 4>(a);
  if (a.count > V) return fold_lanes<F, 2>(a);
  if (a.count == 1) return fold_packed<F, 1>(a);
  if constexpr (V >= 2)
    if (a.count == 2) return fold_packed<F, 2>(a);
  if constexpr (V >= 4)
    if (a.count == 4) return fold_packed<F, 4>(a);
}

GPR_CLOSE
