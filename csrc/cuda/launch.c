/* Launches by executable graphs of one kernel. From the call to an answer in the host's memory
 * takes 5.2 µs on an H200 where a plain launch takes 7.1: the driver has nearly all in place, and
 * changes the arguments alone. With another kernel or grid than the graph had last it takes 7.4, so
 * that each has a graph of its own, once it was launched some times: to make one takes 20. */
#include <stdlib.h>

#include "device.h"

enum { GRAPHS = 32, PLAIN_LAUNCHES = 3 };

typedef struct launch_graph {
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec runnable; /* NULL: not made yet */
  CUfunction function;  /* NULL: of no launch yet */
  unsigned blocks, threads;
  int plain;   /* launches so far without a graph */
  int follows; /* -1: not asked yet */
  uint64_t used;
} launch_graph;

struct gpr_launcher {
  launch_graph graphs[GRAPHS];
  uint64_t launches;
};

static void unmake(launch_graph *g) {
  if (g->runnable) cu.GraphExecDestroy(g->runnable);
  if (g->graph) cu.GraphDestroy(g->graph);
  *g = (launch_graph){.follows = -1};
}

gpr_launcher *gpr_cuda_launcher(void) {
  gpr_launcher *launcher = calloc(1, sizeof *launcher);
  for (int i = 0; launcher && i < GRAPHS; i++) unmake(&launcher->graphs[i]);
  return launcher;
}

void gpr_cuda_launcher_free(gpr_launcher *launcher) {
  for (int i = 0; launcher && i < GRAPHS; i++) unmake(&launcher->graphs[i]);
  free(launcher);
}

static gpr_status make(launch_graph *g, const CUDA_KERNEL_NODE_PARAMS *launch, int device) {
  gpr_status status = check(cu.GraphCreate(&g->graph, 0), "cuGraphCreate", device);
  if (!status)
    status = check(cu.GraphAddKernelNode(&g->node, g->graph, NULL, 0, launch),
                   "cuGraphAddKernelNode", device);
  if (!status)
    status = check(cu.GraphInstantiate(&g->runnable, g->graph, 0), "cuGraphInstantiate", device);
  if (status) unmake(g);
  return status;
}

static gpr_status set(launch_graph *g, const CUDA_KERNEL_NODE_PARAMS *launch, int device) {
  if (!g->runnable) return make(g, launch, device);
  return check(cu.GraphExecKernelNodeSetParams(g->runnable, g->node, launch),
               "cuGraphExecKernelNodeSetParams", device);
}

/* The launch's, or the one that was not used for longest. */
static launch_graph *graph_of(gpr_launcher *launcher, const CUDA_KERNEL_NODE_PARAMS *launch) {
  launch_graph *oldest = launcher->graphs;
  for (launch_graph *g = launcher->graphs; g < launcher->graphs + GRAPHS; g++) {
    if (g->function == launch->func && g->blocks == launch->gridDimX &&
        g->threads == launch->blockDimX)
      return g;
    if (g->used < oldest->used) oldest = g;
  }
  unmake(oldest);
  oldest->function = launch->func;
  oldest->blocks = launch->gridDimX;
  oldest->threads = launch->blockDimX;
  return oldest;
}

static CUDA_KERNEL_NODE_PARAMS params_of(CUfunction function, int64_t blocks, int threads,
                                         void **arguments) {
  return (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                   .gridDimX = (unsigned)blocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = (unsigned)threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = arguments};
}

static gpr_status launch_by_graph(launch_graph *g, const CUDA_KERNEL_NODE_PARAMS *launch,
                                  int device, CUstream stream) {
  gpr_status status = GPR_OK;
  if (g->plain < PLAIN_LAUNCHES) {
    g->plain++;
    return gpr_cuda_start(launch->func, launch->gridDimX, (int)launch->blockDimX,
                          *launch->kernelParams, "the launch of a reduction", device, stream);
  }
  status = set(g, launch, device);
  return status ? status
                : check(cu.GraphLaunch(g->runnable, stream), "the launch of a reduction", device);
}

gpr_status gpr_cuda_launch(gpr_launcher *launcher, CUfunction function, int64_t blocks, int threads,
                           void *arguments, int device, CUstream stream) {
  const CUDA_KERNEL_NODE_PARAMS launch = params_of(function, blocks, threads, &arguments);
  launch_graph *g = graph_of(launcher, &launch);
  g->used = ++launcher->launches;
  return launch_by_graph(g, &launch, device, stream);
}

/* Whether the blocks fill the device, which can begin them early: fewer would crowd where the first
 * ones of the previous launch end. By two blocks a multiprocessor, where three fit, sums of 512 MiB
 * took 169 µs on an H200 in place of 127. */
static int can_follow(const CUDA_KERNEL_NODE_PARAMS *launch, int device) {
  enum { HOPPER = 9 };
  int fit = 0;
  if (gpr_cuda_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) < HOPPER) return 0;
  if (cu.OccupancyMaxActiveBlocksPerMultiprocessor(&fit, launch->func, (int)launch->blockDimX, 0))
    return 0;
  return fit && launch->gridDimX >= (unsigned)(fit * gpr_cuda_multiprocessors(device));
}

gpr_status gpr_cuda_follow(gpr_launcher *launcher, CUfunction function, int64_t blocks, int threads,
                           void *arguments, int device, CUstream stream) {
  const CUDA_KERNEL_NODE_PARAMS launch = params_of(function, blocks, threads, &arguments);
  launch_graph *g = graph_of(launcher, &launch);
  g->used = ++launcher->launches;
  if (g->follows < 0) g->follows = can_follow(&launch, device);
  if (!g->follows) return launch_by_graph(g, &launch, device, stream);
  CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                             .value = {.programmaticStreamSerializationAllowed = 1}};
  const CUlaunchConfig config = {.gridDimX = launch.gridDimX,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = launch.blockDimX,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = stream,
                                 .attrs = &early,
                                 .numAttrs = 1};
  return check(cu.LaunchKernelEx(&config, function, launch.kernelParams, NULL),
               "the launch of a reduction", device);
}
