/* A warp's leaves by way of shared memory: they come in the order of memory, 16 bytes at a time and
 * tiles ahead, and go to lanes of which each folds a run of leaves that follow each other. */
#ifndef GPR_OPERATOR_TILES_CUH
#define GPR_OPERATOR_TILES_CUH

#include "outputs.cuh"
#include "warp.cuh"

GPR_OPEN

/* The greatest power of two up to 16 of which so many bytes are a multiple. */
GPR_CONSTEXPR int word_of(int bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

/* --- words ---------------------------------------------------------------------------------------
 */

/* What of these words begins `skew` bytes in, a number of numbers of SIZE bytes. */
template <int SIZE, int N> __device__ __forceinline__ void skip(uint4 (&words)[N], int skew) {
  uint32_t w[4 * N];
  memcpy(w, words, sizeof w);
  if (SIZE <= 8 && skew & 8)
#pragma unroll
    for (int i = 0; i < 4 * N - 2; i++) w[i] = w[i + 2];
  if (SIZE <= 4 && skew & 4)
#pragma unroll
    for (int i = 0; i < 4 * N - 1; i++) w[i] = w[i + 1];
  if (SIZE <= 2 && skew & 3)
#pragma unroll
    for (int i = 0; i < 4 * N - 1; i++)
      w[i] = (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> (skew & 3) * 8);
  memcpy(words, w, sizeof w);
}

/* N leaves' M numbers each, `step` bytes from one leaf to the next. Packed ones are read by words,
 * which lie at multiples of 16 where as many leaves follow that the last word is theirs too. */
template <class T, int M, int N, class X>
__device__ __forceinline__ void load_leaves(T (&to)[M * N], const X &x, int stream, int64_t at,
                                            int64_t step, bool packed, int64_t left) {
  constexpr int bytes = (int)sizeof to, word = word_of(bytes);
  if constexpr (word > (int)sizeof(T)) {
    typedef typename Store<word>::type Word;
    constexpr int words = bytes / word;
    const Word *from = (const Word *)(at & -(int64_t)word);
    const int skew = (int)(at & (word - 1));
    if (packed && (!skew || (word == 16 && left >= N + 16))) {
      Word w[words + 1];
#pragma unroll
      for (int i = 0; i < words; i++) w[i] = __ldg(from + i);
      if constexpr (word == 16)
        if (skew) {
          w[words] = __ldg(from + words);
          skip<sizeof(T)>(w, skew);
        }
      memcpy(to, w, sizeof to);
      return;
    }
  }
#pragma unroll
  for (int m = 0; m < M; m++) {
    const char *from = (const char *)x.address(stream, m, at);
#pragma unroll
    for (int j = 0; j < N; j++, from += step) to[j * M + m] = __ldg((const T *)from);
  }
}

/* --- copies past the registers -------------------------------------------------------------------
 */

/* The first `bytes` of 16, from a multiple of 16 on, and zeros behind them. */
__device__ __forceinline__ void copy_ahead(char *to, const char *from, int bytes) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
               : "memory");
#else
  for (int i = 0; i < 16; i++) to[i] = i < bytes ? __ldg(from + i) : 0;
#endif
}
__device__ __forceinline__ void copy_ahead(char *to, const char *from) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
#else
  *(uint4 *)to = __ldg((const uint4 *)from);
#endif
}
__device__ __forceinline__ void copies_begun() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* All but the last LATER groups have come, of this lane. */
template <int LATER> __device__ __forceinline__ void own_copies_came() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
#endif
}
/* The same of all lanes. */
template <int LATER> __device__ __forceinline__ void copies_came() {
  own_copies_came<LATER>();
  __syncwarp();
}

/* One number, to an offset there. */
template <class T>
__device__ __forceinline__ void copy_one(char *to, int offset, const char *from) {
#if __CUDA_ARCH__ >= 800
  const uint32_t at = (uint32_t)__cvta_generic_to_shared(to) + offset;
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"((int)sizeof(T))
               : "memory");
#else
  *(T *)(to + offset) = __ldg((const T *)from);
#endif
}
/* N leaves' M numbers each, to this lane's places among the warp's, and from there. */
template <class T, int M, int N, class X>
__device__ __forceinline__ void bring_leaves(char *places, const X &x, int stream, int64_t at,
                                             int64_t step) {
  char *const own = places + lane_of() * (int)sizeof(T);
#pragma unroll
  for (int m = 0; m < M; m++) {
    const char *from = (const char *)x.address(stream, m, at);
#pragma unroll
    for (int j = 0; j < N; j++, from += step)
      copy_one<T>(own, (j * M + m) * GPR_WARP * (int)sizeof(T), from);
  }
}
template <class T, int N>
__device__ __forceinline__ void get_own_leaves(T (&to)[N], const char *places) {
#pragma unroll
  for (int n = 0; n < N; n++) to[n] = ((const T *)places)[n * GPR_WARP + lane_of()];
}

/* --- the tile of one array -----------------------------------------------------------------------
 */

/* A row of RUN leaves for each lane, of M numbers each, at an offset in shared memory that is a
 * multiple of 128. What lies side by side comes as the words of 16 bytes that it is in: how far it
 * begins in the first of them, its skew, stands at the tile's end. Lanes read their rows at the
 * same time, word after word: words change places with others of the same 128 bytes, so that those
 * of neighbouring rows lie in other banks. */
template <class T, int M, int RUN> struct ArrayTile {
  static constexpr int leaf = M * (int)sizeof(T), row = RUN * leaf, all = GPR_WARP * RUN;
  static constexpr int words = row / 16;
  static constexpr bool is_mixed = row % 16 == 0 && words <= 8 && !(words & (words - 1));
  enum { BYTES = (GPR_WARP * row + 127) / 128 * 128 + 128, SKEW = BYTES - 4 };

  static __device__ __forceinline__ int place(int byte) {
    return is_mixed ? byte ^ (byte >> 7 & 7) << 4 : byte;
  }

  static __device__ __forceinline__ void copy_words(char *tile, int64_t address, int bytes) {
    constexpr int every = GPR_WARP * row, round = GPR_WARP * 16;
    const int lane = lane_of() * 16;
    const char *from = (const char *)address + lane;
    int at = lane;
    if (bytes >= every) {
      char *const even = tile + place(lane), *const odd =
                                                 tile + (place(lane) ^ (is_mixed ? 64 : 0));
#pragma unroll
      for (int i = 0; i < every; i += round)
        if (i + round <= every || i + lane < every)
          copy_ahead((i & round ? odd : even) + i, from + i);
      at += every;
    }
#pragma unroll 1
    for (; at < bytes; at += round)
      copy_ahead(tile + place(at), from + (at - lane), bytes - at < 16 ? bytes - at : 16);
  }
  /* Leaves of at most two lines lie at places that follow each other. Several are loaded before the
   * first one is asked for. */
  template <class X>
  static __device__ __noinline__ void put_all(char *tile, const X x, int k, int stream,
                                              int64_t first, int there) {
    constexpr int batch = RUN < 8 ? RUN : 8;
    int64_t from[X::ARRAYS], next[X::ARRAYS];
    const int64_t left = x.begin(from, first);
    const int64_t two = left < there ? left + x.line() : left;
    if (left < there) x.find(next, first + left);
#pragma unroll 1
    for (int i = lane_of(); i < M * there; i += batch * GPR_WARP) {
      T value[batch];
      bool counts[batch];
#pragma unroll
      for (int j = 0; j < batch; j++) {
        const int n = i + j * GPR_WARP < M * there ? i + j * GPR_WARP : i, e = n / M;
        int64_t at[X::ARRAYS];
        if (e < two)
#pragma unroll
          for (int a = 0; a < X::ARRAYS; a++)
            at[a] = e < left ? from[a] + e * x.step[a] : next[a] + (e - left) * x.step[a];
        else
          x.find(at, first + e);
        value[j] = x.template leaf<T>(k, stream, n % M, at);
        counts[j] = x.counts(at);
      }
#pragma unroll
      for (int j = 0; j < batch; j++)
        if (i + j * GPR_WARP < M * there)
          *(T *)(tile + place((i + j * GPR_WARP) * (int)sizeof(T))) =
              counts[j] ? value[j] : x.template nothing<T>();
    }
    if (lane_of() == 0) *(int *)(tile + SKEW) = 0;
  }

  /* One number a lane, of leaves of at most two lines. */
  template <class X>
  static __device__ __noinline__ void copy_numbers(char *tile, const X x, int k, int stream,
                                                   int64_t at, int64_t left, int64_t first,
                                                   int there) {
    int64_t next[X::ARRAYS];
    if (left < there)
      x.find(next, first + left);
    else
      next[k] = 0;
    const int64_t step = x.step[k], second = next[k] - left * step;
#pragma unroll 4
    for (int n = lane_of(); n < M * there; n += GPR_WARP) {
      const int e = n / M;
      const int64_t leaf_at = (e < left ? at : second) + e * step;
      copy_one<T>(tile, place(n * (int)sizeof(T)), (const char *)x.address(stream, n % M, leaf_at));
    }
    if (lane_of() == 0) *(int *)(tile + SKEW) = 0;
  }
  /* Of array k, whose first stream is given, as much as can be copied past the registers, and what
   * cannot. */
  template <class X>
  static __device__ __forceinline__ bool is_copied(const X &x, int k, int64_t left, int there) {
    const bool is_line = left >= there;
    if (!x.is_copied() || (is_line && x.is_packed(k))) return x.is_copied();
    return sizeof(T) >= 4 && (is_line || left + x.line() >= there);
  }
  template <class X>
  static __device__ __forceinline__ void copy(char *tile, const X &x, int k, int stream, int64_t at,
                                              int64_t left, int64_t first, int there) {
    if (!is_copied(x, k, left, there)) return;
    if constexpr (sizeof(T) >= 4) {
      if (left < there || !x.is_packed(k)) {
        copy_numbers(tile, x, k, stream, at, left, first, there);
        return;
      }
    }
    const int skew = (int)(at & 15);
    copy_words(tile, at - skew, skew + there * leaf);
    if (lane_of() == 0) *(int *)(tile + SKEW) = skew;
  }
  template <class X>
  static __device__ __forceinline__ void put(char *tile, const X &x, int k, int stream,
                                             int64_t left, int64_t first, int there) {
    if (!is_copied(x, k, left, there)) put_all(tile, x, k, stream, first, there);
  }

  /* This lane's row. */
  static __device__ __forceinline__ void get(T (&to)[M * RUN], const char *shared, int tile) {
    const int skew = *(const int *)(shared + tile + SKEW), mine = lane_of() * row;
    if constexpr (row % 16 == 0) {
      uint4 w[words + 1];
      const int at = tile + place(mine);
#pragma unroll
      for (int i = 0; i < words; i++)
        w[i] = *(const uint4 *)(shared + (is_mixed ? at ^ i * 16 : at + i * 16));
      if (skew) {
        w[words] = *(const uint4 *)(shared + tile + place(mine + row));
        skip<sizeof(T)>(w, skew);
      }
      memcpy(to, w, sizeof to);
    } else {
#pragma unroll
      for (int n = 0; n < M * RUN; n++) to[n] = ((const T *)(shared + tile + mine + skew))[n];
    }
  }
  /* A leaf of any lane's row. */
  static __device__ __forceinline__ void get_one(T (&to)[M], const char *shared, int tile, int e) {
    const int at = *(const int *)(shared + tile + SKEW) + e * leaf;
#pragma unroll
    for (int m = 0; m < M; m++)
      to[m] = *(const T *)(shared + tile + place(at + m * (int)sizeof(T)));
  }
};

GPR_CLOSE
#endif
