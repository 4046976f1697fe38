/* Law 2: the perfect binary tree over the index.
 *
 * The aligned block [k·2^L, (k+1)·2^L) is one node of level L, its left half ∘ its right half; a
 * missing right half passes the left one through. A part [start, stop) of the index is kept as the
 * fewest nodes that cover it, at most two of each level, so that parts merge to the same bits
 * however the index was cut. */
#pragma once

#include "portable.h"

GPR_OPEN

enum { GPR_TREE_NODES = 126 }; /* two of each level below 63 */

template <class A> struct Node {
  A value;
  int32_t level;
};
template <class A> struct Tree {
  int64_t stop; /* one past the last index covered */
  int64_t count;
  Node<A> node[GPR_TREE_NODES + 2]; /* + 2: a node is pushed before it joins its sibling */
};

/* Appends the node that starts where the tree stops. */
template <class Op, class A> GPR_FN void push(Tree<A> &t, A value, int level) {
  int64_t place = t.stop >> level;
  t.stop += 1ll << level;
  while (t.count && t.node[t.count - 1].level == level && (place & 1)) {
    value = Op::combine(t.node[--t.count].value, value);
    level++;
    place >>= 1;
  }
  t.node[t.count].value = value;
  t.node[t.count++].level = level;
}

template <class Op, class A> GPR_FN void merge_trees(Tree<A> &left, const Tree<A> &right) {
  if (!right.count) return;
  if (!left.count) {
    left = right;
    return;
  }
  for (int i = 0; i < right.count; i++) push<Op>(left, right.node[i].value, right.node[i].level);
}

/* The root: what is left folds from the right, each missing sibling passed through. */
template <class Op, class A> GPR_FN A root(const Tree<A> &t, A identity) {
  if (!t.count) return identity;
  A value = t.node[t.count - 1].value;
  for (int64_t i = t.count - 2; i >= 0; i--) value = Op::combine(t.node[i].value, value);
  return value;
}

GPR_CLOSE
