/* The tables that kernels/ gives to the host: all that csrc/ knows of operators and dtypes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "program.h"

/* Which orders give the same bits: any, any (sums kept as integers), the one tree. */
enum gpr_law { GPR_FREE, GPR_EXACT, GPR_TREE };

/* How a variance is finished: `with` of the rows whose operator is GPR_SPREAD. */
typedef struct gpr_spread {
  double ddof;
  const double *means; /* of this output: one, or two of a complex row; NULL: the elements' own */
  int nan; /* without degrees of freedom NaN, else zero by zero is NaN and all else infinite */
} gpr_spread;

/* Converts n contiguous elements one by one, as NumPy's unsafe casting does. */
typedef void (*gpr_cast)(const void *from, void *to, int64_t n);

/* What a quick row tells of infinite elements: whether there is one, and how many outputs these
 * decide: as many sums are infinite, or variances no numbers. */
typedef struct gpr_infinities {
  int met;
  int64_t decided;
} gpr_infinities;

/* Elements of some outputs: element i of output o lies at data + o·across + i·along, aligned as its
 * parts are. counts: NULL, or how many elements of each output count; the others are the row's
 * identity. */
typedef struct gpr_tile {
  const char *data;
  int64_t across, along, outputs, n;
  const int64_t *counts;
  int *skip; /* NULL, or of a row that skips: NaN does not count, and `many` sets it to 1 where
                an output has nothing else */
  gpr_infinities *infinite; /* NULL, or what a quick row adds to */
  const int64_t *places;    /* NULL, or outputs are side by side and element i lies places[i] from
                               data + o·across; nothing lies by `along` then, which tells
                               how far apart most are, to choose a way and to read ahead */
  gpr_cast cast; /* NULL, or what makes elements of those that lie here, of `bytes` each */
  int bytes;
  int repeated; /* they are multiples that stand for more elements */
} gpr_tile;

/* Lines of n elements of so many bytes, and of as many bytes of a mask or, for each line, one. */
typedef struct gpr_masked {
  const char *data;
  const uint8_t *keep; /* what is not zero counts */
  int64_t data_step, keep_step, lines, n;
  int bytes, whole; /* whole: a line has one byte */
} gpr_masked;

/* Which tiles `many` and `fold_many` take: all, outputs side by side, or of any steps and with a
 * cast. */
enum gpr_side { GPR_ANY_TILE, GPR_COLUMNS, GPR_LINES };

/* What may do instead of a row's own folds: with another state, and results that it may refuse.
 * Members as in gpr_row; tiles are GPR_LINES. */
typedef struct gpr_quick {
  int64_t most; /* elements of an output, beyond which the row's own are as good */
  size_t state_bytes;
  void (*open)(void *state);
  int (*fold)(void *state, const void *data, int64_t n, int64_t index);
  void (*merge)(void *state, const void *right);
  void (*fold_many)(void *states, size_t slot, const gpr_tile *tile, int64_t index);
  int (*many)(const gpr_tile *tile, const void *with, void *result);
  /* finish() of states one after the other, of n elements each or as many as counts says, which may
   * be NULL. refused[o]: the elements of output o have to be folded again, by the row itself.
   * Nonzero where there is any. with: as finish()'s, but without means. decided: as
   * gpr_infinities', or NULL. */
  int (*finish_many)(const void *states, int64_t outputs, int64_t n, const int64_t *counts,
                     const void *with, void *result, uint8_t *refused, int64_t *decided);
} gpr_quick;

/* Partials in a few doubles: how many elements counted, and pairs whose sums are the exact ones. */
typedef struct gpr_brief {
  int doubles; /* of each output */
  /* A row's, to finish into them; a NaN is the last of what they do not hold. */
  void (*finish)(const void *state, int64_t n, const void *with, void *result);
  const gpr_quick *quick;
  /* Adds one to a state of the row. */
  void (*add)(void *state, const double *from);
  /* Makes states of them, one after the other, or adds more to these: of this quick row, or of the
   * row's own. */
  void (*load)(void *states, const double *from, int64_t outputs, int more);
  void (*load_own)(void *states, const double *from, int64_t outputs, int more);
} gpr_brief;

/* One operator on one dtype. A state is `state_bytes` of memory aligned to 16. */
typedef struct gpr_row {
  int op, dtype, result; /* ids of ops.h and dtypes.h */
  int law;
  int ordered; /* the elements' index matters */
  int scalars; /* of the dtype in an element and in the result: 4 in a 2 x 2 matrix, else 1 */
  size_t state_bytes;
  void (*open)(void *state);
  /* Folds n contiguous aligned elements, of which the first has this index; for GPR_TREE the
   * index must be the state's next. Nonzero: no further element can change the result. */
  int (*fold)(void *state, const void *data, int64_t n, int64_t index);
  /* right covers the indices after the state's (GPR_TREE), or any others. */
  void (*merge)(void *state, const void *right);
  /* n elements were folded. with: NULL, or a value of the result's dtype which takes part, or a
   * gpr_spread. Writes `results` values of dtype `result`. */
  void (*finish)(const void *state, int64_t n, const void *with, void *result);
  int results;
  int side; /* gpr_side */
  int soon; /* a few elements often settle it */
  /* So many elements at most columns of GPR_COLUMNS may lie apart: those between are folded as
   * well, and dropped, since that is quicker than to bring the others together. */
  int apart;
  /* Finishes the outputs of a tile that has all their elements. with: NULL, or as finish()'s but
   * without means. Zero: this is no tile or `with` for it, and nothing was done. NULL: there is no
   * such way. */
  int (*many)(const gpr_tile *tile, const void *with, void *result);
  /* The tile's elements, from `index` on, into states that lie `slot` bytes apart: state_bytes
   * where the row is `side`. */
  void (*fold_many)(void *states, size_t slot, const gpr_tile *tile, int64_t index);
  /* An element that changes nothing, however often it is folded. */
  void (*identity)(void *element);
  /* Whether nothing was folded that counts; NULL where `fold_many` and `fold_skipping` cannot leave
   * out NaN by themselves. */
  int (*empty)(const void *state);
  int (*fold_skipping)(void *state, const void *data, int64_t n, int64_t index);
  const gpr_quick *quick; /* or NULL */
  const gpr_brief *brief; /* or NULL */
  /* Of lines that are one element each, over and over, and of their mask, if `keep` is not
   * NULL: what folds to the same, GPR_MULTIPLES(n) elements for each line. Adds what counts of a
   * mask to counts[o], output o having so many lines. Zero: it cannot be, and nothing was done. Or
   * NULL. */
  int (*repeat)(const gpr_masked *masked, int64_t lines_each, void *to, int64_t *counts);
} gpr_row;
enum { GPR_SHORT = 4096 };        /* elements of an output in a tile, at most */
enum { GPR_OUTPUTS_MOST = 8192 }; /* of a tile, side by side, at most */
/* By powers of two: one for each bit of n. */
#define GPR_MULTIPLES(n) (64 - __builtin_clzll((unsigned long long)(n)))
enum { GPR_STATE_MOST = 4096 }; /* bytes of a row's state that has a quick one, at most */

/* keep[i] becomes 0 where x[i] is NaN or NaT, unless keep is NULL; whether any is. */
typedef int (*gpr_skip)(const void *x, int64_t n, uint8_t *keep);

/* Copies the tile to `to`, where its rows or outputs lie one after the other, with the identity in
 * the place of NaN and NaT, and adds to counts[o] what does count. Zero: there is neither, and
 * nothing was done. */
typedef int (*gpr_leave_out)(const gpr_tile *tile, void *to, const void *identity, int64_t *counts);

/* How the lines of a mask's elements are counted: each by itself, or place by place; where nothing
 * of a line, or of a part of it, counts, others may then move up. */
enum gpr_counted { GPR_BY_LINE, GPR_BY_PLACE, GPR_MAY_DROP };
/* Copies the lines to `to`, one after the other, with the identity in the place of what does not
 * count, and adds to counts what does; returns how many lines there are. -1: all counts, and
 * nothing was done. tally: n bytes. places: NULL, or lines that count as a whole are not copied,
 * and where each lies is left here, in bytes from `data`. */
typedef int64_t (*gpr_mask)(const gpr_masked *masked, int counted, const void *identity, char *to,
                            int64_t *counts, uint8_t *tally, int64_t *places);

/* n elements of 1, 2, 4, 8, 16 or 32 bytes from each step·i to each to_step·i. */
typedef void (*gpr_copy)(const char *from, int64_t step, char *to, int64_t to_step, int64_t n,
                         int bytes);

/* Elements, or runs of them, of so many bytes from each at[i], and the same of `lines` lines, each
 * `step` bytes after the one before: n to where they are contiguous, and `apart` bytes on the next
 * line's. */
typedef void (*gpr_gather)(const char *from, const int64_t *at, int64_t n, int64_t bytes,
                           int64_t lines, int64_t step, char *to, int64_t apart);

/* The first of n words of 2, 4 or 8 bytes, at any address, that has these bits of the mask's; n
 * where there is none. */
typedef int64_t (*gpr_find)(const void *words, int64_t n, int bytes, uint64_t mask, uint64_t bits);

/* Reverses the bytes of each unit of 2, 4 or 8, at any address. */
typedef void (*gpr_swap)(char *data, int64_t bytes, int unit);

/* row[op * GPR_DTYPE_COUNT + dtype].open is NULL where the operator does not take the dtype;
 * cast[from * GPR_DTYPE_COUNT + to] where there is no conversion, skip[dtype] and
 * leave_out[dtype] where the dtype has neither NaN nor NaT. */
typedef struct gpr_cpu_table {
  const char *isa;
  const gpr_row *row;
  const gpr_cast *cast;
  const gpr_skip *skip;
  const gpr_leave_out *leave_out;
  gpr_mask mask;
  gpr_copy copy;
  gpr_gather gather;
  gpr_find find;
  gpr_swap swap;
} gpr_cpu_table;

#ifndef __CUDACC__
/* One for each instruction set that kernels/cpu/table.cpp was compiled for. */
GPR_C const gpr_cpu_table gpr_cpu_table_plain;
#ifdef GPR_X86_LEVELS
GPR_C const gpr_cpu_table gpr_cpu_table_v3;
GPR_C const gpr_cpu_table gpr_cpu_table_v4;
#endif

/* By how many bytes the CPU's folds prefetch, and whether those of columns do; csrc/cpu.c knows the
 * machine. far: of what this thread folds the caches hold a part at most. */
extern ptrdiff_t gpr_prefetch_ahead;
extern int gpr_prefetch_columns;
extern __thread int gpr_is_far;
#endif

/* --- the device half -------------------------------------------------------------------------- */

/* What every kernel over a whole array takes. It folds n elements from `data`, of which the first
 * has this index, and leaves its state in `answer`, word by word and each word with the epoch: a
 * reader who finds the epoch beside every word has them all, and the kernel need not wait for its
 * stores to arrive before it raises a flag. */
typedef struct gpr_answer {
  uint32_t word, epoch;
} gpr_answer;
/* Every second launch begins at the end of its array, where the second cache has what the one
 * before it read last: sums of 80 MB of floats took 37 µs on an H100, and take 30, of 180 MB 67 and
 * 61. Of longer ones too little is left there: 480 MB took 166 and 171. */
enum { GPR_BACK_BYTES = 256 << 20 };
typedef struct gpr_flat_args {
  const void *data; /* aligned to its element's parts */
  int64_t n, index;
  void *scratch; /* device memory of the table's scratch_bytes, zero before the first launch; each
                    launch leaves what it needs zero as it found it */
  gpr_answer *answer; /* host memory that the device can write: masks and words of the row; for
                         lines GPR_LINES_AT and GPR_LINE_WORDS for each part of each block */
  uint32_t epoch;
} gpr_flat_args;

/* The answer of an exact sum: each block leaves, for each part of its elements, a line of 32 bytes.
 * Its four words are an integer; the upper halves of the epochs beside them, the epoch's low bits,
 * and the lower bytes its unit and flags. They are one sector: of 132 blocks that end together
 * lines of 48 bytes came 1 µs later on an H200. */
enum {
  GPR_LINES_AT = 512, /* words of the answer before the first */
  GPR_LINES_MOST = 4, /* a multiprocessor */
  GPR_LINE_WORDS = 4,
  GPR_LINE_EPOCH = 24,  /* bits, which are never all zero */
  GPR_LINE_FLAGS = 8,   /* bits; the unit lies above them */
  GPR_LINE_MORE = 4,    /* a flag beside GPR_MET and GPR_OTHER: there is more than the line has */
  GPR_LINE_SPECIAL = 5, /* from this bit on, an Exact's special */
};
typedef struct gpr_lines {
  int parts; /* 0: there are none */
  /* Adds the lines that have come of the blocks whose bits are set in `words` words to a state, in
   * any order, and their flags; clears their bits, and returns how many are still awaited. */
  int (*take)(void *state, const gpr_answer *answer, uint64_t *awaited, int words, uint32_t epoch,
              uint32_t *flags);
} gpr_lines;

/* A kernel for few elements, which answers by lines. Its scratch is not used. Where there is more
 * than the lines have they are void, and the row's first kernel is to be launched. */
enum { GPR_SMALL_THREADS = 512 }; /* a block at most; a power of two, 32 at least */
typedef struct gpr_small {
  gpr_program *kernel; /* takes a gpr_flat_args; NULL: there is none */
  int bytes;           /* that a thread reads, from a multiple of 16 on */
} gpr_small;

typedef struct gpr_gpu_row {
  gpr_program *flat; /* takes a gpr_flat_args; NULL: no such row */
  int words;         /* of the answer: the start of a state, as far as it is used,
                        or of what there is beside the lines, if there is more */
  int masks;         /* words before those, a bit for each: others are zero and do
                        not come; 0: all of them come */
  int threads;       /* a block */
  int tile;          /* bytes that a block takes at a time */
  int blocks;        /* a multiprocessor, at most; 0: a tree has its own */
  gpr_lines lines;
  gpr_small small;
} gpr_gpu_row;

/* What the gathering of strided, swapped or differently typed elements takes: elements
 * [start, start + n) in C order, to `out` contiguous, native and of dtype `to`. */
enum { GPR_GATHER_DIMS = 64, GPR_GATHER_THREADS = 256 };
typedef struct gpr_gather_args {
  const char *data;
  int64_t start, n;
  int ndim, bytes, swap, from, to;
  char *out;
  int64_t shape[GPR_GATHER_DIMS], strides[GPR_GATHER_DIMS];
} gpr_gather_args;

enum { GPR_GPU_BLOCKS_MAX = 4096 }; /* of one launch */

/* What the kernel that only reads takes. */
enum { GPR_READ_THREADS = 1024, GPR_READ_BLOCKS = 32 }; /* a block; a multiprocessor */
typedef struct gpr_read_args {
  const void *data; /* aligned to 16 */
  int64_t bytes;
  uint32_t *never;
} gpr_read_args;

/* row[op * GPR_DTYPE_COUNT + dtype] folds into the same states as the CPU's row. */
typedef struct gpr_gpu_table {
  const gpr_gpu_row *row;
  gpr_program *gather; /* takes a gpr_gather_args */
  size_t scratch_bytes;
  gpr_program *read; /* takes a gpr_read_args */
} gpr_gpu_table;

GPR_C const gpr_gpu_table gpr_gpu_table_cuda;
