/* A kernel as text: compiled for a device when it is first launched there, by NVRTC. */
#pragma once

/* What both languages declare. */
#ifdef __cplusplus
#define GPR_C extern "C"
#else
#define GPR_C extern
#endif

typedef struct gpr_program {
  const char *header;    /* of kernels/; with what it includes it has all that the kernel needs */
  const char *fold;      /* the type that F stands for in what follows, or NULL */
  const char *defines;   /* declarations before the kernel, or NULL */
  const char *kernel;    /* an expression where namespace gpr is used */
  struct gpr_made *made; /* the host's: what it is on each device */
  int *users;            /* of one that was made at run time; else NULL */
} gpr_program;

#ifndef __CUDACC__
/* Every program that the tables hold, each once. At most `room` go to `to`; the result is how many
 * there are. */
GPR_C int gpr_programs(gpr_program **to, int room);
#endif
