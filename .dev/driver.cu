#include "../kernels/axes.h"
#include "../kernels/ops.h"
#include "../kernels/dtypes.h"
#include <cuda_runtime.h>
#include <string.h>
#include <stdio.h>
#include "../kernels/read_only.cuh"
static const char *const op_names[] = {
#define GPR_X(id, name, ...) name,
  GPR_OPS(GPR_X)
#undef GPR_X
};
static const char *const dtype_names[] = {
#define GPR_X(id, name, ...) name,
  GPR_DTYPES(GPR_X)
#undef GPR_X
};
extern "C" {
int dev_op(const char *n) { for (int i = 0; i < GPR_OP_COUNT; i++) if (!strcmp(n, op_names[i])) return i; return -1; }
int dev_dtype(const char *n) { for (int i = 0; i < GPR_DTYPE_COUNT; i++) if (!strcmp(n, dtype_names[i])) return i; return -1; }
static void *scratch; static size_t scratch_bytes; static int sms;
int dev_sms() { if (!sms) cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0); return sms; }
static int prepare(int op, int dtype, gpr_axes_args *a, gpr_axes_launch *l) {
  if (gpr_axes_table_cuda.launch(op, dtype, dev_sms(), a, l)) return -1;
  if (l->scratch > scratch_bytes) {
    cudaFree(scratch);
    scratch_bytes = l->scratch * 2;
    if (cudaMalloc(&scratch, scratch_bytes)) return -2;
    cudaMemset(scratch, 0, scratch_bytes);
  }
  a->scratch = scratch;
  return 0;
}
/* dims: shape, strides, where_strides of kept then reduced */
static void fill(gpr_axes_args *a, const void *data, const void *where, void *out, int kept, int reduced,
                 const int64_t *shape, const int64_t *strides, const int64_t *wstrides) {
  memset(a, 0, sizeof *a);
  a->data = (const char *)data; a->where = (const char *)where; a->out = (char *)out;
  a->kept = kept; a->reduced = reduced; a->outputs = a->count = 1;
  for (int i = 0; i < kept + reduced; i++) {
    a->shape[i] = shape[i]; a->strides[i] = strides[i]; a->where_strides[i] = wstrides ? wstrides[i] : 0;
    if (i < kept) a->outputs *= shape[i]; else a->count *= shape[i];
  }
}
int dev_run(int op, int dtype, const void *data, const void *where, void *out, int kept, int reduced,
            const int64_t *shape, const int64_t *strides, const int64_t *wstrides, const void *initial, int ibytes,
            int skip, int64_t *info) {
  gpr_axes_args a; gpr_axes_launch l;
  fill(&a, data, where, out, kept, reduced, shape, strides, wstrides);
  a.skip = skip;
  if (initial) { a.has_initial = 1; memcpy(a.initial, initial, ibytes); }
  int r = prepare(op, dtype, &a, &l);
  if (r) return r;
  info[0] = l.blocks; info[1] = a.split; info[2] = a.team; info[3] = a.rows; info[4] = (int64_t)l.scratch; info[5] = (int64_t)(uintptr_t)l.kernel; info[6]=a.tiles; info[7]=a.pitch;
  void *args[] = {&a};
  cudaLaunchKernel(l.kernel, dim3((unsigned)l.blocks), dim3(l.threads), args, 0, 0);
  cudaError_t e = cudaDeviceSynchronize();
  if (e) { printf("CUDA: %s\n", cudaGetErrorString(e)); fflush(stdout); return 1000 + e; }
  return 0;
}
/* milliseconds a launch, rotating over `copies` arrays, best of 5 */
double dev_time(int op, int dtype, const void **data, int copies, void *out, int kept, int reduced,
                const int64_t *shape, const int64_t *strides, int times, int skip) {
  gpr_axes_args a[16]; gpr_axes_launch l;
  for (int i = 0; i < copies; i++) { fill(a + i, data[i], 0, out, kept, reduced, shape, strides, 0); a[i].skip = skip; if (prepare(op, dtype, a + i, &l)) return -1; }
  cudaEvent_t b, e; cudaEventCreate(&b); cudaEventCreate(&e);
  float best = 1e9f;
  for (int k = 0; k < 4; k++) {
    cudaEventRecord(b, 0);
    for (int i = 0; i < times; i++) {
      void *args[] = {a + i % copies};
      cudaLaunchKernel(l.kernel, dim3((unsigned)l.blocks), dim3(l.threads), args, 0, 0);
    }
    cudaEventRecord(e, 0); cudaEventSynchronize(e);
    float ms; cudaEventElapsedTime(&ms, b, e);
    if (ms / times < best) best = ms / times;
  }
  if (cudaGetLastError()) return -2;
  return best;
}
double dev_read(const void **data, int copies, int64_t bytes, void *never, int times) {
  cudaEvent_t b, e; cudaEventCreate(&b); cudaEventCreate(&e);
  float best = 1e9f;
  for (int k = 0; k < 4; k++) {
    cudaEventRecord(b, 0);
    for (int i = 0; i < times; i++) {
      gpr_read_args a = {data[i % copies], bytes, (uint32_t *)never};
      void *args[] = {&a};
      cudaLaunchKernel((const void *)gpr::read_only, dim3(dev_sms() * GPR_READ_BLOCKS), dim3(GPR_READ_THREADS), args, 0, 0);
    }
    cudaEventRecord(e, 0); cudaEventSynchronize(e);
    float ms; cudaEventElapsedTime(&ms, b, e);
    if (ms / times < best) best = ms / times;
  }
  return best;
}
const char *dev_name(int64_t kernel) {
  const char *name = "?"; cudaFuncGetName(&name, (const void *)kernel); return name;
}
void dev_attr(int64_t kernel, int *out) {
  cudaFuncAttributes t; cudaFuncGetAttributes(&t, (const void *)kernel);
  out[0] = t.numRegs; out[1] = (int)t.localSizeBytes; out[2] = (int)t.sharedSizeBytes;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(out + 3, (const void *)kernel, 256, 0);
}
}
