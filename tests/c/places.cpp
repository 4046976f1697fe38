/* Where the best of a batch stands, as lanes_of_positions.cuh looks for it, beside a loop. */
#include "../../kernels/gpu/as_host.h"
#include "../../kernels/gpu/lanes_of_positions.cuh"

int __ffs(int x) { return __builtin_ffs(x); }

namespace gpr {
namespace gpu {

static uint32_t drawn() {
  static uint64_t state = 7;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}
/* Bits of an element that many others have too: ends, zeros of both signs, NaN, and any. */
template <class T> static uint32_t element_bits(int kind) {
  static const uint32_t halves[] = {0x8000, 0x7fff, 0x7c00, 0xfc00, 0x3f80, 0xff80},
                        floats[] = {0x80000000u, 0x7fc00000u, 0x7f800000u,
                                    0xff800000u, 0x3f800000u, 0xffffffffu};
  const uint32_t x = drawn();
  if (kind == 0) return x * 0x9e3779b9u;
  if (kind == 1) return x & 1;
  if (kind == 2) return x & 1 ? ~0u : 1u << (8 * sizeof(T) - 1);
  if (x % 50 > (uint32_t)kind) return 0;
  return sizeof(T) == 4 ? floats[x / 64 % 6] : halves[x / 64 % 6];
}

template <class T, bool GREATEST> static long count_wrong() {
  typedef Rank<T, GREATEST> R;
  typedef WordRank<T, GREATEST> W;
  enum { U = 8, V = Packet<T>::count };
  const auto ties = [](T x, T y) {
    const bool nan = R::poisoned(x), other = R::poisoned(y);
    return nan || other ? nan == other : !R::beats(x, y) && !R::beats(y, x);
  };
  long wrong = 0;
  for (int round = 0; round < 20000; round++) {
    Packet<T> v[U];
    const int kind = (int)(drawn() % 45);
    for (int i = 0; i < U * V; i++) {
      const uint32_t bits = element_bits<T>(kind);
      memcpy(&v[i / V].element[i % V], &bits, sizeof(T));
    }
    T best = v[0].element[0], other = v[drawn() % U].element[drawn() % V];
    int where = 0;
    for (int i = 1; i < U * V; i++) {
      const T x = v[i / V].element[i % V];
      if (R::beats(x, best) && !R::poisoned(best)) best = x, where = i;
    }
    const uint32_t rank = W::of(best);
    wrong += first_alike(v, best) != where;
    if (ties(other, best)) wrong += first_alike(v, other) != where || W::of(other) != rank;
    if (!ties(other, best)) wrong += W::of(other) >= rank;
    wrong += W::is_nan(rank) != R::poisoned(best);
    if (!R::poisoned(best)) wrong += W::key(rank) != R::of(best);
  }
  return wrong;
}
template <class T> static long both_wrong() {
  return count_wrong<T, false>() + count_wrong<T, true>();
}

extern "C" __attribute__((visibility("default"))) long wrong_places(void) {
  return both_wrong<boolean>() + both_wrong<int8_t>() + both_wrong<uint8_t>() +
         both_wrong<int16_t>() + both_wrong<uint16_t>() + both_wrong<float16>() +
         both_wrong<bfloat16>() + both_wrong<int32_t>() + both_wrong<uint32_t>() +
         both_wrong<float>();
}

}  // namespace gpu
}  // namespace gpr
