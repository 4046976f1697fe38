/* The one list of element types. Python's names, tests and benchmarks are read from it.
 *
 * X(id, name, kind, bytes, C++ type): name and kind are NumPy's; the C++ type is the storage
 * (kernels/core/types.h). The order is that of the ids, which tables are indexed by. */
#pragma once

#define GPR_DTYPES(X)                                   \
  X(BOOL, "bool", 'b', 1, boolean)                      \
  X(INT8, "int8", 'i', 1, int8_t)                       \
  X(INT16, "int16", 'i', 2, int16_t)                    \
  X(INT32, "int32", 'i', 4, int32_t)                    \
  X(INT64, "int64", 'i', 8, int64_t)                    \
  X(UINT8, "uint8", 'u', 1, uint8_t)                    \
  X(UINT16, "uint16", 'u', 2, uint16_t)                 \
  X(UINT32, "uint32", 'u', 4, uint32_t)                 \
  X(UINT64, "uint64", 'u', 8, uint64_t)                 \
  X(FLOAT16, "float16", 'f', 2, float16)                \
  X(BFLOAT16, "bfloat16", 'V', 2, bfloat16)             \
  X(FLOAT32, "float32", 'f', 4, float)                  \
  X(FLOAT64, "float64", 'f', 8, double)                 \
  X(COMPLEX64, "complex64", 'c', 8, complex<float>)     \
  X(COMPLEX128, "complex128", 'c', 16, complex<double>) \
  X(DATETIME64, "datetime64", 'M', 8, datetime64)       \
  X(TIMEDELTA64, "timedelta64", 'm', 8, timedelta64)

enum gpr_dtype {
#define GPR_X(id, name, kind, bytes, type) GPR_##id,
  GPR_DTYPES(GPR_X)
#undef GPR_X
      GPR_DTYPE_COUNT,
  GPR_NO_DTYPE = -1
};
