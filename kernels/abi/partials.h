/* Partials: states of folds as words that travel. docs/partials.md has them bit by bit. */
#pragma once

#include <stdint.h>

#include "dtypes.h"
#include "ops.h"
#include "program.h"

/* What every partial begins with: how many were merged, that number times the kind, and how many
 * elements counted (where the fold cannot tell, whether there was one). */
enum { GPR_WORD_KINDS, GPR_WORD_MERGED, GPR_WORD_COUNT, GPR_WORDS_OF_HEADER };

/* How the states of one operator on one dtype become words and come back. */
typedef struct gpr_partial {
  int words;    /* of each output, the header's too; 0: there are no such partials */
  int additive; /* partials merge by adding their words */
  /* A row's finish(): the canonical words, the same for equal values. with: a uint32_t, the kind.
   */
  void (*store)(const void *state, int64_t n, const void *with, void *words);
  /* Any words that store() and additions make; the number of elements that counted. */
  int64_t (*load)(const int64_t *words, void *state);
  /* How smaller states that this state begins with are loaded, or NULL: what finishes those
   * finishes this. */
  int64_t (*begins[2])(const int64_t *words, void *state);
} gpr_partial;

/* [op * GPR_DTYPE_COUNT + dtype] */
GPR_C const gpr_partial *const gpr_partial_rows;
