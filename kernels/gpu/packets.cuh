/* Reading: 16 bytes a load for every dtype.
 *
 * The array is seen as packets that start at multiples of 16 bytes, so that only the first and the
 * last one may lie partly outside; those are read element by element. */
#pragma once

#include "../core/portable.h"

GPR_OPEN

/* Sums of products of bytes and of 16-bit halves. As __dp4a() and __dp2a_lo(), which NVRTC 12.0
 * declares but does not have. */
#define GPR_DOT(name, instruction, type)                                      \
  GPR_DEVICE type name(type a, type b, type sum) {                            \
    type d;                                                                   \
    asm(instruction " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(sum)); \
    return d;                                                                 \
  }
GPR_DOT(dot4, "dp4a.s32.s32", int)
GPR_DOT(dot4, "dp4a.u32.u32", uint32_t)
GPR_DOT(dot2_low, "dp2a.lo.s32.s32", int)
GPR_DOT(dot2_low, "dp2a.lo.u32.u32", uint32_t)
#undef GPR_DOT

/* Elements as a packet holds them. */
template <class T> union Packet {
  uint4 words;
  static constexpr int count = 16 / sizeof(T);
  T element[count];
  __device__ Packet() {}
};

/* So many bytes as one word. */
template <int BYTES> struct Store;
template <> struct Store<1> { typedef uint8_t type; };
template <> struct Store<2> { typedef uint16_t type; };
template <> struct Store<4> { typedef uint32_t type; };
template <> struct Store<8> { typedef uint2 type; };
template <> struct Store<16> { typedef uint4 type; };

/* name(from, like) loads what `like` has, of 4, 8 or 16 bytes, where it stands: no load is moved.
 */
#define GPR_LOAD(name, how)                                                                     \
  GPR_DEVICE uint32_t name(const void *from, uint32_t) {                                        \
    uint32_t v;                                                                                 \
    asm volatile("ld.global" how ".u32 %0, [%1];" : "=r"(v) : "l"(from));                       \
    return v;                                                                                   \
  }                                                                                             \
  GPR_DEVICE uint2 name(const void *from, uint2) {                                              \
    uint2 v;                                                                                    \
    asm volatile("ld.global" how ".v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from)); \
    return v;                                                                                   \
  }                                                                                             \
  GPR_DEVICE uint4 name(const void *from, uint4) {                                              \
    uint4 v;                                                                                    \
    asm volatile("ld.global" how ".v4.u32 {%0, %1, %2, %3}, [%4];"                              \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                                   \
                 : "l"(from));                                                                  \
    return v;                                                                                   \
  }
/* What will not be read again soon: past the first cache. Measured on an H200, 98.6 % of the read
 * limit, where plain and evict-first loads come to 94 to 98. */
#ifdef __CUDA_ARCH__
GPR_LOAD(load_once_as, ".nc.L1::no_allocate")
GPR_LOAD(load_as, "")
#else
template <class V> V load_once_as(const void *from, V) { return *(const V *)from; }
template <class V> V load_as(const void *from, V) { return *(const V *)from; }
#endif
#undef GPR_LOAD
GPR_DEVICE uint4 load_once(const void *from) { return load_once_as(from, uint4()); }

/* A packet from global to shared memory, by cp.async. */
GPR_DEVICE void copy_packet(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
#else
  *(uint4 *)to = __ldg((const uint4 *)from);
#endif
}

/* All of the block's have come. */
GPR_DEVICE void copies_done() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncthreads();
}

/* Makes the first packet's words wait for all the others', and for `with`: the compiler is apt to
 * put some of the loads, or an atomic that is under way meanwhile, behind the first additions, a
 * memory's latency later. threadIdx.y is zero, which it cannot know. */
template <class T, int U> GPR_DEVICE void load_together(Packet<T> (&v)[U], uint32_t with) {
  GPR_UNROLLED(int u = 1; u < U; u++) with |= v[u].words.w;
  with &= threadIdx.y;
  v[0].words.x |= with;
  v[0].words.y |= with;
  v[0].words.z |= with;
  v[0].words.w |= with;
}

template <class T> struct Packets {
  static constexpr int count = Packet<T>::count;
  const T *data;       /* at a multiple of 16 bytes: element 0 of packet 0, which may lie outside */
  int64_t first, stop; /* elements [first, stop) from there are the array */

  __device__ Packets(const void *address, int64_t n) {
    const int64_t before = (int64_t)((uintptr_t)address % 16 / sizeof(T));
    data = (const T *)address - before;
    first = before;
    stop = before + n;
  }
  __device__ int64_t packets() const { return (stop + count - 1) / count; }
  /* Packets [p, p + n) lie wholly inside. */
  __device__ bool inside(int64_t p, int64_t n) const {
    return p * count >= first && (p + n) * count <= stop;
  }
  __device__ uint4 load(int64_t p) const { return load_once(data + p * count); }
  /* Packets p, p + apart, …, all on their way at once. */
  template <int U> GPR_DEVICE void load(Packet<T> (&v)[U], int64_t p, int apart) const {
    GPR_EACH(u, U) v[u].words = load(p + u * apart);
  }
  /* What is inside of packet p, and the other one around it. */
  GPR_DEVICE void load_part(Packet<T> &v, int64_t p, T around) const {
    GPR_EACH(j, count) {
      const int64_t i = p * count + j;
      v.element[j] = i >= first && i < stop ? data[i] : around;
    }
  }
  template <class Each> __device__ void each(int64_t p, Each each) const {
    Packet<T> v;
    if (inside(p, 1)) v.words = load(p);
    for (int j = 0; j < count; j++) {
      const int64_t i = p * count + j;
      if (i >= first && i < stop) each(inside(p, 1) ? v.element[j] : data[i], i - first, j);
    }
  }
};

GPR_CLOSE
