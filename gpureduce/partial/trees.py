"""Parts of the one tree over the index: the fewest aligned blocks that cover [start, stop)."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpureduce.partial.axes import along, as_one, axes_of, left_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.given import integer
from gpureduce.partial.kinds import HEADER, Kind, dtype_of, name_of

Node = list[NDArray[Any]]
# After the header, the bounds.
START, STOP, VALUES = HEADER, HEADER + 1, HEADER + 2
LAST = np.iinfo(np.int64).max
# Of an array at a time, so that a view costs no second copy of all.
_COPIED_BYTES = 4 << 20


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


def start_of(offset: Any, behind: int = 0) -> int:
    """behind: how far the indices go on from there, to 2^63 - 1 at the most."""
    start = integer(offset, "gpureduce.partials: offset")
    if start < 0:
        raise ValueError(f"gpureduce.partials: offset {start} is negative: 0 is the first")
    if start > LAST - behind:
        raise ValueError(
            f"gpureduce.partials: offset {start} is too large: the indices would go beyond "
            f"2^63 - 1; up to {LAST - behind} would do"
        )
    return start


def taken(
    kind: Kind, x: NDArray[Any], axis: Any, keepdims: bool, where: Any, offset: Any
) -> Partials:
    """The blocks of an array whose first element along the reduced axes has this index."""
    axes = axes_of(axis, x.ndim, "gpureduce.partials")
    start = start_of(offset, along(x.shape, axes))
    at = axes[0] if len(axes) == 1 else 0
    mask = where if where is True else np.broadcast_to(where, x.shape)
    pushed = _Pushed(kind, start)
    for piece, counts in _pieces(x, mask, axes):
        begin = pushed.stop
        for first, stop in cover(begin, begin + piece.shape[at]):
            part = (slice(None),) * at + (slice(first - begin, stop - begin),)
            node = kind.tree.fold(piece[part], (at,), True if counts is True else counts[part])
            pushed.push(node, _level((first, stop)))
    left = left_of(x.shape, axes, keepdims)
    nodes = [[value.reshape(left) for value in node] for node, _ in pushed.nodes]
    return packed(kind, left, start, pushed.stop, nodes)


def _pieces(x: NDArray[Any], mask: Any, axes: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """As it is along one axis; else with the reduced axes as the first, in C order of them, some at
    a time where they have to be copied."""
    if len(axes) == 1:
        yield x, mask
        return
    long = [d for d in axes if x.shape[d] != 1]
    lie_so = all(x.strides[a] == x.strides[b] * x.shape[b] for a, b in itertools.pairwise(long))
    for cut in [...] if lie_so or not x.size else _cuts(x.shape, axes, x.itemsize):
        part = x[cut]
        counts = mask if mask is True else as_one(mask[cut], axes, part.shape)
        yield as_one(part, axes, part.shape), counts


def _cuts(shape: Sequence[int], axes: Sequence[int], itemsize: int) -> Iterator[tuple[slice, ...]]:
    """Parts that follow each other in C order of the axes, of no more bytes than are copied."""
    size, steps = itemsize * math.prod(shape), list(shape)
    for d in axes:
        size //= shape[d]
        steps[d] = min(shape[d], max(1, _COPIED_BYTES // size))
        if steps[d] > 1:
            break
    ranges = [
        [slice(s, s + step) for s in range(0, n, step)]
        for n, step in zip(shape, steps, strict=True)
    ]
    return itertools.product(*ranges)
