/* Float64 variances of few elements as a device finishes them, compiled for the host. */
#include "../../kernels/gpu/as_host.h"
#include "../../kernels/gpu/moment_outputs.cuh"

using namespace gpr;
uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }

namespace {

typedef PairMoments<double> Device;
typedef MomentsFold<double> Host;

/* What round_quickly makes of the sums as they stand alone in registers, and in a state. */
template <bool ROOT> bool of_batch(const double *x, int64_t n, double ddof, double *result) {
  bool told = false;
  const gpr_spread how = {ddof, nullptr, false};
  FewMoments<double, 1> value;
  Few<Device> few;
  for (int i = 0; i < n; i++) few.see(x[i]);
  if (!few.open()) return false;
  for (int i = 0; i < n; i++) few.add(x[i], i);
  for (int i = 0; i < 2; i++) value.sum[0].pair[i] = {few.batch[0].sum(i), 0};
  for (int i = 0; i < 3; i++) value.squares.pair[i] = {few.batch[0].square(i), 0};
  value.nan = false;
  value.told = &told;
  *result = value.spread<double, ROOT>(n, &how);
  return told;
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

}  // namespace

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
