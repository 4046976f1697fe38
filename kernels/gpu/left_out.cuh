/* What a lane keeps of rows of which NaN or a mask leaves out elements. */
#pragma once

#include "counted.cuh"
#include "mask_bytes.cuh"
#include "missing.cuh"
#include "without_nan.cuh"

GPR_OPEN

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

/* The same of masks, packets of which are loaded with the elements'. */
template <class F> struct Masked : Counted<F> {};
template <class F> struct PoolBytes<Masked<F>> : PoolBytes<F> {};
template <class F> struct StateTerms<Masked<F>> : StateTerms<Counted<F>> {};
template <class F> struct Move<Masked<F>> : Move<Counted<F>> {};

/* Whether an element that is all zeros, or -0.0, is as good as none. */
template <class F> struct ZeroIsNothing { static constexpr bool value = Lane<F>::neutral; };
template <class T> struct ZeroIsNothing<IntegerSum<T>> { static constexpr bool value = true; };
template <class T> struct ZeroIsNothing<LongSum<T>> { static constexpr bool value = true; };
template <class T> struct ZeroIsNothing<Counting<T, 1>> { static constexpr bool value = true; };

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

GPR_CLOSE
