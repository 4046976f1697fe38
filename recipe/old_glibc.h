/* For wheels, which are built on a newer glibc than they have to run on: the versions of functions
 * that glibc 2.28 has. Included before all else where GPUREDUCE_MANYLINUX=1. */
#ifndef GPR_OLD_GLIBC_H
#define GPR_OLD_GLIBC_H

#if defined __x86_64__
#define GPR_OLD_AS(name, old, version) __asm__(".symver " #name ", " #old "@GLIBC_" version)
#define GPR_FIRST "2.2.5"
#define GPR_CLOCK "2.3.3"
#define GPR_STAT_VERSION 1
#elif defined __aarch64__
#define GPR_OLD_AS(name, old, version) __asm__(".symver " #name ", " #old "@GLIBC_2.17")
#define GPR_STAT_VERSION 0
#endif
#define GPR_OLD(name, version) GPR_OLD_AS(name, name, version)

/* From 2.33 a function of its own. Nothing is included here: what comes next may ask for features.
 */
struct stat;
int __fxstat(int version, int file, struct stat *about);
static inline int gpr_fstat(int file, struct stat *about) {
  return __fxstat(GPR_STAT_VERSION, file, about);
}
#define fstat gpr_fstat

GPR_OLD(__fxstat, GPR_FIRST);
/* From 2.32 and 2.34 in libc, before in libpthread and libdl. */
GPR_OLD(pthread_sigmask, GPR_FIRST);
GPR_OLD(pthread_create, GPR_FIRST);
GPR_OLD(pthread_once, GPR_FIRST);
GPR_OLD(pthread_key_create, GPR_FIRST);
GPR_OLD(pthread_key_delete, GPR_FIRST);
GPR_OLD(pthread_getspecific, GPR_FIRST);
GPR_OLD(pthread_setspecific, GPR_FIRST);
GPR_OLD(pthread_condattr_setclock, GPR_CLOCK);
GPR_OLD(dlopen, GPR_FIRST);
GPR_OLD(dlsym, GPR_FIRST);
GPR_OLD(dladdr, GPR_FIRST);
GPR_OLD(dlclose, GPR_FIRST);
/* What headers from 2.38 call the two that read numbers: they know binary ones too. */
GPR_OLD_AS(__isoc23_strtol, strtol, GPR_FIRST);
GPR_OLD_AS(__isoc23_sscanf, sscanf, GPR_FIRST);

#endif
