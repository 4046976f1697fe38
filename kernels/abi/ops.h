/* The one list of operators. Python's functions, tests and benchmarks are read from it.
 *
 * X(id, name, ufunc, alias, flags, operator, sentence): name is the function's, ufunc the NumPy
 * ufunc of the same meaning for reduce(), operator the template of kernels/core/operators.h that
 * folds and finishes it for each element type. */
#pragma once

enum gpr_op_flag {
  GPR_FUNCTION = 1,      /* a function of the package; else by reduce() alone */
  GPR_TAKES_DTYPE = 2,   /* dtype= converts each element first */
  GPR_TAKES_INITIAL = 4, /* the function takes initial=, as reduce() does for every ufunc */
  GPR_NONEMPTY = 8,      /* no identity: an empty array without initial is an error */
  GPR_EMPTY_WARNS = 16,  /* an empty array gives NaN and a RuntimeWarning */
  GPR_POSITION = 32,     /* the result is an index */
  GPR_TAKES_WHERE = 64,  /* the function takes where=, as reduce() does for every ufunc */
  /* takes ddof, correction and mean; finished with a gpr_spread; its fold has moments, and of
   * complex numbers its result is real */
  GPR_SPREAD = 128,
  GPR_SKIPS_NAN = 256, /* NaN does not count */
  GPR_SKIPS_NAT = 512, /* nor does NaT */
  GPR_NO_OUT = 1024,   /* the function takes no out= */
  GPR_OUT_KIND = 2048, /* out= has to be of the result's kind, else it is cast as it has to be */
  GPR_MATRICES = 4096, /* an array (n, 2, 2): elements, result and initial are 2 x 2 matrices */
  GPR_TAKES_KERNEL = 8192, /* the textbook kernels of kernels/abi/ladder.h are made for it */
  GPR_HIDDEN = 16384,      /* in no list, after all that are */
};

/* What several rows share. */
#define GPR_SPREADS (GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_WHERE | GPR_SPREAD)
#define GPR_NAN_EXTREME                                                                \
  (GPR_FUNCTION | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_NONEMPTY | GPR_SKIPS_NAN | \
   GPR_SKIPS_NAT)

#define GPR_OPS(X)                                                                                 \
  X(SUM, "sum", "add", "",                                                                         \
    GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_TAKES_KERNEL, Sum,  \
    "Sum of the elements; floating-point sums are exact and rounded once.")                        \
  X(PROD, "prod", "multiply", "",                                                                  \
    GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_TAKES_KERNEL, Prod, \
    "Product of the elements; floating-point products fold along one tree over the index.")        \
  X(MIN, "min", "minimum", "amin",                                                                 \
    GPR_FUNCTION | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_NONEMPTY | GPR_TAKES_KERNEL, Min,     \
    "Least element; NaN and NaT propagate.")                                                       \
  X(MAX, "max", "maximum", "amax",                                                                 \
    GPR_FUNCTION | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_NONEMPTY | GPR_TAKES_KERNEL, Max,     \
    "Greatest element; NaN and NaT propagate.")                                                    \
  X(ARGMIN, "argmin", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_POSITION, ArgMin,                  \
    "Index of the first least element in C order, or of the first NaN or NaT.")                    \
  X(ARGMAX, "argmax", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_POSITION, ArgMax,                  \
    "Index of the first greatest element in C order, or of the first NaN or NaT.")                 \
  X(MEAN, "mean", "", "", GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_WHERE | GPR_EMPTY_WARNS,      \
    Mean, "Arithmetic mean: the exact sum divided exactly and rounded once.")                      \
  X(ANY, "any", "logical_or", "", GPR_FUNCTION | GPR_TAKES_WHERE, Any,                             \
    "Whether any element is true; NaN and NaT are.")                                               \
  X(ALL, "all", "logical_and", "", GPR_FUNCTION | GPR_TAKES_WHERE, All,                            \
    "Whether all elements are true; NaN and NaT are.")                                             \
  X(COUNT_NONZERO, "count_nonzero", "", "", GPR_FUNCTION | GPR_NO_OUT, CountNonzero,               \
    "Number of elements that are not zero.")                                                       \
  X(PTP, "ptp", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_OUT_KIND, PeakToPeak,                    \
    "Greatest element less the least, in one pass.")                                               \
  X(MINMAX, "minmax", "", "", GPR_FUNCTION | GPR_NONEMPTY, MinMax,                                 \
    "Least and greatest element, in one pass; NaN and NaT propagate.")                             \
  X(ARGMINMAX, "argminmax", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_POSITION, ArgMinMax,         \
    "Indices of the first least and the first greatest element, as argmin and argmax, in one "     \
    "pass.")                                                                                       \
  X(VAR, "var", "", "", GPR_SPREADS, Var,                                                          \
    "Variance: the exact rational of the exact sums of x and of x squared, rounded once.")         \
  X(STD, "std", "", "", GPR_SPREADS | GPR_OUT_KIND, Std,                                           \
    "Standard deviation: the square root of the exact variance, rounded once.")                    \
  X(NANSUM, "nansum", "", "",                                                                      \
    GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_SKIPS_NAN, Sum,     \
    "Sum of the elements that are not NaN, exact and rounded once.")                               \
  X(NANPROD, "nanprod", "", "",                                                                    \
    GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_SKIPS_NAN, Prod,    \
    "Product along one tree over the index, in which NaN counts as one.")                          \
  X(NANMIN, "nanmin", "fmin", "", GPR_NAN_EXTREME, Min,                                            \
    "Least element that is neither NaN nor NaT; NaN or NaT where there is none.")                  \
  X(NANMAX, "nanmax", "fmax", "", GPR_NAN_EXTREME, Max,                                            \
    "Greatest element that is neither NaN nor NaT; NaN or NaT where there is none.")               \
  X(NANARGMIN, "nanargmin", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_POSITION | GPR_SKIPS_NAN,    \
    ArgMin, "Index of the first least element that is not NaN.")                                   \
  X(NANARGMAX, "nanargmax", "", "", GPR_FUNCTION | GPR_NONEMPTY | GPR_POSITION | GPR_SKIPS_NAN,    \
    ArgMax, "Index of the first greatest element that is not NaN.")                                \
  X(NANMEAN, "nanmean", "", "",                                                                    \
    GPR_FUNCTION | GPR_TAKES_DTYPE | GPR_TAKES_WHERE | GPR_EMPTY_WARNS | GPR_SKIPS_NAN, Mean,      \
    "Arithmetic mean of the elements that are not NaN: the exact sum divided exactly.")            \
  X(NANVAR, "nanvar", "", "", GPR_SPREADS | GPR_SKIPS_NAN, Var,                                    \
    "Variance of the elements that are not NaN, exact and rounded once.")                          \
  X(NANSTD, "nanstd", "", "", GPR_SPREADS | GPR_SKIPS_NAN | GPR_OUT_KIND, Std,                     \
    "Standard deviation of the elements that are not NaN, rounded once.")                          \
  X(LOGICAL_XOR, "logical_xor", "logical_xor", "", 0, LogicalXor,                                  \
    "Whether an odd number of elements is true.")                                                  \
  X(BITWISE_AND, "bitwise_and", "bitwise_and", "", 0, BitwiseAnd, "Bitwise and of the elements.")  \
  X(BITWISE_OR, "bitwise_or", "bitwise_or", "", 0, BitwiseOr, "Bitwise or of the elements.")       \
  X(BITWISE_XOR, "bitwise_xor", "bitwise_xor", "", 0, BitwiseXor,                                  \
    "Bitwise exclusive or of the elements.")                                                       \
  X(MATMUL2X2, "matmul2x2", "", "", GPR_MATRICES | GPR_TAKES_KERNEL, Matmul,                       \
    "Product of the 2 x 2 matrices of an array (n, 2, 2), left to right along the one tree.")      \
  X(TWICE_SUM, "twice_sum", "", "",                                                                \
    GPR_TAKES_DTYPE | GPR_TAKES_INITIAL | GPR_TAKES_WHERE | GPR_HIDDEN, TwiceSum,                  \
    "Twice the exact sum, rounded once.")                                                          \
  X(SUM_AS_DOUBLE, "sum_as_double", "", "", GPR_HIDDEN, SumAsDouble,                               \
    "Sum of integers that a double holds, rounded to one.")                                        \
  X(SUM_AS_FLOAT, "sum_as_float", "", "", GPR_HIDDEN, SumAsFloat,                                  \
    "Sum of integers that a float holds, rounded to one.")                                         \
  X(MEAN_AS_FLOAT, "mean_as_float", "", "", GPR_EMPTY_WARNS | GPR_HIDDEN, MeanAsFloat,             \
    "Mean of integers that a float holds, rounded to one.")

enum gpr_op {
#define GPR_X(id, ...) GPR_OP_##id,
  GPR_OPS(GPR_X)
#undef GPR_X
      GPR_OP_COUNT
};
