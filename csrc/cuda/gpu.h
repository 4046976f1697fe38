#ifndef GPR_GPU_H
#define GPR_GPU_H

#include "../../kernels/abi/shuffles.h"
#include "../../kernels/abi/work_queue.h"
#include "../backend.h"
#include "cache.h"

/* Begins a plan on a device. The run is the caller's; on failure *run is NULL. */
gpr_status gpr_gpu_open(const gpr_plan *plan, int device, gpr_run **run);

/* Whether a plan without axes has a kernel of its own, which reads all of it at once. */
int gpr_gpu_folds_whole(const gpr_plan *plan);

/* Begins a plan with axes. */
gpr_status gpr_gpu_axes_open(const gpr_plan *plan, int device, gpr_run **run);

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

/* Whether what comes on the stream goes into a graph. */
int gpr_gpu_is_capturing(int device, void *stream);

/* What comes on the stream from now on waits for what is on the other one now. */
gpr_status gpr_gpu_order(int device, void *before, void *stream);

/* Gives memory and mark back after that, and after what is on the default stream. */
void gpr_gpu_release(int device, void *memory, void *mark);

/* Waits for what is on the stream; what is captured there is ordered by its graph. */
gpr_status gpr_gpu_wait(int device, void *stream);

/* Whether the CUDA driver knows the host memory at this address as pinned. */
int gpr_gpu_pinned(const void *address);

/* The device that the memory at this address belongs to, or -1. */
int gpr_gpu_device_of(const void *address);

/* --- kernels that are made when they are needed ------------------------------------------------
 */

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

#endif
