/* Stands in for what calls the CUDA runtime in a build without the CUDA Toolkit. */
#include "../errors.h"
#include "gpu.h"

int gpr_device_count(void) {
  gpr_fail(GPR_DEVICE_ERROR,
           "gpureduce was built without CUDA: install the CUDA Toolkit, so that "
           "nvcc is on PATH or under CUDA_HOME, and build it again");
  return 0;
}

gpr_status gpr_gpu_open(const gpr_plan *plan, int device, gpr_run **run) {
  (void)plan, (void)device;
  *run = NULL;
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}

int gpr_gpu_folds_whole(const gpr_plan *plan) {
  (void)plan;
  return 1;
}

gpr_status gpr_gpu_axes_open(const gpr_plan *plan, int device, gpr_run **run) {
  return gpr_gpu_open(plan, device, run);
}

gpr_status gpr_gpu_ladder_open(const gpr_plan *plan, int kernel, int device, gpr_run **run) {
  (void)kernel;
  return gpr_gpu_open(plan, device, run);
}

gpr_status gpr_gpu_ladder_time(const gpr_plan *plan, int kernel, int device, int repeats,
                               double *milliseconds) {
  (void)plan, (void)kernel, (void)device, (void)repeats, (void)milliseconds;
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}

gpr_status gpr_gpu_shuffle(const char *name, int dtype, int device, gpr_shuffle_args args) {
  (void)name, (void)dtype, (void)device, (void)args;
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}

gpr_status gpr_gpu_segment_sums(const char *name, int dtype, int device, gpr_segment_args args,
                                int repeats, double *milliseconds) {
  (void)name, (void)dtype, (void)device, (void)args, (void)repeats, (void)milliseconds;
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}

gpr_status gpr_gpu_allocate(int device, size_t bytes, void *stream, void **out) {
  (void)device, (void)bytes, (void)stream;
  *out = NULL;
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}

static gpr_status none(void) {
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}

gpr_status gpr_gpu_mark(int device, void *stream, void **mark) {
  (void)device, (void)stream, (void)mark;
  return none();
}

gpr_status gpr_gpu_follow(int device, void *mark, void *stream) {
  (void)device, (void)stream, (void)mark;
  return none();
}

gpr_status gpr_gpu_wait(int device, void *stream) {
  (void)device, (void)stream;
  return none();
}

void gpr_gpu_release(int device, void *memory, void *mark) {
  (void)device, (void)memory, (void)mark;
}

int gpr_gpu_pinned(const void *address) {
  (void)address;
  return 0;
}

int gpr_gpu_device_of(const void *address) {
  (void)address;
  return -1;
}

gpr_status gpr_device_info(int device, gpr_device *out) {
  (void)device, (void)out;
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}

gpr_status gpr_bandwidth_test(int device, int64_t bytes, gpr_bandwidth *out) {
  (void)device, (void)bytes, (void)out;
  gpr_device_count();
  return GPR_DEVICE_ERROR;
}
