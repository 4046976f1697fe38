/* Law 2: the perfect binary tree over the index.
 *
 * The aligned block [k·2^L, (k+1)·2^L) is one node of level L, its left half ∘ its right half; a
 * missing right half passes the left one through. A part [start, stop) of the index is kept as the
 * fewest nodes that cover it, at most two of each level, so that parts merge to the same bits
 * however the index was cut. */
#ifndef GPR_TREE_CUH
#define GPR_TREE_CUH

#include "portable.h"

GPR_OPEN

enum { GPR_TREE_NODES = 126 }; /* two of each level below 63 */

template <class A> struct Tree {
  int64_t stop; /* one past the last index covered */
  int32_t count;
  int8_t level[GPR_TREE_NODES + 2];
  A value[GPR_TREE_NODES + 2]; /* + 2: a node is pushed before it joins its sibling */
};

/* Appends the node that starts where the tree stops. */
template <class Op, class A> GPR_FN void push(Tree<A> &t, A value, int level) {
  int64_t node = t.stop >> level;
  t.stop += 1ll << level;
  while (t.count && t.level[t.count - 1] == level && (node & 1)) {
    value = Op::combine(t.value[--t.count], value);
    level++;
    node >>= 1;
  }
  t.level[t.count] = (int8_t)level;
  t.value[t.count++] = value;
}

template <class Op, class A> GPR_FN void merge_trees(Tree<A> &left, const Tree<A> &right) {
  if (!right.count) return;
  if (!left.count) {
    left = right;
    return;
  }
  for (int i = 0; i < right.count; i++) push<Op>(left, right.value[i], right.level[i]);
}

/* The root: what is left folds from the right, each missing sibling passed through. */
template <class Op, class A> GPR_FN A root(const Tree<A> &t, A identity) {
  if (!t.count) return identity;
  A value = t.value[t.count - 1];
  for (int i = t.count - 2; i >= 0; i--) value = Op::combine(t.value[i], value);
  return value;
}

GPR_CLOSE
#endif
