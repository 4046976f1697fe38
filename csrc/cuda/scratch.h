/* What launches for many outputs use, kept from call to call. */
#pragma once

#include "device.h"

/* A stream's: scratch and executable graphs, by which launches follow each other. One run's at a
 * time, until it has launched. NULL: another one has it, or the stream is being captured and its
 * launches come again at any time; the caller then has scratch of his own. */
typedef struct gpr_kept gpr_kept;
gpr_status gpr_kept_take(int device, CUstream stream, gpr_kept **out);
void gpr_kept_give(gpr_kept *kept);

/* Device memory of `bytes`, whose part that launches leave zero is zero: its tickets, or it whole.
 * NULL: there is no `kept`, or it keeps less than that. */
gpr_status gpr_kept_scratch(gpr_kept *kept, int device, CUstream stream, size_t bytes, int is_whole,
                            void **out);

/* With kept == NULL too. */
gpr_status gpr_kept_launch(gpr_kept *kept, CUfunction function, int64_t blocks, int threads,
                           void *arguments, int device, CUstream stream);

/* To wait for a launch, with memory of the host that the device writes. One run's at a time. */
enum { GPR_WAITER_BYTES = 64 << 10 };
typedef struct gpr_waiter {
  struct gpr_waiter *next;
  CUevent done;
  int64_t *least; /* and behind it */
  char *results;  /* GPR_WAITER_BYTES */
} gpr_waiter;

/* Results that the host looks for: blank before the launch, of so many values of so many bytes. One
 * that happens to be blank is not seen. */
void gpr_waiter_blank(gpr_waiter *w, int values, int bytes);
int gpr_waiter_is_written(const gpr_waiter *w, int values, int bytes);

/* The caller's until it is given back or, if something failed, freed. */
gpr_status gpr_waiter_take(int device, gpr_waiter **out);
void gpr_waiter_give(int device, gpr_waiter *w);
void gpr_waiter_free(gpr_waiter *w);
