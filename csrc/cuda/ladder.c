/* The textbook kernels: launched by their table, on memory that is theirs for one call. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

#include "../../kernels/abi/ladder_rows.h"
#include "../../kernels/abi/lists.h"
#include "../errors.h"
#include "device.h"
#include "../pack.h"

/* Where things lie in the scratch; the copy is behind the partial results. */
enum { RESULT_AT = 64, PARTIALS_AT = 256, TICKET_BYTES = 64, RESULT_BYTES = 64 };
/* What is read between two timings, in sizes of the L2 cache: what a run left there is pushed out,
 * and the device is busy until the launches that are timed have arrived. */
enum { COLD_CACHES = 4 };
/* The library's own kernel folds what lies on the device in pieces of this size. */
#define PIECE_BYTES (INT64_C(1) << 32)
#define ELEMENTS_MAX (INT64_C(1) << 56) /* sizes in bytes are not to overflow */

typedef struct ladder {
  gpr_run base;
  gpr_plan plan;
  int device, threads, bytes; /* bytes: of an element in the row's dtype */
  const gpr_kernel_info *about;
  const gpr_ladder_row *row;
  gpr_program *kernel;                     /* NULL: the library's own */
  const gpr_gpu_row *flat;                 /* which is this */
  gpr_answer *answer;                      /* and answers here */
  CUfunction function;                     /* of the one or of the other */
  CUfunction lift, partials, gather, read; /* those that are needed */
  uint32_t epoch;
  void *array; /* the elements, where they did not lie on the device ready to be read */
  char *scratch;
  gpr_ladder_args args;
  _Alignas(16) char result[RESULT_BYTES];
} ladder;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t rounds(int64_t n, int64_t of) { return (n + of - 1) / of; }

/* Elements on the device that are not ready to be read there. */
static int is_gathered(const ladder *l) {
  return l->plan.count > 0 && l->plan.device >= 0 && !l->plan.direct;
}

static const gpr_ladder_row *row_of(const gpr_row *wanted) {
  for (int i = 0; i < gpr_ladder_table_cuda.rows; i++) {
    const gpr_ladder_row *row = &gpr_ladder_table_cuda.row[i];
    if (row->op == wanted->op && row->dtype == wanted->dtype) return row;
  }
  return NULL;
}

/* As few threads a block as take the array, then as many blocks as the kernel's rule wants. */
static void shape_grid(ladder *l) {
  const gpr_kernel_info *k = l->about;
  const int64_t n = l->plan.count;
  const int held =
      gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, l->device);
  int size = 0;
  l->threads = k->least;
  while (l->threads < k->most && (int64_t)l->threads * k->unroll < n) l->threads *= 2;
  while (GPR_KERNEL_LEAST_BLOCK << size < l->threads) size++;
  const int64_t tile = (int64_t)l->threads * k->unroll;
  int64_t blocks = n ? rounds(n, tile) : 1;
  if (k->grid == GPR_ONE_BLOCK) blocks = 1;
  if (k->grid == GPR_FULL_DEVICE)
    blocks = least(blocks, (int64_t)gpr_cuda_multiprocessors(l->device) *
                               (held > l->threads ? held / l->threads : 1));
  l->kernel = l->row->kernel[k - gpr_kernels][size];
  l->args.n = n;
  l->args.blocks = blocks;
  l->args.copied = k->flags & GPR_IN_PLACE ? blocks * tile : 0;
}

static void set(ladder *l, const gpr_plan *plan, int kernel, int device) {
  memset(l, 0, sizeof *l);
  l->plan = *plan;
  l->device = device;
  l->bytes = gpr_dtypes[plan->row->dtype].bytes * plan->row->scalars;
  l->about = &gpr_kernels[kernel];
  l->row = row_of(plan->row);
  l->flat = &gpr_gpu_table_cuda.row[plan->row->op * GPR_DTYPE_COUNT + plan->row->dtype];
  l->args.n = plan->count;
  if (kernel != GPR_KERNEL_DEFAULT) shape_grid(l);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void release(ladder *l) {
  if (l->array) cu.MemFree(l->array);
  if (l->scratch) cu.MemFree(l->scratch);
  if (l->answer) cu.MemFreeHost(l->answer);
  l->array = l->scratch = NULL;
  l->answer = NULL;
}

static gpr_status pack_in(ladder *l) {
  enum { BLOCK = 1024 };
  _Alignas(64) char packed[BLOCK * 16], scratch[BLOCK * 16];
  const int64_t block = BLOCK / l->plan.row->scalars;
  gpr_status status = GPR_OK;
  for (int64_t i = 0; !status && i < l->plan.count; i += block) {
    const int64_t m = least(block, l->plan.count - i);
    gpr_pack(&l->plan, l->plan.data, i, m, packed, scratch);
    status =
        CU(l->device, MemcpyHtoD, (char *)l->array + i * l->bytes, packed, (size_t)(m * l->bytes));
  }
  return status;
}

/* The elements on the device: where they lie, or copied or gathered there. */
static gpr_status bring(ladder *l) {
  const gpr_plan *p = &l->plan;
  const int64_t n = p->count;
  l->args.data = p->data;
  if (n == 0 || (p->device >= 0 && p->direct)) return GPR_OK;
  gpr_status status = CU(l->device, MemAlloc, &l->array, (size_t)(n * l->bytes));
  if (status) return status;
  l->args.data = l->array;
  if (is_gathered(l)) return gpr_cuda_gather(l->gather, p, 0, n, l->array, l->device, p->stream);
  if (!p->direct) return pack_in(l);
  return CU(l->device, MemcpyHtoD, l->array, p->data, (size_t)(n * l->bytes));
}

/* All of them first: nothing is to be compiled between two launches. */
static gpr_status find_functions(ladder *l) {
  gpr_program *own = l->kernel ? l->kernel : l->flat->flat;
  gpr_status status = gpr_cuda_function_now(own, l->device, &l->function);
  if (!status && l->args.copied) status = gpr_cuda_function_now(l->row->lift, l->device, &l->lift);
  if (!status && (l->about->flags & GPR_SECOND_LAUNCH))
    status = gpr_cuda_function_now(l->row->partials, l->device, &l->partials);
  if (!status && is_gathered(l))
    status = gpr_cuda_function_now(gpr_gpu_table_cuda.gather, l->device, &l->gather);
  return status;
}

static gpr_status make_ready(ladder *l) {
  if (l->plan.count > ELEMENTS_MAX)
    return gpr_fail(GPR_OUT_OF_MEMORY, "cuda:%d has no memory for %lld elements", l->device,
                    (long long)l->plan.count);
  gpr_status status = find_functions(l);
  if (status) return status;
  const size_t value = l->row ? (size_t)l->row->value_bytes : 0;
  const size_t copy_at = (PARTIALS_AT + (size_t)l->args.blocks * value + 255) & ~(size_t)255;
  const size_t bytes =
      l->kernel ? copy_at + (size_t)l->args.copied * value : gpr_gpu_table_cuda.scratch_bytes;
  status = CU(l->device, MemAlloc, &l->scratch, bytes);
  if (status) return status;
  l->args.ticket = (uint32_t *)l->scratch;
  l->args.result = l->scratch + RESULT_AT;
  l->args.partials = l->scratch + PARTIALS_AT;
  l->args.copy = l->scratch + copy_at;
  if (!l->kernel) {
    const size_t words = (size_t)gpr_cuda_answer_words(l->device) * sizeof *l->answer;
    const unsigned pinning = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    if ((status = CU(l->device, MemsetD8Async, l->scratch, 0, bytes, l->plan.stream)) ||
        (status = CU(l->device, MemHostAlloc, &l->answer, words, pinning)))
      return status;
  }
  return bring(l);
}

/* --- launches --------------------------------------------------------------------------------- */

static gpr_status launch(ladder *l, CUfunction function, int64_t blocks, int threads) {
  return gpr_cuda_start(function, blocks, threads, &l->args, l->about->name, l->device,
                        l->plan.stream);
}

/* What a kernel finds: the ticket at 0, and a copy that it may write. */
static gpr_status lay_out(ladder *l) {
  if (!l->kernel) return GPR_OK;
  const gpr_status status =
      CU(l->device, MemsetD8Async, l->args.ticket, 0, TICKET_BYTES, l->plan.stream);
  if (status || !l->args.copied) return status;
  return launch(l, l->lift, least(rounds(l->args.copied, GPR_LADDER_THREADS), GPR_GPU_BLOCKS_MAX),
                GPR_LADDER_THREADS);
}

static gpr_status fold_default(ladder *l) {
  const int64_t piece = PIECE_BYTES / l->bytes;
  gpr_status status = GPR_OK;
  for (int64_t i = 0; !status && i < l->args.n; i += piece) {
    const int64_t n = least(piece, l->args.n - i);
    gpr_flat_args args = {.data = (const char *)l->args.data + i * l->bytes,
                          .n = n,
                          .index = i,
                          .scratch = l->scratch,
                          .answer = l->answer,
                          .epoch = ++l->epoch};
    status = gpr_cuda_start(l->function, gpr_cuda_blocks(l->flat, n * l->bytes, l->device),
                            l->flat->threads, &args, "the launch of a reduction", l->device,
                            l->plan.stream);
  }
  return status;
}

/* What is timed. */
static gpr_status fold(ladder *l) {
  if (!l->kernel) return fold_default(l);
  const gpr_status status = launch(l, l->function, l->args.blocks, l->threads);
  if (status || !(l->about->flags & GPR_SECOND_LAUNCH)) return status;
  return launch(l, l->partials, 1, GPR_LADDER_THREADS);
}

/* --- a run ------------------------------------------------------------------------------------ */

static gpr_status work(ladder *l) {
  gpr_status status;
  if (!(status = make_ready(l)) && !(status = lay_out(l)) && !(status = fold(l)) &&
      !(status = CU(l->device, MemcpyAsync, l->result, l->args.result, (size_t)l->row->result_bytes,
                    l->plan.stream)))
    status = check(cu.StreamSynchronize(l->plan.stream), l->about->name, l->device);
  release(l);
  return status;
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  ladder *l = (ladder *)base;
  (void)nanoseconds;
  return ON(l->device, work(l));
}

static gpr_status finish(gpr_run *base, const void *initial, void *result) {
  const ladder *l = (const ladder *)base;
  (void)initial; /* refused where kernels are asked for */
  memcpy(result, l->result, (size_t)l->row->result_bytes);
  return GPR_OK;
}

static void close_run(gpr_run *base) { free(base); }

static const gpr_backend backend = {step, finish, close_run, NULL};

gpr_status gpr_gpu_ladder_open(const gpr_plan *plan, int kernel, int device, gpr_run **run) {
  CUcontext before;
  *run = NULL;
  const gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  ladder *l = malloc(sizeof *l);
  if (l) set(l, plan, kernel, device);
  gpr_cuda_leave(device, before);
  if (!l) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  l->base.backend = &backend;
  *run = &l->base;
  return GPR_OK;
}

/* --- times ------------------------------------------------------------------------------------ */

static gpr_status read_through(const ladder *l, void *cold, int64_t bytes) {
  gpr_read_args args = {.data = cold, .bytes = bytes, .never = cold};
  const int64_t blocks = (int64_t)gpr_cuda_multiprocessors(l->device) * GPR_READ_BLOCKS;
  return gpr_cuda_start(l->read, blocks, GPR_READ_THREADS, &args, "the launch of a read", l->device,
                        l->plan.stream);
}

static gpr_status time_once(ladder *l, void *cold, int64_t bytes, CUevent begin, CUevent end,
                            double *milliseconds) {
  const CUstream stream = l->plan.stream;
  float time = 0;
  gpr_status status = lay_out(l);
  if (status || (status = read_through(l, cold, bytes)) ||
      (status = CU(l->device, EventRecord, begin, stream)) || (status = fold(l)) ||
      (status = CU(l->device, EventRecord, end, stream)) ||
      (status = check(cu.EventSynchronize(end), l->about->name, l->device)) ||
      (status = CU(l->device, EventElapsedTime, &time, begin, end)))
    return status;
  *milliseconds = time;
  return GPR_OK;
}

gpr_status gpr_gpu_ladder_time(const gpr_plan *plan, int kernel, int device, int repeats,
                               double *milliseconds) {
  ladder l;
  void *cold = NULL;
  CUevent begin = NULL, end = NULL;
  CUcontext before;
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  set(&l, plan, kernel, device);
  const int64_t cache = gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  const int64_t bytes = cache * COLD_CACHES + 16;
  if ((status = gpr_cuda_function_now(gpr_gpu_table_cuda.read, device, &l.read)) ||
      (status = CU(device, MemAlloc, &cold, (size_t)bytes)) ||
      (status = CU(device, MemsetD8Async, cold, 0, (size_t)bytes, plan->stream)) ||
      (status = CU(device, EventCreate, &begin, CU_EVENT_DEFAULT)) ||
      (status = CU(device, EventCreate, &end, CU_EVENT_DEFAULT)) || (status = make_ready(&l)))
    goto fail;
  for (int i = -1; !status && i < repeats; i++) /* the first is not counted */
    status = time_once(&l, cold, bytes, begin, end, &milliseconds[i < 0 ? 0 : i]);
fail:
  if (end) cu.EventDestroy(end);
  if (begin) cu.EventDestroy(begin);
  if (cold) cu.MemFree(cold);
  release(&l);
  gpr_cuda_leave(device, before);
  return status;
}
