/* DLPack: dmlc/dlpack's dlpack.h, version 0 of the ABI and the exchange of version 1, as far as
 * they are needed. */
#pragma once

#include <stdint.h>
#include <string.h>

enum { GPR_DL_CUDA = 2, GPR_DL_CUDA_MANAGED = 13 };

typedef struct gpr_dl_tensor {
  void *data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides; /* in elements; no strides: C order */
  uint64_t byte_offset;
} gpr_dl_tensor;

typedef struct gpr_dl_managed {
  gpr_dl_tensor tensor;
  void *context;
  void (*deleter)(struct gpr_dl_managed *);
} gpr_dl_managed;

/* What a type of arrays leaves for C in a capsule: tensors and streams without a call of Python.
 * Functions give 0, or -1 with an exception. */
#define GPR_DL_EXCHANGE "__dlpack_c_exchange_api__"
#define GPR_DL_EXCHANGE_CAPSULE "dlpack_exchange_api"
typedef struct gpr_dl_exchange {
  struct {
    uint32_t major, minor;
    void *previous;
  } version;
  void *unused[3];
  int (*tensor_of)(void *object, gpr_dl_tensor *out); /* as long as the object lives; or NULL */
  int (*current_stream)(int device_type, int32_t device, void **stream);
} gpr_dl_exchange;

/* Type codes by NumPy's kinds; 3 is a handle, and V, of numbers, is bfloat16. */
static const char gpr_dl_kinds[] = "iuf?Vcb";
static inline char gpr_dl_kind(int code) {
  return code < (int)sizeof gpr_dl_kinds - 1 && code != 3 ? gpr_dl_kinds[code] : 0;
}
static inline int gpr_dl_code(char kind) {
  const char *at = kind && kind != '?' ? strchr(gpr_dl_kinds, kind) : NULL;
  return at ? (int)(at - gpr_dl_kinds) : -1;
}
