/* Two vectors of columns, of a few rows at a time: how their sums are kept. */
#pragma once

#include "simd.h"
#include "many.h"
#include "sizes.h"

GPR_OPEN

/* Numbers are added up by blocks of rows, and then these, so that few roundings add up; some rows
 * of a panel of columns at a time, which the hardware can follow. Of 256 columns, (4096, 1024)
 * doubles took 1.87 ms on a Xeon, of 512 1.60. */
enum { PANEL_BYTES = 4096, BLOCK_ROWS = 256, PIECE_ROWS = 64, WOVEN_ROWS = 16 };
/* Rows of elements, which are `step` bytes apart; or steps of one row of so many reals. places: as
 * a tile's. */
struct Lines {
  const char *x;
  int64_t along, step, reals;
  const int64_t *places = nullptr;

  int64_t place(int64_t row) const { return places ? places[row] : row * along; }
};
/* Rows that lie whole pages apart, or nearly, meet in one set of the first cache, of so many ways.
 * They come so many at a time, and nothing is asked for beside them: of (512, 2048) floats it took
 * 409 us on Zen 3 to ask for the next ones, and takes 180 so, of (4096, 1024) 1592, and 718. */
enum { PAGE_BYTES = 4096, LINE_BYTES = 64, WAYS = 8 };
/* Whether some of so many rows and as many next ones would push each other out. */
static GPR_APART bool rows_meet(const Lines &l, int64_t rows) {
  uint8_t met[PAGE_BYTES / LINE_BYTES] = {};
  for (int64_t row = 0; row < least(rows, (int64_t)WOVEN_ROWS); row++)
    if (++met[(uint64_t)l.place(row) % PAGE_BYTES / LINE_BYTES] > WAYS / 2) return true;
  return false;
}

/* How many columns come before the first line of the cache that begins in a row, and in all. */
template <class T> GPR_FN int64_t columns_before_line(const gpr_tile *t) {
  const int64_t left = (int64_t)(-(uintptr_t)t->data % LINE_BYTES);
  return t->along % LINE_BYTES || left % (int64_t)sizeof(T) ? 0 : left / (int64_t)sizeof(T);
}
/* Whether more than STREAMS rows span more than FAR_BYTES: too many to be read side by side, so
 * that they go by panels. Of 33 to 64 rows of 64 MB floats took 0.4 to 0.46 ns each on Zen 3 side
 * by side and 0.26 to 0.32 by panels, doubles 0.9 and 0.73. */
enum { STREAMS = 32, FAR_BYTES = 16 << 20 };
GPR_FN bool are_streams(const gpr_tile *t) {
  return t->n > STREAMS && (t->along > FAR_BYTES / t->n || t->along < -FAR_BYTES / t->n);
}

/* Every second UNIT of doubles. */
template <int UNIT, int... L> GPR_FN Doubles second_lanes(const double *x, Lanes<L...>) {
  return __builtin_shufflevector(load(x), load(x + WIDTH), (L + L / UNIT * UNIT)...);
}
/* Rows of STEP reals where they lie; the next ones lie `ahead` of them, or 0. unit: 0, or every
 * second one of so many doubles counts. places: NULL, or how many bytes from x on each lies, and
 * then what is ahead lies so of the row that comes `later`. */
template <class R> struct Piece {
  const R *x;
  int64_t stride, n, ahead;
  int unit = 0;
  const int64_t *places = nullptr;
  int64_t later = 0;

  GPR_METHOD const R *row(int64_t i) const {
    if (!places) return x + i * stride;
    return (const R *)(const void *)((const char *)x + places[i]);
  }

  /* Vector k of a row. */
  GPR_METHOD Doubles get(const R *at, int k) const {
    if constexpr (sizeof(R) == sizeof(double)) {
      const R *two = at + 2 * k * WIDTH;
      if (unit == 1) return second_lanes<1>(two, LanesTo<WIDTH>());
      if (unit == 2) return second_lanes<2>(two, LanesTo<WIDTH>());
    }
    return load(at + k * WIDTH);
  }
  /* Calls take(where a row lies, and the one to ask for) for all rows, or from another one on. */
  template <int FROM = 0, class Take> GPR_METHOD void walk(const Take &take) const {
    const Piece p = *this; /* which no store changes */
    const int64_t each = p.places ? 1 : p.n - FROM;
    const R *at = p.x + FROM * p.stride, *next = at + p.ahead;
    for (int64_t i = FROM; i < p.n; i += each) {
      if (p.places) at = p.row(i), next = p.row(i + p.later) + p.ahead;
      for (int64_t k = 0; k < each; k++, at += p.stride, next += p.stride) take(at, next);
    }
  }
  /* Calls take(both vectors of a row) for all rows. What is the same for all is asked once: asked
   * for each, and by blocks of 64 rows, sums of (500, 256) doubles took 50 us on Zen 3, now 47. */
  template <class Take> GPR_METHOD void each(const Take &take) const {
    const Piece p = *this; /* which no store changes */
    if (sizeof(R) < sizeof(double) || !p.unit)
      walk([&](const R *at, const R *next) GPR_INLINED {
        prefetch_later<STEP>(next);
        take(load(at), load(at + WIDTH));
      });
    else
      walk([&](const R *at, const R *next) GPR_INLINED {
        prefetch_later<2 * STEP>(next);
        take(p.get(at, 0), p.get(at, 1));
      });
  }
};
/* A tile's rows, from its first column on. */
template <class R> GPR_FN Piece<R> rows_of_tile(const gpr_tile *t, int64_t ahead) {
  return {
      (const R *)(const void *)t->data, t->along / (int64_t)sizeof(R), t->n, ahead, 0, t->places};
}
/* Lanes that are not finite, but for those that have met a NaN before, which stays. */
template <class K> GPR_FN Words are_odd(const K &k) {
  return (Words)(k.sum.high - k.sum.high != 0) & (Words)(k.special == k.special);
}
/* From this bit on lanes or outputs that infinite elements decide: what is so by itself. */
enum { DECIDED = 32 };
GPR_FN uint64_t decided(const Doubles sum) {
  return mask_of((Words)(size_of(sum) == __builtin_inf())) << DECIDED;
}
/* Of what is not finite; whether a lane without NaN has an infinity. Parts of up to 1024 numbers
 * add up to that or to what is finite. */
template <class K, class R> GPR_APART bool look_for_special(K *to, const Piece<R> &rows) {
  Words infinite = {};
  for (int k = 0; k < 2; k++) {
    Doubles special = {}, most = {};
    rows.walk([&](const R *at, const R *) GPR_INLINED {
      const Doubles d = rows.get(at, k);
      special += d * 0x1p-10;
      most = greater_size(most, d);
    });
    infinite |= (Words)(most == __builtin_inf());
    to[k].special += (Doubles)(bits(special) & (Words)(special - special != 0));
    to[k].set_aside((Words)(to[k].sum.high - to[k].sum.high != 0));
  }
  return mask_of(infinite);
}
template <bool EXACTLY, class K, class R> GPR_FN bool add_rows(K *to, const Piece<R> &rows) {
  constexpr bool narrow = sizeof(R) < sizeof(double);
  K a = to[0], b = to[1];
  rows.each([&](const Doubles x, const Doubles y) GPR_INLINED {
    if constexpr (EXACTLY) {
      a.add_exactly(x);
      b.add_exactly(y);
    } else {
      a.template add<narrow>(x);
      b.template add<narrow>(y);
    }
  });
  to[0] = a;
  to[1] = b;
  const Doubles all = a.sum.high + b.sum.high;
  return mask_of((Words)(all - all != 0)) && mask_of(are_odd(a) | are_odd(b)) &&
         look_for_special(to, rows);
}

/* What a step keeps of a block of n rows, which come in pieces. exactly: of so few doubles that
 * ties are frequent. Results of add() and close(): whether an element is infinite, in a lane
 * without NaN. */
template <class K, class R> struct StepBlock {
  enum { ROWS = BLOCK_ROWS, TOGETHER = 1 };
  K part[2];

  GPR_METHOD void open(bool is_first, bool) {
    for (K &k : part) {
      const Doubles special = is_first ? Doubles{} : k.special;
      k.open();
      k.special = special;
    }
  }
  GPR_METHOD bool add(const Piece<R> &rows, bool) { return add_rows<false>(part, rows); }
  GPR_METHOD bool close(K *to, int64_t, bool, bool is_first) {
    for (int k = 0; k < 2; k++) {
      const Words odd = (Words)(part[k].sum.high - part[k].sum.high != 0);
      if (mask_of(odd)) part[k].set_aside(odd);
      if (is_first)
        to[k] = part[k];
      else
        to[k].merge(part[k]);
    }
    return false;
  }
};

/* Of floats plain sums of doubles: exact where their exponents are close, else off by
 * rows²·u·max|x| at most. Nothing overflows, so that what is not finite stays. */
template <> struct StepBlock<TwofoldSum<Doubles>, float> {
  enum { ROWS = BLOCK_ROWS, TOGETHER = 2 };
  Doubles sum[2];
  Sizes<float> sizes;

  GPR_METHOD void open(bool, bool) {
    sum[0] = sum[1] = -Doubles{};
    sizes = {};
  }
  GPR_METHOD void see(const float *x) {
    sizes.see(x);
    sum[0] += load(x);
    sum[1] += load(x + WIDTH);
  }
  GPR_METHOD bool add(const Piece<float> &rows, bool) {
    StepBlock s = *this;
    rows.walk([&](const float *x, const float *next) GPR_INLINED {
      prefetch_later<STEP>(next);
      s.see(x);
    });
    *this = s;
    return false;
  }
  /* With another step, `apart` from this: the one's additions wait while the other's go on. */
  GPR_METHOD void add_two(StepBlock &other, const Piece<float> &rows, int64_t apart) {
    StepBlock s = *this, o = other;
    rows.walk([&](const float *x, const float *next) GPR_INLINED {
      prefetch_later<2 * STEP>(next);
      s.see(x);
      o.see(x + apart);
    });
    *this = s;
    other = o;
  }
  GPR_METHOD bool close(TwofoldSum<Doubles> *to, int64_t n, bool, bool is_first) {
    const int range = 53 - 24 - (n > 64 ? 8 : n > 8 ? 6 : 3);
    const bool is_close = !mask_of(sizes.far_apart(range) | sizes.are_odd());
    if (is_first) to[0].open(), to[1].open();
    if (!is_close) {
      Doubles by[2];
      sizes.bounds(range, (double)n, by);
      for (int k = 0; k < 2; k++) {
        const Words odd = (Words)(sum[k] - sum[k] != 0);
        to[k].special += (Doubles)(odd & bits(sum[k]));
        sum[k] = (Doubles)(~odd & bits(sum[k]));
        to[k].errors += (Doubles)(~odd & bits(by[k]));
      }
    }
    for (int k = 0; k < 2; k++)
      if (is_first)
        to[k].sum.high = sum[k];
      else
        to[k].add_exactly(sum[k]);
    return !is_close && mask_of(sizes.are_infinite());
  }
};

GPR_CLOSE
