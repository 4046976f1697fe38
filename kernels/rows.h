/* The tables that kernels/ gives to the host: all that csrc/ knows of operators and dtypes. */
#ifndef GPR_ROWS_H
#define GPR_ROWS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which orders give the same bits: any, any (sums kept as integers), the one tree. */
enum gpr_law { GPR_FREE, GPR_EXACT, GPR_TREE };

/* One operator on one dtype. A state is `state_bytes` of memory aligned to 16. */
typedef struct gpr_row {
  int op, dtype, result; /* ids of ops.h and dtypes.h */
  int law;
  int ordered; /* the elements' index matters */
  size_t state_bytes;
  void (*open)(void *state);
  /* Folds n contiguous aligned elements, of which the first has this index; for GPR_TREE the
   * index must be the state's next. Nonzero: no further element can change the result. */
  int (*fold)(void *state, const void *data, int64_t n, int64_t index);
  /* right covers the indices after the state's (GPR_TREE), or any others. */
  void (*merge)(void *state, const void *right);
  /* initial: NULL or a value of the result's dtype, which takes part. */
  void (*finish)(const void *state, int64_t n, const void *initial, void *result);
} gpr_row;

/* Converts n contiguous elements one by one, as NumPy's unsafe casting does. */
typedef void (*gpr_cast)(const void *from, void *to, int64_t n);

/* row[op * GPR_DTYPE_COUNT + dtype].open is NULL where the operator does not take the dtype;
 * cast[from * GPR_DTYPE_COUNT + to] is NULL where there is no conversion. */
typedef struct gpr_cpu_table {
  const char *isa;
  const gpr_row *row;
  const gpr_cast *cast;
} gpr_cpu_table;

/* One for each instruction set that kernels/cpu.cpp was compiled for. */
extern const gpr_cpu_table gpr_cpu_table_plain;
#ifdef GPR_X86_LEVELS
extern const gpr_cpu_table gpr_cpu_table_v3;
extern const gpr_cpu_table gpr_cpu_table_v4;
#endif

#ifdef __cplusplus
}
#endif
#endif
