/* Leaves on their way from memory, of arrays packed or not: to registers, or past them. */
#pragma once

#include "outputs.cuh"
#include "warp.cuh"

GPR_OPEN

/* The greatest power of two up to 16 of which so many bytes are a multiple. */
GPR_CONSTEXPR int word_of(int bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

/* Leaves in shared memory. Where they are swizzled, packets change places within each 128 bytes, or
 * what lies a power of two of them apart would share banks. */
struct Stage {
  char *bytes;
  int swizzle; /* or 0 */
  enum { SWIZZLE = 0x70 };
  GPR_DEVICE char *at(int place) const { return bytes + (place ^ (place >> 3 & swizzle)); }
};

/* --- where they lie --------------------------------------------------------------------------- */

/* The leaves of an output in N arrays. X has the address of each array's first one, and of each
 * dimension the length and the steps. */
template <class X, class ARGS, int N> struct LeafPlaces {
  typedef ARGS Args;
  enum { ARRAYS = N };
  const ARGS &a;
  int64_t base[N], step[N], count; /* addresses; steps of the last dimension */

  /* Of an output that begins at 0, without segments, or of output o. */
  GPR_DEVICE explicit LeafPlaces(const ARGS &args) : a(args), base{}, count(args.count) {
    set_steps();
  }
  GPR_DEVICE LeafPlaces(const ARGS &args, int64_t o) : a(args), count(args.count) {
    int64_t begin = 0;
    if (a.starts) {
      const int64_t segment = quotient_of(o, a.per);
      o -= segment * a.per;
      begin = a.starts[segment];
      count = a.stops[segment] > begin ? a.stops[segment] - begin : 0;
    }
    GPR_EACH(k, N) base[k] = own().data(k) + begin * own().stride(k, kept());
    go(base, 0, kept(), o);
    set_steps();
  }
  GPR_DEVICE const X &own() const { return static_cast<const X &>(*this); }
  GPR_DEVICE int kept() const { return (int)a.kept; }
  GPR_DEVICE int reduced() const { return (int)a.reduced; }
  GPR_DEVICE int dims() const { return (int)(a.kept + a.reduced); }
  GPR_DEVICE int64_t line() const { return own().length(dims() - 1); }
  GPR_DEVICE void set_steps() {
    GPR_EACH(k, N) step[k] = own().stride(k, dims() - 1);
  }
  /* To a place of some dimensions in C order; what it is in the last of them. */
  GPR_DEVICE int64_t go(int64_t *at, int first, int stop, int64_t place) const {
    int64_t last = 0;
    GPR_ROLLED(int d = stop - 1; d >= first; d--) {
      const int64_t many = own().length(d), over = d > first ? quotient_of(place, many) : 0;
      const int64_t here = place - over * many;
      GPR_EACH(k, N) at[k] += here * own().stride(k, d);
      if (d == stop - 1) last = here;
      place = over;
    }
    return last;
  }
  /* Where a leaf lies, and how many follow it in the last dimension, itself among them. */
  __device__ __noinline__ int64_t find(int64_t *at, int64_t i) const {
    GPR_EACH(k, N) at[k] = base[k];
    return line() - go(at, kept(), dims(), i);
  }
  GPR_DEVICE int64_t begin(int64_t (&at)[N], int64_t i) const {
    int64_t found[N], left = count - i;
    const bool is_line = a.reduced == 1;
    if (!is_line) left = X(own()).find(found, i); /* a copy, or all would be in memory */
    GPR_EACH(k, N) at[k] = is_line ? base[k] + i * step[k] : found[k];
    return left;
  }
};

/* --- to registers ----------------------------------------------------------------------------- */

/* What of these words begins `skew` bytes in, a multiple of SIZE. */
template <int N, int SIZE> GPR_DEVICE void skip(uint32_t *w, int skew) {
  if (skew & 8)
    GPR_EACH(i, N - 2) w[i] = w[i + 2];
  if (SIZE < 8 && skew & 4)
    GPR_EACH(i, N - 1) w[i] = w[i + 1];
  if (SIZE < 4 && skew & 3)
    GPR_EACH(i, N - 1) w[i] = (uint32_t)(((uint64_t)w[i + 1] << 32 | w[i]) >> (skew & 3) * 8);
}

/* N leaves' M numbers each. Packed ones come by words; small numbers that begin within a word by
 * one word more, which get() skips the beginning of: nothing that loads waits for memory, so
 * that several loads are on their way at once. */
template <class T, int M, int N> struct Given {
  static constexpr int size = (int)sizeof(T), bytes = M * N * size, word = word_of(bytes);
  static constexpr bool is_small = size < 4;
  static constexpr bool is_by_words = word > size;
  static constexpr bool is_shifted = is_small && word == 16;
  typedef typename Store<is_by_words ? word : size>::type Word;
  static constexpr int words = bytes / (int)sizeof(Word), most = words + is_shifted;
  static constexpr int in_words = bytes / 4 + (word == 16 || is_small ? 4 : 0);
  static constexpr int one_by_one = is_small ? M * N : 0;
  uint32_t w[one_by_one > in_words ? one_by_one : in_words];
  int skew; /* below 0: small numbers one by one */

  GPR_DEVICE void take(int n, T number) {
    if constexpr (is_small)
      w[n] = number;
    else
      memcpy(w + n * size / 4, &number, size);
  }
  template <int COUNT> GPR_DEVICE void take_words(const Word *from) {
    GPR_EACH(i, COUNT) {
      const Word loaded = __ldg(from + i);
      memcpy((char *)w + i * (int)sizeof(Word), &loaded, sizeof loaded);
    }
  }
  /* All of them, side by side: as words if they lie so, or behind them as many leaves as the last
   * word has. */
  GPR_DEVICE void load_packed(int64_t at, bool is_even) {
    skew = is_shifted && !is_even ? (int)(at & (word - 1)) : 0;
    const T *from = (const T *)at;
    if (is_by_words && is_even) {
      take_words<words>((const Word *)at);
    } else if (is_shifted) {
      take_words<most>((const Word *)(at - skew));
    } else {
      skew = is_small ? -1 : 0;
      GPR_EACH(n, M * N) take(n, __ldg(from + n));
    }
  }
  /* Number j of them. */
  template <class X>
  GPR_DEVICE void load_leaf(const X &x, int stream, int j, int64_t at, bool is_there) {
    skew = is_small ? -1 : 0;
    GPR_EACH(m, M) {
      T number = {}; /* or what a loop left there would be kept */
      if (is_there) number = __ldg((const T *)x.address(stream, m, at));
      take(j * M + m, number);
    }
  }
  /* The first `there` of those from number `from` on of a line, of which `left` lie there and the
   * others in the next one, which would be at `next` if it began here. */
  template <class X>
  GPR_DEVICE void load_lines(const X &x, int stream, int64_t at, int64_t next, int64_t step,
                             int from, int left, int there) {
    GPR_EACH(j, N) load_leaf(x, stream, j, (j < left ? at : next) + (from + j) * step, j < there);
  }
  /* Of a stage from byte `at` on, which goes on behind them: whole packets, or one by one. */
  GPR_DEVICE void load_shared(const Stage &stage, int at) {
    if constexpr (word < 16) return load_column(stage, at, size);
    skew = at & 15;
    GPR_EACH(i, bytes / 16 + 1)
      if (i < bytes / 16 || skew) {
        const uint4 packet = *(const uint4 *)stage.at(at - skew + 16 * i);
        memcpy(w + 4 * i, &packet, sizeof packet);
      }
  }
  /* One by one, `step` bytes from one to the next. */
  GPR_DEVICE void load_column(const Stage &stage, int at, int step) {
    skew = is_small ? -1 : 0;
    GPR_EACH(n, M * N) take(n, *(const T *)stage.at(at + n * step));
  }
  /* The first `there` of them, `step` bytes from one to the next. */
  template <class X>
  GPR_DEVICE void load_some(const X &x, int stream, int64_t at, int64_t step, bool packed,
                            int there) {
    if (is_by_words && packed && there == N && at % word == 0) {
      take_words<words>((const Word *)at);
      skew = 0;
    } else {
      load_lines(x, stream, at, at, step, 0, N, there);
    }
  }
  GPR_DEVICE void get(T (&to)[M * N]) {
    if (skew > 0) skip<in_words, size>(w, skew);
    /* One by one: a copy of all would go through memory. */
    GPR_EACH(n, M * N) {
      if constexpr (is_small)
        to[n] = (T)(skew < 0 ? w[n] : w[n * size / 4] >> n * size % 4 * 8);
      else
        memcpy(to + n, w + n * size / 4, size);
    }
  }
};

/* --- copies past the registers ---------------------------------------------------------------- */

GPR_DEVICE void copies_begun() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* All but the last LATER groups have come, of this lane. */
template <int LATER> GPR_DEVICE void own_copies_came() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
#endif
}
/* One number, to an offset there. */
template <class T> GPR_DEVICE void copy_one(char *to, int offset, const char *from) {
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
GPR_DEVICE void bring_leaves(char *places, const X &x, int stream, int64_t at, int64_t step) {
  char *const own = places + lane_of() * (int)sizeof(T);
  GPR_EACH(m, M) {
    const char *from = (const char *)x.address(stream, m, at);
    GPR_UNROLLED(int j = 0; j < N; j++, from += step)
      copy_one<T>(own, (j * M + m) * GPR_WARP * (int)sizeof(T), from);
  }
}
template <class T, int N> GPR_DEVICE void get_own_leaves(T (&to)[N], const char *places) {
  GPR_EACH(n, N) to[n] = ((const T *)places)[n * GPR_WARP + lane_of()];
}

/* Some runs of a line that is not packed. Their leaves come to the warp's room in shared memory, a
 * whole run ahead: of registers a compiler waits for all that a loop loads together. */
template <class OP, class X> struct Ahead {
  enum { PARTS = 4, MANY = OP::RUN / PARTS, OF_PART = MANY * GPR_WARP * OP::LEAF };
  enum { BYTES = OP::IS_AHEAD ? PARTS * OF_PART : 0 };
  const X &x;
  char *const places;
  int64_t at[OP::ARRAYS], parts; /* of the leaves that come next, and how much is left of them */

  GPR_DEVICE void bring(int part) {
    if (parts > 0) {
      OP::template bring<MANY>(places + part * OF_PART, x, at);
      GPR_EACH(k, OP::ARRAYS) at[k] += MANY * x.step[k];
    }
    parts--;
    copies_begun();
  }
  GPR_DEVICE void begin(const int64_t (&from)[OP::ARRAYS], int64_t runs) {
    GPR_EACH(k, OP::ARRAYS) at[k] = from[k];
    parts = runs * PARTS;
    GPR_EACH(part, PARTS) bring(part);
  }
  /* The leaves of a part, whose room the one that comes a run later has then. */
  GPR_DEVICE void get(typename OP::template Leaves<MANY> &leaves, int part) {
    own_copies_came<PARTS - 1>();
    leaves.get_own(places + part * OF_PART);
    bring(part);
  }
};

GPR_CLOSE
