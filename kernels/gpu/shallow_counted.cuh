/* Columns of a few rows of which a mask or NaN leaves out elements. */
#pragma once

#include "shallow.cuh"

GPR_OPEN

template <class F> struct MaskedStrip;
/* U rows, and a bit for each of their elements that counts. */
template <int U, class F> struct CountedRows {
  typedef typename F::Element T;
  static constexpr int V = Strip<F>::V;
  StripOf<T> v[U];
  uint32_t counts;
  int r;
  GPR_DEVICE CountedRows(const gpr_axes_args &a, const MaskedStrip<F> &strip, int r, int (&n)[V])
      : r(r) {
    const int rows = (int)a.count - r;
    const int64_t stride = a.dim[a.kept].stride;
    uint32_t column = 0;
    load_rows(v, strip.base + r * stride, stride, a.dim[a.kept - 1].stride, rows, strip.left);
    counts = strip.template counting<U>(r, rows);
    GPR_EACH(i, U * V)
      if (a.skip && is_nan_or_nat(v[i / V].element[i % V])) counts &= ~(1u << i);
    GPR_EACH(u, U) column |= 1u << u * V;
    GPR_EACH(e, V) n[e] += __popc(counts & column << e);
  }
  template <class Few> GPR_DEVICE void add_to(Few (&few)[V]) const {
    GPR_EACH(i, U * V) {
      const T x = v[i / V].element[i % V];
      if constexpr (Lane<F>::neutral)
        few[i % V].add(counts >> i & 1 ? x : minus_zero<T>(), 0);
      else if (counts >> i & 1)
        few[i % V].add(x, r + i / V);
    }
  }
};
template <class F> struct MaskedStrip : Strip<F> {
  using Strip<F>::V;
  const char *where;
  int64_t down, along; /* bytes of the mask from a row to the next, and from a column */
  GPR_DEVICE MaskedStrip(const gpr_axes_args &a, int64_t t)
      : Strip<F>(a, t),
        where(a.where),
        down(a.dim[a.kept].where_stride),
        along(a.dim[a.kept - 1].where_stride) {
    if (!where || !this->left) return;
    const int64_t batch = quotient_of(this->o, a.dim[a.kept - 1].size);
    where += offset_of<&gpr_axes_dim::where_stride>(a.dim, a.kept - 1, batch) +
             (this->o - batch * a.dim[a.kept - 1].size) * along;
  }
  /* V bytes, by the words that they lie in: of 24 rows of 546133 floats sums under a mask took 43
   * µs on an H200 byte by byte, and take 39. What a word has beside them is the allocation's. */
  static GPR_DEVICE uint32_t bytes_at(const char *from) {
    const uint32_t by = (uint32_t)(uintptr_t)from & 3;
    const uint32_t *const word = (const uint32_t *)(from - by);
    const uint32_t low = *word, high = by + V > 4 ? word[1] : low;
    return __funnelshift_r(low, high, 8 * by);
  }
  /* A bit for each element of U rows that counts, of which the first `rows` are there. */
  template <int U> GPR_DEVICE uint32_t counting(int r, int rows) const {
    uint32_t bits = 0;
    if (!where) {
      GPR_EACH(u, U) bits |= (u < rows ? (1u << this->left) - 1 : 0) << u * V;
      return bits;
    }
    const char *from = where + r * down;
    const bool by_words = this->left == V && along == 1;
    GPR_UNROLLED(int u = 0; u < U; u++, from += down) {
      if (u >= rows) continue;
      if (by_words) {
        bits |= (bits_of_bytes(bytes_at(from)) & ((1u << V) - 1)) << u * V;
      } else {
        GPR_EACH(e, V)
          if (e < this->left && from[e * along]) bits |= 1u << (u * V + e);
      }
    }
    return bits;
  }
  template <class Few> GPR_DEVICE uint32_t fold(const gpr_axes_args &a, Few (&few)[V]) const {
    typedef StripShape<typename F::Element> Shape;
    /* Of more, and what counts of them, the registers spilled. */
    constexpr int last = V > 1 ? Shape::loads / 2 : Shape::loads;
    int n[V] = {}, r = 0;
    GPR_ROLLED(; r + Shape::loads <= (int)a.count; r += Shape::loads)
      CountedRows<Shape::loads, F>(a, *this, r, n).add_to(few);
    GPR_ROLLED(; r < (int)a.count; r += last) CountedRows<last, F>(a, *this, r, n).add_to(few);
    GPR_EACH(e, V)
      if (e < this->left) tell_least(a, n[e]);
    return finish_few<F>(a, this->o, this->left, few, n);
  }
  GPR_DEVICE uint32_t again(const gpr_axes_args &a) const {
    Again<F> few[V];
    return fold(a, few);
  }
};
/* Columns of which a mask or NaN leaves out elements. */
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, SHALLOW_BLOCKS)
    counted(const __grid_constant__ gpr_axes_args a) {
  const int64_t t = block_of(a) * AXES_THREADS + threadIdx.x;
  const MaskedStrip<F> strip(a, t);
  if (!strip.left) return;
  Few<F> few[Strip<F>::V];
  const uint32_t missed = strip.fold(a, few);
  if (missed) finish_strip<F, MaskedStrip<F>>(&a, t, missed);
}

GPR_CLOSE
