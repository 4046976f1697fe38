/* Many outputs on a device.
 *
 * Elements that lie there are folded where they lie, by one launch. Others are brought a slab at a
 * time (axes_slabs.c). */
#include "axes.h"

#include <stdlib.h>

#include "../errors.h"
#include "../threads.h"

static gpr_status enter(axes_run *r) { return gpr_cuda_enter(r->device, &r->before); }
static void leave(const axes_run *r) { gpr_cuda_leave(r->device, r->before); }

/* --- a slab's way ----------------------------------------------------------------------------- */

/* The results go to the caller's memory, or to the waiter's. */
static int is_out_of_others(const axes_run *r) {
  return (to_device(r) && r->out == r->axes.result) || (r->waiter && r->out == r->waiter->results);
}

static void release_slab(axes_run *r) {
  gpr_kept_give(r->kept);
  r->kept = NULL;
  gpr_cuda_release(r->scratch, r->stream);
  gpr_cuda_release(r->narrowed, r->stream);
  if (!is_out_of_others(r)) gpr_cuda_release(r->out, r->stream);
  gpr_cuda_release(r->means, r->stream);
  r->scratch = r->means = NULL;
  r->narrowed = r->out = NULL;
}

static gpr_status begin_slab(axes_run *r) {
  const gpr_plan *p = &r->plan;
  gpr_status status = GPR_OK;
  r->outputs = r->axes.outputs;
  if (r->cut >= 0)
    r->outputs = r->outputs / r->axes.kept.shape[r->cut] * gpr_slab_length(r, r->slab);
  r->state = r->in_place ? FOLD : ELEMENTS;
  r->waiting_since = 0;
  const size_t out_bytes = (size_t)(r->outputs * result_bytes(r, p->row->result));
  if (to_device(r) && r->cut < 0 && !is_narrowed(r) && !comes_apart(r))
    r->out = r->axes.result;
  else if (!to_device(r) && out_bytes <= GPR_WAITER_BYTES)
    r->out = r->waiter->results;
  else if (!status)
    status = allocate(r, &r->out, out_bytes);
  if (!status && r->axes.with && (gpr_ops[p->row->op].flags & GPR_SPREAD) &&
      ((const gpr_spread *)r->axes.with)->means)
    status = gpr_slab_means(r);
  return status;
}

/* Of one element the first place is the only one, whatever it is. */
static int are_first_places(const axes_run *r) {
  return (gpr_ops[r->plan.row->op].flags & GPR_POSITION) && r->plan.count == 1 && to_device(r) &&
         !counts(r) && !r->axes.starts && !r->axes.variant;
}

/* The arguments and the functions of a launch. GPR_MORE: one is being compiled; ask again. */
static gpr_status make_ready(axes_run *r, int64_t nanoseconds) {
  r->has_first_places = are_first_places(r);
  gpr_status status = r->has_first_places ? GPR_OK : gpr_axes_prepare(r);
  if (!status && !r->has_first_places)
    status = gpr_cuda_function(r->launch.kernel, r->device, nanoseconds, &r->function);
  if (!status && is_narrowed(r))
    status = gpr_cuda_function(gpr_gpu_table_cuda.gather, r->device, nanoseconds, &r->gather);
  return status;
}

static gpr_status launch_again(axes_run *r) {
  return gpr_cuda_start(r->function, r->launch.blocks, r->launch.threads, &r->args,
                        "the launch of a reduction", r->device, r->stream);
}

static gpr_status launch(axes_run *r) {
  if (r->has_first_places)
    return fill(r, r->out, 0, (size_t)(r->outputs * result_bytes(r, r->plan.row->result)));
  const size_t bytes = r->launch.scratch;
  gpr_status status = r->own ? GPR_OK : gpr_kept_take(r->device, r->stream, &r->kept);
  const size_t tickets = r->launch.tickets;
  if (!status && bytes && tickets)
    status =
        gpr_kept_scratch(r->kept, r->device, r->stream, bytes, tickets == bytes, &r->args.scratch);
  if (!status && bytes && !r->args.scratch) {
    status = allocate(r, &r->scratch, bytes);
    if (!status) status = fill(r, r->scratch, 0, tickets ? tickets : bytes);
    r->args.scratch = r->scratch;
  }
  if (status) return status;
  return gpr_kept_launch(r->kept, r->function, r->launch.blocks, r->launch.threads, &r->args,
                         r->device, r->stream);
}

/* On the device: to the dtype that the result has. */
static gpr_status narrow(axes_run *r) {
  const gpr_dtype_info *from = &gpr_dtypes[r->plan.row->result];
  const int64_t values = r->outputs * r->plan.row->results;
  gpr_row as = r->byte;
  as.dtype = r->axes.result_dtype;
  gpr_plan p = {.row = &as,
                .dtype = r->plan.row->result,
                .data = r->out,
                .count = values,
                .bytes = from->bytes,
                .ndim = 1,
                .shape = {values},
                .strides = {from->bytes}};
  gpr_status status = allocate(r, &r->narrowed, (size_t)(r->outputs * result_bytes(r, as.dtype)));
  if (status) return status;
  return gpr_cuda_gather(r->gather, &p, 0, values, r->narrowed, r->device, r->stream);
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Results on the device are left to come in their stream's order, if nothing has to be known. */
static gpr_status fold(axes_run *r, int64_t nanoseconds) {
  gpr_status status = make_ready(r, nanoseconds);
  if (status) return status;
  if (is_looked_for(r)) gpr_waiter_blank(r->waiter, result_parts(r), part_bytes(r));
  status = launch(r);
  gpr_kept_give(r->kept);
  r->kept = NULL;
  if (!status && is_narrowed(r)) status = narrow(r);
  if (!status && to_device(r)) status = gpr_slab_deliver(r);
  r->state = RESULTS;
  r->waiting_since = gpr_now();
  if (status) return status;
  if (!r->waiter) {
    r->state = OVER;
    return GPR_OK;
  }
  return CU(r->device, EventRecord, r->waiter->done, r->stream);
}

/* GPR_MORE: nothing has come of what is waited for. */
static gpr_status wait(axes_run *r) {
  const int64_t now = gpr_now();
  if (!r->waiting_since) r->waiting_since = now;
  gpr_cuda_wait(r->waiting_since, now);
  return GPR_MORE;
}

/* That a launch has ended is known some µs after its result is written. */
static CUresult query(axes_run *r) {
  enum { LOOKS = 64 };
  for (int i = 0; is_looked_for(r) && i < LOOKS; i++)
    if (gpr_waiter_is_written(r->waiter, result_parts(r), part_bytes(r))) return CUDA_SUCCESS;
  return cu.EventQuery(r->waiter->done);
}

/* The next slab goes on coming. */
static gpr_status end_slab(axes_run *r) {
  const CUresult result = query(r);
  if (result == CUDA_ERROR_NOT_READY) {
    int is_there;
    const gpr_status status = r->in_place ? GPR_OK : gpr_slabs_bring(r, &is_there);
    return status ? status : wait(r);
  }
  gpr_status status = check(result, "a reduction", r->device);
  if (!status && !to_device(r)) status = gpr_slab_deliver(r);
  if (!status && (r->cut >= 0 || !is_out_of_others(r))) /* results may be copied yet */
    status = check(cu.StreamSynchronize(r->stream), "a reduction", r->device);
  if (status) return status;
  release_slab(r);
  if (!r->axes.starts) atomic_fetch_add(&r->base.done, r->outputs * r->plan.count);
  r->slab++;
  r->state = OVER;
  return r->slab < r->slabs ? begin_slab(r) : GPR_OK;
}

static gpr_status bring(axes_run *r) {
  int is_there;
  const gpr_status status = gpr_slabs_bring(r, &is_there);
  if (status) return status;
  if (!is_there) return wait(r);
  r->state = FOLD;
  return GPR_OK;
}

static gpr_status step(gpr_run *base, int64_t nanoseconds) {
  axes_run *r = (axes_run *)base;
  const int64_t until = gpr_now() + nanoseconds;
  gpr_status status = enter(r);
  if (status) return status;
  while (!status && r->state != OVER) {
    if (r->state < FOLD)
      status = bring(r);
    else
      status = r->state == FOLD ? fold(r, nanoseconds) : end_slab(r);
    if (status == GPR_MORE && gpr_now() < until) status = GPR_OK;
    if (!status && r->state != OVER && gpr_now() >= until) status = GPR_MORE;
  }
  leave(r);
  return status;
}

/* The least number of elements that counted: known, or one that somebody asks for. */
static gpr_status finish(gpr_run *base, const void *with, void *result) {
  const axes_run *r = (axes_run *)base;
  const gpr_axes *x = &r->axes;
  (void)with, (void)result;
  base->least = x->outputs ? r->plan.count : INT64_MAX;
  if (!x->outputs) return GPR_OK;
  for (int64_t i = 0; x->starts && i < x->segments; i++) {
    const int64_t length = x->stops[i] > x->starts[i] ? x->stops[i] - x->starts[i] : 0;
    if (length < base->least) base->least = length;
  }
  if (r->waiter && wants_least(r)) base->least = *r->waiter->least;
  return GPR_OK;
}

/* Of a run that was left the launch may be under way still. */
static void close_waiter(axes_run *r) {
  if (!r->waiter) return;
  if (r->state == OVER || cu.StreamSynchronize(r->stream) == CUDA_SUCCESS)
    gpr_waiter_give(r->device, r->waiter);
  else
    gpr_waiter_free(r->waiter);
  r->waiter = NULL;
}

static void close_run(gpr_run *base) {
  axes_run *r = (axes_run *)base;
  gpr_copies_close(r->own_copies);
  if (enter(r) == GPR_OK) {
    release_slab(r);
    close_waiter(r);
    gpr_slabs_release(r);
    gpr_cuda_release(r->bounds, r->stream);
    gpr_cuda_release(r->pieces, r->stream);
    if (r->own) {
      cu.StreamSynchronize(r->own);
      cu.StreamDestroy(r->own);
    }
    leave(r);
  }
  free(r);
}

/* Launches that follow each other without waiting, so that no time of the host is between their
 * events; the first is not counted. */
static gpr_status time_launches(axes_run *r, CUevent *ends, int repeats, double *milliseconds) {
  gpr_status status = gpr_axes_prepare(r);
  if (!status) status = gpr_cuda_function_now(r->launch.kernel, r->device, &r->function);
  if (!status) status = launch(r);
  for (int i = 0; !status && i <= repeats; i++) {
    if (i) status = launch_again(r);
    if (!status) status = CU(r->device, EventRecord, ends[i], r->stream);
  }
  if (!status) status = check(cu.EventSynchronize(ends[repeats]), "a reduction", r->device);
  for (int i = 0; !status && i < repeats; i++) {
    float time = 0;
    status = CU(r->device, EventElapsedTime, &time, ends[i], ends[i + 1]);
    milliseconds[i] = time;
  }
  return status;
}

/* The kernels leave tickets as they found them. */
static gpr_status time_run(gpr_run *base, int repeats, double *milliseconds) {
  axes_run *r = (axes_run *)base;
  if (!r->in_place || r->state != FOLD)
    return gpr_fail(GPR_BAD_VALUE, "only what lies on a device ready to be read is timed");
  CUevent *ends = calloc((size_t)repeats + 1, sizeof *ends);
  if (!ends) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for the times");
  gpr_status status = enter(r);
  if (status) goto fail;
  for (int i = 0; !status && i <= repeats; i++)
    status = CU(r->device, EventCreate, &ends[i], CU_EVENT_DEFAULT);
  if (!status) status = time_launches(r, ends, repeats, milliseconds);
  for (int i = 0; i <= repeats && ends[i]; i++) cu.EventDestroy(ends[i]);
  leave(r);
fail:
  free(ends);
  return status;
}

static const gpr_backend axes = {step, finish, close_run, time_run};

/* A slab of one output may be a run without axes, which brings its elements itself. */
static int has_axes(const gpr_run *base) { return base->backend == &axes; }

gpr_status gpr_gpu_axes_bring_by(gpr_run *base, gpr_copies *copies) {
  axes_run *r = (axes_run *)base;
  if (!has_axes(base)) return GPR_OK;
  r->copies = copies;
  return ON(r->device, gpr_slabs_begin(r));
}

int gpr_gpu_axes_all_come(const gpr_run *base) {
  const axes_run *r = (const axes_run *)base;
  return has_axes(base) && r->begun == r->slabs;
}

/* Of results that stay on the device nobody knows in a graph how many elements counted. */
static int has_to_wait(const axes_run *r) {
  if (!to_device(r) || !r->in_place) return 1;
  return wants_least(r) && !gpr_cuda_is_capturing(r->stream);
}

/* Bounds come from memory that a graph would read again when it is gone. */
static gpr_status upload_bounds(axes_run *r) {
  const gpr_axes *x = &r->axes;
  const size_t bytes = (size_t)x->segments * sizeof *x->starts;
  if (gpr_cuda_is_capturing(r->stream))
    return gpr_fail(GPR_BAD_VALUE, "%s: segments cannot be captured into a graph",
                    gpr_ops[r->plan.row->op].name);
  gpr_status status = allocate(r, &r->bounds, 2 * bytes);
  if (!status) status = copy(r, r->bounds, x->starts, bytes);
  if (!status) status = copy(r, r->bounds + x->segments, x->stops, bytes);
  return status;
}

/* What all slabs need. */
static gpr_status prepare(axes_run *r) {
  const gpr_axes *x = &r->axes;
  gpr_status status = GPR_OK;
  if (r->plan.device < 0) {
    status = CU(r->device, StreamCreate, &r->own, CU_STREAM_NON_BLOCKING);
    r->stream = r->own;
  }
  if (!status && r->in_place && x->where)
    status = gpr_gpu_order(r->device, x->where_stream, r->stream);
  if (!status && has_to_wait(r)) {
    status = gpr_waiter_take(r->device, &r->waiter);
    if (!status) *r->waiter->least = INT64_MAX;
  }
  if (!status && x->starts) status = upload_bounds(r);
  gpr_slabs_choose(r);
  if (!status && !r->in_place) status = gpr_slabs_allocate(r);
  return status ? status : begin_slab(r);
}

gpr_status gpr_gpu_axes_open(const gpr_plan *plan, int device, gpr_run **out) {
  *out = NULL;
  axes_run *r = calloc(1, sizeof *r);
  if (!r) return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a run");
  r->base.backend = &axes;
  r->plan = *plan;
  r->axes = *plan->axes;
  r->plan.axes = &r->axes;
  r->byte = (gpr_row){.dtype = GPR_BOOL, .scalars = 1, .results = 1};
  r->device = device;
  r->stream = plan->stream;
  r->in_place = plan->device >= 0;
  r->state = OVER;
  const gpr_status status = ON(device, r->axes.outputs ? prepare(r) : GPR_OK);
  if (status)
    close_run(&r->base);
  else
    *out = &r->base;
  return status;
}
