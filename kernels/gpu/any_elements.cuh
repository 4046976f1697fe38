/* Several elements at a time whose dtype, byte order and address are known at run time alone: what
 * they are is asked once for all, so that their loads wait for the memory together. Sums of 124 MB
 * of int16 as float64 took 763 µs on an H200 by a call for each element, and of 67 MB take 133. */
#pragma once

#include "../core/fold.h"
#include "load.cuh"

GPR_OPEN

/* Their bytes, eight of each; of long ones the others are `more`, where T has a use for them. */
template <class T, int N> struct AnyElements {
  static constexpr bool is_pair = Traits<T>::kind == KIND_COMPLEX;
  static constexpr int longs = is_pair ? N : 1, bytes = sizeof(T) < 8 ? (int)sizeof(T) : 8;
  uint64_t word[N], more[longs];
  GPR_DEVICE AnyElements() : word{}, more{} {}

  template <class W> GPR_DEVICE void load_as(const char *const (&from)[N]) {
    GPR_EACH(u, N) word[u] = load_whole<W>(from[u]);
  }
  GPR_DEVICE void load_bytes(const char *const (&from)[N], int size) {
    GPR_ROLLED(int b = 0; b < size; b++)
      GPR_EACH(u, N) {
        const uint64_t byte = (uint64_t)load_whole<uint8_t>(from[u] + b) << b % 8 * 8;
        if (b < 8)
          word[u] |= byte;
        else if (is_pair)
          more[u] |= byte;
      }
  }
  GPR_DEVICE void load(const char *const (&from)[N], const gpr_axes_args &a) {
    if (a.unaligned) return load_bytes(from, a.from_bytes);
    switch (a.from_bytes) {
      case 1: return load_as<uint8_t>(from);
      case 2: return load_as<uint16_t>(from);
      case 4: return load_as<uint32_t>(from);
      case 8: return load_as<uint64_t>(from);
    }
    load_as<uint64_t>(from);
    if constexpr (is_pair)
      GPR_EACH(u, N) more[u] = load_whole<uint64_t>(from[u] + 8);
  }
  /* The bytes of each `unit`, a power of two of them, the other way round. */
  static GPR_DEVICE uint64_t turned(uint64_t w, int unit) {
    w = (w & 0x00ff00ff00ff00ff) << 8 | (w >> 8 & 0x00ff00ff00ff00ff);
    if (unit >= 4) w = (w & 0x0000ffff0000ffff) << 16 | (w >> 16 & 0x0000ffff0000ffff);
    return unit >= 8 ? w << 32 | w >> 32 : w;
  }
  GPR_DEVICE void turn(int unit) {
    GPR_EACH(u, N) word[u] = turned(word[u], unit);
    if constexpr (is_pair)
      GPR_EACH(u, N) more[u] = turned(more[u], unit);
  }

  /* A number as Loose has it, in the same words. */
  GPR_DEVICE int hold(int u, int64_t x) {
    word[u] = (uint64_t)x;
    return Loose::SIGNED;
  }
  GPR_DEVICE int hold(int u, uint64_t x) {
    word[u] = x;
    return Loose::UNSIGNED;
  }
  GPR_DEVICE int hold(int u, double x) {
    word[u] = bits(x);
    return Loose::REAL;
  }
  GPR_DEVICE int hold(int u, float x) { return hold(u, (double)x); }
  template <class R> GPR_DEVICE int hold(int u, complex<R> x) {
    if (is_pair) more[u] = bits((double)x.im);
    hold(u, (double)x.re);
    return Loose::COMPLEX;
  }
  template <class FROM> GPR_DEVICE int hold_all() {
    int kind = 0;
    GPR_EACH(u, N) {
      FROM x = {};
      memcpy(&x, &word[u], sizeof x < 8 ? sizeof x : 8);
      if constexpr (sizeof x > 8 && is_pair) memcpy(&x.im, &more[u], sizeof x.im);
      kind = hold(u, wide(x));
    }
    return kind;
  }
  GPR_DEVICE int hold_all(int from) {
    switch (from) {
#define GPR_X(id, name, letter, size, type) \
  case GPR_##id: return hold_all<type>();
      GPR_DTYPES(GPR_X)
#undef GPR_X
    }
    return -1;
  }
  /* As T; false: what T stands for here is another dtype, which has other values. */
  GPR_DEVICE bool convert_to(T (&x)[N], const gpr_axes_args &a) {
    constexpr bool whole = Traits<T>::kind == KIND_INT || Traits<T>::kind == KIND_UINT;
    const int kind = hold_all(a.from);
    const bool are_whole = kind == Loose::SIGNED || kind == Loose::UNSIGNED;
    if (a.to != Id<T>::value && !(whole && are_whole && a.to != GPR_BOOL)) return false;
    if constexpr (Traits<T>::kind == KIND_TIME) {
      return false;
    } else {
      if (kind == Loose::SIGNED)
        GPR_EACH(u, N) x[u] = convert<T>((int64_t)word[u]);
      else if (kind == Loose::UNSIGNED)
        GPR_EACH(u, N) x[u] = convert<T>(word[u]);
      else if (kind == Loose::REAL || !is_pair)
        GPR_EACH(u, N) x[u] = convert<T>(from_bits(word[u]));
      else
        GPR_EACH(u, N) x[u] = convert<T>(complex<double>{from_bits(word[u]), from_bits(more[u])});
      return true;
    }
  }
  GPR_DEVICE void get(T (&x)[N], const char *const (&from)[N], const gpr_axes_args &a) {
    load(from, a);
    if (a.swap) turn(a.swap);
    if (a.from == a.to) {
      GPR_EACH(u, N) {
        memcpy(&x[u], &word[u], bytes);
        if constexpr (sizeof(T) > 8) memcpy((char *)&x[u] + 8, &more[u], 8);
      }
    } else if (!convert_to(x, a)) {
      GPR_EACH(u, N) x[u] = Load<T, AnyDtype>::get(from[u], a);
    }
  }
};

GPR_CLOSE
