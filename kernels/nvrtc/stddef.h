/* In place of a C library's: NVRTC has size_t by itself. */
#pragma once

#define offsetof(type, member) ((size_t) & ((type *)0)->member)
