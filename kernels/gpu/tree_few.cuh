/* The one tree of many outputs of a few elements each, or of one line of them: a thread folds whole
 * outputs, some of them at a time, whose elements are all on their way at once. Neighbouring
 * threads have neighbouring outputs. */
#pragma once

#include "tree_units.cuh"

GPR_OPEN

/* Places of outputs are reckoned in 32 bits, and an element's from three dimensions. */
enum { TREE_FEW_THREADS = 128, TREE_FEW_DIMS = 3, TREE_FEW_MOST = 4 };
/* Outputs of a thread: so many bytes of its registers are for their elements. */
GPR_CONSTEXPR int tree_few(int bytes) {
  return bytes <= 32 ? TREE_FEW_MOST : bytes <= 64 ? TREE_FEW_MOST / 2 : 1;
}

/* Addresses of an output's first element, and how far its results lie from the first ones. */
template <class X> struct FewPlace { int64_t data[X::ARRAYS], out[X::OUTS]; };

/* What divides takes longer than all else: here it does so once for N outputs. */
template <class X, int N>
GPR_DEVICE void find_places(const X &x, uint32_t (&o)[N], FewPlace<X> (&place)[N]) {
  GPR_EACH(n, N) {
    GPR_EACH(k, X::ARRAYS) place[n].data[k] = x.data(k);
    GPR_EACH(r, X::OUTS) place[n].out[r] = 0;
  }
  GPR_ROLLED(int d = x.kept() - 1; d >= 0; d--) {
    const uint32_t many = (uint32_t)x.length(d), inverse = d ? 0xffffffffu / many : 0;
    GPR_EACH(n, N) {
      uint32_t over = (uint32_t)((uint64_t)o[n] * inverse >> 32); /* or one more */
      uint32_t here = o[n] - over * many;
      if (d && here >= many) over++, here -= many;
      GPR_EACH(k, X::ARRAYS) place[n].data[k] += here * x.stride(k, d);
      GPR_EACH(r, X::OUTS) place[n].out[r] += here * x.out_stride(r, d);
      o[n] = over;
    }
  }
}

/* How far an output's elements lie from its first one. */
template <class X, int N> GPR_DEVICE void find_leaves(const X &x, int64_t (&along)[N][X::ARRAYS]) {
  const int dims = x.reduced(), last = x.kept() + dims - 1;
  const int line = (int)x.length(last), plane = dims > 2 ? line * (int)x.length(last - 1) : N;
  int of_line = 0, of_plane = 0;
  GPR_EACH(k, X::ARRAYS) along[0][k] = 0;
  GPR_UNROLLED(int j = 1; j < N; j++) {
    const bool is_line = dims > 1 && ++of_line == line, is_plane = ++of_plane == plane;
    GPR_EACH(k, X::ARRAYS) {
      along[j][k] = along[j - 1][k] + x.stride(k, last);
      if (is_line) along[j][k] += x.stride(k, last - 1) - line * x.stride(k, last);
      if (is_plane) along[j][k] += x.stride(k, last - 2) - plane / line * x.stride(k, last - 1);
    }
    if (is_line) of_line = 0;
    if (is_plane) of_plane = 0;
  }
}

/* Of more than N / 2 elements, and N at most, that are loaded as they lie; or of one line of them,
 * N at a time: what waits for its right sibling is in memory then, as a thread's Waiting has it, of
 * all its outputs side by side. */
enum { TREE_LINE_LEVELS = 10 };
template <class OP, int N, bool IS_LINE = false, class X>
GPR_DEVICE void fold_few(const X &x, uint32_t outputs) {
  typedef typename OP::State A;
  constexpr int many = tree_few(N * OP::LEAF);
  const uint32_t apart = gridDim.x * TREE_FEW_THREADS;
  const uint32_t first = blockIdx.x * TREE_FEW_THREADS + threadIdx.x;
  const int count = (int)x.count, rounds = IS_LINE ? (count + N - 1) / N : 1;
  FewPlace<X> place[many];
  uint32_t o[many];
  int64_t along[N][X::ARRAYS];
  A waiting[IS_LINE ? TREE_LINE_LEVELS : 1][many], node[many];
  if (first >= outputs) return;
  GPR_EACH(n, many) o[n] = first + n * apart < outputs ? first + n * apart : first;
  find_places(x, o, place);
  if constexpr (!IS_LINE) find_leaves(x, along);
  GPR_ROLLED(int r = 0; r < rounds; r++) {
    typename OP::template Leaves<N> leaves[many];
    const int there = count - r * N;
    GPR_EACH(j, N) {
      if constexpr (IS_LINE)
        GPR_EACH(k, X::ARRAYS) along[j][k] = (r * N + j) * x.step[k];
      GPR_EACH(n, many)
        leaves[n].load_leaf(x, j, place[n].data, along[j],
                            j < there || (!IS_LINE && j <= N / 2 - (N == 2)));
    }
    GPR_EACH(n, many) {
      leaves[n].settle();
      node[n] = fold_leaves<OP, N>(x, leaves[n], r * N, there);
    }
    int level = 0;
    GPR_ROLLED(int before = r; before & 1; before >>= 1, level++)
      GPR_EACH(n, many) node[n] = OP::combine(waiting[level][n], node[n]);
    if (r + 1 < rounds)
      GPR_EACH(n, many) waiting[level][n] = node[n];
    else
      GPR_ROLLED(int left = r >> level; left >>= 1;)
        if (level++, left & 1)
          GPR_EACH(n, many) node[n] = OP::combine(waiting[level][n], node[n]);
  }
  GPR_EACH(n, many)
    if (first + n * apart < outputs) X::finish_place(x.a, place[n].out, node[n]);
}

GPR_CLOSE
