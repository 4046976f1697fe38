/* Filling an array: a thread for each element, and a copy back to look at it.
 *
 *   nvcc -o fill examples/fill.cu && ./fill */
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000003, THREADS = 256 };

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

/* The last block reaches beyond the array's end. */
__global__ void fill(int *x, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}

int main(void) {
  static int here[N];
  int *there;
  check(cudaMalloc(&there, sizeof here), "cudaMalloc");
  fill<<<(N + THREADS - 1) / THREADS, THREADS>>>(there, N, 7);
  check(cudaGetLastError(), "the launch");
  check(cudaMemcpy(here, there, sizeof here, cudaMemcpyDeviceToHost), "the kernel or the copy");
  check(cudaFree(there), "cudaFree");

  int right = 0;
  for (int i = 0; i < N; i++) right += here[i] == 7;
  printf("%d of %d elements are 7\n", right, N);
  return right == N ? 0 : 1;
}
