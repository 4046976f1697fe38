/* Extremes of contiguous elements that leave out NaN. */
#ifndef GPR_ROW_BESTS_H
#define GPR_ROW_BESTS_H

#include "complex_bests.h"

GPR_OPEN

/* Contiguous ones. */
template <class O, class F>
GPR_FN void fold_abreast(typename F::State &s, const typename F::Element *x, int64_t n,
                         int64_t index, bool skip) {
  Ribbon<O, F>::fold(&s, x, 1, n, index, skip);
}
/* What leaves out NaN; of halves, which are compared by their bits, mostly there is none. */
template <class O, class F> struct Skipping {
  static void fold(typename F::State &s, const typename F::Element *x, int64_t n, int64_t index) {
    if constexpr (!is_half<typename F::Element>()) {
      Folder<O>::template fold<true>(s, x, n, index);
    } else {
      typename F::State all;
      F::open(all);
      Folder<O>::fold(all, x, n, index);
      if (is_spoiled(all))
        fold_abreast<O, F>(s, x, n, index, true);
      else
        F::merge(s, all);
    }
  }
  template <class S> static auto is_spoiled(const S &s) -> decltype(s.spoiled) { return s.spoiled; }
  template <class S> static auto is_spoiled(const S &s) -> decltype(s.low, bool()) {
    return F::poisoned(s);
  }
};

GPR_CLOSE
#endif
