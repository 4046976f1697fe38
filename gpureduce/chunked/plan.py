"""What a reduction of chunks is, whichever array they are of and whoever's operator it is."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpureduce import functions
from gpureduce.chunked import brief
from gpureduce.chunked.brief import Brief
from gpureduce.lists import operators
from gpureduce.partial import merging, trees
from gpureduce.partial.axes import along, axes_of, left_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.given import integer
from gpureduce.partial.kinds import INDEX, Kind, dtype_of, kind_of
from gpureduce.partial.take import partials

_NO = np._NoValue
_NOT_TAKEN = ("out", "initial", "mean", "kernel")


@dataclass(frozen=True)
class Plan(ABC):
    """How each chunk is reduced and all of them are finished. shape: of the whole array, NaN where
    that is not known yet. dtypes: of the results."""

    name: str
    axes: tuple[int, ...]
    keepdims: bool
    shape: tuple[float, ...]
    dtypes: tuple[np.dtype[Any], ...]

    is_tree = True
    words = trees.VALUES + 1  # of each output, or a few more

    @property
    def least_words(self) -> int:
        """The same where they are brief."""
        return self.words

    @property
    def called(self) -> str:
        """What messages begin with."""
        return f"gpureduce.{self.name}"

    @property
    def needs_place(self) -> bool:
        """Whether a chunk has to know where it lies."""
        return self.is_tree

    @property
    def left(self) -> tuple[int, ...]:
        """The axes of the result, as the array's."""
        return tuple(d for d in range(len(self.shape)) if self.keepdims or d not in self.axes)

    def offset_of(self, block: Any, start: Sequence[int]) -> int:
        """Of a tree's part: its index over the reduced axes, which only the first of them cuts."""
        inner = along(block.shape, self.axes[1:])
        return start[self.axes[0]] * inner if self.axes else 0

    def part(self, blocks: Sequence[Any], mask: Any, start: Sequence[int]) -> Brief | Partials:
        """As taken(), brief where that holds it."""
        return self.taken(blocks, mask, start)

    def finished(self, p: Brief | Partials, which: int) -> Any:
        """One of the results, of partials that have all axes."""
        if not self.keepdims:
            p = p.reshape(left_of(p.shape, self.axes, False))
        found = self.of_root(p)
        one = found[which] if len(self.dtypes) > 1 else found
        return np.asarray(one).astype(self.dtypes[which], copy=False)[()]

    @abstractmethod
    def told(self) -> tuple[Any, ...]:
        """All that decides the result, in plain values."""

    @abstractmethod
    def taken(self, blocks: Sequence[Any], mask: Any, start: Sequence[int]) -> Partials:
        """Of chunks of the inputs, whose first element has this place in the whole array."""

    @abstractmethod
    def of_root(self, p: Any) -> Any:
        """All results."""


@dataclass(frozen=True)
class Named(Plan):
    """By one of the package's own functions."""

    kind: Kind
    all_axes: bool
    dtype: Any
    ddof: float

    @property
    def is_tree(self) -> bool:  # type: ignore[override]
        return self.kind.tree is not None

    @property
    def words(self) -> int:  # type: ignore[override]
        return self.kind.words or super().words

    @property
    def least_words(self) -> int:
        return brief.doubles_of(self.kind) or self.words

    @property
    def needs_place(self) -> bool:
        return self.kind.is_position or self.is_tree

    def told(self) -> tuple[Any, ...]:
        rest = (self.axes, self.all_axes, self.keepdims, str(self.dtype), self.ddof, self.shape)
        return self.name, self.kind.text, *rest

    def taken(self, blocks: Sequence[Any], mask: Any, start: Sequence[int]) -> Partials:
        block = np.asarray(blocks[0])
        axis: Any = None if self.all_axes else self.axes
        how: dict[str, Any] = {"keepdims": True, "dtype": self.dtype}
        if self.kind.is_position and self.all_axes:
            how |= {"offset": tuple(start), "whole": self.shape}
        elif self.kind.is_position:
            axis, how["offset"] = self.axes[0], start[self.axes[0]]
        elif self.is_tree:
            how["offset"] = self.offset_of(block, start)
        if mask is not None:
            how["where"] = mask
        return partials(block, self.name, axis, **how)

    def part(self, blocks: Sequence[Any], mask: Any, start: Sequence[int]) -> Brief | Partials:
        block = np.asarray(blocks[0])
        how = {"dtype": self.dtype, "where": True if mask is None else mask}
        found = brief.taken(self.kind, self.name, block, self.axes, **how)
        return self.taken([block], mask, start) if found is None else found

    def of_root(self, p: Brief | Partials) -> Any:
        if isinstance(p, Brief):
            return p.finish(self.name, self.ddof)
        return merging.finish(p, self.name, ddof=self.ddof)


def check_given(called: str, given: Mapping[str, Any], what: str) -> None:
    """What is not for arrays that come in chunks."""
    for key in _NOT_TAKEN:
        if given.get(key, None) is not None and given.get(key) is not _NO:
            raise TypeError(f"{called}: {key} is not taken with {what}")
    device = given.get("device", "auto")
    if device not in ("auto", "cpu"):
        raise ValueError(f"{called}: {what} are reduced on the CPU; device is not {device!r}")


def plan_of(name: str, a: Any, given: Mapping[str, Any], what: str) -> Named:
    """The checks that need no element."""
    check_given(f"gpureduce.{name}", given, what)
    row = operators()[INDEX[name]]
    dtype = given.get("dtype")
    kind = kind_of(name, dtype_of(a.dtype if dtype is None else dtype), name)
    keepdims, axis = given.get("keepdims", False), given.get("axis")
    if row["position"] and axis is not None:
        axis = integer(axis, f"gpureduce.{name}: axis")
    sample = np.ones((1,) * len(a.shape), a.dtype)
    how = {"dtype": dtype} if dtype is not None else {}
    small = (
        functions.reduce(sample, name, **how)
        if row["ufunc"]
        else functions.PUBLIC[name](sample, **how)
    )
    several = small if row["results"] > 1 else (small,)
    return Named(
        name,
        axes_of(axis, len(a.shape), f"gpureduce.{name}"),
        keepdims is not _NO and bool(operator.index(keepdims)),
        tuple(a.shape),
        tuple(np.asarray(one).dtype for one in several),
        kind,
        axis is None,
        dtype,
        merging.real(given.get("ddof", 0), name),
    )


def mask_of(given: Mapping[str, Any]) -> Any:
    """None where all count."""
    where = given.get("where", True)
    return None if where is True or where is _NO else where
