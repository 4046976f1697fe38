"""Cubed's arrays: chunks become partials in its own arrays, as plain bytes that it moves about."""

import functools
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpureduce.chunked.plan import Named, mask_of, plan_of
from gpureduce.partial.axes import left_of
from gpureduce.partial.carrier import Partials
from gpureduce.partial.merging import merge


def reduce(name: str, a: Any, given: Mapping[str, Any]) -> Any:
    """A lazy array; two of minmax and argminmax."""
    plan = plan_of(name, a, given, "Cubed's arrays")
    if plan.is_tree:
        raise TypeError(
            f"gpureduce.{name}: of floats it has an order, in which Cubed's arrays do not merge"
        )
    if mask_of(given) is not None:
        raise TypeError(f"gpureduce.{name}: where is not taken with Cubed's arrays")
    if given.get("progress"):
        raise TypeError(f"gpureduce.{name}: of Cubed's arrays progress is cubed.diagnostics'")
    ops = importlib.import_module("cubed.core.ops")
    chunks = tuple((1,) * len(c) if d in plan.axes else c for d, c in enumerate(a.chunks))
    starts = [np.cumsum([0, *c])[:-1] for c in a.chunks]
    take = functools.partial(_take, plan=plan, starts=starts)
    parts = ops.map_blocks(take, a, dtype=_bytes_of(plan), chunks=chunks)
    found = [_reduced(ops, parts, plan, which) for which in range(len(plan.dtypes))]
    return found[0] if len(found) == 1 else tuple(found)


def _bytes_of(plan: Named) -> np.dtype[Any]:
    return np.dtype(f"V{8 * plan.words}")


def _carried(p: Partials, plan: Named) -> Any:
    return np.ascontiguousarray(p.raw).view(_bytes_of(plan))[..., 0]


def _back(raw: Any, plan: Named) -> Partials:
    words = np.ascontiguousarray(raw).view(np.int64).reshape(*raw.shape, plan.words)
    return Partials(plan.kind, plan.kind.function, words)


def _take(block: Any, plan: Named, starts: Any, block_id: Any = None) -> Any:
    at = [s[i] for s, i in zip(starts, block_id, strict=True)]
    return _carried(plan.taken([block], None, at), plan)


def _merge(raw: Any, plan: Named, axis: Any = None, keepdims: Any = None) -> Any:
    p = merge(_back(raw, plan), axis=axis)
    return _carried(p.reshape(left_of(raw.shape, plan.axes, True)), plan)


def _finish(raw: Any, plan: Named, which: int) -> Any:
    found = plan.finished(_back(raw, plan), which)
    return np.asarray(found)


def _reduced(ops: Any, parts: Any, plan: Named, which: int) -> Any:
    if plan.axes:
        combine = functools.partial(_merge, plan=plan)
        parts = ops.reduction(
            parts, combine, axis=plan.axes, intermediate_dtype=parts.dtype, dtype=parts.dtype,
            keepdims=True,
        )  # fmt: skip
    gone = [] if plan.keepdims else list(plan.axes)
    chunks = tuple(c for d, c in enumerate(parts.chunks) if d not in gone)
    finish = functools.partial(_finish, plan=plan, which=which)
    dtype = plan.dtypes[which]
    return ops.map_blocks(finish, parts, dtype=dtype, chunks=chunks, drop_axis=gone)
