/* The kernels of users' operators without a GPU: one block at a time, its threads as fibers that
 * run from one barrier to the next in an order drawn anew each time. The operator's text comes
 * first, by -include of a file that defines OPERATOR_TEXT. */
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <ucontext.h>

#include "../../kernels/gpu/as_host.h"

#ifdef OPERATOR_KERNELS /* the textbook's */
#include "../../kernels/textbook/kernels.cuh"
#elif defined PRODUCT_OF /* our own products along the tree, of that type */
#include "../../kernels/gpu/select.h"
#elif defined SUMS
#include "sums.h"
#elif defined TILES
#include "tiles.h"
#else
#include "../../kernels/gpu/operator.cuh"
#endif

using namespace gpr;
#ifdef OPERATOR_TEXT
#include OPERATOR_TEXT
#endif

gpr_dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace {

bool is_misaligned;

enum State { READY, AT_BLOCK, AT_SHUFFLE, ENDED };
enum { STACK = 256 << 10, LANES = 32 };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[STACK]};
  State state;
  uint32_t word;
  int lane;
};

/* splitmix64: <random> takes a fifth of the time to compile this. */
struct Random {
  typedef uint32_t result_type;
  uint64_t state;
  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return UINT32_MAX; }
  uint32_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (uint32_t)(z >> 32);
  }
};

std::vector<Fiber> fibers;
ucontext_t scheduler;
void *arguments;
int unit;

void wait_in(State state) {
  fibers[threadIdx.x].state = state;
  swapcontext(&fibers[threadIdx.x].context, &scheduler);
}

void body() {
#ifdef OPERATOR_KERNELS
  static void (*const kernels[])(gpr_ladder_args) = {OPERATOR_KERNELS};
  kernels[unit](*(const gpr_ladder_args *)arguments);
#elif defined SUMS
  bring_together(*(SumsJob *)arguments);
#elif defined TILES
  tile_of(unit, *(const gpr_axes_args *)arguments);
#elif defined PRODUCT_OF
  typedef TreeFold<PRODUCT_OF, Times> F;
  typedef TreeOperator<F> OP;
  typedef TreeElements<F> X;
  typedef TreeElements<F, AnyDtype> Any;
  const gpr_axes_args &args = *(const gpr_axes_args *)arguments;
  const bool any = args.from != args.to || args.swap || args.unaligned;
  if (!unit)
    trees_staged<OP, X>(args);
  else if (unit == 4)
    trees_gathered<F>(args);
  else if (unit == 2)
    trees_of_few<F>(args);
  else if (unit == 9)
    trees_by_chunks<F>(args);
  else if (unit == 1)
    any ? trees_by_threads<OP, Any>(args) : trees_by_threads<OP, X>(args);
  else
    any ? trees_by_warps<OP, Any>(args) : trees_by_warps<OP, X>(args);
#else
  typedef Operands<UserOperator> X;
  if (!unit)
    trees_staged<UserOperator, X>(*(const gpr_operator_args *)arguments);
  else if (unit == 2)
    operate_few<UserOperator, 2>(*(const gpr_operator_args *)arguments);
  else if (unit == 4)
    operate_few<UserOperator, 4>(*(const gpr_operator_args *)arguments);
  else if (unit == 8)
    operate_few<UserOperator, 8>(*(const gpr_operator_args *)arguments);
  else if (unit == 1)
    trees_by_threads<UserOperator, X>(*(const gpr_operator_args *)arguments);
  else
    trees_by_warps<UserOperator, X>(*(const gpr_operator_args *)arguments);
#endif
  wait_in(ENDED);
}

void release_warp(Fiber *lanes) {
  uint32_t words[LANES];
  for (int l = 0; l < LANES; l++) {
    if (lanes[l].state != AT_SHUFFLE) return;
    words[l] = lanes[lanes[l].lane].word;
  }
  for (int l = 0; l < LANES; l++) {
    lanes[l].word = words[l];
    lanes[l].state = READY;
  }
}

/* False where some threads wait for others that will not come. */
bool run_block(Random &random) {
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
    for (size_t w = 0; w < fibers.size(); w += LANES) release_warp(&fibers[w]);
    if (in(AT_BLOCK) != (long)fibers.size()) continue;
    for (Fiber &f : fibers) f.state = READY;
  }
}

uint32_t shuffled(uint32_t word, int lane) {
  fibers[threadIdx.x].word = word;
  fibers[threadIdx.x].lane = lane;
  wait_in(AT_SHUFFLE);
  return fibers[threadIdx.x].word;
}

}  // namespace

void __syncthreads() { wait_in(AT_BLOCK); }
void __syncwarp(uint32_t) { shuffled(0, (int)threadIdx.x % LANES); }
template <class T> T __shfl_down_sync(uint32_t, T word, int by, int) {
  const int lane = (int)threadIdx.x % LANES;
  return (T)shuffled((uint32_t)word, lane + by < LANES ? lane + by : lane);
}
template <class T> T __shfl_xor_sync(uint32_t, T word, int by, int) {
  return (T)shuffled((uint32_t)word, (int)(threadIdx.x % LANES) ^ by);
}
template <class T> T __shfl_sync(uint32_t, T word, int lane, int) {
  return (T)shuffled((uint32_t)word, lane);
}
int __popc(uint32_t x) { return __builtin_popcount(x); }
int __ffs(int x) { return __builtin_ffs(x); }
int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
int __syncthreads_or(int mine) {
  static int any;
  if (mine) any = 1;
  __syncthreads();
  const int found = any;
  __syncthreads();
  any = 0;
  return found;
}
/* Which lanes go together is the device's choice: here each by itself. */
uint32_t __activemask() { return 1u << threadIdx.x % LANES; }
int __all_sync(uint32_t lanes, int mine) {
  if (lanes == __activemask()) return mine;
  for (int mask = 1; mask < LANES; mask *= 2)
    mine &= (int)shuffled((uint32_t)mine, (int)(threadIdx.x % LANES) ^ mask);
  return mine;
}
int __any_sync(uint32_t lanes, int mine) { return !__all_sync(lanes, !mine); }
uint32_t __ballot_sync(uint32_t, int mine) {
  uint32_t all = (uint32_t)!!mine << threadIdx.x % LANES;
  for (int mask = 1; mask < LANES; mask *= 2)
    all |= shuffled(all, (int)(threadIdx.x % LANES) ^ mask);
  return all;
}
void __threadfence() {}
template <class T, class U> T atomicAdd(T *at, U by) { return (*at += by) - by; }
template <class T, class U> T atomicMax(T *at, U x) {
  const T before = *at;
  if (before < (T)x) *at = (T)x;
  return before;
}
template <class T, class U> T atomicExch(T *at, U x) {
  const T before = *at;
  *at = (T)x;
  return before;
}
template <class T, class U, class V> T atomicCAS(T *at, U from, V to) {
  const T before = *at;
  if (before == (T)from) *at = (T)to;
  return before;
}
template <class T> T __ldg(const T *at) { return *at; }
uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
template <class To, class From> static To same_bits(From x) {
  To to;
  memcpy(&to, &x, sizeof to);
  return to;
}
float __uint_as_float(uint32_t x) { return same_bits<float>(x); }
double __hiloint2double(int high, int low) {
  return same_bits<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}
template <class Half, class Choose> static uint32_t by_halves(uint32_t a, uint32_t b, Choose choose) {
  const Half low = choose((Half)a, (Half)b), high = choose((Half)(a >> 16), (Half)(b >> 16));
  return (uint32_t)(uint16_t)high << 16 | (uint16_t)low;
}
uint32_t __vmaxu2(uint32_t a, uint32_t b) {
  return by_halves<uint16_t>(a, b, [](uint16_t x, uint16_t y) { return x > y ? x : y; });
}
uint32_t __vmins2(uint32_t a, uint32_t b) {
  return by_halves<int16_t>(a, b, [](int16_t x, int16_t y) { return x < y ? x : y; });
}

/* In place of the sanitizer's own: an address that is no multiple of what lies there. */
extern "C" void __ubsan_handle_type_mismatch_v1(void *, void *) { is_misaligned = true; }

/* 0 is fine, 1 a barrier that not all threads reach, 2 an access that a device would not make. */
extern "C" __attribute__((visibility("default"))) int launch(void *args, unsigned blocks,
                                                             unsigned threads, int of_unit,
                                                             unsigned seed) {
  Random random{seed};
  std::vector<unsigned> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  arguments = args;
  is_misaligned = false;
  unit = of_unit;
  gridDim.x = blocks;
  blockDim.x = threads;
  fibers.resize(threads);
  for (unsigned block : order) {
    blockIdx.x = block;
    if (!run_block(random)) return 1;
  }
  return is_misaligned ? 2 : 0;
}

#if defined PRODUCT_OF || defined TILES
extern "C" __attribute__((visibility("default"))) size_t arguments_bytes(void) {
  return sizeof(gpr_axes_args);
}
#endif

#ifdef TILES
extern "C" __attribute__((visibility("default"))) int reduced(gpr_axes_args *args, int dtype,
                                                              int fold, int multiprocessors,
                                                              size_t room, unsigned seed) {
  gpr_axes_launch out = {};
  const int variant = fold < ROWS     ? GPR_VARIANT_TILE
                      : fold < STAGED ? GPR_VARIANT_ROWS
                                      : GPR_VARIANT_STAGED;
  if (gpr_axes_table_cuda.launch(args->op, dtype, variant, multiprocessors, args, &out) ||
      out.scratch > room)
    return 3;
  const unsigned blocks = (unsigned)(variant == GPR_VARIANT_ROWS ? args->outputs : out.blocks);
  return launch(args, blocks, (unsigned)out.threads, fold, seed);
}
#endif

#ifdef PRODUCT_OF

/* Planned and launched as on a device of so many multiprocessors. */
extern "C" __attribute__((visibility("default"))) int product(gpr_axes_args *args, int dtype,
                                                              int multiprocessors, void *scratch,
                                                              unsigned seed) {
  static gpr_program by_threads, by_warps, staged, gathered, of_few, by_chunks;
  AxesRow row = {};
  gpr_axes_launch out = {};
  row.tile = row.any = &by_threads;
  row.tile_rows = row.any_rows = &by_warps;
  row.staged = &staged;
  row.gathered = &gathered;
  row.shallow = &of_few;
  row.rows = &by_chunks;
  row.is_tree = 1;
  row.bytes = (int)sizeof(PRODUCT_OF);
  row.state = sizeof(Branch<TreeFold<PRODUCT_OF, Times>::Wide>);
  row.moved = sizeof(TreeFold<PRODUCT_OF, Times>::Wide);
  args->op = GPR_OP_PROD;
  args->to = dtype;
  args->scratch = scratch;
  if (!AxesCut{row, multiprocessors, *args, out, GPR_ANY_VARIANT}.select()) return 3;
  const int of_unit = out.kernel == &staged      ? 0
                      : out.kernel == &gathered  ? 4
                      : out.kernel == &of_few    ? 2
                      : out.kernel == &by_chunks ? 9
                      : out.kernel == &by_warps  ? 32
                                                 : 1;
  const int failed = launch(args, (unsigned)out.blocks, (unsigned)out.threads, of_unit, seed);
  args->length = of_unit; /* for who asks which it was */
  return failed;
}
#endif
