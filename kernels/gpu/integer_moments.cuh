/* Σx and Σx² of integers by one thread: as wide as its share can need. */
#pragma once

#include "cells.cuh"

GPR_OPEN

/* A thread's share is far below 2^31 elements of up to 16 bits: 64 bits hold both sums, and 96 of
 * elements of 32 bits. */
template <class T, int = sizeof(T)> struct IntegerCell {
  typedef typename IntegerMoments<T>::State State;
  typedef typename Traits<T>::Wide Wide;
  Wide sum = 0;
  uint64_t squares = 0;
  uint32_t over = 0;
  GPR_DEVICE void add(T x, int64_t = 0) {
    const Wide w = wide(x);
    const uint64_t square = sizeof(T) < 4 ? (uint32_t)w * (uint32_t)w : (uint64_t)(w * w);
    sum += w;
    squares += square;
    if (sizeof(T) == 4) over += squares < square;
  }
  GPR_DEVICE State done() const {
    return {{(uint64_t)sum, Traits<T>::kind == KIND_INT && (int64_t)sum < 0 ? -1 : 0},
            {squares, over, 0}};
  }
};
template <class T> struct IntegerCell<T, 8> {
  typedef IntegerMoments<T> F;
  typename F::State state;
  GPR_DEVICE IntegerCell() { F::open(state); }
  GPR_DEVICE void add(T x, int64_t = 0) { F::add(state, x, 0); }
  GPR_DEVICE typename F::State done() const { return state; }
};

template <class T> struct Cell<IntegerMoments<T>> : IntegerCell<T> {};

/* --- bytes ------------------------------------------------------------------------------------ */

/* 32 bits hold 2^15 of them, and of their squares. */
enum { BYTES_AT_ONCE = 1 << 15 };

template <class T>
__device__ __noinline__ void add_count(typename IntegerMoments<T>::State *s, int32_t sum,
                                       uint32_t squares) {
  IntegerMoments<T>::merge(*s, {{(uint64_t)(int64_t)sum, sum < 0 ? -1 : 0}, {squares, 0, 0}});
}

template <class T> struct ByteCells {
  typedef IntegerMoments<T> F;
  typedef typename F::State State;
  int32_t sum;
  uint32_t squares;
  int count;
  State *over;
  GPR_DEVICE void keep(State *over) {
    F::open(*over);
    this->over = over;
    open();
  }
  GPR_DEVICE void open() { count = sum = 0, squares = 0; }
  GPR_DEVICE void give() { add_count<T>(over, sum, squares); }
  GPR_DEVICE void expect(int elements) {
    count += elements;
    if (count <= BYTES_AT_ONCE) return;
    give();
    open();
    count = elements;
  }
  GPR_DEVICE void one(T x) {
    const int w = (int)wide(x);
    sum += w;
    squares += (uint32_t)(w * w);
  }
  template <int U> GPR_DEVICE void add(const T (&x)[U], int64_t, int64_t) {
    expect(U);
    GPR_EACH(i, U) one(x[i]);
  }
  template <int U> GPR_DEVICE void some(T (&x)[U], uint64_t valid, int64_t, int64_t) {
    expect(U);
    GPR_EACH(i, U)
      if (valid >> i & 1) one(x[i]);
  }
  GPR_DEVICE void done(State *) { give(); }
};
template <> struct Cells<IntegerMoments<boolean>, 1> : ByteCells<boolean> {};
template <> struct Cells<IntegerMoments<int8_t>, 1> : ByteCells<int8_t> {};
template <> struct Cells<IntegerMoments<uint8_t>, 1> : ByteCells<uint8_t> {};

/* --- packets of one output -------------------------------------------------------------------- */

template <class T, int U> /* of bytes */
GPR_DEVICE uint32_t batch_squares(const Packet<T> (&v)[U]) {
  typedef typename Word<T>::type W;
  if constexpr (Traits<T>::kind == KIND_BOOL) return (uint32_t)batch_sum(v);
  W sum = 0;
  GPR_EACH(i, 4 * U) sum = dot4((W)word(v, i), (W)word(v, i), sum);
  return (uint32_t)sum;
}

template <class T> struct Lane<IntegerMoments<T>> {
  typedef IntegerMoments<T> F;
  typedef typename F::State State;
  static constexpr bool neutral = false;
  IntegerCell<T> cell;
  GPR_DEVICE void keep(State *) {}
  template <int U> GPR_DEVICE void take(const Packet<T> (&v)[U], int64_t, int64_t) {
    if constexpr (sizeof(T) == 1) {
      cell.sum += batch_sum(v);
      cell.squares += batch_squares(v);
    } else {
      GPR_EACH(i, U * Packet<T>::count)
        cell.add(v[i / Packet<T>::count].element[i % Packet<T>::count]);
    }
  }
  GPR_DEVICE void one(T x, int64_t) { cell.add(x); }
  GPR_DEVICE void result(State &s) { s = cell.done(); }
};

GPR_CLOSE
