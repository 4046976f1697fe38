#define _GNU_SOURCE
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../threads.h"

/* --- digests: FNV-1a of 128 bits -------------------------------------------------------------- */

gpr_digest gpr_digest_open(void) {
  return (gpr_digest){(unsigned __int128)UINT64_C(0x6c62272e07bb0142) << 64 |
                      UINT64_C(0x62b821756295c58d)};
}
void gpr_digest_add(gpr_digest *digest, const void *bytes, size_t size) {
  const unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;
  const unsigned char *at = bytes;
  for (size_t i = 0; i < size; i++) digest->state = (digest->state ^ at[i]) * prime;
}
void gpr_digest_text(gpr_digest *digest, const char *text) {
  gpr_digest_add(digest, text ? text : "", text ? strlen(text) + 1 : 1);
}
void gpr_digest_key(const gpr_digest *digest, char key[GPR_KEY_CHARS]) {
  snprintf(key, GPR_KEY_CHARS, "%016llx%016llx", (unsigned long long)(digest->state >> 64),
           (unsigned long long)digest->state);
}

/* --- the folder ------------------------------------------------------------------------------- */

static int fits(int written, size_t room) { return written > 0 && (size_t)written < room; }

/* The specification lets relative paths be ignored. */
static int folder_above(char *path, size_t room) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && *cache == '/') return fits(snprintf(path, room, "%s", cache), room);
  if (home && *home == '/') return fits(snprintf(path, room, "%s/.cache", home), room);
  return 0;
}

int gpr_cache_folder(char *path, size_t room) {
  if (!folder_above(path, room)) return 0;
  const size_t length = strlen(path);
  return fits(snprintf(path + length, room - length, "/gpureduce"), room - length);
}

/* A folder that others may write would let them run code here. */
static int is_ours(const struct stat *is) {
  return is->st_uid == geteuid() && !(is->st_mode & (S_IWGRP | S_IWOTH));
}

static _Thread_local char trouble[4352];
static const char *why(const char *path, const char *what) {
  snprintf(trouble, sizeof trouble, "%s: %s", path, what);
  return trouble;
}

/* Whether there is a folder of this path, which may be made; else the reason in *problem. */
static int have_folder(const char *path, int make, const char **problem) {
  if (!make || !mkdir(path, 0700) || errno == EEXIST) return 1;
  *problem = why(path, strerror(errno));
  return 0;
}

/* The folder, opened; -1 with the reason in *problem. */
static int open_folder(int make, const char **problem) {
  char path[4096];
  struct stat is;
  *problem = "neither XDG_CACHE_HOME nor HOME names a folder";
  if (!folder_above(path, sizeof path) || !have_folder(path, make, problem)) return -1;
  if (!gpr_cache_folder(path, sizeof path) || !have_folder(path, make, problem)) return -1;
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    *problem = why(path, strerror(errno));
    return -1;
  }
  *problem = NULL;
  if (fstat(folder, &is) == 0 && is_ours(&is)) return folder;
  *problem = why(path, "it is another user's, or others may write to it");
  close(folder);
  return -1;
}

/* --- files ------------------------------------------------------------------------------------ */

typedef struct head {
  char magic[16];
  unsigned __int128 digest; /* of the image */
  uint64_t size, unused;
} head;
static const char magic[16] = "gpureduce 1\n";

static head head_of(gpr_image image) {
  head h = {.size = image.size};
  gpr_digest digest = gpr_digest_open();
  gpr_digest_add(&digest, image.bytes, image.size);
  h.digest = digest.state;
  memcpy(h.magic, magic, sizeof magic);
  return h;
}

/* Reads, or writes, all of the bytes. */
static int move_all(int file, void *bytes, size_t size, int writes) {
  for (size_t done = 0; done < size;) {
    char *at = (char *)bytes + done;
    const ssize_t n = writes ? write(file, at, size - done) : read(file, at, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    done += (size_t)n;
  }
  return 1;
}

/* Whole, ours, with a name that ends, and of the digest that it says. */
static gpr_image read_image(int file) {
  gpr_image image = {NULL, 0};
  struct stat is;
  head h;
  if (fstat(file, &is) || !S_ISREG(is.st_mode) || !is_ours(&is)) return image;
  if (!move_all(file, &h, sizeof h, 0) || memcmp(h.magic, magic, sizeof magic)) return image;
  if (h.size == 0 || (uint64_t)is.st_size != sizeof h + h.size) return image;
  image.size = h.size;
  image.bytes = malloc(image.size);
  if (!image.bytes) return image;
  if (move_all(file, image.bytes, image.size, 0) && memchr(image.bytes, 0, image.size)) {
    const head same = head_of(image);
    if (same.digest == h.digest) return image;
  }
  free(image.bytes);
  return (gpr_image){NULL, 0};
}

gpr_image gpr_cache_read(const char *key) {
  const char *problem;
  char name[GPR_KEY_CHARS + 8];
  gpr_image image = {NULL, 0};
  const int folder = open_folder(0, &problem);
  if (folder < 0) return image;
  snprintf(name, sizeof name, "%s.kernel", key);
  const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file >= 0) {
    image = read_image(file);
    close(file);
  }
  close(folder);
  return image;
}

static int write_image(int folder, const char *name, gpr_image image) {
  head h = head_of(image);
  const int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return 0;
  int fine = move_all(file, &h, sizeof h, 1) && move_all(file, image.bytes, image.size, 1);
  const int error = errno;
  fine = close(file) == 0 && fine;
  if (!fine && error) errno = error;
  return fine;
}

const char *gpr_cache_write(const char *key, gpr_image image) {
  const char *problem;
  char name[GPR_KEY_CHARS + 8], aside[GPR_KEY_CHARS + 80];
  const int folder = open_folder(1, &problem);
  if (folder < 0) return problem;
  snprintf(name, sizeof name, "%s.kernel", key);
  /* Containers that share the folder have processes and threads of the same numbers. */
  snprintf(aside, sizeof aside, "%s.%ld.%ld.%llx.part", key, (long)getpid(),
           (long)syscall(SYS_gettid), (unsigned long long)gpr_now());
  if (!write_image(folder, aside, image) || renameat(folder, aside, folder, name)) {
    char path[4096];
    const int error = errno;
    unlinkat(folder, aside, 0);
    problem = why(gpr_cache_folder(path, sizeof path) ? path : "the cache", strerror(error));
  }
  close(folder);
  return problem;
}
