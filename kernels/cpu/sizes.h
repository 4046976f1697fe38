/* The magnitudes of a block's lanes. */
#pragma once

#include "twofold.h"

GPR_OPEN

template <class R> struct Sizes;
template <> struct Sizes<float> {
  static constexpr uint32_t INFINITE = 0xff000000u;
  Words32 most = {}, least = ~Words32{}; /* shifted; less one, so that zero is not the least */
  GPR_METHOD void see(const float *at) {
    Words32 size;
    memcpy(&size, at, sizeof size);
    size += size;
    most = most > size ? most : size;
    size -= 1;
    least = least < size ? least : size;
  }
  /* Lanes of such, or with an infinity; but none with NaN. */
  GPR_METHOD Words32 far_apart(int range) const {
    const Words32 apart = (most & INFINITE) - ((least + 1) & INFINITE);
    const Words32 far = (Words32)((apart > (uint32_t)range << 24) & (most > least));
    return (far | (Words32)(most == INFINITE)) & (Words32)(most <= INFINITE);
  }
  GPR_METHOD Words32 are_odd() const { return (Words32)(most >= INFINITE); }
  GPR_METHOD Words32 are_infinite() const { return (Words32)(most == INFINITE); }
  /* What doubles' sums of n of them are off by at most, where they lie so far apart. */
  GPR_METHOD void bounds(int range, double n, Doubles *to) const {
    float size[2 * WIDTH];
    const Words32 far = most >> 1 & far_apart(range);
    memcpy(size, &far, sizeof size);
    for (int k = 0; k < 2; k++)
      to[k] = 0x1p-52 * n * (n + 4) * load((const float *)size + k * WIDTH);
  }
};
template <> struct Sizes<double> {
  Doubles most[2] = {}, least[2] = {Doubles{} + __builtin_inf(), Doubles{} + __builtin_inf()};
  GPR_METHOD void see(const Doubles d, int k) {
    most[k] = greater_size(most[k], d);
    least[k] = smaller_size(least[k], d);
  }
  GPR_METHOD void see_but_zero(const Doubles d, int k) {
    most[k] = greater_size(most[k], d);
    least[k] = smaller_but_zero(least[k], d);
  }
  /* The least that is not zero, where one is. */
  GPR_APART static Doubles least_of(const double *x, int64_t stride, int64_t rows) {
    Doubles least = Doubles{} + __builtin_inf();
    for (int64_t row = 0; row < rows; row++) {
      const Doubles d = load(x + row * stride);
      least = smaller_size(least, choose((Words)(d == 0), Doubles{} + __builtin_inf(), d));
    }
    return least;
  }
};

GPR_CLOSE
