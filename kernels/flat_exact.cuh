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

/* --- the block's limbs in shared memory --------------------------------------------------------- */

__device__ __forceinline__ void add_digit(int64_t *digit, int64_t value) {
  if (value) atomicAdd((unsigned long long *)digit, (unsigned long long)value);
}
__device__ __forceinline__ void deposit_atomic(Exact &e, int64_t value, int exponent) {
  const Deposit d = split(value, exponent);
  add_digit(&e.digit[d.at], d.low);
  add_digit(&e.digit[d.at + 1], d.middle);
  add_digit(&e.digit[d.at + 2], d.high);
}

/* --- any double at all: 16-bit digits in 32-bit words, a set for each warp ---------------------- */

enum { SCATTER_WORDS = 140, SCATTER_MAX = 1 << 14 }; /* deposits in a word before it could overflow */

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

/* --- cascades ---------------------------------------------------------------------------------- */

/* float64 tries two levels, 93 bits below the window's top, then four, 187 bits. float32 tries one,
 * when the batch's exponents are close, then six, which hold every finite float there is. */
template <class R> struct Levels;
template <> struct Levels<double> {
  static constexpr int narrow = 2, wide = 4;
};
template <> struct Levels<float> {
  static constexpr int narrow = 1, wide = 6;
};

enum { LEVEL_BITS = 52 - GPR_HEADROOM }; /* from one level's unit to the next one's */

/* Of a window for four levels and more the last unit must be a subnormal at least. */
__device__ __forceinline__ int unit_of(int unit1, int level) { return unit1 - level * LEVEL_BITS; }
__device__ __forceinline__ double start_of(int unit1, int level) {
  return __hiloint2double((unit_of(unit1, level) + 52 + 1023) << 20 | 0x80000, 0);
}

/* --- a warp's sums ----------------------------------------------------------------------------- */

template <class R, int PARTS> struct WarpSum {
  typedef Levels<R> L;
  Exact *block; /* PARTS of them */
  Scatter *scatter;
  int64_t count[PARTS][L::wide];
  int unit1, top;
  int batches;   /* in the counts since they were emptied */
  int scattered; /* deposits since the words were emptied */
  int wide_for, scatter_for; /* batches to come that are not worth the narrower try */
  uint32_t special[PARTS];

  __device__ void open(int new_top) {
    /* the last of the wide levels must not fall below the subnormals */
    const int least_top = GPR_BOTTOM + (L::wide - 1) * LEVEL_BITS + 51 - GPR_HEADROOM;
    top = new_top < least_top ? least_top : new_top > GPR_TOP_MAX ? GPR_TOP_MAX : new_top;
    unit1 = top + GPR_HEADROOM - 51;
    batches = 0;
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
      for (int l = 0; l < L::wide; l++) count[p][l] = 0;
  }

  /* The warp's counts into the block's limbs, in halves that cannot overflow. */
  __device__ void flush() {
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
      for (int l = 0; l < L::wide; l++) {
        int64_t low = count[p][l] & 0xffffffff, high = count[p][l] >> 32;
        if (!__any_sync(GPR_ALL, count[p][l] != 0)) continue;
        for (int mask = GPR_WARP / 2; mask; mask /= 2) {
          low += __shfl_xor_sync(GPR_ALL, low, mask);
          high += __shfl_xor_sync(GPR_ALL, high, mask);
        }
        if (lane_of() == p) {
          deposit_atomic(block[p], low, unit_of(unit1, l));
          deposit_atomic(block[p], high, unit_of(unit1, l) + 32);
        }
      }
  }

  __device__ void flush_scatter() {
    if (!scattered) return;
    __syncwarp();
    for (int p = 0; p < PARTS; p++)
      for (int i = lane_of(); i < SCATTER_WORDS; i += GPR_WARP) {
        const int32_t value = scatter[p].word[i];
        scatter[p].word[i] = 0;
        if (value) deposit_atomic(block[p], value, GPR_BOTTOM + 16 * i);
      }
    __syncwarp();
    scattered = 0;
  }

  /* All of the batch in LEVELS levels, or nothing. */
  template <int LEVELS, int N> __device__ bool cascade(const R (&x)[N]) {
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
      const int p = i % PARTS;
#pragma unroll
      for (int l = 0; l < LEVELS; l++) {
        const double t = sum[p][l] + rest;
        const double caught = t - sum[p][l];
        if (l == 0) away |= (uint32_t)__double2hiint(t) ^ binade;
        if (l + 1 == LEVELS) {
          lost |= (uint32_t)((__double2hiint(caught) ^ __double2hiint(rest)) & 0x7fffffff);
          lost |= (uint32_t)(__double2loint(caught) ^ __double2loint(rest));
        }
        rest -= caught;
        sum[p][l] = t;
      }
    }
    if (!__all_sync(GPR_ALL, away >> 20 == 0 && lost == 0)) return false;
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
      for (int l = 0; l < LEVELS; l++)
        count[p][l] += (int64_t)(bits(sum[p][l]) - bits(start_of(unit1, l)));
    return true;
  }

  /* float32 in one level: plain sums, exact if the exponents lie close enough; two comparisons an
   * element tell. */
  template <int N> __device__ bool close(const float (&x)[N]) {
    double sum[PARTS];
    float most = 0, least = __int_as_float(0x7f800000);
#pragma unroll
    for (int p = 0; p < PARTS; p++) sum[p] = start_of(unit1, 0);
#pragma unroll
    for (int i = 0; i < N; i++) {
      sum[i % PARTS] += (double)x[i];
      most = fmaxf(most, fabsf(x[i]));
      least = fminf(least, fabsf(x[i]));
    }
    if (least == 0) { /* zeros do no harm */
      least = __int_as_float(0x7f800000);
#pragma unroll
      for (int i = 0; i < N; i++)
        if (x[i] != 0) least = fminf(least, fabsf(x[i]));
    }
    const int high = __float_as_int(most) >> 23, low = __float_as_int(least) >> 23;
    bool fine = high - 126 <= top && (low ? low : 1) - 150 >= unit1;
#pragma unroll
    for (int p = 0; p < PARTS; p++) /* NaN hides from comparisons, but not from sums */
      fine &= (__double2hiint(sum[p]) ^ __double2hiint(start_of(unit1, 0))) >> 20 == 0;
    if (!__all_sync(GPR_ALL, fine)) return false;
#pragma unroll
    for (int p = 0; p < PARTS; p++)
      count[p][0] += (int64_t)(bits(sum[p]) - bits(start_of(unit1, 0)));
    return true;
  }
  template <int N> __device__ bool narrow(const float (&x)[N]) { return close(x); }
  template <int N> __device__ bool narrow(const double (&x)[N]) { return cascade<L::narrow>(x); }

  /* 2^result is above every magnitude of the warp's batch; 1025 with NaN or inf. */
  template <int N> __device__ int top_of(const R (&x)[N]) {
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const uint32_t b = (uint32_t)__double2hiint((double)x[i]) & 0x7fffffffu;
      most = most < b ? b : most;
    }
    most = warp_max(most);
    return (int)(most >> 20) - 1022;
  }

  __device__ void moved(int wanted) {
    if (wanted <= top && wanted + 8 > top) return;
    flush();
    open(wanted);
  }

  template <int N> __device__ void scatter_all(const R (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
      scatter_atomic(scatter[i % PARTS], (double)x[i], special[i % PARTS]);
    scattered += N * GPR_WARP;
    if (scattered > SCATTER_MAX) flush_scatter();
  }

  template <int N> __device__ void add(const R (&x)[N]) {
    static_assert(N <= GPR_BATCH, "a batch must leave the binade's headroom");
    if (++batches == GPR_BATCHES_MAX) {
      flush();
      open(top);
    }
    if (scatter_for > 0) {
      scatter_for--;
      scatter_all(x);
      return;
    }
    if (wide_for <= 0) {
      if (narrow(x)) return;
      wide_for = 8;
    }
    wide_for--;
    moved(top_of(x) + 2);
    if (cascade<L::wide>(x)) return;
    scatter_for = 8;
    scatter_all(x);
  }
};

/* Three blocks leave 80 registers a thread, which the wide cascades want. */
enum { EXACT_BLOCKS = 3 };

/* --- the kernel -------------------------------------------------------------------------------- */

template <class T> struct RealOf {
  typedef T type;
};
template <class R> struct RealOf<complex<R>> {
  typedef R type;
};

/* float16 and bfloat16 are summed as the floats that they are. */
template <class R> struct Summed {
  typedef R type;
};
template <> struct Summed<float16> {
  typedef float type;
};
template <> struct Summed<bfloat16> {
  typedef float type;
};

/* A batch is 16 reals: 8 loads of doubles, 4 of floats, 2 of halves. */
template <class T> struct ExactShape {
  typedef typename RealOf<T>::type Stored;
  typedef typename Summed<Stored>::type Real;
  static constexpr int parts = ExactFold<T>::parts, reals = 16, per_load = Packet<Stored>::count;
  static constexpr int loads = reals / per_load;
};

template <class T>
__global__ void __launch_bounds__(FLAT_THREADS, EXACT_BLOCKS) flat_exact(gpr_flat_args args) {
  typedef ExactShape<T> Shape;
  typedef typename Shape::Stored Stored;
  typedef typename Shape::Real R;
  constexpr int PARTS = Shape::parts, V = Shape::per_load, LOADS = Shape::loads, N = Shape::reals;
  constexpr int TILE = FLAT_THREADS * LOADS;
  __shared__ Exact block[PARTS];
  __shared__ Scatter scatter[FLAT_THREADS / GPR_WARP][PARTS];
  for (int i = threadIdx.x; i < (int)(sizeof block / 4); i += FLAT_THREADS) ((uint32_t *)block)[i] = 0;
  for (int i = threadIdx.x; i < (int)(sizeof scatter / 4); i += FLAT_THREADS)
    ((uint32_t *)scatter)[i] = 0;
  __syncthreads();

  const Packets<Stored> in(args.data, args.n * PARTS);
  /* A complex array that starts in the middle of a packet has its parts the other way round. */
  const int swapped = PARTS == 2 ? (int)(in.first & 1) : 0;
  const int64_t packets = in.packets();
  WarpSum<R, PARTS> sum;
  sum.block = block;
  sum.scatter = scatter[warp_of()];
  sum.scattered = sum.wide_for = sum.scatter_for = 0;
  bool opened = false, other[PARTS];
  for (int p = 0; p < PARTS; p++) sum.special[p] = 0, other[p] = false;

  for (int64_t tile = blockIdx.x; tile * TILE < packets; tile += gridDim.x) {
    const int64_t first = tile * TILE + threadIdx.x;
    R x[N];
    if (in.inside(tile * TILE, TILE)) {
      Packet<Stored> v[LOADS];
#pragma unroll
      for (int u = 0; u < LOADS; u++) v[u].words = in.load(first + u * FLAT_THREADS);
#pragma unroll
      for (int i = 0; i < N; i++) x[i] = wide(v[i / V].element[i % V]);
      for (int p = 0; p < PARTS; p++)
        if (!other[p])
#pragma unroll
          for (int i = p; i < N; i += PARTS) other[p] |= bits((double)x[i]) != 1ull << 63;
    } else {
#pragma unroll
      for (int i = 0; i < N; i++) x[i] = 0;
#pragma unroll
      for (int u = 0; u < LOADS; u++)
#pragma unroll
        for (int j = 0; j < V; j++) {
          const int64_t at = (first + u * FLAT_THREADS) * V + j;
          if (at < in.first || at >= in.stop) continue;
          x[u * V + j] = wide(in.data[at]);
          other[j % PARTS] |= bits((double)x[u * V + j]) != 1ull << 63;
        }
    }
    if (!opened) {
      const int top = sum.top_of(x) + 2;
      sum.open(top > GPR_TOP_MAX ? 0 : top);
      opened = true;
    }
    sum.add(x);
  }
  if (opened) sum.flush();
  sum.flush_scatter();
  for (int p = 0; p < PARTS; p++) {
    const uint32_t special = warp_or(sum.special[p]);
    const uint32_t signs = GPR_MET | (__any_sync(GPR_ALL, other[p]) ? GPR_OTHER : 0);
    if (lane_of() == 0) {
      if (special) atomicOr(&block[p].special, special);
      atomicOr(&block[p].signs, signs);
    }
  }
  __syncthreads();

  /* The grid's limbs are the scratch's; words and flags alike are added or or-ed in any order. */
  static_assert(SCRATCH_LIMBS + 2 * sizeof(Exact) <= SCRATCH_COUNTERS, "");
  Exact *grid = scratch_at<Exact>(args.scratch, SCRATCH_LIMBS);
  if (gridDim.x > 1) {
    for (int i = threadIdx.x; i < PARTS * GPR_DIGITS; i += FLAT_THREADS)
      add_digit(&grid[i / GPR_DIGITS].digit[i % GPR_DIGITS], block[i / GPR_DIGITS].digit[i % GPR_DIGITS]);
    if (threadIdx.x < PARTS) {
      if (block[threadIdx.x].special) atomicOr(&grid[threadIdx.x].special, block[threadIdx.x].special);
      atomicOr(&grid[threadIdx.x].signs, block[threadIdx.x].signs);
    }
    if (!is_last_block(scratch_at<uint32_t>(args.scratch, SCRATCH_TICKET))) return;
  }
  /* Carries are the host's: no word holds more than 2^31 deposits. */
  uint32_t *from = gridDim.x > 1 ? (uint32_t *)grid : (uint32_t *)block, *to = (uint32_t *)args.state;
  constexpr int words = (int)(sizeof(Exact) / 4);
  for (int i = threadIdx.x; i < PARTS * words; i += FLAT_THREADS) {
    const int p = i / words ^ swapped;
    to[p * words + i % words] = from[i];
    if (gridDim.x > 1) from[i] = 0;
  }
  raise_flag(args.flag, args.epoch);
}

GPR_CLOSE
#endif
