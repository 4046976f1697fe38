/* Leaves of lines that are not packed, on their way while those before them are folded. */
#pragma once

#include "leaves.cuh"

GPR_OPEN

/* Some runs of a line that is not packed. Their leaves come to the warp's room in shared memory, a
 * whole run ahead: of registers a compiler waits for all that a loop loads together. */
template <class OP, class X> struct Ahead {
  enum { PARTS = 4, MANY = OP::RUN / PARTS, OF_PART = MANY * GPR_WARP * OP::LEAF };
  enum { BYTES = OP::IS_AHEAD ? PARTS * OF_PART : 0 };
  const X &x;
  char *const places;
  int64_t at[OP::ARRAYS], parts; /* of the leaves that come next, and how much is left of them */

  GPR_DEVICE void bring(int part) {
    if (parts > 0) {
      OP::template bring<MANY>(places + part * OF_PART, x, at);
      GPR_EACH(k, OP::ARRAYS) at[k] += MANY * x.step[k];
    }
    parts--;
    copies_begun();
  }
  GPR_DEVICE void begin(const int64_t (&from)[OP::ARRAYS], int64_t runs) {
    GPR_EACH(k, OP::ARRAYS) at[k] = from[k];
    parts = runs * PARTS;
    GPR_EACH(part, PARTS) bring(part);
  }
  /* The leaves of a part, whose room the one that comes a run later has then. */
  GPR_DEVICE void get(typename OP::template Leaves<MANY> &leaves, int part) {
    own_copies_came<PARTS - 1>();
    leaves.get_own(places + part * OF_PART);
    bring(part);
  }
};

GPR_CLOSE
