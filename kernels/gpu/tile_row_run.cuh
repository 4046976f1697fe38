/* tile_run.cuh's of elements that lie side by side, 16 bytes a load. */
#pragma once

#include "converted_cells.cuh"
#include "mask_bytes.cuh"
#include "missing.cuh"
#include "tile_run.cuh"

GPR_OPEN

/* Packets that a thread has under way, of so many elements, each of so many bytes as folded. */
GPR_FN GPR_CONSTEXPR int row_loads(int elements, int bytes) {
  return elements == 2 ? 8 : elements == 16 || (bytes > 8 && elements > 1) ? 2 : 4;
}

/* Which folds have packets in tiles: those that take them much faster than elements. */
template <class F> struct TilePackets {
  static constexpr bool is_small = sizeof(typename F::Element) <= 2,
                        value = Lane<F>::neutral || (is_small && RowsMask<F>::value);
};

/* What is counted is packets. Masks lie so too, or there is none. */
template <class F, class LOAD> struct RowRun : TileRun<F, LOAD> {
  typedef typename F::Element T;
  typedef typename Load<T, LOAD>::From From;
  typedef TileRun<F, LOAD> Base;
  static constexpr int V = Packet<From>::count, U = row_loads(V, sizeof(T));
  static constexpr uint64_t ALL = U * V == 64 ? ~0ull : (1ull << (U * V % 64)) - 1;
  using Base::a;
  using Base::Base;
  using Base::where;

  /* Those that `valid` says. */
  static GPR_DEVICE void take(TileCell<F> &cell, const Packet<From> (&v)[U], uint64_t valid) {
    if constexpr (AddsStored<F, From>::value) {
      From x[U * V];
      GPR_EACH(i, U * V) x[i] = v[i / V].element[i % V];
      neutralise(x, valid);
      return add_converted<F>(cell, x);
    }
    T x[U * V];
    GPR_EACH(i, U * V) x[i] = Load<T, LOAD>::of(v[i / V].element[i % V]);
    if constexpr (Lane<F>::neutral) {
      neutralise(x, valid);
      cell.template add<U * V>(x, 0, 0);
    } else if (valid == ALL) {
      cell.template add<U * V>(x, 0, 0);
    } else {
      cell.template some<U * V>(x, valid, 0, 0);
    }
  }
  /* A bit for each of packet p's elements that is the run's. */
  static GPR_DEVICE uint32_t own(const Packets<From> &in, int64_t p) {
    uint32_t bits = (1u << V) - 1;
    if (p == 0) bits &= ~0u << in.first;
    if (in.stop - p * V < V) bits &= (1u << (in.stop - p * V)) - 1;
    return bits;
  }
  /* A bit for each element that counts. Without a branch, so that all loads are under way
   * together. */
  GPR_DEVICE uint64_t load_some(const Packets<From> &in, int64_t p, int down, int64_t first,
                                int64_t whole, int64_t stop, const char *mask, bool aligned,
                                Packet<From> (&v)[U]) const {
    uint64_t valid = 0;
    uint32_t bits[U];
    GPR_EACH(u, U) v[u].words = in.load(inside(p + u * down, first, whole));
    if (a.where) {
      MaskBytes<V> bytes[U];
      const auto at = [&](int u) { return mask + inside(p + u * down, first, whole) * V; };
      if (V >= 4 && aligned) {
        GPR_EACH(u, U) bytes[u].load_aligned(at(u));
      } else {
        GPR_EACH(u, U) bytes[u].load_anywhere(at(u));
      }
      GPR_EACH(u, U) bits[u] = bytes[u].bits();
    } else {
      GPR_EACH(u, U) bits[u] = own(in, inside(p + u * down, first, whole));
    }
    GPR_EACH(u, U)
      if (p + u * down >= first && p + u * down < stop) valid |= (uint64_t)bits[u] << u * V;
    return valid;
  }
  /* Of a fold to which neutral_of() is nothing, packets p, p + down, … below stop, that may all be
   * read whole. */
  GPR_DEVICE int64_t fold_whole(TileCell<F> &cell, Packets<From> in, int64_t p, int down,
                                int64_t stop) {
    int64_t n = 0;
    in.stop = least(in.stop, stop * V);
    GPR_ROLLED(; p * V < in.stop; p += U * down) {
      Packet<From> v[U];
      if (in.inside(p, 1) && in.inside(p + (U - 1) * down, 1)) {
        in.load(v, p, down);
        n += U * V;
      } else {
        n += load_ends<false>(in, p, down, v);
      }
      if (a.skip) n -= drop_missing(v);
      take(cell, v, ALL);
    }
    return n;
  }
  /* Packets p, p + down, … below stop; what belongs to none that may be read whole comes with the
   * first. */
  GPR_DEVICE int64_t fold(TileCell<F> &cell, int64_t p, int down, int64_t stop, int64_t length,
                          const Steps &) {
    const Packets<From> in(this->data, length);
    const bool all = !a.where && may_read_whole(a, in);
    if constexpr (Lane<F>::neutral)
      if (all) return fold_whole(cell, in, p, down, stop);
    const int64_t first = in.first && !all ? 1 : 0, whole = all ? in.packets() : in.stop / V;
    const char *const mask = where - in.first;
    const bool aligned = (uintptr_t)mask % V == 0;
    int64_t n = 0;
    if (p < down) n = ends(cell, (int)p, down, first * V - in.first, whole * V - in.first, length);
    if (whole < stop) stop = whole;
    if (first >= whole) return n;
    GPR_ROLLED(; p < stop; p += U * down) {
      Packet<From> v[U];
      const int64_t last = p + (U - 1) * down;
      uint64_t valid = ALL;
      if (!a.where && last < stop && in.inside(p, 1) && in.inside(last, 1))
        in.load(v, p, down);
      else
        valid = load_some(in, p, down, first, whole, stop, mask, aligned, v);
      if (a.skip)
        GPR_EACH(i, U * V)
          if (is_nan_or_nat(v[i / V].element[i % V])) valid &= ~(1ull << i);
      n += __popc((uint32_t)valid) + __popc((uint32_t)(valid >> 32));
      take(cell, v, valid);
    }
    return n;
  }
  static GPR_DEVICE int64_t inside(int64_t p, int64_t first, int64_t whole) {
    return p < first ? first : p < whole ? p : whole - 1;
  }
  /* Elements below `head` and from `tail` on. */
  GPR_DEVICE int64_t ends(TileCell<F> &cell, int y, int down, int64_t head, int64_t tail,
                          int64_t length) {
    if (tail < head) head = tail = length;
    const int64_t all = head + length - tail;
    int64_t n = 0;
    GPR_ROLLED(int64_t i = y; i < all; i += down) {
      const int64_t r = i < head ? i : tail + i - head;
      T x[1] = {this->at(r)};
      if ((a.where && !this->where[r]) || (a.skip && is_nan_or_nat(x[0]))) continue;
      cell.template add<1>(x, 0, 0);
      n++;
    }
    return n;
  }
};

GPR_CLOSE
