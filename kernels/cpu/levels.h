/* Sums of vectors in levels of doubles, and in bins, for data of any range. */
#ifndef GPR_LEVELS_H
#define GPR_LEVELS_H

#include "exact_lanes.h"

GPR_OPEN

/* --- levels ------------------------------------------------------------------------------------
 */

/* Windows one below the other: K of them keep 46 + 47·(K − 1) bits below 2^top. Their counts of
 * units stay in registers from batch to batch. */
template <int K> struct Levels {
  enum { ABREAST = K > 3 ? 2 : VECTORS, ACROSS = ABREAST * WIDTH };
  double start[K];
  int unit[K], top, batches;
  Words count[K];

  /* So high that the last level's start is a normal double. */
  static int least_top() { return GPR_TOP_MIN + 47 * (K - 2); }
  void open(int wanted) {
    top = greatest(least(wanted, (int)GPR_TOP_MAX), least_top());
    batches = 0;
    for (int k = 0; k < K; k++) {
      unit[k] = top + GPR_HEADROOM - 51 - 47 * k;
      start[k] = 1.5 * power_of_two(unit[k] + 52);
      count[k] = Words{};
    }
  }
  template <int PARTS> void flush(Exact *part) {
    for (int k = 0; batches && k < K; k++) {
      for (int p = 0; p < PARTS; p++) {
        int64_t low = 0, high = 0;
        for (int l = p; l < WIDTH; l += PARTS) {
          low += (int64_t)(count[k][l] & 0xffffffffu);
          high += (int64_t)count[k][l] >> 32;
        }
        deposit(part[p], low, unit[k]);
        deposit(part[p], high, unit[k] + 32);
      }
      count[k] = Words{};
    }
    batches = 0;
  }
  bool is_full() const { return batches >= GPR_BATCHES_MAX / 2; }
  void commit(int k, const Doubles sum) { count[k] += bits(sum) - bits(start[k] - Doubles{}); }

  /* A batch of at most GPR_BATCH rows of ACROSS numbers, if the levels keep it. */
  template <class R> bool attempt(const R *x, int64_t rows) {
    Doubles sum[K][ABREAST];
    Words away[ABREAST] = {}, lost[ABREAST] = {};
    const Doubles first = start[0] - Doubles{};
    for (int k = 0; k < K; k++)
      for (int v = 0; v < ABREAST; v++) sum[k][v] = start[k] - Doubles{};
    for (const R *end = x + rows * ACROSS; x < end; x += ACROSS)
      for (int v = 0; v < ABREAST; v++) {
        Doubles d = load(x + v * WIDTH);
        d = rest_of(sum[0][v], d);
        away[v] |= bits(sum[0][v]) ^ bits(first);
        for (int k = 1; k < K - 1; k++) d = rest_of(sum[k][v], d);
        const Doubles u = sum[K - 1][v] + d;
        lost[v] |= bits(minus(u, sum[K - 1][v])) ^ bits(d);
        sum[K - 1][v] = u;
      }
    uint64_t any_away = 0, any_lost = 0;
    for (int v = 1; v < ABREAST; v++) away[0] |= away[v], lost[0] |= lost[v];
    for (int l = 0; l < WIDTH; l++) any_away |= away[0][l], any_lost |= lost[0][l];
    if (!is_exact(any_away, any_lost)) return false;
    for (int k = 0; k < K; k++)
      for (int v = 0; v < ABREAST; v++) commit(k, sum[k][v]);
    batches += ABREAST;
    return true;
  }
};

/* --- what a block holds ------------------------------------------------------------------------
 */

/* The least and the greatest exponent field of a double that is not zero; 2047 of what is not
 * finite. */
struct Fields {
  int least, greatest;
};
/* n is a multiple of LANES. */
template <class R> GPR_APART Fields fields_of(const R *x, int64_t n) {
  Words most = {}, fewest = ~Words{};
  for (int64_t i = 0; i < n; i += WIDTH) {
    const Words b = bits(load(x + i)) << 1, c = b | (Words)(b == 0);
    most = most > b ? most : b;
    fewest = fewest < c ? fewest : c;
  }
  uint64_t high = 0, low = ~0ull;
  for (int l = 0; l < WIDTH; l++) {
    high = greatest(high, (uint64_t)most[l]);
    low = least(low, (uint64_t)fewest[l]);
  }
  return {(int)least(low >> 53, high >> 53), (int)(high >> 53)};
}

/* --- bins --------------------------------------------------------------------------------------
 */

/* A counter of mantissas for each sign and exponent, twice, so that neighbours of one exponent do
 * not wait for each other. Idea: Neal, "Fast exact summation using small and large
 * superaccumulators", 2015. */
struct ExponentBins {
  enum { FIELDS = 2048, COPIES = 2, MOST = 1024 }; /* numbers that are added at a time */
  uint64_t count[COPIES][2 * FIELDS];
  int lowest, highest;    /* of these fields there may be some */
  int zero_from, zero_to; /* of these counters are set at all, and those of zeros */

  void open() {
    zero_from = zero_to = FIELDS / 2;
    for (int c = 0; c < COPIES; c++) count[c][0] = count[c][FIELDS] = 0;
    forget();
  }
  void forget() { lowest = FIELDS, highest = -1; }
  void clear(int from, int to) {
    for (int c = 0; c < COPIES && from < to; c++)
      for (int sign = 0; sign < 2; sign++)
        memset(count[c] + sign * FIELDS + from, 0, (size_t)(to - from) * sizeof **count);
  }
  /* Of fields that are going to be put. */
  void reach(int least, int greatest) {
    lowest = gpr::least(lowest, least);
    highest = gpr::greatest(highest, greatest);
    if (zero_from == zero_to) zero_from = zero_to = least;
    clear(lowest, zero_from);
    clear(zero_to, highest + 1);
    zero_from = gpr::least(zero_from, lowest);
    zero_to = gpr::greatest(zero_to, highest + 1);
  }
  /* From the highest field down, as many in one sum as share a digit. */
  GPR_APART void drain(Exact &e) {
    __int128 sum = 0;
    for (int f = highest; f >= lowest; f--) {
      for (int c = 0; c < COPIES; c++) {
        sum += count[c][f];
        sum -= count[c][FIELDS + f];
        count[c][f] = count[c][FIELDS + f] = 0;
      }
      if (f > lowest && (f - 1) % 32) {
        sum *= 2;
      } else {
        if (sum) deposit_wide(e, sum, greatest(f, 1) - 1075);
        sum = 0;
      }
    }
    forget();
  }
  /* n at most MOST, a multiple of WIDTH, finite and of these fields. What reaches a counter's top
   * bit has not overflown yet: that takes twice MOST. */
  GPR_APART void add(Exact &e, const double *x, int64_t n, const Fields &fields) {
    const uint64_t hidden = UINT64_C(1) << 52;
    uint64_t value[MOST], any = 0;
    reach(fields.least, fields.greatest);
    for (int64_t i = 0; i < n; i += WIDTH) {
      const Words b = bits(load(x + i)),
                  v = (b & (hidden - 1)) | ((Words)(b << 1 >> 53 != 0) & hidden);
      memcpy(value + i, &v, sizeof v);
    }
    GPR_UNROLL(8)
    for (int64_t i = 0; i < n; i++) any |= count[i % COPIES][bits(x[i]) >> 52] += value[i];
    if (any >> 63) drain(e);
  }
};

/* --- sums of a run -----------------------------------------------------------------------------
 */

/* Element i belongs to part i % PARTS. */
template <int PARTS, class R> struct Adder {
  static constexpr bool narrow = sizeof(R) == sizeof(float);
  enum { K = narrow ? 2 : 3, PRECISION = narrow ? 24 : 53 };
  enum { BITS = 46 + 47 * (K - 1) - GPR_HEADROOM - PRECISION }; /* exponents that the levels keep */
  enum { AGAIN = 16, TOP = 131 }; /* blocks until exponents are looked at again; of all floats */
  Exact *part;
  Levels<K> levels;
  Levels<6> all; /* of any floats */
  bool wide;
  int wait;
  bool binned;
  ExponentBins bins[narrow ? 0 : PARTS];

  void open(Exact *to, int top) {
    part = to;
    levels.open(top);
    wide = false;
    wait = 0;
    binned = false;
    all.batches = -1;
  }
  void flush() {
    levels.template flush<PARTS>(part);
    if (all.batches > 0) all.template flush<PARTS>(part);
    if constexpr (!narrow)
      for (int p = 0; binned && p < PARTS; p++) bins[p].drain(part[p]);
  }
  /* A NaN in each part: nothing that comes matters. */
  bool is_settled() const {
    uint32_t special = GPR_NAN;
    for (int p = 0; p < PARTS; p++) special &= part[p].special;
    return special != 0;
  }

  /* In levels that keep all floats. */
  void add_all(const R *x, int64_t n) {
    enum { ROW = Levels<6>::ACROSS };
    if (all.batches < 0) all.open(TOP);
    for (int64_t i = 0; i < n; i += GPR_BATCH * ROW) {
      const int64_t m = least(n - i, (int64_t)GPR_BATCH * ROW);
      if (all.is_full()) all.template flush<PARTS>(part);
      if (!all.attempt(x + i, m / ROW)) add_special(x + i, m);
    }
  }
  void add_any(const float *x, int64_t n, const Fields &) { add_all(x, n); }
  void add_any(const double *x, int64_t n, const Fields &fields) {
    double one[PARTS > 1 ? REALS / PARTS : 1];
    for (int p = 0; p < PARTS; p++) {
      for (int64_t i = 0; PARTS > 1 && i < n / PARTS; i++) one[i] = x[i * PARTS + p];
      if (!binned) bins[p].open();
      bins[p].add(part[p], PARTS > 1 ? one : x, n / PARTS, fields);
    }
    binned = true;
  }
  /* NaN and infinities by themselves, and zeros in their place. */
  GPR_APART void add_special(const R *x, int64_t n) {
    R finite[REALS];
    for (int64_t i = 0; i < n; i++) {
      const bool is = x[i] - x[i] == 0;
      if (!is) scatter(part[i % PARTS], x[i]);
      finite[i] = is ? x[i] : 0;
    }
    if (!is_settled()) add_far(finite, n);
  }
  /* What the levels did not take: NaN, or a range that they do not keep, or have yet to move to. */
  GPR_APART void add_far(const R *x, int64_t n) {
    const Fields fields = fields_of(x, n);
    if (fields.greatest == 2047) return add_special(x, n);
    wide = fields.greatest - fields.least > BITS;
    wait = AGAIN;
    if (!wide) {
      const int top = fields.greatest - 1022 + 2;
      levels.template flush<PARTS>(part);
      levels.open(top);
      if (levels.attempt(x, n / LANES)) return;
    }
    add_any(x, n, fields);
  }
  void add(const R *x, int64_t rows) {
    if (levels.is_full()) levels.template flush<PARTS>(part);
    if (!wide && levels.attempt(x, rows)) return;
    if (narrow && wide && wait-- > 0) return add_all(x, rows * LANES);
    add_far(x, rows * LANES);
  }
};

/* The same of n contiguous reals of parts by turns, a batch of REALS at most at a time. */
template <int PARTS, class Part> struct AdderOfReals {
  typedef typename Traits<Part>::Wide R;
  Exact *part;
  bool is_open;
  Adder<PARTS, R> adder;

  explicit AdderOfReals(Exact *to) : part(to), is_open(false) {}
  GPR_APART void add(const Part *x, int64_t n) {
    alignas(GPR_VECTOR) R batch[REALS];
    const int64_t rows = (n + LANES - 1) / LANES;
    copy_wide(x, batch, n);
    for (int64_t j = n; j < rows * LANES; j++) batch[j] = 0;
    if (!is_open) adder.open(part, least(top_of(batch, (int)(rows * LANES)) + 2, (int)GPR_TOP_MAX));
    is_open = true;
    adder.add(batch, rows);
  }
  bool is_settled() const { return is_open && adder.is_settled(); }
  void put(int lane, int, double value) { scatter(part[lane % PARTS], value); }
  void flush() {
    if (is_open) adder.flush();
  }
};

GPR_CLOSE
#endif
