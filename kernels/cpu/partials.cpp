/* The table of partials: operators × dtypes, compiled once for all instruction sets. */
#include "../core/words.h"

GPR_OPEN

typedef int64_t (*Load)(const int64_t *, void *);

template <class F, bool = Payload<F>::words != 0> struct LoadOf {
  static constexpr Load value = nullptr;
};
template <class F> struct LoadOf<F, true> {
  static constexpr Load value = Partial<Payload<F>, F>::load;
};

template <class O, class F = typename O::Fold> struct BeginsOf {
  static constexpr Load first = LoadOf<typename Begins<F>::Sum>::value;
  static constexpr Load second = LoadOf<typename Begins<F>::Least>::value;
};
/* Of both extremes: they are each one's too. */
template <class O, class T> struct BeginsOf<O, Extremes<T>> {
  typedef ExtremePayload<Min<T>, T> Low;
  typedef ExtremePayload<Max<T>, T> High;
  static constexpr bool both =
      Same<typename PayloadOf<O>::type, ExtremePayload<MinMax<T>, T>>::value;
  static constexpr Load first = both ? Partial<Low, Extremes<T>>::load : nullptr;
  static constexpr Load second = both ? Partial<High, Extremes<T>>::load : nullptr;
};

template <class O, class P = typename PayloadOf<O>::type, bool = P::words != 0> struct PartialRow {
  static constexpr gpr_partial make() { return {}; }
};
template <class O, class P> struct PartialRow<O, P, true> {
  typedef typename O::Fold F;
  static constexpr gpr_partial make() {
    return {GPR_WORDS_OF_HEADER + P::words,
            P::additive,
            Partial<P, F>::store,
            Partial<P, F>::load,
            {BeginsOf<O>::first, BeginsOf<O>::second}};
  }
};

struct Table {
  gpr_partial row[GPR_OP_COUNT * GPR_DTYPE_COUNT];
};
template <template <class> class Op> constexpr void fill(gpr_partial *row) {
#define GPR_X(id, name, kind, bytes, type) row[GPR_##id] = PartialRow<Op<type>>::make();
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
constexpr Table make_table() {
  Table table{};
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) \
  fill<op>(table.row + GPR_OP_##id * GPR_DTYPE_COUNT);
  GPR_OPS(GPR_X)
#undef GPR_X
  return table;
}
static constexpr Table table = make_table();

GPR_CLOSE

extern "C" const gpr_partial *const gpr_partial_rows = gpr::table.row;
