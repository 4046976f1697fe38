/* A run over a whole array on a device: what run.c and pieces.c share. */
#pragma once

#include "../../kernels/abi/lists.h"
#include "../errors.h"
#include "fill.h"
#include "gpu.h"

/* Blocks of a small array's launch: 2^18 float32 take as long as by the other kernel, fewer less. A
 * miss costs a launch. */
enum { SMALL_BLOCKS = 64 };

enum road {
  RESIDENT, /* folded where it lies */
  GATHERED, /* on the device, but strided or to be converted: gathered into the ring */
  PINNED,   /* in pinned host memory: copied into the ring */
  STAGED,   /* anywhere else in host memory: through the pinned ring, filled by several threads */
};

typedef struct gpu_run {
  gpr_run base;
  gpr_plan plan;
  const gpr_gpu_row *kernel;
  int device;
  CUcontext before;            /* the thread's when it called */
  CUfunction function, gather; /* NULL: not needed, or not asked for yet */
  enum road road;
  workspace *space;
  CUstream stream;
  int bytes;             /* of an element in the row's dtype */
  gpr_queue own, *queue; /* that pieces are taken from; own: of a run alone */
  gpr_deal *deal;        /* whose queue it is, or NULL */
  int64_t piece;         /* elements, at most */
  int64_t taken, launched, collected;
  int ended; /* there is no more to be taken */
  struct {
    int64_t start, n;
  } slots[SLOTS];
  uint32_t epoch[SLOTS];
  int64_t idle_since;
  int small; /* a small array */
  int again; /* which wants the other kernel after all */
  int blocks[SLOTS];
  /* Of the oldest piece under way: a bit for each block whose lines the state has not yet, in -1
   * words before they are looked for, and what the others' said. */
  uint64_t awaited[GPR_GPU_BLOCKS_MAX / 64];
  int awaited_words;
  uint32_t flags;
  char *state, *other;

  gpr_filling filling; /* of the pinned ring */
} gpu_run;

/* Of a run alone. */
static inline int is_one_piece(const gpu_run *r) { return !r->deal && r->plan.count <= r->piece; }

/* Where the slot's piece is, or is to be, on the device. */
char *gpr_piece_at(const gpu_run *run, int slot);
/* Threads of a small array's launch. */
int64_t gpr_piece_threads(const gpu_run *run, const void *data);
/* To the device, if it is not there, and folded. */
gpr_status gpr_piece_launch(gpu_run *run, int slot);
gpr_status gpr_piece_fold(gpu_run *run, int slot);
/* Whether the oldest piece under way has left all words of its state; they are then in `other`, or
 * in the state by lines. */
int gpr_piece_is_answered(gpu_run *run);
