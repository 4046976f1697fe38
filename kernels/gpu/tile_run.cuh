/* One output's elements of one run: at places that a table tells, or so far apart. */
#pragma once

#include "again.cuh"
#include "any_elements.cuh"
#include "counted.cuh"
#include "tile_cells.cuh"

GPR_OPEN

/* Bytes, and steps of the index if that matters, from the box's first element. */
template <bool ORDERED> struct BoxTable {
  int data[GPR_TILE_BOX], where[GPR_TILE_BOX], index[ORDERED ? GPR_TILE_BOX : 1];
};

template <bool ORDERED>
GPR_DEVICE void fill_table(BoxTable<ORDERED> &table, const gpr_axes_args &a) {
  for (int r = threadIdx.x; r < a.box; r += AXES_THREADS) {
    int rest = r, data = 0, where = 0, index = 0;
    for (int d = a.kept + a.reduced - 1; d >= a.kept + a.reduced - a.boxed; d--) {
      const int n = (int)a.dim[d].size, over = d > a.kept + a.reduced - a.boxed ? rest / n : 0;
      const int at = rest - over * n;
      data += at * (int)a.dim[d].stride;
      where += at * (int)a.dim[d].where_stride;
      index += at * (int)a.dim[d].place;
      rest = over;
    }
    table.data[r] = data;
    table.where[r] = where;
    if (ORDERED) table.index[r] = index;
  }
  __syncthreads();
}

/* A bit for each of U bytes of a mask, of which the first `left` are asked for, that is zero.
 * Apart, or each byte would wait for the one before. */
template <int U, class Byte> GPR_DEVICE uint32_t gone_of(int left, Byte byte) {
  uint32_t gone = 0;
  GPR_EACH(u, U) gone |= (uint32_t)(byte(u < left ? u : 0) == 0) << u;
  return gone;
}

/* Elements of any dtype take two registers each while they are on their way, or four. */
enum { ANY_LOADS = 8 };
template <class F, class LOAD> struct LoadsOf { static constexpr int value = TileShape<F>::loads; };
template <class F> struct LoadsOf<F, AnyDtype> {
  static constexpr int all = TileShape<F>::loads, value = all < ANY_LOADS ? all : ANY_LOADS;
};

/* Where there is no table: bytes from an element of a lane to its next, as the host reckoned them.
 * Of what is multiplied here the compiler makes chains of additions. */
struct Steps {
  int64_t data, where;
};

/* One output's elements of one run. */
template <class F, class LOAD, int LOADS = LoadsOf<F, LOAD>::value> struct TileRun {
  typedef typename F::Element T;
  static constexpr int U = LOADS;
  static constexpr bool is_any = Same<LOAD, AnyDtype>::value;
  const gpr_axes_args &a;
  const BoxTable<F::ordered> *table; /* of a box of several dimensions */
  const char *data, *where;          /* the first element */
  int64_t index;
  int64_t stride, where_stride, place; /* where there is no table */

  GPR_DEVICE TileRun(const gpr_axes_args &args, const BoxTable<F::ordered> *box = nullptr)
      : a(args), table(box) {
    const int inner = a.kept + a.reduced - 1;
    stride = a.dim[inner].stride;
    where_stride = a.dim[inner].where_stride;
    place = a.dim[inner].place;
  }
  GPR_DEVICE T load(const char *from) const { return Load<T, LOAD>::get(from, a); }
  GPR_DEVICE T load_here(const char *from) const {
    return Load<T, LOAD>::template get<true>(from, a);
  }
  GPR_DEVICE T at(int64_t r) const {
    return load(data + (a.boxed > 1 ? table->data[r] : r * stride));
  }
  /* Elements r, r + down, …; of those that are not among `left` the first again. */
  template <int U, bool ALL>
  GPR_DEVICE void load(T (&x)[U], int64_t r, int down, int left, const Steps &steps) const {
    if constexpr (is_any) {
      const char *from[U];
      GPR_EACH(u, U) {
        const int its = u < left ? u : 0;
        from[u] =
            data + (a.boxed > 1 ? table->data[(int)r + its * down] : r * stride + its * steps.data);
      }
      AnyElements<T, U>().get(x, from, a);
    } else if (a.boxed > 1) {
      GPR_EACH(u, U)
        x[u] = load_here(data + table->data[(int)r + (ALL || u < left ? u * down : 0)]);
    } else {
      const char *from = data + r * stride;
      GPR_EACH(u, U) x[u] = load_here(from + (ALL || u < left ? u * steps.data : 0));
    }
  }
  /* A bit for each of the elements that a mask leaves out. */
  template <int U>
  GPR_DEVICE uint32_t masked(int64_t r, int down, int left, const Steps &steps) const {
    const char *from = where + (a.boxed > 1 ? 0 : r * where_stride);
    if (a.boxed > 1)
      return gone_of<U>(left, [&](int u) { return from[table->where[(int)r + u * down]]; });
    if (left >= U) return gone_of<U>(U, [&](int u) { return from[u * steps.where]; });
    return gone_of<U>(left, [&](int u) { return from[u * steps.where]; });
  }
  GPR_DEVICE int64_t index_of(int64_t r) const {
    return index + (a.boxed > 1 ? table->index[(int)r] : r * place);
  }
  typedef typename TileCell<F>::Run Run;
  /* Elements come in the order of their index, which then need not be worked out for each. */
  GPR_DEVICE bool in_order() const {
    return !F::ordered || (a.boxed == 1 && place >= 0 && a.box <= INT32_MAX && !a.starts);
  }
  GPR_DEVICE void end(TileCell<F> &cell, const Run &run) const {
    if constexpr (F::ordered) cell.take(run, [&](int64_t r) { return index_of(r); });
  }
  /* All of them, which come in_order(). */
  template <int U>
  GPR_DEVICE void add(TileCell<F> &cell, Run &run, const T (&x)[U], int64_t r, int down) {
    if constexpr (F::ordered) {
      GPR_EACH(u, U) run.add(x[u], (int)r + u * down);
    } else {
      cell.template add<U>(x, 0, 0);
    }
  }
  /* Those that `valid` says. */
  template <int U>
  GPR_DEVICE void some(TileCell<F> &cell, Run &run, T (&x)[U], uint32_t valid, int64_t r,
                       int down) {
    if constexpr (F::ordered) {
      if (in_order()) {
        GPR_EACH(u, U)
          if (valid >> u & 1) run.add(x[u], (int)r + u * down);
      } else {
        GPR_EACH(u, U)
          if (valid >> u & 1) cell.one(x[u], index_of(r + u * down));
      }
    } else {
      cell.template some<U>(x, valid, 0, 0);
    }
  }
  /* A bit for each of so many elements r, r + down, … that counts. */
  template <int U>
  GPR_DEVICE uint32_t counted(const T (&x)[U], int64_t r, int down, int left,
                              const Steps &steps) const {
    uint32_t valid = left < U ? (1u << left) - 1 : ~0u >> (32 - U);
    if (a.where) valid &= ~masked<U>(r, down, left, steps);
    return a.skip ? less_missing(x, valid) : valid;
  }
  /* Elements r, r + down, … below stop, of so many that there are: how many counted. */
  GPR_DEVICE int64_t fold(TileCell<F> &cell, int64_t r, int down, int64_t stop, int64_t length,
                          const Steps &steps) {
    constexpr bool neutral = Lane<F>::neutral;
    int64_t n = 0;
    Run run;
    if (length < stop) stop = length;
    GPR_ROLLED(; r < stop; r += U * down) {
      T x[U];
      uint32_t valid = ~0u >> (32 - U);
      const bool are_all = r + (U - 1) * down < stop;
      const int left = are_all ? U : small_quotient_of((int)(stop - r) + down - 1, down);
      if (are_all && !is_any)
        load<U, true>(x, r, down, U, steps);
      else
        load<U, false>(x, r, down, left, steps);
      if (!are_all || a.where || a.skip) valid = counted<U>(x, r, down, left, steps);
      n += __popc(valid);
      const bool all_count = valid == ~0u >> (32 - U);
      if constexpr (neutral)
        if (!all_count) neutralise(x, valid);
      if constexpr (neutral)
        add<U>(cell, run, x, r, down);
      else if (all_count && in_order())
        add<U>(cell, run, x, r, down);
      else
        some<U>(cell, run, x, valid, r, down);
    }
    end(cell, run);
    return n;
  }
};

/* A lane's part of an output, into a state in memory; how many elements counted. */
template <class F, class LOAD>
__device__ __noinline__ int64_t fold_part(const gpr_axes_args *a, const KeptPlace *place, int lane,
                                          int lanes, typename F::State *s) {
  enum { LOADS = 4 };
  TileRun<F, LOAD, LOADS> run(*a);
  run.data = a->data + place->data;
  run.where = a->where + place->where;
  run.index = 0;
  TileCell<F> cell;
  cell.keep(s);
  const int64_t n = run.fold(cell, lane, lanes, a->count, a->count,
                             {lanes * run.stride, lanes * run.where_stride});
  cell.done(s);
  return n;
}
/* All of output k. */
template <class F, class LOAD = typename F::Element>
__device__ __noinline__ void fold_again(const gpr_axes_args *a, int64_t k) {
  const KeptPlace place = kept_place(*a, k);
  if constexpr (HasAgain<F>::value && Same<LOAD, typename F::Element>::value)
    if (a->reduced == 1 && !a->starts &&
        tell_again<F>(a, place.out,
                      {a->data + place.data, a->where ? a->where + place.where : nullptr,
                       a->dim[a->kept].stride, a->dim[a->kept].where_stride, a->count}))
      return;
  typename F::State s;
  const int64_t n = fold_part<F, LOAD>(a, &place, 0, 1, &s);
  tell_least(*a, n);
  finish_output<F>(a, place.out, &s, n);
}
/* The same of each output k that a lane of a whole warp says was missed. Of tall ones, if they are
 * few, all lanes have a part of each: variances of 30842 columns of 8418 doubles, of which one was
 * not told, took 3.1 ms on an H200 when one thread folded it, and take 0.8. To merge the lanes is
 * reckoned as so many elements, which was not measured. */
enum { MERGES_LIKE_ELEMENTS = 256 };
template <class F, class LOAD>
__device__ __noinline__ void fold_again_together(const gpr_axes_args *a, int64_t k, bool missed) {
  typedef Counted<F> C;
  __syncwarp(); /* another lane may have stored there what is not the result */
  uint32_t left = __ballot_sync(GPR_ALL, missed);
  if (__popc(left) * (a->count / GPR_WARP + MERGES_LIKE_ELEMENTS) > a->count) {
    if (missed) fold_again<F, LOAD>(a, k);
    return;
  }
  GPR_ROLLED(; left; left &= left - 1) {
    const KeptPlace place = kept_place(*a, broadcast(k, __ffs(left) - 1));
    typename C::State s;
    s.n = fold_part<F, LOAD>(a, &place, lane_of(), GPR_WARP, &s.state);
    Move<C>::merge_lanes(s, GPR_WARP);
    if (lane_of()) continue;
    tell_least(*a, s.n);
    finish_output<F>(a, place.out, &s.state, s.n);
  }
}

GPR_CLOSE
