#pragma once

#include "../../kernels/abi/operator.h"
#include "../../kernels/abi/program.h"
#include "../../kernels/abi/shuffles.h"
#include "../../kernels/abi/work_queue.h"
#include "../backend.h"
#include "../queue.h"
#include "cache.h"

/* Begins a plan on a device. The run is the caller's; on failure *run is NULL. */
gpr_status gpr_gpu_open(const gpr_plan *plan, int device, gpr_run **run);

/* Whether a plan without axes has a kernel of its own, which reads all of it at once. */
int gpr_gpu_folds_whole(const gpr_plan *plan);

/* What several runs of one plan take their elements from; and, of a tree, where they leave the
 * state of each piece, since there neighbours alone merge. */
typedef struct gpr_deal {
  gpr_queue queue;
  char *nodes; /* states of pieces, so many bytes apart; NULL: states merge in any order */
  size_t node_bytes;
  char *is_there; /* a piece's state, 1 or 0 */
} gpr_deal;

/* How many elements a device takes at a time. */
int64_t gpr_gpu_piece(const gpr_plan *plan);

/* Begins to take pieces of a plan, whose elements are in host memory, from the deal's queue. The
 * run is the caller's, who fills the pinned ring too (gpr_gpu_fill), and has the state of all that
 * it took when it is done. */
gpr_status gpr_gpu_join(const gpr_plan *plan, int device, gpr_deal *deal, gpr_run **run);
/* Fills a little of the run's pinned ring, if there is room; any thread may call it. */
int gpr_gpu_fill(gpr_run *run);
/* Whether nothing that it took is under way. */
int gpr_gpu_is_idle(const gpr_run *run);
const void *gpr_gpu_state(const gpr_run *run);

/* What a device launches for a plan with axes. */
typedef struct gpr_choice {
  const gpr_program *program;
  int64_t blocks;
  int split; /* blocks that share an output */
} gpr_choice;

/* Begins a plan with axes. */
gpr_status gpr_gpu_axes_open(const gpr_plan *plan, int device, gpr_run **run);
/* What would be launched for it if its elements lay on a device of so many multiprocessors: none is
 * needed. gpr_choose() asks as gpr_open() would, of a view that has passed its checks. */
gpr_status gpr_choose(int op, const gpr_view *view, const gpr_options *options, int multiprocessors,
                      gpr_choice *choice);
gpr_status gpr_gpu_axes_choose(const gpr_plan *plan, int multiprocessors, gpr_choice *choice);

/* What elements of the host come to a device by; the caller's. */
typedef struct gpr_copies gpr_copies;
gpr_status gpr_copies_open(int device, gpr_copies **copies);
void gpr_copies_close(gpr_copies *copies);
/* Has a run with axes, which was not stepped yet, get its elements by these, behind all that is on
 * its way already: so runs follow each other without a gap in the copies, which go on as long as
 * any of the runs is stepped. They close before the run, unless that is ready. */
gpr_status gpr_gpu_axes_bring_by(gpr_run *run, gpr_copies *copies);
/* Whether all elements of the run are on their way. */
int gpr_gpu_axes_all_come(const gpr_run *run);

/* The same with a textbook kernel that is made for the plan's row. */
gpr_status gpr_gpu_ladder_open(const gpr_plan *plan, int kernel, int device, gpr_run **run);

/* Milliseconds of `repeats` runs (1 and up) of any kernel's launches, without copies to the device
 * and on it, each with cold caches. */
gpr_status gpr_gpu_ladder_time(const gpr_plan *plan, int kernel, int device, int repeats,
                               double *milliseconds);

/* One of kernels/abi/shuffles.h by its name, with `data` and `out` in host memory. */
gpr_status gpr_gpu_shuffle(const char *name, int dtype, int device, gpr_shuffle_args args);

/* Sums of segments by one of the kernels of kernels/abi/work_queue.h, with all arrays in host
 * memory; launched so many times (1 and up), each of which leaves its milliseconds. */
gpr_status gpr_gpu_segment_sums(const char *name, int dtype, int device, gpr_segment_args args,
                                int repeats, double *milliseconds);

/* Device memory in the order of the stream. It is the caller's, who releases it. */
gpr_status gpr_gpu_allocate(int device, size_t bytes, void *stream, void **out);

/* The end of what is on the stream now. The mark is the caller's, for gpr_gpu_release(); of the
 * default stream it is NULL. */
gpr_status gpr_gpu_mark(int device, void *stream, void **mark);

/* What comes on the stream from now on waits for the mark. */
gpr_status gpr_gpu_follow(int device, void *mark, void *stream);

/* A few bytes of the host to the device, in the stream's order; they were read when it returns. */
gpr_status gpr_gpu_put(int device, void *stream, void *to, const void *from, size_t bytes);

/* Whether what comes on the stream goes into a graph. */
int gpr_gpu_is_capturing(int device, void *stream);

/* What comes on the stream from now on waits for what is on the other one now. */
gpr_status gpr_gpu_order(int device, void *before, void *stream);

/* Gives memory and mark back after that, and after what is on the default stream. */
void gpr_gpu_release(int device, void *memory, void *mark);

/* Waits for what is on the stream; what is captured there is ordered by its graph. */
gpr_status gpr_gpu_wait(int device, void *stream);

/* Whether this process has used a device. */
int gpr_gpu_is_started(void);

/* Whether the CUDA driver knows the host memory at this address as pinned. */
int gpr_gpu_pinned(const void *address);

/* Pinned host memory, which every device reads; NULL is fine to give back. */
gpr_status gpr_gpu_pin(size_t bytes, void **out);
void gpr_gpu_unpin(void *memory);

/* The device that the memory at this address belongs to, or -1. */
int gpr_gpu_device_of(const void *address);

/* --- kernels that are made when they are needed ----------------------------------------------- */

/* What the library asks of where it is embedded; any may be NULL. Called by threads that called the
 * library. */
typedef struct gpr_surroundings {
  void (*say)(int is_warning, const char *text);
  /* The image of that key for the architecture from a pack, malloc's, or NULL. */
  char *(*packed)(const char *arch, const char *key, size_t *size);
  /* Folders where NVRTC may be, one a line, malloc's; or NULL. */
  char *(*nvrtc_folders)(void);
} gpr_surroundings;
extern gpr_surroundings gpr_host;

/* A program's image for "sm_90", or its PTX for "compute_90", made by the calling thread if
 * neither a pack nor the cache has it: a lowered name, a zero, the image. Its key comes back too.
 * Needs no device. */
gpr_status gpr_program_image(const gpr_program *program, const char *arch, char key[GPR_KEY_CHARS],
                             int *was_there, gpr_image *image);

/* "NVRTC 13.0, PATH", which would compile for that architecture, or why there is none. */
gpr_status gpr_compiler_about(const char *arch, char *text, size_t room);

/* --- users' operators: programs that are made at run time, and their launches ----------------- */

/* A program with its own copies of the texts; NULL for want of memory. It is the caller's, and
 * stays for as long as it is being compiled too. Of code that a device runs yet nothing is lost. */
gpr_program *gpr_program_new(const char *header, const char *defines, const char *kernel);
void gpr_program_keep(const gpr_program *program);
void gpr_program_drop(const gpr_program *program);

typedef struct gpr_operator_launch {
  gpr_program *program;
  int device;
  void *stream;
  gpr_operator_args *args; /* whose pointers to device memory are set here */
  int64_t blocks;
  int threads;
  size_t scratch; /* bytes: tickets, then nodes */
  int is_own;     /* there are more tickets than the scratch that is kept has */
  /* What is to be brought: starts and stops of so many segments, then the far numbers. */
  const int64_t *words;
  int64_t segments, far;
} gpr_operator_launch;

/* GPR_MORE: the kernel is being compiled still, after so many nanoseconds; ask again. */
gpr_status gpr_gpu_operator(const gpr_operator_launch *launch, int64_t nanoseconds);

gpr_status gpr_gpu_multiprocessors(int device, int *number);

/* Bytes to a device or from one, in the order of the stream; they are there on return. */
gpr_status gpr_gpu_move(int device, void *stream, void *to, const void *from, size_t bytes);
