/* A small whole array, an exact sum: latency is all.
 *
 * A thread reads its share at once and sums it in two levels of its warp's window; a block joins
 * its warps' counts into one line. It is straight code of one tile: what a kernel does not hold
 * need not be fetched. Where numbers spread too far for the window a block says so, and the host
 * begins again with flat_exact. */
#pragma once

#include "windows.cuh"

GPR_OPEN

/* Little of one thread's and as many threads as hide it: on an H200, from the launch to the answer,
 * 2^14 numbers take 7.9 µs and flat_exact 8.9, 2^17 8.7 and 9.0, and 2^18 as long; in sixteens 2^17
 * took 0.2 µs longer. */
enum { SMALL_NUMBERS = 8 };

template <class T> struct SmallShape : ExactShape<T> {
  static constexpr int loads = SMALL_NUMBERS / ExactShape<T>::per_load;
};

/* A thread's share; of what lies outside the array -0.0, which no sum notices. */
template <class S>
GPR_DEVICE void read_share(const Packets<typename S::Stored> &in,
                           typename S::Real (&x)[SMALL_NUMBERS]) {
  Packet<typename S::Stored> v[S::loads];
  const int64_t at = (int64_t)blockIdx.x * S::loads * blockDim.x + threadIdx.x;
  GPR_EACH(u, S::loads) {
    const int64_t packet = at + u * blockDim.x;
    if (in.inside(packet, 1))
      v[u].words = in.load(packet);
    else
      in.load_part(v[u], packet, minus_zero<typename S::Stored>());
  }
  widen_all<S>(v, x);
}

/* NaN and infinities of each part as bits; in their place comes what no sum notices. */
template <class S>
GPR_DEVICE void take_specials(typename S::Real (&x)[SMALL_NUMBERS], uint32_t (&special)[S::parts]) {
  GPR_EACH(i, SMALL_NUMBERS) {
    if (x[i] - x[i] == 0) continue;
    special[i % S::parts] |= x[i] != x[i] ? GPR_NAN : x[i] > 0 ? GPR_PLUS_INF : GPR_MINUS_INF;
    x[i] = minus_zero<typename S::Real>();
  }
}

template <class T>
__global__ void __launch_bounds__(GPR_SMALL_THREADS) small_exact(gpr_flat_args args) {
  typedef SmallShape<T> S;
  typedef typename S::Real R;
  __shared__ LineSum sums[S::parts][GPR_SMALL_THREADS / GPR_WARP];
  const Packets<typename S::Stored> in(args.data, args.n * S::parts);
  R x[SMALL_NUMBERS];
  read_share<S>(in, x);

  Counts<S::parts, 2> counts;
  uint32_t special[S::parts] = {};
  int top = top_of(x);
  if (top == GPR_TOP_MAX) {
    take_specials<S>(x, special);
    top = top_of(x);
  }
  const int unit1 = unit_below(top);
  const bool fine = cascade(x, unit1, counts);
  GPR_EACH(p, S::parts) {
    bool other = false;
    GPR_UNROLLED(int i = p; i < SMALL_NUMBERS; i += S::parts)
      other |= bits(x[i]) != bits(minus_zero<R>());
    other = __any_sync(GPR_ALL, other);
    const uint32_t met = warp_or(special[p]) << GPR_LINE_SPECIAL;
    const __int128 high = warp_units(counts.units[p][0]), low = warp_units(counts.units[p][1]);
    if (lane_of() == 0) {
      LineSum &s = sums[p][warp_of()];
      s.value = (high << LEVEL_BITS) + low;
      s.unit = s.value ? unit_of(unit1, 1) : (int)UNOPENED;
      s.flags = (fine ? 0 : GPR_LINE_MORE) | (other ? GPR_OTHER : 0) | GPR_MET | met;
    }
  }
  __syncthreads();
  const int part = warp_of();
  if (part >= S::parts) return;
  LineSum s = {0, UNOPENED, 0};
  if (lane_of() < blockDim.x / GPR_WARP) s = sums[part][lane_of()];
  answer_line(args, line_of<S::parts>(in.first, part), s, [](const LineSum &) {});
}

GPR_CLOSE
