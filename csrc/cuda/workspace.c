#include "workspace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../errors.h"

static struct {
  pthread_mutex_t lock;
  workspace *idle[GPR_DEVICES_MAX];
} spaces = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_ring(workspace *w) {
  if (w->ring) cu.MemFree(w->ring);
  if (w->pinned) cu.MemFreeHost(w->pinned);
  w->ring = w->pinned = NULL;
}

void gpr_workspace_free(workspace *w) {
  if (!w) return;
  for (int i = 0; i < SLOTS; i++)
    if (w->copied[i]) cu.EventDestroy(w->copied[i]);
  if (w->stream) cu.StreamDestroy(w->stream);
  if (w->copies) cu.StreamDestroy(w->copies);
  gpr_cuda_launcher_free(w->launcher);
  if (w->scratch) cu.MemFree(w->scratch);
  if (w->answers) cu.MemFreeHost(w->answers);
  free_ring(w);
  free(w);
}

static gpr_status make_streams(workspace *w, int device) {
  gpr_status status = CU(device, StreamCreate, &w->stream, CU_STREAM_NON_BLOCKING);
  if (!status) status = CU(device, StreamCreate, &w->copies, CU_STREAM_NON_BLOCKING);
  for (int i = 0; !status && i < SLOTS; i++)
    status = CU(device, EventCreate, &w->copied[i], CU_EVENT_DISABLE_TIMING);
  return status;
}

static gpr_status make_memory(workspace *w, int device) {
  const size_t bytes = gpr_gpu_table_cuda.scratch_bytes;
  const size_t answer_bytes = SLOTS * (size_t)w->answer_words * sizeof(gpr_answer);
  gpr_status status = CU(device, MemAlloc, &w->scratch, bytes);
  if (!status) status = CU(device, MemsetD8Async, w->scratch, 0, bytes, w->stream);
  if (!status)
    status = CU(device, MemHostAlloc, &w->answers, answer_bytes,
                CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
  if (status) return status;
  memset(w->answers, 0, answer_bytes);
  return CU(device, StreamSynchronize, w->stream);
}

static gpr_status make(int device, workspace **out) {
  workspace *w = calloc(1, sizeof *w);
  if (w) w->launcher = gpr_cuda_launcher();
  if (!w || !w->launcher) {
    gpr_workspace_free(w);
    return gpr_fail(GPR_OUT_OF_MEMORY, "no memory for a workspace");
  }
  w->answer_words = gpr_cuda_answer_words(device);
  gpr_status status = make_streams(w, device);
  if (!status) status = make_memory(w, device);
  if (status)
    gpr_workspace_free(w);
  else
    *out = w;
  return status;
}

gpr_status gpr_workspace_take(int device, workspace **out) {
  pthread_mutex_lock(&spaces.lock);
  workspace *w = spaces.idle[device];
  if (w) spaces.idle[device] = w->next;
  pthread_mutex_unlock(&spaces.lock);
  if (!w) return make(device, out);
  *out = w;
  return GPR_OK;
}

/* One ring a device is kept for the next run; others, made for runs at the same time, go back. */
void gpr_workspace_give(int device, workspace *w) {
  int rings = 0;
  pthread_mutex_lock(&spaces.lock);
  for (const workspace *i = spaces.idle[device]; i; i = i->next) rings += i->ring != NULL;
  pthread_mutex_unlock(&spaces.lock);
  if (rings) free_ring(w);
  pthread_mutex_lock(&spaces.lock);
  w->next = spaces.idle[device];
  spaces.idle[device] = w;
  pthread_mutex_unlock(&spaces.lock);
}

gpr_status gpr_workspace_ring(workspace *w, int device, int pinned) {
  const size_t bytes = SLOTS * (size_t)PIECE_BYTES;
  gpr_status status = GPR_OK;
  if (!w->ring) status = CU(device, MemAlloc, &w->ring, bytes);
  if (!status && pinned && !w->pinned)
    status = CU(device, MemHostAlloc, &w->pinned, bytes, CU_MEMHOSTALLOC_PORTABLE);
  return status;
}
