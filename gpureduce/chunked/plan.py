"""What a reduction of chunks is, whichever array they are of."""

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpureduce import functions
from gpureduce.lists import operators
from gpureduce.partial import merging
from gpureduce.partial.carrier import Partials
from gpureduce.partial.kinds import INDEX, Kind, kind_of
from gpureduce.partial.take import partials

_NO = np._NoValue
_NOT_TAKEN = ("out", "initial", "mean", "kernel")


class Plan(NamedTuple):
    """How each chunk is reduced and all of them are finished. shape: of the whole array, NaN where
    that is not known yet."""

    name: str
    kind: Kind
    axes: tuple[int, ...]
    all_axes: bool
    keepdims: bool
    dtype: Any
    ddof: float
    shape: tuple[float, ...]
    result: np.dtype[Any]
    results: int

    def told(self) -> tuple[Any, ...]:
        """All that decides the result, in plain values."""
        rest = (self.axes, self.all_axes, self.keepdims, str(self.dtype), self.ddof, self.shape)
        return self.name, self.kind.text, *rest

    @property
    def needs_place(self) -> bool:
        """Whether a chunk has to know where it lies."""
        return self.kind.is_position or self.kind.tree is not None

    @property
    def left(self) -> tuple[int, ...]:
        """The axes of the result, as the array's."""
        return tuple(d for d in range(len(self.shape)) if self.keepdims or d not in self.axes)

    def taken(self, block: Any, mask: Any, start: Sequence[int]) -> Partials:
        """Of a chunk, whose first element has this place in the whole array."""
        axis: Any = None if self.all_axes else self.axes
        how: dict[str, Any] = {"keepdims": True}
        if self.kind.is_position and self.all_axes:
            how |= {"offset": tuple(start), "whole": self.shape}
        elif self.kind.is_position:
            axis, how["offset"] = self.axes[0], start[self.axes[0]]
        elif self.kind.tree and self.axes:
            inner = math.prod(block.shape[d] for d in self.axes[1:])
            how["offset"] = start[self.axes[0]] * inner
        if mask is not None:
            how["where"] = mask
        return partials(np.asarray(block), self.name, axis, dtype=self.dtype, **how)

    def finished(self, p: Partials, which: int = 0) -> Any:
        """One of the results, of partials that have all axes."""
        if not self.keepdims:
            p = p.reshape(tuple(n for d, n in enumerate(p.shape) if d not in self.axes))
        found = merging.finish(p, self.name, ddof=self.ddof)
        one = found[which] if self.results > 1 else found
        return np.asarray(one).astype(self.result, copy=False)[()]


def _axes(axis: Any, dims: int, is_position: bool) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(dims))
    if is_position:
        axis = operator.index(axis)
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axis, dims, "axis")))


def plan_of(name: str, a: Any, given: Mapping[str, Any], what: str) -> Plan:
    """The checks that need no element."""
    for key in _NOT_TAKEN:
        if given.get(key, None) is not None and given.get(key) is not _NO:
            raise TypeError(f"{name}: {key} is not taken with {what}")
    device = given.get("device", "auto")
    if device not in ("auto", "cpu"):
        raise ValueError(f"{name}: {what} are reduced on the CPU; device is not {device!r}")
    row = operators()[INDEX[name]]
    dtype = given.get("dtype")
    folded = np.dtype(dtype) if dtype is not None else np.dtype(a.dtype)
    kind = kind_of(name, folded.newbyteorder("="), name)
    keepdims = given.get("keepdims", False)
    sample = np.ones((1,) * len(a.shape), a.dtype)
    how = {"dtype": dtype} if dtype is not None else {}
    small = (
        functions.reduce(sample, name, **how)
        if row["ufunc"]
        else functions.PUBLIC[name](sample, **how)
    )
    return Plan(
        name,
        kind,
        _axes(given.get("axis"), len(a.shape), row["position"]),
        given.get("axis") is None,
        keepdims is not _NO and bool(keepdims),
        dtype,
        given.get("ddof", 0),
        tuple(a.shape),
        np.asarray(small[0] if row["results"] > 1 else small).dtype,
        row["results"],
    )


def mask_of(given: Mapping[str, Any]) -> Any:
    """None where all count."""
    where = given.get("where", True)
    return None if where is True or where is _NO else where
