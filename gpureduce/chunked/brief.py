"""Partials in a few doubles an output, while they stay among the tasks of one reduction."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpureduce import _core
from gpureduce.partial import merging
from gpureduce.partial.axes import along, left_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.kinds import INDEX, Kind, kind_of
from gpureduce.partial.warn import Met, warn

Doubles = NDArray[np.float64]

# Elements an output from which on words take less: variances of 4096 rows of doubles took 0.9 ms in
# words and 1.4 in doubles, of 1024 rows 1.8 and 1.5.
_LONG_SQUARES = 2048
# csrc/brief.h's.
_INTO_BRIEF, _INTO_WORDS = -1, -2


def doubles_of(kind: Kind) -> int:
    """Of each output; 0 where there are none."""
    is_float = kind.tree is None and kind.dtype.kind == "f"
    return _core.brief_doubles(kind.row, kind.dtype) if is_float else 0


class Brief:
    """Exact sums as pairs of doubles: of one part of the array, or of several that are to merge."""

    __slots__ = ("kind", "op", "parts", "shape")

    def __init__(self, kind: Kind, op: str, parts: Sequence[Doubles], shape: tuple[int, ...]):
        self.kind, self.op, self.parts, self.shape = kind, op, tuple(parts), shape

    def __reduce__(self) -> Any:
        return _unpickled, (self.op, self.kind.dtype, self.parts, self.shape)

    def reshape(self, shape: tuple[int, ...]) -> "Brief":
        return Brief(self.kind, self.op, self.parts, shape)

    def _into(self, what: int, ddof: float = 0) -> tuple[Any, int]:
        kind = self.kind
        return _core.brief_finish(kind.row, kind.dtype, what, kind.number, ddof, self.parts)

    def _met(self) -> Met:
        """The first sum of a pair is infinite or NaN where an element is."""
        first = np.array([part[:, 1:2] for part in self.parts])
        return np.isinf(first).any(0), np.isnan(first).any(0)

    def merged(self) -> "Brief | Partials":
        """As words where doubles do not hold it."""
        found, _ = self._into(_INTO_BRIEF)
        if found is None:
            return self.words()
        return Brief(self.kind, self.op, (found,), self.shape)

    def words(self) -> Partials:
        raw, _ = self._into(_INTO_WORDS)
        return Partials(self.kind, self.op, raw.reshape(*self.shape, self.kind.words))

    def finish(self, op: str, ddof: float) -> Any:
        """As merging.finish does."""
        found, least = self._into(INDEX[op], ddof)
        warn(op, self.kind, found, least, ddof, self._met, len(self.shape))
        return found.reshape(self.shape)[()]


def _unpickled(op: str, dtype: Any, parts: Sequence[Doubles], shape: tuple[int, ...]) -> Brief:
    """Networks' buffers may begin anywhere."""
    aligned = [np.require(x, requirements=["C", "A"]) for x in parts]
    return Brief(kind_of(op, dtype, "merge"), op, aligned, shape)


def taken(kind: Kind, op: str, block: Any, axes: Sequence[int], **how: Any) -> Brief | None:
    """Of a block along these axes, which stay with length 1; None where doubles do not hold all, or
    words are as well: one output alone."""
    shape = left_of(block.shape, axes, True)
    outputs, each = math.prod(shape), along(block.shape, axes)
    is_long = kind.op.endswith("var") and each >= _LONG_SQUARES
    if outputs < 2 or not each or is_long or not doubles_of(kind):
        return None
    where, dtype = how.get("where", True), how.get("dtype")
    call = (INDEX[op], block, tuple(axes), dtype, True, where, "cpu", kind.number, True, None)
    found = _core.partials(*call)
    return None if found is None else Brief(kind, op, (found.reshape(outputs, -1),), shape)


def together(parts: Iterable[Brief | Partials]) -> Brief | Partials:
    """As one, which is not worked out yet where all are brief."""
    several = list(parts)
    brief = [p for p in several if isinstance(p, Brief)]
    if len(brief) < len(several) or not brief:
        return merging.merge(p.words() if isinstance(p, Brief) else p for p in several)
    first = brief[0]
    return Brief(first.kind, first.op, [x for p in brief for x in p.parts], first.shape)


def merged(parts: Iterable[Brief | Partials]) -> Brief | Partials:
    p = together(parts)
    return p.merged() if isinstance(p, Brief) else p
