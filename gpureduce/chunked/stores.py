"""Chunked stores, like those of zarr and h5py: read a few chunks at a time."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpureduce.chunked.plan import Plan, mask_of, plan_of
from gpureduce.partial.merging import merge
from gpureduce.progress import shown

# What is read at a time, if chunks are not larger.
BLOCK_BYTES = 32 << 20
# Outputs at a time, if chunks have not more: each has some hundred bytes of words.
BLOCK_OUTPUTS = 1 << 16

Box = tuple[slice, ...]


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """The result in memory, as of an array in memory; chunks come one after the other."""
    plan = plan_of(name, a, given, "chunked stores")
    return shown(given.get("progress", False), name, _reduce, a, plan, mask_of(given))


def _block_of(a: Any, plan: Plan) -> list[int]:
    """Whole chunks: more of them where they are small, along the last axes first."""
    shape = a.shape
    block = [min(c, n) for c, n in zip(a.chunks or (1,) * len(shape), shape, strict=True)]
    if plan.kind.tree:  # the index runs over the reduced axes in C order
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


def _of(mask: Any, box: Box) -> Any:
    """The part of a mask that is broadcast."""
    if mask is None:
        return None
    if not np.ndim(mask):
        return bool(mask)
    inner = box[len(box) - len(mask.shape) :]
    return np.asarray(
        mask[tuple(slice(None) if n == 1 else s for n, s in zip(mask.shape, inner, strict=True))]
    )


def _both(kept: Box, reduced: Box, axes: Sequence[int]) -> Box:
    return tuple(reduced[d] if d in axes else kept[d] for d in range(len(kept)))


def _reduce(a: Any, plan: Plan, mask: Any, tell: Callable[[int, int], object] | None) -> Any:
    shape = tuple(a.shape)
    block = _block_of(a, plan)
    others = [d for d in range(len(shape)) if d not in plan.axes]
    full = tuple(1 if d in plan.axes else n for d, n in enumerate(shape))
    outs = [np.empty(full, plan.result) for _ in range(plan.results)]
    done = 0
    for kept in _boxes(shape, block, others):
        found = None
        for reduced in _boxes(shape, block, plan.axes):
            box = _both(kept, reduced, plan.axes)
            part = np.asarray(a[box])
            p = plan.taken(part, _of(mask, box), [s.start for s in box])
            found = p if found is None else merge([found, p])
            done += part.size
            if tell:
                tell(done, math.prod(shape))
        assert found is not None
        _put(plan, outs, found, kept)
    left = tuple(full[d] for d in plan.left)
    results = [out.reshape(left)[()] for out in outs]
    return results[0] if plan.results == 1 else tuple(results)


def _put(plan: Plan, outs: list[Any], found: Any, kept: Box) -> None:
    place = tuple(slice(None) if d in plan.axes else s for d, s in enumerate(kept))
    one = plan._replace(keepdims=True)
    for which, out in enumerate(outs):
        out[place] = one.finished(found, which)
