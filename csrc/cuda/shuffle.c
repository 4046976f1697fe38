/* The shuffles: values in, one launch, values out. */
#include <cuda_runtime.h>
#include <string.h>

#include "../../kernels/lists.h"
#include "../errors.h"
#include "gpu.h"
#include "device.h"

static gpr_status launch(const gpr_shuffle_row *row, int dtype, int device, gpr_shuffle_args args) {
  const int64_t lanes = (args.n + row->values - 1) / row->values;
  const int64_t blocks = (lanes + GPR_SHUFFLE_THREADS - 1) / GPR_SHUFFLE_THREADS;
  void *arguments[] = {&args};
  return check(cudaLaunchKernel((const void *)row->kernel[dtype], (dim3){(unsigned)blocks, 1, 1},
                                (dim3){GPR_SHUFFLE_THREADS, 1, 1}, arguments, 0, NULL),
               "the launch of a shuffle", device);
}

static gpr_status run(const gpr_shuffle_row *row, int dtype, int device, gpr_shuffle_args args) {
  const size_t bytes = (size_t)args.n * (size_t)gpr_dtypes[dtype].bytes;
  gpr_shuffle_args there = args;
  void *data = NULL;
  gpr_status status;
  there.out = NULL;
  if ((status = check(cudaMalloc(&data, bytes), "cudaMalloc", device)) ||
      (status = check(cudaMalloc(&there.out, bytes), "cudaMalloc", device)) ||
      (status =
           check(cudaMemcpy(data, args.data, bytes, cudaMemcpyHostToDevice), "cudaMemcpy", device)))
    goto fail;
  there.data = data;
  if ((status = launch(row, dtype, device, there))) goto fail;
  status =
      check(cudaMemcpy(args.out, there.out, bytes, cudaMemcpyDeviceToHost), "a shuffle", device);
fail:
  cudaFree(there.out);
  cudaFree(data);
  return status;
}

gpr_status gpr_gpu_shuffle(const char *name, int dtype, int device, gpr_shuffle_args args) {
  const gpr_shuffle_row *row = gpr_shuffle_table_cuda.row;
  const gpr_shuffle_row *end = row + GPR_SHUFFLE_COUNT;
  int before;
  while (row < end && strcmp(row->name, name)) row++;
  if (row == end) return gpr_fail(GPR_BAD_VALUE, "no shuffle is called %s", name);
  if (!row->kernel[dtype])
    return gpr_fail(GPR_BAD_TYPE, "%s: not defined for dtype %s", name, gpr_dtypes[dtype].name);
  gpr_status status = gpr_cuda_enter(device, &before);
  if (status) return status;
  if (args.n) status = run(row, dtype, device, args);
  cudaSetDevice(before);
  return status;
}
