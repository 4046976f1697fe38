/* Any strides, masks, what does not count: addresses are computed for each element.
 *
 * A block is `team` outputs across and `rows` threads down the elements of each; whichever lies
 * closer together in memory is what neighbouring threads take. */
#ifndef GPR_GENERAL_CUH
#define GPR_GENERAL_CUH

#include "outputs.cuh"

GPR_OPEN

enum { GENERAL_LOADS = 4, PLAIN_LOADS = 8 };

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

/* Elements r, r + step, … below stop, `stride` bytes apart, as long as there are PLAIN_LOADS of
 * them; all count. The first that is left. */
template <class F>
__device__ __forceinline__ int64_t fold_plain(Cells<F, 1> &cells, const char *base, int64_t stride,
                                              int64_t r, int64_t step, int64_t stop) {
  typedef typename F::Element T;
  constexpr int U = PLAIN_LOADS;
#pragma unroll 1
  for (; r + (U - 1) * step < stop; r += U * step) {
    T v[U];
    const char *from = base + r * stride;
#pragma unroll
    for (int u = 0; u < U; u++) v[u] = *(const T *)(from + u * step * stride);
    if (cells.template add<U>(v, r, step) && !Cells<F, 1>::certain)
      cells.template rest<1>(1, from, step * stride, U);
  }
  return r;
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
      /* Where the inner dimension is long, run by run, so that a place costs no division. */
      const int inner = a.kept + a.reduced - 1;
      const bool by_runs = a.reduced == 1 || a.shape[inner] >= PLAIN_LOADS * high;
      const int64_t run = by_runs && a.reduced > 1 ? a.shape[inner] : count;
      const int outer = by_runs ? a.reduced - 1 : a.reduced;
      const auto offset = [&](const int64_t *strides, int64_t r) {
        return by_runs ? r * strides[inner]
                       : offset_of(a.shape + a.kept, strides + a.kept, outer, r);
      };
      for (int64_t start = part * share; start < stop;) {
        const int64_t number = quotient_of(start, run), first = by_runs ? number * run : 0;
        const int64_t end = first + run < stop ? first + run : stop;
        const auto begin_of = [&](const char *from, const int64_t *strides) {
          if (!by_runs) return from;
          return from + offset_of(a.shape + a.kept, strides + a.kept, outer, number) -
                 first * strides[inner];
        };
        const char *data = begin_of(base, a.strides);
        const char *mask = where ? begin_of(where, a.where_strides) : nullptr;
        const auto place = [&](int64_t r) { return (const T *)(data + offset(a.strides, r)); };
        const auto counts = [&](int64_t r, T value) {
          if (a.skip && is_nan_or_nat(value)) return false;
          return !mask || mask[offset(a.where_strides, r)] != 0;
        };
        int64_t r = start + y;
        if (by_runs && !mask && !a.skip) {
          const int64_t after = fold_plain<F>(cells, data, a.strides[inner], r, high, end);
          n += quotient_of(after - r, high);
          r = after;
        }
#pragma unroll 1
        for (; r < end; r += U * high) {
          T v[U];
          uint64_t valid = 0;
#pragma unroll
          for (int u = 0; u < U; u++)
            if (r + u * high < end) v[u] = *place(r + u * high);
#pragma unroll
          for (int u = 0; u < U; u++)
            if (r + u * high < end && counts(r + u * high, v[u])) valid |= 1ull << u;
          n += __popc((uint32_t)valid);
          const uint32_t missed = cells.template some<U>(v, valid, r, high);
          if (!Cells<F, 1>::certain && missed)
#pragma unroll 1
            for (int u = 0; u < U; u++)
              if (valid >> u & 1) cells.template rest<1>(1, place(r + u * high), 0, 1);
        }
        start = end;
      }
    }
    cells.done(0, s.state);
    s.n = n;
    merge_down<C, 1>(&s, x, y < high ? y : AXES_THREADS, wide, high, slots);
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
