/* Packets folded to where the least or the greatest stands. */
#pragma once

#include "lanes_of_extremes.cuh"

GPR_OPEN

template <bool GREATEST, class T> GPR_DEVICE T better(T a, T b) {
  return GREATEST ? greatest(a, b) : least(a, b);
}
/* The best of a batch of elements of up to four bytes, or what ties with it; by four chains, for
 * their latency. */
template <bool GREATEST, class T, int U> GPR_DEVICE T best_of_batch(const Packet<T> (&v)[U]) {
  constexpr bool is_float = Traits<T>::kind == KIND_FLOAT;
  if constexpr (sizeof(T) == 4) {
    T best[4];
    GPR_EACH(i, 4) best[i] = v[0].element[i];
    GPR_UNROLLED(int i = 4; i < 4 * U; i++)
      best[i % 4] = better<GREATEST>(best[i % 4], v[i / 4].element[i % 4]);
    return better<GREATEST>(better<GREATEST>(best[0], best[1]), better<GREATEST>(best[2], best[3]));
  }
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 2 && is_float) {
    uint32_t best[4];
    GPR_EACH(i, 4) best[i] = word(v, i);
    GPR_UNROLLED(int i = 4; i < 4 * U; i++)
      best[i % 4] = best_pair<GREATEST>(best[i % 4], word(v, i), T());
    best[0] = best_pair<GREATEST>(best[0], best[1], T());
    best[2] = best_pair<GREATEST>(best[2], best[3], T());
    const uint32_t pair = best_pair<GREATEST>(best[0], best[2], T());
    const T a{(uint16_t)pair}, b{(uint16_t)(pair >> 16)};
    return Rank<T, GREATEST>::beats(b, a) && !Rank<T, GREATEST>::poisoned(a) ? b : a;
  }
#endif
  if constexpr (sizeof(T) <= 2) {
    Lane<Extremes<T>> lane;
    typename Extremes<T>::State s;
    lane.take(v, 0, 0);
    lane.result(s);
    if (Order<T>::poisoned(s.low, s.high)) return Order<T>::poison();
    return Order<T>::value(GREATEST ? s.high : s.low);
  }
}
/* The top bits of a word's elements that are as good as `best`; above the first such one others
 * may have theirs. */
template <class T> GPR_DEVICE uint32_t alike_in_word(uint32_t w, T best) {
  constexpr bool is_float = Traits<T>::kind == KIND_FLOAT;
  constexpr uint32_t ones = sizeof(T) == 1 ? 0x01010101u : 0x00010001u;
  constexpr uint32_t tops = ones << (8 * sizeof(T) - 1);
  typename Either<sizeof(T) == 1, uint8_t, uint16_t>::type bits;
  memcpy(&bits, &best, sizeof bits);
  uint32_t wanted = bits * ones;
  if constexpr (is_float) {
    if ((best.bits & 0x7fff) == 0) w &= ~tops, wanted = 0; /* zeros tie, and NaNs */
    if (widen(best) != widen(best))
      return ((w & ~tops) + (0x7fffu - (uint32_t)Format<T>::infinity()) * ones) & tops;
  }
  if constexpr (Traits<T>::kind == KIND_BOOL) {
    w = true_bytes(w) >> 7;
    wanted = (best.byte != 0) * ones;
  }
  const uint32_t x = w ^ wanted;
  return (x - ones) & ~x & tops;
}
/* The first element of a batch as good as its best: of small ones the packet comes first, and then
 * its word. */
template <class T, int U> GPR_DEVICE int first_in_words(const Packet<T> (&v)[U], T best) {
  uint32_t alike[4] = {};
  int packet = 0, place = 0;
  GPR_UNROLLED(int u = U - 1; u >= 0; u--) {
    uint32_t here[4], any = 0;
    GPR_EACH(i, 4) any |= here[i] = alike_in_word(word(v[u], i), best);
    if (any) packet = u;
    GPR_EACH(i, 4) alike[i] = any ? here[i] : alike[i];
  }
  GPR_UNROLLED(int i = 3; i >= 0; i--)
    if (alike[i]) place = i * 32 + __ffs((int)alike[i]) - 1;
  return packet * Packet<T>::count + place / (8 * (int)sizeof(T));
}
template <class T, int U> GPR_DEVICE int first_alike(const Packet<T> (&v)[U], T best) {
  constexpr int V = Packet<T>::count;
  if constexpr (sizeof(T) < 4) {
    return first_in_words(v, best);
  } else {
    int where = 0;
    const bool is_nan = best != best;
    GPR_UNROLLED(int i = U * V - 1; i >= 0 && !is_nan; i--)
      if (v[i / V].element[i % V] == best) where = i;
    GPR_UNROLLED(int i = U * V - 1; i >= 0 && is_nan; i--)
      if (v[i / V].element[i % V] != v[i / V].element[i % V]) where = i;
    return where;
  }
}

/* Of up to four bytes: numbers that are ordered as elements are, NaN before all. */
template <class T, bool GREATEST> struct WordRank {
  typedef Rank<T, GREATEST> R;
  typedef typename R::Key Key;
  static constexpr uint32_t sign = (Key)-1 < (Key)0 ? 0x80000000u : 0;
  static constexpr bool may_be_nan = Traits<T>::kind == KIND_FLOAT;
  static GPR_DEVICE uint32_t of(T x) {
    return may_be_nan && R::poisoned(x) ? ~0u : (uint32_t)R::of(x) ^ sign;
  }
  static GPR_DEVICE bool is_nan(uint32_t rank) { return may_be_nan && rank == ~0u; }
  static GPR_DEVICE Key key(uint32_t rank) { return (Key)(rank ^ sign); }
};

/* A warp has one champion, and a batch that does not challenge it is passed over. Of 32 MiB a warp
 * has two or three batches, of which most do: of halves it took 30 µs on an H200 where each element
 * was compared, and takes 19. */
template <class T, bool GREATEST>
struct Lane<Position<T, GREATEST>> : AnyLane<Position<T, GREATEST>> {
  typedef Position<T, GREATEST> F;
  typedef typename F::R R;
  using AnyLane<F>::state;
  template <int U> __device__ void take(const Packet<T> (&v)[U], int64_t index, int64_t step) {
    constexpr int V = Packet<T>::count;
    T best = v[0].element[0];
    int where = 0;
    bool beaten = state.index < 0;
    if constexpr (sizeof(T) <= 4) {
      best = best_of_batch<GREATEST>(v);
      beaten |= R::beats(best, R::value(state.best));
    } else {
      bool some[4] = {};
      GPR_EACH(i, U * V) some[i % 4] |= R::beats(v[i / V].element[i % V], R::value(state.best));
      beaten |= some[0] | some[1] | some[2] | some[3];
    }
    if (!__any_sync(GPR_ALL, beaten && !state.spoiled)) return;
    if constexpr (sizeof(T) <= 4) {
      where = first_alike(v, best);
    } else {
      GPR_UNROLLED(int i = 1; i < U * V; i++) {
        const T x = v[i / V].element[i % V];
        if (R::beats(x, best) && !R::poisoned(best)) best = x, where = i;
      }
    }
    meet(best, index + where / V * step + where % V);
  }
  /* What lanes found, of which the first one's packets lie first: numbers of 32 bits tell which is
   * best, and which of those stands first. */
  GPR_DEVICE void meet(T best, int64_t index) {
    if constexpr (sizeof(T) <= 4) {
      typedef WordRank<T, GREATEST> W;
      const uint32_t rank = W::of(best), most = warp_max(rank);
      const int64_t first = broadcast(index, 0) - BEFORE;
      const uint32_t early = warp_max(rank == most ? ~(uint32_t)(index - first) : 0);
      typename F::State found;
      found.index = first + ~early;
      found.spoiled = W::is_nan(most);
      found.best = W::key(most);
      F::merge(state, found);
    } else {
      F::add(state, best, index);
      merge_warp<F>(state);
    }
  }
  enum { BEFORE = 1 << 24 }; /* what lane 0 found may stand behind the others' */
};

GPR_CLOSE
