/* Moments with many outputs: rows.cuh's and its neighbours' parts that are special to them. */
#pragma once

#include "brief.cuh"
#include "columns.cuh"
#include "differences.cuh"
#include "rows.cuh"
#include "segments.cuh"
#include "shallow.cuh"
#include "staged.cuh"
#include "tile.cuh"
#include "integer_outputs.cuh"
#include "moment_cells.cuh"
#include "moment_results.cuh"

GPR_OPEN

template <class T> struct PoolBytes<PairMoments<T>> {
  static constexpr size_t value = AXES_LOCKS * sizeof(PoolSlot);
};
template <class T> struct PoolBytes<IntegerMoments<T>> : PoolBytes<PairMoments<float>> {};

template <class T> struct RowsShape<PairMoments<T>> { static constexpr int blocks = 2, loads = 8; };
template <class T> struct EndsOf<PairMoments<T>> { static constexpr double value = 4; };
template <class T> struct RowsShape<IntegerMoments<T>> {
  static constexpr int blocks = 3, loads = 8;
};
/* A batch's windows are emptied once for all its numbers: of (17630760, 6) floats along the first
 * axis variances took 212 µs on an H200 by 8 loads, of lognormal ones 387, and take 156 and 326. */
template <class T> struct TileShape<PairMoments<T>> {
  static constexpr int blocks = 2, loads = sizeof(T) <= 4 ? 16 : 8;
};
template <class T> struct StagedShape<PairMoments<T>> {
  static constexpr int blocks = 3, packets = 2304;
};
template <class T> struct StagedShape<IntegerMoments<T>> : StagedShape<PairMoments<T>> {};

template <class T> struct MovedBytes<PairMoments<T>> {
  typedef typename PairMoments<T>::State State;
  static constexpr size_t value =
      sizeof(Pair) * (State::parts * State::Batch::sums + State::parts * State::Batch::squares) +
      8 * (State::parts + 1);
};

/* --- moving ----------------------------------------------------------------------------------- */

/* Of each part the sum, and then the sum of squares. */
template <class T> struct StateTerms<PairMoments<T>> {
  typedef PairMoments<T> F;
  typedef typename F::State State;
  static constexpr int parts = F::parts, P = State::Batch::sums, S = State::Batch::squares;
  static constexpr int sums = 2 * parts, terms = 2 * S, levels = S > 2 ? 2 * S : 2 * S + 1;
  static constexpr bool signs = false, counts = false, few = false;
  static __device__ constexpr int terms_of(int q) { return q % 2 ? 2 * S : 2 * P; }
  static __device__ constexpr int levels_of(int q) { return q % 2 ? levels : P > 1 ? 2 * P : 3; }
  struct Some {
    Pair sum[parts][P], square[parts][S];
  };
  template <int N> static GPR_DEVICE void get(const Pair *pair, double (&x)[terms]) {
    GPR_EACH(i, N) {
      x[2 * i] = pair[i].hi;
      x[2 * i + 1] = pair[i].lo;
    }
  }
  static GPR_DEVICE bool get(const State &s, double (&x)[sums][terms]) {
    bool used = s.squares.used != 0;
    GPR_EACH(p, parts) {
      used |= s.sum[p].used != 0;
      get<P>(s.sum[p].pair, x[2 * p]);
      get<S>(s.squares.pair + p * S, x[2 * p + 1]);
    }
    return !used;
  }
  /* The last level of floats' squares is more than their pairs have room for, as a rule. */
  template <int N> static GPR_DEVICE bool take(Pair (&pair)[N], const double (&level)[levels]) {
    if constexpr (N == 1) {
      return take_levels(pair[0], level);
    } else {
      bool lost = false;
      Terms<2 * N> all;
      GPR_EACH(i, 2 * N) all.term[i] = level[i];
      GPR_UNROLLED(int i = 0; i < 2 * N; i += 2) all.carry(i);
      if (N == S && levels > 2 * N && level[levels - 1] != 0) {
        all.pack();
        all.add(level[levels - 1], lost);
      }
      GPR_EACH(i, N) pair[i] = {all.term[2 * i], all.term[2 * i + 1]};
      return !lost;
    }
  }
  template <int Q> static GPR_DEVICE auto &pairs_of(Some &some) {
    if constexpr (Q % 2)
      return some.square[Q / 2];
    else
      return some.sum[Q / 2];
  }
  template <int Q> static GPR_DEVICE double &first(Some &some) { return pairs_of<Q>(some)[0].hi; }
  template <int Q> static GPR_DEVICE bool take(Some &some, const double (&level)[levels]) {
    return take(pairs_of<Q>(some), level);
  }
  static GPR_DEVICE void put(State &s, const Some &some) {
    GPR_EACH(p, parts) {
      GPR_EACH(i, P) s.sum[p].pair[i] = some.sum[p][i];
      GPR_EACH(i, S) s.squares.pair[p * S + i] = some.square[p][i];
    }
  }
};

template <class W, int P>
__device__ __noinline__ void merge_lanes_as_terms(Levels<W, P> *s, int lanes, int step) {
  AllTerms<P> all;
  bool fine = all.open_all(*s) && !s->used;
  GPR_ROLLED(int mask = lanes / 2; mask >= step; mask /= 2) {
    AllTerms<P> other;
    GPR_EACH(i, all.count) other.term[i] = shuffle_xor(all.term[i], mask);
    fine &= merge(all, other);
  }
  if (!__all_sync(GPR_ALL, fine)) return merge_slowly(s, lanes, step);
  all.give_all(*s);
}
template <class W, int P> GPR_DEVICE void merge_lanes_of(Levels<W, P> &s, int lanes, int step) {
  Pair pair[P];
  bool lost = s.used;
  GPR_EACH(i, P) {
    pair[i] = s.pair[i];
    GPR_ROLLED(int mask = lanes / 2; mask >= step; mask /= 2)
      pair[i] = merged(pair[i], shuffle_xor(pair[i], mask), lost);
  }
  if (__any_sync(GPR_ALL, lost)) return merge_lanes_as_terms(&s, lanes, step);
  GPR_EACH(i, P) s.pair[i] = pair[i];
}
template <class T> struct Move<PairMoments<T>> {
  typedef PairMoments<T> F;
  typedef typename F::State State;
  static GPR_DEVICE void assign(State &to, const State &from) { F::assign(to, from); }
  static GPR_DEVICE void merge_all(State &s, const State *from, int64_t count, int64_t bytes) {
    GPR_ROLLED(int64_t i = 0; i < count; i++) F::merge(s, *after(from, i * bytes));
  }
  /* Once in a kernel, which has up to five that call it. */
  static __device__ __noinline__ void merge_lanes_of_all(State *s, int lanes, int step) {
    if (lanes == GPR_WARP && step == 1 && merged_by_warp<F>(*s)) return;
    GPR_EACH(p, F::parts) merge_lanes_of(s->sum[p], lanes, step);
    merge_lanes_of(s->squares, lanes, step);
  }
  static GPR_DEVICE void merge_lanes(State &s, int lanes, int step = 1) {
    merge_lanes_of_all(&s, lanes, step);
  }
};

/* --- short rows ------------------------------------------------------------------------------- */

/* Two passes over shared memory: one for the windows' place, one for the sums. */
template <class T> struct StagedRow<PairMoments<T>> {
  typedef PairMoments<T> F;
  typedef typename F::State State;
  static constexpr int V = Packet<T>::count, parts = F::parts;
  typedef PartsOfBatch<T, STAGED_BYTES / sizeof(T)> All;
  /* fn(x) of each element. */
  template <class Fn> static GPR_DEVICE void each(const StagedShare<T> &in, Fn fn) {
    if (in.packet) {
      GPR_ROLLED(int p = in.id; p < in.count / V; p += in.team) {
        Packet<T> v;
        v.words = in.packet[p];
        GPR_EACH(j, V) fn(v.element[j]);
      }
    } else {
      GPR_ROLLED(int i = in.id; i < in.count; i += in.team) fn(in.element[i]);
    }
  }
  static GPR_DEVICE void fold(const StagedShare<T> &in, State &s) {
    All batch;
    F::open(s);
    each(in, [&](T x) { batch.see(x); });
    const bool fine = batch.open();
    if (!fine && batch.is_nan()) return set_nan(s, 0);
    if (!fine) {
      WideMoments<typename F::Real, parts> all;
      all.open(s);
      each(in, [&](T x) {
        GPR_EACH(p, parts) all.add(p, (double)F::real(x, p));
      });
      if (!all.give(s)) each(in, [&](T x) { F::add(s, x); });
      return;
    }
    each(in, [&](T x) { batch.add(x); });
    batch.give(s);
  }
};

/* --- few elements ----------------------------------------------------------------------------- */

template <int PAIRS> struct PairsAlone {
  static constexpr int pairs = PAIRS;
  static constexpr bool used = false;
  Pair pair[PAIRS];
};
/* A batch's sums, which are exact. */
template <class R, int PARTS> struct FewMoments {
  static constexpr int parts = PARTS;
  static constexpr bool is_double = sizeof(R) == 8, alone = true;
  typedef MomentBatch<R, 1> Batch;
  PairsAlone<Batch::sums> sum[PARTS];
  PairsAlone<Batch::squares * PARTS> squares;
  bool nan;
  mutable bool certified;
  template <class Result, bool ROOT>
  GPR_DEVICE Result spread(int64_t n, const gpr_spread *how) const {
    Result result = round_case<Result>(SPREAD_NAN);
    certified = true;
    if (nan || n == 0) return result;
    if (is_alone(n, *how)) return Format<Result>::make(0);
    certified = !how->means && round_quickly(*this, n, plain_freedom(n, how->ddof), ROOT, &result);
    return result;
  }
};

template <class T> struct LooksFirst<PairMoments<T>> { static constexpr bool value = true; };
template <class T> struct Few<PairMoments<T>> {
  typedef PairMoments<T> F;
  static constexpr int parts = F::parts;
  PartsOfBatch<T, FEW_SHORT> batch;
  GPR_DEVICE void see(T x) { batch.see(x); }
  GPR_DEVICE bool open() { return batch.open() | batch.is_nan(); }
  GPR_DEVICE void add(T x, int64_t) { batch.add(x); }
  GPR_DEVICE FewMoments<typename F::Real, parts> moments() const {
    FewMoments<typename F::Real, parts> all;
    all.nan = batch.is_nan();
    batch.give(all);
    return all;
  }
  GPR_DEVICE bool finish(const gpr_axes_args &a, int64_t o, int64_t n) const {
    return finish_value<F>(a, o, n, moments());
  }
};

template <class T> struct One<PairMoments<T>> : OneSpread<PairMoments<T>> {
  typedef PairMoments<T> F;
  GPR_DEVICE void add(T x, int64_t) {
    GPR_EACH(p, F::parts) this->finite &= F::real(x, p) - F::real(x, p) == 0;
  }
};

template <class T> struct Ones<PairMoments<T>> {
  static constexpr bool first = true;
  static GPR_DEVICE bool suit(const gpr_axes_args &a) {
    return !a.where && is_alone(1, {a.ddof, a.means, a.spread_nan});
  }
};

GPR_CLOSE
