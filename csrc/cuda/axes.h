/* A run with axes on a device: what the files axes*.c share. */
#pragma once

#include "../../kernels/abi/axes.h"
#include "../../kernels/abi/lists.h"
#include "copies.h"
#include "device.h"
#include "gpu.h"
#include "scratch.h"

enum state { ELEMENTS, FOLD, RESULTS, OVER };
/* Slabs on the device at once: one is folded while the next one comes. */
enum { BUFFERS = 2 };

typedef struct axes_run {
  gpr_run base;
  gpr_plan plan;
  gpr_axes axes;
  gpr_row byte; /* what a mask's elements are as */
  int device, in_place;
  CUcontext before;
  CUstream stream, own; /* own: made for this run, whose elements come from the host */
  enum state state;
  int cut;             /* the kept dimension that slabs are ranges of, or -1 */
  int64_t length;      /* of all but the last */
  int64_t slabs, slab; /* how many, and the one that is folded */
  int64_t outputs;     /* of it */
  int64_t waiting_since;
  gpr_copies *copies, *own_copies; /* of the slabs up to this one: */
  int64_t begun;
  struct {
    char *data, *where;
    int64_t number; /* of the last copy into it */
  } buffer[BUFFERS];
  char *out, *narrowed;
  gpr_waiter *waiter;     /* NULL: the results come in the stream's order, and nobody waits */
  void *scratch;          /* of this slab alone: else the stream's */
  gpr_kept *kept;         /* while it is launched */
  int64_t *bounds;        /* starts, then stops */
  gpr_axes_piece *pieces; /* of segments that lie side by side: piece_bytes is not 0 */
  int64_t piece_count, piece_bytes;
  double *means;
  int has_first_places; /* nothing to launch */
  gpr_axes_launch launch;
  CUfunction function, gather; /* the launch's; gather: where results are narrowed */
  gpr_axes_args args;
} axes_run;

static inline int row_bytes(const axes_run *r) { return gpr_dtypes[r->plan.row->dtype].bytes; }
static inline int result_bytes(const axes_run *r, int dtype) {
  return gpr_dtypes[dtype].bytes * r->plan.row->results;
}
static inline int to_device(const axes_run *r) { return r->axes.result_device >= 0; }
static inline int is_narrowed(const axes_run *r) {
  return to_device(r) && r->axes.result_dtype != r->plan.row->result;
}
static inline int comes_apart(const axes_run *r) {
  return to_device(r) && r->plan.row->results == 2;
}
/* Whether an output may have fewer elements that count than it has. */
static inline int counts(const axes_run *r) { return r->axes.where || r->axes.skip; }
/* For an error, or for a warning where the host has the results anyway: it would wait for those
 * that stay on the device. */
static inline int wants_least(const axes_run *r) {
  const int flags = gpr_ops[r->plan.row->op].flags;
  const int of_nothing = (flags & GPR_SKIPS_NAN) && (flags & GPR_NONEMPTY);
  if (to_device(r) && !(flags & GPR_POSITION)) return 0;
  return counts(r) && ((flags & (GPR_EMPTY_WARNS | GPR_SPREAD)) || of_nothing);
}

/* Values of a single output, each of one part of a complex number. */
static inline int result_parts(const axes_run *r) {
  const int is_complex = gpr_dtypes[r->plan.row->result].kind == 'c';
  return r->plan.row->results * (is_complex ? 2 : 1);
}
static inline int part_bytes(const axes_run *r) {
  return result_bytes(r, r->plan.row->result) / result_parts(r);
}
/* Whether the host looks for a result itself, which is written once but for variances of few. */
static inline int is_looked_for(const axes_run *r) {
  enum { MANY = 1 << 16 };
  const int is_spread = (gpr_ops[r->plan.row->op].flags & GPR_SPREAD) != 0;
  const int is_written_once = r->plan.count >= MANY || !is_spread;
  return !to_device(r) && r->in_place && r->outputs == 1 && is_written_once && !r->axes.variant &&
         !r->axes.starts && !wants_least(r);
}

static inline gpr_status allocate(axes_run *r, void *to, size_t bytes) {
  return gpr_cuda_allocate((void **)to, bytes, r->device, r->stream);
}
static inline gpr_status fill(axes_run *r, void *to, unsigned char byte, size_t bytes) {
  return CU(r->device, MemsetD8Async, to, byte, bytes, r->stream);
}
static inline gpr_status copy(axes_run *r, void *to, const void *from, size_t bytes) {
  return CU(r->device, MemcpyAsync, to, from, bytes, r->stream);
}
static inline gpr_status copy_rows(axes_run *r, void *to, int64_t to_pitch, const void *from,
                                   int64_t from_pitch, int64_t width, int64_t rows) {
  return gpr_cuda_copy_rows(to, to_pitch, from, from_pitch, width, rows, r->device, r->stream);
}

/* --- axes_args.c ------------------------------------------------------------------------------ */

/* Everything that a launch takes, but for its scratch. */
gpr_status gpr_axes_prepare(axes_run *r);

/* --- axes_slabs.c ----------------------------------------------------------------------------- */

/* Which dimension slabs are ranges of, and how many places of it. */
void gpr_slabs_choose(axes_run *r);
static inline int64_t gpr_slab_start(const axes_run *r, int64_t slab) { return slab * r->length; }
int64_t gpr_slab_length(const axes_run *r, int64_t slab);

/* The slab's dimensions where its elements were brought to: strides and mask strides in elements,
 * one behind the other as they lie in the array. */
void gpr_slab_dims(const axes_run *r, gpr_dims *kept, gpr_dims *reduced);

/* Room for the elements and masks of slabs, on the device. */
gpr_status gpr_slabs_allocate(axes_run *r);
void gpr_slabs_release(axes_run *r);
/* Has slabs come, as many as there is room for. */
gpr_status gpr_slabs_begin(axes_run *r);
/* Goes on with the copies; whether the slab that is to be folded is there. */
gpr_status gpr_slabs_bring(axes_run *r, int *is_there);
gpr_status gpr_slab_means(axes_run *r);

/* The slab's results to their places. */
gpr_status gpr_slab_deliver(axes_run *r);
