/* Reduces a file of float64 numbers, as they lie in memory: a C program that knows gpureduce.h
 * alone.
 *
 *   sum FILE [OP] [--device cpu|cuda]
 *
 * prints OP, or some that are often wanted. `make example` builds it as build/sum. */
#include "../csrc/gpureduce.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int usage(void) {
  fputs("usage: sum FILE [OP] [--device cpu|cuda]\n", stderr);
  return 2;
}

/* The file's numbers, mapped: what is not read takes no memory. NULL where that cannot be; *n is 0
 * and the address any other for an empty file. */
static const double *map(const char *path, int64_t *n) {
  static const double none[1];
  struct stat about;
  void *data = MAP_FAILED;
  const int file = open(path, O_RDONLY);
  if (file >= 0 && !fstat(file, &about) && about.st_size)
    data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  const int empty = file >= 0 && data == MAP_FAILED && !about.st_size;
  if (data == MAP_FAILED && !empty) perror(path);
  if (file >= 0) close(file);
  *n = empty || data == MAP_FAILED ? 0 : (int64_t)about.st_size / (int64_t)sizeof(double);
  return empty ? none : data == MAP_FAILED ? NULL : data;
}

/* One line for the operator: a number, or two. */
static int print(const char *op, const gpr_view *view, const gpr_options *options) {
  gpr_value value;
  const gpr_status status = gpr_reduce(op, view, options, &value);
  if (status != GPR_OK) {
    fprintf(stderr, "sum: %s: %s (%s)\n", op, gpr_error(), gpr_strerror(status));
    return 1;
  }
  printf("%-14s", op);
  for (int which = 0; which < gpr_results(gpr_op_index(op)); which++) {
    if (which) putchar(' ');
    if (value.dtype == GPR_FLOAT64)
      printf("%.17g", gpr_as_double(&value, which));
    else
      printf("%" PRId64, gpr_as_int64(&value, which));
  }
  putchar('\n');
  return 0;
}

int main(int argc, char **argv) {
  const char *const often[] = {"sum", "mean",   "prod",   "min",
                               "max", "argmin", "argmax", "count_nonzero"};
  const char *path = NULL, *op = NULL;
  gpr_options options = gpr_defaults();
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--device")) {
      if (op) return usage();
      *(path ? &op : &path) = argv[i];
    } else if (++i < argc && (!strcmp(argv[i], "cpu") || !strcmp(argv[i], "cuda"))) {
      options.device = strcmp(argv[i], "cuda") ? GPR_DEVICE_CPU : 0;
    } else {
      return usage();
    }
  }
  if (!path) return usage();

  int64_t n;
  int failed = 0;
  const double *data = map(path, &n);
  if (!data) return 1;
  const gpr_view view = gpr_view_of(data, GPR_FLOAT64, n);
  if (op) return print(op, &view, &options);
  for (size_t i = 0; i < sizeof often / sizeof *often; i++)
    failed |= print(often[i], &view, &options);
  return failed;
}
