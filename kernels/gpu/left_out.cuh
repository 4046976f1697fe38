/* How much of rows is under way, what a lane keeps of those of which NaN or a mask leaves out
 * elements, and how they finish. */
#pragma once

#include "axes_results.cuh"
#include "counted.cuh"
#include "few.cuh"
#include "without_nan.cuh"
#include "missing.cuh"

GPR_OPEN

/* Blocks a multiprocessor, and packets a thread has under way. With four blocks an exact sum's
 * loads wait for registers, and with three some are spilled: with a run's packets found anew for
 * each tile as well, 128 MiB of lognormal floats took 42.5 µs on an H200, and take 35.8, 32 MiB of
 * bfloat16 17.5 and 15.7. Two positions of small elements would be thousands of instructions. */
template <class F> struct RowsShape { static constexpr int blocks = 4, loads = 8; };
template <class T> struct RowsShape<PairSum<T>> { static constexpr int blocks = 2, loads = 8; };
template <class T> struct RowsShape<Positions<T>> {
  static constexpr int blocks = 4, loads = sizeof(T) < 4 ? 2 : 4;
};
template <class F> struct RowsShape<Counted<F>> : RowsShape<F> {};
template <class F> struct RowsShape<WithoutNaN<F>> : RowsShape<F> {};

/* Where NaN is skipped: a State's n is how many were, less than nothing. */
template <class F> struct Lane<Counted<F>> {
  typedef typename F::Element T;
  static constexpr bool neutral = true;
  Lane<F> lane;
  int64_t n = 0;
  GPR_DEVICE void keep(typename Counted<F>::State *s) { lane.keep(&s->state); }
  template <int U> GPR_DEVICE void take(Packet<T> (&v)[U], int64_t index, int64_t step) {
    n -= drop_missing(v);
    lane.take(v, index, step);
  }
  GPR_DEVICE void one(T x, int64_t index) {
    if (is_nan_or_nat(x))
      n--;
    else
      lane.one(x, index);
  }
  GPR_DEVICE void result(typename Counted<F>::State &s) {
    lane.result(s.state);
    s.n = n;
  }
};

/* --- masks: packets of them are loaded with the elements' ------------------------------------- */

/* As Counted. */
template <class F> struct Masked : Counted<F> {};
template <class F> struct PoolBytes<Masked<F>> : PoolBytes<F> {};
template <class F> struct StateTerms<Masked<F>> : StateTerms<Counted<F>> {};
template <class F> struct Move<Masked<F>> : Move<Counted<F>> {};

/* Whether an element that is all zeros, or -0.0, is as good as none. */
template <class F> struct ZeroIsNothing { static constexpr bool value = Lane<F>::neutral; };
template <class T> struct ZeroIsNothing<IntegerSum<T>> { static constexpr bool value = true; };
template <class T> struct ZeroIsNothing<LongSum<T>> { static constexpr bool value = true; };
template <class T> struct ZeroIsNothing<Counting<T, 1>> { static constexpr bool value = true; };

/* The N bytes of a mask from anywhere on, by the words that they lie in; what a word has beside
 * them is the allocation's. */
template <int N> struct MaskBytes {
  static constexpr int words = (N + 3) / 4;
  uint32_t w[words];
  GPR_DEVICE void load_aligned(const char *from) {
    const auto all = load_as(from, typename Store<(N < 4 ? 4 : N)>::type());
    memcpy(w, &all, sizeof all);
  }
  GPR_DEVICE void load_anywhere(const char *from) {
    if constexpr (N < 4) {
      w[0] = (uint8_t)from[0];
      if (N == 2) w[0] |= (uint32_t)(uint8_t)from[1] << 8;
      return;
    }
    const uint32_t by = (uint32_t)(uintptr_t)from & 3;
    const uint32_t *const word = (const uint32_t *)(from - by);
    uint32_t low = word[0];
    GPR_EACH(i, words) {
      const uint32_t high = by || i + 1 < words ? word[i + 1] : low;
      w[i] = __funnelshift_r(low, high, 8 * by);
      low = high;
    }
  }
  GPR_DEVICE void load(const char *from, bool aligned) {
    if (N >= 4 && aligned)
      load_aligned(from);
    else
      load_anywhere(from);
  }
  /* The top bit of each that is not zero, and no others. */
  GPR_DEVICE int find() {
    int n = 0;
    GPR_EACH(i, words) {
      w[i] = true_bytes(w[i]);
      n += __popc(w[i]);
    }
    return n;
  }
  /* All bits of those elements of word i of a packet that count, of BYTES each. */
  template <int BYTES> GPR_DEVICE uint32_t of_word(int i) const {
    const uint32_t of = w[i / BYTES % words];
    const int at = i * 4 / BYTES % 4;
    return permute(of, BYTES == 1   ? 0xba98
                       : BYTES == 2 ? 0x9988 + 0x1111 * at
                                    : 0x8888 + 0x1111 * at);
  }
  /* The same of two elements of a word, in 16 bits each. */
  template <int BYTES> GPR_DEVICE uint32_t of_pair(int i, int pair) const {
    return BYTES == 1 ? permute(w[i], pair ? 0xbbaa : 0x9988) : of_word<2>(i);
  }
  /* A bit for each that is not zero. */
  GPR_DEVICE uint32_t bits() const {
    uint32_t all = 0;
    GPR_EACH(i, words) all |= bits_of_bytes(w[i]) << 4 * i;
    return all;
  }
  GPR_DEVICE bool has(int e) const { return w[e / 4] >> (8 * (e % 4) + 7) & 1; }
};

/* Extremes that are kept as two of 16 bits a register. */
template <class F> struct HasPairs { static constexpr bool value = false; };
template <class T> struct HasPairs<Extremes<T>> { static constexpr bool value = sizeof(T) <= 2; };
template <> struct HasPairs<Extremes<boolean>> { static constexpr bool value = false; };

template <class F> struct Lane<Masked<F>> {
  typedef typename F::Element T;
  static constexpr bool neutral = false;
  static constexpr int V = Packet<T>::count;
  Lane<F> lane;
  int64_t n = 0;
  const char *mask; /* where the element of index 0 would have its byte */
  bool skips;
  GPR_DEVICE void keep(typename Masked<F>::State *s) { lane.keep(&s->state); }
  template <int U> GPR_DEVICE void take(Packet<T> (&v)[U], int64_t index, int64_t step) {
    MaskBytes<V> bytes[U];
    const char *const from = mask + index;
    const bool aligned = (uintptr_t)from % V == 0;
    GPR_EACH(u, U) bytes[u].load(from + u * step, aligned);
    if constexpr (ZeroIsNothing<F>::value) {
      GPR_EACH(u, U) n += leave_out(v[u], bytes[u]);
      if constexpr (may_be_nan<T>())
        if (skips) n -= drop_missing(v);
      lane.take(v, index, step);
    } else {
      GPR_EACH(u, U) take_some(v[u], bytes[u]);
    }
  }
  GPR_DEVICE void take_some(const Packet<T> &v, MaskBytes<V> &bytes) {
    const int all = bytes.find();
    if constexpr (HasPairs<F>::value) {
      const uint32_t skipped = skips ? ~0u : 0;
      int gone = 0;
      GPR_EACH(i, 4)
        GPR_EACH(pair, 2 / (int)sizeof(T)) {
          uint32_t counts = bytes.template of_pair<sizeof(T)>(i, pair);
          if constexpr (may_be_nan<T>()) {
            const uint32_t missing = missing_of_pair<T>(word(v, i)) & counts & skipped;
            counts &= ~missing;
            gone += __popc(missing & 0x00010001u);
          }
          lane.bounds.add_some(pair_keys<T>(word(v, i), pair), counts);
        }
      n += all - gone - V;
    } else {
      GPR_EACH(e, V) consider(v.element[e], bytes.has(e));
    }
  }
  /* How many, less than nothing. */
  static GPR_DEVICE int leave_out(Packet<T> &v, MaskBytes<V> &bytes) {
    const int all = bytes.find();
    if constexpr (sizeof(T) <= 4) {
      v.words.x = kept(v.words.x, bytes.template of_word<sizeof(T)>(0));
      v.words.y = kept(v.words.y, bytes.template of_word<sizeof(T)>(1));
      v.words.z = kept(v.words.z, bytes.template of_word<sizeof(T)>(2));
      v.words.w = kept(v.words.w, bytes.template of_word<sizeof(T)>(3));
    } else {
      GPR_EACH(e, V)
        if (!bytes.has(e)) v.element[e] = neutral_of<T>();
    }
    return all - V;
  }
  static GPR_DEVICE uint32_t kept(uint32_t w, uint32_t counts) {
    constexpr uint32_t zero = Traits<T>::kind != KIND_FLOAT ? 0
                              : sizeof(T) == 2              ? 0x80008000u
                                                            : 0x80000000u;
    return (w & counts) | (zero & ~counts);
  }
  GPR_DEVICE void consider(T x, bool counts) {
    if (counts && !(may_be_nan<T>() && skips && is_nan_or_nat(x)))
      lane.one(x, 0);
    else
      n--;
  }
  GPR_DEVICE void one(T x, int64_t index) { consider(x, mask[index] != 0); }
  GPR_DEVICE void result(typename Masked<F>::State &s) {
    lane.result(s.state);
    s.n = n;
  }
};

/* Before output o's elements of a run. */
template <class L> GPR_DEVICE void find_mask(L &, const gpr_axes_args &, int64_t, int64_t) {}
template <class F>
GPR_DEVICE void find_mask(Lane<Masked<F>> &lane, const gpr_axes_args &a, int64_t o, int64_t run) {
  lane.skips = a.skip;
  lane.mask = a.where + offset_of<&gpr_axes_dim::where_stride>(a.dim, a.kept, o) - run * a.length +
              offset_of<&gpr_axes_dim::where_stride>(a.dim + a.kept, a.reduced - 1, run);
}

/* --- results ---------------------------------------------------------------------------------- */

/* A state of all elements, or of as many as its n says. */
template <class F> struct FinishRow {
  static GPR_DEVICE void finish(const gpr_axes_args &a, int64_t o, typename F::State &s) {
    finish_here<F>(a, o, s, CountOf<F>::of(a, s));
  }
};
template <class F> struct FinishRow<Counted<F>> {
  static GPR_DEVICE void finish(const gpr_axes_args &a, int64_t o, typename Counted<F>::State &s) {
    const int64_t n = a.count + s.n;
    tell_least(a, n);
    finish_here<F>(a, o, s.state, n);
  }
};
template <class F> struct FinishRow<Masked<F>> : FinishRow<Counted<F>> {};
/* Where NaN is skipped: what rows fold then, if they do. */
template <class F> struct RowsSkip {
  static constexpr bool value = Lane<F>::neutral || HasNumbers<F>::value;
  typedef typename Either<HasNumbers<F>::value, WithoutNaN<F>, Counted<F>>::type Fold;
};
/* Which folds have rows under masks: those that take packets, but for variances. Of floats under a
 * mask those took 129 µs on an H200 as packets of tiles, and 290 so. */
template <class F> struct RowsMask {
  static constexpr bool value = ZeroIsNothing<F>::value && !LooksFirst<F>::value;
};
template <class T> struct RowsMask<Extremes<T>> {
  static constexpr bool value = Traits<T>::kind != KIND_COMPLEX;
};
template <class F> struct RowsShape<Masked<F>> : RowsShape<F> {
  static constexpr int blocks = RowsShape<F>::blocks,
                       loads = blocks > 2 ? 4 : RowsShape<F>::loads; /* for registers */
};
/* And packets in tiles: those that take them much faster than elements. */
template <class F> struct TilePackets {
  static constexpr bool is_small = sizeof(typename F::Element) <= 2,
                        value = Lane<F>::neutral || (is_small && RowsMask<F>::value);
};

GPR_CLOSE
