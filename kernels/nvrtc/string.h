/* In place of a C library's, and of math.h: NVRTC has memcpy and memset by itself. */
#pragma once

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
