/* Elements that do not count: which they are, and what stands in their place. */
#pragma once

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
template <class T> struct One {
  static T make() { return convert<T>((int64_t)1); }
};
template <class O, class T> struct Identity<O, Counting<T, 0>> : One<T> {};
template <class O, class T> struct Identity<O, IntegerProduct<T>> : One<T> {};
template <class O, class T> struct Identity<O, TreeFold<T, Times>> : One<T> {};
template <class O, class T, template <class> class Op> struct Identity<O, Bitwise<T, Op>> {
  static T make() { return Order<T>::value(Op<typename Order<T>::Key>::identity()); }
};
template <class O, class T> struct Identity<O, Extremes<T>> {
  static T make() {
    if constexpr (category<T>() == INEXACT) {
      typedef typename RealOf<T>::type R;
      const auto infinity = (typename Traits<R>::Wide)__builtin_inf();
      const R worst = narrow(Asks<O>::low ? infinity : -infinity, R());
      if constexpr (sizeof(T) > sizeof(R))
        return {worst, worst};
      else
        return worst;
    } else if constexpr (Traits<T>::kind == KIND_BOOL) {
      return T{Asks<O>::low};
    } else {
      typedef typename Order<T>::Key K;
      const K nat = Traits<T>::kind == KIND_TIME; /* the least of times, which spoils */
      return Order<T>::value(Asks<O>::low ? Limits<K>::greatest : (K)(Limits<K>::least + nat));
    }
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
    for (int64_t i = 0; any && keep && i < n; i++) keep[i] = is_nan(x[i]) ? 0 : keep[i];
    return any;
  }
};

/* --- a mask ------------------------------------------------------------------------------------
 */

/* Of n bytes, by blocks of a vector. */
struct Kept {
  int64_t n;    /* how many are not zero */
  bool has_gap; /* a block of which all are */
};
static GPR_APART Kept kept_of(const uint8_t *keep, int64_t n) {
  Kept all = {0, false};
  int64_t i = 0;
  for (; i + GPR_VECTOR <= n; i += GPR_VECTOR) {
    const uint64_t kept = kept_bits(keep + i);
    all.n += __builtin_popcountll(kept);
    all.has_gap |= !kept;
  }
  int64_t rest = 0;
  for (; i < n; i++) rest += keep[i] != 0;
  return {all.n + rest, all.has_gap || (n % GPR_VECTOR && !rest)};
}

/* What counts of n elements, of less than all. */
template <class W>
GPR_FN void mask_each(const char *x, const uint8_t *keep, int64_t n, W other, char *to) {
  for (int64_t j = 0; j < n; j++) {
    W one;
    memcpy(&one, x + j * (int64_t)sizeof one, sizeof one);
    W all = (W) - (W)(keep[j] != 0);
    if constexpr (sizeof(W) > 8) asm("" : "+r"(all)); /* GCC would branch */
    one = other ^ ((one ^ other) & all);
    memcpy(to + j * (int64_t)sizeof one, &one, sizeof one);
  }
}
template <class W> GPR_FN void fill(W other, int64_t n, char *to) {
  for (int64_t j = 0; j < n; j++) memcpy(to + j * (int64_t)sizeof other, &other, sizeof other);
}
/* As many elements as a vector has bytes, of which `kept` count, as bits; where none does nothing
 * is read. */
template <class W>
GPR_FN void mask_block(const char *x, const uint8_t *keep, uint64_t kept, W other, char *to) {
  enum { BYTES = sizeof(W), RUN = GPR_VECTOR, EACH = RUN / BYTES };
  if (kept == ~UINT64_C(0) >> (64 - RUN)) {
    memcpy(to, x, RUN * BYTES);
  } else if (!kept) {
    fill(other, RUN, to);
  } else if constexpr (BYTES <= 8) {
    typedef W V __attribute__((vector_size(RUN)));
    for (int64_t j = 0; j < RUN; j += EACH) {
      const V v = load_kept<W, V>(x + j * BYTES, keep + j, kept >> j, other ^ V{});
      memcpy(to + j * BYTES, &v, sizeof v);
    }
  } else {
    mask_each(x, keep, RUN, other, to);
  }
}
/* Of runs that are left out nothing is read, and what counts as a whole is copied. With `left`,
 * which says how many lines each block has got, `pitch` apart, blocks of which nothing counts get
 * none: the next one takes the place. */
template <class W>
static GPR_APART void mask_line(const char *x, const uint8_t *keep, int64_t kept, int64_t n,
                                const void *identity, char *to, int64_t pitch, int64_t *left) {
  enum { BYTES = sizeof(W), RUN = GPR_VECTOR };
  W other;
  memcpy(&other, identity, BYTES);
  const auto place = [&](int64_t i) {
    return to + (left ? left[i / RUN]++ * pitch : 0) + i * BYTES;
  };
  const bool all = kept == n;
  int64_t i = 0;
  for (; i + RUN <= n; i += RUN) {
    const uint64_t bits = all ? ~UINT64_C(0) >> (64 - RUN) : kept ? kept_bits(keep + i) : 0;
    if (bits || !left) mask_block<W>(x + i * BYTES, keep + i, bits, other, place(i));
  }
  const int64_t rest = n - i;
  const int64_t some = left && !all ? kept_of(keep + i, rest).n : kept;
  if (!rest || (left && !some)) return;
  if (all)
    memcpy(place(i), x + i * BYTES, (size_t)(rest * BYTES));
  else if (some)
    mask_each(x + i * BYTES, keep + i, rest, other, place(i));
  else
    fill(other, rest, place(i));
}
typedef decltype(&mask_line<uint8_t>) MaskLine;
static MaskLine mask_line_of(int bytes) {
  switch (bytes) {
    case 1: return mask_line<uint8_t>;
    case 2: return mask_line<uint16_t>;
    case 4: return mask_line<uint32_t>;
    case 8: return mask_line<uint64_t>;
    default: return mask_line<unsigned __int128>;
  }
}

/* Counts of each place, in bytes for so many lines as these hold. */
struct Tally {
  enum { MOST = 255 };
  uint8_t *bytes;
  int64_t *counts, n, all = 0, some = 0;
  void flush() {
    for (int64_t i = 0; some && i < n; i++) counts[i] += bytes[i];
    some = 0;
  }
  void add(const uint8_t *__restrict keep) {
    uint8_t *__restrict to = bytes;
    if (!some) memset(to, 0, (size_t)n);
    for (int64_t i = 0; i < n; i++) to[i] += keep[i] != 0;
    if (++some == MOST) flush();
  }
  void end() {
    flush();
    for (int64_t i = 0; all && i < n; i++) counts[i] += all;
  }
};

/* Hardware prefetches along a line, and not from one to the next. */
GPR_FN void prefetch_line(const void *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch((const char *)from + i, 0, 2);
}

/* Lines as they come, with how many of each are kept: those some lines ahead are on their way, but
 * for those that stay as they are. */
struct MaskedLines {
  enum { AHEAD = 2, FURTHER = 6 };
  const gpr_masked &m;
  bool stay = false;
  Kept kept[AHEAD] = {};
  int64_t known = 0;
  const uint8_t *keep(int64_t l) const { return m.keep + l * m.keep_step; }
  Kept count(int64_t l) const {
    if (m.whole) return {*keep(l) ? m.n : 0, !*keep(l)};
    return kept_of(keep(l), m.n);
  }
  const char *data(int64_t l) const { return m.data + l * m.data_step; }
  void look() {
    const int64_t l = known++;
    if (l >= m.lines) return;
    if (l + FURTHER < m.lines) prefetch_line(keep(l + FURTHER), m.whole ? 1 : m.n);
    const Kept k = kept[l % AHEAD] = count(l);
    if (k.n && !(stay && k.n == m.n)) prefetch(l, k.has_gap);
  }
  /* The first page; where runs are left out, of lines and more, without these: sums of (4096, 4096)
   * floats along the first axis in runs of 512 took 11.7 ms on an Intel Xeon, and take 10.3. */
  void prefetch(int64_t l, bool has_gap) const {
    enum { BLOCK = GPR_VECTOR, WORTH_IT = 256 };
    const int64_t n = least(m.n, (int64_t)4096 / m.bytes), bytes = BLOCK * m.bytes;
    if (!has_gap || bytes < WORTH_IT) return prefetch_line(data(l), n * m.bytes);
    for (int64_t i = 0; i + BLOCK <= n; i += BLOCK)
      if (kept_bits(keep(l) + i)) prefetch_line(data(l) + i * m.bytes, bytes);
  }
  Kept kept_of_line(int64_t l) {
    while (known < AHEAD) look();
    const Kept n = kept[l % AHEAD];
    look();
    return n;
  }
};

/* Lines at `to`, as they come; or, with places, those that count as a whole where they lie. Where
 * lines may be dropped then, blocks of columns move up, from the end downwards, where others of
 * their line have nothing that counts: as many lines as the fullest block has. */
struct KeptLines {
  enum { RUN = GPR_VECTOR };
  const gpr_masked &m;
  const void *identity;
  char *to;
  MaskLine line;
  bool drops;
  int64_t *places;
  const char *none = NULL; /* one of which nothing counts */
  int64_t lines = 0, copied = 0, left[GPR_OUTPUTS_MOST / RUN + 1] = {};
  int64_t bytes() const { return m.n * m.bytes; }
  char *last() const { return to + (m.lines - 1) * bytes(); }
  void put(const char *x) {
    if (places) places[lines] = (int64_t)((uintptr_t)x - (uintptr_t)m.data); /* or in `to` */
    lines++;
  }
  void add(const char *x, const uint8_t *keep, Kept kept) {
    if (drops && !kept.n) return;
    if (places && kept.n == m.n) return put(x);
    if (places && drops && kept.has_gap)
      return line(x, keep, kept.n, m.n, identity, last(), -bytes(), left);
    if (places && !kept.n && none) return put(none);
    char *own = to + copied++ * bytes();
    if (kept.n == m.n)
      memcpy(own, x, (size_t)bytes());
    else
      line(x, keep, kept.n, m.n, identity, own, 0, NULL);
    if (!kept.n) none = own;
    put(own);
  }
  int64_t end() {
    int64_t most = 0;
    if (!places) return lines;
    for (int64_t b = 0; b * RUN < m.n; b++) most = greatest(most, left[b]);
    for (int64_t b = 0; b * RUN < m.n; b++) {
      const int64_t n = least(m.n - b * RUN, (int64_t)RUN);
      for (int64_t l = left[b]; l < most; l++)
        line(NULL, NULL, 0, n, identity, last() - l * bytes() + b * RUN * m.bytes, 0, NULL);
    }
    for (int64_t l = 0; l < most; l++) put(last() - l * bytes());
    return lines;
  }
};

static int64_t mask(const gpr_masked *m, int counted, const void *identity, char *to,
                    int64_t *counts, uint8_t *tally, int64_t *where) {
  const int64_t n = m->n;
  KeptLines at_to{*m, identity, to, mask_line_of(m->bytes), counted == GPR_MAY_DROP, where};
  Tally places{tally, counts, n};
  MaskedLines lines{*m, where != NULL};
  int64_t all = 0; /* lines before the first that is not all kept */
  while (all < m->lines && lines.count(all).n == n) all++;
  if (all == m->lines) return -1;
  for (int64_t l = 0; l < m->lines; l++) {
    const uint8_t *keep = lines.keep(l);
    const Kept kept = lines.kept_of_line(l);
    at_to.add(lines.data(l), keep, kept);
    if (counted == GPR_BY_LINE)
      counts[l] += kept.n;
    else if (kept.n == n)
      places.all++;
    else if (kept.n)
      places.add(keep);
  }
  places.end();
  return at_to.end();
}

/* --- one number over and over ------------------------------------------------------------------
 */

/* Of a sum: n times x is x by the powers of two that n is made of. */
template <class T> struct Multiples {
  typedef typename RealOf<T>::type R;
  enum { parts = sizeof(T) / sizeof(R) };
  /* Whether none of them overflows. */
  static bool fits(const gpr_masked *m) {
    const R most = (R)(sizeof(R) == 4 ? 0x1p127 : 0x1p1023) / (R)m->n;
    bool all = true;
    for (int64_t l = 0; l < m->lines; l++) {
      R x[parts];
      memcpy(x, m->data + l * m->data_step, sizeof x);
      for (int p = 0; p < parts; p++) all &= !(x[p] - x[p] == 0) | (x[p] < most && x[p] > -most);
    }
    return all;
  }
  static int repeat(const gpr_masked *m, int64_t lines_each, void *to, int64_t *counts) {
    const int width = GPR_MULTIPLES(m->n);
    MaskedLines lines{*m};
    R *out = (R *)to;
    if (!fits(m)) return 0;
    for (int64_t l = 0; l < m->lines; l++) {
      const int64_t n = m->keep ? lines.kept_of_line(l).n : m->n;
      R x[parts];
      memcpy(x, lines.data(l), sizeof x);
      for (int k = 0; k < width; k++)
        for (int p = 0; p < parts; p++)
          *out++ = n >> k & 1 ? x[p] * (R)(INT64_C(1) << k) : minus_zero<R>();
      if (m->keep) counts[l / lines_each] += n;
    }
    return 1;
  }
};

GPR_CLOSE
