/* Operators of our own along the one tree, once for each output (tree_blocks.cuh): the elements of
 * one array, masked or not. */
#pragma once

#include "flat_tree.cuh"
#include "load.cuh"
#include "outputs.cuh"
#include "tree_blocks.cuh"
#include "tree_few.cuh"
#include "tree_beside.cuh"
#include "tree_warps.cuh"

GPR_OPEN

enum { TREE_THREADS = 64, TREE_BLOCKS = 8, TREE_WARPS = 20, TREE_FEW_BLOCKS = 8 };
/* Of rows of more than 4 KiB a block has room for so many, or warps fold them; of rows that lie in
 * batches, with gaps between those, a batch has so many bytes. Of 27 MB of rows of 100 doubles in
 * batches of 40 products took 22 µs on an H200 by threads and 12 so, in batches of 10 22 and 23. */
enum { TREE_STAGED_THREADS = 256, TREE_STAGED_BLOCKS = 4, TREE_STAGED_LEAST = 2 };
enum { TREE_STAGED_BATCH = 8 << 10 };
/* What is gathered needs more registers: of (100, 117, 300) doubles turned round products took 29
 * µs on an H200 by 256 threads, and take 22. */
enum { TREE_GATHERED_THREADS = 128 };
/* Bytes of a row of columns that blocks copy, and units of each that are the least. Of 16 million
 * rows of 2 doubles products took 125 µs on an H200 by threads and 91 so, of 10 million of 5 floats
 * 98 and 102, of 3 million of 16 67 and 109. */
enum { TREE_NARROW = 16, TREE_NARROW_UNITS = 16 };
/* Outputs of so many groups of flat_tree.cuh, and blocks a multiprocessor: one of 187 MB of doubles
 * took 71 µs on an H200 by warps, and takes 52, 5000 of 20 KB 58 and 34. */
enum { TREE_GROUPS_LEAST = 4, TREE_CHUNK_BLOCKS = 3 };
enum { TREE_WARPS_LEAST = 512, TREE_ACROSS = 32, TREE_LINE = 64 };
/* What a warp could read while a part begins and ends, and a thread of a block, in bytes; as users'
 * operators have it. */
enum { TREE_PART_BESIDE = 12 << 10, TREE_THREAD_BESIDE = 192 };
/* Leaves of a thread's run, as registers have room for; the same where there are few. */
GPR_CONSTEXPR int tree_run(int bytes) { return bytes <= 4 ? 32 : 128 / bytes; }
GPR_CONSTEXPR int tree_leaves(int bytes) { return bytes < 16 ? 8 : 4; }
/* The same of 64 bytes that were staged. */
GPR_CONSTEXPR int tree_unit(int bytes) { return bytes < 2 ? 32 : 64 / bytes; }
/* Leaves of a warp's packet for each lane, and its rows: small numbers take a register each. Of
 * 16384 rows of as many float32 on an H200, 4 rows and 3 blocks took 314 µs, 8 and 2 take 294. */
GPR_CONSTEXPR int tree_packet(int bytes) { return bytes < 2 ? 8 : bytes < 16 ? 16 / bytes : 1; }
GPR_CONSTEXPR int tree_rows(int bytes) { return bytes < 4 ? 4 : 8; }

/* The elements of one output: array 0, and 1 is the mask if there is one. */
template <class F, class LOAD = typename F::Element>
struct TreeElements : LeafPlaces<TreeElements<F, LOAD>, gpr_axes_args, 2> {
  typedef LeafPlaces<TreeElements<F, LOAD>, gpr_axes_args, 2> Base;
  typedef typename F::Element T;
  typedef typename Store<sizeof(T)>::type Bits;
  enum { OUTS = 1 };
  static constexpr bool is_native = Same<T, LOAD>::value;
  using Base::a;
  using Base::base;
  using Base::Base;
  using Base::step;

  GPR_DEVICE int64_t data(int k) const { return (int64_t)(k ? a.where : a.data); }
  GPR_DEVICE int64_t length(int d) const { return a.dim[d].size; }
  GPR_DEVICE int64_t stride(int k, int d) const {
    return k ? a.dim[d].where_stride : a.dim[d].stride;
  }
  GPR_DEVICE int64_t out_stride(int, int d) const { return a.dim[d].place; }
  GPR_DEVICE int64_t address(int, int, int64_t at) const { return at; }
  GPR_DEVICE bool is_direct() const { return is_native && !a.where; }
  GPR_DEVICE bool is_packed(int) const { return step[0] == (int64_t)sizeof(T); }
  GPR_DEVICE bool all_packed() const { return is_direct() && is_packed(0); }

  static GPR_DEVICE Bits bits_of(T x) {
    Bits bits;
    memcpy(&bits, &x, sizeof x);
    return bits;
  }
  GPR_DEVICE Bits bits(const int64_t *at) const {
    return bits_of(Load<T, LOAD>::get((const char *)at[0], a));
  }
  /* What does not count is the identity. */
  static GPR_DEVICE Bits nothing() { return bits_of(narrow(F::Combine::identity(), T())); }
  GPR_DEVICE bool counts(const int64_t *at) const { return !a.where || *(const char *)at[1]; }

  static GPR_DEVICE void *nodes(const gpr_axes_args &a) { return (char *)a.scratch + AXES_POOL; }
  static GPR_DEVICE void finish_place(const gpr_axes_args &a, const int64_t (&at)[OUTS],
                                      const typename F::Wide &root) {
    const TreeValue<F> value[1] = {{root}};
    finish_values<F>(a, at[0], value, a.count, 1);
  }
  static GPR_DEVICE void finish(const gpr_axes_args &a, int64_t o, const typename F::Wide &root) {
    const int64_t first = a.starts ? quotient_of(o, a.per) * a.per : 0;
    const int64_t at[OUTS] = {first + kept_place(a, o - first).out};
    finish_place(a, at, root);
  }
};

template <class F> struct TreeOperator {
  typedef typename F::Element T;
  typedef typename F::Wide State;
  typedef typename Store<sizeof(T)>::type Bits;
  enum { LEAF = (int)sizeof(T), RUN = tree_run(LEAF), LEAVES = tree_leaves(LEAF) };
  enum { PACKET = tree_packet(LEAF), ROWS = tree_rows(LEAF), UNIT = tree_unit(LEAF) };
  enum { ARRAYS = 2, THREADS = TREE_THREADS, BLOCKS = TREE_BLOCKS, WARPS = TREE_WARPS, DEPTH = 60 };
  enum { STAGED_THREADS = TREE_STAGED_THREADS, STAGED_BLOCKS = TREE_STAGED_BLOCKS };
  enum { IS_AHEAD = LEAF >= 4, HAS_STEPS = 1 }; /* as numbers can be copied */

  enum { IS_QUICK = 0 };
  enum { BEYOND = LEAF < 4 ? 16 : 0 }; /* leaves that words reach over which begin within one */
  static GPR_DEVICE bool is_even(const int64_t (&at)[ARRAYS]) { return at[0] % 16 == 0; }
  static GPR_DEVICE void go(int64_t (&at)[ARRAYS], int leaves) { at[0] += leaves * LEAF; }
  static GPR_DEVICE State identity() { return F::Combine::identity(); }
  static GPR_DEVICE State combine(const State &a, const State &b) {
    return F::Combine::combine(a, b);
  }
  static GPR_DEVICE void combine_apart(const State *a, const State *b, State *to) {
    *to = F::Combine::combine(*a, *b);
  }
  template <int N, class X>
  static GPR_DEVICE void bring(char *places, const X &x, const int64_t *at) {
    bring_leaves<Bits, 1, N>(places, x, 0, at[0], x.step[0]);
  }
  template <int N> struct Leaves : Given<Bits, 1, N> {
    typedef Given<Bits, 1, N> Base;
    Bits bits[N];
    GPR_DEVICE void load_packed(const int64_t (&at)[ARRAYS], int from, bool is_even) {
      Base::load_packed(at[0] + from * LEAF, is_even);
    }
    template <class X>
    GPR_DEVICE void load_lines(const X &x, const int64_t (&at)[ARRAYS],
                               const int64_t (&next)[ARRAYS], int from, int left, int there) {
      Base::load_lines(x, 0, at[0], next[0], x.step[0], from, left, there);
    }
    template <class X> GPR_DEVICE void load_some(const X &x, const int64_t *at, int there) {
      Base::load_some(x, 0, at[0], x.step[0], x.is_packed(0), there);
    }
    template <class X>
    GPR_DEVICE void load_leaf(const X &x, int j, const int64_t *place, const int64_t *at,
                              bool is_there) {
      Base::load_leaf(x, 0, j, place[0] + at[0], is_there);
    }
    template <class X> GPR_DEVICE void load_one(const X &x, int j, const int64_t *at) {
      const Bits loaded = x.bits(at);
      bits[j] = x.counts(at) ? loaded : x.nothing();
    }
    /* What was loaded has to be there. */
    GPR_DEVICE void settle() { Base::get(bits); }
    GPR_DEVICE void get_own(const char *places) { get_own_leaves(bits, places); }
    template <class X> GPR_DEVICE State lift(const X &x, int j, int64_t) const {
      T element;
      memcpy(&element, bits + j, sizeof element);
      const State value = wide(element); /* chosen: a branch for each leaf takes longer */
      return (x.a.skip != 0) & is_nan_or_nat(element) ? identity() : value;
    }
  };
};

/* Long outputs of whole packets side by side. */
template <class F>
__global__ void __launch_bounds__(FLAT_THREADS, tree_blocks<typename F::Wide>())
    trees_by_chunks(const __grid_constant__ gpr_axes_args a) {
  typedef typename F::Wide A;
  typedef TreeElements<F> X;
  const auto data = [&](int64_t o) {
    return a.data + offset_of<&gpr_axes_dim::stride>(a.dim, a.kept, o);
  };
  const auto done = [&](int64_t o, const A &root) { X::finish(a, o, root); };
  TreeChunks<F>(a.outputs, a.count).fold((A *)X::nodes(a), (uint32_t *)a.scratch, data, done);
}

/* Of few elements as they are. */
template <class F>
__global__ void __launch_bounds__(TREE_FEW_THREADS, TREE_FEW_BLOCKS)
    trees_of_few(const __grid_constant__ gpr_axes_args a) {
  typedef TreeElements<F> X;
  typedef TreeOperator<F> OP;
  if (a.count <= 2)
    fold_few<OP, 2>(X(a), (uint32_t)a.outputs);
  else if (a.count <= 4)
    fold_few<OP, 4>(X(a), (uint32_t)a.outputs);
  else if (a.count > OP::LEAVES)
    fold_few<OP, OP::LEAVES, true>(X(a), (uint32_t)a.outputs);
  else if constexpr (OP::LEAVES == 8)
    fold_few<OP, 8>(X(a), (uint32_t)a.outputs);
}

/* Parts of outputs whose elements lie otherwise: a.split of a.share leaves are an output's;
 * a.neighbours outputs are columns, if they are, a.where_step bytes from each other, of rows of
 * a.step bytes. */
template <class F> struct GatheredTrees : TreeOperator<F> {
  enum { STAGED_THREADS = TREE_GATHERED_THREADS };
};
template <class F>
__global__ void __launch_bounds__(TREE_GATHERED_THREADS, TREE_STAGED_BLOCKS)
    trees_gathered(const __grid_constant__ gpr_axes_args a) {
  typedef TreeElements<F> X;
  typedef GatheredTrees<F> OP;
  enum { LEAF = OP::LEAF };
  __shared__ StageRoom<OP> room;
  const bool by_columns = a.packets == TREE_BY_COLUMNS, by_panels = a.packets == TREE_BY_PANELS;
  const PanelsCut cut = {by_panels ? a.box : 1, a.count, a.share, a.across};
  const int64_t panels = by_panels ? cut.panels() : 0;
  const int64_t items = by_panels ? panels + (cut.whole < a.split) : a.split;
  for (int64_t b = blockIdx.x; b < quotient_of(a.outputs, a.neighbours) * items; b += gridDim.x) {
    const int64_t of = quotient_of(b, items), item = b - of * items, o = of * a.neighbours;
    const bool is_panel = item < panels;
    const int64_t part = by_panels ? cut.whole : item, first = part * a.share;
    const X x(a, o);
    const Panel<OP, X> panel = {cut, item};
    const int outs = is_panel ? cut.wide : a.neighbours, apart = is_panel ? outs | 1 : outs;
    const int leaves = (int)(is_panel ? a.share : least(a.count - first, a.share));
    const int pitch = is_panel ? panel.pitch(a.share) : leaves;
    Staged<OP> s = {room, outs, leaves, apart, pitch * LEAF, LEAF};
    const PartOfRows<OP, X> rows = {x, first, leaves};
    if (by_columns) s.pitch = (int)a.where_step, s.step = (int)a.step;
    if (is_panel)
      panel.copy(rows, s.stage.bytes);
    else if (by_columns)
      s.bring(x.base[0] + first * a.step);
    else if (a.packets == TREE_BY_LINES)
      rows.copy_lines(s.stage.bytes);
    else
      rows.copy_rows(s.stage.bytes, by_panels ? 1 : a.across);
    s.fold(x);
    GPR_ROLLED(int i = warp_of(); i < outs; i += OP::STAGED_THREADS / GPR_WARP) {
      const int64_t own = is_panel ? panel.part_of(i) : part;
      if (own >= 0) climb_up<OP, X>(a, is_panel ? o : o + i, own, a.split, s.node[i]);
    }
    __syncthreads();
  }
}

GPR_CLOSE
