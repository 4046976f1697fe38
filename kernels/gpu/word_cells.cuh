/* Columns of small elements: what a thread keeps while it folds packets of them word by word,
 * several elements an instruction. */
#pragma once

#include "lanes_of_extremes.cuh"

GPR_OPEN

/* How words of a fold's elements are taken: `most` of them before give(c, state, words) adds what
 * column c of a packet has come to, and open() begins again. */
struct NoLane {
  static constexpr bool is_there = false;
};
template <class F> struct WordLane : NoLane {};

template <class T> struct WordExtremes {
  typedef Extremes<T> F;
  static constexpr bool is_there = true;
  static constexpr int most = 1 << 30, pairs = 2 / sizeof(T), all = 4 * pairs;
  PairBounds<T> bounds[all];
  GPR_DEVICE void open() {
    GPR_EACH(p, all) bounds[p].open();
  }
  GPR_DEVICE void add(int i, uint32_t w) {
    GPR_EACH(p, pairs) bounds[i * pairs + p].add(pair_keys<T>(w, p));
  }
  GPR_DEVICE void give(int c, typename F::State &s, int) const { bounds[c / 2].give(c % 2, s); }
};
/* Counts in the words' own halves or bytes. */
template <class T, int WHAT> struct WordCounts {
  typedef Counting<T, WHAT> F;
  static constexpr bool is_there = true;
  static constexpr int bits = 8 * sizeof(T), most = (1 << bits) - 1, each = 32 / bits;
  uint32_t trues[4];
  GPR_DEVICE void open() { trues[0] = trues[1] = trues[2] = trues[3] = 0; }
  GPR_DEVICE void add(int i, uint32_t w) {
    trues[i] += (sizeof(T) == 1 ? true_bytes(w) : true_halves<Traits<T>::kind != KIND_FLOAT>(w)) >>
                (bits - 1);
  }
  GPR_DEVICE void give(int c, typename F::State &s, int words) const {
    const int n = (int)(trues[c / each] >> c % each * bits & most);
    s.count += WHAT ? n : words - n;
  }
};
template <class FOLD> struct WordSums {
  typedef FOLD F;
  typedef typename F::Element T;
  typedef typename Word<T>::type W;
  static constexpr bool is_there = true;
  static constexpr int each = 4 / sizeof(T), most = 1 << (sizeof(T) == 1 ? 22 : 14);
  W sum[4 * each];
  GPR_DEVICE void open() {
    GPR_EACH(c, 4 * each) sum[c] = 0;
  }
  GPR_DEVICE void add(int i, uint32_t w) {
    GPR_EACH(e, each) {
      W &s = sum[i * each + e];
      s = sizeof(T) == 1 ? dot4((W)w, (W)(1u << 8 * e), s) : dot2_low((W)w, (W)(1u << 8 * e), s);
    }
  }
  GPR_DEVICE void give(int c, typename F::State &s, int) const {
    const int64_t all = sum[c];
    if constexpr (Same<F, LongSum<T>>::value)
      F::merge(s, typename F::State{(uint64_t)all, all >> 63});
    else
      s.sum += (uint64_t)all;
  }
};

template <class T> GPR_FN GPR_CONSTEXPR bool is_small() {
  return sizeof(T) <= 2 && Traits<T>::kind != KIND_BOOL;
}
template <bool SMALL, class LANE> struct LaneIf : Either<SMALL, LANE, NoLane>::type {};
template <class T> struct WordLane<Extremes<T>> : LaneIf<is_small<T>(), WordExtremes<T>> {};
template <class T, int WHAT>
struct WordLane<Counting<T, WHAT>> : LaneIf<sizeof(T) <= 2, WordCounts<T, WHAT>> {};
template <class T>
struct WordLane<IntegerSum<T>> : LaneIf<is_small<T>(), WordSums<IntegerSum<T>>> {};
template <class T> struct WordLane<LongSum<T>> : LaneIf<is_small<T>(), WordSums<LongSum<T>>> {};

/* As Cells, of a packet's columns. States in memory have what the words do not hold, and the rows
 * that are not whole. */
template <class F> struct WordCells {
  typedef typename F::Element T;
  typedef typename F::State State;
  static constexpr bool is_plain = false;
  static constexpr int V = Packet<T>::count;
  WordLane<F> lane;
  int words;
  State *over;
  GPR_DEVICE void keep(State *states) {
    over = states, words = 0;
    lane.open();
    GPR_ROLLED(int c = 0; c < V; c++) F::open(over[c]);
  }
  GPR_DEVICE void one(const Packet<T> &v) {
    GPR_EACH(i, 4) lane.add(i, word(v, i));
    words++;
  }
  /* Before so many more. */
  GPR_DEVICE void make_room(int next) {
    if (words + next <= WordLane<F>::most) return;
    done(over);
    words = 0;
    lane.open();
  }
  template <int U> GPR_DEVICE void some(T (&x)[U * V], uint64_t valid, int64_t, int64_t) {
    GPR_EACH(i, U * V)
      if (valid >> i & 1) F::add(over[i % V], x[i], 0);
  }
  GPR_DEVICE void done(State *) {
    GPR_EACH(c, V) lane.give(c, over[c], words);
  }
};

GPR_CLOSE
