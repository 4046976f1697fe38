/* Any strides, masks, what does not count: addresses are computed for each element.
 *
 * A block is `team` outputs across and `rows` threads down the elements of each; whichever lies
 * closer together in memory is what neighbouring threads take. */
#ifndef GPR_GENERAL_CUH
#define GPR_GENERAL_CUH

#include "outputs.cuh"

GPR_OPEN

enum { GENERAL_LOADS = 4 };

template <class T> __device__ __forceinline__ bool is_nan_or_nat(T x) {
  if constexpr (Traits<T>::kind == KIND_COMPLEX)
    return x.re != x.re || x.im != x.im;
  else if constexpr (Traits<T>::kind == KIND_FLOAT)
    return wide(x) != wide(x);
  else if constexpr (Traits<T>::kind == KIND_TIME)
    return wide(x) == GPR_NAT;
  else
    return false;
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, 2)
    general(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Element T;
  typedef Counted<F> C;
  typedef typename C::State State;
  constexpr int U = GENERAL_LOADS;
  __shared__ Slots<C> slots;
  const int wide = a.team > 0 ? a.team : -a.team, high = a.rows;
  const int x = a.team > 0 ? threadIdx.x % wide : threadIdx.x / high;
  const int y = a.team > 0 ? threadIdx.x / wide : threadIdx.x % high;
  for (int64_t b = blockIdx.x; b < a.tiles * a.split; b += gridDim.x) {
    const int64_t part = quotient_of(b, a.tiles), tile = b - part * a.tiles;
    int64_t o = tile * wide + x;
    const bool mine = o < a.outputs && x < wide && y < high;
    int64_t begin = 0, count = a.count, kept = o;
    if (a.starts && mine) {
      const int64_t per = quotient_of(a.outputs, a.segments), segment = quotient_of(o, per);
      kept = o - segment * per;
      begin = a.starts[segment];
      count = a.stops[segment] > begin ? a.stops[segment] - begin : 0;
    }
    const int64_t share = quotient_of(count + a.split - 1, a.split);
    const int64_t stop = (part + 1) * share < count ? (part + 1) * share : count;
    State s;
    Cells<F, 1> cells;
    cells.keep(&s.state);
    int64_t n = 0;
    if (mine) {
      const char *base = a.data + offset_of(a.shape, a.strides, a.kept, kept) +
                         (a.starts ? begin * a.strides[a.kept] : 0);
      const char *where = a.where ? a.where + offset_of(a.shape, a.where_strides, a.kept, kept) +
                                        (a.starts ? begin * a.where_strides[a.kept] : 0)
                                  : nullptr;
      const auto place = [&](int64_t r) {
        return (const T *)(base + offset_of(a.shape + a.kept, a.strides + a.kept, a.reduced, r));
      };
      const auto counts = [&](int64_t r, T value) {
        if (a.skip && is_nan_or_nat(value)) return false;
        return !where ||
               where[offset_of(a.shape + a.kept, a.where_strides + a.kept, a.reduced, r)] != 0;
      };
      for (int64_t r = part * share + y; r < stop; r += U * high) {
        T v[U];
        uint64_t valid = 0;
#pragma unroll
        for (int u = 0; u < U; u++)
          if (r + u * high < stop) v[u] = *place(r + u * high);
#pragma unroll
        for (int u = 0; u < U; u++)
          if (r + u * high < stop && counts(r + u * high, v[u])) valid |= 1ull << u;
        n += __popc((uint32_t)valid);
        const uint32_t missed = cells.template some<U>(v, valid, r, high);
        if (!Cells<F, 1>::certain && missed)
#pragma unroll 1
          for (int u = 0; u < U; u++)
            if (valid >> u & 1) cells.rest(0, *place(r + u * high));
      }
    }
    cells.done(0, s.state);
    s.n = n;
    merge_down<C>(s, x, y < high ? y : AXES_THREADS, wide, high, slots);
    const auto done = [&](int j, State &all) {
      if (a.least) atomicMin((long long *)a.least, (long long)all.n);
      finish_output<F>(&a, tile * wide + j, &all.state, all.n);
    };
    if (a.split == 1) {
      if (mine && y == 0) done(x, s);
      continue;
    }
    State *partial = partials_of<C>(a) + tile * a.split * wide;
    if (mine && y == 0) Move<C>::assign(partial[part * wide + x], s);
    if (!is_last_of((uint32_t *)a.scratch + tile, a.split)) continue;
    const int64_t left = a.outputs - tile * wide;
    merge_partials<C>(partial, (int)(left < wide ? left : wide), a.split, wide, slots, s, done);
  }
}

GPR_CLOSE
#endif
