/* The host half of the table: expands operators × dtypes into rows. Compiled once for each
 * instruction set. */
#include "brief.h"
#include "column_sums.h"
#include "column_trees.h"
#include "extreme_runs.h"
#include "integer_moments.h"
#include "load.h"
#include "moments.h"
#include "sums.h"
#include "../core/alike.h"

GPR_OPEN

/* --- rows --------------------------------------------------------------------------------------
 */

/* Operators whose kernels are another's, though they are settled sooner. */
template <class O> struct KernelOf { typedef typename FoldsAs<O>::type type; };
template <class T> struct KernelOf<Any<T>> { typedef CountNonzero<T> type; };

template <class O, class F = typename O::Fold> struct Fold {
  typedef typename F::Element T;
  typedef typename KernelOf<O>::type Kernel;
  static constexpr bool is_truth =
      Same<F, Counting<T, 0>>::value || Same<F, Counting<T, 1>>::value || Same<T, boolean>::value;
  /* Until the first look whether the result is settled; the next come after twice as much each, so
   * that they cost nothing and not more than twice what was needed is read. */
  static constexpr int64_t STRETCH = (is_truth ? 512 : 8192) / sizeof(T);

  static int fold(void *state, const void *data, int64_t n, int64_t index) {
    auto &s = *(typename F::State *)state;
    const T *x = (const T *)data;
    if constexpr (F::law != GPR_FREE) {
      Folder<Kernel>::fold(s, x, n, index);
      if constexpr (F::law == GPR_EXACT) return Folder<Kernel>::is_settled(s);
      return 0;
    }
    for (int64_t i = 0, m = STRETCH; i < n; i += m, m = i) {
      Folder<Kernel>::fold(s, x + i, least(m, n - i), index + i);
      if (O::settled(s)) return 1;
    }
    return 0;
  }
};

template <class O, class F> static int fold_skipping(void *s, const void *x, int64_t n, int64_t i) {
  Folder<O>::fold(*(typename F::State *)s, (const typename F::Element *)x, n, i, true);
  return 0;
}
template <class F> static int is_empty(const void *state) {
  return FoldSkips<F>::empty(*(const typename F::State *)state);
}
template <class O> static void identity(void *element) {
  const auto e = Identity<O>::make();
  memcpy(element, &e, sizeof e);
}
/* What an operator has beside its fold. That of a variance finishes by itself, and so is of these
 * operators alone. */
template <class O, class F, class T> constexpr const gpr_quick *quick_of_operator() {
  if constexpr (Same<F, ExactFold<T>>::value)
    return quick_of<QuickRow<QuickSumOf<O, T>, T, TwofoldSum>>();
  else if constexpr (Same<F, MomentsFold<T>>::value &&
                     (Same<O, Var<T>>::value || Same<O, Std<T>>::value))
    return quick_of<QuickRow<QuickSpread<O, T>, T, TwofoldMoments>>();
  else
    return nullptr;
}
template <class O, class F> constexpr void fill_row(gpr_row &row, int bytes) {
  typedef typename F::Element T;
  typedef typename FoldsAs<O>::type Like;
  typedef typename KernelOf<O>::type Kernel;
  row.law = F::law;
  row.ordered = F::ordered;
  row.scalars = (int)sizeof(T) / bytes;
  row.state_bytes = sizeof(typename F::State);
  row.open = State<F>::open;
  row.fold = Fold<Like>::fold;
  row.merge = State<F>::merge;
  row.finish = finish<O>;
  row.results = Results<O>::value;
  row.side = Many<Kernel>::side;
  row.soon = Fold<O>::is_truth && !__is_base_of(Unsettled, O);
  row.apart = Apart<Kernel>::most;
  row.many = Many<O>::run;
  row.fold_many = Many<Kernel>::fold;
  row.identity = identity<O>;
  row.quick = quick_of_operator<O, F, T>();
  row.brief = BriefKind<F>::row;
  static_assert(!Same<F, MomentsFold<T>>::value || sizeof(typename F::State) <= GPR_STATE_MOST, "");
  if constexpr (FoldSkips<F>::value) {
    row.empty = is_empty<F>;
    row.fold_skipping = fold_skipping<Like, F>;
  }
  if constexpr (Same<F, ExactFold<T>>::value && sizeof(typename RealOf<T>::type) >= 4)
    row.repeat = Multiples<T>::repeat; /* those of halves overflow soon */
}

struct Rows {
  gpr_row row[GPR_OP_COUNT * GPR_DTYPE_COUNT];
};
template <template <class> class Op, class T>
constexpr gpr_row row_of(int op, int dtype, int bytes) {
  typedef typename AsKernels<Op, T>::Operator O;
  gpr_row row{};
  row.op = op;
  row.dtype = dtype;
  row.result = ResultId<Op<T>>::value;
  row.results = 1;
  if constexpr (!Same<typename O::Fold, void>::value) fill_row<O, typename O::Fold>(row, bytes);
  return row;
}
template <template <class> class Op> constexpr void fill(Rows &rows, int op) {
  gpr_row *row = rows.row + op * GPR_DTYPE_COUNT;
#define GPR_X(id, name, kind, bytes, type) row[GPR_##id] = row_of<Op, type>(op, GPR_##id, bytes);
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
constexpr Rows make_rows() {
  Rows rows{};
#define GPR_X(id, name, ufunc, alias, flags, op, sentence) fill<op>(rows, GPR_OP_##id);
  GPR_OPS(GPR_X)
#undef GPR_X
  return rows;
}
static constexpr Rows rows = make_rows();

/* --- conversions -------------------------------------------------------------------------------
 */

/* What has all of an element that matters to what it becomes, and converts as it does. */
template <class From, class To> struct Carrier {
  static constexpr Kind kind = Traits<From>::kind, to = Traits<To>::kind;
  static constexpr bool half = kind == KIND_FLOAT && sizeof(From) < sizeof(float),
                        pairs = kind == KIND_COMPLEX && (to == KIND_COMPLEX || to == KIND_BOOL);
  static constexpr bool small = sizeof(From) < 4 || Same<From, int32_t>::value;
  typedef typename Either<kind == KIND_UINT && sizeof(From) == 8, uint64_t, int64_t>::type Long;
  typedef typename Either<small, int32_t, Long>::type Whole;
  typedef typename Either<pairs, complex<double>, double>::type Wide;
  typedef typename Either<half, float, Wide>::type Inexact;
  typedef typename Either<category<From>() == INEXACT, Inexact, Whole>::type type;
};
/* In two steps, of which the first ends in a carrier. */
static GPR_APART void cast_through(gpr_cast first, gpr_cast second, const void *from,
                                   int64_t from_bytes, void *to, int64_t to_bytes, int64_t n) {
  enum { BLOCK = 512 };
  complex<double> between[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t m = least((int64_t)BLOCK, n - i);
    first((const char *)from + i * from_bytes, between, m);
    second(between, (char *)to + i * to_bytes, m);
  }
}

template <class From, class To> struct Cast {
  enum { possible = Traits<From>::kind != KIND_TIME && Traits<To>::kind != KIND_TIME };
  static GPR_APART void cast(const void *from, void *to, int64_t n) {
    typedef Carrier<From, To> Carried;
    typedef typename Carried::type Between;
    const From *x = (const From *)from;
    To *y = (To *)to;
    if constexpr (Carried::half && Same<To, float>::value) {
      widen_all(x, y, n);
    } else if constexpr (Same<From, Between>::value || Same<To, Between>::value) {
      GPR_UNROLL(4)
      for (int64_t i = 0; i < n; i++) y[i] = convert<To>(x[i]);
    } else {
      cast_through(Cast<From, Between>::make(), Cast<Between, To>::make(), x, sizeof(From), y,
                   sizeof(To), n);
    }
  }
  static constexpr gpr_cast make() {
    if constexpr (possible)
      return cast;
    else
      return nullptr;
  }
};

struct Casts {
  gpr_cast cast[GPR_DTYPE_COUNT * GPR_DTYPE_COUNT];
};
template <class From> constexpr void fill_casts(gpr_cast *cast) {
#define GPR_X(id, name, kind, bytes, type) cast[GPR_##id] = Cast<From, type>::make();
  GPR_DTYPES(GPR_X)
#undef GPR_X
}
constexpr Casts make_casts() {
  Casts casts{};
#define GPR_X(id, name, kind, bytes, type) \
  fill_casts<type>(casts.cast + GPR_##id * GPR_DTYPE_COUNT);
  GPR_DTYPES(GPR_X)
#undef GPR_X
  return casts;
}
static constexpr Casts casts = make_casts();

#define GPR_X(id, name, kind, bytes, type) LeaveOut<type>::some ? LeaveOut<type>::skip : nullptr,
static constexpr gpr_skip skips[] = {GPR_DTYPES(GPR_X)};
#undef GPR_X
#define GPR_X(id, name, kind, bytes, type) \
  LeaveOut<type>::some ? LeaveOut<type>::leave_out : nullptr,
static constexpr gpr_leave_out leave_outs[] = {GPR_DTYPES(GPR_X)};
#undef GPR_X

GPR_CLOSE

#define GPR_GLUE(a, b) a##b
#define GPR_TABLE(isa) GPR_GLUE(gpr_cpu_table_, isa)
#define GPR_TEXT(x) #x
#define GPR_NAME(isa) GPR_TEXT(isa)
extern "C" const gpr_cpu_table GPR_TABLE(GPR_ISA) = {
    GPR_NAME(GPR_ISA), gpr::rows.row, gpr::casts.cast, gpr::skips, gpr::leave_outs,
    gpr::mask,         gpr::copy,     gpr::gather,     gpr::find,  gpr::swap};
