/* A whole array, an exact sum.
 *
 * A warp shares one window, which its first tile opens. Each thread sums what it loads of a tile in
 * the window's levels; if every lane's numbers were caught, its counts stay in registers. Tiles
 * that were missed, of numbers too great for it or too small, go to an unevaluated sum that each
 * lane has beside them. */
#pragma once

#include "batch.cuh"
#include "windows.cuh"

GPR_OPEN

/* --- the block's limbs in shared memory ------------------------------------------------------- */

GPR_DEVICE void add_digit(int64_t *digit, int64_t value) {
  if (value) atomicAdd((unsigned long long *)digit, (unsigned long long)value);
}
GPR_DEVICE void deposit_atomic(Exact &e, int64_t value, int exponent) {
  const Deposit d = split(value, exponent);
  add_digit(&e.digit[d.at], d.low);
  add_digit(&e.digit[d.at + 1], d.middle);
  add_digit(&e.digit[d.at + 2], d.high);
}

/* By one lane. */
GPR_DEVICE void deposit_wide(Exact &e, __int128 value, int unit) {
  const int64_t mask = (INT64_C(1) << 48) - 1;
  if (!value) return;
  deposit_atomic(e, (int64_t)value & mask, unit);
  deposit_atomic(e, (int64_t)(value >> 48) & mask, unit + 48);
  deposit_atomic(e, (int64_t)(value >> 96), unit + 96);
}
/* What a lane cannot hold: to the limbs, which are then more than the line has. */
struct BlockRest {
  Exact *limbs;
};
static __device__ __noinline__ void add_rest(BlockRest rest, double x) {
  int exponent;
  uint32_t special = 0;
  const int64_t m = mantissa(x, exponent, special);
  if (m) deposit_atomic(*rest.limbs, m, exponent);
  if (special) atomicOr(&rest.limbs->special, special);
  rest.limbs->pending = 1;
}

static __device__ __noinline__ void deposit_units(Exact &limbs, int64_t units, int unit) {
  deposit_atomic(limbs, units & 0xffffffff, unit);
  deposit_atomic(limbs, units >> 32, unit + 32);
  limbs.pending = 1;
}

/* --- a lane's share --------------------------------------------------------------------------- */

/* Tiles of which the counts hold the units. One whose numbers lie above the window's top, as far as
 * close_slack() lets them, has 2^52. */
enum { TILES_MOST = GPR_BATCHES_MAX / 2 - 1 };
enum { SOME = 16 }; /* numbers that are taken together where the window did not catch them */

template <class Terms>
__device__ __noinline__ void give_terms(LineSum *s, const Terms sum, BlockRest rest) {
  int exponent;
  uint32_t special = 0;
  mantissa(sum.hi, exponent, special);
  if (special)
    s->flags |= special << GPR_LINE_SPECIAL;
  else
    each_term(sum, [&](double x) {
      if (!add_to_line(*s, x)) add_rest(rest, x);
    });
}

template <class T> struct LaneSum {
  typedef ExactShape<T> S;
  typedef typename S::Real R;
  static constexpr int parts = S::parts, levels = RealLevels<R>::count;
  typedef Counts<parts, levels> Windowed;
  typedef typename TermsOfSum<R>::type Terms;
  Windowed counts = {};
  Terms terms[parts]; /* of what the window did not catch */
  Exact *block;
  int unit1, tiles = 0;
  bool missed = false; /* all lanes say the same */

  GPR_DEVICE LaneSum(Exact *limbs) : block(limbs) {
    GPR_EACH(p, parts) clear(terms[p]);
  }
  /* What the counts count. */
  GPR_DEVICE int unit() const { return S::fixed ? (int)S::fixed_unit : unit1; }
  /* The window by the warp's first tile. */
  GPR_DEVICE void open(const Packet<typename S::Stored> (&v)[S::loads], bool (&other)[parts]) {
    R x[S::loads * S::per_load];
    widen_all<S>(v, x);
    GPR_EACH(i, S::loads * S::per_load) other[i % parts] |= bits((double)x[i]) != 1ull << 63;
    unit1 = unit_below(top_of(x) + S::margin);
  }
  GPR_DEVICE void empty_counts() {
    GPR_EACH(p, parts)
      GPR_EACH(l, levels) deposit_units(block[p], counts.units[p][l], unit_of(unit(), l));
    counts = {};
    tiles = 0;
  }
  GPR_DEVICE void add(const Packet<typename S::Stored> (&v)[S::loads]) {
    Windowed tile;
    if (narrow_tile<S>(v, unit1, tile)) {
      counts.add(tile);
      if (++tiles == TILES_MOST) empty_counts();
      return;
    }
    missed = true;
    GPR_UNROLLED(int b = 0; b < S::loads * S::per_load; b += SOME) {
      R x[SOME];
      GPR_EACH(i, SOME) x[i] = wide(v[(b + i) / S::per_load].element[(b + i) % S::per_load]);
      GPR_EACH(p, parts)
        take<typename S::Stored, SOME, parts, true>(terms[p], x, p, BlockRest{block + p});
    }
  }
  /* Then nothing else matters any more. */
  GPR_DEVICE bool is_nan() const {
    bool all = missed;
    GPR_EACH(p, parts) all = all && __any_sync(GPR_ALL, terms[p].hi != terms[p].hi);
    return all;
  }

  /* By all lanes: the terms of the warp, where they can be one sum. */
  GPR_DEVICE bool joined(int part, Terms &sum) const {
    bool lost = false;
    sum = terms[part];
    if (!missed) return true;
    GPR_ROLLED(int mask = GPR_WARP / 2; mask; mask /= 2)
      sum = merged(sum, shuffle_xor(sum, mask), lost);
    return !__any_sync(GPR_ALL, lost);
  }
  /* All that the warp has of a part: lane 0 has it. */
  GPR_DEVICE void give(LineSum &s, int part, bool other) const {
    __int128 units[levels];
    GPR_EACH(l, levels) units[l] = warp_units(counts.units[part][l]);
    s.value = units[0];
    s.unit = unit();
    if (levels == 2 || !S::half) {
      s.value = (s.value << LEVEL_BITS) + (levels == 2 ? units[levels - 1] : 0);
      s.unit = unit_of(s.unit, 1);
    }
    s.flags = GPR_MET | (other ? GPR_OTHER : 0);
    Terms sum;
    if (!joined(part, sum))
      each_term(terms[part], [&](double x) { add_rest(BlockRest{block + part}, x); });
    else if (missed && lane_of() == 0)
      give_terms(&s, sum, BlockRest{block + part});
    if (!s.value) s.unit = UNOPENED;
  }
};

/* --- the grid --------------------------------------------------------------------------------- */

/* Some multiprocessors are nearer to the memory: of equal shares of 4 GiB blocks had read theirs
 * after 907 to 946 µs on an H200. The last of so many parts of a share is drawn instead, by each
 * warp. */
enum { HANDED_OUT = 16 };
GPR_DEVICE uint32_t *queue_of(void *scratch, int warp) {
  return scratch_at<uint32_t>(scratch, SCRATCH_COUNTERS + 256 * warp);
}

/* Whether any element that this thread reads is not -0.0; the first one mostly ends the search. */
template <class S>
GPR_DEVICE void look_for_other(const Packets<typename S::Stored> &in, bool (&other)[S::parts]) {
  const int64_t step = (int64_t)gridDim.x * S::threads * S::parts;
  for (int p = 0; p < S::parts; p++)
    for (int64_t i = in.first + ((int64_t)blockIdx.x * S::threads + threadIdx.x) * S::parts + p;
         i < in.stop && !other[p]; i += step)
      other[p] = bits((double)wide(in.data[i])) != 1ull << 63;
}

/* The limbs of all blocks that had more than their lines: into the scratch's, by blocks with any,
 * and from there to the host, by the last block, which leaves them zero. Words and flags alike are
 * added or or-ed in any order, and carries are the host's: no word holds more than 2^31 deposits.
 * Most words are zero and stay here. */
template <int PARTS> GPR_DEVICE void gather_limbs(Exact *grid, const Exact (&block)[PARTS]) {
  for (int i = threadIdx.x; i < PARTS * GPR_DIGITS; i += blockDim.x)
    add_digit(&grid[i / GPR_DIGITS].digit[i % GPR_DIGITS],
              block[i / GPR_DIGITS].digit[i % GPR_DIGITS]);
  if (threadIdx.x < PARTS) {
    const uint32_t special = block[threadIdx.x].special;
    if (special) atomicOr(&grid[threadIdx.x].special, special);
    atomicOr(&grid[threadIdx.x].signs, GPR_MET);
  }
}
template <int PARTS>
GPR_DEVICE void answer_limbs(const gpr_flat_args &args, Exact *grid, int swapped) {
  constexpr int words = (int)(sizeof(Exact) / 4), masks = (PARTS * words + 31) / 32;
  for (int i = threadIdx.x; i < 32 * masks; i += blockDim.x) {
    uint32_t *at = (uint32_t *)grid + (i / words ^ swapped) * words + i % words;
    const uint32_t word = i < PARTS * words ? *at : 0, mask = __ballot_sync(GPR_ALL, word != 0);
    if (word) {
      *at = 0;
      __threadfence(); /* zero again before the host can know that this launch is done */
    }
    if (lane_of() == 0) answer_word(args, i / 32, mask);
    if (word) answer_word(args, masks + i, word);
  }
}

/* A warp's tiles: every block's turn in the first ones, and then as they are drawn. */
struct Turns {
  int64_t tile, handed_out; /* from this tile on they are drawn, first come first served */
  uint32_t *queue;
  GPR_DEVICE Turns(int64_t tiles, void *scratch) : tile(blockIdx.x) {
    const int64_t share = tiles / gridDim.x;
    const int64_t drawn = share < 4 ? 0 : share < HANDED_OUT ? 1 : share / HANDED_OUT;
    handed_out = drawn ? (share - drawn) * gridDim.x : INT64_MAX;
    queue = queue_of(scratch, warp_of());
  }
  /* In two steps, between which other work hides the draw's latency. */
  GPR_DEVICE uint32_t draw() const {
    return tile + gridDim.x >= handed_out && lane_of() == 0 ? atomicAdd(queue, 1) : 0;
  }
  GPR_DEVICE void advance(uint32_t drawn) {
    tile += gridDim.x;
    if (tile >= handed_out) tile = handed_out + __shfl_sync(GPR_ALL, drawn, 0);
  }
};

template <class T>
__global__ void __launch_bounds__(ExactShape<T>::threads, ExactShape<T>::blocks)
    flat_exact(gpr_flat_args args) {
  typedef ExactShape<T> S;
  constexpr int PARTS = S::parts, WARPS = S::threads / GPR_WARP;
  static_assert(SCRATCH_COUNTERS + 256 * WARPS <= SCRATCH_PARTIALS, "");
  __shared__ Exact block[PARTS];
  __shared__ LineSum sums[PARTS][WARPS];
  __shared__ int more;
  const Tiles<S> in(args.data, args.n * PARTS, args.epoch & 1);
  const int64_t tiles = (in.packets() + S::tile - 1) / S::tile;
  Turns turns(tiles, args.scratch);
  Packet<typename S::Stored> v[S::loads];
  if (turns.tile < tiles) read_tile<S>(in, turns.tile, v); /* under way while limbs are zeroed */
  expect_tile<S>(in, turns.tile + gridDim.x);
  for (int i = threadIdx.x; i < (int)(sizeof block / 4); i += S::threads)
    ((uint32_t *)block)[i] = 0;
  if (threadIdx.x == 0) more = 0;
  __syncthreads();

  LaneSum<T> sum(block);
  bool other[PARTS] = {};
  if (turns.tile < tiles) {
    sum.open(v, other);
    while (true) {
      const uint32_t drawn = turns.draw();
      sum.add(v);
      turns.advance(drawn);
      if (turns.tile >= tiles || sum.is_nan()) break;
      read_tile<S>(in, turns.tile, v);
    }
  }
  look_for_other<S>(in, other);
  GPR_EACH(p, PARTS) {
    LineSum s = {0, UNOPENED, 0};
    sum.give(s, p, __any_sync(GPR_ALL, other[p]));
    if (lane_of() == 0) sums[p][warp_of()] = s;
  }
  __syncthreads();
  const int part = warp_of();
  if (part < PARTS) {
    LineSum s = {0, UNOPENED, 0};
    if (lane_of() < WARPS) s = sums[part][lane_of()];
    if (block[part].pending) s.flags |= GPR_LINE_MORE;
    const uint32_t flags =
        answer_line(args, line_of<PARTS>(in.first, part), s,
                    [&](const LineSum &far) { deposit_wide(block[part], far.value, far.unit); });
    if (flags & GPR_LINE_MORE) atomicOr(&more, 1);
  }
  __syncthreads();

  static_assert(SCRATCH_LIMBS + 2 * sizeof(Exact) <= SCRATCH_COUNTERS, "");
  Exact *grid = scratch_at<Exact>(args.scratch, SCRATCH_LIMBS);
  if (more) {
    if (threadIdx.x < PARTS) carry(block[threadIdx.x]);
    __syncthreads();
    gather_limbs(grid, block);
  }
  if (!is_last_of(scratch_at<uint32_t>(args.scratch, SCRATCH_TICKET), gridDim.x)) return;
  if (lane_of() == 0) *turns.queue = 0;
  const bool any = *(volatile uint32_t *)&grid->signs != 0;
  __syncthreads();
  if (any) answer_limbs<PARTS>(args, grid, PARTS == 2 ? (int)(in.first & 1) : 0);
}

GPR_CLOSE
