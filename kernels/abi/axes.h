/* The device half for many outputs: what its kernels take, and which of them is launched how. */
#pragma once

#include "rows.h"

enum { GPR_AXES_DIMS = 64, GPR_TILE_BOX = 1000 }; /* kept and reduced ones together; a table's */

/* A piece of a segment that is longer than a quarter of one: a block's work. A piece is a whole
 * number of a block's tiles; of less than a quarter, most of a block's time would be its start and
 * its end. Pieces of a segment follow each other. */
enum { GPR_PIECE_BYTES = 256 << 10 };
typedef struct gpr_axes_piece {
  int64_t segment;
  int64_t start, n;      /* the segment's first element and their number */
  int32_t piece, pieces; /* this one, and all of the segment */
} gpr_axes_piece;

/* A multiprocessor waits for each line of the arguments that a block is the first to read. */
typedef struct gpr_axes_dim {
  int64_t size, stride, where_stride; /* bytes */
  int64_t place;                      /* as in gpr_dims */
} gpr_axes_dim;

/* Rows of columns end where a packet does, or packets that end them are read whole; and rows begin
 * with one, or anywhere. */
typedef enum gpr_column_packets {
  GPR_PACKETS_FIT,
  GPR_PACKETS_REACH_OUT,
  GPR_PACKETS_ANYWHERE,
} gpr_column_packets;

typedef struct gpr_axes_args {
  const char *data;       /* the first element of the first output, aligned to its element */
  const char *where;      /* NULL, or bytes: an element counts where its byte is not 0 */
  char *out;              /* outputs × results of the row's result dtype, that the device writes:
                             of one output, but for a variance of few elements, once, as a host
                             may look */
  void *scratch;          /* of the launch's bytes, all zero before the first one */
  int64_t *least;         /* NULL, or where one goes of the numbers of elements that counted */
  int64_t few;            /* that are not greater than this */
  int64_t outputs, count; /* the products of the kept and of the reduced shape */
  int op;
  int kept, reduced; /* dimensions: the kept ones first */
  int skip;          /* NaN and NaT do not count */
  int has_initial;
  int spread_nan; /* of a gpr_spread */
  double ddof;
  const double *means; /* device memory, or NULL: one an output, or two of a complex row */
  uint64_t initial[2];
  int from, to, from_bytes, swap, unaligned; /* the elements as they lie; `to`: the row's dtype */
  int back; /* the last outputs first: what was read last before lies in the second cache */

  /* Set by the table's launch(): how the work is cut. It stands beside the first ones, and the host
   * reckons what it can: blocks on an H200 began to read after 0.4 µs, and 0.9 before. */
  /* Rows: elements of the innermost dimension, and how many of such runs an output has; staged
   * ones: elements from one row, or batch of columns, to the next. */
  int64_t length, runs;
  int64_t groups;  /* columns: rows that are taken as one; brief: outputs of a lane */
  int packets;     /* columns: of rows, as gpr_column_packets; rows: of a short run, or 0; trees:
                    * what a block copies */
  int64_t full;    /* such rows that are whole; rows: outputs of a warp each */
  int64_t single;  /* rows: behind those, outputs of a block each end here */
  int64_t drawn;   /* from this one on turns are drawn */
  int64_t tiles;   /* of the kept columns, of staged rows, or of a run of rows */
  int split;       /* blocks that share an output */
  int crowd;       /* of these come together first, if more than one */
  int queue;       /* where in the scratch their counters are, by which they draw; 0: none */
  int queue_apart; /* words from one counter to the next */
  int apart;       /* staged rows, of trees too: elements from one of an output to its next */
  int team;        /* threads to an output (brief: 0 is one alone), or to a row of columns */
  int rows;        /* staged rows a tile; rows of threads a block; segments a warp; rows: so
                    * many warps are under way */
  int pitch;       /* packets from one staged row to the next, of a tree elements; of a tree
                    * in lines: bytes of a piece */
  int64_t per;     /* outputs of one segment; staged trees: of a batch that lies together */
  uint64_t mix;    /* which part of the blocks takes pieces, in 2^-32 */
  const char *low, *high; /* segments, rows: whole packets between them may be read */

  /* Of a tile (kernels/gpu/tile.cuh): lanes, the box, its runs and the rounds of all of them. */
  int across, down, beyond;   /* across, of a tree that is gathered: so many rows at a time */
  int neighbours;             /* of the lanes across, those that have an output */
  int runners;                /* groups of the lanes down, each with runs of its own */
  int boxed;                  /* of the reduced dimensions, the innermost */
  int64_t box, chunk, chunks; /* elements; of the outermost boxed dimension */
  int64_t last_box;           /* elements of the last chunk's */
  int64_t run_rounds, rounds, share; /* a round is tile_loads elements of each lane */
  int64_t step, where_step;          /* where there is no table: from one to the next; of a tree's
                                        narrow rows: from one row, and column, to the next */

  /* Segments: starts and stops of each in device memory, of one reduced dimension; else NULL. */
  const int64_t *starts, *stops;
  int64_t segments;
  /* Where the segments' elements lie side by side: what is longer than piece_bytes / 4. Else 0. */
  const gpr_axes_piece *pieces; /* device memory */
  int64_t piece_count, piece_bytes;

  /* Kept dimensions, then reduced ones, each the largest stride first but where an order is kept.
   */
  gpr_axes_dim dim[GPR_AXES_DIMS];
} gpr_axes_args;

typedef struct gpr_axes_launch {
  gpr_program *kernel; /* takes a gpr_axes_args */
  int64_t blocks;
  int threads;
  size_t scratch;
  /* Bytes of the scratch that every launch finds zero and leaves so, of all of it in one of its
   * own; 0: all of it is to be zero before this one. */
  size_t tickets;
} gpr_axes_launch;

/* launch() sets *launch and its part of *args, whose others are the caller's. 1: the row does not
 * take the dtype; 2: the variant (variants.h) not the layout. A pure function, without CUDA. */
typedef struct gpr_axes_table {
  int (*launch)(int op, int dtype, int variant, int multiprocessors, gpr_axes_args *args,
                gpr_axes_launch *launch);
} gpr_axes_table;

GPR_C const gpr_axes_table gpr_axes_table_cuda;
