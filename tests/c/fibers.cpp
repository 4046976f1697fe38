/* The textbook kernels without a GPU: one block at a time, its threads as fibers that run from one
 * barrier to the next in an order drawn anew each time. A step that lacks its barrier is likely to
 * show as a wrong result, a barrier that some thread does not reach always does. */
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <ucontext.h>

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

namespace {

enum State { READY, AT_BLOCK, AT_WARP, AT_SHUFFLE, ENDED };
enum { WARP = 32, STACK = 32 << 10 };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[STACK]};
  State state;
  uint32_t mask, word;
  int lane, vote;
};

struct {
  unsigned x;
} threadIdx, blockIdx, blockDim, gridDim;

std::vector<Fiber> fibers;
ucontext_t scheduler;
int vote;

Fiber &here() { return fibers[threadIdx.x]; }
void wait_in(State state) {
  here().state = state;
  swapcontext(&here().context, &scheduler);
}

int __syncthreads_or(int mine) {
  here().vote = mine;
  wait_in(AT_BLOCK);
  return vote;
}
void __syncthreads() { __syncthreads_or(0); }
void __syncwarp(uint32_t mask = ~0u) {
  here().mask = mask;
  wait_in(AT_WARP);
}
uint32_t __shfl_sync(uint32_t, uint32_t word, int lane) {
  here().word = word;
  here().lane = lane;
  wait_in(AT_SHUFFLE);
  return here().word;
}
uint32_t __shfl_down_sync(uint32_t mask, uint32_t word, int by) {
  const int lane = threadIdx.x % WARP;
  return __shfl_sync(mask, word, lane + by < WARP ? lane + by : lane);
}
uint32_t __shfl_xor_sync(uint32_t mask, uint32_t word, int by) {
  return __shfl_sync(mask, word, (int)(threadIdx.x % WARP) ^ by);
}
void __threadfence() {}
uint32_t atomicAdd(uint32_t *at, uint32_t by) {
  const uint32_t before = *at;
  *at += by;
  return before;
}

}  // namespace

#include "../../kernels/abi/dtypes.h"
#include "../../kernels/textbook/kernels.cuh"
#include "../../kernels/abi/ladder_rows.h"
#include "../../kernels/abi/ops.h"

namespace {

/* --- the list's kernels, as functions ----------------------------------------------------------
 */

typedef void (*Kernel)(gpr_ladder_args);

struct Row {
  Kernel lift, partials, kernel[GPR_KERNEL_COUNT][GPR_KERNEL_BLOCKS];
};

template <class Op, int B> void fill(Row &row, int block) {
  using namespace gpr::ladder;
  typedef typename Op::Monoid M;
#define GPR_X(id, name, chapter, flags, limit, least, most, unroll, grid, sentence, ...) \
  if constexpr (Op::commutes || (flags)&GPR_IN_ORDER)                                    \
    row.kernel[GPR_KERNEL_##id][block] = __VA_ARGS__;
  GPR_KERNELS(GPR_X)
#undef GPR_X
}

template <class Op> Row row_of() {
  Row row{};
  if constexpr (Op::commutes) {
    row.lift = gpr::ladder::lift<Op>;
    row.partials = gpr::ladder::fold_partials<Op>;
  }
  fill<Op, 128>(row, 0);
  fill<Op, 256>(row, 1);
  fill<Op, 512>(row, 2);
  fill<Op, 1024>(row, 3);
  return row;
}

template <class T> Row row_of(int op) {
  using namespace gpr::ladder;
  switch (op) {
    case GPR_OP_SUM: return row_of<Sum<T>>();
    case GPR_OP_PROD: return row_of<Prod<T>>();
    case GPR_OP_MIN: return row_of<Min<T>>();
    case GPR_OP_MAX: return row_of<Max<T>>();
    default: break;
  }
  if constexpr (sizeof(T) == 8)
    if (op == GPR_OP_MATMUL2X2) return row_of<Matmul<T>>();
  return {};
}

Row row_of(int op, int dtype) {
  switch (dtype) {
    case GPR_INT32: return row_of<int32_t>(op);
    case GPR_INT64: return row_of<int64_t>(op);
    case GPR_FLOAT32: return row_of<float>(op);
    case GPR_FLOAT64: return row_of<double>(op);
    default: return {};
  }
}

/* --- a block -----------------------------------------------------------------------------------
 */

Kernel kernel;
gpr_ladder_args arguments;

void body() {
  kernel(arguments);
  wait_in(ENDED);
}

/* Lanes that wait for the same lanes go on together, and so do all lanes at a shuffle. */
void release_warp(Fiber *lanes) {
  uint32_t waiting = 0, wanted = 0, shuffling = 0, words[WARP];
  for (int l = 0; l < WARP; l++) {
    if (lanes[l].state == AT_WARP) waiting |= 1u << l, wanted |= lanes[l].mask;
    if (lanes[l].state == AT_SHUFFLE) shuffling |= 1u << l;
  }
  for (int l = 0; l < WARP; l++) words[l] = lanes[lanes[l].lane].word;
  for (int l = 0; l < WARP; l++) {
    if (waiting && waiting == wanted && lanes[l].state == AT_WARP) lanes[l].state = READY;
    if (shuffling == ~0u) {
      lanes[l].word = words[l];
      lanes[l].state = READY;
    }
  }
}

/* False where some threads wait for others that will not come. */
bool run_block(std::mt19937 &random) {
  std::vector<int> order(fibers.size());
  std::iota(order.begin(), order.end(), 0);
  for (Fiber &f : fibers) {
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = STACK;
    f.context.uc_link = nullptr;
    makecontext(&f.context, body, 0);
    f.state = READY;
    f.lane = 0;
  }
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    bool ran = false;
    for (int t : order) {
      if (fibers[t].state != READY) continue;
      threadIdx.x = (unsigned)t;
      swapcontext(&scheduler, &fibers[t].context);
      ran = true;
    }
    const auto in = [](State s) {
      return std::count_if(fibers.begin(), fibers.end(),
                           [=](const Fiber &f) { return f.state == s; });
    };
    if (in(ENDED) == (long)fibers.size()) return true;
    if (!ran) return false;
    for (size_t w = 0; w < fibers.size(); w += WARP) release_warp(&fibers[w]);
    if (in(AT_BLOCK) != (long)fibers.size()) continue;
    vote = 0;
    for (Fiber &f : fibers) vote |= f.vote, f.state = READY;
  }
}

}  // namespace

/* One launch; which: a kernel of the list, or -1 to lift, -2 to fold partial results. 0 is fine, 1
 * a barrier that not all threads reach, 2 no such kernel. */
extern "C" __attribute__((visibility("default"))) int launch(int op, int dtype, int which, int size,
                                                             unsigned blocks, unsigned threads,
                                                             const gpr_ladder_args *args,
                                                             unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const Row row = row_of(op, dtype);
  kernel = which == -1 ? row.lift : which == -2 ? row.partials : row.kernel[which][size];
  if (!kernel) return 2;
  arguments = *args;
  gridDim.x = blocks;
  blockDim.x = threads;
  fibers.resize(threads);
  for (unsigned block : order) {
    blockIdx.x = block;
    if (!run_block(random)) return 1;
  }
  return 0;
}
