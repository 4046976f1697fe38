"""Dask arrays: chunks become partials, which are merged by Dask's own tree of tasks."""

import functools
import importlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gpureduce.chunked.plan import Plan, mask_of, plan_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.merging import merge

# Merging is cheap, so that more go at once than Dask's own 4.
_SPLIT_EVERY = 16


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """A lazy array; two of minmax and argminmax. How many partials merge at once is Dask's own
    setting, ``dask.config.set(split_every=...)``."""
    plan = plan_of(name, a, given, "Dask arrays")
    if given.get("progress"):
        raise TypeError(f"{name}: of Dask arrays progress is dask.diagnostics.ProgressBar's")
    if type(a._meta) is not np.ndarray:
        raise TypeError(
            f"{name}: Dask arrays of {type(a._meta).__module__}.{type(a._meta).__qualname__} are "
            "not supported; a.map_blocks(numpy.asarray) would do"
        )
    if plan.kind.tree:
        a = _in_one_order(a, plan)
    parts = _parts(a, plan, mask_of(given))
    found = [_reduced(parts, plan, which) for which in range(plan.results)]
    return found[0] if len(found) == 1 else tuple(found)


def _in_one_order(a: Any, plan: Plan) -> Any:
    """The index runs over the reduced axes in C order: cut along the first of them alone."""
    inner = [d for d in plan.axes[1:] if len(a.chunks[d]) > 1]
    return a.rechunk(dict.fromkeys(inner, -1)) if inner else a


def _starts(a: Any, plan: Plan) -> list[np.ndarray[Any, Any]]:
    """Where the chunks begin, along each axis."""
    for d in plan.axes:
        if plan.needs_place and len(a.chunks[d]) > 1 and np.isnan(a.chunks[d]).any():
            raise ValueError(
                f"{plan.name}: where the chunks of axis {d} lie is not known; "
                "a.compute_chunk_sizes() finds it out"
            )
    return [np.cumsum([0, *(0 if math.isnan(n) else int(n) for n in c)])[:-1] for c in a.chunks]


def _take(block: Any, mask: Any = None, *, plan: Plan) -> Partials:
    return plan.taken(block, mask, (0,) * block.ndim)


def _take_there(
    block: Any, mask: Any = None, *, plan: Plan, starts: Any, block_id: Any = None
) -> Partials:
    start = [s[i] for s, i in zip(starts, block_id or (0,) * len(starts), strict=True)]
    return plan.taken(block, mask, start)


def _parts(a: Any, plan: Plan, mask: Any) -> Any:
    """A block of partials for each chunk."""
    da = importlib.import_module("dask.array")
    starts = _starts(a, plan)
    take = functools.partial(_take, plan=plan)
    if plan.needs_place:
        take = functools.partial(_take_there, plan=plan, starts=starts)
    arrays = [a]
    if mask is not None:
        unknown = any(math.isnan(n) for n in a.shape)
        arrays.append(mask if unknown else da.broadcast_to(mask, a.shape).rechunk(a.chunks))
    chunks = tuple((1,) * len(c) if d in plan.axes else c for d, c in enumerate(a.chunks))
    return da.map_blocks(
        take,
        *arrays,
        chunks=chunks,
        dtype=object,
        meta=np.empty((0,) * a.ndim, object),
        name=f"gpureduce-{plan.name}-{da.core.tokenize(plan[:7], *arrays)}",
    )


def _flat(blocks: Any) -> Iterator[Partials]:
    if isinstance(blocks, Partials):
        yield blocks
        return
    for block in blocks:
        yield from _flat(block)


def _same(block: Any, axis: Any, keepdims: Any) -> Any:
    return block


def _merge(blocks: Any, axis: Any, keepdims: Any) -> Partials:
    return merge(_flat(blocks))


def _finish(blocks: Any, axis: Any = None, keepdims: Any = None, *, plan: Plan, which: int) -> Any:
    return plan.finished(merge(_flat(blocks)), which)


def _reduced(parts: Any, plan: Plan, which: int) -> Any:
    da, config = importlib.import_module("dask.array"), importlib.import_module("dask.config")
    finish = functools.partial(_finish, plan=plan, which=which)
    if not plan.axes:
        return parts.map_blocks(finish, dtype=plan.result, chunks=parts.chunks)
    return da.reduction(
        parts,
        _same,
        finish,
        axis=plan.axes,
        keepdims=plan.keepdims,
        dtype=plan.result,
        split_every=config.get("split_every", _SPLIT_EVERY),
        combine=_merge,
        name=f"gpureduce_{plan.name}",
        concatenate=False,
        meta=np.empty((0,) * len(plan.left), plan.result),
    )
