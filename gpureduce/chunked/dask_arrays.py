"""Dask arrays: chunks become partials, which are merged by Dask's own tree of tasks."""

import importlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gpureduce.chunked.brief import Brief, merged, together
from gpureduce.chunked.plan import Plan, mask_of, plan_of
from gpureduce.partial.carrier import Partials

# Merging is cheap, so that more go at once than Dask's own 4, as long as they are no larger
# together than this: of maps each is tens of times as large as a result.
_SPLIT_EVERY, _TOGETHER = 16, 64 << 20
# Chunks go together where their words would be half of their elements or more, until they are an
# eighth: with 64 rows of doubles to a chunk, words of sums took Dask's time five times. But no
# more than these bytes, which a worker has to hold beside them: they are copied. Fewer chunks would
# make graphs larger than Dask's own.
_MANY_WORDS, _FEW_WORDS, _GROUP_MOST, _GROUP_LEAST = 1 / 2, 1 / 8, 32 << 20, 8


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """A lazy array; two of minmax and argminmax. How many partials merge at once is Dask's own
    setting, ``dask.config.set(split_every=...)``."""
    plan = plan_of(name, a, given, "Dask arrays")
    found = reduce_by(plan, [a], mask_of(given), given.get("progress", False))
    return found[0] if len(found) == 1 else tuple(found)


def reduce_by(plan: Plan, inputs: Sequence[Any], mask: Any, progress: Any) -> list[Any]:
    """A lazy array for each result; the inputs are broadcast against each other."""
    da = importlib.import_module("dask.array")
    if progress:
        raise TypeError(f"{plan.called}: of Dask arrays progress is dask.diagnostics.ProgressBar's")
    arrays = [inputs[0]] if len(inputs) == 1 else da.broadcast_arrays(*map(da.asarray, inputs))
    for a in arrays:
        if type(a._meta) is not np.ndarray:
            raise TypeError(
                f"{plan.called}: Dask arrays of "
                f"{type(a._meta).__module__}.{type(a._meta).__qualname__} are not supported; "
                "a.map_blocks() of a function that gives NumPy's would do"
            )
    if plan.is_tree:
        arrays = [_in_one_order(a, plan) for a in arrays]
    else:
        arrays = [_in_groups(arrays[0], plan)]
    results = range(len(plan.dtypes))
    if mask is None and plan.axes and not plan.needs_place:
        return [_reduced(arrays[0], _Take(plan), plan, which) for which in results]
    parts = _parts(arrays, plan, mask)
    return [_reduced(parts, _same, plan, which) for which in results]


def _in_one_order(a: Any, plan: Plan) -> Any:
    """The index runs over the reduced axes in C order: cut along the first of them alone."""
    inner = [d for d in plan.axes[1:] if len(a.chunks[d]) > 1]
    return a.rechunk(dict.fromkeys(inner, -1)) if inner else a


def _in_groups(a: Any, plan: Plan) -> Any:
    """Neighbours along the axis that has the most chunks as one, where each gives many outputs of
    few elements."""
    outputs, size = _outputs(a, plan), math.prod(max(c, default=0) for c in a.chunks)
    if not plan.axes or math.isnan(size) or not size:
        return a
    d = max(plan.axes, key=lambda d: len(a.chunks[d]))
    bytes_of_each, lengths = size * a.dtype.itemsize, a.chunks[d]
    share = 8 * plan.least_words * outputs / bytes_of_each
    wanted = min(max(math.ceil(share / _FEW_WORDS), _GROUP_LEAST), _SPLIT_EVERY)
    count = min(wanted, _GROUP_MOST // bytes_of_each)
    if share < _MANY_WORDS or min(count, len(lengths)) < _GROUP_LEAST:
        return a
    groups = tuple(sum(lengths[i : i + count]) for i in range(0, len(lengths), count))
    return a.rechunk({d: groups})


def _outputs(a: Any, plan: Plan) -> Any:
    """Of the largest chunk; NaN where that is not known."""
    return math.prod(max(c, default=0) for d, c in enumerate(a.chunks) if d not in plan.axes)


def _starts(a: Any, plan: Plan) -> list[np.ndarray[Any, Any]]:
    """Where the chunks begin, along each axis."""
    for d in plan.axes:
        if plan.needs_place and len(a.chunks[d]) > 1 and np.isnan(a.chunks[d]).any():
            raise ValueError(
                f"{plan.called}: where the chunks of axis {d} lie is not known; "
                "a.compute_chunk_sizes() finds it out"
            )
    return [np.cumsum([0, *(0 if math.isnan(n) else int(n) for n in c)])[:-1] for c in a.chunks]


# --- tasks ----------------------------------------------------------------------------------------


class _Task:
    """A function that Dask names by its plan alone."""

    def __init__(self, plan: Plan, *more: Any):
        self.plan, self.more = plan, more

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, *self.plan.told(), *self.more


class _Take(_Task):
    """Of a chunk; axis and keepdims are the plan's."""

    def __call__(
        self, block: Any, axis: Any = None, keepdims: Any = None, computing_meta: bool = False
    ) -> Any:
        if computing_meta:
            return np.empty((0,) * block.ndim, object)
        return self.plan.part([block], None, (0,) * block.ndim)


class _TakeThere(_Task):
    """Of chunks at their place, the last of them the mask if there is one."""

    def __call__(self, *blocks: Any, block_id: Any = None) -> Brief | Partials:
        starts, is_masked = self.more
        at = block_id or (0,) * len(starts)
        inputs, mask = (blocks[:-1], blocks[-1]) if is_masked else (blocks, None)
        return self.plan.part(inputs, mask, [s[i] for s, i in zip(starts, at, strict=True)])


class _Finish(_Task):
    """One of the results."""

    def __call__(self, blocks: Any, axis: Any = None, keepdims: Any = None) -> Any:
        (which,) = self.more
        return self.plan.finished(together(_flat(blocks)), which)


def _flat(blocks: Any) -> Iterator[Brief | Partials]:
    if isinstance(blocks, Brief | Partials):
        yield blocks
        return
    for block in blocks:
        yield from _flat(block)


def _same(block: Any, axis: Any, keepdims: Any) -> Any:
    return block


def _merge(blocks: Any, axis: Any = None, keepdims: Any = None) -> Brief | Partials:
    return merged(_flat(blocks))


# --- graphs ---------------------------------------------------------------------------------------


def _parts(arrays: list[Any], plan: Plan, mask: Any) -> Any:
    """A block of partials for each chunk."""
    da = importlib.import_module("dask.array")
    a = arrays[0]
    take = _TakeThere(plan, tuple(map(tuple, _starts(a, plan))), mask is not None)
    if mask is not None:
        unknown = any(math.isnan(n) for n in a.shape)
        mask = mask if unknown else da.broadcast_to(mask, a.shape).rechunk(a.chunks)
        arrays = [*arrays, mask]
    chunks = tuple((1,) * len(c) if d in plan.axes else c for d, c in enumerate(a.chunks))
    return da.map_blocks(
        take,
        *arrays,
        chunks=chunks,
        dtype=object,
        meta=np.empty((0,) * a.ndim, object),
        name=f"gpureduce-{plan.name}-{da.core.tokenize(take, *arrays)}",
    )


def _split_every(a: Any, plan: Plan) -> Any:
    """How many partials merge at once: Dask's own setting, if there is one."""
    outputs = _outputs(a, plan)
    if math.isnan(outputs):
        outputs = 0
    fit = _TOGETHER // max(1, 8 * plan.words * int(outputs))
    usual = max(2, min(_SPLIT_EVERY, fit))
    return importlib.import_module("dask.config").get("split_every", usual)


def _reduced(a: Any, take: Any, plan: Plan, which: int) -> Any:
    da = importlib.import_module("dask.array")
    if not plan.axes:
        return a.map_blocks(_Finish(plan, which), dtype=plan.dtypes[which], chunks=a.chunks)
    return da.reduction(
        a,
        take,
        _Finish(plan, which),
        axis=plan.axes,
        keepdims=plan.keepdims,
        dtype=plan.dtypes[which],
        split_every=_split_every(a, plan),
        combine=_merge,
        name=f"gpureduce_{plan.name}",
        concatenate=False,
        meta=np.empty((0,) * len(plan.left), plan.dtypes[which]),
    )
