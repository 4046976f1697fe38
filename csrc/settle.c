#include "settle.h"

#include "checks.h"
#include "cuda/gpu.h"
#include "deal.h"
#include "errors.h"
#include "speeds.h"

void gpr_flat_plan(gpr_plan *plan, const gpr_resolved *what, const gpr_view *view) {
  gpr_plan_make(plan, view, what->row, what->cast, (gpr_limits){gpr_threads()});
}

gpr_status gpr_settle_kernel(const gpr_row *row, int64_t count, int lies,
                             const gpr_options *options, gpr_places *places) {
  gpr_options named = *options;
  gpr_status status = gpr_check_kernel(row, count, options);
  if (options->device == GPR_DEVICE_AUTO && lies < 0) named.device = 0;
  if (!status) status = gpr_places_of(&named, lies, places);
  if (status || !gpr_are_several(*places)) return status;
  return gpr_fail(GPR_BAD_VALUE, "a kernel that is named works on one device, not on several");
}

/* One output of all elements: axes that are kept have one index. */
static int is_flat(const gpr_resolved *what, const gpr_view *view, const gpr_options *options) {
  for (int d = 0; d < view->ndim; d++)
    if (view->shape[d] != 1 && !(options->axes >> d & 1)) return 0;
  return !options->where && !options->starts && !what->skips;
}
/* Whether a result that is to be on the device is there sooner by the host, which the kernels for
 * whole arrays answer: on an H200 exact sums of so many halves take two thirds of the time. */
static int pays_by_host(const gpr_plan *flat) {
  return flat->row->law == GPR_EXACT && flat->bytes == 2 && flat->count >= 1 << 27 &&
         !gpr_gpu_is_capturing(flat->device, flat->stream);
}

/* Whether words of a device's states are those of the row: moments have states of their own there.
 */
static int has_partials_there(const gpr_resolved *what, const gpr_plan *flat, int is_whole) {
  return is_whole && !(gpr_ops[what->op].flags & GPR_SPREAD) && gpr_gpu_folds_whole(flat);
}

/* What nobody said where to reduce: large arrays that a device would begin and end soon with. */
static gpr_places fastest(const gpr_resolved *what, const gpr_view *view,
                          const gpr_options *options, const gpr_plan *flat, int is_whole) {
  const gpr_places cpu = {0, 1};
  const double bytes = gpr_bytes(view);
  if (bytes < GPR_LARGE_BYTES || options->partials || !gpr_is_dense(view)) return cpu;
  if (is_whole ? !gpr_gpu_folds_whole(flat) : !gpr_deal_slabs(what, view, options)) return cpu;
  return gpr_fastest(view->data, bytes);
}

/* What a device takes at a time is not shared out. */
static void take_alone(const gpr_plan *flat, gpr_places *places) {
  if (flat->count > gpr_gpu_piece(flat)) return;
  if (places->cpu)
    places->devices = 0;
  else
    places->devices &= ~places->devices + 1; /* the first one */
}

static gpr_status settle(const gpr_resolved *what, const gpr_view *view, const gpr_options *options,
                         gpr_places *places, gpr_plan *flat, int *is_whole) {
  const int variant = gpr_variant_of(options), named = options->kernel != GPR_NO_KERNEL;
  *is_whole = is_flat(what, view, options) && !variant;
  if (!*is_whole && named && !variant)
    return gpr_fail(GPR_BAD_VALUE, "%s: kernel %s reduces whole arrays alone",
                    gpr_ops[what->op].name, gpr_kernels[options->kernel].name);
  if (*is_whole) gpr_flat_plan(flat, what, view);
  if (named)
    return gpr_settle_kernel(what->row, variant ? 0 : flat->count, gpr_lies(view), options, places);
  const gpr_status status = gpr_places_of(options, gpr_lies(view), places);
  if (!status && options->device == GPR_DEVICE_AUTO && gpr_lies(view) < 0)
    *places = fastest(what, view, options, flat, *is_whole);
  if (!status && *is_whole && gpr_are_several(*places)) take_alone(flat, places);
  if (status || !places->devices) return status;
  if (options->partials && !has_partials_there(what, flat, *is_whole))
    return gpr_fail(GPR_BAD_VALUE,
                    "%s: such partials are taken on the CPU; give a copy in the host's memory, and "
                    "device=\"cpu\"",
                    gpr_ops[what->op].name);
  if (*is_whole)
    *is_whole = gpr_gpu_folds_whole(flat) && (!gpr_is_there(options) || pays_by_host(flat));
  return GPR_OK;
}

/* What works without a device, which the array is not on. */
static const char *way_out(const gpr_options *options) {
  if (options->kernel == GPR_NO_KERNEL) return "use device=\"cpu\"";
  return options->device == GPR_DEVICE_AUTO ? "leave out kernel=" : "leave out kernel= and device=";
}

gpr_status gpr_settle(const gpr_resolved *what, const gpr_view *view, const gpr_options *options,
                      gpr_places *places, gpr_plan *flat, int *is_whole) {
  const gpr_status status = settle(what, view, options, places, flat, is_whole);
  if (status != GPR_DEVICE_ERROR || gpr_lies(view) >= 0 || gpr_device_count()) return status;
  return gpr_fail(status, "%s, or %s", gpr_error(), way_out(options));
}
