"""Where the numbers of every leaf lie: arrays and axes as dimensions and strides."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpureduce.custom.program import Input, Stream

LANES_LEAST = 8
COUNT_FEW = 32  # leaves of an output, below which neighbours' are taken together in any case


class Dim(NamedTuple):
    length: int
    strides: tuple[int, ...]  # of each stream
    place: int  # of kept dimensions: outputs from one to the next


class Layout(NamedTuple):
    """kept and reduced dimensions, none of length 1 but where there is no other."""

    kept: tuple[Dim, ...]
    reduced: tuple[Dim, ...]
    offsets: tuple[int, ...]  # of each stream: bytes into its array
    outputs: int
    leaves: int  # of an output
    across: bool


def shape_of(name: str, arrays: Sequence[Any], inputs: Sequence[Input]) -> tuple[int, ...]:
    """That of the elements of all inputs together; np.broadcast_shapes() takes 32 dimensions."""
    shapes = []
    for array, given in zip(arrays, inputs, strict=True):
        outer = array.ndim - len(given.shape)
        if outer < 0 or array.shape[outer:] != given.shape:
            raise ValueError(
                f"{name}: the last axes of {given.name} have the lengths {given.shape}, "
                f"and it is given an array of shape {array.shape}"
            )
        shapes.append(array.shape[:outer])
    rank = max((len(shape) for shape in shapes), default=0)
    lengths = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    together = [{length for length in one if length != 1} or {1} for one in lengths]
    if any(len(one) > 1 for one in together):
        said = ", ".join(map(str, shapes))
        raise ValueError(f"{name}: inputs of the shapes {said} do not go together")
    return tuple(one.pop() for one in together)


def strides_of(array: Any, inner: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of the array's elements, broadcast to the shape."""
    outer: int = array.ndim - len(inner)
    own = zip(array.shape[:outer], array.strides[:outer], strict=True)
    return (0,) * (len(shape) - outer) + tuple(s if n > 1 else 0 for n, s in own)


def offset_of(stream: Stream, array: Any, inner: tuple[int, ...]) -> int:
    """Where in the array the stream's first number is."""
    places = np.unravel_index(stream.place, inner) if inner else ()
    steps = array.strides[array.ndim - len(inner) :]
    offset: int = sum(int(p) * step for p, step in zip(places, steps, strict=True))
    return offset + stream.part * stream.scalar.bytes


def layout_of(
    arrays: Sequence[NDArray[np.generic]],
    streams: Sequence[Stream],
    shapes: Sequence[tuple[int, ...]],
    shape: tuple[int, ...],
    axes: Sequence[int],
) -> Layout:
    """shapes: of one element of each array; the mask is one of the arrays."""
    strides, offsets = [], []
    for stream in streams:
        array, inner = arrays[stream.input], shapes[stream.input]
        strides.append(strides_of(array, inner, shape))
        offsets.append(offset_of(stream, array, inner))
    by_dim = [tuple(s[d] for s in strides) for d in range(len(shape))]
    place = 1
    kept: list[Dim] = []
    reduced: list[Dim] = []
    for d in reversed(range(len(shape))):
        dim = Dim(shape[d], by_dim[d], place)
        if d in axes:
            reduced.insert(0, dim)
        else:
            kept.insert(0, dim)
            place *= shape[d]
    count = math.prod(dim.length for dim in reduced)
    whole = joined([dim for dim in reduced if dim.length != 1])
    whole = whole or [Dim(1, (0,) * len(streams), 0)]
    ordered, across = _ordered([dim for dim in kept if dim.length != 1], whole, count)
    return Layout(tuple(ordered), tuple(whole), tuple(offsets), place, count, across)


def joined(dims: list[Dim]) -> list[Dim]:
    """Neighbours as one where their strides allow it."""
    found: list[Dim] = []
    for dim in dims:
        if found and found[-1].length and dim.length:
            steps = (*found[-1].strides, found[-1].place)
            if steps == tuple(dim.length * step for step in (*dim.strides, dim.place)):
                found[-1] = Dim(found[-1].length * dim.length, dim.strides, dim.place)
                continue
        found.append(dim)
    return found


def _nearness(dim: Dim) -> int:
    """How far apart its neighbours are in memory."""
    return max((abs(stride) for stride in dim.strides), default=0)


def _ordered(kept: list[Dim], reduced: list[Dim], count: int) -> tuple[list[Dim], bool]:
    """The kept dimensions in an order that suits memory, and whether outputs along the last one go
    side by side."""
    if not kept:
        return kept, False
    dims = joined(sorted(kept, key=_nearness, reverse=True))
    lane = dims[-1]
    if lane.length < LANES_LEAST and count <= COUNT_FEW:
        lane = max(dims, key=lambda dim: dim.length)
        dims = [*(dim for dim in dims if dim is not lane), lane]
    is_near = _nearness(lane) < _nearness(reduced[-1]) or count <= COUNT_FEW
    return dims, lane.length >= LANES_LEAST and is_near
