/* Float64 variances and means of few elements as a device finishes them, and moments as it adds
 * them up by batches, compiled for the host. */
#include "../../kernels/gpu/as_host.h"
#include "../../kernels/gpu/column_differences.cuh"
#include "../../kernels/gpu/moment_cells.cuh"
#include "../../kernels/gpu/moment_outputs.cuh"

#include <vector>

using namespace gpr;
uint32_t __activemask() { return 1; }
int __any_sync(uint32_t, int yes) { return yes; }
template <class T, class U, class V> T atomicCAS(T *at, U, V) { return *at; }
template <class T, class U> T atomicExch(T *at, U) { return *at; }
void __threadfence() {}
int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
gpr_dim3 threadIdx, blockIdx;
template <class Half, class Pick>
static uint32_t by_halves(uint32_t a, uint32_t b, uint32_t c, Pick pick) {
  uint32_t both = 0;
  for (int at = 0; at < 32; at += 16) {
    const Half sum = (Half)((a >> at) + (b >> at)), other = (Half)(c >> at);
    both |= (uint32_t)(uint16_t)(pick(sum, other) ? sum : other) << at;
  }
  return both;
}
uint32_t __viaddmin_u16x2(uint32_t a, uint32_t b, uint32_t c) {
  return by_halves<uint16_t>(a, b, c, [](auto x, auto y) { return x < y; });
}
uint32_t __viaddmax_s16x2(uint32_t a, uint32_t b, uint32_t c) {
  return by_halves<int16_t>(a, b, c, [](auto x, auto y) { return x > y; });
}
uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }

namespace {

typedef PairMoments<double> Device;
typedef MomentsFold<double> Host;

/* What round_quickly makes of the sums as they stand alone in registers, and in a state. */
template <bool ROOT> bool of_batch(const double *x, int64_t n, double ddof, double *result) {
  const gpr_spread how = {ddof, nullptr, false};
  Few<Device> few;
  for (int i = 0; i < n; i++) few.see(x[i]);
  if (!few.open()) return false;
  for (int i = 0; i < n; i++) few.add(x[i], i);
  const auto value = few.moments();
  *result = value.spread<double, ROOT>(n, &how);
  return value.certified;
}
bool of_state(const double *x, int64_t n, double ddof, bool root, double *result) {
  static Device::State s;
  Device::open(s);
  for (int i = 0; i < n; i++) Device::add(s, x[i]);
  return exact_result(s, n, plain_freedom(n, ddof), root, result);
}
template <bool ROOT> double on_host(const double *x, int64_t n, double ddof) {
  static Host::State s;
  const gpr_spread how = {ddof, nullptr, false};
  Host::open(s);
  for (int i = 0; i < n; i++) Host::add(s, x[i], i);
  return MomentsValue<double>{s}.spread<double, ROOT>(n, &how);
}

enum { BATCH = 16 };

/* What the state holds, all of it in the long integers, whichever way it came there. */
template <class W, int P> bool are_same(Levels<W, P> &a, Levels<W, P> &b) {
  settle(a);
  settle(b);
  Long<W> none = {}, &x = a.used ? a.rest : none, &y = b.used ? b.rest : none;
  return a.special == b.special && !memcmp(&x, &y, sizeof x);
}
template <class T> int64_t unlike(const T *x, int64_t rows, int64_t batches) {
  typedef PairMoments<T> F;
  static typename F::State quick, slow;
  int64_t count = 0;
  for (int64_t r = 0; r < rows; r++) {
    Cells<F, 1> cells;
    cells.keep(&quick);
    F::open(slow);
    for (int64_t i = 0; i < batches; i++, x += BATCH) {
      T each[BATCH];
      memcpy(each, x, sizeof each);
      cells.template add<BATCH>(each, 0, 0);
      for (const T &value : each) F::add(slow, value);
    }
    cells.done(&quick);
    bool same = are_same(quick.squares, slow.squares);
    for (int p = 0; p < F::parts; p++) same &= are_same(quick.sum[p], slow.sum[p]);
    count += !same;
  }
  return count;
}

/* As brief.cuh's BriefShare. */
template <class T> struct OneRow {
  struct {
    int64_t count;
  } a;
  struct {
    int64_t stride = sizeof(T);
    T load(const char *from) const { return *(const T *)from; }
  } run;
  const char *data;
  int down;
};
/* What so many lanes that share an output make of it by Lanes; whether they tell it. */
template <class Lanes, bool ROOT, class T, class R>
bool by_lanes(const T *x, int n, int down, double ddof, R *result) {
  const OneRow<T> share = {{n}, {}, (const char *)x, down};
  enum { U = Lanes::loads, FEW = 4 };
  const Divisor usual(n, ddof);
  const gpr_spread how = {ddof, nullptr, false};
  std::vector<Lanes> lanes;
  bool lost = false;
  for (int y = 0; y < down; y++) {
    lanes.emplace_back(usual, 0, &lost);
    lanes[y].begin(share);
    int r = y;
    const auto add = [&](auto &v, int many) {
      uint32_t valid = 0;
      for (int u = 0; u < many; u++) {
        const bool is_there = r + u * down < n;
        v[u] = is_there ? x[r + u * down] : T();
        valid |= (uint32_t)is_there << u;
      }
      lanes[y].add(v, valid, r, down);
      r += many * down;
    };
    T all[U], few[FEW];
    while (r + FEW * down < n) add(all, U);
    if (r < n) add(few, FEW);
  }
  for (int mask = down / 2; mask; mask /= 2) {
    const std::vector<Lanes> before = lanes;
    for (int y = 0; y < down; y++) lanes[y].all.merge(before[y ^ mask].all);
  }
  const int depth = U / (int)Lanes::CHAINS + 2 + lanes[0].rounds + 1 + (int)Lanes::MERGES;
  const DifferencesValue<decltype(lanes[0].all)> value = {lanes[0].all, &usual, (double)depth,
                                                          false};
  *result = value.template spread<R, ROOT>(n, &how);
  return value.certified;
}
/* What one look or two make of a row, and which of them tell it. */
template <class R> struct Looks {
  R result[2];
  bool told[2];
};
/* Of so many rows those that no look has told; -1 where one is told wrong. */
template <bool ROOT, class T, class Look>
int64_t untold_by(const T *x, int64_t rows, int n, double ddof, Look look) {
  typedef typename RealOf<T>::type R;
  static typename MomentsFold<T>::State s;
  const gpr_spread how = {ddof, nullptr, false};
  int64_t count = 0;
  for (int64_t r = 0; r < rows; r++, x += n) {
    MomentsFold<T>::open(s);
    for (int i = 0; i < n; i++) MomentsFold<T>::add(s, x[i], i);
    const R want = MomentsValue<T>{s}.template spread<R, ROOT>(n, &how);
    Looks<R> found = {};
    look(x, found);
    for (int i = 0; i < 2; i++)
      if (found.told[i] && memcmp(found.result + i, &want, sizeof want)) return -1;
    count += !found.told[0] && !found.told[1];
  }
  return count;
}
template <bool ROOT, class T>
int64_t untold_by_lanes(const T *x, int64_t rows, int n, int down, double ddof) {
  typedef PairMoments<T> F;
  return untold_by<ROOT>(x, rows, n, ddof, [=](const T *row, auto &found) {
    found.told[0] = by_lanes<BriefLanes<F>, ROOT>(row, n, down, ddof, found.result);
    if constexpr (HasTies<F>::value)
      found.told[1] = by_lanes<TiedLanes<F>, ROOT>(row, n, down, ddof, found.result + 1);
  });
}
/* A column, as X of column_differences.cuh has it. */
template <class X, bool ROOT, class T, class R>
bool by_column(const T *x, int n, double ddof, R *result) {
  const gpr_spread how = {ddof, nullptr, false};
  const Divisor by(n, ddof);
  X few;
  typename X::Value value;
  few.begin(x[0]);
  for (int i = 0; i < n; i++) few.add(x[i], i);
  few.result(value, by);
  *result = value.template spread<R, ROOT>(n, &how);
  return value.certified;
}
template <bool ROOT, class T>
int64_t untold_by_columns(const T *x, int64_t rows, int n, double ddof) {
  typedef OfColumns<PairMoments<T>> Of;
  return untold_by<ROOT>(x, rows, n, ddof, [=](const T *row, auto &found) {
    if (n <= 2)
      found.told[0] = by_column<typename Of::two, ROOT>(row, n, ddof, found.result);
    else
      found.told[1] = by_column<typename Of::few, ROOT>(row, n, ddof, found.result + 1);
  });
}

}  // namespace

#define GPR_UNTOLD(NAME, BY, T)                                                       \
  extern "C" __attribute__((visibility("default"))) int64_t NAME(                     \
      const T *x, int64_t rows, int64_t n, double ddof, int root) {                   \
    return root ? BY<true>(x, rows, (int)n, ddof) : BY<false>(x, rows, (int)n, ddof); \
  }
GPR_UNTOLD(columns_float16, untold_by_columns, gpr::float16)
GPR_UNTOLD(columns_float32, untold_by_columns, float)
GPR_UNTOLD(columns_float64, untold_by_columns, double)
GPR_UNTOLD(columns_complex64, untold_by_columns, gpr::complex<float>)
GPR_UNTOLD(columns_complex128, untold_by_columns, gpr::complex<double>)

#define GPR_LANES(NAME, T)                                                                         \
  extern "C" __attribute__((visibility("default")))                                                \
  int64_t lanes_##NAME(const T *x, int64_t rows, int64_t n, int64_t down, double ddof, int root) { \
    return root ? untold_by_lanes<true>(x, rows, (int)n, (int)down, ddof)                          \
                : untold_by_lanes<false>(x, rows, (int)n, (int)down, ddof);                        \
  }
GPR_LANES(float16, gpr::float16)
GPR_LANES(float32, float)
GPR_LANES(float64, double)
GPR_LANES(complex64, gpr::complex<float>)
GPR_LANES(complex128, gpr::complex<double>)

/* Of so many rows of finite numbers those of which batches add up to anything else than one number
 * after the other. */
#define GPR_UNLIKE(NAME, T)                                          \
  extern "C" __attribute__((visibility("default")))                  \
  int64_t unlike_##NAME(const T *x, int64_t rows, int64_t batches) { \
    return unlike(x, rows, batches);                                 \
  }
GPR_UNLIKE(bfloat16, gpr::bfloat16)
GPR_UNLIKE(float32, float)
GPR_UNLIKE(float64, double)
GPR_UNLIKE(complex64, gpr::complex<float>)
GPR_UNLIKE(complex128, gpr::complex<double>)

/* Means of rows of n elements by the first look, or by the second, and which of them are certain.
 */
extern "C" __attribute__((visibility("default"))) void means(const double *x, int64_t rows,
                                                             int64_t n, double *out, bool *told) {
  const auto mean = [&](auto few, int64_t r) {
    for (int64_t i = 0; i < n; i++) few.add(x[r * n + i], i);
    return told[r] = round_few(few.part[0].terms(), Over(n), out + r) && few.fine();
  };
  for (int64_t r = 0; r < rows; r++)
    if (n == 2 ? !mean(Two<PairSum<double>>(), r) : !mean(Few<PairSum<double>>(), r))
      mean(FewSums<double, AgainReals>(), r);
}

/* Of n integers by their sum and that of their squares, of so many words each. */
extern "C" __attribute__((visibility("default"))) double of_integers(const uint64_t *sum,
                                                                     const uint64_t *squares,
                                                                     int64_t n, double ddof,
                                                                     int root) {
  const IntegerViews views = {{sum[0], sum[1]}, {squares[0], squares[1], squares[2]}};
  const gpr_spread how = {ddof, nullptr, false};
  const IntegerViewsValue value = {views, nullptr};
  return root ? value.spread<double, true>(n, &how) : value.spread<double, false>(n, &how);
}

/* Of so many rows those that were not told, by either; -1 where one was told wrong. */
extern "C" __attribute__((visibility("default"))) int64_t untold(const double *x, int64_t rows,
                                                                 int64_t n, double ddof, int root) {
  int64_t count = 0;
  for (int64_t r = 0; r < rows; r++, x += n) {
    const double want = root ? on_host<true>(x, n, ddof) : on_host<false>(x, n, ddof);
    double batch, state;
    const bool told =
        root ? of_batch<true>(x, n, ddof, &batch) : of_batch<false>(x, n, ddof, &batch);
    const bool told_too = of_state(x, n, ddof, root, &state);
    if (told && memcmp(&batch, &want, sizeof want)) return -1;
    if (told_too && memcmp(&state, &want, sizeof want)) return -1;
    count += !told || !told_too;
  }
  return count;
}
