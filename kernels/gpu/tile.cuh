/* Any layout: the variant that takes what no other one does.
 *
 * Dimensions come in memory order, outermost first, the kept ones and the reduced ones apart. Of a
 * block's threads `across` neighbours take neighbouring outputs, `down` of those the elements of
 * each, and `beyond` of these further outputs; whichever lies closest together in memory stands
 * first. Few `neighbours` may be fewer than the lanes across, a power of two of them, so that lanes
 * that share an output are in one warp. The innermost reduced dimensions are a box: its places come
 * from a table in shared memory, so that no division is left in the loop. The box's outermost
 * dimension may be cut into chunks; chunks and the dimensions outside the box are the runs. */
#pragma once

#include "tile_row_run.cuh"

GPR_OPEN

/* The threads of each output come together in the one with y == 0, where those are whole warps or
 * lanes of several. */
template <class C>
GPR_DEVICE void merge_warps(const gpr_axes_args &a, typename C::State &s, int x, int y,
                            Slots<C> &slots) {
  int down = a.down;
  if (down == AXES_THREADS) return merge_block<C>(s, slots);
  if (a.across == 1 && down % GPR_WARP == 0) {
    Move<C>::merge_lanes(s, GPR_WARP);
    y = y % GPR_WARP ? AXES_THREADS : y / GPR_WARP;
    down /= GPR_WARP;
  }
  merge_down<C, 1>(&s, x, y, a.neighbours * a.beyond, down, slots);
}
/* By a call where states lie in memory: its registers would be the loads'. */
template <class C>
__device__ __noinline__ void merge_far(const gpr_axes_args *a, typename C::State *s, int x, int y,
                                       Slots<C> *slots) {
  merge_warps<C>(*a, *s, x, y, *slots);
}
/* What blocks left: `entries` states, so many bytes apart. */
template <class C> struct Left {
  const typename C::State *first;
  int64_t apart;
  int entries;
};
/* The states of the threads, or those that were left. */
template <class C>
GPR_DEVICE void merge_tile(const gpr_axes_args &a, typename C::State &s, int x, int y, bool mine,
                           const Left<C> &left, Slots<C> &slots) {
  const int lanes = a.across * a.down;
  const bool by_lanes = lanes <= GPR_WARP && (lanes & (lanes - 1)) == 0,
             by_columns = !by_lanes && a.across > 1 && a.beyond == 1 && a.down > 1;
  if constexpr (!StateTerms<C>::few) {
    typedef ColumnSums<C> Sums;
    static_assert(sizeof slots >= sizeof(Sums), "");
    if (by_columns && ((Sums *)&slots)
                          ->merge(s, x, y, a.neighbours, a.down, mine, left.first, left.apart,
                                  left.first ? left.entries : a.down))
      return;
  }
  if (left.first) {
    C::open(s);
    const typename C::State *const own = after(left.first, y * left.apart);
    if (mine && y < left.entries) {
      if (left.entries <= a.down)
        Move<C>::assign(s, *own);
      else
        Move<C>::merge_all(s, own, (left.entries - y + a.down - 1) / a.down, a.down * left.apart);
    }
  }
  if (a.down == 1) return;
  if (by_lanes)
    Move<C>::merge_lanes(s, lanes, a.across);
  else if (by_columns)
    merge_across<C, 1>(&s, x, y, a.neighbours, a.down, slots);
  else if constexpr (StateTerms<C>::sums > 0)
    merge_far<C>(&a, &s, x, y, &slots);
  else
    merge_warps<C>(a, s, x, y, slots);
}

/* Whose states come together next: entries of them, `step` parts apart from part `first` on. Of
 * many parts those of a crowd come first, to its first one's place; `mine` is the part at whose
 * place this block leaves its state. */
struct Meeting {
  int64_t first, step, mine; /* parts */
  int entries;
  uint32_t *ticket;
  GPR_DEVICE Meeting(const gpr_axes_args &a, int64_t tile, int64_t part, bool by_crowds)
      : first(0), step(a.crowd), mine(part), ticket((uint32_t *)a.scratch + tile) {
    const int64_t crowd = seldom_quotient_of(part, step);
    entries = (int)seldom_quotient_of(a.split + step - 1, step);
    if (!by_crowds) {
      mine = crowd * step;
      return;
    }
    ticket = (uint32_t *)a.scratch + a.tiles + tile * entries + crowd;
    first = crowd * step;
    entries = (int)least(a.split - first, step);
    step = 1;
  }
};

template <class F, class RUN>
__global__ void __launch_bounds__(AXES_THREADS, TileShape<F>::blocks)
    tile(const __grid_constant__ gpr_axes_args a) {
  typedef Counted<F> C;
  typedef typename C::State State;
  constexpr int U = RUN::U;
  __shared__ Slots<C> slots;
  __shared__ BoxTable<F::ordered> table;
  const int across = a.across, down = a.down, wide = a.neighbours * a.beyond;
  const int far = small_quotient_of(threadIdx.x, across), near = threadIdx.x - far * across;
  const int group = small_quotient_of(far, down);
  const int x = group * a.neighbours + near;
  const int y = group < a.beyond && near < a.neighbours ? far - group * down : AXES_THREADS;
  const int lanes = small_quotient_of(down, a.runners), runner = small_quotient_of(y, lanes);
  const int lane = y - runner * lanes;
  if (a.boxed > 1) fill_table(table, a);
  RUN run(a, &table);
  for (int64_t b = block_of(a); b < a.tiles * a.split; b += gridDim.x) {
    const int64_t part = seldom_quotient_of(b, a.tiles), tile = b - part * a.tiles,
                  k = tile * wide + x;
    const bool mine = k < a.outputs && y < AXES_THREADS;
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
        const int64_t number = seldom_quotient_of(t, a.run_rounds);
        const int64_t first = t - number * a.run_rounds;
        const int64_t rest = seldom_quotient_of(number, a.chunks), chunk = number - rest * a.chunks;
        run.data = data + chunk * a.chunk * a.dim[edge].stride;
        run.where = where + chunk * a.chunk * a.dim[edge].where_stride;
        run.index = chunk * a.chunk * a.dim[edge].place;
        if (outer) {
          run.data += offset_of<&gpr_axes_dim::stride>(a.dim + a.kept, outer, rest);
          if (a.where)
            run.where += offset_of<&gpr_axes_dim::where_stride>(a.dim + a.kept, outer, rest);
          if (F::ordered) run.index += offset_of<&gpr_axes_dim::place>(a.dim + a.kept, outer, rest);
        }
        if (a.chunks > 1 && chunk == a.chunks - 1)
          length = a.last_box;
        else if (!a.starts)
          length = a.box;
        const int64_t left = a.run_rounds - first, rounds = left < stop - t ? left : stop - t;
        const int64_t end = a.starts ? length : (first + rounds) * lanes * U;
        n += run.fold(cell, first * lanes * U + lane, lanes, end, length, {a.step, a.where_step});
        t += rounds;
      }
    }
    cell.done(&s.state);
    s.n = n;
    enum { BY_CROWDS, BY_ALL, DONE };
    Left<C> left = {nullptr, 0, 0};
    GPR_ROLLED(int level = a.split == 1 ? DONE : a.crowd > 1 ? BY_CROWDS : BY_ALL;; level++) {
      merge_tile<C>(a, s, x, y, mine, left, slots);
      if (level == DONE) {
        if (mine && y == 0) {
          tell_least(a, s.n);
          finish_here<F>(a, out, s.state, s.n);
        }
        break;
      }
      const Meeting next(a, tile, part, level == BY_CROWDS);
      State *partial = partials_of<C>(a) + told_now(tile) * a.split * wide + x;
      if (mine && y == 0) Move<C>::assign(partial[next.mine * wide], s);
      if (!is_last_of(next.ticket, next.entries)) break;
      left = {partial + next.first * wide, next.step * wide * (int64_t)sizeof s, next.entries};
    }
  }
}

GPR_CLOSE
