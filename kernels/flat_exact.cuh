/* A whole array, an exact sum.
 *
 * A warp shares one window. Each thread sums a batch of what it loaded in the window's levels; if
 * every lane's batch was caught, its counts stay in registers until the window moves or the array
 * ends. If not, there are wider cascades, and at last a road that takes any double apart. */
#ifndef GPR_FLAT_EXACT_CUH
#define GPR_FLAT_EXACT_CUH

#include "exact.cuh"
#include "flat.cuh"

GPR_OPEN

/* --- the block's limbs in shared memory ---------------------------------------------------------
 */

__device__ __forceinline__ void add_digit(int64_t *digit, int64_t value) {
  if (value) atomicAdd((unsigned long long *)digit, (unsigned long long)value);
}
__device__ __forceinline__ void deposit_atomic(Exact &e, int64_t value, int exponent) {
  const Deposit d = split(value, exponent);
  add_digit(&e.digit[d.at], d.low);
  add_digit(&e.digit[d.at + 1], d.middle);
  add_digit(&e.digit[d.at + 2], d.high);
}

/* --- any double at all: 16-bit digits in 32-bit words, a set for each warp ----------------------
 */

enum {
  SCATTER_WORDS = 140,
  SCATTER_MAX = 1 << 14
}; /* deposits in a word before it could overflow */

struct Scatter {
  int32_t word[SCATTER_WORDS];
};

__device__ __forceinline__ void scatter_atomic(Scatter &s, double x, uint32_t &special) {
  int exponent;
  const int64_t signed_mantissa = mantissa(x, exponent, special);
  if (!signed_mantissa) return;
  const int bit = exponent - GPR_BOTTOM, shift = bit & 15, sign = signed_mantissa < 0 ? -1 : 1;
  const uint64_t m = (uint64_t)(sign * signed_mantissa), low = m << shift;
  int32_t *word = s.word + (bit >> 4);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int digit = (int)(low >> (16 * i)) & 0xffff;
    if (digit) atomicAdd(word + i, sign * digit);
  }
  const int over = shift > 11 ? (int)(m >> (64 - shift)) : 0; /* a mantissa has 53 bits */
  if (over) atomicAdd(word + 4, sign * over);
}

/* --- cascades ----------------------------------------------------------------------------------
 */

/* float64 tries two levels, 93 bits below the window's top, then four, 187 bits. float32 tries one,
 * when the batch's exponents are close, then six, which hold every finite float there is. */
template <class R> struct Levels;
template <> struct Levels<double> { static constexpr int narrow = 2, wide = 4; };
template <> struct Levels<float> { static constexpr int narrow = 1, wide = 6; };

enum { LEVEL_BITS = 52 - GPR_HEADROOM }; /* from one level's unit to the next one's */

/* Of a window for four levels and more the last unit must be a subnormal at least. */
__device__ __forceinline__ int unit_of(int unit1, int level) { return unit1 - level * LEVEL_BITS; }
__device__ __forceinline__ int top_of_unit(int unit1) { return unit1 + 51 - GPR_HEADROOM; }
__device__ __forceinline__ double start_of(int unit1, int level) {
  return __hiloint2double((unit_of(unit1, level) + 52 + 1023) << 20 | 0x80000, 0);
}

/* --- what a thread reads at a time ---------------------------------------------------------------
 */

/* float16 and bfloat16 are summed as the floats that they are. */
template <class R> struct Summed { typedef R type; };
template <> struct Summed<float16> { typedef float type; };
template <> struct Summed<bfloat16> { typedef float type; };

/* A batch is 8 loads of doubles or floats, 4 of halves. */
template <class T> struct ExactShape {
  typedef typename RealOf<T>::type Stored;
  typedef typename Summed<Stored>::type Real;
  static constexpr int parts = ExactFold<T>::parts, per_load = Packet<Stored>::count;
  static constexpr int reals = sizeof(Real) == 4 ? 32 : 16;
  static constexpr int loads = reals / per_load;
};

/* The thread's batch of a tile that lies wholly inside. */
template <class S>
__device__ __forceinline__ void read_full(const Packets<typename S::Stored> &in, int64_t tile,
                                          typename S::Real (&x)[S::reals]) {
  constexpr int V = S::per_load;
  Packet<typename S::Stored> v[S::loads];
#pragma unroll
  for (int u = 0; u < S::loads; u++)
    v[u].words = in.load(tile * FLAT_THREADS * S::loads + threadIdx.x + u * FLAT_THREADS);
#pragma unroll
  for (int i = 0; i < S::reals; i++) x[i] = wide(v[i / V].element[i % V]);
}
/* Of any tile, padded with zeros. */
template <class S>
__device__ __forceinline__ void read_some(const Packets<typename S::Stored> &in, int64_t tile,
                                          typename S::Real (&x)[S::reals]) {
  constexpr int V = S::per_load;
  const int64_t first = (tile * FLAT_THREADS * S::loads + threadIdx.x) * V;
#pragma unroll
  for (int i = 0; i < S::reals; i++) {
    const int64_t at = first + i / V * FLAT_THREADS * V + i % V;
    x[i] = 0;
    if (at >= in.first && at < in.stop) x[i] = wide(in.data[at]);
  }
}

/* --- sums of a batch -----------------------------------------------------------------------------
 */

enum { QUEUE = 16 };          /* tiles that a warp notes before it takes the slow road */
enum { UNOPENED = -0x10000 }; /* a window so low that anything moves it */

/* Units that fell into each level of the window, by part. */
template <int PARTS, int LEVELS> struct Counts {
  int64_t units[PARTS][LEVELS];
  template <int FEWER> __device__ void add(const Counts<PARTS, FEWER> &batch) {
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
      for (int l = 0; l < FEWER; l++) units[p][l] += batch.units[p][l];
  }
};

/* The batch in LEVELS levels of a window; false if any lane's was not caught whole. */
template <int PARTS, int LEVELS, class R, int N>
__device__ __forceinline__ bool cascade(const R (&x)[N], int unit1, Counts<PARTS, LEVELS> &batch) {
  static_assert(N <= GPR_BATCH, "a batch must leave the binade its headroom");
  double sum[PARTS][LEVELS];
  uint32_t away = 0, lost = 0;
#pragma unroll
  for (int p = 0; p < PARTS; p++)
#pragma unroll
    for (int l = 0; l < LEVELS; l++) sum[p][l] = start_of(unit1, l);
  const uint32_t binade = (uint32_t)__double2hiint(start_of(unit1, 0));
#pragma unroll
  for (int i = 0; i < N; i++) {
    double rest = (double)x[i];
#pragma unroll
    for (int l = 0; l < LEVELS; l++) {
      double &s = sum[i % PARTS][l];
      const double t = s + rest, caught = t - s;
      if (l == 0) away |= (uint32_t)__double2hiint(t) ^ binade;
      if (l + 1 == LEVELS) {
        lost |= (uint32_t)((__double2hiint(caught) ^ __double2hiint(rest)) & 0x7fffffff);
        lost |= (uint32_t)(__double2loint(caught) ^ __double2loint(rest));
      }
      rest -= caught;
      s = t;
    }
  }
#pragma unroll
  for (int p = 0; p < PARTS; p++)
#pragma unroll
    for (int l = 0; l < LEVELS; l++)
      batch.units[p][l] = (int64_t)(bits(sum[p][l]) - bits(start_of(unit1, l)));
  return __all_sync(GPR_ALL, away >> 20 == 0 && lost == 0);
}

/* The greater magnitude, or NaN. */
__device__ __forceinline__ float greater_or_nan(float a, float x) {
#if __CUDA_ARCH__ >= 800
  float m;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(fabsf(x)));
  return m;
#else
  return a != a || fabsf(x) <= a ? a : fabsf(x);
#endif
}

/* float32 in one level: plain sums, exact if the exponents lie close enough, which two comparisons
 * an element tell. */
template <int PRECISION, int PARTS, int N>
__device__ __forceinline__ bool close(const float (&x)[N], int unit1, Counts<PARTS, 1> &batch) {
  const float infinity = __int_as_float(0x7f800000);
  const double start = start_of(unit1, 0);
  double sum[2 * PARTS]; /* two of each part: half the latency */
  float most = 0, least = infinity;
#pragma unroll
  for (int p = 0; p < 2 * PARTS; p++) sum[p] = start;
#pragma unroll
  for (int i = 0; i < N; i++) {
    sum[i % (2 * PARTS)] += (double)x[i];
    most = greater_or_nan(most, x[i]);
    least = fminf(least, fabsf(x[i]));
  }
  if (least == 0) { /* zeros do no harm */
    least = infinity;
#pragma unroll
    for (int i = 0; i < N; i++)
      if (x[i] != 0) least = fminf(least, fabsf(x[i]));
  }
  const int high = __float_as_int(most) >> 23 & 0xff, low = __float_as_int(least) >> 23;
  const bool fine =
      high != 255 && high - 126 <= top_of_unit(unit1) && (low ? low : 1) - 126 - PRECISION >= unit1;
#pragma unroll
  for (int p = 0; p < PARTS; p++)
    batch.units[p][0] = (int64_t)(bits(sum[p]) - bits(start) + bits(sum[p + PARTS]) - bits(start));
  return __all_sync(GPR_ALL, fine);
}
template <class S, int PARTS, int N>
__device__ __forceinline__ bool narrow(const float (&x)[N], int unit1, Counts<PARTS, 1> &batch) {
  return close<Format<typename S::Stored>::precision>(x, unit1, batch);
}
template <class S, int PARTS, int N>
__device__ __forceinline__ bool narrow(const double (&x)[N], int unit1, Counts<PARTS, 2> &batch) {
  return cascade(x, unit1, batch);
}

/* 2^result is above every magnitude of the warp's batch; much above with NaN or inf. From the bits
 * as they are: a conversion here would be kept in registers for the sums. */
__device__ __forceinline__ uint32_t high_bits(double x) { return (uint32_t)__double2hiint(x); }
__device__ __forceinline__ uint32_t high_bits(float x) { return (uint32_t)__float_as_int(x); }
template <class R, int N> __device__ __forceinline__ int top_of(const R (&x)[N]) {
  constexpr int shift = sizeof(R) == 8 ? 20 : 23, infinite = sizeof(R) == 8 ? 0x7ff : 0xff;
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < N; i++) {
    const uint32_t b = high_bits(x[i]) & 0x7fffffffu;
    most = most < b ? b : most;
  }
  const int field = (int)(warp_max(most) >> shift);
  return field == infinite ? GPR_TOP_MAX : field - infinite / 2 + 1;
}

/* Whether any element that this thread reads is not -0.0; the first one mostly ends the search. */
template <class S>
__device__ __forceinline__ void look_for_other(const Packets<typename S::Stored> &in,
                                               bool (&other)[S::parts]) {
  const int64_t step = (int64_t)gridDim.x * FLAT_THREADS * S::parts;
  for (int p = 0; p < S::parts; p++)
    for (int64_t i = in.first + ((int64_t)blockIdx.x * FLAT_THREADS + threadIdx.x) * S::parts + p;
         i < in.stop && !other[p]; i += step)
      other[p] = bits((double)wide(in.data[i])) != 1ull << 63;
}

/* --- a warp's share ------------------------------------------------------------------------------
 */

/* What is seldom looked at lies in shared memory, so that the registers are the batch's. */
template <class T> struct WarpSum {
  typedef ExactShape<T> S;
  typedef typename S::Real R;
  typedef Packets<typename S::Stored> In;
  static constexpr int parts = S::parts;
  typedef Counts<parts, Levels<R>::narrow> Narrow;
  typedef Counts<parts, Levels<R>::wide> Wide;

  Exact *block; /* one for each part */
  int unit1;
  int lows;                     /* batches in a row that lay far below the window */
  int scatters;                 /* batches to come that go the last road */
  int scatter_ready, scattered; /* words zeroed; numbers since they were emptied */
  int widened;                  /* batches in the wide counts since they were emptied */
  uint32_t special[parts];
  int64_t missed[QUEUE]; /* tiles */
  Scatter scatter[parts];
  Wide wide[GPR_WARP];

  __device__ void begin(Exact *limbs) {
    block = limbs;
    unit1 = UNOPENED;
    lows = scatters = scatter_ready = scattered = widened = 0;
    for (int p = 0; p < parts; p++) special[p] = 0;
  }
  template <int LEVELS> __device__ void flush(const Counts<parts, LEVELS> &counts) {
#pragma unroll
    for (int p = 0; p < parts; p++)
#pragma unroll
      for (int l = 0; l < LEVELS; l++) {
        const int64_t units = counts.units[p][l];
        if (!__any_sync(GPR_ALL, units != 0)) continue;
        int64_t low = units & 0xffffffff, high = units >> 32; /* halves: they cannot overflow */
        for (int mask = GPR_WARP / 2; mask; mask /= 2) {
          low += __shfl_xor_sync(GPR_ALL, low, mask);
          high += __shfl_xor_sync(GPR_ALL, high, mask);
        }
        if (lane_of() == 0) {
          deposit_atomic(block[p], low, unit_of(unit1, l));
          deposit_atomic(block[p], high, unit_of(unit1, l) + 32);
        }
      }
  }
  __device__ void flush_wide() {
    if (widened) flush(wide[lane_of()]);
    set(widened, 0);
  }
  template <int LEVELS> __device__ void widen(const Counts<parts, LEVELS> &batch) {
    if (!widened) memset(&wide[lane_of()], 0, sizeof(Wide));
    wide[lane_of()].add(batch);
    set(widened, widened + 1);
    if (widened == GPR_BATCHES_MAX) flush_wide();
  }
  __device__ void flush_scatter() {
    if (!scattered) return;
    __syncwarp();
    for (int p = 0; p < parts; p++)
      for (int i = lane_of(); i < SCATTER_WORDS; i += GPR_WARP) {
        const int32_t value = scatter[p].word[i];
        scatter[p].word[i] = 0;
        if (value) deposit_atomic(block[p], value, GPR_BOTTOM + 16 * i);
      }
    set(scattered, 0);
  }
  /* All lanes write the same. */
  __device__ void set(int &member, int value) {
    __syncwarp();
    if (lane_of() == 0) member = value;
    __syncwarp();
  }

  /* The last of the wide levels must not fall below the subnormals. */
  __device__ int move_to(int top) {
    const int least_top = GPR_BOTTOM + (Levels<R>::wide - 1) * LEVEL_BITS + 51 - GPR_HEADROOM;
    top = top < least_top ? least_top : top > GPR_TOP_MAX ? GPR_TOP_MAX : top;
    set(unit1, top + GPR_HEADROOM - 51);
    return unit1;
  }
  __device__ void scatter_all(const R (&x)[S::reals]) {
    if (!scatter_ready) {
      for (int i = lane_of(); i < (int)(sizeof scatter / 4); i += GPR_WARP) scatter[0].word[i] = 0;
      set(scatter_ready, 1);
    }
#pragma unroll
    for (int i = 0; i < S::reals; i++) {
      uint32_t found = 0;
      scatter_atomic(scatter[i % parts], (double)x[i], found);
      if (found) atomicOr(&special[i % parts], found);
    }
    set(scattered, scattered + S::reals * GPR_WARP);
    if (scattered > SCATTER_MAX) flush_scatter();
  }

  /* A batch that the narrow levels did not catch, or were not tried on. */
  __device__ __noinline__ void slow(const In in, int64_t tile) {
    R x[S::reals];
    if (in.inside(tile * FLAT_THREADS * S::loads, FLAT_THREADS * S::loads))
      read_full<S>(in, tile, x);
    else
      read_some<S>(in, tile, x);
    if (scatters > 0) {
      set(scatters, scatters - 1);
      scatter_all(x);
      return;
    }
    const bool moved = place(top_of(x) + 2);
    Narrow narrow_batch;
    Wide batch;
    if (moved && narrow<S>(x, unit1, narrow_batch)) {
      widen(narrow_batch);
    } else if (cascade(x, unit1, batch)) {
      widen(batch);
    } else {
      set(scatters, 8);
      scatter_all(x);
    }
  }
  /* The window goes up at once, and down only when sixteen batches in a row lay far below: data of
   * a wide spread would move it at every batch. */
  __device__ bool place(int top) {
    const int here = top_of_unit(unit1);
    set(lows, top + 8 <= here ? lows + 1 : 0);
    if (top <= here && lows < 16) return false;
    if (unit1 != UNOPENED) flush_wide();
    move_to(top);
    set(lows, 0);
    return true;
  }
  __device__ __noinline__ void flush_narrow(const Narrow counts) { flush(counts); }
};

/* Blocks a multiprocessor. Three leave 80 registers a thread, two 128; measured on an H200, in
 * percent of the read limit, with 3 and 2: float64 98.1 and 97.4, complex128 95.9 and 96.9, float32
 * 85 and 96.8, complex64 82 and 95.3. */
template <class T> constexpr int exact_blocks() {
  return sizeof(typename ExactShape<T>::Real) == 8 && ExactShape<T>::parts == 1 ? 3 : 2;
}

template <class T>
__global__ void __launch_bounds__(FLAT_THREADS, exact_blocks<T>()) flat_exact(gpr_flat_args args) {
  typedef WarpSum<T> W;
  typedef ExactShape<T> S;
  constexpr int PARTS = S::parts, TILE = FLAT_THREADS * S::loads;
  __shared__ Exact block[PARTS];
  __shared__ W warps[FLAT_THREADS / GPR_WARP];
  W &warp = warps[warp_of()];
  for (int i = threadIdx.x; i < (int)(sizeof block / 4); i += FLAT_THREADS)
    ((uint32_t *)block)[i] = 0;
  if (lane_of() == 0) warp.begin(block);
  __syncthreads();

  const Packets<typename S::Stored> in(args.data, args.n * PARTS);
  const int64_t packets = in.packets();
  typename W::Narrow counts = {};
  bool other[PARTS] = {};

  /* The fast loop calls nothing and notes what it misses, which the slow road takes afterwards: a
   * call within it would cost registers, and those are loads in flight. */
  int64_t tile = blockIdx.x;
  for (int slow_tiles = 1; tile * TILE < packets;) {
    for (; slow_tiles > 0 && tile * TILE < packets; slow_tiles--, tile += gridDim.x)
      warp.slow(in, tile);
    const int unit1 = warp.unit1;
    int tried = 0, missed = 0;
    for (; tile * TILE < packets && missed < QUEUE && tried < GPR_BATCHES_MAX;
         tile += gridDim.x, tried++) {
      bool caught = false;
      if (in.inside(tile * TILE, TILE)) {
        typename S::Real x[S::reals];
        typename W::Narrow batch;
        read_full<S>(in, tile, x);
        caught = narrow<S>(x, unit1, batch);
        if (caught) counts.add(batch);
      }
      if (!caught && lane_of() == 0) warp.missed[missed] = tile;
      missed += !caught;
    }
    warp.flush_narrow(counts);
    counts = {};
    __syncwarp();
    for (int i = 0; i < missed; i++) warp.slow(in, warp.missed[i]);
    slow_tiles = 2 * missed > tried ? 4 * QUEUE : 0;
  }
  look_for_other<S>(in, other);
  if (warp.unit1 != UNOPENED) warp.flush_wide();
  warp.flush_scatter();
  for (int p = 0; p < PARTS; p++) {
    const bool others = __any_sync(GPR_ALL, other[p]);
    if (lane_of() == 0) {
      if (warp.special[p]) atomicOr(&block[p].special, warp.special[p]);
      atomicOr(&block[p].signs, others ? GPR_MET | GPR_OTHER : GPR_MET);
    }
  }
  __syncthreads();

  /* The grid's limbs are the scratch's; words and flags alike are added or or-ed in any order. */
  static_assert(SCRATCH_LIMBS + 2 * sizeof(Exact) <= SCRATCH_COUNTERS, "");
  Exact *grid = scratch_at<Exact>(args.scratch, SCRATCH_LIMBS);
  if (gridDim.x > 1) {
    for (int i = threadIdx.x; i < PARTS * GPR_DIGITS; i += FLAT_THREADS)
      add_digit(&grid[i / GPR_DIGITS].digit[i % GPR_DIGITS],
                block[i / GPR_DIGITS].digit[i % GPR_DIGITS]);
    if (threadIdx.x < PARTS) {
      if (block[threadIdx.x].special)
        atomicOr(&grid[threadIdx.x].special, block[threadIdx.x].special);
      atomicOr(&grid[threadIdx.x].signs, block[threadIdx.x].signs);
    }
    if (!is_last_block(scratch_at<uint32_t>(args.scratch, SCRATCH_TICKET))) return;
  }
  /* Carries are the host's: no word holds more than 2^31 deposits. A complex array that starts in
   * the middle of a packet has its parts the other way round. */
  const int swapped = PARTS == 2 ? (int)(in.first & 1) : 0;
  uint32_t *from = gridDim.x > 1 ? (uint32_t *)grid : (uint32_t *)block;
  constexpr int words = (int)(sizeof(Exact) / 4);
  for (int i = threadIdx.x; i < PARTS * words; i += FLAT_THREADS) {
    const uint32_t word = from[i];
    if (gridDim.x > 1) {
      from[i] = 0;
      __threadfence(); /* zero again before the host can know that this launch is done */
    }
    answer_word(args, (i / words ^ swapped) * words + i % words, word);
  }
}

GPR_CLOSE
#endif
