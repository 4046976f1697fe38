/* What launches for many outputs use, kept from call to call. */
#ifndef GPR_SCRATCH_H
#define GPR_SCRATCH_H

#include "device.h"

/* Device memory of `bytes`, whose part that launches leave zero is zero: the stream's, which one
 * launch after the other uses. NULL: the caller allocates his own, for there is more to it than is
 * kept, or the stream is being captured and its launches come again at any time. */
gpr_status gpr_stream_scratch(int device, CUstream stream, size_t bytes, void **out);

/* To wait for a launch, with memory of the host that the device writes. One run's at a time. */
enum { GPR_WAITER_BYTES = 64 << 10 };
typedef struct gpr_waiter {
  struct gpr_waiter *next;
  CUevent done;
  int64_t *least; /* and behind it */
  char *results;  /* GPR_WAITER_BYTES */
} gpr_waiter;

/* The caller's until it is given back or, if something failed, freed. */
gpr_status gpr_waiter_take(int device, gpr_waiter **out);
void gpr_waiter_give(int device, gpr_waiter *w);
void gpr_waiter_free(gpr_waiter *w);

#endif
