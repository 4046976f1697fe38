/* Which variant takes rows of how many bytes: the host's. */
#pragma once

#include "as_host.h"
#include "axes_kernels.cuh"

GPR_OPEN

/* Measured on an H200, 128 MiB of rows of 1 to 20 KB,
 * cut out of longer ones or one behind the other, by all variants: of 2 KB, cut, sums of floats
 * took 101 µs as rows, 72 as tile_rows and 72 as brief, positions 150, 90 and 81, of doubles 97, 77
 * and 54 and 122, 116 and 51; of 5 KB 73, 65 and 51, 92, 81 and 55. Of 64 MiB, cut, of 2 KB maxima
 * of halves took 37 µs as tile_rows and 30 as brief, of 6 KB 28 and 26; of complex floats, one
 * behind the other, of 2.4 KB 37 as rows_shared and 27 as brief, of 8 KB 35 as rows and 27; truths
 * of 3 KB 36 as rows_shared and 27 as rows. Of several runs of 800
 * and 1200 bytes of floats sums took 41 and 33 µs as packets and 38 and 76 one by one, of 1.6 and
 * 2.4 KB of doubles 54 and 61, and 46 and 83, of 400 bytes of halves 24 and 27; maxima of 1200
 * bytes of floats 29 and 66, of 1.6 KB of doubles 69 and 46.
 *
 * columns: of a whole array of wide rows. A tile's thread begins and ends sooner, and where blocks
 * of columns share outputs sums come together late: of 1024 rows of as many, halves, floats and
 * doubles, they took 17, 15 and 14 µs, and 10, 10 and 11 as tiles; of 4096, 29, 28 and 43, and 26,
 * 33 and 46. Of 20 MiB, 100 rows of floats took 12 and 9 as brief ones, 500 of doubles 19 and 12 as
 * tiles; of 48 MiB 27 and 24, of 96 MiB 35 and 58. */
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
};
template <class F> struct RowBytes : AnyRowBytes<typename F::Element> {};
/* Variances. Of 100 MB of rows on an H200, of floats of 80, 400, 800, 1320 bytes and 20 KB brief
 * took 43, 41, 39, 38 and 32 µs, rows_shared 52, 61, 59 and 79, tile_rows 81 of 1320 bytes and 50
 * of 20 KB, rows 38; of doubles of 160 bytes, 1.6, 8 and 16 KB brief 46, 44, 40 and 51, rows_shared
 * 83 and 83, tile_rows 56 of 8 KB and 46 of 16 KB; of complex floats of 160 and 800 bytes 55 and
 * 43, rows_shared 95 and 83, of 40 KB 42 and tile_rows 52. Lanes of one row each that lie 128 or
 * 256 bytes apart are in each other's way: of 32 and 64 floats brief took 109 and 65 µs and
 * rows_shared 43 and 50; of halves of 100 and 200 bytes 65 and 66, and 82 and 88, of 80, 160 and
 * 256 bytes, whole packets, 70, 74 and 80, and 60, 69 and 60. */
template <class T> struct RowBytes<PairMoments<T>> : AnyRowBytes<T> {
  static constexpr int size = sizeof(T);
  static constexpr bool is_pair = AnyRowBytes<T>::is_complex;
  static constexpr int brief = size == 8 && !is_pair ? 12288 : 40960, alone = 48;
  static constexpr int staged = size == 2 ? 400 : 257, uneven = size == 2 ? 16 : 128;
  static constexpr int counted = staged;
  static constexpr int rows = 8192, warp_rows = 32768, columns = 0;
  static constexpr int staged_most = sizeof(T) == 16 ? 512 : 2048;
  static constexpr int tile_rows = sizeof(T) == 16 ? 8192 : sizeof(T) == 8 ? 4096 : 1024;
};
/* Of complex floats rows of 4.8 and 17 KB took 51 µs as brief ones and 276 as rows, and 40 and 235
 * as packets of tiles; of 64 KB 96 and 94. Of 128 MB of doubles, rows of 1.6 and 2 KB took 47 and
 * 42 as rows_shared and 55 and 51 as brief ones; of 3.3, 4.8, 7 and 12 KB 47, 50, 51 and 51 as
 * brief ones, which were two blocks a multiprocessor then, 59, 50, 54 and 46 as packets of tiles
 * and 64, 64, 49 and 42 as rows, of 24 and 56 KB 45 and 53, and 39 and 38; of complex doubles, of
 * 320 and 800 bytes 57 and 60 as rows_shared and 65 and 52 as brief ones, of 8 and 14 KB 43 and 57,
 * and 52 and 49 as rows. Of 256 MiB of floats, of 3, 4.3, 8 and 16 KB 93, 103, 89 and 82 as brief
 * ones, 114, 104, 87 and 86, and 113, 108, 81 and 77; of 64 MiB of rows of 12 KB, cut, 21 as brief
 * ones and 24 as rows, places 21 and 26, of halves of 6 KB 52 and 36. Where NaN is skipped, of 64
 * MiB of doubles, rows of 328, 800, 1232 and 2000 bytes took 38, 34, 37 and 31 µs as rows_shared
 * and 35, 25, 26 and 22 as brief ones, of complex floats of 328, 800, 2000 and 4000 bytes 43, 39,
 * 36 and 37, and 49, 32, 28 and 23, of floats of 2000 25 and 29. */
template <class T> struct RowBytes<PairSum<T>> : AnyRowBytes<T> {
  static constexpr bool is_pair = Same<T, complex<float>>::value;
  static constexpr bool is_double = Same<T, double>::value;
  static constexpr bool is_float = Same<T, float>::value;
  static constexpr int brief = is_float ? 12288 : is_double || sizeof(T) == 16 ? 8192 : 4096;
  static constexpr int staged = sizeof(T) == 16 ? 512 : is_double || is_pair ? 2048 : 1 << 20;
  static constexpr int counted = is_double         ? 320
                                 : is_pair         ? 640
                                 : is_float        ? 2048
                                 : sizeof(T) == 16 ? 128
                                                   : staged;
  static constexpr int rows = sizeof(T) == 2 ? 8192 : 2048;
  static constexpr int warp_rows = is_pair ? 1 << 14 : is_double ? 4096 : rows;
  static constexpr int staged_most = is_double ? 2048 : 4096;
  static constexpr int run = sizeof(T) >= 8 ? 1536 : sizeof(T) == 4 ? 1024 : 384;
  static constexpr int columns = sizeof(T) >= 4 ? 48 << 20 : 24 << 20;
  static constexpr int narrow = is_double ? 1 : sizeof(T) == 16 ? 4 : 0;
};
template <class T, bool GREATEST> struct RowBytes<Position<T, GREATEST>> : AnyRowBytes<T> {
  static constexpr int size = sizeof(T);
  static constexpr int brief = size == 4 ? 12288 : size == 8 ? 8192 : size == 1 ? 0 : 4096;
  static constexpr int rows = 2048, warp_rows = rows, columns = 12 << 20;
};

/* How many times longer brief takes of columns than to read them, a thread each and all of them at
 * work, fitted to what an H200 took, but for complex sums, which take 0.87 times what was fitted.
 */
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

/* And tiles (columns_cut.h). */
template <class F> struct TilePace {
  static constexpr double value = 1 + 1.25 / sizeof(typename F::Element);
};
template <class T, bool GREATEST> struct TilePace<Position<T, GREATEST>> {
  static constexpr double value = sizeof(T) < 4 ? 2.2 : 1.75;
};
template <class T> struct TilePace<PairSum<T>> { static constexpr double value = 1.55; };
template <> struct TilePace<PairSum<float16>> { static constexpr double value = 1.9; };

GPR_CLOSE
