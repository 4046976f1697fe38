/* The host half of the table: expands operators × dtypes into rows. Compiled once for each
 * instruction set; the loops are plain or on GCC's vector types, whose width follows the target. */
#include "spread_lanes.h"

#include "convert.cuh"
#include "ops.cuh"

GPR_OPEN

/* --- free folds: one loop, which the compiler vectorises ---------------------------------------
 */

template <class O, class F = typename O::Fold> struct Folder {
  typedef typename F::Element T;
  typedef typename F::State State;
  static void fold(State &state, const T *x, int64_t n, int64_t index) {
    State s;
    F::open(s);
    for (int64_t i = 0; i < n; i++) F::add(s, x[i], index + i);
    F::merge(state, s);
  }
};

/* Sums and counts in 32-bit lanes within stretches where these cannot overflow. */
static constexpr int64_t NARROW = 1 << 15;
template <class T, class Lane> GPR_FN uint64_t narrow_sum(const T *x, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i += NARROW) {
    const int64_t m = least(NARROW, n - i);
    Lane lane = 0;
    for (int64_t j = 0; j < m; j++) lane += (Lane)wide(x[i + j]);
    sum += (uint64_t)(int64_t)lane;
  }
  return sum;
}
template <class O, class T> struct Folder<O, IntegerSum<T>> {
  static void fold(typename IntegerSum<T>::State &s, const T *x, int64_t n, int64_t) {
    if constexpr (sizeof(T) > 2)
      s.sum += narrow_sum<T, uint64_t>(x, n);
    else if constexpr (Traits<T>::kind == KIND_INT)
      s.sum += narrow_sum<T, int32_t>(x, n);
    else
      s.sum += narrow_sum<T, uint32_t>(x, n);
  }
};
/* Halves of 32 bits, which cannot overflow within a stretch. */
template <class O, class T> struct Folder<O, LongSum<T>> {
  typedef LongSum<T> F;
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += NARROW) {
      const int64_t m = least(NARROW, n - i);
      uint64_t low = 0;
      int64_t high = 0;
      for (int64_t j = 0; j < m; j++) {
        const auto w = wide(x[i + j]);
        low += (uint64_t)w & 0xffffffffu;
        high += (int64_t)(w >> 32);
      }
      F::merge(s, {low, 0});
      F::merge(s, {(uint64_t)high << 32, high >> 32});
    }
  }
};
template <class O, class T, int WHAT> struct Folder<O, Counting<T, WHAT>> {
  static void fold(typename Counting<T, WHAT>::State &s, const T *x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += NARROW) {
      const int64_t m = least(NARROW, n - i);
      int32_t lane = 0;
      for (int64_t j = 0; j < m; j++) lane += is_true(x[i + j]) == (bool)WHAT;
      s.count += lane;
    }
  }
};

/* --- the least and the greatest ------------------------------------------------------------------
 */

/* Types that the hardware compares as they are; of booleans the bytes. */
template <class T> constexpr bool is_native() {
  return category<T>() == INTEGER || (Traits<T>::kind == KIND_FLOAT && sizeof(T) >= 4);
}
template <class T> struct Native { typedef T type; };
template <> struct Native<boolean> { typedef uint8_t type; };
template <class T> GPR_FN const T *natives(const T *x) { return x; }
GPR_FN const uint8_t *natives(const boolean *x) { return &x->byte; }

/* The best value of a block, where the two zeros tie, and whether it is spoiled by a NaN. A sum of
 * the elements tells that: NaN goes through every addition, and `inf - inf` costs a second look.
 * Both are one instruction a vector. Rows overlap at both ends, since no element counts twice, so
 * that the loads between do not straddle cache lines. */
template <class T, bool GREATEST> struct Peak {
  static constexpr bool real = Traits<T>::kind == KIND_FLOAT;
  enum { VECTORS = 8, WIDTH = GPR_VECTOR / sizeof(T), ROW = VECTORS * WIDTH };
  template <int BYTES> struct Vector { typedef T type __attribute__((vector_size(BYTES))); };
  typedef typename Vector<GPR_VECTOR>::type V;

  struct Better {
    template <class U> static GPR_METHOD U of(U a, U b) {
      return GREATEST ? (b > a ? b : a) : (b < a ? b : a);
    }
  };
  struct Plus {
    template <class U> static GPR_METHOD U of(U a, U b) { return a + b; }
  };

  template <class Op, int BYTES> static GPR_METHOD T across(typename Vector<BYTES>::type v) {
    if constexpr (BYTES > 16) {
      typename Vector<BYTES / 2>::type half[2];
      memcpy(half, &v, sizeof v);
      return across<Op, BYTES / 2>(Op::of(half[0], half[1]));
    }
    T one = v[0];
    for (int l = 1; l < BYTES / (int)sizeof(T); l++) one = Op::of(one, (T)v[l]);
    return one;
  }
  static GPR_METHOD void add_row(V *best, V *sum, const T *x) {
    for (int v = 0; v < VECTORS; v++) {
      V e;
      memcpy(&e, x + v * WIDTH, sizeof e);
      prefetch(x + v * WIDTH);
      best[v] = Better::of(best[v], e);
      if (real) sum[v] += e;
    }
  }
  static bool has_nan(const T *x, int64_t n) {
    int any = 0;
    for (int64_t i = 0; i < n; i++) any |= x[i] != x[i];
    return any != 0;
  }

  T value;
  bool spoiled;
  Peak(const T *x, int64_t n) { /* n > 0 */
    T total = 0;
    value = *x;
    if (n < ROW) {
      for (int64_t i = 0; i < n; i++) {
        value = Better::of(value, x[i]);
        if (real) total += x[i];
      }
    } else {
      V best[VECTORS], sum[VECTORS] = {};
      memcpy(best, x, sizeof best);
      add_row(best, sum, x);
      const int64_t past = (int64_t)((uintptr_t)x % GPR_VECTOR / sizeof(T));
      for (int64_t i = ROW - past; i + ROW <= n; i += ROW) add_row(best, sum, x + i);
      add_row(best, sum, x + n - ROW);
      for (int v = VECTORS / 2; v; v /= 2)
        for (int u = 0; u < v; u++) {
          best[u] = Better::of(best[u], best[u + v]);
          sum[u] += sum[u + v];
        }
      value = across<Better, GPR_VECTOR>(best[0]);
      if (real) total = across<Plus, GPR_VECTOR>(sum[0]);
    }
    spoiled = real && total != total && has_nan(x, n);
  }
};

template <bool GREATEST, class T> static Peak<T, GREATEST> peak_of(const T *x, int64_t n) {
  return Peak<T, GREATEST>(x, n);
}

/* What an operator asks of the extremes: ptp both. */
template <class O> struct Asks { static constexpr bool low = true, high = true; };
template <class T> struct Asks<Min<T>> { static constexpr bool low = true, high = false; };
template <class T> struct Asks<Max<T>> { static constexpr bool low = false, high = true; };

template <class O, class T> struct Folder<O, Extremes<T>> {
  typedef Extremes<T> F;
  typedef typename F::State State;

  /* The one of the two zeros that is wanted, if x, without better values, has it. */
  template <bool GREATEST> static auto zero(const T *x, int64_t n) {
    typename F::Key signs = GREATEST ? -1 : 0;
    for (int64_t i = 0; i < n; i++) {
      const auto b = copy_bits<typename F::Key>(x[i]);
      signs = GREATEST ? signs & b : signs | b;
    }
    return signs >> (8 * sizeof signs - 1);
  }
  template <bool GREATEST> static void fold_one(State &s, const T *x, int64_t n) {
    const auto peak = peak_of<GREATEST>(natives(x), n);
    auto k = F::O::key(peak.spoiled ? F::O::poison() : copy_bits<T>(peak.value));
    if (Traits<T>::kind == KIND_FLOAT && peak.value == 0 && !peak.spoiled) k = zero<GREATEST>(x, n);
    if (GREATEST || peak.spoiled) s.high = greatest(s.high, k);
    if (!GREATEST && !peak.spoiled) s.low = least(s.low, k);
  }
  static void fold(State &state, const T *x, int64_t n, int64_t) {
    if constexpr (is_native<T>()) {
      /* Who asks for both reads a block again while it is in the first cache. */
      const int64_t block = Asks<O>::low && Asks<O>::high ? 16384 / sizeof(T) : n;
      for (int64_t i = 0; i < n; i += block) {
        const int64_t m = least(block, n - i);
        if (Asks<O>::low) fold_one<false>(state, x + i, m);
        if (Asks<O>::high) fold_one<true>(state, x + i, m);
      }
    } else {
      State s;
      F::open(s);
      for (int64_t i = 0; i < n; i++) F::add(s, x[i], 0);
      F::merge(state, s);
    }
  }
};

/* A block that holds something better than the champion is searched for its place. */
template <class O, class T, bool GREATEST> struct Folder<O, Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  typedef typename F::State State;
  typedef typename F::R R;
  /* 32 KiB: the end of a block and its start cost 50 ns, and searching it is quick in the cache. */
  static constexpr int64_t BLOCK = 32768 / sizeof(T), STRIDE = 256 / sizeof(T);

  static State best_of(const T *x, int64_t n) {
    State s;
    F::open(s);
    if constexpr (is_native<T>()) {
      const auto peak = peak_of<GREATEST>(natives(x), n);
      s.best = R::of(copy_bits<T>(peak.value));
      s.spoiled = peak.spoiled;
    } else if constexpr (Traits<T>::kind == KIND_COMPLEX) {
      typename R::Key best = s.best;
      typename R::Flag spoiled = 0;
      for (int64_t i = 0; i < n; i++) {
        const typename R::Key k = R::of(x[i]);
        best = R::worse(best, k) ? k : best;
        spoiled |= R::poisoned(x[i]);
      }
      s.best = best;
      s.spoiled = spoiled;
    } else {
      typedef Extremes<T> Both;
      typename Both::State both;
      Both::open(both);
      for (int64_t i = 0; i < n; i++) Both::add(both, x[i], 0);
      s.best = R::of(Both::O::value(GREATEST ? both.high : both.low));
      s.spoiled = Both::poisoned(both);
    }
    return s;
  }
  static bool matches(T x, const State &wanted) {
    if (wanted.spoiled) return R::poisoned(x);
    if constexpr (is_native<T>() && Traits<T>::kind != KIND_BOOL) return x == R::value(wanted.best);
    return !R::worse(R::of(x), wanted.best) && !R::worse(wanted.best, R::of(x));
  }
  static int64_t first_match(const T *x, int64_t n, const State &wanted) {
    int64_t i = 0;
    for (; i + STRIDE <= n; i += STRIDE) {
      typename R::Flag any = 0;
      for (int j = 0; j < STRIDE; j++) any |= matches(x[i + j], wanted);
      if (any) break;
    }
    while (i < n && !matches(x[i], wanted)) i++;
    return i;
  }
  static void fold(State &state, const T *x, int64_t n, int64_t index) {
    for (int64_t i = 0; i < n && !state.spoiled; i += BLOCK) {
      const int64_t m = least(BLOCK, n - i);
      State block = best_of(x + i, m);
      const bool earlier = state.index >= 0 && state.index < index;
      if (earlier && !block.spoiled && !R::worse(state.best, block.best)) continue;
      block.index = index + i + first_match(x + i, m, block);
      F::merge(state, block);
    }
  }
};

/* --- exact folds -------------------------------------------------------------------------------
 */

template <class T> GPR_FN const T *reals(const T *x) { return x; }
template <class R> GPR_FN const R *reals(const complex<R> *x) { return &x->re; }

/* Whether every element is -0.0 matters to the sign of a zero alone, and the first that is not
 * ends the question. */
template <class R> static void look_for_other(Exact &e, const R *x, int64_t n, int stride) {
  e.signs |= GPR_MET;
  for (int64_t i = 0; i < n && !(e.signs & GPR_OTHER); i += stride)
    if (bits((double)wide(x[i])) != 1ull << 63) e.signs |= GPR_OTHER;
}

template <class O, class T> struct Folder<O, ExactFold<T>> {
  typedef ExactFold<T> F;
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t) {
    const auto *r = reals(x);
    for (int p = 0; p < F::parts; p++)
      if (!(s.part[p].signs & GPR_OTHER)) look_for_other(s.part[p], r + p, n * F::parts, F::parts);
    add_reals<F::parts>(s.part, r, n * F::parts);
  }
};

/* Real numbers by rows of lanes; what these miss, and complex numbers, one by one. */
template <class O, class T> struct Folder<O, MomentsFold<T>> {
  typedef MomentsFold<T> F;
  typedef typename F::State State;
  static void fold(State &s, const T *x, int64_t n, int64_t) {
    for (int64_t i = 0; i < n; i += GPR_SHORT)
      if (!fold_row(s, x + i, least(n - i, (int64_t)GPR_SHORT)))
        for (int64_t j = i; j < least(n, i + GPR_SHORT); j++) F::add(s, x[j], j);
  }
  template <class R> static bool fold_row(State &s, const R *x, int64_t n) {
    SpreadLanes<R> lanes;
    lanes.run_row(x, n);
    const SpreadCount c = spread_of_row(lanes);
    if (!c.missed) add_spread(s.part[0], s.squares, c);
    return !c.missed;
  }
  static bool fold_row(State &s, const float16 *x, int64_t n) { return fold_halves(s, x, n); }
  static bool fold_row(State &s, const bfloat16 *x, int64_t n) { return fold_halves(s, x, n); }
  template <class H> static bool fold_halves(State &s, const H *x, int64_t n) {
    float wide[GPR_SHORT];
    widen_all(x, wide, n);
    return fold_row(s, (const float *)wide, n);
  }
  template <class R> static bool fold_row(State &, const complex<R> *, int64_t) { return false; }
};

/* --- the tree ----------------------------------------------------------------------------------
 */

template <class O, class T, template <class> class Op> struct Folder<O, TreeFold<T, Op>> {
  typedef TreeFold<T, Op> F;
  typedef typename F::Wide A;
  typedef typename F::Combine C;
  enum { LEVEL = 10 };

  /* The perfect tree over 2^level elements, level by level. */
  static A block(const T *x, int level) {
    A one[1 << (LEVEL - 1)], two[1 << (LEVEL - 1)];
    A *from = one, *to = two;
    int64_t m = 1ll << level >> 1;
    for (int64_t i = 0; i < m; i++) from[i] = C::combine(wide(x[2 * i]), wide(x[2 * i + 1]));
    while (m > 1) {
      m >>= 1;
      halve(from, to, m);
      A *swap = from;
      from = to;
      to = swap;
    }
    return from[0];
  }
  static void halve(const A *__restrict from, A *__restrict to, int64_t m) {
    for (int64_t i = 0; i < m; i++) to[i] = C::combine(from[2 * i], from[2 * i + 1]);
  }
  static void fold(typename F::State &s, const T *x, int64_t n, int64_t index) {
    F::start(s, index);
    while (n > 0) {
      int level = index ? __builtin_ctzll((uint64_t)index) : LEVEL;
      if (level > LEVEL) level = LEVEL;
      while (1ll << level > n) level--;
      push<C>(s, level ? block(x, level) : wide(*x), level);
      x += 1ll << level;
      n -= 1ll << level;
      index += 1ll << level;
    }
  }
};

/* --- many outputs ------------------------------------------------------------------------------
 */

/* What several outputs at a time leave over: one by itself. */
template <class O> struct Alone {
  typedef typename O::Fold F;
  typedef typename F::Element T;
  typedef typename F::State State;
  static void fold(State &s, const char *data, int64_t along, int64_t n, int64_t index) {
    T x[GPR_SHORT];
    memcpy(x, data, sizeof *x); /* n > 0, which the compiler cannot know */
    for (int64_t i = 1; i < n; i++) memcpy(x + i, data + i * along, sizeof *x);
    Folder<O>::fold(s, x, n, index);
  }
  static void run(const char *data, int64_t along, int64_t n,
                  const typename FinishedWith<O>::type *with, typename O::Result *result) {
    State s;
    F::open(s);
    fold(s, data, along, n, 0);
    O::finish(s, n, with, result);
  }
};

template <class O, class F = typename O::Fold> struct Many {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};

template <class O> struct IsMean {
  enum { value = 0 };
};
template <class T> struct IsMean<Mean<T>> {
  enum { value = 1 };
};

template <class O, class T> struct Many<O, ExactFold<T>> {
  typedef typename O::Result Result;
  typedef typename RealOf<T>::type Part; /* as it lies */
  typedef typename Traits<Part>::Wide R;
  enum { PARTS = ExactFold<T>::parts, OUTPUTS = LANES / PARTS };
  static constexpr int64_t TILE_ROWS = TILE_BYTES / (int)sizeof(R) / LANES;
  static constexpr bool plain = sizeof(Part) == sizeof(R);

  /* What was not caught is summed by itself; so is a zero, which may be -0.0. */
  template <class S>
  static void finish(const S &sums, int64_t column, const char *data, int64_t along, int64_t n,
                     Result *result) {
    R part[PARTS];
    for (int p = 0; p < PARTS; p++) {
      const Count c = sums.count(column * PARTS + p);
      if (c.missed || (is_zero(c) && starts_minus(data + p * (int64_t)sizeof(Part))))
        return Alone<O>::run(data, along, n, 0, result);
      const Part rounded = round_count<Part>(c, IsMean<O>::value ? (uint32_t)n : 1);
      memcpy((char *)part + p * (int64_t)sizeof rounded, &rounded, sizeof rounded);
    }
    memcpy(result, part, sizeof *result);
  }
  static bool is_zero(const Count &c) { return ((__int128)c.high << LEVELS) + c.low == 0; }
  static bool starts_minus(const char *data) {
    Part first;
    memcpy(&first, data, sizeof first);
    return bits((double)wide(first)) == 1ull << 63;
  }

  /* Calls take(sums, column of sums, output) for every output. */
  template <class Take>
  static void strips(const char *data, int64_t along, int64_t outputs, int64_t n,
                     const Take &take) {
    Strip<R> strip;
    const int64_t most = STRIP / PARTS;
    for (int64_t o = 0; o < outputs; o += most) {
      const int64_t m = least(most, outputs - o);
      const char *at = data + o * (int64_t)sizeof(T);
      strip.run((const R *)(const void *)at, along / (int64_t)sizeof(R), m * PARTS, n);
      for (int64_t j = 0; j < m; j++) take(strip, j, o + j);
    }
  }
  /* Columns so few that several rows fill the lanes; or one, which is a row. */
  template <class Take>
  static void ribbon(const char *data, int64_t columns, int64_t n, int64_t o, const Take &take) {
    Ribbon<R> ribbon;
    ribbon.run((const R *)(const void *)data, columns * PARTS, n * columns * PARTS);
    for (int64_t j = 0; j < columns; j++) take(ribbon, j, o + j);
  }
  template <class Take>
  static void tiles(const char *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                    const Take &take) {
    alignas(64) R tile[TILE_ROWS * LANES];
    Strip<R> strip;
    memset(tile, 0, (size_t)n * LANES * sizeof *tile);
    for (int64_t o = 0; o < outputs; o += OUTPUTS) {
      const int64_t m = least((int64_t)OUTPUTS, outputs - o);
      fill_tile<PARTS, Part>(tile, data + o * across, across, along, m, n);
      strip.run(tile, LANES, LANES, n);
      for (int64_t j = 0; j < m; j++) take(strip, j, o + j);
    }
  }
  static bool side_by_side(int64_t across) { return plain && across == (int64_t)sizeof(T); }
  static bool in_row(int64_t along) { return plain && along == (int64_t)sizeof(T); }

  /* Whichever fits the steps; take_alone(output) where none does. */
  template <class Take, class TakeAlone>
  static void each(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                   const Take &take, const TakeAlone &take_alone) {
    const int64_t lanes = outputs * PARTS;
    if (side_by_side(across) && along == outputs * across && lanes <= RIBBON)
      ribbon(x, outputs, n, 0, take);
    else if (side_by_side(across) && lanes >= LANES / 2)
      strips(x, along, outputs, n, take);
    else if (n <= (in_row(along) ? least(TILE_ROWS, (int64_t)64) : TILE_ROWS))
      tiles(x, across, along, outputs, n, take);
    else
      for (int64_t o = 0; o < outputs; o++)
        if (in_row(along))
          ribbon(x + o * across, 1, n, o, take);
        else
          take_alone(o);
  }

  /* At most GPR_BATCH elements each, by doubles alone. */
  static void quick(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                    Result *result) {
    alignas(64) R tile[GPR_BATCH * LANES];
    Strip<R> strip;
    const auto store = [&](int64_t first, int64_t lanes, const double *sum, uint64_t missed) {
      Part *to = (Part *)(void *)result + first;
      for (int64_t l = 0; l < lanes; l++) to[l] = convert<Part>(sum[l]);
      for (; missed; missed &= missed - 1) {
        const int64_t l = __builtin_ctzll(missed), o = (first + l) / PARTS;
        if (l < lanes &&
            !(sum[l] == 0 &&
              !starts_minus(x + o * across + (first + l) % PARTS * (int64_t)sizeof(Part))))
          Alone<O>::run(x + o * across, along, n, 0, result + o);
      }
    };
    if (side_by_side(across) && outputs * PARTS >= LANES / 2)
      return strip.sums((const R *)(const void *)x, along / (int64_t)sizeof(R), outputs * PARTS, n,
                        store);
    memset(tile, 0, sizeof tile);
    for (int64_t o = 0; o < outputs; o += OUTPUTS) {
      double sum[LANES];
      const int64_t m = least((int64_t)OUTPUTS, outputs - o);
      fill_tile<PARTS, Part>(tile, x + o * across, across, along, m, n);
      const uint64_t missed = batch_sums(tile, LANES, n, sum);
      store(o * PARTS, m * PARTS, sum, missed);
    }
  }

  static void run(const void *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                  const void *, void *to) {
    const char *x = (const char *)data;
    Result *result = (Result *)to;
    const auto take = [&](const auto &sums, int64_t j, int64_t o) {
      finish(sums, j, x + o * across, along, n, result + o);
    };
    if constexpr (plain && PARTS == 1)
      if (n == 1 && side_by_side(across)) {
        const R *one = (const R *)data;
        for (int64_t o = 0; o < outputs; o++) result[o] = plain_nan(one[o]);
        return;
      }
    if constexpr (!IsMean<O>::value) {
      if (n <= GPR_BATCH) return quick(x, across, along, outputs, n, result);
      if constexpr (PARTS == 1)
        if (in_row(along)) {
          for (int64_t o = 0; o < outputs; o++, x += across) {
            double sum;
            if (row_sum((const R *)(const void *)x, n, &sum))
              result[o] = convert<Part>(sum);
            else
              ribbon(x, 1, n, 0, [&](const auto &sums, int64_t j, int64_t) {
                finish(sums, j, x, along, n, result + o);
              });
          }
          return;
        }
    }
    each(x, across, along, outputs, n, take,
         [&](int64_t o) { Alone<O>::run(x + o * across, along, n, 0, result + o); });
  }

  static void fold(void *states, size_t slot, const void *data, int64_t across, int64_t along,
                   int64_t outputs, int64_t n, int64_t index) {
    typedef typename ExactFold<T>::State State;
    const char *x = (const char *)data;
    const auto alone = [&](int64_t o) {
      Alone<O>::fold(*(State *)((char *)states + (size_t)o * slot), x + o * across, along, n,
                     index);
    };
    each(
        x, across, along, outputs, n,
        [&](const auto &sums, int64_t j, int64_t o) {
          State &s = *(State *)((char *)states + (size_t)o * slot);
          bool missed = false;
          for (int p = 0; p < PARTS; p++) {
            const Count c = sums.count(j * PARTS + p);
            missed |= c.missed || (is_zero(c) && !(s.part[p].signs & GPR_OTHER));
          }
          if (missed) return alone(o);
          for (int p = 0; p < PARTS; p++) add(s.part[p], sums.count(j * PARTS + p));
        },
        alone);
  }
  static void add(Exact &e, const Count &c) {
    if (!is_zero(c)) e.signs |= GPR_MET | GPR_OTHER;
    deposit(e, c.high, c.unit + LEVELS);
    deposit(e, c.low, c.unit);
  }
};

/* min, max, argmin and argmax of what the hardware compares as it is. */
template <class O> struct Asked {
  enum { any = 0, greatest = 0, place = 0 };
};
template <class T> struct Asked<Min<T>> {
  enum { any = 1, greatest = 0, place = 0 };
};
template <class T> struct Asked<Max<T>> {
  enum { any = 1, greatest = 1, place = 0 };
};
template <class T> struct Asked<ArgMin<T>> {
  enum { any = 1, greatest = 0, place = 1 };
};
template <class T> struct Asked<ArgMax<T>> {
  enum { any = 1, greatest = 1, place = 1 };
};

template <class O, class F> struct ManyBest {
  typedef typename F::Element T;
  typedef typename F::State State;
  typedef typename O::Result Result;
  typedef typename Native<T>::type N;
  typedef Best<N, Asked<O>::greatest, Asked<O>::place> Columns;
  static constexpr int64_t TILE_COLUMNS = 64, TILE_ROWS = TILE_BYTES / 64 / (int)sizeof(T);

  /* Elements have to be looked at again for NaN, and for the sign of a zero. */
  static int unsure(const Columns &c, int64_t j) {
    return c.unsure(j) | (!Asked<O>::place && Columns::real && c.best[j] == 0);
  }
  static Result result_of(const Columns &c, int64_t j) {
    if constexpr (Asked<O>::place)
      return c.row[j];
    else
      return Order<T>::value(Order<T>::key(copy_bits<T>(c.best[j])));
  }
  /* take(columns, how many, the first's output) */
  template <class Take>
  static void strips(const char *x, int64_t along, int64_t outputs, int64_t n, const Take &take) {
    Columns c;
    for (int64_t o = 0; o < outputs; o += Columns::COLUMNS) {
      const int64_t m = least((int64_t)Columns::COLUMNS, outputs - o);
      c.run((const N *)(const void *)x + o, along / (int64_t)sizeof(T), m, n);
      take(c, m, o);
    }
  }
  template <class Take>
  static void tiles(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                    const Take &take) {
    alignas(64) N tile[TILE_ROWS * TILE_COLUMNS];
    Columns c;
    for (int64_t o = 0; o < outputs; o += TILE_COLUMNS) {
      const int64_t m = least(TILE_COLUMNS, outputs - o);
      for (int64_t j = 0; j < m; j++)
        for (int64_t i = 0; i < n; i++)
          memcpy(tile + i * TILE_COLUMNS + j, x + (o + j) * across + i * along, sizeof *tile);
      c.run(tile, TILE_COLUMNS, m, n);
      take(c, m, o);
    }
  }
  template <class Take, class TakeAlone>
  static void each(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                   const Take &take, const TakeAlone &take_alone) {
    const bool in_row = along == (int64_t)sizeof(T);
    if (across == (int64_t)sizeof(T) && outputs >= 8)
      strips(x, along, outputs, n, take);
    else if (outputs >= 8 && n <= (in_row ? least(TILE_ROWS, TILE_COLUMNS) : TILE_ROWS))
      tiles(x, across, along, outputs, n, take);
    else
      for (int64_t o = 0; o < outputs; o++) take_alone(o);
  }
  static void run(const void *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                  const void *, void *to) {
    const char *x = (const char *)data;
    Result *result = (Result *)to;
    const auto take_alone = [&](int64_t o) {
      State s;
      if (along != (int64_t)sizeof(T))
        return Alone<O>::run(x + o * across, along, n, 0, result + o);
      F::open(s);
      Folder<O>::fold(s, (const T *)(const void *)(x + o * across), n, 0);
      O::finish(s, n, 0, result + o);
    };
    each(
        x, across, along, outputs, n,
        [&](const Columns &c, int64_t m, int64_t o) {
          int any = 0;
          for (int64_t j = 0; j < m; j++) {
            result[o + j] = result_of(c, j);
            any |= unsure(c, j);
          }
          for (int64_t j = 0; any && j < m; j++)
            if (unsure(c, j)) take_alone(o + j);
        },
        take_alone);
  }
  static void fold(void *states, size_t slot, const void *data, int64_t across, int64_t along,
                   int64_t outputs, int64_t n, int64_t index) {
    const char *x = (const char *)data;
    const auto state = [&](int64_t o) -> State & {
      return *(State *)((char *)states + (size_t)o * slot);
    };
    const auto take_alone = [&](int64_t o) {
      Alone<O>::fold(state(o), x + o * across, along, n, index);
    };
    each(
        x, across, along, outputs, n,
        [&](const Columns &c, int64_t m, int64_t o) {
          for (int64_t j = 0; j < m; j++)
            if (unsure(c, j))
              take_alone(o + j);
            else
              F::add(state(o + j), copy_bits<T>(c.best[j]), index + c.row[j]);
        },
        take_alone);
  }
};
template <class O, class T> constexpr bool has_best() { return Asked<O>::any && is_native<T>(); }
template <class O, class F, bool = has_best<O, typename F::Element>()> struct ManyBestIf {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};
template <class O, class F> struct ManyBestIf<O, F, true> : ManyBest<O, F> {};
template <class O, class T> struct Many<O, Extremes<T>> : ManyBestIf<O, Extremes<T>> {};
template <class O, class T, bool GREATEST>
struct Many<O, Position<T, GREATEST>> : ManyBestIf<O, Position<T, GREATEST>> {};

/* Variances of real numbers whose degrees of freedom are whole. */
template <class O> struct IsRoot {
  enum { value = 0 };
};
template <class T> struct IsRoot<Std<T>> {
  enum { value = 1 };
};

template <class O, class T> struct ManySpreads {
  typedef typename O::Result Result;
  typedef typename Traits<T>::Wide R;
  typedef typename MomentsFold<T>::State State;
  static constexpr int64_t TILE_ROWS = TILE_BYTES / (int)sizeof(R) / LANES;
  static constexpr bool plain = sizeof(T) == sizeof(R);

  /* Calls take(count, output) for every output, or take_alone(output), but for those that are done
   * already: quick(reals, stride, output, lanes) says by a bit a lane which are not. A stride of 0
   * means a row of n reals. */
  template <class Quick, class Take, class TakeAlone>
  static void each(const char *x, int64_t across, int64_t along, int64_t outputs, int64_t n,
                   const Quick &quick, const Take &take, const TakeAlone &take_alone) {
    const bool side_by_side = plain && across == (int64_t)sizeof(T);
    const bool in_row = plain && along == (int64_t)sizeof(T);
    alignas(64) R tile[TILE_ROWS * LANES];
    SpreadLanes<R> lanes;
    if (n > TILE_ROWS || (in_row && n > 64)) {
      if (!in_row && !side_by_side) {
        for (int64_t o = 0; o < outputs; o++) take_alone(o);
        return;
      }
    } else {
      memset(tile, 0, (size_t)n * LANES * sizeof *tile);
    }
    for (int64_t o = 0, m; o < outputs; o += m) {
      const char *at = x + o * across;
      const R *reals = (const R *)(const void *)at;
      m = least((int64_t)LANES, outputs - o);
      if (in_row && n > 64) {
        m = 1;
        if (!quick(reals, 0, o, 1)) continue;
        lanes.run_row(reals, n);
        take(spread_of_row(lanes), o);
        continue;
      }
      int64_t stride = along / (int64_t)sizeof(R);
      if (!side_by_side || m < LANES) {
        if (n > TILE_ROWS) {
          for (int64_t l = 0; l < m; l++) take_alone(o + l);
          continue;
        }
        fill_tile<1, T>(tile, at, across, along, m, n);
        reals = tile;
        stride = LANES;
      }
      uint64_t left = quick(reals, stride, o, m);
      if (left) lanes.run(reals, stride, n);
      for (; left; left &= left - 1) {
        const int l = __builtin_ctzll(left);
        take(spread_of_lane(lanes, l), o + l);
      }
    }
  }
  static uint64_t all(int64_t lanes) { return lanes < 64 ? (1ull << lanes) - 1 : ~0ull; }

  static void run(const void *data, int64_t across, int64_t along, int64_t outputs, int64_t n,
                  const void *with, void *to) {
    const char *x = (const char *)data;
    const gpr_spread *how = (const gpr_spread *)with;
    Result *result = (Result *)to;
    const double ddof = how ? how->ddof : 0, freedom = (double)n - ddof;
    const bool whole = freedom >= 1 && freedom < 0x1p40 && freedom == (double)(int64_t)freedom;
    const uint64_t divisor = whole ? (uint64_t)n * (uint64_t)freedom : 0;
    const auto take_alone = [&](int64_t o) {
      Alone<O>::run(x + o * across, along, n, how, result + o);
    };
    if (!whole) {
      for (int64_t o = 0; o < outputs; o++) take_alone(o);
      return;
    }
    if (n == 1) {
      for (int64_t o = 0; o < outputs; o++) {
        T one;
        memcpy(&one, x + o * across, sizeof one);
        const R zero = wide(one) - wide(one); /* or NaN */
        result[o] = zero == 0 ? Format<Result>::make(0) : quiet_nan<Result>();
      }
      return;
    }
    const auto quick = [&](const R *reals, int64_t stride, int64_t o, int64_t m) {
      uint64_t left = all(m);
      if constexpr (sizeof(R) == sizeof(float) && !IsRoot<O>::value) {
        double sum[LANES], square[LANES];
        Result rounded[LANES];
        bool sure[LANES];
        if (!stride) {
          row_moments(reals, n, sum, square);
        } else {
          plain_moments(reals, stride, n, sum, square);
        }
        for (int64_t l = 0; l < m; l++)
          sure[l] = round_plain(sum[l], square[l], (double)n, freedom, rounded + l);
        memcpy(result + o, rounded, (size_t)m * sizeof *result);
        for (int64_t l = 0; l < m; l++) left &= ~((uint64_t)sure[l] << l);
      }
      return left;
    };
    each(
        x, across, along, outputs, n, quick,
        [&](const SpreadCount &c, int64_t o) {
          if (c.missed) return take_alone(o);
          const Leading spread = spread_of_count(c, n, divisor);
          result[o] = round_leading<Result>(IsRoot<O>::value ? root_of(spread) : spread);
        },
        take_alone);
  }
  static void fold(void *states, size_t slot, const void *data, int64_t across, int64_t along,
                   int64_t outputs, int64_t n, int64_t) {
    const char *x = (const char *)data;
    const auto state = [&](int64_t o) -> State & {
      return *(State *)((char *)states + (size_t)o * slot);
    };
    const auto take_alone = [&](int64_t o) {
      Alone<O>::fold(state(o), x + o * across, along, n, 0);
    };
    each(
        x, across, along, outputs, n, [](const R *, int64_t, int64_t, int64_t m) { return all(m); },
        [&](const SpreadCount &c, int64_t o) {
          if (c.missed) return take_alone(o);
          add_spread(state(o).part[0], state(o).squares, c);
        },
        take_alone);
  }
};
template <class O, class T, bool = Traits<T>::kind == KIND_FLOAT> struct ManySpreadsIf {
  static constexpr decltype(gpr_row::many) run = nullptr;
  static constexpr decltype(gpr_row::fold_many) fold = nullptr;
};
template <class O, class T> struct ManySpreadsIf<O, T, true> : ManySpreads<O, T> {};
template <class O, class T> struct Many<O, MomentsFold<T>> : ManySpreadsIf<O, T> {};

/* --- rows --------------------------------------------------------------------------------------
 */

template <class O, class F = typename O::Fold> struct Row {
  typedef typename F::State State;
  typedef typename F::Element T;
  typedef typename O::Result Result;
  typedef typename FinishedWith<O>::type With;
  /* Until the first look whether the result is settled; the next come after twice as much each, so
   * that they cost nothing and not more than twice what was needed is read. */
  static constexpr int64_t STRETCH = 8192 / sizeof(T);

  static void open(void *state) { F::open(*(State *)state); }
  static int fold(void *state, const void *data, int64_t n, int64_t index) {
    State &s = *(State *)state;
    const T *x = (const T *)data;
    if (F::law != GPR_FREE) {
      Folder<O>::fold(s, x, n, index);
      return 0;
    }
    for (int64_t i = 0, m = STRETCH; i < n; i += m, m = i) {
      Folder<O>::fold(s, x + i, least(m, n - i), index + i);
      if (O::settled(s)) return 1;
    }
    return 0;
  }
  static void merge(void *state, const void *right) {
    F::merge(*(State *)state, *(const State *)right);
  }
  static void finish(const void *state, int64_t n, const void *with, void *result) {
    O::finish(*(const State *)state, n, (const With *)with, (Result *)result);
  }
  static constexpr gpr_row make(int op, int dtype, int bytes) {
    return {op,
            dtype,
            Id<Result>::value,
            F::law,
            F::ordered,
            (int)sizeof(T) / bytes,
            sizeof(State),
            open,
            fold,
            merge,
            finish,
            Results<O>::value,
            Many<O>::run,
            Many<O>::fold};
  }
};
template <class O> struct Row<O, void> {
  static constexpr gpr_row make(int op, int dtype, int) {
    gpr_row row{};
    row.op = op;
    row.dtype = dtype;
    row.result = GPR_NO_DTYPE;
    row.results = 1;
    return row;
  }
};

struct Rows {
  gpr_row row[GPR_OP_COUNT * GPR_DTYPE_COUNT];
};
template <template <class> class Op> constexpr void fill(Rows &rows, int op) {
  gpr_row *row = rows.row + op * GPR_DTYPE_COUNT;
#define GPR_X(id, name, kind, bytes, type) row[GPR_##id] = Row<Op<type>>::make(op, GPR_##id, bytes);
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
constexpr Rows make_rows() {
  Rows rows{};
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) fill<op>(rows, GPR_OP_##id);
  GPR_OPS(GPR_X)
#undef GPR_X
  return rows;
}
static constexpr Rows rows = make_rows();

/* --- conversions -------------------------------------------------------------------------------
 */

template <class From, class To> struct Cast {
  enum { possible = Traits<From>::kind != KIND_TIME && Traits<To>::kind != KIND_TIME };
  static void cast(const void *from, void *to, int64_t n) {
    const From *x = (const From *)from;
    To *y = (To *)to;
    for (int64_t i = 0; i < n; i++) y[i] = convert<To>(x[i]);
  }
  static constexpr gpr_cast make() {
    if constexpr (possible)
      return cast;
    else
      return nullptr;
  }
};

struct Casts {
  gpr_cast cast[GPR_DTYPE_COUNT * GPR_DTYPE_COUNT];
};
template <class From> constexpr void fill_casts(gpr_cast *cast) {
#define GPR_X(id, name, kind, bytes, type) cast[GPR_##id] = Cast<From, type>::make();
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
constexpr Casts make_casts() {
  Casts casts{};
#define GPR_X(id, name, kind, bytes, type) \
  fill_casts<type>(casts.cast + GPR_##id * GPR_DTYPE_COUNT);
  GPR_DTYPES(GPR_X)
#undef GPR_X
  return casts;
}
static constexpr Casts casts = make_casts();

/* --- what nan-functions leave out --------------------------------------------------------------
 */

template <class T> struct Skip {
  static GPR_METHOD bool spoiled(T x) {
    const auto k = Order<T>::key(x);
    return Order<T>::poisoned(k, k);
  }
  static void skip(const void *data, int64_t n, uint8_t *keep) {
    const T *x = (const T *)data;
    for (int64_t i = 0; i < n; i++) keep[i] &= !spoiled(x[i]);
  }
  static constexpr gpr_skip make() { return category<T>() == INTEGER ? nullptr : skip; }
};
template <class R> struct Skip<complex<R>> {
  static void skip(const void *data, int64_t n, uint8_t *keep) {
    const complex<R> *x = (const complex<R> *)data;
    for (int64_t i = 0; i < n; i++) keep[i] &= x[i].re == x[i].re && x[i].im == x[i].im;
  }
  static constexpr gpr_skip make() { return skip; }
};
static constexpr gpr_skip skips[] = {
#define GPR_X(id, name, kind, bytes, type) Skip<type>::make(),
    GPR_DTYPES(GPR_X)
#undef GPR_X
};

GPR_CLOSE

#define GPR_GLUE(a, b) a##b
#define GPR_TABLE(isa) GPR_GLUE(gpr_cpu_table_, isa)
#define GPR_TEXT(x) #x
#define GPR_NAME(isa) GPR_TEXT(isa)
extern "C" const gpr_cpu_table GPR_TABLE(GPR_ISA) = {GPR_NAME(GPR_ISA), gpr::rows.row,
                                                     gpr::casts.cast, gpr::skips};
