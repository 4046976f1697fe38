/* Columns of a few rows, as many as there are threads and more. */
#pragma once

#include "missing.cuh"
#include "strips.cuh"
#include "tile_run.cuh"

GPR_OPEN

enum { SHALLOW_BLOCKS = 4 };
/* Blocks a multiprocessor, where all elements count. Of 100 MB in 12 rows sums of doubles took 32
 * µs on an H200 by five and 27 by four, of halves 38 by six and 34 by five. Maxima of 300 MiB of
 * floats in 4 rows took 140 by five, whose registers spilled, and take 102. */
template <class F> struct ShallowShape {
  static constexpr int blocks = sizeof(typename F::Element) == 1 ? 6 : SHALLOW_BLOCKS;
};
template <> struct ShallowShape<PairSum<float16>> { static constexpr int blocks = 5; };
template <class T> struct ShallowShape<LongSum<T>> {
  static constexpr int blocks = SHALLOW_BLOCKS;
};

/* Neighbouring results of one thread, and those of them, as bits, that need fold_again(): which is
 * called when it can spill nothing that is alive. */
template <class F, class Few, int N, class Numbers>
GPR_DEVICE uint32_t finish_few(const gpr_axes_args &a, int64_t o, int left, Few (&few)[N],
                               const Numbers &n) {
  const auto finish = [&](typename Few::Value(&value)[N]) {
    uint32_t missed = 0;
    finish_values<F>(a, o, value, n, left);
    GPR_EACH(e, N) missed |= is_certified(value[e]) ? 0u : 1u << e;
    return missed & ((1u << left) - 1);
  };
  typename Few::Value value[N];
  if constexpr (IsSum<F>::value) {
    return as_asked(a, [&](Asked asked) {
      const Over all = over_all(asked, n);
      GPR_EACH(e, N) value[e] = few[e].shown(a, asked, over_one(asked, n, e, all), number_of(n, e));
      return finish(value);
    });
  } else {
    const typename Few::Shared shared(a);
    GPR_EACH(e, N) few[e].result(value[e], shared);
    return finish(value);
  }
}

/* Neighbouring columns, up to four elements apart: a.count elements of each, a.dim[kept].stride
 * apart. */
template <class F> struct Strip {
  typedef typename F::Element T;
  static constexpr int V = StripShape<T>::count;
  const char *base;
  int64_t o, rest = 0; /* rest: columns from its first to the last of their rows */
  int left = 0;        /* columns that exist */
  GPR_DEVICE Strip() {}
  GPR_DEVICE Strip(const gpr_axes_args &a, int64_t t) { set(a, t); }
  GPR_DEVICE void set(const gpr_axes_args &a, int64_t t) {
    if (t >= a.tiles) return;
    const int64_t width = a.dim[a.kept - 1].size, across = quotient_of(width + V - 1, V);
    const int64_t batch = across == a.tiles ? 0 : quotient_of(t, across),
                  first = (t - batch * across) * V;
    base = a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept - 1, batch) +
           first * a.dim[a.kept - 1].stride;
    o = batch * width + first;
    set_left(width - first);
  }
  GPR_DEVICE void set_left(int64_t columns) {
    rest = columns;
    left = columns < V ? (int)columns : V;
  }
  /* A block's threads further on, in the same row mostly: without a division. */
  GPR_DEVICE void follow(const gpr_axes_args &a, int64_t t, const Strip &before) {
    enum { STEP = AXES_THREADS * V };
    if (before.rest <= STEP) return set(a, t);
    base = before.base + STEP * a.dim[a.kept - 1].stride;
    o = before.o + STEP;
    set_left(before.rest - STEP);
  }
};

/* Sums that skip NaN, of which nobody asks how many numbers they have; of complex numbers it took
 * longer than to count: 5 rows of 4 million complex floats 64 and 57 µs on an H200. */
template <class F> struct CanOnlySkip {
  static constexpr bool value =
      IsSum<F>::value &&
      Same<typename RealOf<typename F::Element>::type, typename F::Element>::value;
};
GPR_FN GPR_CONSTEXPR bool only_skips(const gpr_axes_args &a) {
  return a.skip && !a.where && !a.least && !divides(a.op);
}
/* What takes the place of NaN in such sums: -0.0, which changes nothing, and a 0 besides in columns
 * that have nothing else. */
template <class F, bool SKIP> struct Skipping {
  typedef typename F::Element T;
  static constexpr int V = Strip<F>::V;
  uint32_t seen = 0; /* columns, as bits, that have a number */
  template <int U> GPR_DEVICE void drop(StripOf<T> (&v)[U], int rows) {
    if constexpr (SKIP)
      GPR_EACH(i, U * V) {
        T &x = v[i / V].element[i % V];
        if (is_nan_or_nat(x))
          x = neutral_of<T>();
        else if (i / V < rows)
          seen |= 1u << i % V;
      }
  }
  template <class Few> GPR_DEVICE void end(const gpr_axes_args &a, Few (&few)[V]) const {
    if (!SKIP || a.has_initial) return;
    GPR_EACH(e, V)
      if (!(seen >> e & 1)) few[e].add(T{}, 0);
  }
};

/* U rows of it from row r on, or as many as there are; what lies outside is not added. */
template <int U, bool ALL, class F, bool SKIP> struct RowsOfStrip {
  static constexpr int V = Strip<F>::V;
  StripOf<typename F::Element> v[U];
  int r, rows;
  GPR_DEVICE RowsOfStrip(const gpr_axes_args &a, const Strip<F> &strip, int r,
                         Skipping<F, SKIP> &skipping)
      : r(r), rows((int)a.count - r) {
    const int64_t stride = a.dim[a.kept].stride;
    load_rows(v, strip.base + r * stride, stride, a.dim[a.kept - 1].stride, ALL ? U : rows,
              strip.left);
    skipping.drop(v, rows);
  }
  template <class Few> GPR_DEVICE void add_to(Few (&few)[V]) const {
    GPR_EACH(u, U) {
      if (!ALL && u >= rows) break;
      GPR_EACH(e, V) few[e].add(v[u].element[e], r + u);
    }
  }
};
/* Of more rows a strip is looked at again as a whole: 256 MiB of lognormal floats with a sigma of
 * 5, then all read again, took 371, 307, 313 and 275 µs on an H200 column by column, of 2, 3, 5 and
 * 8 rows, and 477, 370, 299 and 219 so: by so many rows at a time. */
enum { AGAIN_BY_COLUMNS = 5, ROWS_AGAIN = 8 };
template <class F, bool SKIP> struct TallStrip : Strip<F> {
  using Strip<F>::Strip;
  GPR_DEVICE uint32_t again(const gpr_axes_args &a) const {
    Again<F> few[Strip<F>::V];
    Skipping<F, SKIP> skipping;
    GPR_ROLLED(int r = 0; r < (int)a.count; r += ROWS_AGAIN)
      RowsOfStrip<ROWS_AGAIN, false, F, SKIP>(a, *this, r, skipping).add_to(few);
    skipping.end(a, few);
    return finish_few<F>(a, this->o, this->left, few, a.count);
  }
};
/* What plain additions could not tell of strip t: of many rows by more terms, then one by one. */
template <class F, class STRIP>
__device__ __noinline__ void finish_strip(const gpr_axes_args *a, int64_t t, uint32_t missed) {
  const STRIP strip(*a, t);
  if constexpr (HasAgain<F>::value && !Same<STRIP, Strip<F>>::value)
    if (a->count > AGAIN_BY_COLUMNS) missed &= strip.again(*a);
  GPR_ROLLED(; missed; missed &= missed - 1) fold_again<F>(a, strip.o + __ffs(missed) - 1);
}

/* Whether plain additions will not do for some column of the warp's active lanes; more: to come. */
template <class Few, int V>
GPR_DEVICE bool are_far_apart(const Few (&few)[V], int count, bool more) {
  bool close = true;
  GPR_EACH(e, V) close &= more ? few[e].is_close() : few[e].fine(count);
  return __any_sync(__activemask(), !close);
}
/* ROWS rows of a strip that are loaded, and which of its columns were missed. */
template <class F, class Few, int ROWS, bool SKIP>
GPR_DEVICE uint32_t finish_rows(const gpr_axes_args &a, const Strip<F> &strip,
                                StripOf<typename F::Element> (&v)[ROWS]) {
  typedef typename F::Element T;
  constexpr int V = StripShape<T>::count;
  Few few[V];
  Skipping<F, SKIP> skipping;
  if (ROWS > 1) skipping.drop(v, ROWS);
  if constexpr (Begins<Few>::value)
    GPR_EACH(e, V) few[e].begin(v[0].element[e]);
  GPR_EACH(i, ROWS * V) {
    const T x = v[i / V].element[i % V];
    few[i % V].add(ROWS == 1 && a.skip && is_nan_or_nat(x) ? T{} : x, i / V);
  }
  if (ROWS > 1) skipping.end(a, few);
  if constexpr (ROWS > 2 && IsWide<F>::value)
    if (are_far_apart(few, ROWS, false)) {
      Again<F> again[V];
      GPR_EACH(i, ROWS * V) again[i % V].add(v[i / V].element[i % V], i / V);
      return finish_few<F>(a, strip.o, strip.left, again, ROWS);
    }
  return finish_few<F>(a, strip.o, strip.left, few, ROWS);
}

enum { ROWS_OF_STRIPS = 3 };
/* How many strips of up to three rows a thread has: of one of few bytes there would be too few
 * loads under way. Of 3 rows, 300 MiB, sums of halves took 181 µs on an H200 by one strip and 152
 * by two, of floats 119 and 136. */
GPR_FN GPR_CONSTEXPR int strips_of(int rows, int bytes) {
  return rows == 1 ? 4 : rows == 2 || bytes < 16 ? 2 : 1;
}
template <class F, class Few, int ROWS, bool SKIP = false>
GPR_DEVICE void fold_strips(const gpr_axes_args &a) {
  typedef typename F::Element T;
  constexpr int V = StripShape<T>::count, STRIPS = strips_of(ROWS, StripShape<T>::bytes);
  const int64_t t = block_of(a) * AXES_THREADS * STRIPS + threadIdx.x,
                stride = a.dim[a.kept].stride;
  Strip<F> strip[STRIPS];
  StripOf<T> v[STRIPS][ROWS];
  GPR_EACH(s, STRIPS) {
    if (s)
      strip[s].follow(a, t + s * AXES_THREADS, strip[s - 1]);
    else
      strip[s].set(a, t);
    load_rows(v[s], strip[s].base, stride, a.dim[a.kept - 1].stride, ROWS, strip[s].left);
  }
  uint32_t missed = 0;
  GPR_EACH(s, STRIPS)
    if (strip[s].left) missed |= finish_rows<F, Few, ROWS, SKIP>(a, strip[s], v[s]) << s * V;
  GPR_ROLLED(int s = 0; missed; s++, missed >>= V)
    if (const uint32_t some = missed & ((1u << V) - 1))
      finish_strip<F, Strip<F>>(&a, t + s * AXES_THREADS, some);
}

/* From how many rows on there is a body for their number, and up to how many. */
enum { ROWS_AT_ONCE = 7 };
GPR_FN GPR_CONSTEXPR int least_at_once(bool skip) { return ROWS_OF_STRIPS + !skip; }
/* One strip of a thread, of many rows. */
template <class F, bool SKIP> struct StripRun {
  typedef StripShape<typename F::Element> Shape;
  static constexpr int V = Shape::count, loads = Shape::loads, last = Shape::last;
  const gpr_axes_args &a;
  const int64_t t;
  const Strip<F> strip;
  Skipping<F, SKIP> skipping;
  GPR_DEVICE StripRun(const gpr_axes_args &a, int64_t t) : a(a), t(t), strip(a, t) {}

  template <class Few> GPR_DEVICE void end(Few (&few)[V]) {
    skipping.end(a, few);
    const uint32_t missed = finish_few<F>(a, strip.o, strip.left, few, a.count);
    if (missed) finish_strip<F, TallStrip<F, SKIP>>(&a, t, missed);
  }
  /* ROWS from row r on, which are there. */
  template <int ROWS, class Few> GPR_DEVICE void add(int r, Few (&few)[V]) {
    const RowsOfStrip<ROWS, true, F, SKIP> rows(a, strip, r, skipping);
    if constexpr (Begins<Few>::value)
      GPR_EACH(e, V)
        if (r == 0) few[e].begin(rows.v[0].element[e]);
    rows.add_to(few);
  }
  /* The last rows, from row r on, MOST of them or fewer down to LEAST, at once: what is not there
   * takes as long as the others to add, and what is read apart waits for the memory again. Of 300
   * MiB in 7 rows means of doubles took 130 µs on an H200 by loads of four rows and of two, and
   * take 93, variances of floats 129 and 100, maxima of bytes 1290 and 179. */
  template <int MOST, int LEAST, class Few> GPR_DEVICE void add_last(int r, Few (&few)[V]) {
    if constexpr (MOST >= LEAST) {
      if ((int)a.count - r == MOST)
        add<MOST>(r, few);
      else
        add_last<MOST - 1, LEAST>(r, few);
    }
  }
  /* By some rows at a time, as many of them as there are. */
  template <class Few> GPR_DEVICE void add_last_by(int r, Few (&few)[V]) {
    GPR_ROLLED(; r < (int)a.count; r += last)
      RowsOfStrip<last, false, F, SKIP>(a, strip, r, skipping).add_to(few);
  }
  /* All of up to ROWS_AT_ONCE; whether there are so many. */
  template <class Few> GPR_DEVICE bool added_at_once(Few (&few)[V]) {
    if (a.count < least_at_once(SKIP) || a.count > ROWS_AT_ONCE) return false;
    add_last<ROWS_AT_ONCE, least_at_once(SKIP)>(0, few);
    return true;
  }
  /* From row r on, of what is wide, whose code for each number of rows would be long. */
  template <class Few> GPR_DEVICE void fold_wide_rows(int r, Few (&few)[V]) {
    GPR_ROLLED(; r + loads <= (int)a.count; r += loads) add<loads>(r, few);
    add_last_by(r, few);
    end(few);
  }
  /* Numbers that are far apart are so from the first rows on, mostly, and go by pairs from there:
   * 24 rows of 475913 lognormal floats with a sigma of 5 took 40 µs on an H200 when they were read
   * again, and take 16, normal ones 11; by pairs from the start 14.6, and 3 rows of normal ones 56
   * in place of 49. 40 rows of 2.5 million bfloat16 took 330 read again, and take 93. */
  template <class Few> GPR_DEVICE void fold_wide(Few (&few)[V]) {
    Again<F> again[V];
    int r = 0;
    /* In registers more than four rows would be too many to be added again. */
    if (loads > 4 && added_at_once(few)) {
      if (!are_far_apart(few, (int)a.count, false)) return end(few);
    } else {
      const RowsOfStrip<loads, false, F, SKIP> first(a, strip, 0, skipping);
      r = loads;
      first.add_to(few);
      if (!are_far_apart(few, (int)a.count, a.count > loads)) return fold_wide_rows(r, few);
      first.add_to(again);
    }
    fold_wide_rows(r, again);
  }
  GPR_DEVICE void fold() {
    constexpr bool is_half = sizeof(typename F::Element) == 2;
    typename OfColumns<F>::few few[V];
    if constexpr (IsWide<F>::value) {
      fold_wide(few);
    } else {
      int r = 0;
      if (is_half && added_at_once(few)) return end(few);
      GPR_ROLLED(; a.count > ROWS_AT_ONCE && r + loads <= (int)a.count; r += loads)
        add<loads>(r, few);
      if constexpr (is_half) /* of more code of theirs the registers spill */
        add_last_by(r, few);
      else
        add_last<ROWS_AT_ONCE, 1>(r, few);
      end(few);
    }
  }
};

/* Columns: rows of a.dim[kept - 1].size elements, of which there are a.count, FEW_MOST at most,
 * a.dim[kept].stride apart. SKIP: NaN; 2 rows of 38493832 floats took 199 µs on an H200 where each
 * sum's numbers were counted, and take 133. */
template <class F, bool SKIP = false>
__global__ void __launch_bounds__(AXES_THREADS, SKIP ? SHALLOW_BLOCKS : ShallowShape<F>::blocks)
    shallow(const __grid_constant__ gpr_axes_args a) {
  if (SKIP && a.count == 2) return fold_strips<F, typename OfColumns<F>::two, 2, SKIP>(a);
  StripRun<F, SKIP> run(a, block_of(a) * AXES_THREADS + threadIdx.x);
  if (run.strip.left) run.fold();
}
/* Of up to ROWS_OF_STRIPS; one alone without an initial value. A kernel of its own, since together
 * the two took the compiler twice as long. */
template <class F>
__global__ void __launch_bounds__(AXES_THREADS, ShallowShape<F>::blocks)
    strips(const __grid_constant__ gpr_axes_args a) {
  typedef OfColumns<F> Of;
  if (a.count == 1) return fold_strips<F, typename Of::one, 1>(a);
  if (a.count == 2) return fold_strips<F, typename Of::two, 2>(a);
  fold_strips<F, typename Of::few, ROWS_OF_STRIPS>(a);
}

GPR_CLOSE
