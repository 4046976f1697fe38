#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Graphs' nodes by cuGraphAddKernelNode_v2 and what else is called here are of CUDA 12.0. */
enum { OLDEST = 12000 };

gpr_driver cu;
static char missing[256]; /* "": nothing is */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int is_old(void) {
  const CUresult result = cu.DriverGetVersion ? cu.DriverGetVersion(&cu.version) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) {
    snprintf(missing, sizeof missing, "cuDriverGetVersion: error %d of the NVIDIA driver", result);
    return 1;
  }
  if (cu.version >= OLDEST) return 0;
  snprintf(missing, sizeof missing,
           "the NVIDIA driver is for CUDA %d.%d, and gpureduce needs one for CUDA %d.%d or later "
           "(Linux driver 525): update the driver",
           cu.version / 1000, cu.version % 1000 / 10, OLDEST / 1000, OLDEST % 1000 / 10);
  return 1;
}

static void find(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    strcpy(missing, "there is no NVIDIA driver (libcuda.so.1 was not found): install one");
    return;
  }
  const char *lacks = NULL;
#define GPR_X(name, symbol, parameters)        \
  *(void **)&cu.name = dlsym(library, symbol); \
  if (!cu.name && !lacks) lacks = symbol;
  GPR_DRIVER(GPR_X)
#undef GPR_X
  if (is_old()) return;
  if (lacks) snprintf(missing, sizeof missing, "the NVIDIA driver's libcuda.so.1 has no %s", lacks);
}

const char *gpr_driver_open(void) {
  pthread_once(&once, find);
  return *missing ? missing : NULL;
}
