#include <stdlib.h>
#include <string.h>

#include "../errors.h"
#include "device.h"
#include "gpu.h"
#include "scratch.h"

/* --- programs --------------------------------------------------------------------------------- */

typedef struct made_program {
  gpr_program program;
  int users;
  char text[];
} made_program;

gpr_program *gpr_program_new(const char *header, const char *defines, const char *kernel) {
  const char *const from[] = {header, defines, kernel};
  size_t size = 0;
  for (int i = 0; i < 3; i++) size += strlen(from[i]) + 1;
  made_program *made = calloc(1, sizeof *made + size);
  if (!made) return NULL;
  char *at = made->text, *to[3];
  for (int i = 0; i < 3; i++) {
    const size_t length = strlen(from[i]) + 1;
    to[i] = memcpy(at, from[i], length);
    at += length;
  }
  made->program = (gpr_program){to[0], NULL, to[1], to[2], NULL, &made->users};
  made->users = 1;
  return &made->program;
}

void gpr_program_keep(const gpr_program *program) {
  if (program->users) __atomic_add_fetch(program->users, 1, __ATOMIC_RELAXED);
}

void gpr_program_drop(const gpr_program *program) {
  if (!program->users || __atomic_sub_fetch(program->users, 1, __ATOMIC_ACQ_REL)) return;
  gpr_cuda_unmake(program->made);
  free((made_program *)program);
}

/* --- launches --------------------------------------------------------------------------------- */

/* What a launch has for itself; the stream gives it back when the kernel has ended. */
typedef struct room {
  int64_t *words;
  void *scratch;
  gpr_kept *kept; /* until it is launched */
} room;

static gpr_status bring_words(const gpr_operator_launch *l, room *r) {
  const size_t bytes = (size_t)(2 * l->segments + l->far) * sizeof *l->words;
  if (!bytes) return GPR_OK;
  if (gpr_cuda_is_capturing(l->stream))
    return gpr_fail(GPR_BAD_VALUE,
                    "segments, and operators of very many numbers, cannot be "
                    "captured into a graph");
  gpr_status status = gpr_cuda_allocate((void **)&r->words, bytes, l->device, l->stream);
  if (!status) /* which has read them when it returns */
    status = CU(l->device, MemcpyAsync, r->words, l->words, bytes, l->stream);
  l->args->starts = l->segments ? r->words : NULL;
  l->args->stops = l->segments ? r->words + l->segments : NULL;
  l->args->far = l->far ? r->words + 2 * l->segments : NULL;
  return status;
}

static gpr_status find_scratch(const gpr_operator_launch *l, room *r) {
  gpr_status status = GPR_OK;
  l->args->scratch = NULL;
  if (!l->scratch) return GPR_OK;
  if (!l->is_own) status = gpr_kept_take(l->device, l->stream, &r->kept);
  if (!status)
    status =
        gpr_kept_scratch(r->kept, l->device, l->stream, (size_t)l->scratch, 0, &l->args->scratch);
  if (status || l->args->scratch) return status;
  status = gpr_cuda_allocate(&r->scratch, l->scratch, l->device, l->stream);
  if (!status)
    status = CU(l->device, MemsetD8Async, r->scratch, 0, (size_t)l->args->nodes, l->stream);
  l->args->scratch = r->scratch;
  return status;
}

static gpr_status launch(const gpr_operator_launch *l, int64_t nanoseconds) {
  CUfunction function;
  room r = {NULL};
  gpr_status status = gpr_cuda_function(l->program, l->device, nanoseconds, &function);
  if (status) return status;
  status = bring_words(l, &r);
  if (!status) status = find_scratch(l, &r);
  if (!status)
    status = gpr_cuda_start(function, l->blocks, l->threads, l->args, "the launch of an operator",
                            l->device, l->stream);
  gpr_kept_give(r.kept);
  gpr_cuda_release(r.words, l->stream);
  gpr_cuda_release(r.scratch, l->stream);
  return status;
}

gpr_status gpr_gpu_operator(const gpr_operator_launch *l, int64_t nanoseconds) {
  return ON(l->device, launch(l, nanoseconds));
}

gpr_status gpr_gpu_multiprocessors(int device, int *number) {
  return ON(device, (*number = gpr_cuda_multiprocessors(device), GPR_OK));
}

static gpr_status move(int device, CUstream stream, void *to, const void *from, size_t bytes) {
  if (gpr_cuda_is_capturing(stream))
    return gpr_fail(GPR_BAD_VALUE,
                    "what comes from the host, or goes there, cannot be captured into a graph");
  const gpr_status status = bytes ? CU(device, MemcpyAsync, to, from, bytes, stream) : GPR_OK;
  return status ? status : CU(device, StreamSynchronize, stream);
}

gpr_status gpr_gpu_move(int device, void *stream, void *to, const void *from, size_t bytes) {
  return ON(device, move(device, stream, to, from, bytes));
}
