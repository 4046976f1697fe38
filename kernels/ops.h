/* The one list of operators. Python's functions, tests and benchmarks are read from it.
 *
 * X(id, name, ufunc, alias, flags, operator, sentence): name is the function's, ufunc the NumPy
 * ufunc of the same meaning for reduce(), operator the template of kernels/ops.cuh that folds and
 * finishes it for each element type. */
#ifndef GPR_OPS_H
#define GPR_OPS_H

enum gpr_op_flag {
  GPR_FUNCTION = 1,       /* a function of the package; else by reduce() alone */
  GPR_TAKES_DTYPE = 2,    /* dtype= converts each element first */
  GPR_TAKES_INITIAL = 4,  /* the function takes initial=, as reduce() does for every ufunc */
  GPR_NONEMPTY = 8,       /* no identity: an empty array without initial is an error */
  GPR_EMPTY_WARNS = 16,   /* an empty array gives NaN and a RuntimeWarning */
  GPR_POSITION = 32,      /* the result is an index */
  GPR_MATRICES = 64,      /* an array (n, 2, 2): elements, result and initial are 2 x 2 matrices */
  GPR_TAKES_KERNEL = 128, /* the textbook kernels of kernels/ladder.h are made for it */
};

#define GPR_OPS(X)                                                                                \
  X(SUM, "sum", "add", "", GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_INITIAL | GPR_TAKES_KERNEL, \
    Sum, "Sum of the elements; floating-point sums are exact and rounded once.")                  \
  X(PROD, "prod", "multiply", "",                                                                 \
    GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_INITIAL | GPR_TAKES_KERNEL, Prod,                  \
    "Product of the elements; floating-point products fold along one tree over the index.")       \
  X(MIN, "min", "minimum", "amin",                                                                \
    GPR_FUNCTION | GPR_TAKES_INITIAL | GPR_NONEMPTY | GPR_TAKES_KERNEL, Min,                      \
    "Least element; NaN and NaT propagate.")                                                      \
  X(MAX, "max", "maximum", "amax",                                                                \
    GPR_FUNCTION | GPR_TAKES_INITIAL | GPR_NONEMPTY | GPR_TAKES_KERNEL, Max,                      \
    "Greatest element; NaN and NaT propagate.")                                                   \
  X(ARGMIN, "argmin", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_POSITION, ArgMin,                 \
    "Index of the first least element in C order, or of the first NaN or NaT.")                   \
  X(ARGMAX, "argmax", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_POSITION, ArgMax,                 \
    "Index of the first greatest element in C order, or of the first NaN or NaT.")                \
  X(MEAN, "mean", "", "", GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_EMPTY_WARNS, Mean,                 \
    "Arithmetic mean: the exact sum divided exactly and rounded once.")                           \
  X(ANY, "any", "logical_or", "", GPR_FUNCTION, Any,                                              \
    "Whether any element is true; NaN and NaT are.")                                              \
  X(ALL, "all", "logical_and", "", GPR_FUNCTION, All,                                             \
    "Whether all elements are true; NaN and NaT are.")                                            \
  X(COUNT_NONZERO, "count_nonzero", "", "", GPR_FUNCTION, CountNonzero,                           \
    "Number of elements that are not zero.")                                                      \
  X(PTP, "ptp", "", "", GPR_FUNCTION | GPR_NONEMPTY, PeakToPeak,                                  \
    "Greatest element less the least, in one pass.")                                              \
  X(LOGICAL_XOR, "logical_xor", "logical_xor", "", 0, LogicalXor,                                 \
    "Whether an odd number of elements is true.")                                                 \
  X(BITWISE_AND, "bitwise_and", "bitwise_and", "", 0, BitwiseAnd, "Bitwise and of the elements.") \
  X(BITWISE_OR, "bitwise_or", "bitwise_or", "", 0, BitwiseOr, "Bitwise or of the elements.")      \
  X(BITWISE_XOR, "bitwise_xor", "bitwise_xor", "", 0, BitwiseXor,                                 \
    "Bitwise exclusive or of the elements.")                                                      \
  X(MATMUL2X2, "matmul2x2", "", "", GPR_MATRICES | GPR_TAKES_KERNEL, Matmul,                      \
    "Product of the 2 x 2 matrices of an array (n, 2, 2), left to right along the one tree.")

enum gpr_op {
#define GPR_X(id, ...) GPR_OP_##id,
  GPR_OPS(GPR_X)
#undef GPR_X
      GPR_OP_COUNT
};

#endif
