/* Sums of segments, and how long each way to hand the segments to the blocks takes. */
#include <cuda_runtime.h>
#include <string.h>

#include "../../kernels/lists.h"
#include "../errors.h"
#include "gpu.h"
#include "device.h"

/* What one call has on the device. */
typedef struct segments {
  int device, blocks;
  void (*kernel)(gpr_segment_args args);
  gpr_segment_args args;
  void *data, *offset;
  cudaEvent_t begin, end;
} segments;

static gpr_status bring(segments *s, const gpr_segment_args *here, size_t bytes) {
  const size_t list = (size_t)here->count * sizeof *here->offset;
  gpr_status status;
  s->args = *here;
  s->args.sum = NULL;
  if ((status = check(cudaMalloc(&s->data, bytes), "cudaMalloc", s->device)) ||
      (status = check(cudaMalloc(&s->offset, list), "cudaMalloc", s->device)) ||
      (status = check(cudaMalloc((void **)&s->args.sum, list), "cudaMalloc", s->device)) ||
      (status = check(cudaMalloc((void **)&s->args.next, sizeof *s->args.next), "cudaMalloc",
                      s->device)) ||
      (status = check(cudaMemcpy(s->data, here->data, bytes, cudaMemcpyHostToDevice), "cudaMemcpy",
                      s->device)) ||
      (status = check(cudaMemcpy(s->offset, here->offset, list, cudaMemcpyHostToDevice),
                      "cudaMemcpy", s->device)) ||
      (status = check(cudaEventCreate(&s->begin), "cudaEventCreate", s->device)) ||
      (status = check(cudaEventCreate(&s->end), "cudaEventCreate", s->device)))
    return status;
  s->args.data = s->data;
  s->args.offset = s->offset;
  return GPR_OK;
}

static void release(segments *s) {
  if (s->end) cudaEventDestroy(s->end);
  if (s->begin) cudaEventDestroy(s->begin);
  cudaFree(s->args.next);
  cudaFree(s->args.sum);
  cudaFree(s->offset);
  cudaFree(s->data);
}

/* As many blocks as the device holds at once: more would only wait for the first to end. */
static gpr_status shape_grid(segments *s) {
  int multiprocessors, each;
  gpr_status status;
  if ((status = check(
           cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, s->device),
           "cudaDeviceGetAttribute", s->device)) ||
      (status = check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, (const void *)s->kernel,
                                                                    GPR_SEGMENT_THREADS, 0),
                      "cudaOccupancyMaxActiveBlocksPerMultiprocessor", s->device)))
    return status;
  const int64_t most = (int64_t)multiprocessors * each;
  s->blocks = (int)(s->args.count < most ? s->args.count : most);
  return GPR_OK;
}

static gpr_status launch(segments *s, double *milliseconds) {
  void *arguments[] = {&s->args};
  float time = 0;
  gpr_status status;
  if ((status = check(cudaMemsetAsync(s->args.next, 0, sizeof *s->args.next, NULL), "cudaMemset",
                      s->device)) ||
      (status = check(cudaEventRecord(s->begin, NULL), "cudaEventRecord", s->device)) ||
      (status = check(cudaLaunchKernel((const void *)s->kernel, (dim3){(unsigned)s->blocks, 1, 1},
                                       (dim3){GPR_SEGMENT_THREADS, 1, 1}, arguments, 0, NULL),
                      "the launch of the sums", s->device)) ||
      (status = check(cudaEventRecord(s->end, NULL), "cudaEventRecord", s->device)) ||
      (status = check(cudaEventSynchronize(s->end), "sums of segments", s->device)) ||
      (status =
           check(cudaEventElapsedTime(&time, s->begin, s->end), "cudaEventElapsedTime", s->device)))
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
  return check(cudaMemcpy(here->sum, s->args.sum, (size_t)here->count * sizeof *here->sum,
                          cudaMemcpyDeviceToHost),
               "cudaMemcpy", s->device);
}

gpr_status gpr_gpu_segment_sums(const char *name, int dtype, int device, gpr_segment_args args,
                                int repeats, double *milliseconds) {
  const gpr_segment_row *row = gpr_segment_table_cuda.row;
  const gpr_segment_row *end = row + GPR_SEGMENT_KERNEL_COUNT;
  int before;
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
  cudaSetDevice(before);
  return status;
}
