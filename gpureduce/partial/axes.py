"""The axes that are reduced, and these as one."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpureduce.partial.given import integers


def axes_of(axis: int | Sequence[int] | None, dims: int, called: str) -> tuple[int, ...]:
    """All forms of axis=, in order."""
    if axis is None:
        return tuple(range(dims))
    if type(axis) is int and 0 <= axis < dims:
        return (axis,)
    given = integers(axis, f"{called}: axis")
    if not dims and given in ((0,), (-1,)):  # NumPy takes these as numbers
        return ()
    for one in given:
        if not -dims <= one < dims:
            raise np.exceptions.AxisError(one, dims, called)
    axes = {one % dims for one in given}
    if len(axes) < len(given):
        raise ValueError(f"{called}: duplicate value in axis {axis!r}")
    return tuple(sorted(axes))


def left_of(shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    """The shape of the outputs."""
    return tuple(1 if d in axes else n for d, n in enumerate(shape) if keepdims or d not in axes)


def along(shape: Sequence[int], axes: Sequence[int]) -> int:
    """How many elements each output has."""
    return math.prod(shape[d] for d in axes)


def as_one(x: Any, axes: Sequence[int], shape: Sequence[int], inner: Sequence[int] = ()) -> Any:
    """The reduced axes as the first, in C order of them. x is broadcast to the shape, and has small
    arrays along its last axes."""
    moved = x if x.shape == (*shape, *inner) else np.broadcast_to(x, (*shape, *inner))
    if len(axes) == len(shape):
        return moved.reshape(-1, *inner)
    kept = [d for d in range(len(shape)) if d not in axes]
    last = range(len(shape), len(shape) + len(inner))
    moved = moved.transpose(*axes, *kept, *last)
    return moved.reshape(along(shape, axes), *(shape[d] for d in kept), *inner)
