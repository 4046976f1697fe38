/* What the files of this folder share: devices, errors, memory, launches. */
#pragma once

#include "../plan.h"
#include "driver.h"

/* The driver's answer as a status, with the call named in the message. */
gpr_status gpr_cuda_check(CUresult result, const char *call, int device);
static inline gpr_status check(CUresult result, const char *call, int device) {
  return result == CUDA_SUCCESS ? GPR_OK : gpr_cuda_check(result, call, device);
}
#define CU(device, name, ...) check(cu.name(__VA_ARGS__), "cu" #name, device)

/* Makes the device's primary context the thread's, which the CUDA runtime and the libraries of
 * arrays use too; gpr_cuda_leave() puts back the one that was. */
gpr_status gpr_cuda_enter(int device, CUcontext *before);
void gpr_cuda_leave(int device, CUcontext before);
/* The status of what is done in between. */
#define ON(device, work)                               \
  ({                                                   \
    CUcontext left_;                                   \
    gpr_status done_ = gpr_cuda_enter(device, &left_); \
    if (!done_) {                                      \
      done_ = (work);                                  \
      gpr_cuda_leave(device, left_);                   \
    }                                                  \
    done_;                                             \
  })

/* Of a device that was entered. 0 where it is not known; of the compute capability and the
 * multiprocessors it is. */
int gpr_cuda_attribute(int which, int device);
int gpr_cuda_multiprocessors(int device);

/* The program's kernel on the device, whose context is current: made now if it is not yet.
 * GPR_MORE: it is being compiled still, after so many nanoseconds; ask again. */
gpr_status gpr_cuda_function(gpr_program *program, int device, int64_t nanoseconds,
                             CUfunction *function);
/* The same, however long it takes. */
gpr_status gpr_cuda_function_now(gpr_program *program, int device, CUfunction *function);
/* Ends what was made of a program that nobody has any more; NULL is fine. */
void gpr_cuda_unmake(struct gpr_made *made);

/* Whether what comes on the stream, of a device that was entered, goes into a graph. */
int gpr_cuda_is_capturing(CUstream stream);

/* What a capture anywhere would forbid this thread is allowed from now on, as it has nothing to do
 * with streams; gpr_cuda_strict() ends it. */
int gpr_cuda_relaxed(void);
void gpr_cuda_strict(int before);

/* Begins a launch; arguments is what the kernel takes. */
gpr_status gpr_cuda_start(CUfunction function, int64_t blocks, int threads, void *arguments,
                          const char *what, int device, CUstream stream);

/* Begins to gather elements [start, start + n) of a plan on the device into `to`, there too, by
 * the function of the table's gather. */
gpr_status gpr_cuda_gather(CUfunction gather, const gpr_plan *plan, int64_t start, int64_t n,
                           void *to, int device, CUstream stream);

/* Launches that are soon done, again and again, of a few kernels. One launch at a time. */
typedef struct gpr_launcher gpr_launcher;
gpr_status gpr_cuda_launch(gpr_launcher *launcher, CUfunction function, int64_t blocks, int threads,
                           void *arguments, int device, CUstream stream);
/* The caller's, of the device that is current then; NULL for want of memory. */
gpr_launcher *gpr_cuda_launcher(void);
void gpr_cuda_launcher_free(gpr_launcher *launcher);

/* The blocks for an array of so many bytes, and the words of an answer for any kernel. */
int64_t gpr_cuda_blocks(const gpr_gpu_row *kernel, int64_t bytes, int device);
int64_t gpr_cuda_answer_words(int device);

/* Memory in the order of the stream, which the caller releases on the same or on a later one. NULL
 * is fine. */
gpr_status gpr_cuda_allocate(void **out, size_t bytes, int device, CUstream stream);
void gpr_cuda_release(void *memory, CUstream stream);

/* Rows of `width` bytes, each so many bytes behind the one before. */
gpr_status gpr_cuda_copy_rows(void *to, int64_t to_pitch, const void *from, int64_t from_pitch,
                              int64_t width, int64_t rows, int device, CUstream stream);

/* Waits a little, the longer the longer it was waited for: `since` is when that began, and now is
 * now, as gpr_now() has them. 0: so far without leaving the processor. */
int gpr_cuda_wait(int64_t since, int64_t now);
