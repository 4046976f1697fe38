/* The fast axis: a warp or a block to each output, or several blocks. */
#pragma once

#include "rows_folds.cuh"
#include "settled.cuh"

GPR_OPEN

enum { ROWS_FEW = 2 };

/* How long a block's threads take to come together and to finish, in steps of its loads. */
template <class F> struct EndsOf { static constexpr double value = 1; };

/* U packets a thread from p on, a team's width apart, all inside. */
template <int U, class F>
GPR_DEVICE void fold_packets(Lane<F> &lane, const Packets<typename F::Element> &in, int64_t p,
                             int team, int64_t index) {
  typedef typename F::Element T;
  Packet<T> v[U];
  in.load(v, p, team);
  const int64_t at = index - in.first + p * Packet<T>::count;
  lane.take(v, at, team * Packet<T>::count);
}

/* Whether the packets at the ends may be read whole. */
template <class T> GPR_DEVICE bool may_read_whole(const gpr_axes_args &a, const Packets<T> &in) {
  const char *const low = (const char *)in.data, *const high = low + in.packets() * 16;
  return in.stop <= in.first || (low >= a.low && high <= a.high);
}
/* To extremes an element more than once is as good as once, and to places at its own index. */
template <class F> struct IsExtremes { static constexpr bool value = false; };
template <class T> struct IsExtremes<Extremes<T>> { static constexpr bool value = true; };
template <class F> struct IsExtremes<WithoutNaN<F>> : IsExtremes<F> {};
/* Whether what lies outside may be read with the rest. */
template <class F> GPR_FN GPR_CONSTEXPR bool has_quick_ends() {
  return Lane<F>::neutral || (IsExtremes<F>::value && sizeof(typename F::Element) >= 4);
}
/* Elements before `head` and from `tail` on become the nearest one between or -0.0. */
template <bool REPEATS, class T>
GPR_DEVICE void hide_ends(Packet<T> &v, int head, int tail = Packet<T>::count) {
  GPR_UNROLLED(int j = Packet<T>::count - 2; j >= 0; j--)
    if (j < head) v.element[j] = REPEATS ? v.element[j + REPEATS] : neutral_of<T>();
  GPR_UNROLLED(int j = REPEATS; j < Packet<T>::count; j++)
    if (j >= tail) v.element[j] = REPEATS ? v.element[j - REPEATS] : neutral_of<T>();
}
/* U packets from p on, so far apart, of a run of two and more that may all be read whole, though
 * some lie outside: as if -0.0 were there, or the nearest element inside. How many lie inside. */
template <bool REPEATS, int U, class T>
GPR_DEVICE int load_ends(const Packets<T> &in, int64_t p, int apart, Packet<T> (&v)[U]) {
  enum { MANY = 1 << 20 };
  constexpr int V = Packet<T>::count;
  const int64_t last = in.packets() - 1;
  const int ahead = (int)least(last - p, (int64_t)MANY), end = (int)(in.stop - last * V),
            tail = (int)least(in.stop - p * V, (int64_t)MANY), head = p == 0 ? (int)in.first : 0;
  GPR_EACH(u, U) v[u].words = in.load(u * apart <= ahead ? p + u * apart : last);
  GPR_EACH(u, U) {
    const bool is_last = REPEATS && u * apart > ahead;
    hide_ends<REPEATS>(v[u], u ? 0 : head, is_last ? end : tail - u * apart * V);
  }
  int inside = -head;
  GPR_EACH(u, U) inside += least(greatest(tail - u * apart * V, 0), V);
  return inside;
}

/* Packets [p, p + ROWS_FEW of each lane), of which some lie outside; of what lies partly outside
 * each lane takes an element. All lanes are together where a packet may be repeated. Rows of 10000
 * halves that begin anywhere took 55 µs on an H200 for where their greatest stand, and take 23. */
template <class F>
GPR_DEVICE void fold_ends(const Packets<typename F::Element> &in, int64_t p, int64_t index,
                          Lane<F> &lane) {
  constexpr int V = Packet<typename F::Element>::count, MANY = ROWS_FEW * GPR_WARP;
  if constexpr (Lane<F>::neutral) { /* seldom: most ends are read with the rest */
    GPR_ROLLED(int64_t q = p + lane_of(); q < p + MANY; q += GPR_WARP)
      in.each(q, [&](typename F::Element x, int64_t i, int) { lane.one(x, index + i); });
    return;
  }
  const int64_t begin = in.first ? 1 : 0, end = in.stop / V, all = in.packets();
  const int64_t low = greatest(p, begin), high = least(p + MANY, end);
  GPR_ROLLED(int64_t q = p + lane_of(); q < p + MANY && low < high; q += GPR_WARP) {
    if constexpr (F::ordered || IsExtremes<F>::value)
      fold_packets<1>(lane, in, least(greatest(q, low), high - 1), 0, index);
    else if (q >= low && q < high)
      fold_packets<1>(lane, in, q, 0, index);
  }
  GPR_ROLLED(int64_t q = begin ? 0 : end; q < all; q = greatest(end, q + 1)) {
    const int64_t i = q * V + lane_of();
    if (q >= p && q < p + MANY && lane_of() < V && i >= in.first && i < in.stop)
      lane.one(in.data[i], index + i - in.first);
  }
}

/* The last packets of a run that may all be read whole, by half as many loads a lane as long as
 * those are enough. */
template <int U, class F>
GPR_DEVICE void fold_last(const Packets<typename F::Element> &in, int64_t first, int64_t index,
                          Lane<F> &lane) {
  typedef typename F::Element T;
  if constexpr (U > ROWS_FEW)
    if (in.packets() - first <= U / 2 * GPR_WARP)
      return fold_last<U / 2, F>(in, first, index, lane);
  Packet<T> v[U];
  const int64_t p = first + lane_of();
  load_ends<IsExtremes<F>::value>(in, p, GPR_WARP, v);
  lane.take(v, index - in.first + p * Packet<T>::count, GPR_WARP * Packet<T>::count);
}

/* Packets of short runs of the innermost dimension, which lie a stride apart, one run's behind the
 * other's: a lane's next one is a warp's width on. */
template <class T> struct ShortRuns {
  static constexpr int V = Packet<T>::count;
  const gpr_axes_args &a;
  const char *const anywhere; /* a packet that may be read */
  const char *from;           /* the run's first element */
  int left;                   /* runs, this one among them, or enough of them */
  int at;                     /* its packet */
  int whole, rest;            /* of a step: runs, and packets beyond them */
  GPR_DEVICE ShortRuns(const gpr_axes_args &a, const char *base, int64_t p)
      : a(a), anywhere((const char *)(((uintptr_t)a.low + 15) & ~(uintptr_t)15)) {
    enum { ENOUGH = 1 << 20 };
    const int64_t run = quotient_of(p, a.packets);
    at = (int)(p - run * a.packets);
    from = base + run * stride();
    left = (int)least(a.dim[a.kept].size - run, (int64_t)ENOUGH);
    whole = small_quotient_of(GPR_WARP, a.packets);
    rest = GPR_WARP - whole * a.packets;
  }
  GPR_DEVICE int64_t stride() const { return a.dim[a.kept].stride; }
  GPR_DEVICE Packets<T> run() const { return Packets<T>(from, a.length); }
  GPR_DEVICE void go() {
    const bool ends = at + rest >= a.packets;
    at += rest - (ends ? a.packets : 0);
    left -= whole + ends;
    from += (whole + ends) * stride();
  }
  /* Elements [first, stop) of the packet are the run's: none, if it may not be read whole. In one
   * register, or those of several packets would spill. */
  struct Ends {
    uint32_t bits;
    GPR_DEVICE int first() const { return (int)(bits & 0xff); }
    GPR_DEVICE int stop() const { return (int)(bits >> 8 & 0xff); }
    GPR_DEVICE uint32_t is_part() const { return bits >> 16; }
  };
  GPR_DEVICE Ends load(Packet<T> &v) const {
    const Packets<T> in = run();
    const char *const packet = (const char *)in.data + 16 * at;
    const int stop = least((int)in.stop - V * at, V);
    const bool is_there = left > 0 && stop > 0,
               is_read = is_there && packet >= a.low && packet + 16 <= a.high;
    v.words = load_once(is_read ? packet : anywhere);
    const int first = at ? 0 : (int)in.first;
    return {(uint32_t)(first | (is_read ? stop : 0) << 8 | (is_there && !is_read) << 16)};
  }
};
/* A lane's packets from p on, as if -0.0 were around the elements of the runs. A bit for each that
 * may not be read whole. */
template <int U, class T>
GPR_DEVICE uint32_t load_short_runs(const gpr_axes_args &a, const char *base, int64_t p,
                                    Packet<T> (&v)[U]) {
  ShortRuns<T> run(a, base, p);
  typename ShortRuns<T>::Ends ends[U];
  uint32_t parts = 0;
  GPR_EACH(u, U) {
    ends[u] = run.load(v[u]);
    parts |= ends[u].is_part() << u;
    run.go();
  }
  GPR_EACH(u, U) hide_ends<false>(v[u], ends[u].first(), ends[u].stop());
  return parts;
}
/* Those packets, element by element. */
template <class F>
GPR_DEVICE void fold_parts(const gpr_axes_args &a, const char *base, int64_t p, uint32_t parts,
                           Lane<F> &lane) {
  typedef typename F::Element T;
  ShortRuns<T> run(a, base, p);
  GPR_ROLLED(; parts; parts >>= 1, run.go())
    if (parts & 1) run.run().each(run.at, [&](T x, int64_t, int) { lane.one(x, 0); });
}

/* Each lane's share of a tile of a warp's packets, RowsShape<F>::loads a lane, of which the last
 * may lie outside; whole: may_read_whole(). */
template <class F, bool MAY_BE_SHORT = Lane<F>::neutral>
GPR_DEVICE void fold_tile(const gpr_axes_args &a, const Packets<typename F::Element> &in,
                          int64_t first, int64_t index, bool whole, Lane<F> &lane) {
  typedef typename F::Element T;
  constexpr int loads = RowsShape<F>::loads, V = Packet<T>::count;
  constexpr bool has_ends = has_quick_ends<F>();
  /* What lies before the first element is in the first lane's first packet. */
  const bool ends_inside = (first + GPR_WARP * loads) * V <= in.stop,
             inside = ends_inside && (first * V >= in.first || (has_ends && whole));
  const bool are_short = MAY_BE_SHORT && a.packets;
  const char *const base = (const char *)(in.data + in.first);
  if (!are_short && first >= in.packets()) return;
  if constexpr (has_ends && loads > ROWS_FEW)
    if (!are_short && whole && in.packets() - first <= loads / 2 * GPR_WARP)
      return fold_last<loads / 2, F>(in, first, index, lane);
  if (are_short || inside || (has_ends && whole)) {
    const int64_t p = first + lane_of();
    uint32_t parts = 0;
    Packet<T> v[loads];
    if (are_short) {
      if constexpr (MAY_BE_SHORT) parts = load_short_runs(a, base, p, v);
    } else if (inside) {
      in.load(v, p, GPR_WARP);
      if constexpr (has_ends)
        if (first * V < in.first) hide_ends<IsExtremes<F>::value>(v[0], p == 0 ? (int)in.first : 0);
    } else if constexpr (has_ends) {
      load_ends<IsExtremes<F>::value>(in, p, GPR_WARP, v);
    }
    lane.take(v, index - in.first + p * V, GPR_WARP * V);
    if constexpr (MAY_BE_SHORT)
      if (parts) fold_parts<F>(a, base, p, parts, lane);
    return;
  }
  GPR_ROLLED(int u = 0; u < loads; u += ROWS_FEW) {
    const int64_t p = first + u * GPR_WARP;
    if (p >= in.packets()) break;
    if (in.inside(p, ROWS_FEW * GPR_WARP))
      fold_packets<ROWS_FEW>(lane, in, p + lane_of(), GPR_WARP, index);
    else
      fold_ends<F>(in, p, index, lane);
  }
}

/* A tile of elements that do not lie side by side, of which lanes have neighbours, as many at a
 * time as some packets hold: of every second of 33 million floats sums took 52 µs on an H200 as
 * tiles (tile.cuh), and take 36, maxima 43 and 34, sums of 67 million halves 51 and 37. */
template <class F>
GPR_DEVICE void fold_apart(const char *base, int64_t stride, int64_t first, int64_t count,
                           Lane<F> &lane) {
  typedef typename F::Element T;
  constexpr int V = Packet<T>::count, U = sizeof(T) > 1 ? 4 : 2, EACH = U * V;
  const int64_t stop = least(count, first + GPR_WARP * V * RowsShape<F>::loads);
  GPR_ROLLED(int64_t i = first + lane_of(); i - lane_of() < stop; i += EACH * GPR_WARP) {
    const char *const from = base + i * stride;
    const int64_t step = told_now(GPR_WARP * stride);
    const int left = i < stop ? (int)(stop - i + GPR_WARP - 1) / GPR_WARP : 0;
    Packet<T> v[U];
    if (i - lane_of() + EACH * GPR_WARP <= stop) { /* all lanes are together in take() */
      GPR_EACH(u, EACH) v[u / V].element[u % V] = load_whole<T>(from + u * step);
      lane.take(v, 0, 0);
    } else if constexpr (Lane<F>::neutral) {
      GPR_EACH(u, EACH)
        v[u / V].element[u % V] = u < left ? load_whole<T>(from + u * step) : neutral_of<T>();
      lane.take(v, 0, 0);
    } else {
#pragma unroll 4
      for (int u = 0; u < left; u++) lane.one(load_whole<T>(from + u * step), 0);
    }
  }
}

/* A warp's: the part-th of `parts` shares of an output's elements. Parts take turns, so that what
 * is read at a time lies close together; tiles from a.drawn on are drawn, by each warp of the
 * blocks that share the output: 128 MiB of floats took 41.8 µs on an H200, and take 38.3. */
template <class F>
GPR_DEVICE void fold_row(const gpr_axes_args &a, int64_t o, int64_t part, int64_t parts,
                         uint32_t *queue, Lane<F> &lane) {
  typedef typename F::Element T;
  const char *const base = a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept, o);
  constexpr int WARPS = AXES_THREADS / GPR_WARP, TILE = GPR_WARP * RowsShape<F>::loads;
  const int64_t tiles = a.runs * a.tiles, stride = a.dim[a.kept + a.reduced - 1].stride;
  const bool are_apart = !F::ordered && stride != (int64_t)sizeof(T);
  const bool is_back = a.back && !F::ordered;
  Packets<T> in(base, a.length);
  bool whole = may_read_whole(a, in);
  int64_t run = 0;
  find_mask(lane, a, o, run);
  for (int64_t t = part; t < tiles;) {
    const bool draws = t + parts >= a.drawn;
    const uint32_t drawn = draws && lane_of() == 0 ? atomicAdd(queue, 1) : 0;
    int64_t tile = is_back ? tiles - 1 - t : t;
    if (a.runs > 1) {
      const int64_t its = quotient_of(tile, a.tiles);
      tile -= its * a.tiles;
      if (its != run) {
        run = its;
        in = Packets<T>(base + offset_of<&gpr_axes_dim::stride>(a.dim + a.kept, a.reduced - 1, run),
                        a.length);
        whole = may_read_whole(a, in);
        find_mask(lane, a, o, run);
      }
    }
    if constexpr (!F::ordered)
      if (are_apart)
        fold_apart<F>((const char *)(in.data + in.first), stride, tile * TILE * Packet<T>::count,
                      a.length, lane);
    if (!are_apart) fold_tile<F>(a, in, tile * TILE, run * a.length, whole, lane);
    if constexpr (Settled<F>::value)
      if (Settled<F>::of(lane, a.op)) break;
    t = draws ? a.drawn + (int64_t)__shfl_sync(GPR_ALL, drawn, 0) * WARPS + warp_of() : t + parts;
  }
}

/* Asks for the first lines of output o, if it is one of [begin, end) and so one that a warp or a
 * block will have soon, while its other work ends and nothing else is on its way: 20000 rows of
 * 4096 bfloat16 took 43 µs on an H200 for their maxima, and take 39.5, 9000 of 3000 complex64 69.5
 * and 63 for their sums; 2282 of 21619 by blocks 130 and 120. To ask for every next tile, too, took
 * longer. */
template <class F>
GPR_DEVICE void expect(const gpr_axes_args &a, int64_t o, int64_t begin, int64_t end, int thread) {
  enum { LINE = 128 };
  const int at = thread * LINE;
  if (o >= begin && o < end && at < a.length * (int64_t)sizeof(typename F::Element))
    asm volatile("prefetch.global.L2 [%0];" ::"l"(
        a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept, o) + at));
}

/* The first a.full outputs go to a warp each, those before a.single to a block each, and the others
 * to a.split blocks each. Rows that are left when all slots had theirs are sooner done by more
 * threads: 3555 of 9000 floats took 47 µs on an H200 by warps alone, and take 41. Back, each of
 * these groups begins at its end, and what is left over still comes last. */
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, RowsShape<F>::blocks)
    rows(const __grid_constant__ gpr_axes_args a) {
  constexpr int WARPS = AXES_THREADS / GPR_WARP;
  typedef typename StatesOf<F>::Fold S;
  __shared__ Slots<S> slots;
  typename S::State s; /* once: local memory is not shared by what is not alive together */
  const bool alone = (int64_t)blockIdx.x * WARPS < a.full;
  const int b = (int)(blockIdx.x - quotient_of(a.full + WARPS - 1, WARPS) - (a.single - a.full));
  const int split = b < 0 ? 1 : a.split, shared = b / split, part = b - shared * split;
  int64_t o = alone ? (int64_t)blockIdx.x * WARPS + warp_of() : a.single + shared;
  if (o >= a.outputs) return;
  if (a.back && o < a.single) o = (alone ? a.full : a.full + a.single) - 1 - o;
  uint32_t *const queue =
      (uint32_t *)a.scratch + a.queue + (shared * WARPS + warp_of()) * a.queue_apart;
  Lane<F> lane;
  lane.keep(&s);
  fold_row<F>(a, o, alone ? 0 : part * WARPS + warp_of(), alone ? 1 : split * WARPS, queue, lane);
  lane.result(s);
  bool mine;
  if (b < 0) { /* the next one of as many as are under way */
    const int64_t by = alone ? a.rows : a.rows / WARPS;
    expect<F>(a, a.back ? o - by : o + by, alone ? 0 : a.full, alone ? a.full : a.single,
              alone ? lane_of() : (int)threadIdx.x);
  }
  if (alone) {
    Move<S>::merge_lanes(s, GPR_WARP);
    mine = lane_of() == 0;
  } else {
    if (!merge_parts<S>(s, partials_of<S>(a) + shared * split, part, split,
                        (uint32_t *)a.scratch + shared, slots))
      return;
    if (a.queue && lane_of() == 0) *queue = 0;
    mine = threadIdx.x == 0;
  }
  if (mine) FinishRow<S>::finish(a, o, s);
}

GPR_CLOSE
