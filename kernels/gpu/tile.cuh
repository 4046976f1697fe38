/* Any layout: the variant that takes what no other one does.
 *
 * Dimensions come in memory order, outermost first, the kept ones and the reduced ones apart. Of a
 * block's threads `across` neighbours take neighbouring outputs, `down` of those the elements of
 * each, and `beyond` of these further outputs; whichever lies closest together in memory stands
 * first. The innermost reduced dimensions are a box: its places come from a table in shared memory,
 * so that no division is left in the loop. The box's outermost dimension may be cut into chunks;
 * chunks and the dimensions outside the box are the runs. */
#ifndef GPR_TILE_CUH
#define GPR_TILE_CUH

#include "load.cuh"
#include "rows.cuh"
#include "staged.cuh"

GPR_OPEN

/* Loads that a thread has under way; fewer where batches are long to compile. */
template <class F> struct TileShape {
  static constexpr int blocks = 3, loads = sizeof(typename F::Element) <= 4 ? 16 : 8, some = 4;
};
template <class T> struct TileShape<PairSum<complex<T>>> {
  static constexpr int blocks = 2, loads = 4, some = 4;
};

/* Elements need not come in the order of their index. Run: those of a run that do. */
template <class F> struct TileCell : Cells<F, 1> {
  struct Run {};
};
template <class T, bool GREATEST> struct AnyOrderCell {
  typedef Position<T, GREATEST> F;
  typedef Rank<T, GREATEST> R;
  T best;
  typename R::Key key = R::lowest();
  bool spoiled = false;
  int64_t where = -1;
  /* Without a branch: 192 µs of 98 MB of bfloat16 went into those on an H200. */
  __device__ __forceinline__ void add(T x, int64_t index) {
    const typename R::Key k = R::of(x);
    const bool spoils = R::poisoned(x), earlier = index < where;
    const bool beats = R::worse(key, k), ties = !beats & !R::worse(k, key);
    const bool among = spoils ? !spoiled | earlier : !spoiled & (beats | (ties & earlier));
    if ((where < 0) | among) best = x, key = k, spoiled = spoils, where = index;
  }
  __device__ __forceinline__ void done(typename F::State &s) {
    F::open(s);
    if (where >= 0) F::add(s, best, where);
  }
};
template <class T, bool GREATEST> struct TileCell<Position<T, GREATEST>> {
  typedef PositionCell<T, GREATEST, int> Run;
  AnyOrderCell<T, GREATEST> cell;
  template <class IndexOf> __device__ __forceinline__ void take(const Run &run, IndexOf index_of) {
    if (run.where >= 0) cell.add(run.best(), index_of(run.where));
  }
  __device__ __forceinline__ void keep(typename Position<T, GREATEST>::State *) {}
  __device__ __forceinline__ void one(T x, int64_t index) { cell.add(x, index); }
  __device__ __forceinline__ void done(int, typename Position<T, GREATEST>::State &s) {
    cell.done(s);
  }
};
template <class T> struct TileCell<Positions<T>> {
  struct Run {
    PositionCell<T, false, int> low;
    PositionCell<T, true, int> high;
    __device__ __forceinline__ void add(T x, int r) {
      low.add(x, r);
      high.add(x, r);
    }
  };
  AnyOrderCell<T, false> low;
  AnyOrderCell<T, true> high;
  template <class IndexOf> __device__ __forceinline__ void take(const Run &run, IndexOf index_of) {
    if (run.low.where >= 0) low.add(run.low.best(), index_of(run.low.where));
    if (run.high.where >= 0) high.add(run.high.best(), index_of(run.high.where));
  }
  __device__ __forceinline__ void keep(typename Positions<T>::State *) {}
  __device__ __forceinline__ void one(T x, int64_t index) {
    low.add(x, index);
    high.add(x, index);
  }
  __device__ __forceinline__ void done(int, typename Positions<T>::State &s) {
    low.done(s.low);
    high.done(s.high);
  }
};

/* Bytes, and steps of the index, from the box's first element. */
template <bool ORDERED> struct BoxTable {
  int data[GPR_TILE_BOX], where[GPR_TILE_BOX];
  __device__ __forceinline__ void set_index(int, int) {}
  __device__ __forceinline__ int index_at(int) const { return 0; }
};
template <> struct BoxTable<true> : BoxTable<false> {
  int index[GPR_TILE_BOX];
  __device__ __forceinline__ void set_index(int r, int at) { index[r] = at; }
  __device__ __forceinline__ int index_at(int r) const { return index[r]; }
};

template <bool ORDERED>
__device__ __forceinline__ void fill_table(BoxTable<ORDERED> &table, const gpr_axes_args &a) {
  for (int r = threadIdx.x; r < a.box; r += AXES_THREADS) {
    int rest = r, data = 0, where = 0, index = 0;
    for (int d = a.kept + a.reduced - 1; d >= a.kept + a.reduced - a.boxed; d--) {
      const int n = (int)a.shape[d], over = d > a.kept + a.reduced - a.boxed ? rest / n : 0;
      const int at = rest - over * n;
      data += at * (int)a.strides[d];
      where += at * (int)a.where_strides[d];
      index += at * (int)a.place[d];
      rest = over;
    }
    table.data[r] = data;
    table.where[r] = where;
    table.set_index(r, index);
  }
  __syncthreads();
}

/* One output's elements of one run. */
template <class F, class LOAD> struct TileRun {
  typedef typename F::Element T;
  typedef TileShape<F> Shape;
  static constexpr int U = Shape::loads;
  static constexpr bool can_be_brief = BriefMost<F>::value > 0;
  const gpr_axes_args &a;
  const BoxTable<F::ordered> &table;
  const char *data, *where; /* the first element */
  int64_t index;
  int64_t stride, where_stride, place; /* where there is no table */

  __device__ __forceinline__ TileRun(const gpr_axes_args &args, const BoxTable<F::ordered> &box)
      : a(args), table(box) {
    const int inner = a.kept + a.reduced - 1;
    stride = a.strides[inner];
    where_stride = a.where_strides[inner];
    place = a.place[inner];
  }
  __device__ __forceinline__ T load(const char *from) const { return Load<T, LOAD>::get(from, a); }
  __device__ __forceinline__ T at(int64_t r) const {
    return load(data + (a.boxed > 1 ? table.data[r] : r * stride));
  }
  /* Elements r, r + down, …; of those that are not below stop the first again. */
  template <int U, bool ALL>
  __device__ __forceinline__ void load(T (&x)[U], int64_t r, int down, int64_t stop) const {
    if (a.boxed > 1) {
      const int first = (int)r, end = (int)stop;
#pragma unroll
      for (int u = 0; u < U; u++) {
        const int at = first + u * down;
        x[u] = load(data + table.data[ALL || at < end ? at : first]);
      }
    } else {
      const char *from = data + r * stride;
      const int64_t step = down * stride;
#pragma unroll
      for (int u = 0; u < U; u++) x[u] = load(from + (ALL || r + u * down < stop ? u * step : 0));
    }
  }
  __device__ __forceinline__ bool masked(int64_t r) const {
    return a.where && where[a.boxed > 1 ? table.where[r] : r * where_stride] == 0;
  }
  __device__ __forceinline__ int64_t index_of(int64_t r) const {
    return index + (a.boxed > 1 ? table.index_at((int)r) : r * place);
  }
  typedef typename TileCell<F>::Run Run;
  /* Elements come in the order of their index, which then need not be worked out for each. */
  __device__ __forceinline__ bool in_order() const {
    return a.boxed == 1 && place >= 0 && a.box <= INT32_MAX && !a.starts;
  }
  __device__ __forceinline__ void end(TileCell<F> &cell, const Run &run) const {
    if constexpr (F::ordered) cell.take(run, [&](int64_t r) { return index_of(r); });
  }
  template <int U>
  __device__ __forceinline__ void add(TileCell<F> &cell, Run &run, const T (&x)[U], int64_t r,
                                      int down) {
    if constexpr (F::ordered) {
      if (in_order()) {
#pragma unroll
        for (int u = 0; u < U; u++) run.add(x[u], (int)r + u * down);
      } else {
#pragma unroll
        for (int u = 0; u < U; u++) cell.one(x[u], index_of(r + u * down));
      }
    } else {
      cell.template add<U>(x, 0, 0);
    }
  }
  template <int U>
  __device__ __forceinline__ void some(TileCell<F> &cell, Run &run, T (&x)[U], uint32_t valid,
                                       int64_t r, int down) {
    if constexpr (F::ordered) {
      if (in_order()) {
#pragma unroll
        for (int u = 0; u < U; u++)
          if (valid >> u & 1) run.add(x[u], (int)r + u * down);
      } else {
#pragma unroll
        for (int u = 0; u < U; u++)
          if (valid >> u & 1) cell.one(x[u], index_of(r + u * down));
      }
    } else {
      cell.template some<U>(x, valid, 0, 0);
    }
  }
  /* How many are numbers; the others become -0.0, which changes nothing. */
  template <int U> static __device__ __forceinline__ int count_numbers(T (&x)[U]) {
    int n = U;
    if constexpr (RowLane<F>::neutral)
#pragma unroll
      for (int u = 0; u < U; u++)
        if (is_nan_or_nat(x[u])) x[u] = minus_zero<T>(), n--;
    return n;
  }
  /* Elements r, r + down, … below stop: how many counted. */
  __device__ __forceinline__ int64_t fold_some(TileCell<F> &cell, Run &run, int64_t r, int down,
                                               int64_t stop) {
    constexpr int S = Shape::some;
    int64_t n = 0;
#pragma unroll 1
    for (; r < stop; r += S * down) {
      T x[S];
      uint32_t valid = 0;
      load<S, false>(x, r, down, stop);
#pragma unroll
      for (int u = 0; u < S; u++) {
        const bool there = r + u * down < stop && !masked(r + u * down);
        if (there && !(a.skip && is_nan_or_nat(x[u]))) valid |= 1u << u;
      }
      n += __popc(valid);
      some<S>(cell, run, x, valid, r, down);
    }
    return n;
  }
  /* Of so many that there are. */
  __device__ __forceinline__ int64_t fold(TileCell<F> &cell, int64_t r, int down, int64_t stop,
                                          int64_t length) {
    int64_t n = 0;
    Run run;
    if (length < stop) stop = length;
    if (!a.where && (RowLane<F>::neutral || !a.skip))
#pragma unroll 1
      for (; r + (U - 1) * down < stop; r += U * down) {
        T x[U];
        load<U, true>(x, r, down, stop);
        n += a.skip ? count_numbers<U>(x) : U;
        add<U>(cell, run, x, r, down);
      }
    n += fold_some(cell, run, r, down, stop);
    end(cell, run);
    return n;
  }
};

/* Packets that a thread has under way, of so many elements, each of so many bytes as folded. */
GPR_FN GPR_CONSTEXPR int row_loads(int elements, int bytes) {
  return elements == 16 || bytes > 8 ? 2 : 4;
}

/* Sums in double of what floats hold, which are certified as floats are. */
template <class F, class FROM> struct SumsFloats { static constexpr bool value = false; };
template <> struct SumsFloats<PairSum<double>, float> { static constexpr bool value = true; };
template <> struct SumsFloats<PairSum<double>, float16> { static constexpr bool value = true; };
template <> struct SumsFloats<PairSum<double>, bfloat16> { static constexpr bool value = true; };

/* The same of elements that lie side by side, 16 bytes a load: what is counted is packets. Masks
 * lie so too, or there is none. */
template <class F, class LOAD> struct RowRun : TileRun<F, LOAD> {
  typedef typename F::Element T;
  typedef typename Load<T, LOAD>::From From;
  typedef TileRun<F, LOAD> Base;
  static constexpr bool can_be_brief = false;
  static constexpr int V = Packet<From>::count, U = row_loads(V, sizeof(T));
  static constexpr uint64_t ALL = U * V == 64 ? ~0ull : (1ull << (U * V % 64)) - 1;
  using Base::a;
  using Base::Base;
  using Base::where;

  /* A bit for each of the V bytes that is not 0. */
  static __device__ __forceinline__ uint32_t bits_of(uint32_t w) {
    return ((true_bytes(w) >> 7) * 0x10204080u) >> 28;
  }
  __device__ __forceinline__ uint32_t counted(const char *mask, bool aligned) const {
    uint32_t bits = 0;
    if (V % 4 == 0 && aligned) {
#pragma unroll
      for (int i = 0; i < V / 4; i++) bits |= bits_of(((const uint32_t *)mask)[i]) << 4 * i;
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) bits |= (uint32_t)(mask[i] != 0) << i;
    }
    return bits;
  }
  __device__ __forceinline__ void take(TileCell<F> &cell, typename Base::Run &run,
                                       const Packet<From> (&v)[U], T (&x)[U * V], uint64_t valid,
                                       int64_t r, int down) {
    if constexpr (F::ordered) {
#pragma unroll
      for (int i = 0; i < U * V; i++) {
        const int at = i / V * (V * down) + i % V;
        if (!(valid >> i & 1)) continue;
        if (this->in_order())
          run.add(x[i], (int)r + at);
        else
          cell.one(x[i], this->index_of(r + at));
      }
    } else if constexpr (SumsFloats<F, From>::value) {
      float w[U * V];
#pragma unroll
      for (int i = 0; i < U * V; i++) w[i] = valid >> i & 1 ? wide(v[i / V].element[i % V]) : -0.0f;
      gpr::take<From, U * V, 1>(cell.sum[0], w, 0, cell.rest(0));
    } else if (valid == ALL) {
      cell.template add<U * V>(x, 0, 0);
    } else {
      cell.template some<U * V>(x, valid, 0, 0);
    }
  }
  /* A bit for each of packet p's elements that is the run's. */
  static __device__ __forceinline__ uint32_t own(const Packets<From> &in, int64_t p) {
    uint32_t bits = (1u << V) - 1;
    if (p == 0) bits &= ~0u << in.first;
    if (in.stop - p * V < V) bits &= (1u << (in.stop - p * V)) - 1;
    return bits;
  }
  /* Packets p, p + down, … below stop; what belongs to none that may be read whole comes with the
   * first. */
  __device__ __forceinline__ int64_t fold(TileCell<F> &cell, int64_t p, int down, int64_t stop,
                                          int64_t length) {
    const Packets<From> in(this->data, length);
    const bool all = !a.where && may_read_whole(a, in);
    const int64_t first = in.first && !all ? 1 : 0, whole = all ? in.packets() : in.stop / V;
    const char *const mask = where - in.first;
    const bool aligned = (uintptr_t)mask % 4 == 0;
    int64_t n = 0;
    typename Base::Run run;
    if (p < down && !all)
      n = ends(cell, (int)p, down, first * V - in.first, whole * V - in.first, length);
    if (whole < stop) stop = whole;
    if (first >= whole) return n;
#pragma unroll 1
    for (; p < stop; p += U * down) {
      Packet<From> v[U];
      T x[U * V];
      uint32_t bits[U];
      uint64_t valid = 0;
      /* Without a branch, so that all loads are under way together. */
#pragma unroll
      for (int u = 0; u < U; u++) v[u].words = in.load(inside(p + u * down, first, whole));
#pragma unroll
      for (int u = 0; u < U; u++) bits[u] = own(in, inside(p + u * down, first, whole));
      if (a.where)
#pragma unroll
        for (int u = 0; u < U; u++)
          bits[u] = counted(mask + inside(p + u * down, first, whole) * V, aligned);
#pragma unroll
      for (int u = 0; u < U; u++)
        if (p + u * down >= first && p + u * down < stop) valid |= (uint64_t)bits[u] << u * V;
#pragma unroll
      for (int i = 0; i < U * V; i++) x[i] = Load<T, LOAD>::of(v[i / V].element[i % V]);
      if (a.skip)
#pragma unroll
        for (int i = 0; i < U * V; i++)
          if (is_nan_or_nat(x[i])) valid &= ~(1ull << i);
      n += __popc((uint32_t)valid) + __popc((uint32_t)(valid >> 32));
      const int64_t r = p * V - in.first;
      take(cell, run, v, x, valid, r, down);
    }
    this->end(cell, run);
    return n;
  }
  static __device__ __forceinline__ int64_t inside(int64_t p, int64_t first, int64_t whole) {
    return p < first ? first : p < whole ? p : whole - 1;
  }
  /* Elements below `head` and from `tail` on. */
  __device__ __forceinline__ int64_t ends(TileCell<F> &cell, int y, int down, int64_t head,
                                          int64_t tail, int64_t length) {
    if (tail < head) head = tail = length;
    const int64_t all = head + length - tail;
    int64_t n = 0;
#pragma unroll 1
    for (int64_t i = y; i < all; i += down) {
      const int64_t r = i < head ? i : tail + i - head;
      T x[1] = {this->at(r)};
      if (this->masked(r) || (a.skip && is_nan_or_nat(x[0]))) continue;
      if constexpr (F::ordered) {
        cell.one(x[0], this->index_of(r)); /* the last before the others */
      } else {
        typename Base::Run none;
        this->template add<1>(cell, none, x, r, 0);
      }
      n++;
    }
    return n;
  }
};

/* The threads of each output come together in the one with y == 0. */
template <class C>
__device__ __noinline__ void merge_warps(const gpr_axes_args *a, typename C::State *s, int x, int y,
                                         Slots<C> *slots) {
  int down = a->down;
  if (a->across == 1 && down % GPR_WARP == 0) {
    Move<C>::merge_lanes(*s, GPR_WARP);
    y = y % GPR_WARP ? AXES_THREADS : y / GPR_WARP;
    down /= GPR_WARP;
  }
  merge_down<C, 1>(s, x, y, a->across * a->beyond, down, *slots);
}
template <class C>
__device__ __forceinline__ void merge_tile(const gpr_axes_args &a, typename C::State &s, int x,
                                           int y, Slots<C> &slots) {
  const int lanes = a.across * a.down;
  if (a.down == 1) return;
  if (lanes <= GPR_WARP && (lanes & (lanes - 1)) == 0)
    Move<C>::merge_lanes(s, lanes, a.across);
  else if (lanes == AXES_THREADS && a.across > 1)
    merge_across<C, 1>(&s, x, y, a.across, a.down, slots);
  else
    merge_warps<C>(&a, &s, x, y, &slots);
}

/* The first U elements of an output so short that a thread folds and finishes it without a state
 * in memory: those of the next output are under way meanwhile. */
template <class F, class RUN, int U> struct Brief {
  typename F::Element x[U];
  uint32_t counts; /* bits */
  KeptPlace place;
  __device__ __forceinline__ void open(const gpr_axes_args &a, const RUN &run, int64_t k) {
    place = kept_place(a, k);
    load(a, run, 0);
  }
  /* From the first one on. */
  __device__ __forceinline__ void load(const gpr_axes_args &a, const RUN &run, int first) {
    const char *data = a.data + place.data + first * run.stride;
    const int left = (int)a.count - first;
#pragma unroll
    for (int u = 0; u < U; u++)
      if (u < left) x[u] = run.load(data + u * run.stride);
    counts = left < U ? (1u << left) - 1 : (1u << U) - 1;
    if (!a.where) return;
    const char *where = a.where + place.where + first * run.where_stride;
#pragma unroll
    for (int u = 0; u < U; u++)
      if (u < left && !where[u * run.where_stride]) counts &= ~(1u << u);
  }
  __device__ __forceinline__ void skip_nan() {
#pragma unroll
    for (int u = 0; u < U; u++)
      if (is_nan_or_nat(x[u])) counts &= ~(1u << u);
  }
  /* False: it has to be folded again. */
  template <class Few>
  __device__ __forceinline__ bool finish(const gpr_axes_args &a, const RUN &run) {
    Few few;
    int n = 0;
#pragma unroll 1
    for (int first = 0;;) {
      if (a.skip) skip_nan();
      n += __popc(counts);
      if constexpr (LooksFirst<F>::value) {
#pragma unroll
        for (int u = 0; u < U; u++)
          if (counts >> u & 1) few.see(x[u]);
        if (!few.open()) return false;
      }
#pragma unroll
      for (int u = 0; u < U; u++)
        if (counts >> u & 1) few.add(x[u], F::ordered ? (first + u) * run.place : 0);
      first += U;
      if (LooksFirst<F>::value || first >= (int)a.count) break;
      load(a, run, first);
    }
    return n && few.finish(a, place.out, n);
  }
};
template <class F, class RUN>
__device__ __noinline__ void fold_brief_slowly(const gpr_axes_args *a, const char *data,
                                               const char *where, const BoxTable<F::ordered> *table,
                                               int64_t out) {
  typename F::State s;
  RUN run(*a, *table);
  run.data = data;
  run.where = where;
  run.index = 0;
  TileCell<F> cell;
  cell.keep(&s);
  typename RUN::Run all;
  const int64_t n = run.fold_some(cell, all, 0, 1, a->count);
  run.end(cell, all);
  cell.done(0, s);
  if (a->least && n <= a->few) *a->least = n;
  finish_output<F>(a, out, &s, n);
}
template <int U, class Few, class F, class RUN>
__device__ __forceinline__ void tile_brief(const gpr_axes_args &a,
                                           const BoxTable<F::ordered> &table) {
  const int64_t step = (int64_t)gridDim.x * AXES_THREADS;
  int64_t k = (int64_t)blockIdx.x * AXES_THREADS + threadIdx.x;
  const RUN run(a, table);
  Brief<F, RUN, U> here, next;
  if (k < a.outputs) here.open(a, run, k);
#pragma unroll 1
  for (; k < a.outputs; k += step) {
    if (k + step < a.outputs) next.open(a, run, k + step);
    if (!here.template finish<Few>(a, run))
      fold_brief_slowly<F, RUN>(&a, a.data + here.place.data, a.where + here.place.where, &table,
                                here.place.out);
    here = next;
  }
}
template <class F, class RUN>
__device__ __forceinline__ void tile_brief(const gpr_axes_args &a,
                                           const BoxTable<F::ordered> &table) {
  if (a.count <= 4) return tile_brief<4, Few<F>, F, RUN>(a, table);
  if constexpr (LooksFirst<F>::value)
    if (a.count > 8) return tile_brief<FEW_SHORT, Few<F>, F, RUN>(a, table);
  if constexpr (IsTall<F>::value)
    if (a.count > FEW_SHORT) return tile_brief<8, Tall<F>, F, RUN>(a, table);
  tile_brief<8, Few<F>, F, RUN>(a, table);
}

template <class F, class RUN>
__global__ void __launch_bounds__(AXES_THREADS, TileShape<F>::blocks)
    tile(const __grid_constant__ gpr_axes_args a) {
  typedef Counted<F> C;
  typedef typename C::State State;
  constexpr int U = RUN::U;
  __shared__ Slots<C> slots;
  __shared__ BoxTable<F::ordered> table;
  const int across = a.across, down = a.down, wide = across * a.beyond;
  const int far = threadIdx.x / across, x = threadIdx.x - far * across + far / down * across;
  const int y = x < wide ? far % down : AXES_THREADS;
  const int lanes = down / a.runners, runner = y / lanes, lane = y - runner * lanes;
  if (a.boxed > 1) fill_table(table, a);
  if constexpr (RUN::can_be_brief)
    if (a.brief) return tile_brief<F, RUN>(a, table);
  RUN run(a, table);
  for (int64_t b = blockIdx.x; b < a.tiles * a.split; b += gridDim.x) {
    const int64_t part = quotient_of(b, a.tiles), tile = b - part * a.tiles, k = tile * wide + x;
    const bool mine = k < a.outputs && x < wide;
    State s;
    TileCell<F> cell;
    cell.keep(&s.state);
    int64_t n = 0, out = 0;
    if (mine) {
      int64_t kept = k, segment = 0, begin = 0, length = a.box;
      if (a.starts) {
        const int64_t per = quotient_of(a.outputs, a.segments);
        segment = quotient_of(k, per);
        kept = k - segment * per;
        begin = a.starts[segment];
        length = a.stops[segment] > begin ? a.stops[segment] - begin : 0;
        out = segment * per;
      }
      const KeptPlace place = kept_place(a, kept);
      out += place.out;
      const char *data = a.data + place.data + begin * run.stride;
      const char *where = a.where + place.where + begin * run.where_stride;
      const int outer = a.reduced - a.boxed, edge = a.kept + outer; /* the box's outermost one */
      int64_t t = (part * a.runners + runner) * a.share;
      const int64_t stop = t + a.share < a.rounds ? t + a.share : a.rounds;
#pragma unroll 1
      while (t < stop) {
        const int64_t number = quotient_of(t, a.run_rounds), first = t - number * a.run_rounds;
        const int64_t rest = quotient_of(number, a.chunks), chunk = number - rest * a.chunks;
        run.data = data + chunk * a.chunk * a.strides[edge];
        run.where = where + chunk * a.chunk * a.where_strides[edge];
        run.index = chunk * a.chunk * a.place[edge];
        if (outer) {
          run.data += offset_of(a.shape + a.kept, a.strides + a.kept, outer, rest);
          if (a.where)
            run.where += offset_of(a.shape + a.kept, a.where_strides + a.kept, outer, rest);
          if (F::ordered) run.index += offset_of(a.shape + a.kept, a.place + a.kept, outer, rest);
        }
        if (a.chunks > 1 && chunk == a.chunks - 1)
          length = a.last_box;
        else if (!a.starts)
          length = a.box;
        const int64_t left = a.run_rounds - first, rounds = left < stop - t ? left : stop - t;
        const int64_t end = a.starts ? length : (first + rounds) * lanes * U;
        n += run.fold(cell, first * lanes * U + lane, lanes, end, length);
        t += rounds;
      }
    }
    cell.done(0, s.state);
    s.n = n;
    State *partial = partials_of<C>(a) + tile * a.split * wide + x;
    for (bool all = a.split == 1;; all = true) {
      merge_tile<C>(a, s, x, y, slots);
      if (all && mine && y == 0) {
        if (a.least && s.n <= a.few) *a.least = s.n;
        finish_output<F>(&a, out, &s.state, s.n);
      }
      if (all) break;
      if (mine && y == 0) Move<C>::assign(partial[part * wide], s);
      if (!is_last_of((uint32_t *)a.scratch + tile, a.split)) break;
      C::open(s);
      if (mine && y < a.split)
        Move<C>::merge_all(s, partial + y * wide, (a.split - y + down - 1) / down, down * wide);
    }
  }
}

GPR_CLOSE
#endif
