/* The one list of the textbook kernels. Their names in Python, the tests, the table of times and
 * the launches are read from it.
 *
 * X(id, name, chapter, flags, limit, least, most, unroll, grid, sentence, kernel): limit is
 * the most elements that it takes, or 0; a block has from `least` to `most` threads, as few as take
 * the array, and each of them takes `unroll` elements at a time; kernel is the template of
 * kernels/textbook/ on an operator Op, on its monoid M, on the threads B. */
#pragma once

enum gpr_kernel_flag {
  GPR_IN_PLACE = 1,      /* folds a copy that it may write */
  GPR_SECOND_LAUNCH = 2, /* leaves a partial result for each block, which another launch folds */
  GPR_IN_ORDER = 4,      /* left ∘ right always: fit for operators that do not commute */
  GPR_REWRITES = GPR_IN_PLACE | GPR_SECOND_LAUNCH,
};

enum gpr_kernel_grid {
  GPR_ONE_BLOCK,
  GPR_EVERY_TILE,  /* a block for every `unroll` elements a thread */
  GPR_FULL_DEVICE, /* as many blocks as run at the same time */
};

#define GPR_CHAPTERS                                                                          \
  {                                                                                           \
    "1 in place in global memory", "2 unrolled", "3 global memory, shared memory, registers", \
        "4 one block", "5 one warp", "6 a block of warps", "7 many blocks", "8 the library"   \
  }

#define GPR_KERNELS(X)                                                                             \
  X(NEIGHBORED, "neighbored", 1, GPR_REWRITES, 0, 512, 512, 1, GPR_EVERY_TILE,                     \
    "Every other thread works, then every fourth: each warp runs to the last.", neighbored<M>)     \
  X(NEIGHBORED_LESS, "neighbored_less", 1, GPR_REWRITES, 0, 512, 512, 1, GPR_EVERY_TILE,           \
    "The same pairs by the first threads: whole warps are done early.", neighbored_less<M>)        \
  X(INTERLEAVED, "interleaved", 1, GPR_REWRITES, 0, 512, 512, 1, GPR_EVERY_TILE,                   \
    "Partners half a block apart: neighbouring threads read neighbouring words.", interleaved<M>)  \
  X(UNROLL2, "unroll2", 2, GPR_REWRITES, 0, 512, 512, 2, GPR_EVERY_TILE,                           \
    "Two loads a thread before the first barrier: half the blocks.", unrolled<M, 2>)               \
  X(UNROLL4, "unroll4", 2, GPR_REWRITES, 0, 512, 512, 4, GPR_EVERY_TILE,                           \
    "Four loads in flight a thread hide more of the memory's latency.", unrolled<M, 4>)            \
  X(UNROLL8, "unroll8", 2, GPR_REWRITES, 0, 512, 512, 8, GPR_EVERY_TILE,                           \
    "Eight loads in flight a thread: from here on the tree hides behind the loading.",             \
    unrolled<M, 8>)                                                                                \
  X(UNROLL_WARP8, "unroll_warp8", 2, GPR_REWRITES, 0, 512, 512, 8, GPR_EVERY_TILE,                 \
    "The last 64 values by one warp, which needs no barrier of the block.", unroll_warp8<M>)       \
  X(COMPLETE_UNROLL_WARP8, "complete_unroll_warp8", 2, GPR_REWRITES, 0, 128, 1024, 8,              \
    GPR_EVERY_TILE,                                                                                \
    "The loop over the strides written out, with tests of the block's size in its place.",         \
    complete_unroll_warp8<M>)                                                                      \
  X(COMPLETE_UNROLL_TEMPLATE, "complete_unroll_template", 2, GPR_REWRITES, 0, 128, 1024, 8,        \
    GPR_EVERY_TILE, "The block's size known to the compiler, which leaves the tests out.",         \
    complete_unroll_template<M, B>)                                                                \
  X(GMEM, "gmem", 3, GPR_REWRITES, 0, 1024, 1024, 1, GPR_EVERY_TILE,                               \
    "The tree of a block in global memory: what the next three are measured by.", gmem<M>)         \
  X(SMEM, "smem", 3, GPR_SECOND_LAUNCH, 0, 1024, 1024, 1, GPR_EVERY_TILE,                          \
    "The tree in shared memory: one load an element, and the input stays as it is.", smem<Op>)     \
  X(UNROLL4_SMEM, "unroll4_smem", 3, GPR_SECOND_LAUNCH, 0, 1024, 1024, 4, GPR_EVERY_TILE,          \
    "Four loads a thread into a register, then the tree in shared memory.", unroll4_smem<Op>)      \
  X(SHFL, "shfl", 3, GPR_SECOND_LAUNCH, 0, 1024, 1024, 1, GPR_EVERY_TILE,                          \
    "Warps fold from register to register; shared memory carries one word a warp.", shfl<Op>)      \
  X(SINGLE_BLOCK, "single_block", 4, 0, 0, 1024, 1024, 1, GPR_ONE_BLOCK,                           \
    "A loop into a register, then a tree: fit for a few thousand elements.", single_block<Op>)     \
  X(SINGLE_BLOCK_NONCOMM, "single_block_noncomm", 4, GPR_IN_ORDER, 0, 512, 512, 1, GPR_ONE_BLOCK,  \
    "Order kept: neighbours combine into half the buffer, the rest is refilled.",                  \
    single_block_noncomm<Op>)                                                                      \
  X(SINGLE_WARP, "single_warp", 5, 0, 32, 32, 32, 1, GPR_ONE_BLOCK,                                \
    "Five steps under five guards, without a barrier of the block.", single_warp<Op>)              \
  X(SINGLE_WARP_UNGUARDED, "single_warp_unguarded", 5, 0, 32, 32, 32, 1, GPR_ONE_BLOCK,            \
    "One guard for all steps: some lanes compute what nobody reads.", single_warp_unguarded<Op>)   \
  X(SINGLE_WARP_NONCOMM, "single_warp_noncomm", 5, GPR_IN_ORDER, 32, 32, 32, 1, GPR_ONE_BLOCK,     \
    "Neighbours first, which keeps the order: right for every operator.", single_warp_noncomm<Op>) \
  X(SINGLE_WARP_NONCOMM_PADDED, "single_warp_noncomm_padded", 5, GPR_IN_ORDER, 32, 32, 32, 1,      \
    GPR_ONE_BLOCK, "Sixteen identities behind the values take the place of guards.",               \
    single_warp_noncomm_padded<Op>)                                                                \
  X(SINGLE_WARP_REGISTERS, "single_warp_registers", 5, GPR_IN_ORDER, 32, 32, 32, 1, GPR_ONE_BLOCK, \
    "Shuffles down by 1, 2, 4, 8, 16: no memory, and the order kept.", single_warp_registers<Op>)  \
  X(BLOCK_OF_WARPS, "block_of_warps", 6, 0, 0, 1024, 1024, 1, GPR_ONE_BLOCK,                       \
    "The warps of a block fold by themselves: one barrier where the tree had ten.",                \
    block_of_warps<Op>)                                                                            \
  X(TWO_PASS, "two_pass", 7, GPR_SECOND_LAUNCH, 0, 1024, 1024, 1, GPR_FULL_DEVICE,                 \
    "Enough blocks to fill the device, a long loop in each; the second launch is the barrier.",    \
    two_pass<Op>)                                                                                  \
  X(LAST_BLOCK, "last_block", 7, 0, 0, 1024, 1024, 1, GPR_FULL_DEVICE,                             \
    "One launch: the block that draws the last ticket folds the partial results.", last_block<Op>) \
  X(LAST_BLOCK_NONCOMM, "last_block_noncomm", 7, GPR_IN_ORDER, 0, 512, 512, 1, GPR_FULL_DEVICE,    \
    "A section of the array for each block, all in order, in one launch.", last_block_noncomm<Op>) \
  X(DEFAULT, "default", 8, GPR_IN_ORDER, 0, 0, 0, 0, GPR_FULL_DEVICE,                              \
    "What the library runs: 16 bytes a load, eight in flight, the last block, one launch.",        \
    nullptr)

enum gpr_kernel {
#define GPR_X(id, ...) GPR_KERNEL_##id,
  GPR_KERNELS(GPR_X)
#undef GPR_X
      GPR_KERNEL_COUNT,
  GPR_NO_KERNEL = -1
};

/* Each kernel of 128, 256, 512 and 1024 threads a block is an entry of its own. */
enum { GPR_KERNEL_LEAST_BLOCK = 128, GPR_KERNEL_BLOCKS = 4 };

/* The element types that they are made for; matrices are of the types of 64 bits. */
#define GPR_KERNEL_DTYPES(X) X(INT32) X(INT64) X(FLOAT32) X(FLOAT64)
