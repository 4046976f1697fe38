/* Adding two arrays: to the device, one addition a thread, and back.
 *
 *   nvcc -o add examples/add.cu && ./add */
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000003, THREADS = 256 };

static void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

/* Threads take elements a grid apart, so that any grid does for any n. */
__global__ void add(const float *a, const float *b, float *sum, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum[i] = a[i] + b[i];
}

int main(void) {
  static float a[N], b[N], sum[N];
  float *a_there, *b_there, *sum_there;
  for (int i = 0; i < N; i++) a[i] = (float)i, b[i] = 0.5f;

  check(cudaMalloc(&a_there, sizeof a), "cudaMalloc");
  check(cudaMalloc(&b_there, sizeof b), "cudaMalloc");
  check(cudaMalloc(&sum_there, sizeof sum), "cudaMalloc");
  check(cudaMemcpy(a_there, a, sizeof a, cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(b_there, b, sizeof b, cudaMemcpyHostToDevice), "cudaMemcpy");
  add<<<512, THREADS>>>(a_there, b_there, sum_there, N);
  check(cudaGetLastError(), "the launch");
  check(cudaMemcpy(sum, sum_there, sizeof sum, cudaMemcpyDeviceToHost), "the kernel or the copy");
  check(cudaFree(a_there), "cudaFree");
  check(cudaFree(b_there), "cudaFree");
  check(cudaFree(sum_there), "cudaFree");

  int right = 0;
  for (int i = 0; i < N; i++) right += sum[i] == a[i] + b[i];
  printf("%d of %d sums are right\n", right, N);
  return right == N ? 0 : 1;
}
