/* MPI of one rank, for examples/partials_mpi.c where there is no MPI. */
#ifndef MPI_H
#define MPI_H

#include <stdlib.h>
#include <string.h>

enum { MPI_COMM_WORLD, MPI_INT64_T, MPI_SUM };

#define MPI_Init(argc, argv) (*(argc) < 1 ? abort() : (void)(argv))
#define MPI_Comm_rank(comm, rank) (*(rank) = 0 * (comm))
#define MPI_Comm_size(comm, size) (*(size) = 1 + 0 * (comm))
#define MPI_Abort(comm, code) exit((code) + 0 * (comm))
#define MPI_Allreduce(from, to, count, type, op, comm) \
  memcpy(to, from, (size_t)(count) * sizeof *(from) + 0 * ((type) + (op) + (comm)))
#define MPI_Finalize() ((void)0)

#endif
