"""Parts of the one tree over the index: the fewest aligned blocks that cover [start, stop)."""

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpureduce.partial.axes import as_one, axes_of, left_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.kinds import HEADER, Kind, dtype_of, name_of

Node = list[NDArray[Any]]
# After the header, the bounds.
START, STOP, VALUES = HEADER, HEADER + 1, HEADER + 2


def cover(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Aligned blocks of powers of two, from left to right, each as large as can be."""
    while start < stop:
        size = start & -start or 1 << (stop - start).bit_length()
        while size > stop - start:
            size >>= 1
        yield start, start + size
        start += size


def _words_of(kind: Kind) -> list[int]:
    return [(slot.itemsize + 7) // 8 for slot in kind.tree.slots]


def packed(
    kind: Kind, shape: tuple[int, ...], start: int, stop: int, nodes: list[Node]
) -> Partials:
    words_of = _words_of(kind)
    raw = np.zeros((*shape, VALUES + sum(words_of) * len(nodes)), np.int64)
    raw[..., :VALUES] = kind.number, 1, stop - start, start, stop
    at = VALUES
    for node in nodes:
        for value, words in zip(node, words_of, strict=True):
            room = raw[..., at : at + words].view(value.dtype)
            room[..., 0] = value
            at += words
    return Partials(kind, kind.op, raw, start, stop)


def unpacked(p: Partials) -> list[Node]:
    nodes, at = [], VALUES
    for _ in cover(p.start, p.stop):
        node = []
        for slot, words in zip(p.kind.tree.slots, _words_of(p.kind), strict=True):
            room = np.ascontiguousarray(p.raw[..., at : at + words])
            node.append(room.view(slot)[..., 0])
            at += words
        nodes.append(node)
    return nodes


def _level(block: tuple[int, int]) -> int:
    return (block[1] - block[0]).bit_length() - 1


class _Pushed:
    """Nodes from left to right, joined as soon as both halves of a block are there."""

    def __init__(self, kind: Kind, start: int):
        self.kind, self.stop = kind, start
        self.nodes: list[tuple[Node, int]] = []

    def push(self, node: Node, level: int) -> None:
        place = self.stop >> level
        self.stop += 1 << level
        while self.nodes and self.nodes[-1][1] == level and place & 1:
            node = self.kind.tree.combine(self.nodes.pop()[0], node)
            level, place = level + 1, place >> 1
        self.nodes.append((node, level))


def merged(parts: Sequence[Partials]) -> Partials:
    parts = sorted(parts, key=lambda p: (p.start, p.stop))
    first = parts[0]
    pushed = _Pushed(first.kind, first.start)
    for p in parts:
        if p.start != pushed.stop:
            raise ValueError(
                "gpureduce.merge: parts of a tree follow each other, and after [.., "
                f"{pushed.stop}) comes [{p.start}, {p.stop}): say with partials(..., offset=) "
                "where each part begins, and give what lies between"
            )
        for node, block in zip(unpacked(p), cover(p.start, p.stop), strict=True):
            pushed.push(node, _level(block))
    nodes = [node for node, _ in pushed.nodes]
    return packed(first.kind, first.shape, first.start, pushed.stop, nodes)


def finished(p: Partials, op: Any, dtype: DTypeLike | None) -> Any:
    if op is not None and op is not p.kind.tree.asked:
        name = name_of(op, "finish")
        if name not in p.answers and f"nan{name}" not in p.answers:
            raise ValueError(
                f"gpureduce.finish: partials of {p.kind} do not answer {name}, but "
                f"{', '.join(p.answers)}"
            )
    if dtype is not None and dtype_of(dtype) != p.dtype:
        raise TypeError(
            f"gpureduce.finish: {p.op} of {p.dtype} does not finish into {dtype_of(dtype)}; give "
            "dtype to partials() to convert each element first"
        )
    if p.start:
        raise ValueError(
            f"gpureduce.finish: this part of the tree is [{p.start}, {p.stop}); what is before "
            f"{p.start} has to be merged to its left first"
        )
    nodes = unpacked(p)
    root = nodes[-1] if nodes else p.kind.tree.neutral(p.shape)
    for node in reversed(nodes[:-1]):
        root = p.kind.tree.combine(node, root)
    return p.kind.tree.finish(root)


def start_of(offset: Any) -> int:
    start = operator.index(offset)
    if start < 0:
        raise ValueError(f"gpureduce.partials: offset {start} is negative")
    return start


def taken(
    kind: Kind, x: NDArray[Any], axis: Any, keepdims: bool, where: Any, offset: Any
) -> Partials:
    """The blocks of an array whose first element along the reduced axes has this index."""
    shape, axes = x.shape, axes_of(axis, x.ndim)
    start = start_of(offset)
    one = len(axes) == 1
    if not one:
        x = as_one(x, axes, shape)
        where = where if where is True else as_one(where, axes, shape)
    elif where is not True:
        where = np.broadcast_to(where, shape)
    at = axes[0] if one else 0
    count = x.shape[at]
    nodes = []
    for first, stop in cover(start, start + count):
        part = (slice(None),) * at + (slice(first - start, stop - start),)
        mask = where if where is True else where[part]
        nodes.append(kind.tree.fold(x[part], (at,), mask))
    left = left_of(shape, axes, keepdims)
    if keepdims:
        nodes = [[value.reshape(left) for value in node] for node in nodes]
    return packed(kind, left, start, start + count, nodes)
