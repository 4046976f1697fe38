/* Compiled kernels on disk, from one process to the next: $XDG_CACHE_HOME/gpureduce, else
 * ~/.cache/gpureduce. A file is named by all that went into it, written aside and renamed, and read
 * only if it is whole and the user's own; whatever goes wrong, there is then no cache. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GPR_KEY_CHARS = 33 };

/* A digest of what was added, 128 bits. */
typedef struct gpr_digest {
  unsigned __int128 state;
} gpr_digest;
gpr_digest gpr_digest_open(void);
void gpr_digest_add(gpr_digest *digest, const void *bytes, size_t size);
void gpr_digest_text(gpr_digest *digest, const char *text); /* with its end; NULL is fine */
void gpr_digest_key(const gpr_digest *digest, char key[GPR_KEY_CHARS]);

/* A kernel as the driver takes it: its lowered name, a zero, the image. */
typedef struct gpr_image {
  char *bytes; /* malloc's, the caller's; NULL: none */
  size_t size;
} gpr_image;

/* The folder's path: 0 where there is none to be had. */
int gpr_cache_folder(char *path, size_t room);

/* The image of that key; bytes is NULL where there is none. */
gpr_image gpr_cache_read(const char *key);
/* Why it could not be kept, or NULL. The text is the thread's until its next call. */
const char *gpr_cache_write(const char *key, gpr_image image);
