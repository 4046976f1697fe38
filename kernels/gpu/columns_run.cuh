/* The way of a thread of columns: where its block stands, and its packet of each row. */
#pragma once

#include "digits.cuh"
#include "missing.cuh"
#include "without_nan.cuh"
#include "word_cells.cuh"

GPR_OPEN

template <class F> struct ColumnsShape {
  static constexpr bool are_many = sizeof(typename F::Element) >= 4 || WordLane<F>::is_there;
  static constexpr int blocks = 2, loads = are_many ? 8 : 4;
};
template <class F> struct ColumnsShape<WithoutNaN<F>> : ColumnsShape<F> {};
template <> struct ColumnsShape<PairSum<float16>> { static constexpr int blocks = 2, loads = 8; };
template <> struct ColumnsShape<PairSum<bfloat16>> { static constexpr int blocks = 2, loads = 8; };

/* What a thread folds a packet's columns by. */
template <class FOLD>
struct CellsOf : Either<WordLane<FOLD>::is_there, WordCells<FOLD>,
                        Cells<FOLD, Packet<typename FOLD::Element>::count>> {};
template <class FOLD, bool SKIPS> struct ColumnCells : CellsOf<FOLD>::type {
  typedef FOLD F;
  static constexpr bool by_words = WordLane<F>::is_there;
  template <int U> GPR_DEVICE void drop(Packet<typename F::Element> (&)[U]) {}
  GPR_DEVICE void tell(int *) const {}
};
/* Sums of what is not NaN, and how much was. */
template <class FOLD>
struct ColumnCells<FOLD, true> : Cells<FOLD, Packet<typename FOLD::Element>::count> {
  typedef FOLD F;
  typedef typename F::Element T;
  static constexpr bool by_words = false;
  static constexpr int V = Packet<T>::count;
  int gone[V];
  GPR_DEVICE ColumnCells() {
    GPR_EACH(e, V) gone[e] = 0;
  }
  template <int U> GPR_DEVICE void drop(Packet<T> (&v)[U]) { drop_missing(v, gone); }
  template <int U>
  GPR_DEVICE void some(T (&x)[U * V], uint64_t valid, int64_t index, int64_t step) {
    GPR_EACH(i, U * V)
      if ((valid >> i & 1) && is_nan_or_nat(x[i])) valid &= ~(1ull << i), gone[i % V]++;
    Cells<F, V>::template some<U>(x, valid, index, step);
  }
  GPR_DEVICE void tell(int *to) const {
    GPR_EACH(e, V) to[e] = gone[e];
  }
};

/* Where a block stands: its own work is reckoned once, by one thread. */
struct ColumnsPlace {
  int64_t width; /* elements of a row */
  int64_t batch, part;
  const char *base; /* the first row */
  int64_t full;     /* rows that are read as packets */
  int64_t here;     /* the tile's first column */
  int columns;      /* of the tile */
  bool has_last;    /* a row more, of which only its own elements may be read */
  int64_t group;    /* the blocks that share outputs */
  int64_t drawn;    /* from this row on it draws its turns */
  uint32_t *queue;  /* by a counter for each warp of a block, a.queue_apart words from the next
                       one's: draws at places close to each other wait for each other */
  /* V: elements of a packet. What lies before the first row's in its packet may be read, as
   * allocations begin at multiples of 256 bytes, but nothing behind the last row's, or the word in
   * which it ends. */
  GPR_DEVICE void set(const gpr_axes_args &a, int V) {
    const int64_t block = block_of(a), above = quotient_of(block, a.tiles),
                  tile = block - above * a.tiles;
    const int all = a.team * V;
    width = a.dim[a.kept - 1].size;
    batch = quotient_of(above, a.split), part = above - batch * a.split;
    here = tile * all;
    columns = (int)least(a.length - here, (int64_t)all);
    group = batch * a.tiles + tile;
    base = a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept - 1, batch);
    has_last = a.packets != GPR_PACKETS_FIT && here + all + V > a.length;
    full = a.full - has_last;
    drawn = here + all <= a.length ? a.drawn : INT64_MAX;
    queue = (uint32_t *)a.scratch + a.queue + group * (AXES_THREADS / GPR_WARP) * a.queue_apart;
  }
  GPR_DEVICE void leave_queue(const gpr_axes_args &a) const {
    if (a.queue && lane_of() == 0) queue[warp_of() * a.queue_apart] = 0;
  }
};

/* How a thread goes down the only run of rows: from row y on in steps, in turns of several steps
 * that the parts take one after the other. */
struct ColumnsTurns {
  int64_t full, from; /* rows; from this one on turns are drawn */
  uint32_t *queue;
  int part, parts, y, step;
  int end; /* of this thread's packet of the row after the full ones, the elements there are */
};

/* A packet that begins with any element of SIZE bytes, by the words that it lies in. Threads side
 * by side read the same lines, of which the first cache has all but the first words. Of two whole
 * packets that are shifted, sums of (52204, 2571) floats took 192 µs on an H200, and take 147. */
template <int SIZE> GPR_DEVICE uint4 load_anywhere(const void *from) {
  if constexpr (SIZE >= 8) {
    const uint2 low = __ldg((const uint2 *)from), high = __ldg((const uint2 *)from + 1);
    return make_uint4(low.x, low.y, high.x, high.y);
  } else {
    const uint32_t by = SIZE < 4 ? (uint32_t)(uintptr_t)from & 3 : 0;
    const uint32_t *const word = (const uint32_t *)((const char *)from - by);
    uint32_t w[5];
    GPR_EACH(i, 4) w[i] = __ldg(word + i);
    if constexpr (SIZE < 4) {
      w[4] = by ? __ldg(word + 4) : 0;
      GPR_EACH(i, 4) w[i] = __funnelshift_r(w[i], w[i + 1], 8 * by);
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
  }
}

/* What a thread sees of one run of rows: its packet of each, which may begin ANYWHERE. */
template <class CELLS, bool ANYWHERE = false> struct ColumnsOf {
  typedef typename CELLS::F F;
  typedef typename F::Element T;
  static constexpr int V = Packet<T>::count, U = ColumnsShape<F>::loads;
  const char *base;
  int64_t bytes, index; /* from one row to the next; of the run's first row */
  int left;             /* elements of this thread's packet that exist */

  GPR_DEVICE const T *row(int64_t r) const { return (const T *)(base + r * bytes); }
  /* Whether whole packets of rows first to last end before the array does. */
  GPR_DEVICE bool is_inside(const char *high, int64_t first, int64_t last) const {
    constexpr int read = ANYWHERE && sizeof(T) < 4 ? 20 : 16;
    return (const char *)row(bytes < 0 ? first : last) + read <= high;
  }
  /* N of them from row r on, which are there: all loads are under way together. */
  template <int N>
  GPR_DEVICE void load_rows(Packet<T> (&v)[N], int64_t r, int64_t step, uint32_t drawn) const {
    if constexpr (ANYWHERE) {
      GPR_EACH(n, N) v[n].words = load_anywhere<sizeof(T)>(row(r + n * step));
    } else {
      GPR_EACH(n, N) v[n].words = load_once(row(r + n * step));
    }
    load_together(v, drawn);
  }
  GPR_DEVICE void load(int64_t r, Packet<T> &v) const {
    if (left == V) {
      Packet<T> one[1];
      load_rows(one, r, 0, 0);
      v = one[0];
    } else {
      load_part(row(r), v);
    }
  }
  /* What is left of it by as few loads as can be; the rest is zero. */
  GPR_DEVICE void load_part(const T *from, Packet<T> &v) const {
    constexpr int each = sizeof(T) < 4 && !ANYWHERE ? 4 / sizeof(T) : 1;
    v.words = make_uint4(0, 0, 0, 0);
    GPR_UNROLLED(int e = 0; e < V; e += each)
      if (each > 1 && e + each <= left)
        memcpy(&v.element[e], __builtin_assume_aligned(from + e, 4), 4);
      else
        GPR_UNROLLED(int i = e; i < e + each; i++)
          if (i < left) v.element[i] = from[i];
  }
  /* U rows from r on; what was drawn for the next ones is then there too. */
  GPR_DEVICE void batch(CELLS &cells, int64_t r, int64_t step, uint32_t drawn = 0) const {
    Packet<T> v[U];
    load_rows(v, r, step, drawn);
    cells.drop(v);
    if constexpr (CELLS::by_words) {
      cells.make_room(U);
      GPR_EACH(u, U) cells.one(v[u]);
    } else {
      T x[U * V];
      GPR_EACH(i, U * V) x[i] = v[i / V].element[i % V];
      cells.template add<U>(x, index + r, step);
    }
  }
  /* Rows r, r + step, … below stop. By words what is not left is taken too: nobody asks for it. */
  GPR_DEVICE void some(CELLS &cells, int64_t r, int64_t step, int64_t stop) const {
    constexpr int FEW = 4;
    GPR_ROLLED(; r < stop; r += FEW * step) {
      Packet<T> v[FEW];
      GPR_EACH(u, FEW)
        if (r + u * step < stop) load(r + u * step, v[u]);
      if constexpr (CELLS::by_words) {
        cells.make_room(FEW);
        GPR_EACH(u, FEW)
          if (r + u * step < stop) cells.one(v[u]);
      } else {
        T x[FEW * V];
        uint64_t valid = 0;
        GPR_EACH(u, FEW)
          if (r + u * step < stop) valid |= ((1ull << left) - 1) << (u * V);
        GPR_EACH(i, FEW * V) x[i] = v[i / V].element[i % V];
        cells.template some<FEW>(x, valid, index + r, step);
      }
    }
  }
  /* A range of a run: rows r, r + step, … below stop. */
  GPR_DEVICE void fold(CELLS &cells, int64_t r, int64_t step, int64_t stop) const {
    if (left == V)
      GPR_ROLLED(; r + (U - 1) * step < stop; r += U * step) batch(cells, r, step);
    some(cells, r, step, stop);
  }
  /* The first elements of its packet of row r. */
  GPR_DEVICE void fold_extra(CELLS &cells, int64_t r, int end) const {
    T v[V];
    uint64_t valid = 0;
    GPR_EACH(e, V)
      if (e < end) {
        v[e] = row(r)[e];
        valid |= 1ull << e;
      }
    cells.template some<1>(v, valid, index + r, 0);
  }
  /* A turn is of U steps, so that all blocks read what lies together. */
  GPR_DEVICE void take_turns(CELLS &cells, const ColumnsTurns &t) const {
    const int64_t y = t.y, step = t.step, parts = t.parts;
    const int64_t turn = U * step, count = quotient_of(t.full, turn), stop = count * turn;
    int64_t r = t.part * turn + y;
    if (left == V)
      GPR_ROLLED(int64_t next; r < stop; r = next) {
        uint32_t drawn = 0;
        next = r + parts * turn;
        if (next >= t.from && lane_of() == 0) drawn = atomicAdd(t.queue, 1);
        batch(cells, r, step, drawn);
        if (next >= t.from) next = t.from + __shfl_sync(GPR_ALL, drawn, 0) * turn + y;
      }
    /* Turns of a packet that ends the row, and then the rows that are less than a turn. */
    const bool ends = count - quotient_of(count, parts) * parts == t.part;
    GPR_ROLLED(bool more = true; more; r += parts * turn) {
      more = r < stop;
      if (more || ends) some(cells, more ? r : stop + y, step, more ? r - y + turn : t.full);
    }
  }
};

template <class CELLS, bool ANYWHERE>
GPR_DEVICE void fold_run(const ColumnsOf<CELLS, ANYWHERE> in, const ColumnsTurns turns,
                         typename CELLS::F::State *states, int *gone) {
  CELLS cells;
  cells.keep(states);
  if (in.left) in.take_turns(cells, turns);
  if (turns.end > 0) in.fold_extra(cells, turns.full, turns.end);
  cells.done(states);
  cells.tell(gone);
}
/* What is alive around it would hold registers of its loads: 78 µs instead of 81 for 256 MiB. By
 * values: a kernel's parameters are read slowly through their address. */
template <class CELLS, bool ANYWHERE>
__device__ __noinline__ void fold_run_apart(const ColumnsOf<CELLS, ANYWHERE> in,
                                            const ColumnsTurns turns,
                                            typename CELLS::F::State *states, int *gone) {
  fold_run(in, turns, states, gone);
}
/* Rows [start, stop) of several runs, one after the other. Of packets that end a row the columns
 * behind it, of which nobody asks, are read too wherever the array goes on. */
template <class CELLS, class IN>
__device__ __noinline__ void fold_runs(const gpr_axes_args &a, IN in, int64_t start, int64_t stop,
                                       int y, int high, typename CELLS::F::State *states,
                                       int *gone) {
  const char *base = in.base;
  const int left = in.left;
  const int64_t run = a.dim[a.kept + a.reduced - 1].size;
  CELLS cells;
  cells.keep(states);
  GPR_ROLLED(int64_t begin = quotient_of(start, run) * run; in.left && begin < stop; begin += run) {
    const int64_t first = start > begin ? start - begin : 0,
                  end = stop - begin < run ? stop - begin : run;
    in.base = base + offset_of<&gpr_axes_dim::stride>(a.dim + a.kept, a.reduced - 1,
                                                      quotient_of(begin, run));
    in.index = begin;
    in.left = in.is_inside(a.high, first, end - 1) ? IN::V : left;
    /* At the array's end the last row alone is read piecemeal: a thread that did so with each of
     * its rows held up its block, and an H200 for 501 µs in place of 138. */
    const int last = in.left < IN::V && end - first > 1 && in.is_inside(a.high, first, end - 2);
    if (last) in.left = IN::V;
    in.fold(cells, first + y, high, end - last);
    in.left = left;
    if (last && y == 0) in.some(cells, end - 1, 1, end);
  }
  cells.done(states);
  cells.tell(gone);
}

/* A thread's share. */
template <class CELLS>
GPR_DEVICE void fold_columns(const gpr_axes_args &a, const ColumnsPlace &at, int x, int y,
                             typename CELLS::F::State *states, int *gone) {
  constexpr int V = ColumnsOf<CELLS>::V, BYTES = sizeof(typename CELLS::F::Element);
  const int64_t first = at.here + x * V;
  int64_t left = a.length - first;
  if (a.reduced == 1 && a.packets != GPR_PACKETS_FIT && left > 0)
    left = V; /* whatever lies behind a row's end */
  const ColumnsOf<CELLS> in = {at.base + first * BYTES,
                               a.dim[a.kept + a.reduced - 1].stride * a.groups, 0,
                               y >= a.rows || left <= 0 ? 0
                               : left < V               ? (int)left
                                                        : V};
  const ColumnsOf<CELLS, true> anywhere = {in.base, in.bytes, in.index, in.left};
  if (a.reduced == 1) {
    const bool ends = y == 0 && at.part == a.split - 1;
    int64_t end = 0; /* of what is left over, in elements from `first` on */
    if (a.groups > 1 && ends) end = (a.count - a.full * a.groups) * at.width - first;
    if (at.has_last && ends) end = at.here + at.columns - first;
    uint32_t *queue = at.queue + warp_of() * a.queue_apart;
    const ColumnsTurns turns = {at.full,      at.drawn, queue,  (int)at.part,
                                (int)a.split, y,        a.rows, (int)least(end, (int64_t)V)};
    if (a.packets == GPR_PACKETS_ANYWHERE)
      fold_run_apart(anywhere, turns, states, gone);
    else if (CELLS::is_plain)
      fold_run(in, turns, states, gone);
    else
      fold_run_apart(in, turns, states, gone);
  } else {
    const int64_t share = quotient_of(a.full + a.split - 1, a.split), start = at.part * share;
    const int64_t stop = least(start + share, a.full);
    if constexpr (BYTES == 1 || Joint<typename CELLS::F>::value)
      if (a.packets == GPR_PACKETS_ANYWHERE)
        return fold_runs<CELLS>(a, anywhere, start, stop, y, a.rows, states, gone);
    fold_runs<CELLS>(a, in, start, stop, y, a.rows, states, gone);
  }
}

GPR_CLOSE
