/* Launches by executable graphs of one kernel. From the call to an answer in the host's memory
 * takes 5.2 µs on an H200 where a plain launch takes 7.1: the driver has nearly all in place, and
 * changes the arguments alone. With another kernel or grid than the graph had last it takes 7.4, so
 * that each has a graph of its own. The driver's own functions take 0.4 µs less than the runtime's;
 * what fails by them is tried by the runtime, which says why. */
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdlib.h>

#include "device.h"

enum { GRAPHS = 8 };

typedef struct launch_graph {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t runnable; /* NULL: not made yet */
  cudaFunction_t function;  /* the kernel as the driver knows it */
  const void *kernel;
  unsigned blocks, threads;
  uint64_t used;
} launch_graph;

struct gpr_launcher {
  launch_graph graphs[GRAPHS];
  uint64_t launches;
};

/* NULL where the runtime does not give them. */
static struct {
  pthread_once_t once;
  PFN_cuGraphExecKernelNodeSetParams_v12000 set;
  PFN_cuGraphLaunch_v10000 launch;
} driver = {.once = PTHREAD_ONCE_INIT};

static void find_driver(void) {
#if CUDART_VERSION >= 12050
  enum cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuGraphExecKernelNodeSetParams", (void **)&driver.set, 12000,
                                   cudaEnableDefault, &found);
  cudaGetDriverEntryPointByVersion("cuGraphLaunch", (void **)&driver.launch, 10000,
                                   cudaEnableDefault, &found);
  cudaGetLastError();
#endif
}

gpr_launcher *gpr_cuda_launcher(void) { return calloc(1, sizeof(gpr_launcher)); }

static void unmake(launch_graph *g) {
  if (g->runnable) cudaGraphExecDestroy(g->runnable);
  if (g->graph) cudaGraphDestroy(g->graph);
  cudaGetLastError();
  *g = (launch_graph){NULL};
}

void gpr_cuda_launcher_free(gpr_launcher *launcher) {
  for (int i = 0; launcher && i < GRAPHS; i++) unmake(&launcher->graphs[i]);
  free(launcher);
}

static gpr_status make(launch_graph *g, const struct cudaKernelNodeParams *launch, int device) {
  gpr_status status = check(cudaGraphCreate(&g->graph, 0), "cudaGraphCreate", device);
  if (!status)
    status = check(cudaGraphAddKernelNode(&g->node, g->graph, NULL, 0, launch),
                   "cudaGraphAddKernelNode", device);
  if (!status)
    status = check(cudaGraphInstantiate(&g->runnable, g->graph, 0), "cudaGraphInstantiate", device);
  if (status) unmake(g);
  return status;
}

/* The same kernel with other arguments. */
static int set_by_driver(const launch_graph *g, const struct cudaKernelNodeParams *launch) {
  const CUDA_KERNEL_NODE_PARAMS_v2 params = {.func = g->function,
                                             .gridDimX = launch->gridDim.x,
                                             .gridDimY = 1,
                                             .gridDimZ = 1,
                                             .blockDimX = launch->blockDim.x,
                                             .blockDimY = 1,
                                             .blockDimZ = 1,
                                             .kernelParams = launch->kernelParams};
  return driver.set && driver.set(g->runnable, g->node, &params) == CUDA_SUCCESS;
}

static gpr_status set(launch_graph *g, const struct cudaKernelNodeParams *launch, int device) {
  gpr_status status = GPR_OK;
  if (g->kernel == launch->func && set_by_driver(g, launch)) return GPR_OK;
  if (!g->runnable)
    status = make(g, launch, device);
  else
    status = check(cudaGraphExecKernelNodeSetParams(g->runnable, g->node, launch),
                   "cudaGraphExecKernelNodeSetParams", device);
  g->kernel = NULL;
  if (!status)
    status = check(cudaGetFuncBySymbol(&g->function, launch->func), "cudaGetFuncBySymbol", device);
  if (!status) g->kernel = launch->func;
  return status;
}

/* The one that was made for the launch, or the one that was not used for longest. */
static launch_graph *graph_of(gpr_launcher *launcher, const struct cudaKernelNodeParams *launch) {
  launch_graph *oldest = launcher->graphs;
  for (launch_graph *g = launcher->graphs; g < launcher->graphs + GRAPHS; g++) {
    if (g->runnable && g->kernel == launch->func && g->blocks == launch->gridDim.x &&
        g->threads == launch->blockDim.x)
      return g;
    if (g->used < oldest->used) oldest = g;
  }
  return oldest;
}

gpr_status gpr_cuda_launch(gpr_launcher *launcher, const void *kernel, int64_t blocks, int threads,
                           void **arguments, int device, void *stream) {
  const struct cudaKernelNodeParams launch = {.func = (void *)kernel,
                                              .gridDim = {(unsigned)blocks, 1, 1},
                                              .blockDim = {(unsigned)threads, 1, 1},
                                              .kernelParams = arguments};
  launch_graph *g = graph_of(launcher, &launch);
  pthread_once(&driver.once, find_driver);
  const gpr_status status = set(g, &launch, device);
  if (status) return status;
  g->blocks = launch.gridDim.x;
  g->threads = launch.blockDim.x;
  g->used = ++launcher->launches;
  if (driver.launch && driver.launch(g->runnable, stream) == CUDA_SUCCESS) return GPR_OK;
  return check(cudaGraphLaunch(g->runnable, stream), "the launch of a reduction", device);
}
