/* Hello from the device: each thread of a small grid says which one it is.
 *
 *   nvcc -o hello examples/hello.cu && ./hello */
#include <stdio.h>
#include <stdlib.h>

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

__global__ void hello(void) {
  printf("hello from thread %d of block %d\n", threadIdx.x, blockIdx.x);
}

int main(void) {
  printf("hello from the host\n");
  hello<<<2, 4>>>(); /* 2 blocks of 4 threads, in no particular order */
  /* A launch only begins the work. Whether it could begin is known at once; whether it went well,
   * and what it printed, when the host has waited for it. */
  check(cudaGetLastError(), "the launch");
  check(cudaDeviceSynchronize(), "the kernel");
  return 0;
}
