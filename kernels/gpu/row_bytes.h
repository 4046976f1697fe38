/* Which variant takes rows of how many bytes: the host's. */
#pragma once

#include "as_host.h"
#include "axes_kernels.cuh"

GPR_OPEN

/* Measured on an H200 by all variants, 64 and 128 MiB of rows of 1 to 20 KB, cut out of longer ones
 * or one behind the other: of 2 KB, cut, sums of floats took 101 µs as rows, 72 as tile_rows and 72
 * as brief, of doubles 97, 77 and 54; of 8 KB of complex floats maxima took 35 as rows and 27 as
 * brief. Of several runs of 800 and 1200 bytes of floats sums took 41 and 33 µs as packets and 38
 * and 76 one by one, of 1.6 and 2.4 KB of doubles 54 and 61, and 46 and 83.
 *
 * columns: of a whole array of wide rows. A tile's thread begins and ends sooner, and where blocks
 * of columns share outputs sums come together late: of 4,000 random ones in rows of 4 to 256 KB
 * those of 11 MB of floats took 1.1 to 1.8 times as long by columns, of 32 MB in rows of 4 to 16 KB
 * 0.83. */
template <class T> struct AnyRowBytes {
  static constexpr int size = sizeof(T), alone = 0, uneven = 0;
  static constexpr bool is_complex = Traits<T>::kind == KIND_COMPLEX;
  static constexpr int brief = is_complex ? 16384 : size == 4 ? 6144 : size >= 2 ? 4096 : 0;
  static constexpr int staged = is_complex ? 512 : 1 << 20, staged_most = size == 1 ? 2048 : 4096;
  static constexpr int counted = staged; /* in place of it where NaN is skipped */
  static constexpr int rows = size == 2 ? 4096 : 2048, warp_rows = rows;
  static constexpr int tile_rows = 1024;
  static constexpr int run = size >= 8 ? 2304 : 1024, columns = 2 << 20;
  static constexpr int narrow = 0; /* select.h's prefers_staged() */
  static constexpr int packets = INT32_MAX;
};
template <class F> struct RowBytes : AnyRowBytes<typename F::Element> {};
/* Variances. Of 100 MB of rows on an H200, of floats of 80 and 1320 bytes brief took 43 and 38 µs
 * and rows_shared 52 and 79, of 20 KB 32, and rows 38; of doubles of 8 and 16 KB brief 40 and 51,
 * and tile_rows 56 and 46; of halves of 8, 16 and 30 KB brief 58, 65 and 63, tile_rows 51, 48 and
 * 47, and rows 51, 45 and 47; of 24 MB of doubles of 16 and 30 KB tile_rows 22 and 24, and rows 19
 * and 21. Lanes of one row each that lie 128 or 256 bytes apart are in each other's way: of 32 and
 * 64 floats brief took 109 and 65 µs and rows_shared 43 and 50. */
template <class T> struct RowBytes<PairMoments<T>> : AnyRowBytes<T> {
  static constexpr int size = sizeof(T);
  static constexpr bool is_pair = AnyRowBytes<T>::is_complex;
  static constexpr bool is_double = size == 8 && !is_pair;
  static constexpr int brief = is_double ? 12288 : size == 2 ? 6144 : 40960, alone = 48;
  static constexpr int staged = size == 2 ? 400 : 257, uneven = size == 2 ? 16 : 128;
  static constexpr int counted = staged;
  static constexpr int rows = 8192, columns = 0;
  static constexpr int warp_rows = is_double ? 16384 : size == 2 ? 8192 : 32768;
  static constexpr int staged_most = sizeof(T) == 16 ? 512 : 2048;
  static constexpr int tile_rows = sizeof(T) == 16 ? 8192 : sizeof(T) == 8 ? 4096 : 1024;
};
/* Of 64 MiB of rows of whole packets of 4 KB halves' maxima took 22 µs on an H200 as rows_shared
 * and 16 as rows. Of 24 MiB of rows of 2 KB doubles took 8.6 as rows_shared and 7.3 as brief ones.
 */
template <class T> struct RowBytes<Extremes<T>> : AnyRowBytes<T> {
  static constexpr bool is_double = sizeof(T) == 8 && !AnyRowBytes<T>::is_complex;
  static constexpr int staged = is_double ? 2048 : AnyRowBytes<T>::staged, counted = staged;
  static constexpr int packets = sizeof(T) == 2 ? 4096 : INT32_MAX;
};
/* Of 128 MB of doubles rows of 1.6 and 2 KB took 47 and 42 µs as rows_shared and 55 and 51 as brief
 * ones, of complex doubles of 320 and 800 bytes 57 and 60, and 65 and 52. Of 64 MiB of rows of 12
 * KB, cut, floats took 21 as brief ones and 24 as rows, halves of 6 KB 52 and 36. Where NaN is
 * skipped, of 64 MiB of rows of 328 and 800 bytes doubles took 38 and 34 as rows_shared and 35 and
 * 25 as brief ones, complex floats 43 and 39, and 49 and 32. Of whole packets of 8 and 12 KB floats
 * took 25 and 23 as brief ones and 20 and 19 as rows, doubles of 8 KB 25 and 22; of 6 and 8 KB,
 * cut, complex floats 39 and 31 as packets of tiles and 24 and 21 as brief ones. */
template <class T> struct RowBytes<PairSum<T>> : AnyRowBytes<T> {
  static constexpr bool is_pair = Same<T, complex<float>>::value;
  static constexpr bool is_double = Same<T, double>::value;
  static constexpr bool is_float = Same<T, float>::value;
  static constexpr int brief = is_float || is_pair            ? 12288
                               : is_double || sizeof(T) == 16 ? 8192
                                                              : 4096;
  static constexpr int packets = is_float || is_double ? 8192 : is_pair ? 12288 : INT32_MAX;
  static constexpr int staged = sizeof(T) == 16 ? 512 : is_double || is_pair ? 2048 : 1 << 20;
  static constexpr int counted = is_double         ? 320
                                 : is_pair         ? 640
                                 : is_float        ? 2048
                                 : sizeof(T) == 16 ? 128
                                                   : staged;
  static constexpr int rows = sizeof(T) == 2 ? 5120 : 2048;
  static constexpr int warp_rows = is_pair ? 12288 : is_double ? 4096 : rows;
  static constexpr int staged_most = is_double ? 2048 : 4096;
  static constexpr int run = sizeof(T) >= 8 ? 1536 : sizeof(T) == 4 ? 1024 : 384;
  static constexpr int columns = (is_float ? 28 : is_double ? 36 : sizeof(T) > 4 ? 48 : 24) << 20;
  static constexpr int narrow = is_double ? 1 : sizeof(T) == 16 ? 4 : 0;
};
template <class T, bool GREATEST> struct RowBytes<Position<T, GREATEST>> : AnyRowBytes<T> {
  static constexpr int size = sizeof(T);
  static constexpr int brief = size == 4 ? 12288 : size == 8 ? 8192 : size == 1 ? 0 : 4096;
  static constexpr int rows = 2048, warp_rows = rows, columns = 12 << 20;
};

/* Rows of columns that strips take. Of 100 MB in 50 and 64 rows maxima of halves took 48 µs on an
 * H200 so, and 37 and 35 as brief ones. */
template <class F> struct StripRows { static constexpr int value = FEW_MOST; };
template <class T> struct StripRows<Extremes<T>> {
  static constexpr int value = sizeof(T) == 2 ? 32 : FEW_MOST;
};

/* How many times longer brief takes of columns than to read them, a thread each and all of them at
 * work, fitted to what an H200 took, but for complex sums, which take 0.87 times that. */
template <class F> struct BriefPace {
  static constexpr int size = sizeof(typename F::Element);
  static constexpr double value = 1.05 + 1.7 / (size * size);
};
/* Of places of halves 2.7 times; of bytes 3.5 times, which are taken for 5.4. */
template <class T, bool GREATEST> struct BriefPace<Position<T, GREATEST>> {
  static constexpr double value = sizeof(T) < 4 ? 5.4 / sizeof(T) : 1.05;
};
template <class T> struct BriefPace<PairSum<T>> { static constexpr double value = 1.12; };
template <> struct BriefPace<PairSum<float16>> { static constexpr double value = 1.45; };
template <class T> struct BriefPace<PairSum<complex<T>>> { static constexpr double value = 1.3; };

/* And tiles (columns_cut.h). Extremes of complex numbers take columns two to three times as long
 * as their reading. */
template <class F> struct TilePace {
  static constexpr double value = sizeof(typename F::Element) == 1 ? 3 : 1.75;
};
template <class T> struct TilePace<Extremes<complex<T>>> { static constexpr double value = 0.9; };
template <class T, bool GREATEST> struct TilePace<Position<T, GREATEST>> {
  static constexpr double value = sizeof(T) < 4 ? 2.2 : 1.75;
};
template <class T> struct TilePace<PairSum<T>> {
  static constexpr double value = sizeof(T) == 8 ? 1.4 : 2;
};

GPR_CLOSE
