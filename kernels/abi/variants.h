/* The variants of the device's engine for many outputs, in the order in which they are tried: the
 * first that takes a layout, and so many outputs of it, has it (gpu/select.h); rows and columns
 * that `brief` is quicker with are left to it. kernel= asks for one by its name. */
#pragma once

/* id, name, what it takes */
#define GPR_VARIANTS(X)                                                                           \
  X(TREES, "trees", "the one tree of an ordered operator, any layout")                            \
  X(SEGMENTS, "segments", "segments of elements that lie side by side")                           \
  X(PACKED, "rows_tiny", "rows one behind the other, whole ones in a packet of 16 bytes or few")  \
  X(SHALLOW, "columns_small", "columns of a few rows, with masks and NaN")                        \
  X(STAGED, "rows_shared",                                                                        \
    "rows of 4 KiB at most, one behind the other, with small gaps, of every second element, or "  \
    "of whole packets, and batches of narrow columns, by shared memory")                          \
  X(COLUMNS, "columns", "adjacent columns of long rows, 16 bytes a load")                         \
  X(ROWS, "rows",                                                                                 \
    "long rows, of 2 KiB at least, with NaN, masks and conversions where packets can take them; " \
    "those whose elements lie apart where their order is free")                                   \
  X(TILE_ROWS, "tile_rows",                                                                       \
    "rows of 1 KiB at least, of several runs too, with masks, NaN and conversions")               \
  X(BRIEF, "brief",                                                                               \
    "outputs of a few elements, below 2^30, finished by threads of one warp, with some "          \
    "conversions")                                                                                \
  X(TILE, "tile", "any layout and any load")

enum {
  GPR_ANY_VARIANT,
#define GPR_X(id, name, sentence) GPR_VARIANT_##id,
  GPR_VARIANTS(GPR_X)
#undef GPR_X
      GPR_VARIANT_END
};
