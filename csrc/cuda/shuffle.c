/* The shuffles: values in, one launch, values out. */
#include <string.h>

#include "../../kernels/abi/lists.h"
#include "../errors.h"
#include "gpu.h"
#include "device.h"

static gpr_status launch(const gpr_shuffle_row *row, int dtype, int device, gpr_shuffle_args args) {
  const int64_t lanes = (args.n + row->values - 1) / row->values;
  const int64_t blocks = (lanes + GPR_SHUFFLE_THREADS - 1) / GPR_SHUFFLE_THREADS;
  CUfunction function;
  const gpr_status status = gpr_cuda_function_now(row->kernel[dtype], device, &function);
  if (status) return status;
  return gpr_cuda_start(function, blocks, GPR_SHUFFLE_THREADS, &args, "the launch of a shuffle",
                        device, NULL);
}

static gpr_status run(const gpr_shuffle_row *row, int dtype, int device, gpr_shuffle_args args) {
  const size_t bytes = (size_t)args.n * (size_t)gpr_dtypes[dtype].bytes;
  gpr_shuffle_args there = args;
  void *data = NULL;
  gpr_status status;
  there.out = NULL;
  if ((status = CU(device, MemAlloc, &data, bytes)) ||
      (status = CU(device, MemAlloc, &there.out, bytes)) ||
      (status = CU(device, MemcpyHtoD, data, args.data, bytes)))
    goto fail;
  there.data = data;
  if ((status = launch(row, dtype, device, there))) goto fail;
  status = check(cu.MemcpyDtoH(args.out, there.out, bytes), "a shuffle", device);
fail:
  if (there.out) cu.MemFree(there.out);
  if (data) cu.MemFree(data);
  return status;
}

gpr_status gpr_gpu_shuffle(const char *name, int dtype, int device, gpr_shuffle_args args) {
  const gpr_shuffle_row *row = gpr_shuffle_table_cuda.row;
  const gpr_shuffle_row *end = row + GPR_SHUFFLE_COUNT;
  while (row < end && strcmp(row->name, name)) row++;
  if (row == end) return gpr_fail(GPR_BAD_VALUE, "no shuffle is called %s", name);
  if (!row->kernel[dtype])
    return gpr_fail(GPR_BAD_TYPE, "%s: not defined for dtype %s", name, gpr_dtypes[dtype].name);
  return ON(device, args.n ? run(row, dtype, device, args) : GPR_OK);
}
