/* A warp's leaves by way of shared memory: they come in the order of memory, many bytes at a time
 * and tiles ahead, and go to lanes of which each folds a run of leaves that follow each other. */
#ifndef GPR_OPERATOR_TILES_CUH
#define GPR_OPERATOR_TILES_CUH

#include "operator_leaves.cuh"
#include "warp.cuh"

GPR_OPEN

/* --- copies past the registers -------------------------------------------------------------------
 */

template <int BYTES> __device__ __forceinline__ void copy_ahead(char *to, const char *from) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(BYTES)
                 : "memory");
#else
  typedef typename Store<BYTES>::type Word;
  *(Word *)to = __ldg((const Word *)from);
#endif
}
__device__ __forceinline__ void copies_begun() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* All but the last LATER groups have come, of all lanes. */
template <int LATER> __device__ __forceinline__ void copies_came() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
#endif
  __syncwarp();
}

/* --- the tile of one array -----------------------------------------------------------------------
 */

/* A row of RUN leaves for each lane, of M numbers each. Lanes read their rows at the same time,
 * word after word: words change places so that those of neighbouring rows lie in other banks. */
template <class T, int M, int RUN> struct ArrayTile {
  static constexpr int leaf = M * (int)sizeof(T), row = RUN * leaf, all = GPR_WARP * RUN;
  static constexpr int word = word_of(row), words = row / word, line = 128 / word;
  enum { BYTES = GPR_WARP * row };

  static __device__ __forceinline__ int place(int byte) {
    constexpr int rows = words < line ? line : words;
    const int w = byte / word;
    if constexpr (words & (words - 1)) return byte;
    return (w ^ (w / rows % line)) * word + byte % word;
  }

  template <int PIECE> static __device__ __forceinline__ void copy(char *tile, const char *from) {
#pragma unroll 8
    for (int i = 0; i < row / PIECE; i++) {
      const int byte = (i * GPR_WARP + lane_of()) * PIECE;
      copy_ahead<PIECE>(tile + place(byte), from + byte);
    }
  }
  template <class OP>
  static __device__ __forceinline__ void put(char *tile, const Operands<OP> &x, int k, int stream,
                                             int64_t at, int64_t first, int there, bool in_line) {
#pragma unroll 1
    for (int m = 0; m < M; m++) {
#pragma unroll 8
      for (int i = 0; i < RUN; i++) {
        const int e = i * GPR_WARP + lane_of();
        if (e < there) {
          const int64_t of = in_line ? at + e * x.step[k] : x.far(k, first + e);
          *(T *)(tile + place(e * leaf + m * (int)sizeof(T))) =
              x.template number<T>(k, stream + m, of);
        }
      }
    }
  }
  template <class OP>
  static __device__ __forceinline__ void bring(char *tile, const Operands<OP> &x, int k, int stream,
                                               int64_t at, int64_t first, int there, bool in_line) {
    if (in_line && there == all && (x.a.packed >> k & 1)) {
      const char *from = (const char *)(x.numbers[stream] + at);
      if constexpr (word >= 4) {
        if ((uintptr_t)from % word == 0) return copy<word>(tile, from);
        if (word > 4 && (uintptr_t)from % 4 == 0) return copy<4>(tile, from);
      }
    }
    put(tile, x, k, stream, at, first, there, in_line);
  }

  /* N leaves of this lane's row, from place j on. */
  template <int N>
  static __device__ __forceinline__ void get(T (&to)[M * N], const char *tile, int j) {
    constexpr int bytes = N * leaf, piece = word_of(bytes) < word ? word_of(bytes) : word;
    typedef typename Store<piece>::type Word;
    Word w[bytes / piece];
#pragma unroll
    for (int i = 0; i < bytes / piece; i++)
      w[i] = *(const Word *)(tile + place(lane_of() * row + j * leaf + i * piece));
    memcpy(to, w, sizeof to);
  }
};

GPR_CLOSE
#endif
