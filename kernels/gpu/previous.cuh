/* A kernel's blocks come to the multiprocessors while the last ones of the kernel before it on the
 * stream still run there, and touch no memory before that one has ended. The host asks for it by
 * gpr_cuda_follow(); otherwise this is nothing. */
#ifndef GPR_PREVIOUS_CUH
#define GPR_PREVIOUS_CUH

#include "../core/portable.h"

GPR_OPEN

/* The first that a kernel does which may be launched so. */
__device__ __forceinline__ void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

GPR_CLOSE
#endif
