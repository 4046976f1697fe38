/* Sums in windows that numbers of one size share: what a thread of a whole array reads at a time,
 * added up in as many of a window's levels as it mostly needs. */
#pragma once

#include "batch.cuh"
#include "flat.cuh"
#include "lines.cuh"

GPR_OPEN

/* Levels of float64's window, 93 bits; float32 has one, of numbers whose exponents are close. */
template <class R> struct RealLevels;
template <> struct RealLevels<double> { static constexpr int count = 2; };
template <> struct RealLevels<float> { static constexpr int count = 1; };

GPR_DEVICE int unit_of(int unit1, int level) { return unit1 - level * LEVEL_BITS; }
GPR_DEVICE int top_of_unit(int unit1) { return unit1 + 51 - GPR_HEADROOM; }
GPR_DEVICE double start_of(int unit1, int level) {
  return window_start(unit_of(unit1, level) + 52);
}

/* The first level's unit for numbers below 2^top. The second level's must not fall below the
 * subnormals. */
GPR_DEVICE int unit_below(int top) {
  const int least_top = GPR_BOTTOM + LEVEL_BITS + 51 - GPR_HEADROOM;
  top = top < least_top ? least_top : top > GPR_TOP_MAX ? GPR_TOP_MAX : top;
  return top + GPR_HEADROOM - 51;
}

/* --- what a thread reads at a time ------------------------------------------------------------ */

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
  static_assert(!fixed || Same<Stored, float16>::value, "by its precision, in batch.cuh too");
  static_assert(loads * per_load % reals == 0, "");
  static constexpr int fixed_unit = Format<float16>::smallest;
  static constexpr int64_t tile = threads * loads; /* packets */
};

/* The array in tiles, from the front or from the back. */
template <class S> struct Tiles : Packets<typename S::Stored> {
  int64_t start, step; /* packets: of tile 0, and from one tile to the next */
  __device__ Tiles(const void *data, int64_t n, bool back)
      : Packets<typename S::Stored>(data, n), start(0), step(S::tile) {
    if (!back || n > GPR_BACK_BYTES / (int)sizeof(typename S::Stored)) return;
    start = ((this->packets() + S::tile - 1) / S::tile - 1) * S::tile;
    step = -S::tile;
  }
  __device__ int64_t place(int64_t tile) const { return start + tile * step; }
};

/* The thread's share of a tile. What lies outside the array becomes -0.0, which no sum notices. */
template <class S>
GPR_DEVICE void read_tile(const Tiles<S> &in, int64_t tile,
                          Packet<typename S::Stored> (&v)[S::loads]) {
  const int64_t place = in.place(tile), at = place + threadIdx.x;
  if (in.inside(place, S::tile)) return in.load(v, at, S::threads);
  GPR_EACH(u, S::loads) in.load_part(v[u], at + u * S::threads, minus_zero<typename S::Stored>());
}
/* Its lines are asked for, one by each lane of what the warp will read. The first tiles find all
 * warps in step, and the memory would rest while these open their windows: 2^22 float32 take 11.2
 * µs so on an H200 instead of 11.7, and 2^24 21.4 instead of 21.9. Before each tile it was no gain:
 * 2 GiB took 531 µs instead of 474. */
template <class S> GPR_DEVICE void expect_tile(const Tiles<S> &in, int64_t tile) {
  static_assert(S::loads * GPR_WARP * 16 == GPR_WARP * 128, "");
  const int64_t place = in.place(tile);
  if (!in.inside(place, S::tile)) return;
  const int lane = lane_of(), packet = lane / 4 * S::threads + warp_of() * GPR_WARP + lane % 4 * 8;
  asm volatile("prefetch.global.L2 [%0];" ::"l"(in.data + (place + packet) * S::per_load));
}
template <class S, int COUNT, int N>
GPR_DEVICE void widen_all(const Packet<typename S::Stored> (&v)[COUNT], typename S::Real (&x)[N]) {
  GPR_EACH(i, N) x[i] = wide(v[i / S::per_load].element[i % S::per_load]);
}

/* --- sums of a batch -------------------------------------------------------------------------- */

/* Units that fell into each level of the window, by part. */
template <int PARTS, int LEVELS> struct Counts {
  int64_t units[PARTS][LEVELS];
  template <int FEWER> __device__ void add(const Counts<PARTS, FEWER> &batch) {
    GPR_EACH(p, PARTS)
      GPR_EACH(l, FEWER) units[p][l] += batch.units[p][l];
  }
};

/* The batch in LEVELS levels of a window; false if any lane's was not caught whole. */
template <int PARTS, int LEVELS, class R, int N>
GPR_DEVICE bool cascade(const R (&x)[N], int unit1, Counts<PARTS, LEVELS> &batch) {
  static_assert(N <= GPR_BATCH, "a batch must leave the binade its headroom");
  double sum[PARTS][LEVELS];
  uint32_t away = 0, lost = 0;
  GPR_EACH(p, PARTS)
    GPR_EACH(l, LEVELS) sum[p][l] = start_of(unit1, l);
  const uint32_t binade = (uint32_t)__double2hiint(start_of(unit1, 0));
  GPR_EACH(i, N) {
    double rest = (double)x[i];
    GPR_EACH(l, LEVELS) {
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
  GPR_EACH(p, PARTS)
    GPR_EACH(l, LEVELS) batch.units[p][l] = (int64_t)(bits(sum[p][l]) - bits(start_of(unit1, l)));
  return __all_sync(GPR_ALL, away >> 20 == 0 && lost == 0);
}

/* float32 in one level: plain sums, exact if the exponents lie close enough, which two comparisons
 * an element tell. Zero has no exponent that matters: less one, it is the greatest of all. */
template <int PRECISION, int PARTS, int N>
GPR_DEVICE bool close(const float (&x)[N], int unit1, Counts<PARTS, 1> &batch) {
  const double start = start_of(unit1, 0);
  double sum[2 * PARTS]; /* two of each part: half the latency */
  float most = 0;
  uint32_t least = ~0u;
  GPR_EACH(p, 2 * PARTS) sum[p] = start;
  GPR_EACH(i, N) {
    sum[i % (2 * PARTS)] += (double)x[i];
    most = larger_or_nan(most, x[i]);
    least = gpr::least(least, size_key(x[i]));
  }
  const int high = (int)(bits(most) >> 23), low = (int)((least + 1) >> 24);
  const bool empty = least == ~0u;
  constexpr int slack = close_slack(N / (2 * PARTS));
  const int top = top_of_unit(unit1) + slack;
  const bool fine =
      high < 255 && high - 126 <= top && (empty || (low ? low : 1) - 126 - PRECISION >= unit1);
  GPR_EACH(p, PARTS)
    batch.units[p][0] = (int64_t)(bits(sum[p]) - bits(start) + bits(sum[p + PARTS]) - bits(start));
  return __all_sync(GPR_ALL, fine);
}

/* float16, eight numbers at a time, in two levels of single precision: half as many conversions to
 * double as a multiprocessor can do would be needed at the speed of memory. The first level's unit
 * is 2^(fixed_unit + 22); eight numbers below 2^(that + 19) leave it its binade, and eight rests of
 * half a unit are exact in single precision down to fixed_unit. */
template <class S>
GPR_DEVICE bool halves(const Packet<float16> (&v)[S::loads], int, Counts<1, 1> &batch) {
  enum { BELOW = 22, UNIT = S::fixed_unit + BELOW };
  const float start = __int_as_float((UNIT + 23 + 127) << 23 | 0x400000);
  const float scale = __int_as_float((BELOW - UNIT + 127) << 23);
  uint32_t away = 0;
  int high = 0, low = 0;
  GPR_EACH(u, S::loads) {
    float a = start, b = 0;
    GPR_EACH(i, S::per_load) {
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

/* bfloat16 in one level of doubles. */
template <class S>
GPR_DEVICE bool halves(const Packet<bfloat16> (&v)[S::loads], int unit1, Counts<1, 1> &batch) {
  const double start[2] = {start_of(unit1, 0), start_of(unit1 - HalfPairs::LESS, 0)};
  HalfPairs all(start[0], start[1]);
  GPR_EACH(u, S::loads)
    GPR_EACH(i, 4) all.add(word(v[u], i));
  batch.units[0][0] =
      (int64_t)(bits(all.sum[0]) - bits(start[0]) + bits(all.sum[1]) - bits(start[1]));
  const int top = all.most_of() >> 7, bottom = all.least_of() >> 7;
  const bool fine = !all.most_of() || (top < 255 && top - 126 <= top_of_unit(unit1) &&
                                       (bottom ? bottom : 1) - 126 - S::precision >= unit1);
  return __all_sync(GPR_ALL, fine);
}

/* A whole tile in as few levels as it may need. */
template <class S, class C>
GPR_DEVICE bool narrow_tile(const Packet<typename S::Stored> (&v)[S::loads], int unit1, C &counts) {
  if constexpr (S::half) {
    return halves<S>(v, unit1, counts);
  } else {
    typename S::Real x[S::reals];
    widen_all<S>(v, x);
    if constexpr (sizeof(typename S::Real) == 4)
      return close<S::precision>(x, unit1, counts);
    else
      return cascade(x, unit1, counts);
  }
}

/* 2^result is above every magnitude of the warp's batch; much above with NaN or inf. From the bits
 * as they are: a conversion here would be kept in registers for the sums. */
GPR_DEVICE uint32_t high_bits(double x) { return (uint32_t)__double2hiint(x); }
GPR_DEVICE uint32_t high_bits(float x) { return (uint32_t)__float_as_int(x); }
template <class R, int N> GPR_DEVICE int top_of(const R (&x)[N]) {
  constexpr int shift = sizeof(R) == 8 ? 20 : 23, infinite = sizeof(R) == 8 ? 0x7ff : 0xff;
  uint32_t most = 0;
  GPR_EACH(i, N) most = greatest(most, high_bits(x[i]) & 0x7fffffffu);
  const int field = (int)(warp_max(most) >> shift);
  return field == infinite ? GPR_TOP_MAX : field - infinite / 2 + 1;
}

GPR_CLOSE
