/* The lists as data. */
#include "lists.h"

const gpr_op_info gpr_ops[GPR_OP_COUNT] = {
#define GPR_X(id, name, ufunc, alias, flags, operator, sentence) \
  {name, ufunc, alias, flags, sentence},
    GPR_OPS(GPR_X)
#undef GPR_X
};

const gpr_dtype_info gpr_dtypes[GPR_DTYPE_COUNT] = {
#define GPR_X(id, name, kind, bytes, type) {name, kind, bytes},
    GPR_DTYPES(GPR_X)
#undef GPR_X
};

const char *const gpr_chapters[] = GPR_CHAPTERS;

const gpr_kernel_info gpr_kernels[GPR_KERNEL_COUNT] = {
#define GPR_X(id, name, chapter, flags, limit, least, most, unroll, grid, sentence, ...) \
  {name, chapter, flags, limit, least, most, unroll, grid, sentence},
    GPR_KERNELS(GPR_X)
#undef GPR_X
};

const gpr_variant_info gpr_variants[GPR_VARIANT_END] = {{"", ""},
#define GPR_X(id, name, sentence) {name, sentence},
                                                        GPR_VARIANTS(GPR_X)
#undef GPR_X
};

const unsigned char gpr_kernel_dtypes[GPR_DTYPE_COUNT] = {
#define GPR_X(dtype) [GPR_##dtype] = 1,
    GPR_KERNEL_DTYPES(GPR_X)
#undef GPR_X
};
