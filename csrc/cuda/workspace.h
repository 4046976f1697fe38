/* What one run at a time uses of a device, kept from run to run. */
#pragma once

#include "device.h"

/* Pieces under way at once. Four of 8 MiB keep the copy engine busy while the host fills the next:
 * 32 MiB pinned and 32 MiB on the device, whatever the array's size. */
enum { SLOTS = 4, PIECE_BYTES = 8 << 20 };

typedef struct workspace {
  struct workspace *next;
  CUstream stream, copies;
  CUevent copied[SLOTS];
  gpr_launcher *launcher;
  void *scratch;       /* zero between launches */
  gpr_answer *answers; /* pinned, mapped: one for each slot, of so many words */
  int64_t answer_words;
  char *pinned; /* the ring, made when it is first wanted */
  char *ring;   /* likewise, on the device */
  uint32_t epoch;
  uint32_t line_epoch[SLOTS]; /* the bits of their epochs that a slot's lines have not */
  int wary;                   /* runs to come that are not tried as small ones */
} workspace;

/* The caller's until it is given back or, if something failed, freed. */
gpr_status gpr_workspace_take(int device, workspace **out);
void gpr_workspace_give(int device, workspace *w);
void gpr_workspace_free(workspace *w);

/* The ring's device half alone (for gathering there), or with its pinned half. */
gpr_status gpr_workspace_ring(workspace *w, int device, int pinned);
