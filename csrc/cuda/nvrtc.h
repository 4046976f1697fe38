/* The compiler of device code: NVRTC, found and loaded when it is first needed. */
#pragma once

#include "../gpureduce.h"
#include "../../kernels/abi/program.h"
#include "cache.h"

/* The headers of kernels/, as the build put them into the library, by their paths there; and for
 * those that programs name, a digest of all that they include. */
typedef struct gpr_header {
  const char *name, *text, *digest;
} gpr_header;
extern const gpr_header gpr_headers[];
extern const int gpr_header_count;

/* By all that decides what the compiler is given: its options, the text, the headers. */
void gpr_nvrtc_key(const gpr_program *program, const char *arch, char key[GPR_KEY_CHARS]);

/* arch is "sm_90" for an image of that, or "compute_90" for PTX. `newest` is the CUDA version of
 * the driver that is to take it, 0 for any; `folders` is what gpr_surroundings gives, or NULL. */
gpr_status gpr_nvrtc_compile(const gpr_program *program, const char *arch, int newest,
                             const char *folders, gpr_image *image);
