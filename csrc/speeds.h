/* How fast this machine reduces large arrays of the host: what device="auto" goes by. Measured once
 * with one of them, and kept in the cache's folder. */
#pragma once

#include "places.h"

/* Bytes a second of the CPU, of all devices and of both; and the seconds that the first use of CUDA
 * takes a process. */
typedef struct gpr_speeds {
  double cpu, devices, all, start;
} gpr_speeds;

enum { GPR_PAGEABLE, GPR_PINNED, GPR_MEMORY_KINDS };

/* What is known of memory of that kind; 0: nothing. */
int gpr_speeds_known(int kind, gpr_speeds *speeds);
/* Measures with the array's elements, of which nothing is changed, and keeps that. */
gpr_status gpr_speeds_measure(int kind, const void *data, int64_t bytes, gpr_speeds *speeds);

/* The same with so many bytes of its own, of both kinds. */
gpr_status gpr_speeds_measure_all(int64_t bytes);

/* Below this the CPU does, whatever is measured: 256 MiB take two cores 15 ms. */
#define GPR_LARGE_BYTES 0x1p28

/* Who is fastest with an array of so many bytes. */
gpr_places gpr_speeds_choose(const gpr_speeds *speeds, double bytes, int is_started);
/* Of this one, measured with it if it has to be; the CPU where there is no device. */
gpr_places gpr_fastest(const void *data, double bytes);
