/* Sums of segments, and how long each way to hand the segments to the blocks takes. */
#include <string.h>

#include "../../kernels/abi/lists.h"
#include "../errors.h"
#include "gpu.h"
#include "device.h"

/* What one call has on the device. */
typedef struct segments {
  int device, blocks;
  gpr_program *kernel;
  CUfunction function; /* the kernel's */
  gpr_segment_args args;
  void *data, *offset;
  CUevent begin, end;
} segments;

static gpr_status bring(segments *s, const gpr_segment_args *here, size_t bytes) {
  const size_t list = (size_t)here->count * sizeof *here->offset;
  gpr_status status;
  s->args = *here;
  s->args.sum = NULL;
  if ((status = CU(s->device, MemAlloc, &s->data, bytes + !bytes)) ||
      (status = CU(s->device, MemAlloc, &s->offset, list)) ||
      (status = CU(s->device, MemAlloc, &s->args.sum, list)) ||
      (status = CU(s->device, MemAlloc, &s->args.next, sizeof *s->args.next)) ||
      (status = CU(s->device, MemcpyHtoD, s->data, here->data, bytes)) ||
      (status = CU(s->device, MemcpyHtoD, s->offset, here->offset, list)) ||
      (status = CU(s->device, EventCreate, &s->begin, CU_EVENT_DEFAULT)) ||
      (status = CU(s->device, EventCreate, &s->end, CU_EVENT_DEFAULT)))
    return status;
  s->args.data = s->data;
  s->args.offset = s->offset;
  return GPR_OK;
}

static void release(segments *s) {
  if (s->end) cu.EventDestroy(s->end);
  if (s->begin) cu.EventDestroy(s->begin);
  if (s->args.next) cu.MemFree(s->args.next);
  if (s->args.sum) cu.MemFree(s->args.sum);
  if (s->offset) cu.MemFree(s->offset);
  if (s->data) cu.MemFree(s->data);
}

/* As many blocks as the device holds at once: more would only wait for the first to end. */
static gpr_status shape_grid(segments *s) {
  int each;
  gpr_status status;
  if ((status = gpr_cuda_function_now(s->kernel, s->device, &s->function)) ||
      (status = CU(s->device, OccupancyMaxActiveBlocksPerMultiprocessor, &each, s->function,
                   GPR_SEGMENT_THREADS, 0)))
    return status;
  const int64_t most = (int64_t)gpr_cuda_multiprocessors(s->device) * each;
  s->blocks = (int)(s->args.count < most ? s->args.count : most);
  return GPR_OK;
}

static gpr_status launch(segments *s, double *milliseconds) {
  float time = 0;
  gpr_status status;
  if ((status = CU(s->device, MemsetD8Async, s->args.next, 0, sizeof *s->args.next, NULL)) ||
      (status = CU(s->device, EventRecord, s->begin, NULL)) ||
      (status = gpr_cuda_start(s->function, s->blocks, GPR_SEGMENT_THREADS, &s->args,
                               "the launch of the sums", s->device, NULL)) ||
      (status = CU(s->device, EventRecord, s->end, NULL)) ||
      (status = check(cu.EventSynchronize(s->end), "sums of segments", s->device)) ||
      (status = CU(s->device, EventElapsedTime, &time, s->begin, s->end)))
    return status;
  *milliseconds = time;
  return GPR_OK;
}

static gpr_status run(segments *s, const gpr_segment_args *here, size_t bytes, int repeats,
                      double *milliseconds) {
  gpr_status status = bring(s, here, bytes);
  if (!status) status = shape_grid(s);
  for (int i = 0; !status && i < repeats; i++) status = launch(s, milliseconds + i);
  if (status) return status;
  return CU(s->device, MemcpyDtoH, here->sum, s->args.sum, (size_t)here->count * sizeof *here->sum);
}

gpr_status gpr_gpu_segment_sums(const char *name, int dtype, int device, gpr_segment_args args,
                                int repeats, double *milliseconds) {
  const gpr_segment_row *row = gpr_segment_table_cuda.row;
  const gpr_segment_row *end = row + GPR_SEGMENT_KERNEL_COUNT;
  CUcontext before;
  while (row < end && strcmp(row->name, name)) row++;
  if (row == end) return gpr_fail(GPR_BAD_VALUE, "no kernel for segments is called %s", name);
  if (!row->kernel[dtype])
    return gpr_fail(GPR_BAD_TYPE, "%s: not defined for dtype %s", name, gpr_dtypes[dtype].name);
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  segments s = {.device = device, .kernel = row->kernel[dtype]};
  const size_t bytes = (size_t)args.n * (size_t)gpr_dtypes[dtype].bytes;
  if (args.count) status = run(&s, &args, bytes, repeats, milliseconds);
  release(&s);
  gpr_cuda_leave(device, before);
  return status;
}
