/* Outputs of a few elements each, as many as there are threads and more: columns of a few rows, and
 * rows of which a packet holds several or a few packets hold one. */
#ifndef GPR_SHALLOW_CUH
#define GPR_SHALLOW_CUH

#include "missing.cuh"
#include "strips.cuh"
#include "tile_run.cuh"

GPR_OPEN

enum { SHALLOW_BLOCKS = 4, SHALLOW_LOADS = 4 };
/* Blocks a multiprocessor, where all elements count. Of 100 MB in 12 rows sums of doubles took 32
 * µs on an H200 by five and 27 by four, in 31 rows 38 and 29; of halves in 12 and 31 rows 38 and 35
 * by six, 34 and 32 by five. Maxima of halves in 6 rows took 100 by six, 62 by five and 63 by four,
 * in 2 rows 65 and 72 by six and four; of bytes in 3 rows 159 and 170. */
template <class F> struct ShallowShape {
  static constexpr int size = sizeof(typename F::Element);
  static constexpr int blocks = size == 16 ? 4 : size == 1 ? 6 : 5;
};
template <class T> struct ShallowShape<LongSum<T>> { static constexpr int blocks = 4; };
template <class T> struct ShallowShape<PairSum<T>> {
  static constexpr int blocks = Same<T, float16>::value ? 5 : 4;
};

/* Neighbouring results of one thread, and those of them, as bits, that need slow_output(): which is
 * called when it can spill nothing that is alive. */
template <class F, class Few, int N, class Numbers>
__device__ __forceinline__ uint32_t finish_few(const gpr_axes_args &a, int64_t o, int left,
                                               Few (&few)[N], const Numbers &n) {
  const auto finish = [&](typename Few::Value(&value)[N]) {
    uint32_t missed = 0;
    finish_values<F>(a, o, value, n, left);
#pragma unroll
    for (int e = 0; e < N; e++) missed |= is_certified(value[e]) ? 0u : 1u << e;
    return missed & ((1u << left) - 1);
  };
  typename Few::Value value[N];
  if constexpr (IsSum<F>::value) {
    return as_asked(a, [&](Asked asked) {
      const Over all = over_all(asked, n);
#pragma unroll
      for (int e = 0; e < N; e++)
        value[e] = few[e].shown(a, asked, over_one(asked, n, e, all), number_of(n, e));
      return finish(value);
    });
  } else {
    const typename Few::Shared shared(a);
#pragma unroll
    for (int e = 0; e < N; e++) few[e].result(value[e], shared);
    return finish(value);
  }
}

/* Neighbouring columns, up to four elements apart: a.count elements of each, a.dim[kept].stride
 * apart. */
template <class F> struct Strip {
  typedef typename F::Element T;
  static constexpr int V = StripShape<T>::count;
  const char *base;
  int64_t o, rest = 0; /* rest: columns from its first to the last of their rows */
  int left = 0;        /* columns that exist */
  __device__ __forceinline__ Strip() {}
  __device__ __forceinline__ Strip(const gpr_axes_args &a, int64_t t) { set(a, t); }
  __device__ __forceinline__ void set(const gpr_axes_args &a, int64_t t) {
    if (t >= a.tiles) return;
    const int64_t width = a.dim[a.kept - 1].size, across = quotient_of(width + V - 1, V);
    const int64_t batch = across == a.tiles ? 0 : quotient_of(t, across),
                  first = (t - batch * across) * V;
    base = a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept - 1, batch) +
           first * a.dim[a.kept - 1].stride;
    o = batch * width + first;
    set_left(width - first);
  }
  __device__ __forceinline__ void set_left(int64_t columns) {
    rest = columns;
    left = columns < V ? (int)columns : V;
  }
  /* A block's threads further on, in the same row mostly: without a division. */
  __device__ __forceinline__ void follow(const gpr_axes_args &a, int64_t t, const Strip &before) {
    enum { STEP = AXES_THREADS * V };
    if (before.rest <= STEP) return set(a, t);
    base = before.base + STEP * a.dim[a.kept - 1].stride;
    o = before.o + STEP;
    set_left(before.rest - STEP);
  }
};

/* Sums that skip NaN, of which nobody asks how many numbers they have; of complex numbers it took
 * longer than to count: 5 rows of 4 million complex floats 64 and 57 µs on an H200. */
template <class F> struct CanOnlySkip {
  static constexpr bool value =
      IsSum<F>::value &&
      Same<typename RealOf<typename F::Element>::type, typename F::Element>::value;
};
GPR_FN GPR_CONSTEXPR bool only_skips(const gpr_axes_args &a) {
  return a.skip && !a.where && !a.least && !divides(a.op);
}
/* What takes the place of NaN in such sums: -0.0, which changes nothing, and a 0 besides in columns
 * that have nothing else. */
template <class F, bool SKIP> struct Skipping {
  typedef typename F::Element T;
  static constexpr int V = Strip<F>::V;
  uint32_t seen = 0; /* columns, as bits, that have a number */
  template <int U> __device__ __forceinline__ void drop(StripOf<T> (&v)[U], int rows) {
    if constexpr (SKIP)
#pragma unroll
      for (int i = 0; i < U * V; i++) {
        T &x = v[i / V].element[i % V];
        if (is_nan_or_nat(x))
          x = neutral_of<T>();
        else if (i / V < rows)
          seen |= 1u << i % V;
      }
  }
  template <class Few>
  __device__ __forceinline__ void end(const gpr_axes_args &a, Few (&few)[V]) const {
    if (!SKIP || a.has_initial) return;
#pragma unroll
    for (int e = 0; e < V; e++)
      if (!(seen >> e & 1)) few[e].add(T{}, 0);
  }
};

/* U rows of it from row r on, or as many as there are; what lies outside is not added. */
template <int U, bool ALL, class F, bool SKIP> struct RowsOfStrip {
  static constexpr int V = Strip<F>::V;
  StripOf<typename F::Element> v[U];
  int r, rows;
  __device__ __forceinline__ RowsOfStrip(const gpr_axes_args &a, const Strip<F> &strip, int r,
                                         Skipping<F, SKIP> &skipping)
      : r(r), rows((int)a.count - r) {
    const int64_t stride = a.dim[a.kept].stride;
    load_rows(v, strip.base + r * stride, stride, a.dim[a.kept - 1].stride, ALL ? U : rows,
              strip.left);
    skipping.drop(v, rows);
  }
  template <class Few> __device__ __forceinline__ void add_to(Few (&few)[V]) const {
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (!ALL && u >= rows) break;
#pragma unroll
      for (int e = 0; e < V; e++) few[e].add(v[u].element[e], r + u);
    }
  }
};
/* Of more rows a strip is looked at again as a whole: 256 MiB of lognormal floats with a sigma of
 * 5, then all read again, took 371, 307, 313 and 275 µs on an H200 column by column, of 2, 3, 5 and
 * 8 rows, and 477, 370, 299 and 219 so. */
enum { AGAIN_BY_COLUMNS = 5 };
template <class F, bool SKIP>
__device__ __forceinline__ uint32_t fold_strip_again(const gpr_axes_args &a,
                                                     const Strip<F> &strip) {
  typedef StripShape<typename F::Element> Shape;
  Again<F> few[Shape::count];
  Skipping<F, SKIP> skipping;
#pragma unroll 1
  for (int r = 0; r < (int)a.count; r += 2 * Shape::loads)
    RowsOfStrip<2 * Shape::loads, false, F, SKIP>(a, strip, r, skipping).add_to(few);
  skipping.end(a, few);
  return finish_few<F>(a, strip.o, strip.left, few, a.count);
}
/* What plain additions could not tell of strip t: by more terms, and then one by one. */
template <class F, bool SKIP>
__device__ __noinline__ void finish_strip(const gpr_axes_args *a, int64_t t, uint32_t missed) {
  const Strip<F> strip(*a, t);
  const bool by_columns = a->count <= AGAIN_BY_COLUMNS;
  if constexpr (HasAgain<F>::value)
    if (!by_columns) missed &= fold_strip_again<F, SKIP>(*a, strip);
#pragma unroll 1
  for (; missed; missed &= missed - 1) {
    const int e = __ffs(missed) - 1;
    const char *const from = strip.base + e * a->dim[a->kept - 1].stride;
    if constexpr (SKIP) {
      fold_again<F>(a, strip.o + e);
      continue;
    }
    if (by_columns &&
        told_again<F>(*a, strip.o + e, {from, nullptr, a->dim[a->kept].stride, 0, a->count}))
      continue;
    slow_output<F>(a, strip.o + e, from, a->dim[a->kept].stride, a->count);
  }
}

/* Strips of one row or two a thread: of one strip there would be too few loads under way. Of single
 * elements that are cut out of longer rows, 128 MiB, sums of bfloat16 took 147 µs on an H200 by two
 * strips that each found their row by a division, and take 107, of doubles 104 and 90; whether
 * complex doubles are 0 took 91 and takes 55. */
GPR_FN GPR_CONSTEXPR int strips_of(int rows) { return rows == 1 ? 4 : 2; }
template <class F, class Few, int ROWS, bool SKIP = false>
__device__ __forceinline__ void fold_strips(const gpr_axes_args &a) {
  typedef typename F::Element T;
  constexpr int V = StripShape<T>::count, STRIPS = strips_of(ROWS);
  const int64_t t = block_of(a) * AXES_THREADS * STRIPS + threadIdx.x,
                stride = a.dim[a.kept].stride;
  Strip<F> strip[STRIPS];
  StripOf<T> v[STRIPS][ROWS];
#pragma unroll
  for (int s = 0; s < STRIPS; s++) {
    if (s)
      strip[s].follow(a, t + s * AXES_THREADS, strip[s - 1]);
    else
      strip[s].set(a, t);
    load_rows(v[s], strip[s].base, stride, a.dim[a.kept - 1].stride, ROWS, strip[s].left);
  }
  uint32_t missed = 0;
#pragma unroll
  for (int s = 0; s < STRIPS; s++) {
    if (!strip[s].left) continue;
    Few few[V];
    Skipping<F, SKIP> skipping;
    if (ROWS > 1) skipping.drop(v[s], ROWS);
    if constexpr (Begins<Few>::value)
#pragma unroll
      for (int e = 0; e < V; e++) few[e].begin(v[s][0].element[e]);
#pragma unroll
    for (int i = 0; i < ROWS * V; i++) {
      const T x = v[s][i / V].element[i % V];
      few[i % V].add(ROWS == 1 && a.skip && is_nan_or_nat(x) ? T{} : x, i / V);
    }
    if (ROWS > 1) skipping.end(a, few);
    missed |= finish_few<F>(a, strip[s].o, strip[s].left, few, ROWS) << s * V;
  }
#pragma unroll 1
  for (int s = 0; missed; s++, missed >>= V)
    if (const uint32_t some = missed & ((1u << V) - 1))
      finish_strip<F, SKIP>(&a, t + s * AXES_THREADS, some);
}

/* Whether plain additions will not do for some column of the warp's active lanes; more: to come. */
template <class Few, int V>
__device__ __forceinline__ bool are_far_apart(const Few (&few)[V], int count, bool more) {
  bool close = true;
#pragma unroll
  for (int e = 0; e < V; e++) close &= more ? few[e].is_close() : few[e].fine(count);
  return __any_sync(__activemask(), !close);
}
/* From row r on. */
template <class F, class Few, int V, bool SKIP>
__device__ __forceinline__ void fold_rows(const gpr_axes_args &a, const Strip<F> &strip, int64_t t,
                                          int r, Skipping<F, SKIP> skipping, Few (&few)[V]) {
  typedef StripShape<typename F::Element> Shape;
#pragma unroll 1
  for (; r + Shape::loads <= (int)a.count; r += Shape::loads)
    RowsOfStrip<Shape::loads, true, F, SKIP>(a, strip, r, skipping).add_to(few);
#pragma unroll 1
  for (; r < (int)a.count; r += Shape::last)
    RowsOfStrip<Shape::last, false, F, SKIP>(a, strip, r, skipping).add_to(few);
  skipping.end(a, few);
  const uint32_t missed = finish_few<F>(a, strip.o, strip.left, few, a.count);
  if (missed) finish_strip<F, SKIP>(&a, t, missed);
}
/* Numbers that are far apart are so from the first rows on, mostly, and go by pairs from there: 24
 * rows of 475913 lognormal floats with a sigma of 5 took 40 µs on an H200 when they were read
 * again, and take 16, normal ones 11; by pairs from the start 14.6, and 3 rows of normal ones 56 in
 * place of 49. 40 rows of 2.5 million bfloat16 took 330 read again, and take 93. */
template <class F, bool SKIP = false>
__device__ __forceinline__ void fold_strip(const gpr_axes_args &a) {
  typedef StripShape<typename F::Element> Shape;
  const int64_t t = block_of(a) * AXES_THREADS + threadIdx.x;
  const Strip<F> strip(a, t);
  if (!strip.left) return;
  typedef typename OfColumns<F>::few Few;
  Few few[Shape::count];
  Skipping<F, SKIP> skipping;
  if constexpr (Begins<Few>::value) {
    const RowsOfStrip<Shape::loads, false, F, SKIP> first(a, strip, 0, skipping);
#pragma unroll
    for (int e = 0; e < Shape::count; e++) few[e].begin(first.v[0].element[e]);
    first.add_to(few);
    fold_rows<F>(a, strip, t, Shape::loads, skipping, few);
  } else if constexpr (IsWide<F>::value) {
    if (Shape::last < Shape::loads && a.count <= Shape::last)
      return fold_rows<F>(a, strip, t, 0, skipping, few);
    const RowsOfStrip<Shape::loads, false, F, SKIP> first(a, strip, 0, skipping);
    first.add_to(few);
    if (are_far_apart(few, (int)a.count, a.count > Shape::loads)) {
      Again<F> again[Shape::count];
      first.add_to(again);
      return fold_rows<F>(a, strip, t, Shape::loads, skipping, again);
    }
    fold_rows<F>(a, strip, t, Shape::loads, skipping, few);
  } else {
    fold_rows<F>(a, strip, t, 0, skipping, few);
  }
}

/* Columns: rows of a.dim[kept - 1].size elements, of which there are a.count, FEW_MOST at most,
 * a.dim[kept].stride apart. */
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, ShallowShape<F>::blocks)
    shallow(const __grid_constant__ gpr_axes_args a) {
  typedef OfColumns<F> Of;
  if (a.count == 1 && !a.has_initial) return fold_strips<F, typename Of::one, 1>(a);
  if constexpr (!IsTwo<F>::value)
    if (a.count == 2) return fold_strips<F, typename Of::two, 2>(a);
  fold_strip<F>(a);
}
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, SHALLOW_BLOCKS)
    two(const __grid_constant__ gpr_axes_args a) {
  fold_strips<F, Two<F>, 2>(a);
}

/* --- rows ----------------------------------------------------------------------------------------
 */

/* One output of rows that lie one behind the other. */
template <class F> __device__ __forceinline__ void slow_row(const gpr_axes_args &a, int64_t o) {
  typedef typename F::Element T;
  const char *from = a.data + o * a.count * (int64_t)sizeof(T);
  const bool is_nothing = a.skip && is_nan_or_nat(*(const T *)from);
  slow_output<F>(&a, o, from, sizeof(T), is_nothing ? 0 : a.count);
}

/* Rows one behind the other, of COUNT elements each: a power of two of them, a packet at most. NaN
 * is skipped in sums of one. */
template <class F, int COUNT> __device__ __forceinline__ void fold_packed(const gpr_axes_args &a) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count, N = V / COUNT;
  const int64_t full = a.outputs / N;
  const int64_t first = block_of(a) * AXES_THREADS * SHALLOW_LOADS + threadIdx.x;
  Packet<T> v[SHALLOW_LOADS];
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++)
    if (first + u * AXES_THREADS < full)
      v[u].words = load_once(a.data + (first + u * AXES_THREADS) * 16);
  uint32_t missed = 0;
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++) {
    const int64_t p = first + u * AXES_THREADS;
    if (p >= full) break;
    typename Either<COUNT == 2, Two<F>, typename Single<F>::type>::type few[N];
    if (COUNT == 1 && a.skip)
#pragma unroll
      for (int e = 0; e < V; e++)
        if (is_nan_or_nat(v[u].element[e])) v[u].element[e] = a.has_initial ? neutral_of<T>() : T{};
#pragma unroll
    for (int e = 0; e < V; e++) few[e / COUNT].add(v[u].element[e], e % COUNT);
    missed |= finish_few<F>(a, p * N, N, few, COUNT) << (u * N);
  }
  for (; missed; missed &= missed - 1) {
    const int i = __ffs(missed) - 1;
    slow_row<F>(a, (first + i / N * AXES_THREADS) * N + i % N);
  }
  for (int64_t o = full * N; blockIdx.x == 0 && threadIdx.x == 0 && o < a.outputs; o++)
    slow_row<F>(a, o);
}

/* The longest rows of neighbouring lanes, a packet each: of 64 bytes the extremes of 256 MiB take
 * 72 µs on an H200 and 82 as staged rows, of elements of 8 bytes 103 and 90; sums take 91 and 84,
 * and places 111 and 85. */
template <class F> struct PackedShape { static constexpr int bytes = 32; };
template <class T> struct PackedShape<Extremes<T>> {
  static constexpr int bytes = sizeof(T) < 8 ? 64 : 32;
};

/* Rows one behind the other, of TEAM packets each, one to a lane. */
template <class F, int TEAM> __device__ __forceinline__ void fold_lanes(const gpr_axes_args &a) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count;
  const int id = threadIdx.x % TEAM;
  const int64_t first = block_of(a) * AXES_THREADS * SHALLOW_LOADS + threadIdx.x;
  Packet<T> v[SHALLOW_LOADS];
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++) {
    const int64_t p = first + u * AXES_THREADS;
    v[u].words = make_uint4(0, 0, 0, 0);
    if (p / TEAM < a.outputs) v[u].words = load_once(a.data + p * 16);
  }
  uint32_t missed = 0;
#pragma unroll
  for (int u = 0; u < SHALLOW_LOADS; u++) {
    const int64_t o = (first + u * AXES_THREADS) / TEAM;
    const bool mine = id == 0 && o < a.outputs;
    Few<F> few;
#pragma unroll
    for (int e = 0; e < V; e++) few.add(v[u].element[e], id * V + e);
    if (!few.finish_team(a, o, a.count, TEAM, mine) && mine) missed |= 1u << u;
  }
  for (; missed; missed &= missed - 1)
    slow_row<F>(a, (first + (__ffs(missed) - 1) * AXES_THREADS) / TEAM);
}

template <class F>
__global__ void __launch_bounds__(AXES_THREADS, SHALLOW_BLOCKS)
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
#endif
