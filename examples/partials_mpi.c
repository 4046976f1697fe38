/* Plain MPI: the exact sum, mean and standard deviation of numbers that many ranks have, the same
 * bits for any number of ranks.
 *
 *   mpicc -std=gnu11 examples/partials_mpi.c @build/objects/libgpureduce.flags -o
 * build/partials_mpi mpiexec -n 4 build/partials_mpi 1000000
 *
 * Each rank makes partials of its part; MPI_SUM adds their words. */
#include "../csrc/gpureduce.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MOST = 256 };

/* What element i of the whole is: numbers of many sizes, which plain sums round. */
static double element(int64_t i) {
  const double sign = i % 3 ? 1 : -1;
  return sign * (double)(i * 2654435761 % 1000003) * (i % 5 ? 1 : 1e12);
}

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, gpr_error());
  return 1;
}

/* Words of the variance of x, which answer the sum and the mean too. */
static int partials_of(const double *x, int64_t n, int64_t *words) {
  const int var = gpr_op_index("var");
  gpr_options options = gpr_defaults();
  options.partials = gpr_partials_kind(var, GPR_FLOAT64);
  options.out = words;
  const gpr_view view = gpr_view_of(x, GPR_FLOAT64, n);
  return gpr_reduce("var", &view, &options, NULL) == GPR_OK;
}

static int print(const char *name, const int64_t *words) {
  double result;
  int64_t count;
  const int var = gpr_op_index("var");
  if (gpr_partials_finish(var, GPR_FLOAT64, gpr_op_index(name), GPR_FLOAT64, 0, words, 1, &result,
                          &count))
    return failed(name);
  printf("%-6s%.17g\n", name, result);
  return 0;
}

int main(int argc, char **argv) {
  int rank, ranks, status = 0;
  int64_t mine[WORDS_MOST], all[WORDS_MOST];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int64_t total = argc > 1 ? atoll(argv[1]) : 1000000;
  const int64_t start = total * rank / ranks, n = total * (rank + 1) / ranks - start;
  const int count = gpr_partials_words(gpr_op_index("var"), GPR_FLOAT64);
  double *x = malloc(sizeof *x * (size_t)(n + 1));
  if (!x || count > WORDS_MOST) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int64_t i = 0; i < n; i++) x[i] = element(start + i);
  if (!partials_of(x, n, mine)) {
    failed("partials");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Allreduce(mine, all, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (!rank) status = print("sum", all) | print("mean", all) | print("std", all);
  free(x);
  MPI_Finalize();
  return status;
}
