/* What the threads of a warp or of a block have of sums, added up at once.
 *
 * The greatest term of a sum opens a window, which takes what it can of each term; what that leaves
 * is for the next window. Each thread counts its units in a window, and integers are added over a
 * warp by single instructions; pairs that merge in five turns are some hundred instructions that
 * wait for each other. Of moments of floats the last of 64 blocks took 8,200 cycles of an H200 to
 * come to those of all by pairs, and the last of 128 takes 4,100. */
#pragma once

#include "batch.cuh"

GPR_OPEN

enum { FINITE_END = 0x7ff00000 }; /* the upper half of infinity */
/* A term is less than 2^42 units of its level, so that 2^11 of them are exact in a double. */
enum { TERM_BITS = 42 };

/* How a fold's states are sums of doubles:
 *   sums, terms, levels        of each the most
 *   terms_of(q), levels_of(q)  of sum q
 *   get(s, x)                  its terms; false: it has more than those
 *   first<q>(some)             the first term of sum q
 *   take<q>(some, level)       sum q is that of levels, the greatest first; false: it cannot be
 *   put(s, some)               into a state that has no more
 *   signs                      whether a sum of zeros has a sign
 *   counts                     whether it has a number n beside
 *   few                        whether states merge in fewer steps than levels take */
template <class F> struct StateTerms {
  static constexpr int sums = 0;
  static constexpr bool few = true;
};

/* The upper half of its bits, rounded up: of zeros alone 0, of NaN alone above FINITE_END. */
GPR_DEVICE uint32_t size_of(double x) {
  return ((uint32_t)(bits(x) >> 32) & 0x7fffffffu) | ((uint32_t)bits(x) != 0);
}

/* Up to STATES states of each of THREADS threads. */
template <class F, int STATES, int THREADS> struct LevelledSums {
  typedef StateTerms<F> Terms;
  typedef typename F::State State;
  static constexpr int sums = Terms::sums, terms = Terms::terms, levels = Terms::levels,
                       spare = 53 - log2_up(STATES * THREADS * Terms::terms),
                       term_bits = spare < TERM_BITS ? spare : (int)TERM_BITS;
  static_assert(sums * levels <= GPR_WARP, "a lane for each level");
  double x[STATES][sums][terms];
  uint32_t most[sums] = {}; /* the greatest size of a term */
  int64_t n = 0;
  int own = 0;       /* the place of this lane's level */
  uint32_t plus = 0; /* bits: which sums met a +0.0, if sums have signs */
  bool lost = false, live[sums];

  template <int I> GPR_DEVICE void see(const State &s) {
    lost |= !Terms::get(s, x[I]);
    if constexpr (Terms::counts) n += s.n;
    GPR_EACH(q, sums)
      GPR_EACH(t, terms) {
        if (t >= Terms::terms_of(q)) continue;
        most[q] = greatest(most[q], size_of(x[I][q][t]));
        if (Terms::signs && t == 0 && bits(x[I][q][t]) == 0) plus |= 1u << q;
      }
  }
  template <int I> GPR_DEVICE void see_nothing() {
    GPR_EACH(q, sums)
      GPR_EACH(t, terms) x[I][q][t] = -0.0;
  }
  /* By all who share the sums, who know the greatest terms: any(x) is whether x is true of any of
   * them. Infinities are lost; a NaN decides a sum, whatever else there is. */
  template <class Any> GPR_DEVICE void decide(const Any &any) {
    GPR_EACH(q, sums) {
      lost |= most[q] == FINITE_END;
      if (Terms::signs && most[q] == 0 && any(plus >> q & 1)) plus |= 1u << q;
    }
  }
  /* Level l's window of sum q: all terms are below 2^top. */
  GPR_DEVICE int place(int q, int l) const {
    const int top = most[q] ? (int)(most[q] >> 20) - 1022 : 0;
    return top + 52 - term_bits - l * (term_bits + 1);
  }
  /* Whether its unit is a normal number. */
  static GPR_DEVICE bool is_place(int at) { return at <= 1023 && at - 52 >= -1022; }
  /* Lane q·levels + l has the units that all lanes have in level l of sum q, of the first `states`
   * states. All sums' levels go side by side: none waits for another's. */
  GPR_DEVICE int64_t units(int states) {
    int64_t mine = 0;
    bool left = open_level<0>();
    GPR_ROLLED(int l = 0; l < levels && left; l++) left = add_level<0>(l, states, mine);
    lost |= left;
    return mine;
  }
  template <int Q> GPR_DEVICE bool open_level() {
    live[Q] = most[Q] != 0 && most[Q] < FINITE_END;
    own = lane_of() / levels == Q ? place(Q, lane_of() % levels) : own;
    bool others = false;
    if constexpr (Q + 1 < sums) others = open_level<Q + 1>();
    return live[Q] || others;
  }
  template <int Q> GPR_DEVICE bool add_level(int l, int states, int64_t &mine) {
    if (live[Q]) {
      const int at = place(Q, l);
      const double start = window_start(at);
      double window = start;
      bool left = caught_any<Q, 0>(window);
      if (STATES > 1 && states > 1) left |= caught_any<Q, STATES - 1>(window);
      lost |= !is_place(at) || l >= Terms::levels_of(Q);
      const int64_t all = (int64_t)warp_units((int64_t)(bits(window) - bits(start)));
      if (lane_of() == Q * levels + l) mine = all;
      live[Q] = __any_sync(GPR_ALL, left);
    }
    bool others = false;
    if constexpr (Q + 1 < sums) others = add_level<Q + 1>(l, states, mine);
    return live[Q] || others;
  }
  /* Whether the window leaves anything of state I's terms. */
  template <int Q, int I> GPR_DEVICE bool caught_any(double &window) {
    bool left = false;
    GPR_EACH(t, terms) {
      if (t >= Terms::terms_of(Q)) continue;
      x[I][Q][t] = rest_of(window, x[I][Q][t]);
      left |= x[I][Q][t] != 0;
    }
    return left;
  }
  /* This thread's levels of all sums as numbers, whose sums are exact. */
  static __device__ constexpr int first_of(int q) {
    return q ? first_of(q - 1) + Terms::levels_of(q - 1) : 0;
  }
  struct Numbers {
    static constexpr int count = first_of(sums);
    double level[count];
    int64_t n;
    uint32_t plus;
    GPR_DEVICE void add(const Numbers &other) {
      GPR_EACH(i, count) level[i] += other.level[i];
      n += other.n;
      plus |= other.plus;
    }
  };
  template <int Q = 0> GPR_DEVICE void number(bool two, Numbers &to) {
    bool left = most[Q] != 0 && most[Q] < FINITE_END;
    lost |= most[Q] == FINITE_END;
    GPR_EACH(l, Terms::levels_of(Q)) {
      double &level = to.level[first_of(Q) + l];
      level = 0;
      if (!left) continue;
      const int at = place(Q, l);
      const double start = window_start(at);
      double window = start;
      lost |= !is_place(at);
      left = caught_any<Q, 0>(window);
      if (STATES > 1 && two) left |= caught_any<Q, STATES - 1>(window);
      level = window - start;
    }
    to.plus = plus;
    lost |= left;
    if constexpr (Q + 1 < sums) number<Q + 1>(two, to);
  }
  /* The terms of all that was added, by level_of(its lane, its number). */
  template <int Q, class LevelOf>
  GPR_DEVICE bool take(typename Terms::Some &some, uint32_t met, const LevelOf &level_of) const {
    double level[levels];
    GPR_EACH(l, levels)
      level[l] = l < Terms::levels_of(Q) ? level_of(Q * levels + l, first_of(Q) + l) : 0;
    bool fits = Terms::template take<Q>(some, level);
    if (most[Q] > FINITE_END) Terms::template first<Q>(some) = NAN, fits = true;
    if (Terms::signs && most[Q] == 0 && !(met >> Q & 1)) Terms::template first<Q>(some) = -0.0;
    if constexpr (Q + 1 < sums) fits = take<Q + 1>(some, met, level_of) && fits;
    return fits;
  }
  GPR_DEVICE bool take(typename Terms::Some &some, const Numbers &of) const {
    return take<0>(some, of.plus, [&](int, int number) { return of.level[number]; });
  }
  /* What lanes have of the levels as terms of sums, by all lanes; false where those do not fit. */
  GPR_DEVICE bool take(typename Terms::Some &some, int64_t units) const {
    const double unit = from_bits((uint64_t)(own - 52 + 1023) << 52);
    const double mine = units ? (double)units * unit : 0;
    return take<0>(some, plus, [&](int lane, int) { return broadcast(mine, lane); });
  }
};

/* By all lanes of a warp, which then have what all have; or false, and they are as they were. */
struct OfLanes {
  GPR_DEVICE bool operator()(bool x) const { return __any_sync(GPR_ALL, x); }
};
template <class F> GPR_DEVICE bool merged_by_warp(typename F::State &s) {
  LevelledSums<F, 1, GPR_WARP> all;
  all.template see<0>(s);
  GPR_EACH(q, all.sums) all.most[q] = warp_max(all.most[q]);
  all.decide(OfLanes());
  const int64_t units = all.units(1);
  typename StateTerms<F>::Some some;
  if (__any_sync(GPR_ALL, all.lost) || !all.take(some, units)) return false;
  StateTerms<F>::put(s, some);
  return true;
}

/* By all threads of a block: the state of each, or `count` others, come to all; or false, and they
 * are as they were. */
struct OfThreads {
  GPR_DEVICE bool operator()(bool x) const { return __syncthreads_or(x); }
};
template <class F, int WARPS> struct BlockOfSums {
  enum { STATES = 2, THREADS = WARPS * GPR_WARP };
  typedef LevelledSums<F, STATES, THREADS> Sums;
  typedef typename F::State State;
  uint32_t most[Sums::sums][WARPS];
  int64_t n[WARPS], units[Sums::sums * Sums::levels][WARPS];

  GPR_DEVICE void share(Sums &all) {
    __syncthreads();
    GPR_EACH(q, Sums::sums) {
      const uint32_t found = warp_max(all.most[q]);
      if (lane_of() == 0) most[q][warp_of()] = found;
    }
    if constexpr (StateTerms<F>::counts) {
      const int64_t found = (int64_t)warp_units(all.n);
      if (lane_of() == 0) n[warp_of()] = found;
      all.n = 0;
    }
    __syncthreads();
    GPR_EACH(w, WARPS) {
      GPR_EACH(q, Sums::sums) all.most[q] = greatest(all.most[q], most[q][w]);
      if constexpr (StateTerms<F>::counts) all.n += n[w];
    }
  }
  /* Each lane its level's, of all warps. */
  GPR_DEVICE int64_t units_of_block(int64_t mine, bool &lost) {
    constexpr int lanes = Sums::sums * Sums::levels;
    if (lane_of() < lanes) units[lane_of()][warp_of()] = mine;
    lost = __syncthreads_or(lost);
    mine = 0;
    GPR_EACH(w, WARPS)
      if (lane_of() < lanes) mine += units[lane_of()][w];
    return mine;
  }
  template <int I>
  static GPR_DEVICE void see(Sums &all, const State &s, const State *from, int64_t count) {
    const int64_t e = threadIdx.x + I * THREADS;
    if (e < count)
      all.template see<I>(from ? from[e] : s);
    else
      all.template see_nothing<I>();
  }
  GPR_DEVICE bool merge(State &s, const State *from, int64_t count) {
    if (count > STATES * THREADS) return false;
    const int states = count > THREADS + warp_of() * GPR_WARP ? 2 : 1;
    Sums all;
    see<0>(all, s, from, count);
    if (states > 1) see<1>(all, s, from, count);
    share(all);
    all.decide(OfThreads());
    const int64_t mine = units_of_block(all.units(states), all.lost);
    typename StateTerms<F>::Some some;
    if (all.lost || !all.take(some, mine)) return false; /* all say the same */
    if (from) F::open(s);
    StateTerms<F>::put(s, some);
    if constexpr (StateTerms<F>::counts) s.n = all.n;
    return true;
  }
};

GPR_CLOSE
