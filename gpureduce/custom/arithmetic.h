/* What operators reckon with, the same on the host and on a device: where C leaves a case
 * undefined, or to the machine, it is defined here. */
#ifdef __CUDACC__
#define GPR_OP static __device__ __forceinline__
#define GPR_LARGE static __device__ __noinline__
#define GPR_MUL(a, b) ((a) * (b))
#else
#define GPR_OP static inline __attribute__((always_inline, unused))
#define GPR_LARGE static __attribute__((noinline, unused))
/* GCC 12 fuses products with what follows, beside -ffp-contract=off, unless it is told here. */
#if __GNUC__ >= 12 && !defined(__clang__)
#define GPR_MUL(a, b) __builtin_assoc_barrier((a) * (b))
#else
#define GPR_MUL(a, b) ((a) * (b))
#endif
#endif

/* --- integers: they wrap around; x / 0 and x % 0 are 0; shifts beyond the width leave nothing ---
 */

#define GPR_SIGNED(name, type)                                                                    \
  GPR_OP type gpr_div_##name(type x, type y) {                                                    \
    return (type)(y == 0 ? 0 : y == -1 ? (type)(0 - (uint64_t)x) : x / (y == 0 ? 1 : y));         \
  }                                                                                               \
  GPR_OP type gpr_rem_##name(type x, type y) {                                                    \
    return (type)(y == 0 || y == -1 ? 0 : x % (y == 0 ? 1 : y));                                  \
  }                                                                                               \
  GPR_OP type gpr_shr_##name(type x, int64_t by) {                                                \
    return (type)(x >> (by < 0 || by >= 8 * (int64_t)sizeof x ? 8 * (int64_t)sizeof x - 1 : by)); \
  }
#define GPR_UNSIGNED(name, type)                                                                   \
  GPR_OP type gpr_div_##name(type x, type y) { return (type)(y == 0 ? 0 : x / (y == 0 ? 1 : y)); } \
  GPR_OP type gpr_rem_##name(type x, type y) { return (type)(y == 0 ? 0 : x % (y == 0 ? 1 : y)); } \
  GPR_OP type gpr_shr_##name(type x, int64_t by) {                                                 \
    return (type)(by < 0 || by >= 8 * (int64_t)sizeof x ? 0 : x >> (by & (8 * sizeof x - 1)));     \
  }
#define GPR_SHIFTS(name, type)                                     \
  GPR_OP type gpr_shl_##name(type x, int64_t by) {                 \
    return (type)(by < 0 || by >= 8 * (int64_t)sizeof x            \
                      ? 0                                          \
                      : (uint64_t)x << (by & (8 * sizeof x - 1))); \
  }
GPR_SIGNED(i1, int8_t)
GPR_SIGNED(i2, int16_t)
GPR_SIGNED(i4, int32_t)
GPR_SIGNED(i8, int64_t)
GPR_UNSIGNED(u1, uint8_t)
GPR_UNSIGNED(u2, uint16_t)
GPR_UNSIGNED(u4, uint32_t)
GPR_UNSIGNED(u8, uint64_t)
GPR_SHIFTS(i1, int8_t)
GPR_SHIFTS(i2, int16_t)
GPR_SHIFTS(i4, int32_t)
GPR_SHIFTS(i8, int64_t)
GPR_SHIFTS(u1, uint8_t)
GPR_SHIFTS(u2, uint16_t)
GPR_SHIFTS(u4, uint32_t)
GPR_SHIFTS(u8, uint64_t)

/* Floats that do not fit an integer: what x86 gives, as kernels/core/convert.h has it. */
GPR_OP int64_t gpr_to_i8(double x) {
  const bool fits = (x >= -0x1p63) & (x < 0x1p63);
  const int64_t whole = (int64_t)(fits ? x : 0), all = -(int64_t)fits;
  return (whole & all) | (int64_t)((uint64_t)~all & (uint64_t)1 << 63);
}
GPR_OP uint64_t gpr_to_u8(double x) {
  const bool is_large = x >= 0x1p63 && x < 0x1p64;
  return is_large ? (uint64_t)(is_large ? x : 0) : (uint64_t)gpr_to_i8(x);
}

/* --- bits of floats ------------------------------------------------------------------------------
 */

GPR_OP uint32_t gpr_bits(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
GPR_OP float gpr_float(uint32_t b) {
  float x;
  memcpy(&x, &b, sizeof x);
  return x;
}
GPR_OP uint64_t gpr_bits_f8(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
GPR_OP double gpr_float_f8(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}
/* 16 bits, widened exactly and narrowed to nearest even. */
GPR_OP float gpr_widen_bf16(uint16_t h) { return gpr_float((uint32_t)h << 16); }
GPR_OP float gpr_widen_e2(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
  const float small = (float)rest * 0x1p-24f;
  const uint32_t normal = (rest << 13) + (112u << 23), special = (rest << 13) + (224u << 23);
  return gpr_float(sign | (rest < 0x400 ? gpr_bits(small) : rest < 0x7c00 ? normal : special));
}
GPR_OP uint16_t gpr_narrow_bf16_f4(float x) {
  const uint32_t b = gpr_bits(x);
  return (uint16_t)(x != x ? 0x7fc0 : (b + 0x7fff + (b >> 16 & 1)) >> 16);
}
GPR_OP uint16_t gpr_narrow_e2_f4(float x) {
  const uint32_t b = gpr_bits(x), sign = b >> 16 & 0x8000, rest = b & 0x7fffffff;
  const uint32_t normal = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
  const uint32_t small = gpr_bits(gpr_float(rest) + 0.5f) - gpr_bits(0.5f);
  const uint32_t h = x != x               ? 0x7e00
                     : rest >= 0x477ff000 ? 0x7c00
                     : rest < 0x38800000  ? small
                                          : normal;
  return (uint16_t)(x != x ? h : sign | h);
}
/* Rounding to odd on the way keeps what a second rounding needs to know. */
GPR_OP float gpr_to_odd(double x) {
  const float f = (float)x;
  const double back = f;
  uint32_t b = gpr_bits(f);
  if (back == x || x != x) return f;
  if ((back < 0 ? -back : back) > (x < 0 ? -x : x)) b--;
  return gpr_float(b | 1);
}
GPR_OP uint16_t gpr_narrow_bf16_f8(double x) { return gpr_narrow_bf16_f4(gpr_to_odd(x)); }
GPR_OP uint16_t gpr_narrow_e2_f8(double x) { return gpr_narrow_e2_f4(gpr_to_odd(x)); }

/* --- math.h, where machines differ: signs of NaN and which of two zeros -------------------------
 */

#define GPR_FLOATS(type, f)                                                             \
  GPR_OP bool gpr_signbit##f(type x) { return x == x && gpr_is_negative##f(x); }        \
  GPR_OP bool gpr_isnan##f(type x) { return x != x; }                                   \
  GPR_OP bool gpr_isinf##f(type x) { return x - x != x - x && x == x; }                 \
  GPR_OP bool gpr_isfinite##f(type x) { return x - x == x - x; }                        \
  GPR_OP type gpr_copysign##f(type x, type y) {                                         \
    const type a = fabs##f(x);                                                          \
    return gpr_signbit##f(y) ? -a : a;                                                  \
  }                                                                                     \
  GPR_OP type gpr_fmin##f(type x, type y) {                                             \
    const type tie = gpr_is_negative##f(x) ? x : y, less = x < y ? x : y;               \
    return x == y ? tie : y != y ? x : less;                                            \
  }                                                                                     \
  GPR_OP type gpr_fmax##f(type x, type y) {                                             \
    const type tie = gpr_is_negative##f(x) ? y : x, more = x > y ? x : y;               \
    return x == y ? tie : y != y ? x : more;                                            \
  }                                                                                     \
  GPR_OP type gpr_fdim##f(type x, type y) { return x <= y ? 0 : x - y; }                \
  GPR_OP type gpr_round##f(type x) {                                                    \
    const type whole = trunc##f(x), rest = fabs##f(x - whole);                          \
    return gpr_copysign##f(rest >= (type)0.5 ? fabs##f(whole) + 1 : fabs##f(whole), x); \
  }
GPR_OP bool gpr_is_negativef(float x) { return gpr_bits(x) >> 31; }
GPR_OP bool gpr_is_negative(double x) { return gpr_bits_f8(x) >> 63; }
GPR_FLOATS(double, )
GPR_FLOATS(float, f)
/* A device's own square root branches for what is neither small nor large, so that many of them do
 * not go side by side. These are its steps for all others, to which the small ones are scaled. */
GPR_OP float gpr_sqrtf(float x) {
#ifdef __CUDACC__
  const bool is_small = x < 0x1p-96f;
  const float s = is_small ? x * 0x1p64f : x;
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(s));
  const float root = s * y, rest = __fmaf_rn(-root, root, s);
  const float found = __fmaf_rn(rest, y * 0.5f, root);
  return x == 0 || x == gpr_float(0x7f800000) ? x : is_small ? found * 0x1p-32f : found;
#else
  return sqrtf(x);
#endif
}
GPR_OP double gpr_sqrt(double x) { return sqrt(x); }
GPR_OP double gpr_plain_f8(double x) { return x == x ? x : (double)gpr_float(0x7fc00000); }
GPR_OP float gpr_plain_f4(float x) { return x == x ? x : gpr_float(0x7fc00000); }
