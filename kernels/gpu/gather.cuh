/* From any strides, byte order and dtype on the device to contiguous elements of a row's dtype. */
#pragma once

#include "../abi/rows.h"
#include "any_dtype.cuh"

GPR_OPEN

static __global__ void __launch_bounds__(GPR_GATHER_THREADS) gather(gpr_gather_args args) {
  const int64_t all = (int64_t)gridDim.x * GPR_GATHER_THREADS;
  const int out_bytes = dtype_bytes(args.to);
  for (int64_t i = (int64_t)blockIdx.x * GPR_GATHER_THREADS + threadIdx.x; i < args.n; i += all) {
    const char *from = args.data;
    int64_t rest = args.start + i;
    for (int d = args.ndim - 1; d > 0; d--) {
      from += rest % args.shape[d] * args.strides[d];
      rest /= args.shape[d];
    }
    from += rest * args.strides[0];
    char *to = args.out + i * out_bytes;
    if (args.from == args.to) {
      if (args.swap || !copy_aligned(to, from, args.bytes))
        copy_element(to, from, args.bytes, args.swap);
    } else {
      char native[16];
      copy_element(native, from, args.bytes, args.swap);
      convert_element(to, native, args.from, args.to);
    }
  }
}

GPR_CLOSE
