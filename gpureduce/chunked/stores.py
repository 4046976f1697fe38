"""Chunked stores, like those of zarr and h5py: read a few chunks at a time."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpureduce.chunked.brief import merged
from gpureduce.chunked.plan import Plan, mask_of, plan_of
from gpureduce.progress import shown

# What is read at a time, if chunks are not larger.
BLOCK_BYTES = 32 << 20
# Outputs at a time, if chunks have not more: each has some hundred bytes of words.
BLOCK_OUTPUTS = 1 << 16

Box = tuple[slice, ...]


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """The result in memory, as of an array in memory; chunks come one after the other."""
    plan = plan_of(name, a, given, "chunked stores")
    found = reduce_by(plan, [a], mask_of(given), given.get("progress", False))
    return found[0] if len(found) == 1 else tuple(found)


def reduce_by(plan: Plan, inputs: Sequence[Any], mask: Any, progress: Any) -> list[Any]:
    """All results; the inputs are broadcast against each other."""
    found: list[Any] = shown(progress, plan.name, _reduce, inputs, plan, mask)
    return found


def _block_of(a: Any, plan: Plan) -> list[int]:
    """Whole chunks: more of them where they are small, along the last axes first."""
    shape = a.shape
    block = [min(c, n) for c, n in zip(a.chunks or (1,) * len(shape), shape, strict=True)]
    if plan.is_tree:  # the index runs over the reduced axes in C order
        for d in plan.axes[1:]:
            block[d] = shape[d]
    size = np.dtype(a.dtype).itemsize

    def fits() -> bool:
        outputs = math.prod(n for d, n in enumerate(block) if d not in plan.axes)
        many = plan.axes and outputs > BLOCK_OUTPUTS
        return math.prod(block) * size <= BLOCK_BYTES and not many

    for d in reversed(range(len(shape))):
        while 0 < block[d] < shape[d] and fits():
            before, block[d] = block[d], min(2 * block[d], shape[d])
            if not fits():
                block[d] = before
                break
    return block


def _boxes(shape: Sequence[int], block: Sequence[int], axes: Sequence[int]) -> Iterator[Box]:
    """Along these axes in C order; of the others all."""
    ranges = [
        [slice(s, min(s + b, n)) for s in range(0, n, b)] if d in axes and n else [slice(0, n)]
        for d, (n, b) in enumerate(zip(shape, block, strict=True))
    ]
    return itertools.product(*ranges)


def _of(a: Any, box: Box) -> Any:
    """The part of an array that is broadcast."""
    if not np.ndim(a):
        return np.asarray(a)
    inner = box[len(box) - len(a.shape) :]
    return np.asarray(
        a[tuple(slice(None) if n == 1 else s for n, s in zip(a.shape, inner, strict=True))]
    )


def _mask_of(called: str, mask: Any, shape: tuple[int, ...]) -> Any:
    """One that is too long has parts of the right shape, too."""
    mask = mask if hasattr(mask, "shape") else np.asarray(mask)
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{called}: where of shape {mask.shape} could not be broadcast to the shape {shape}"
        )
    return mask


def _both(kept: Box, reduced: Box, axes: Sequence[int]) -> Box:
    return tuple(reduced[d] if d in axes else kept[d] for d in range(len(kept)))


def _reduce(
    inputs: Sequence[Any], plan: Plan, mask: Any, tell: Callable[[int, int], object] | None
) -> list[Any]:
    shape = tuple(map(int, plan.shape))
    mask = None if mask is None else _mask_of(plan.called, mask, shape)
    block = _block_of(_whole(inputs, shape), plan)
    others = [d for d in range(len(shape)) if d not in plan.axes]
    full = tuple(1 if d in plan.axes else n for d, n in enumerate(shape))
    outs = [np.empty(full, dtype) for dtype in plan.dtypes]
    done = 0
    for kept in _boxes(shape, block, others):
        found = None
        for reduced in _boxes(shape, block, plan.axes):
            box = _both(kept, reduced, plan.axes)
            parts = [_of(a, box) for a in inputs]
            p = plan.part(parts, None if mask is None else _of(mask, box), [s.start for s in box])
            found = p if found is None else merged([found, p])
            done += math.prod(s.stop - s.start for s in box)
            if tell:
                tell(done, math.prod(shape))
        assert found is not None
        _put(plan, outs, found, kept)
    left = tuple(full[d] for d in plan.left)
    return [out.reshape(left)[()] for out in outs]


def _whole(inputs: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The input that is not broadcast: its chunks are read."""
    for a in inputs:
        if tuple(a.shape) == shape and hasattr(a, "chunks"):
            return a
    raise TypeError("a store has to have the shape of all inputs together, and none has")


def _put(plan: Plan, outs: list[Any], found: Any, kept: Box) -> None:
    place = tuple(slice(None) if d in plan.axes else s for d, s in enumerate(kept))
    one = dataclasses.replace(plan, keepdims=True)
    for which, out in enumerate(outs):
        out[place] = one.finished(found, which)
