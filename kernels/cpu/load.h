/* Elements that do not count: which they are, and what stands in their place. */
#ifndef GPR_LOAD_H
#define GPR_LOAD_H

#include "many.h"

GPR_OPEN

/* --- identities --------------------------------------------------------------------------------
 */

/* Zero; -0.0 where that is a sum's: it changes no sum, not even one of -0.0 alone. */
template <class O, class F = typename O::Fold> struct Identity {
  typedef typename F::Element T;
  static T make() { return T{}; }
};
template <class O, class T> struct Identity<O, ExactFold<T>> {
  static T make() { return minus_zero<T>(); }
};
template <class O, class R> struct Identity<O, ExactFold<complex<R>>> {
  static complex<R> make() { return {minus_zero<R>(), minus_zero<R>()}; }
};
template <class O, class T> struct Identity<O, Counting<T, 0>> {
  static T make() { return convert<T>((int64_t)1); }
};
template <class O> struct Identity<O, Counting<datetime64, 0>> {
  static datetime64 make() { return {1}; }
};
template <class O> struct Identity<O, Counting<timedelta64, 0>> {
  static timedelta64 make() { return {1}; }
};
template <class O, class T> struct Identity<O, IntegerProduct<T>> {
  static T make() { return convert<T>((int64_t)1); }
};
template <class O, class T, template <class> class Op> struct Identity<O, Bitwise<T, Op>> {
  static T make() { return Order<T>::value(Op<typename Order<T>::Key>::identity()); }
};
template <class O, class T> struct Identity<O, TreeFold<T, Times>> {
  static T make() { return narrow(Times<typename Traits<T>::Wide>::identity(), T()); }
};
template <class O, class T> struct Identity<O, Extremes<T>> {
  static T make() {
    if constexpr (Traits<T>::kind == KIND_FLOAT) {
      typedef Format<T> F;
      return F::make(F::infinity() | (Asks<O>::low ? 0 : 1ull << (8 * sizeof(T) - 1)));
    } else if constexpr (Traits<T>::kind == KIND_BOOL) {
      return T{Asks<O>::low};
    } else {
      typedef typename Order<T>::Key K;
      const K nat = Traits<T>::kind == KIND_TIME; /* the least of times, which spoils */
      return Order<T>::value(Asks<O>::low ? Limits<K>::greatest : (K)(Limits<K>::least + nat));
    }
  }
};
template <class O, class R> struct Identity<O, Extremes<complex<R>>> {
  static complex<R> make() {
    const R worst = Asks<O>::low ? (R)__builtin_inf() : -(R)__builtin_inf();
    return {worst, worst};
  }
};

/* --- what does not count -----------------------------------------------------------------------
 */

/* NaN and NaT. gpr_leave_out: of a tile whose rows are contiguous, or the elements of each output.
 * Mostly there is nothing, and it is only read. */
template <class T> struct LeaveOut {
  typedef typename Signed<(sizeof(T) < 4 ? 4 : sizeof(T))>::type Lane;
  static constexpr bool some = category<T>() != INTEGER;
  static bool is_nan(T x) {
    if constexpr (Traits<T>::kind == KIND_FLOAT && sizeof(T) >= 4)
      return !(x == x);
    else
      return Rank<T, true>::poisoned(x);
  }
  static GPR_APART bool any_in(const T *x, int64_t n) {
    int any = 0;
    for (int64_t i = 0; i < n; i++) any |= is_nan(x[i]);
    return any != 0;
  }
  static int leave_out(const gpr_tile *t, void *to, const void *identity, int64_t *counts) {
    const bool columns = t->across == (int64_t)sizeof(T);
    const int64_t lines = columns ? t->n : t->outputs, n = columns ? t->outputs : t->n;
    const auto line = [&](int64_t i) {
      return (const T *)(const void *)(t->data + i * (columns ? t->along : t->across));
    };
    bool any = false;
    for (int64_t i = 0; i < lines && !any; i++) any = any_in(line(i), n);
    T other;
    memcpy(&other, identity, sizeof other);
    for (int64_t i = 0; any && i < lines; i++) {
      const T *__restrict x = line(i);
      T *__restrict y = (T *)to + i * n;
      if (columns) {
        for (int64_t j = 0; j < n; j++) {
          const bool nan = is_nan(x[j]);
          y[j] = nan ? other : x[j];
          counts[j] += !nan;
        }
      } else {
        Lane count = 0;
        for (int64_t j = 0; j < n; j++) {
          const bool nan = is_nan(x[j]);
          y[j] = nan ? other : x[j];
          count += !nan;
        }
        counts[i] += count;
      }
    }
    return any;
  }
  static int skip(const void *data, int64_t n, uint8_t *keep) {
    const T *x = (const T *)data;
    const bool any = any_in(x, n);
    for (int64_t i = 0; any && keep && i < n; i++) keep[i] &= !is_nan(x[i]);
    return any;
  }
};

template <class T>
static void blend_as(T *x, const uint8_t *keep, int64_t n, const void *identity) {
  T other;
  memcpy(&other, identity, sizeof other);
  for (int64_t i = 0; i < n; i++) x[i] = keep[i] ? x[i] : other;
}
static void blend(void *x, int bytes, const uint8_t *keep, int64_t n, const void *identity) {
  switch (bytes) {
    case 1: return blend_as((uint8_t *)x, keep, n, identity);
    case 2: return blend_as((uint16_t *)x, keep, n, identity);
    case 4: return blend_as((uint32_t *)x, keep, n, identity);
    case 8: return blend_as((uint64_t *)x, keep, n, identity);
    default:
      for (int64_t i = 0; i < n; i++)
        if (!keep[i]) memcpy((char *)x + i * bytes, identity, (size_t)bytes);
  }
}
static void count(const uint8_t *keep, int64_t across, int64_t along, int64_t outputs, int64_t n,
                  int64_t *counts) {
  if (along == 1)
    for (int64_t o = 0; o < outputs; o++)
      counts[o] += (int64_t)narrow_sum<uint8_t, uint32_t>(keep + o * across, n);
  else
    for (int64_t i = 0; i < n; i++)
      for (int64_t o = 0; o < outputs; o++) counts[o] += keep[i * along + o * across];
}

GPR_CLOSE
#endif
