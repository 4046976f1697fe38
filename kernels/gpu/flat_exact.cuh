/* A whole array, an exact sum.
 *
 * A warp shares one window, which its first tile opens. Each thread sums what it loads of a tile in
 * the window's levels; if every lane's numbers were caught, its counts stay in registers until the
 * window moves or the array ends. Tiles that were missed are noted. Those with a few numbers far
 * below the others are mended; more than that is taken after the fast loop, by wider cascades, and
 * at last by a road that takes any double apart. */
#ifndef GPR_FLAT_EXACT_CUH
#define GPR_FLAT_EXACT_CUH

#include "flat.cuh"
#include "lines.cuh"

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

/* By one lane. */
__device__ __forceinline__ void deposit_wide(Exact &e, __int128 value, int unit) {
  const int64_t mask = (INT64_C(1) << 48) - 1;
  if (!value) return;
  deposit_atomic(e, (int64_t)value & mask, unit);
  deposit_atomic(e, (int64_t)(value >> 48) & mask, unit + 48);
  deposit_atomic(e, (int64_t)(value >> 96), unit + 96);
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
 * when the batch's exponents are close, then four, then six, which hold every finite float there
 * is. */
enum { MIDDLE_LEVELS = 4 };
template <class R> struct RealLevels;
template <> struct RealLevels<double> { static constexpr int narrow = 2, wide = 4; };
template <> struct RealLevels<float> { static constexpr int narrow = 1, wide = 6; };

/* Of a window for four levels and more the last unit must be a subnormal at least. */
__device__ __forceinline__ int unit_of(int unit1, int level) { return unit1 - level * LEVEL_BITS; }
__device__ __forceinline__ int top_of_unit(int unit1) { return unit1 + 51 - GPR_HEADROOM; }
__device__ __forceinline__ double start_of(int unit1, int level) {
  return __hiloint2double((unit_of(unit1, level) + 52 + 1023) << 20 | 0x80000, 0);
}

/* The first level's unit for numbers below 2^top. The last level's must not fall below the
 * subnormals. */
template <int LEVELS> __device__ __forceinline__ int unit_below(int top) {
  const int least_top = GPR_BOTTOM + (LEVELS - 1) * LEVEL_BITS + 51 - GPR_HEADROOM;
  top = top < least_top ? least_top : top > GPR_TOP_MAX ? GPR_TOP_MAX : top;
  return top + GPR_HEADROOM - 51;
}

/* --- what a thread reads at a time ---------------------------------------------------------------
 */

/* Of so few numbers a sum, each may lie a little above the window's top. */
GPR_FN constexpr int close_slack(int numbers) { return numbers <= 8 ? 2 : numbers <= 16 ? 1 : 0; }

/* One block a multiprocessor, since each line is one more for the host to wait for: on an H200 2^24
 * float32 take 21.7 µs, and 22.8 in two blocks of half the size each; 2 GiB 474.5 and 475.8. Two of
 * complex numbers, whose warps would need more shared memory than a block has. So many threads have
 * 128 registers each; half as many again, with 80, take 480 µs for 2 GiB of float64 instead of 474.
 *
 * A thread takes eight packets of a tile; a batch is what one sum in doubles may take of them. */
template <class T> struct ExactShape {
  typedef typename RealOf<T>::type Stored;
  typedef typename Traits<Stored>::Wide Real;
  static constexpr int parts = ExactFold<T>::parts, per_load = Packet<Stored>::count, loads = 8;
  static constexpr int blocks = parts, threads = 512 / blocks; /* a multiprocessor, a block */
  static constexpr int reals = sizeof(Real) == 4 ? GPR_BATCH : 16;
  static constexpr int batches = loads * per_load / reals;
  static constexpr int precision = Format<Stored>::precision;
  /* How far above a warp's first numbers its window is opened: a bit less is a bit more at its end,
   * where floats are missed that are 2^-20 of the greatest. */
  static constexpr int margin =
      sizeof(Real) == 8 || sizeof(Stored) == 2 ? 2 : 1 - close_slack(reals / (2 * parts));
  static constexpr bool half = sizeof(Stored) == 2;
  /* All that float16 has are multiples of 2^-24 below 2^16: one window for all. */
  static constexpr bool fixed = precision == Format<float16>::precision;
  static constexpr int fixed_unit = Format<float16>::smallest;
  static constexpr int64_t tile = threads * loads; /* packets */
};

/* The array in tiles, from the front or from the back. What the run before it has read last lies in
 * the L2, and there the next one should begin: 2^24 float32 again and again take 1.7 µs less from
 * the launch to the answer on an H200. Of a long array too little is left there. */
enum { BACK_BYTES = 128 << 20 };
template <class S> struct Tiles : Packets<typename S::Stored> {
  int64_t start, step; /* packets: of tile 0, and from one tile to the next */
  __device__ Tiles(const void *data, int64_t n, bool back)
      : Packets<typename S::Stored>(data, n), start(0), step(S::tile) {
    if (!back || n > BACK_BYTES / (int)sizeof(typename S::Stored)) return;
    start = ((this->packets() + S::tile - 1) / S::tile - 1) * S::tile;
    step = -S::tile;
  }
  __device__ int64_t place(int64_t tile) const { return start + tile * step; }
};

/* The thread's share of a tile, or COUNT packets of it from the FIRST on. What lies outside the
 * array becomes -0.0, which no sum notices. */
template <class S, int COUNT>
__device__ __forceinline__ void read_tile(const Tiles<S> &in, int64_t tile, int first,
                                          Packet<typename S::Stored> (&v)[COUNT]) {
  const int64_t place = in.place(tile), at = place + threadIdx.x + first * S::threads;
  if (in.inside(place, S::tile)) {
#pragma unroll
    for (int u = 0; u < COUNT; u++) v[u].words = in.load(at + u * S::threads);
    return;
  }
#pragma unroll
  for (int u = 0; u < COUNT; u++)
#pragma unroll
    for (int j = 0; j < S::per_load; j++) {
      const int64_t i = (at + u * S::threads) * S::per_load + j;
      v[u].element[j] =
          i >= in.first && i < in.stop ? in.data[i] : minus_zero<typename S::Stored>();
    }
}
/* Its lines are asked for, one by each lane of what the warp will read. The first tiles find all
 * warps in step, and the memory would rest while these open their windows: 2^22 float32 take 11.2
 * µs so on an H200 instead of 11.7, and 2^24 21.4 instead of 21.9. Before each tile it was no gain:
 * 2 GiB took 531 µs instead of 474. */
template <class S> __device__ __forceinline__ void expect_tile(const Tiles<S> &in, int64_t tile) {
  static_assert(S::loads * GPR_WARP * 16 == GPR_WARP * 128, "");
  const int64_t place = in.place(tile);
  if (!in.inside(place, S::tile)) return;
  const int lane = lane_of(), packet = lane / 4 * S::threads + warp_of() * GPR_WARP + lane % 4 * 8;
  asm volatile("prefetch.global.L2 [%0];" ::"l"(in.data + (place + packet) * S::per_load));
}
template <class S, int COUNT, int N>
__device__ __forceinline__ void widen_all(const Packet<typename S::Stored> (&v)[COUNT],
                                          typename S::Real (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) x[i] = wide(v[i / S::per_load].element[i % S::per_load]);
}

/* --- sums of a batch -----------------------------------------------------------------------------
 */

/* Some multiprocessors are nearer to the memory: of equal shares of 4 GiB blocks had read theirs
 * after 907 to 946 µs on an H200. The last of so many parts of a share is drawn instead, by each
 * warp. */
enum { HANDED_OUT = 16 };
__device__ __forceinline__ uint32_t *queue_of(void *scratch, int warp) {
  return scratch_at<uint32_t>(scratch, SCRATCH_COUNTERS + 256 * warp);
}

enum { QUEUE = 16 }; /* tiles that a warp notes before it takes the slow road */
enum { PATIENCE_MIN = 64, PATIENCE_MAX = 1024 };
/* Tiles between two flushes of the fast loop's counts. A tile whose numbers lie above the window's
 * top, as far as close_slack() lets them, has 2^52 units. */
enum { TRIES_MAX = GPR_BATCHES_MAX / 2 - QUEUE - 1 };

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

/* float32 in one level: plain sums, exact if the exponents lie close enough, which two comparisons
 * an element tell. Zero has no exponent that matters: less one, it is the greatest of all. */
template <int PRECISION, int PARTS, int N>
__device__ __forceinline__ bool close(const float (&x)[N], int unit1, Counts<PARTS, 1> &batch) {
  const double start = start_of(unit1, 0);
  double sum[2 * PARTS]; /* two of each part: half the latency */
  float most = 0;
  uint32_t least = ~0u;
#pragma unroll
  for (int p = 0; p < 2 * PARTS; p++) sum[p] = start;
#pragma unroll
  for (int i = 0; i < N; i++) {
    sum[i % (2 * PARTS)] += (double)x[i];
    most = larger_or_nan(most, x[i]);
    least = gpr::least(least, 2 * bits(x[i]) - 1);
  }
  const int high = (int)(bits(most) >> 23), low = (int)((least + 1) >> 24);
  const bool empty = least == ~0u;
  constexpr int slack = close_slack(N / (2 * PARTS));
  const int top = top_of_unit(unit1) + slack;
  const bool fine =
      high < 255 && high - 126 <= top && (empty || (low ? low : 1) - 126 - PRECISION >= unit1);
#pragma unroll
  for (int p = 0; p < PARTS; p++)
    batch.units[p][0] = (int64_t)(bits(sum[p]) - bits(start) + bits(sum[p + PARTS]) - bits(start));
  return __all_sync(GPR_ALL, fine);
}

/* float16, eight numbers at a time, in two levels of single precision: half as many conversions to
 * double as a multiprocessor can do would be needed at the speed of memory. The first level's unit
 * is 2^(fixed_unit + 22); eight numbers below 2^(that + 19) leave it its binade, and eight rests of
 * half a unit are exact in single precision down to fixed_unit. */
template <class S>
__device__ __forceinline__ bool halves(const Packet<float16> (&v)[S::loads], int,
                                       Counts<1, 1> &batch) {
  enum { BELOW = 22, UNIT = S::fixed_unit + BELOW };
  const float start = __int_as_float((UNIT + 23 + 127) << 23 | 0x400000);
  const float scale = __int_as_float((BELOW - UNIT + 127) << 23);
  uint32_t away = 0;
  int high = 0, low = 0;
#pragma unroll
  for (int u = 0; u < S::loads; u++) {
    float a = start, b = 0;
#pragma unroll
    for (int i = 0; i < S::per_load; i++) {
      const float x = wide(v[u].element[i]), t = a + x;
      b += x - (t - a);
      a = t;
    }
    away |= bits(a) ^ bits(start);
    high += (int)(bits(a) - bits(start));
    low += __float2int_rn(b * scale);
  }
  batch.units[0][0] = ((int64_t)high << BELOW) + low;
  return __all_sync(GPR_ALL, away >> 23 == 0);
}

/* bfloat16 in one level of doubles. There are units for the conversion of half of the numbers; the
 * others become doubles that are 2^-896 of them by a shift and a mask, which leave the exponent its
 * own bias. */
template <class S>
__device__ __forceinline__ bool halves(const Packet<bfloat16> (&v)[S::loads], int unit1,
                                       Counts<1, 1> &batch) {
  enum { LESS = 1023 - 127 };
  const double start[2] = {start_of(unit1, 0), start_of(unit1 - LESS, 0)};
  double sum[2] = {start[0], start[1]};
  uint32_t most = 0, least = 0x7fff7fffu;
#pragma unroll
  for (int u = 0; u < S::loads; u++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t pair = word(v[u], i);
      sum[0] += (double)__uint_as_float(pair << 16);
      sum[1] += __hiloint2double((int)pair >> 3 & (int)0x8fffe000, 0);
      /* magnitude less one, below a top bit that zero has not */
      const uint32_t key = (pair | 0x80008000u) - 0x00010001u;
      most = __vmaxu2(most, key);
      least = __vmins2(least, key);
    }
  batch.units[0][0] = (int64_t)(bits(sum[0]) - bits(start[0]) + bits(sum[1]) - bits(start[1]));
  const int greatest_key = (int)max(most & 0xffff, most >> 16) - 0x8000;
  const int least_key = (int)(min((int16_t)least, (int16_t)(least >> 16)) & 0xffff) - 0x8000;
  const int top = (greatest_key + 1) >> 7, bottom = (least_key + 1) >> 7;
  const bool fine = greatest_key < 0 || (top < 255 && top - 126 <= top_of_unit(unit1) &&
                                         (bottom ? bottom : 1) - 126 - S::precision >= unit1);
  return __all_sync(GPR_ALL, fine);
}

/* A batch in as few levels as it may need. */
template <class S, int PARTS, int N>
__device__ __forceinline__ bool narrow(const float (&x)[N], int unit1, Counts<PARTS, 1> &batch) {
  return close<S::precision>(x, unit1, batch);
}
template <class S, int PARTS, int N>
__device__ __forceinline__ bool narrow(const double (&x)[N], int unit1, Counts<PARTS, 2> &batch) {
  return cascade(x, unit1, batch);
}
/* A whole tile likewise. */
template <class S, class C>
__device__ __forceinline__ bool narrow_tile(const Packet<typename S::Stored> (&v)[S::loads],
                                            int unit1, C &counts) {
  if constexpr (S::half) {
    return halves<S>(v, unit1, counts);
  } else {
    typename S::Real x[S::reals];
    widen_all<S>(v, x);
    return narrow<S>(x, unit1, counts);
  }
}

/* 2^result is above every magnitude of the warp's batch; much above with NaN or inf. From the bits
 * as they are: a conversion here would be kept in registers for the sums. */
__device__ __forceinline__ uint32_t high_bits(double x) { return (uint32_t)__double2hiint(x); }
__device__ __forceinline__ uint32_t high_bits(float x) { return (uint32_t)__float_as_int(x); }
template <class R> __device__ __forceinline__ int top_of_bits(uint32_t most) {
  constexpr int shift = sizeof(R) == 8 ? 20 : 23, infinite = sizeof(R) == 8 ? 0x7ff : 0xff;
  const int field = (int)(warp_max(most) >> shift);
  return field == infinite ? GPR_TOP_MAX : field - infinite / 2 + 1;
}
template <class R, int N> __device__ __forceinline__ int top_of(const R (&x)[N]) {
  uint32_t most = 0;
#pragma unroll
  for (int i = 0; i < N; i++) most = greatest(most, high_bits(x[i]) & 0x7fffffffu);
  return top_of_bits<R>(most);
}

/* Whether any element that this thread reads is not -0.0; the first one mostly ends the search. */
template <class S>
__device__ __forceinline__ void look_for_other(const Packets<typename S::Stored> &in,
                                               bool (&other)[S::parts]) {
  const int64_t step = (int64_t)gridDim.x * S::threads * S::parts;
  for (int p = 0; p < S::parts; p++)
    for (int64_t i = in.first + ((int64_t)blockIdx.x * S::threads + threadIdx.x) * S::parts + p;
         i < in.stop && !other[p]; i += step)
      other[p] = bits((double)wide(in.data[i])) != 1ull << 63;
}

/* --- a warp's share ------------------------------------------------------------------------------
 */

/* What is seldom looked at lies in shared memory, so that the registers are the batch's. */
template <class T> struct WarpSum {
  typedef ExactShape<T> S;
  typedef typename S::Real R;
  typedef Tiles<S> In;
  static constexpr int parts = S::parts;
  typedef Counts<parts, RealLevels<R>::narrow> Narrow;
  typedef Counts<parts, RealLevels<R>::wide> Wide;

  Exact *block; /* one for each part */
  int unit1;
  int lows;                     /* batches in a row that lay far below the window */
  int deep;                     /* batches to come that are not tried in the middle levels */
  int scatters;                 /* batches to come that go the last road */
  int scatter_ready, scattered; /* words zeroed; numbers since they were emptied */
  int slowed;                   /* whether anything went another road than the fast loop's */
  int widened;                  /* batches in the wide counts since they were emptied */
  int64_t tile; /* the fast loop's next, while it waits: it must not hold registers meanwhile */
  int64_t handed_out; /* from this tile on they are drawn from the queue, first come first served */
  uint32_t *queue;
  int seldom;   /* tiles in a row from there that go the slow road */
  int patience; /* as many the next time */
  int missed_count;
  uint32_t special[parts];
  int64_t missed[QUEUE]; /* tiles */
  __int128 below[parts]; /* what mended tiles had below the window, a level lower */
  Scatter scatter[parts];
  Wide wide[GPR_WARP];

  __device__ void begin(Exact *limbs, int64_t packets, void *scratch) {
    const int64_t share = (packets + S::tile - 1) / S::tile / gridDim.x;
    block = limbs;
    unit1 = UNOPENED;
    tile = blockIdx.x;
    const int64_t drawn = share < 4 ? 0 : share < HANDED_OUT ? 1 : share / HANDED_OUT;
    handed_out = drawn ? (share - drawn) * gridDim.x : INT64_MAX;
    queue = queue_of(scratch, warp_of());
    lows = deep = scatters = scatter_ready = scattered = widened = slowed = 0;
    seldom = missed_count = 0;
    patience = PATIENCE_MIN;
    for (int p = 0; p < parts; p++) special[p] = 0, below[p] = 0;
  }
  /* What the fast loop's counts count. */
  __device__ int narrow_unit() const { return S::fixed ? (int)S::fixed_unit : unit1; }
  template <int LEVELS> __device__ void flush(const Counts<parts, LEVELS> &counts, int unit) {
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
          deposit_atomic(block[p], low, unit_of(unit, l));
          deposit_atomic(block[p], high, unit_of(unit, l) + 32);
        }
      }
  }
  __device__ void flush_wide() {
    if (widened) flush(wide[lane_of()], unit1);
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

  __device__ void move_to(int top) { set(unit1, unit_below<RealLevels<R>::wide>(top)); }
  __device__ __forceinline__ void scatter_all(const R (&x)[S::reals]) {
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

  /* A tile that the fast loop did not catch, or was not tried on. */
  __device__ __forceinline__ void slow(const In in, int64_t at) {
    bool is_nan = true; /* then nothing else matters any more */
    for (int p = 0; p < parts; p++) is_nan &= (special[p] & GPR_NAN) != 0;
    if (__all_sync(GPR_ALL, is_nan)) return;
#pragma unroll 1
    for (int b = 0; b < S::batches; b++) {
      constexpr int packets = S::loads / S::batches;
      Packet<typename S::Stored> v[packets];
      R x[S::reals];
      read_tile<S>(in, at, b * packets, v);
      widen_all<S>(v, x);
      slow_batch(x);
    }
  }
  __device__ void slow_batch(const R (&x)[S::reals]) {
    Narrow few;
    Counts<parts, MIDDLE_LEVELS> some;
    Wide all;
    bool rest = scatters > 0;
    if (rest) {
      set(scatters, scatters - 1);
    } else if (place(top_of(x) + S::margin) && narrow<S>(x, unit1, few)) {
      widen(few);
    } else if (RealLevels<R>::wide > MIDDLE_LEVELS && deep == 0 && cascade(x, unit1, some)) {
      widen(some);
    } else if (cascade(x, unit1, all)) {
      set(deep, deep ? deep - 1 : 16);
      widen(all);
    } else {
      set(scatters, 8);
      rest = true;
    }
    if (rest) scatter_all(x);
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

  /* A tile that narrow() missed for a few numbers that reach below the window, as a dozen of a
   * million normal ones do: in two levels. */
  struct Mended {
    Narrow counts;
    bool fine;
  };
  __device__ __noinline__ Mended mended(const In in, int64_t at) {
    Packet<typename S::Stored> v[S::loads];
    R x[S::reals];
    Counts<parts, 2> both;
    Mended result;
    read_tile<S>(in, at, 0, v);
    widen_all<S>(v, x);
    result.fine = cascade(x, unit1, both);
    for (int p = 0; p < parts; p++) {
      result.counts.units[p][0] = both.units[p][0];
      const __int128 units = warp_units(both.units[p][1]);
      if (lane_of() == 0 && result.fine) below[p] += units;
    }
    return result;
  }
  __device__ __forceinline__ bool mend(const In &in, int64_t at, Narrow &counts) {
    if constexpr (sizeof(R) == 8 || S::half) {
      return false;
    } else {
      const Mended m = mended(in, at);
      if (m.fine) counts.add(m.counts);
      return m.fine;
    }
  }

  /* The window by the warp's first tile, and all there is to do for a small array. */
  __device__ __forceinline__ bool open(const Packet<typename S::Stored> (&v)[S::loads],
                                       Narrow &counts, bool (&other)[parts]) {
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < S::loads * S::per_load; i++) {
      const R x = gpr::wide(v[i / S::per_load].element[i % S::per_load]);
      most = gpr::greatest(most, high_bits(x) & 0x7fffffffu);
      other[i % parts] |= bits((double)x) != 1ull << 63;
    }
    move_to(top_of_bits<R>(most) + S::margin);
    return narrow_tile<S>(v, unit1, counts);
  }
  /* After the fast loop: its counts, what it missed, and what it would likely miss. */
  __device__ __noinline__ void interlude(const In in, const Narrow counts) {
    flush(counts, narrow_unit());
    for (int p = 0; p < parts && lane_of() == 0; p++) {
      deposit_wide(block[p], below[p], unit_of(unit1, 1));
      below[p] = 0;
    }
    set(slowed, 1);
    /* One place that calls slow(): it is most of the kernel's code. */
    for (int i = 0;; i++) {
      const bool is_noted = i < missed_count;
      if (!is_noted && (seldom <= 0 || tile * S::tile >= in.packets())) break;
      slow(in, is_noted ? missed[i] : tile);
      if (is_noted) continue;
      set(seldom, seldom - 1);
      advance();
    }
  }
  __device__ void advance() {
    __syncwarp();
    if (lane_of() == 0) {
      tile += gridDim.x;
      if (tile >= handed_out) tile = handed_out + atomicAdd(queue, 1);
    }
    __syncwarp();
  }
  /* What the warp kept back to the end. */
  __device__ __noinline__ void finish() {
    if (unit1 != UNOPENED) flush_wide();
    flush_scatter();
    for (int p = 0; p < parts; p++)
      if (lane_of() == 0 && special[p]) atomicOr(&block[p].special, special[p]);
  }
};

/* Each tile that is caught costs no more than its sums: what a call would need is kept in shared
 * memory meanwhile, since registers are loads in flight. Leaves the last counts to the caller. */
template <class W>
__device__ __forceinline__ void fast_loop(W &warp, const typename W::In &in,
                                          typename W::Narrow &counts) {
  typedef typename W::S S;
  const int64_t packets = in.packets();
  int64_t tile = warp.tile;
  int tried = 0;
  while (true) {
    const int unit1 = warp.unit1, begin = tried;
    int missed = 0;
    for (int64_t next; tile * S::tile < packets && tried < TRIES_MAX; tile = next, tried++) {
      /* What is noted is mended before another tile is drawn: not when all others have ended. */
      if (missed == QUEUE || (missed && tile >= warp.handed_out)) break;
      bool caught = false;
      uint32_t drawn = 0;
      next = tile + gridDim.x;
      if (next >= warp.handed_out && lane_of() == 0) drawn = atomicAdd(warp.queue, 1);
      if (in.inside(in.place(tile), S::tile)) {
        Packet<typename S::Stored> v[S::loads];
        typename W::Narrow batch;
        read_tile<S>(in, tile, 0, v);
        caught = narrow_tile<S>(v, unit1, batch);
        if (caught) counts.add(batch);
      }
      if (!caught && lane_of() == 0) warp.missed[missed] = tile;
      missed += !caught;
      if (next >= warp.handed_out) next = warp.handed_out + __shfl_sync(GPR_ALL, drawn, 0);
    }
    __syncwarp(); /* one lane has written what is read here */
    const bool ended = tile * S::tile >= packets, mostly = 2 * missed > tried - begin + 2;
    int left = 0;
    for (int i = 0; i < missed; i++) {
      const int64_t at = warp.missed[i];
      if (!mostly && warp.mend(in, at, counts)) continue;
      __syncwarp();
      if (lane_of() == 0) warp.missed[left] = at;
      left++;
    }
    if (!left && ended) return;
    if (!left && tried < TRIES_MAX) continue;
    __syncwarp();
    if (lane_of() == 0) {
      warp.tile = tile;
      warp.missed_count = left;
      warp.seldom = mostly ? warp.patience : 0;
      warp.patience = mostly ? least(4 * warp.patience, (int)PATIENCE_MAX) : (int)PATIENCE_MIN;
    }
    __syncwarp();
    warp.interlude(in, counts);
    counts = {};
    tried = 0;
    tile = warp.tile;
    if (tile * S::tile >= packets) return;
  }
}

/* A complex array that starts in the middle of a packet has its parts the other way round. */
template <int PARTS> __device__ __forceinline__ int64_t line_of(int64_t first, int part) {
  return (int64_t)blockIdx.x * PARTS + (PARTS == 2 ? part ^ (int)(first & 1) : part);
}

/* By one lane: all that its warp has in its window, of one part. */
template <class W, class C>
__device__ __forceinline__ void line_sum(LineSum &s, const W &warp, const C &units, int part) {
  constexpr int LEVELS = sizeof units / sizeof *units;
  s.value = units[0];
  s.unit = warp.narrow_unit();
  if (LEVELS == 2 || !W::S::half) {
    s.value = (s.value << LEVEL_BITS) + (LEVELS == 2 ? units[LEVELS - 1] : warp.below[part]);
    s.unit = unit_of(s.unit, 1);
  }
  if (!s.value) s.unit = UNOPENED;
}

/* The limbs of all blocks that had more than their lines: into the scratch's, by blocks with any,
 * and from there to the host, by the last block, which leaves them zero. Words and flags alike are
 * added or or-ed in any order, and carries are the host's: no word holds more than 2^31 deposits.
 * Most words are zero and stay here. */
template <int PARTS>
__device__ __forceinline__ void gather_limbs(Exact *grid, const Exact (&block)[PARTS]) {
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
__device__ __forceinline__ void answer_limbs(const gpr_flat_args &args, Exact *grid, int swapped) {
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

template <class T>
__global__ void __launch_bounds__(ExactShape<T>::threads, ExactShape<T>::blocks)
    flat_exact(gpr_flat_args args) {
  typedef WarpSum<T> W;
  typedef ExactShape<T> S;
  constexpr int PARTS = S::parts, LEVELS = RealLevels<typename S::Real>::narrow;
  constexpr int WARPS = S::threads / GPR_WARP;
  static_assert(SCRATCH_COUNTERS + 256 * WARPS <= SCRATCH_PARTIALS, "");
  __shared__ Exact block[PARTS];
  __shared__ W warps[WARPS];
  __shared__ LineSum sums[PARTS][WARPS];
  __shared__ int more;
  W &warp = warps[warp_of()];
  const Tiles<S> in(args.data, args.n * PARTS, args.epoch & 1);
  bool opens = (int64_t)blockIdx.x * S::tile < in.packets();
  Packet<typename S::Stored> first[S::loads];
  if (opens) read_tile<S>(in, blockIdx.x, 0, first); /* under way while limbs are zeroed */
  expect_tile<S>(in, blockIdx.x + gridDim.x);
  for (int i = threadIdx.x; i < (int)(sizeof block / 4); i += S::threads)
    ((uint32_t *)block)[i] = 0;
  if (lane_of() == 0) warp.begin(block, in.packets(), args.scratch);
  if (threadIdx.x == 0) more = 0;
  __syncthreads();

  typename W::Narrow counts = {};
  bool other[PARTS] = {};
  if (opens) {
    if (!warp.open(first, counts, other)) counts = {}, opens = warp.mend(in, blockIdx.x, counts);
    if (opens) warp.advance();
    if (warp.tile * S::tile < in.packets()) fast_loop(warp, in, counts);
  }
  if (warp.slowed) warp.finish();
  look_for_other<S>(in, other);
#pragma unroll
  for (int p = 0; p < PARTS; p++) {
    const bool others = __any_sync(GPR_ALL, other[p]);
    __int128 units[LEVELS];
#pragma unroll
    for (int l = 0; l < LEVELS; l++) units[l] = warp_units(counts.units[p][l]);
    LineSum &s = sums[p][warp_of()];
    if (lane_of() == 0) line_sum(s, warp, units, p);
    if (lane_of() == 0)
      s.flags = GPR_MET | (others ? GPR_OTHER : 0) | (warp.slowed ? GPR_LINE_MORE : 0);
  }
  __syncthreads();
  const int part = warp_of();
  if (part < PARTS) {
    LineSum s = {0, UNOPENED, 0};
    if (lane_of() < WARPS) s = sums[part][lane_of()];
    const uint32_t flags =
        answer_line(args, line_of<PARTS>(in.first, part), s,
                    [&](const LineSum &far) { deposit_wide(block[part], far.value, far.unit); });
    if (flags & GPR_LINE_MORE) atomicOr(&more, 1);
  }
  __syncthreads();

  static_assert(SCRATCH_LIMBS + 2 * sizeof(Exact) <= SCRATCH_COUNTERS, "");
  Exact *grid = scratch_at<Exact>(args.scratch, SCRATCH_LIMBS);
  if (more) gather_limbs(grid, block);
  if (!is_last_of(scratch_at<uint32_t>(args.scratch, SCRATCH_TICKET), gridDim.x)) return;
  if (lane_of() == 0) *warp.queue = 0;
  const bool any = *(volatile uint32_t *)&grid->signs != 0;
  __syncthreads();
  if (any) answer_limbs<PARTS>(args, grid, PARTS == 2 ? (int)(in.first & 1) : 0);
}

GPR_CLOSE
#endif
