/* Σx and Σx² of integers by one thread: as wide as its share can need. */
#ifndef GPR_INTEGER_MOMENTS_CUH
#define GPR_INTEGER_MOMENTS_CUH

#include "cells.cuh"

GPR_OPEN

/* A thread's share is far below 2^31 elements of up to 16 bits: 64 bits hold both sums, and 96 of
 * elements of 32 bits. */
template <class T, int = sizeof(T)> struct IntegerCell {
  typedef typename IntegerMoments<T>::State State;
  typedef typename Traits<T>::Wide Wide;
  Wide sum = 0;
  uint64_t squares = 0;
  __device__ __forceinline__ void add(T x) {
    const int w = (int)wide(x);
    sum += w;
    squares += (uint32_t)(w * w);
  }
  __device__ __forceinline__ State done() const {
    return {
        (uint64_t)sum, Traits<T>::kind == KIND_INT && (int64_t)sum < 0 ? -1 : 0, {squares, 0, 0}};
  }
};
template <> struct IntegerCell<uint16_t, 2> {
  uint64_t sum = 0, squares = 0;
  __device__ __forceinline__ void add(uint16_t x) {
    sum += x;
    squares += (uint32_t)x * x;
  }
  __device__ __forceinline__ IntegerMoments<uint16_t>::State done() const {
    return {sum, 0, {squares, 0, 0}};
  }
};
template <class T> struct IntegerCell<T, 4> {
  typedef typename IntegerMoments<T>::State State;
  typename Traits<T>::Wide sum = 0;
  uint64_t squares = 0;
  uint32_t over = 0;
  __device__ __forceinline__ void add(T x) {
    const typename Traits<T>::Wide w = x;
    const uint64_t square = (uint64_t)(w * w);
    sum += w;
    squares += square;
    over += squares < square;
  }
  __device__ __forceinline__ State done() const {
    return {(uint64_t)sum,
            Traits<T>::kind == KIND_INT && (int64_t)sum < 0 ? -1 : 0,
            {squares, over, 0}};
  }
};
template <class T> struct IntegerCell<T, 8> {
  typedef IntegerMoments<T> F;
  typename F::State state;
  __device__ __forceinline__ IntegerCell() { F::open(state); }
  __device__ __forceinline__ void add(T x) { F::add(state, x, 0); }
  __device__ __forceinline__ typename F::State done() const { return state; }
};

template <class T> struct Cell<IntegerMoments<T>> {
  IntegerCell<T> cell;
  __device__ __forceinline__ void add(T x, int64_t) { cell.add(x); }
  __device__ __forceinline__ typename IntegerMoments<T>::State done() { return cell.done(); }
};

template <class T> struct RowLane<IntegerMoments<T>> {
  typedef IntegerMoments<T> F;
  typedef typename F::State State;
  static constexpr bool certain = true;
  IntegerCell<T> cell;
  __device__ __forceinline__ void keep(State *) {}
  template <int U> __device__ __forceinline__ bool take(const Packet<T> (&v)[U], int64_t, int64_t) {
#pragma unroll
    for (int i = 0; i < U * Packet<T>::count; i++)
      cell.add(v[i / Packet<T>::count].element[i % Packet<T>::count]);
    return true;
  }
  __device__ __forceinline__ void one(T x, int64_t) { cell.add(x); }
  __device__ __forceinline__ void rest(T) {}
  __device__ __forceinline__ void result(State &s) { s = cell.done(); }
};

GPR_CLOSE
#endif
